"""The README and the first page of the site give the same reasons, and their numbers were measured."""

from __future__ import annotations

import re
from pathlib import Path

from scripts.charts import measurement

ROOT = Path(__file__).parents[2]
DEVELOPMENT = ROOT / "docs" / "development"
README = (ROOT / "README.md").read_text(encoding="utf-8")
INDEX = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
COMPARISON = (ROOT / "docs" / "explanation" / "comparison.md").read_text(encoding="utf-8")


def reasons(text: str) -> list[str]:
    """Return the reasons of a page, each as one line: they are its first list with bold beginnings."""
    items = r"(?:^- \*\*.*\n(?:  .*\n)*)+"
    first_list = re.search(items, text, re.MULTILINE)
    assert first_list is not None
    return [" ".join(item.split()) for item in re.findall(r"^- .*\n(?:  .*\n)*", first_list[0], re.MULTILINE)]


def rows(page: str, heading: str) -> list[list[str]]:
    """Return the cells of the first table that has a column of this name, on a page for developers."""
    text = (DEVELOPMENT / page).read_text(encoding="utf-8")
    tables = [table.splitlines() for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)]
    lines = next(table for table in tables if f"| {heading} |" in table[0])
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def conformance() -> str:
    """Return how many scenarios of the newest revision pass, such as "37 of 37"."""
    [cell] = {row[2] for row in rows("conformance.md", "options")[2:] if row[1] == "`--requirements 2026-07-28`"}
    return cell


def speed() -> tuple[int, float, float]:
    """Return the calls per second, and how many times those of the official SDK and of FastMCP they are."""
    calls = measurement("calls", tool="add", era="2025-11-25", connections=16, function="async")["answers_per_second"]
    run = calls["funcmcp run"]
    return run, run / calls["mcp"], run / calls["fastmcp"]


def storms() -> dict[str, int]:
    """Return the number of tasks in each storm. None of them was lost or ran too often."""
    head, _, *storms = rows("storms.md", "ran too often")
    for column in ("ran too often", "lost", "stuck"):
        assert {row[head.index(column)] for row in storms} == {"0"}
    return {row[0].strip("`"): int(row[head.index("tasks")]) for row in storms}


def test_the_readme_and_the_site_give_five_reasons_each_with_a_number() -> None:
    assert len(reasons(README)) == 5
    assert reasons(README) == reasons(INDEX)
    assert all(re.search(r"\d", reason) for reason in reasons(README))


def test_the_numbers_of_the_reasons_were_measured() -> None:
    every_client, fast, ready, long_calls, moves = reasons(README)
    assert conformance() in every_client
    per_second, times_the_sdk, times_fastmcp = speed()
    assert f"{per_second:,} calls per second: {int(times_the_sdk)} times" in fast
    assert f"{int(times_fastmcp)} times" in fast
    starts = measurement("starts", tools=1000)["milliseconds"]
    assert f"after {starts['funcmcp'] / 1000:.2f} seconds" in ready
    assert f"takes {starts['mcp'] / 1000:.2f}." in ready
    tasks = storms()
    [failures] = re.findall(r"More than ([\d,]+) calls", long_calls)
    assert f"{tasks.pop('cuts'):,} while replies of Redis were lost" in long_calls
    assert int(failures.replace(",", "")) < sum(tasks.values())
    corpus = (DEVELOPMENT / "corpus.md").read_text(encoding="utf-8")
    [servers] = re.findall(r"^(\d+ of \d+) servers of FastMCP", corpus, re.MULTILINE)
    assert f"{servers} published servers" in moves


def test_the_comparison_has_the_figures_of_the_benchmarks() -> None:
    calls = measurement("calls", tool="add", era="2025-11-25", connections=16, function="async")["answers_per_second"]
    starts = measurement("starts", tools=1000)["milliseconds"]
    apps = measurement("azure", row="cold start in the worker library")["apps"]
    cold = [f"{apps[name]['CPU beyond bare'] / 1000:.2f} s" for name in ("funcmcp_http", "fastmcp_asgi")]
    for row in (
        " | ".join(f"{calls[name]:,}" for name in ("funcmcp run", "mcp", "fastmcp")),
        " | ".join(f"{starts[name] / 1000:.2f} s" for name in ("funcmcp", "mcp", "fastmcp")),
        " | not measured | ".join(cold),
    ):
        assert f" | {row} | " in COMPARISON


def test_the_readme_has_rows_of_the_comparison() -> None:
    shown = re.findall(r"^\|(?: [^|]+ \|){5}$", README, re.MULTILINE)
    assert len(shown) > 5
    assert set(shown) <= set(COMPARISON.splitlines())


def test_links_and_pictures_of_the_readme_work_everywhere() -> None:
    addresses = re.findall(r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"|^\[[^\]]+\]: (\S+)", README, re.MULTILINE)
    assert len(addresses) > 20
    repository = r"https://(?:github\.com/funcmcp/funcmcp/blob|raw\.githubusercontent\.com/funcmcp/funcmcp)/main/(.+)"
    for address in map("".join, addresses):
        assert address.startswith("https://")
        path = re.fullmatch(repository, address)
        if path is not None:
            assert (ROOT / path[1]).is_file()
