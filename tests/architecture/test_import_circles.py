"""No module imports itself by way of others, imports for type checkers included."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.architecture.trees import tree_of

SOURCE = Path(__file__).parents[2] / "src"


def name_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_by(path: Path, modules: set[str]) -> set[str]:
    """Return the modules of the package that a file imports anywhere, also in functions and for type checkers."""
    imported: set[str] = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                imported.add(submodule if submodule in modules else node.module)
        elif isinstance(node, ast.Import):
            imported.update(alias.name for alias in node.names)
    return imported & modules


def circles_of(graph: dict[str, set[str]]) -> list[str]:
    """Return the modules that remain when those that import no remaining module are removed again and again."""
    remaining = {module: imports - {module} for module, imports in graph.items()}
    while True:
        leaves = [module for module, imports in remaining.items() if not imports & remaining.keys()]
        if not leaves:
            return sorted(remaining)
        for module in leaves:
            del remaining[module]


def test_no_module_imports_itself_by_way_of_others() -> None:
    files = {name_of(path): path for path in SOURCE.rglob("*.py") if "templates" not in path.parts}
    graph = {module: imported_by(path, set(files)) for module, path in files.items()}
    circular = circles_of(graph)
    assert not circular, "\n".join(f"{module} imports {sorted(graph[module])}" for module in circular)


def test_a_circle_is_found() -> None:
    assert circles_of({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["a", "b", "c"]
    assert circles_of({"a": {"b"}, "b": {"d"}, "d": set()}) == []
