"""docs/reference/limits.md names each option with its default, and each resource with its shares and its test."""

from __future__ import annotations

import re
from dataclasses import Field, fields
from pathlib import Path

import pytest

from funcmcp._server.limits import Limits
from funcmcp._state.tasks.store import TaskLimits
from fuzz.memory import MAX_GROWTH

TEXT = (Path(__file__).parents[2] / "docs" / "reference" / "limits.md").read_text(encoding="utf-8")


def default_of(name: str) -> str:
    """Return an option's default as the table has it, such as "4 MiB"."""
    value = getattr(Limits(), name)
    if value is None:
        value = Limits().share_of(name.removesuffix("_per_principal"))
    if "bytes" in name:
        return f"{value // 1024**2} MiB" if value % 1024**2 == 0 else f"{value // 1024} KiB"
    return f"{value:,.0f}"


@pytest.mark.parametrize("option", fields(Limits), ids=lambda option: option.name)
def test_an_option_has_a_row_with_its_default(option: Field[object]) -> None:
    [row] = [line for line in TEXT.splitlines() if line.startswith(f"| `{option.name}` |")]
    assert row.split(" | ")[1].partition(" (")[0] == default_of(option.name)


ROOT = Path(__file__).parents[2]
SHARES = [
    line.strip("|").split("|")
    for line in TEXT.partition("| resource | total |")[2].partition("\n\n")[0].splitlines()[2:]
]
SESSION_OPTIONS = ["MemorySessions(limit=)", "MemorySessions(per_principal=)"]
SESSION_OPTIONS += ["RedisSessions(anonymous=)", "RedisSessions(per_principal=)"]


def test_the_table_of_shares_has_each_option() -> None:
    options = {option for row in SHARES for option in re.findall(r"`([^`:]+)`", "|".join(row[1:4]))}
    expected = {f"Limits.{option.name}" for option in fields(Limits)}
    expected |= {f"TaskLimits.{option.name}" for option in fields(TaskLimits)}
    expected |= {*SESSION_OPTIONS, "RedisRevocations(limit=)"}
    assert expected <= options
    assert {option for option in options if "." in option} <= expected


@pytest.mark.parametrize("row", SHARES, ids=[row[0].strip() for row in SHARES])
def test_each_resource_has_a_total_or_a_share_and_a_test_that_exists(row: list[str]) -> None:
    _, total, share, address_share, test = (cell.strip() for cell in row)
    assert total or share
    assert address_share
    path, _, name = test.strip("`").partition("::")
    assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8")


def test_the_goal_of_the_fuzzer_is_that_of_the_page() -> None:
    [(worst, goal)] = re.findall(r"found is (\d+) MiB .*?the goal is (\d+) MiB at most", TEXT.replace("\n", " "))
    assert int(worst) <= int(goal) == MAX_GROWTH
