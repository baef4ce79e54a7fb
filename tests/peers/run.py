"""Runs the tests of FastMCP and the official SDK on their own packages and on funcmcp: ``python -m tests.peers.run``.

It writes ``docs/development/peers-tests.md``. A test counts if it passes on the original and is not left out in
``suites.toml``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING, TypeAlias, TypedDict
from xml.etree import ElementTree as ET

from tests.peers.prepared import HERE, is_below, prepare, suites

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.peers.prepared import Suite

Outcomes: TypeAlias = "dict[str, str]"
"""For each test ``"passed"``, or the first line of its failure."""

REPOSITORY = HERE.parents[1]
PYTHON = REPOSITORY / ".servers" / "peers" / "bin" / "python"
WORK = REPOSITORY / ".servers" / "peers" / "work"
PART = HERE / "part.json"
"""Which tests of the parts pass, as `test_part.py` expects it."""
PAGE = REPOSITORY / "docs" / "development" / "peers-tests.md"
_PASSED = "passed"
_PYTEST = """\
[pytest]
asyncio_mode = {mode}
asyncio_default_fixture_loop_scope = function
timeout = 30
env =
    FASTMCP_TEST_MODE=1
    D:FASTMCP_LOG_LEVEL=DEBUG
    D:FASTMCP_ENABLE_RICH_TRACEBACKS=0
addopts = --inline-snapshot=disable --continue-on-collection-errors -q -p no:cacheprovider
markers =
    integration
    client_process
    subprocess_heavy
    conformance
    pbt
    requirement
"""


_CLIENT = {
    "fastmcp": {"fastmcp.client.client", "fastmcp.client.transports"},
    "mcp": {"mcp.client", "mcp.client.client"},
}
"""Modules of a package's client that have names of `funcmcp.compat`, beside those of the whole package."""
_CLIENT_NAMES = frozenset({"Client", "FastMCPTransport", "infer_transport"})
_STAYING = ("mcp.types", "mcp_types", "fastmcp.skills.models", "fastmcp.skills.skill")
"""Modules with the types that the peers' clients return, which stay theirs."""
_READ = """
import importlib, json, pkgutil, sys
import funcmcp.compat.{package} as package
modules = [package.__name__, *(item.name for item in pkgutil.walk_packages(package.__path__, package.__name__ + "."))]
names = {{name: getattr(importlib.import_module(name), "__all__", []) for name in modules}}
json.dump({{name.removeprefix("funcmcp.compat."): listed for name, listed in names.items()}}, sys.stdout)
"""


def compat_modules(package: str) -> dict[str, frozenset[str]]:
    """Return the modules of a package that `funcmcp.compat` has, with the names in each."""
    command = [str(PYTHON), "-c", _READ.format(package=package)]
    answer = subprocess.run(command, env=_environment(), check=True, capture_output=True, text=True)
    modules: dict[str, frozenset[str]] = {}
    for module, names in json.loads(answer.stdout).items():
        is_client = module.startswith(f"{package}.client")
        if is_client and module not in {f"{package}.client", *_CLIENT[package]}:
            continue
        if module == "fastmcp.skills":  # whose names are such types
            continue
        if not module.startswith(_STAYING):
            modules[module] = _CLIENT_NAMES if is_client else frozenset(names) - {"Skill"}
    if package == "mcp":  # whose other names are types
        modules["mcp"] = frozenset({"Client"})
    return modules


def outcomes(suite: Suite, folder: Path, *, on_funcmcp: bool, names: list[str] | None = None) -> Outcomes:
    """Run the tests of a suite in the peer's environment.

    Args:
        suite: The suite.
        folder: A folder for the tests, which is replaced.
        on_funcmcp: Whether the tests have the names of funcmcp.
        names: The folders, modules and tests that are run; None for all of the suite.
    """
    prepare(suite, folder, compat_modules(suite.package) if on_funcmcp else {})
    (folder / "pytest.ini").write_text(_PYTEST.format(mode=suite.asyncio_mode), "utf-8")
    report = folder / "report.xml"
    plugin = ["-p", "tests_peers_plugin"] if on_funcmcp else []
    if on_funcmcp:
        (folder / "tests_peers_plugin.py").write_text((HERE / "plugin.py").read_text("utf-8"), "utf-8")
    command = [str(PYTHON), "-m", "pytest", *plugin, f"--junitxml={report}", "-n", "2", "--tb=line"]
    wanted = names or suite.names
    paths = [f"tests/{name}" for name in wanted if (folder / "tests" / name.partition("::")[0]).exists()]
    subprocess.run([*command, *paths], cwd=folder, env=_environment(folder), check=False, stdout=sys.stderr)
    return _read(report)


