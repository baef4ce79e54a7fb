"""The syntax trees of the source, which several modules of tests read."""

from __future__ import annotations

import ast
import functools
import gc
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
_COMPAT = SOURCE / "funcmcp" / "compat"


def is_written_by_a_script(path: Path) -> bool:
    """Return whether scripts/compat_trees.py writes a module. Its path is then that of a module of the originals."""
    return path.parent != _COMPAT and path.is_relative_to(_COMPAT) and path != _COMPAT / "mcp" / "__init__.py"


@functools.cache
def trees() -> dict[Path, ast.Module]:
    """Return the syntax trees of all modules of the source.

    Without garbage collection: it would take three quarters of the time, and the trees stay.
    """
    gc.disable()
    try:
        return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py"))}
    finally:
        gc.freeze()
        gc.enable()


def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a module of the source."""
    return trees()[path]
