"""The tests of a peer's release, with the names of funcmcp in place of the peer's."""

from __future__ import annotations

import ast
import shutil
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / ".servers" / "peers" / "sources"


@dataclass(frozen=True, slots=True)
class Suite:
    """The tests of one peer.

    Attributes:
        package: The peer's distribution, and the name of its package.
        asyncio_mode: Which async tests pytest-asyncio runs, as the peer has it: ``"auto"`` or ``"strict"``.
        names: The folders and modules that are run.
        left_out: The folders, modules and tests that do not apply, with their reasons.
    """

    package: str
    asyncio_mode: str
    names: list[str]
    left_out: dict[str, str]

    @property
    def tests(self) -> Path:
        """The folder with the tests in the release."""
        (folder,) = SOURCES.glob(f"{self.package}-*/tests")
        return folder

    def reason_for(self, test: str) -> str | None:
        """Return why a test does not apply, None if it does."""
        for name, reason in self.left_out.items():
            if test == name or test.startswith((f"{name}/", f"{name}::", f"{name}[")):
                return reason
        return None


def suites() -> dict[str, Suite]:
    """Return the suites by name."""
    tables = tomllib.loads((HERE / "suites.toml").read_text("utf-8"))
    return {
        suite: Suite(
            table["package"],
            table["asyncio_mode"],
            table["names"],
            {name: group["reason"] for group in table.get("left_out", []) for name in group["names"]},
        )
        for suite, table in tables.items()
    }


def prepare(suite: Suite, folder: Path, compat_names: Mapping[str, str]) -> None:
    """Write the tests of a suite into a folder, with `funcmcp.compat` in place of the peer for the names that it has.

    Args:
        suite: The suite.
        folder: The folder, which is replaced.
        compat_names: The names of `funcmcp.compat` with their modules; none for the tests as they are.
    """
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(suite.tests, folder / "tests", symlinks=True)
    for data in ("docs", "examples", "skills"):  # which some tests read
        if (suite.tests.parent / data).is_dir():
            (folder / data).symlink_to(suite.tests.parent / data)
    if (suite.tests.parent / "docs_src").is_dir():  # the programs of the documentation
        shutil.copytree(suite.tests.parent / "docs_src", folder / "docs_src")
    if compat_names:
        for path in (*(folder / "tests").rglob("*.py"), *(folder / "docs_src").rglob("*.py")):
            text = path.read_text("utf-8")
            path.write_text(replaced(text, suite.package, compat_names), "utf-8")


def replaced(text: str, package: str, compat_names: Mapping[str, str]) -> str:
    """Return a module whose imports from a package are from `funcmcp.compat`, as far as that has the names.

    Args:
        text: The module.
        package: The package.
        compat_names: The names, with the module that has them.
    """
    lines = text.splitlines(keepends=True)
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    for node in sorted(imports, key=lambda node: node.lineno, reverse=True):
        module = node.module or ""
        moving = [alias for alias in node.names if alias.name in compat_names]
        if node.level or not _has_server_names(module, package) or not moving:
            continue
        staying = [alias for alias in node.names if alias not in moving]
        statements = [f"from {compat_names[alias.name]} import {_listed([alias])}" for alias in moving]
        if staying:
            statements.append(f"from {module} import {_listed(staying)}")
        lines[node.lineno - 1 : node.end_lineno] = [f"{' ' * node.col_offset}{'; '.join(statements)}\n"]
    return "".join(lines)


def _has_server_names(module: str, package: str) -> bool:
    """Return whether a module of a peer has names that `funcmcp.compat` replaces, rather than those of its client."""
    if module.partition(".")[0] != package:
        return False
    return not module.startswith((f"{package}.client", "mcp.types")) and module != "mcp"


def _listed(aliases: list[ast.alias]) -> str:
    return ", ".join(f"{alias.name} as {alias.asname}" if alias.asname else alias.name for alias in aliases)