def _environment(*folders: Path) -> dict[str, str]:
    paths = [*folders, REPOSITORY / "src"]
    return os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))}


def _read(report: Path) -> Outcomes:
    """Return the outcomes in a report of pytest. Skipped tests have none."""
    results: Outcomes = {}
    for case in ET.parse(report).getroot().iter("testcase"):
        name = _name(case.get("classname", ""), case.get("name", ""))
        problems = [child for child in case if child.tag in {"failure", "error"}]
        if problems:
            results[name] = (problems[0].get("message") or "error").partition("\n")[0]
        elif not any(child.tag == "skipped" for child in case):
            results[name] = _PASSED
    return results


def _name(classname: str, name: str) -> str:
    """Return the name of a test as pytest writes it, below the folder of the tests."""
    parts = classname.removeprefix("tests.").split(".")
    classes = [part for part in parts if part[:1].isupper()]
    return "::".join(["/".join(parts[: len(parts) - len(classes)]) + ".py", *classes, name])


class Part(TypedDict):
    """The tests of a suite's part that count.

    Attributes:
        passed: How many pass.
        failed: The others.
    """

    passed: int
    failed: list[str]


def part_of(suite: Suite, outcomes: Mapping[str, str]) -> Part:
    """Return which tests of a suite's part pass on funcmcp."""
    names = tuple(suite.part)
    counting = [test for test in outcomes if is_below(test, names) and not is_below(test, tuple(suite.timed))]
    tests = [test for test in counting if suite.reason_for(test) is None]
    failed = sorted(test for test in tests if outcomes[test] != _PASSED)
    return {"passed": len(tests) - len(failed), "failed": failed}


def counted(suite: Suite, original: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, Counter[str]]:
    """Return for each folder how many tests count, pass and are left out."""
    table: dict[str, Counter[str]] = {}
    for test, outcome in original.items():
        if outcome != _PASSED:
            continue
        row = table.setdefault(_group(test), Counter())
        if suite.reason_for(test) is not None:
            row["left out"] += 1
            continue
        row["count"] += 1
        row["pass"] += ours.get(test) == _PASSED
    return table


def _group(test: str) -> str:
    """Return the folder of a test, two levels deep, or its module."""
    parts = test.partition("::")[0].split("/")
    return "/".join(parts[:2])


def page_of(results: Mapping[str, dict[str, Counter[str]]]) -> str:
    """Return the page with the tables of all suites."""
    lines = [
        "# The tests of FastMCP and the official SDK",
        "",
        "`make peers` installs FastMCP and the official SDK with the sources of their releases, which contain their",
        "tests. It runs these tests on their own package, and again with the modules of `funcmcp.compat` in place of",
        "the package's. The peers' clients connect in memory. A test counts if it passes on the original.",
        "`tests/peers/suites.toml` names the folders, and the tests that do not apply with their reasons. The script",
        "writes this page.",
        "",
        "Where `make peers` has run once, `make test` runs a part of the tests. It compares them with",
        "`tests/peers/part.json`, which `make peers` writes, too.",
    ]
    for name, table in results.items():
        total: Counter[str] = Counter()
        lines += ["", f"## {name}", "", "| tests | count | pass | share | left out |", "|---|---|---|---|---|"]
        for group, row in sorted(table.items()):
            total.update(row)
            lines.append(_row(group, row))
        lines.append(_row("all", total))
    return "\n".join(lines) + "\n"


def _row(name: str, row: Counter[str]) -> str:
    share = f"{100 * row['pass'] // row['count']} %" if row["count"] else ""
    return f"| {name} | {row['count']} | {row['pass']} | {share} | {row['left out'] or ''} |"


def main() -> None:
    """Run the suites, or those that the arguments name, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="*", help="fastmcp or mcp; both if there is none")
    wanted = parser.parse_args().suites
    results, parts = {}, json.loads(PART.read_text("utf-8"))
    for name, suite in suites().items():
        if wanted and name not in wanted:
            continue
        original = outcomes(suite, WORK / f"{name}-original", on_funcmcp=False)
        ours = outcomes(suite, WORK / f"{name}-funcmcp", on_funcmcp=True)
        (WORK / f"{name}.json").write_text(json.dumps({"original": original, "funcmcp": ours}, indent=1), "utf-8")
        results[f"{suite.tests.parent.name}"] = counted(suite, original, ours)
        parts[name] = part_of(suite, ours)
    PART.write_text(json.dumps(parts, indent=1) + "\n", "utf-8")
    PAGE.write_text(page_of(results), "utf-8")
    print(page_of(results))


if __name__ == "__main__":
    main()
