"""The tests of a peer's release, with the modules of `funcmcp.compat` in place of the peer's."""

from __future__ import annotations

import ast
import re
import shutil
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / ".servers" / "peers" / "sources"
DATA = ("docs", "docs_src", "examples", "skills")
"""Folders of a release that some of its tests read."""

Modules: TypeAlias = "Mapping[str, frozenset[str]]"
"""The modules of a peer that `funcmcp.compat` has, with their names."""


@dataclass(frozen=True, slots=True)
class Suite:
    """The tests of one peer.

    Attributes:
        package: The peer's distribution, and the name of its package.
        asyncio_mode: Which async tests pytest-asyncio runs, as the peer has it: ``"auto"`` or ``"strict"``.
        names: The folders and modules that are run.
        left_out: The folders, modules, tests and patterns of tests that do not apply, with their reasons.
        part: The folders and modules of which `test_part.py` runs the tests in each run of funcmcp's own.
        timed: Tests of the part whose outcome does not count there, because they assert that something is fast.
    """

    package: str
    asyncio_mode: str
    names: list[str]
    left_out: dict[str, str]
    part: list[str]
    timed: list[str]

    @property
    def tests(self) -> Path:
        """The folder with the tests in the release."""
        (folder,) = SOURCES.glob(f"{self.package}-*/tests")
        return folder

    def reason_for(self, test: str) -> str | None:
        """Return why a test does not apply, None if it does."""
        return next((reason for name, reason in self.left_out.items() if is_below(test, (name,))), None)


def is_below(test: str, names: tuple[str, ...]) -> bool:
    """Return whether one of the names is a test, a pattern of it, its class, its module or a folder above it."""
    return any(
        test == name or test.startswith((f"{name}/", f"{name}::", f"{name}[")) or fnmatchcase(test, name)
        for name in names
    )


def suites() -> dict[str, Suite]:
    """Return the suites by name."""
    tables = tomllib.loads((HERE / "suites.toml").read_text("utf-8"))
    return {
        suite: Suite(
            table["package"],
            table["asyncio_mode"],
            table["names"],
            {name: group["reason"] for group in table.get("left_out", []) for name in group["names"]},
            table["part"],
            table.get("timed", []),
        )
        for suite, table in tables.items()
    }


def prepare(suite: Suite, folder: Path, modules: Modules) -> None:
    """Write the tests of a suite into a folder, with `funcmcp.compat` in place of the peer for the names that it has.

    Args:
        suite: The suite.
        folder: The folder, which is replaced.
        modules: The modules and names of the peer that `funcmcp.compat` has; none for the tests as they are.
    """
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(suite.tests, folder / "tests", symlinks=True)
    for data in DATA:
        source = suite.tests.parent / data
        if source.is_dir() and modules and data == "docs_src":
            shutil.copytree(source, folder / data)
        elif source.is_dir():
            (folder / data).symlink_to(source)
    if modules:
        for path in [*(folder / "tests").rglob("*.py"), *(folder / "docs_src").rglob("*.py")]:
            text = path.read_text("utf-8")
            path.write_text(replaced(text, suite.package, modules), "utf-8")


def replaced(text: str, package: str, modules: Modules) -> str:
    """Return a module of tests that has the modules of `funcmcp.compat` in place of a package's.

    The names of other modules, and names that `funcmcp.compat` does not have, stay those of the package.

    Args:
        text: The module.
        package: The package.
        modules: The modules and names of the package that `funcmcp.compat` has.
    """
    lines = text.splitlines(keepends=True)
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom | ast.Import)]
    for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset), reverse=True):
        if isinstance(node, ast.ImportFrom):
            statements = list(_from_import(node, package, modules))
        else:
            statements = list(_plain_import(node, package, modules))
        if statements and ast.unparse(node) != "; ".join(statements):
            end = lines[(node.end_lineno or node.lineno) - 1].encode()[node.end_col_offset or 0 :].decode()
            start = lines[node.lineno - 1].encode()[: node.col_offset].decode()
            lines[node.lineno - 1 : node.end_lineno] = [f"{start}{'; '.join(statements)}{end}"]
    path = re.compile(rf"""(["'])({package}(?:\.\w+)+)\1""")
    text = path.sub(lambda match: f"{match[1]}{_moved_path(match[2], modules)}{match[1]}", "".join(lines))
    in_texts = re.compile(rf"""from ({package}[\w.]*) import (\w+)(?=\n|\\n|["'])""")  # of files that a test writes
    return in_texts.sub(lambda match: _moved_import(match, modules), text)


def _moved_import(match: re.Match[str], modules: Modules) -> str:
    """Return an import of one name in a text, from `funcmcp.compat` if it has the name."""
    module, name = match.groups()
    return match[0].replace(module, f"funcmcp.compat.{module}", 1) if name in modules.get(module, ()) else match[0]


def _from_import(node: ast.ImportFrom, package: str, modules: Modules) -> Iterator[str]:
    """Yield the statements for ``from module import names``; none if it stays."""
    module = node.module or ""
    if node.level or module not in modules or module.partition(".")[0] != package:
        return
    moving = [alias for alias in node.names if alias.name in modules[module] or f"{module}.{alias.name}" in modules]
    staying = [alias for alias in node.names if alias not in moving]
    if moving:
        yield f"from funcmcp.compat.{module} import {_listed(moving)}"
    if staying:
        yield f"from {module} import {_listed(staying)}"


def _plain_import(node: ast.Import, package: str, modules: Modules) -> Iterator[str]:
    """Yield the statements for ``import module``; none if it stays."""
    if not any(alias.name in modules and alias.name.partition(".")[0] == package for alias in node.names):
        return
    for alias in node.names:
        if alias.name not in modules:
            yield f"import {_listed([alias])}"
        elif alias.asname:
            yield f"import funcmcp.compat.{alias.name} as {alias.asname}"
        else:
            top = alias.name.partition(".")[0]
            yield f"import funcmcp.compat.{alias.name}"
            yield f"import funcmcp.compat.{top} as {top}"


def _moved_path(path: str, modules: Modules) -> str:
    """Return the path of a name as text, as `unittest.mock.patch` takes it, in `funcmcp.compat` if it has the name."""
    parts = path.split(".")
    for depth in range(len(parts) - 1, 0, -1):
        module = ".".join(parts[:depth])
        if module in modules:
            return f"funcmcp.compat.{path}" if parts[depth] in modules[module] else path
    return path


def _listed(aliases: list[ast.alias]) -> str:
    return ", ".join(f"{alias.name} as {alias.asname}" if alias.asname else alias.name for alias in aliases)
