"""Write the trees of modules `funcmcp.compat.fastmcp`, `funcmcp.compat.mcp` and `funcmcp.compat.mcp_types`.

    .venv/bin/python scripts/compat_trees.py

There is a module for each one of FastMCP and of the official SDK, with the names that `funcmcp.compat` has for it, so
that a server runs after a change of the top name of its imports. The modules of the originals are in
``src/funcmcp_cli/migrate/original_names.json``. `tests/compat/test_module_trees.py` compares the files with what this
writes.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import funcmcp.compat
import funcmcp.compat.mcp
from funcmcp._compat import sdk_types
from funcmcp_cli.migrate.compat_names import home_of, is_types, original_names
from funcmcp_cli.migrate.sentences import OTHER_MEANINGS

ROOT = "funcmcp.compat"
FOLDER = Path(__file__).parents[1] / "src" / "funcmcp" / "compat"
_TYPES = "funcmcp._compat.sdk_types"
BY_HAND = {"mcp"}
"""Modules of the trees that this script does not write."""

EXTRAS: dict[str, dict[str, list[str]]] = {}
"""Names that only a module of a tree has, by the module and by the module of funcmcp that defines them."""


def trees() -> dict[Path, str]:
    """Return the text of each module by its path below the folder of `funcmcp.compat`."""
    modules = _modules()
    packages = {module.rpartition(".")[0] for module in modules}
    return {
        _path(module, is_package=module in packages): _text(module, modules)
        for module in sorted(modules)
        if module not in BY_HAND
    }


def _modules() -> dict[str, dict[str, list[str]]]:
    """Return the modules of the originals with the packages above them: their names by the modules that have them."""
    modules: dict[str, dict[str, list[str]]] = {}
    for module in {*original_names()["modules"], *EXTRAS}:
        parts = module.split(".")
        for name in (".".join(parts[:depth]) for depth in range(1, len(parts) + 1)):
            modules[name] = _homes(name)
    return modules


def _homes(module: str) -> dict[str, list[str]]:
    """Return the names that a module has in its tree, by the modules that have them."""
    homes: dict[str, list[str]] = defaultdict(list)
    for home, names in EXTRAS.get(module, {}).items():
        homes[home] += names
    others = {name for names in homes.values() for name in names}
    for name in filter(str.isidentifier, original_names()["modules"].get(module, {})):
        home = _home(module, name)
        if home and name not in others:
            homes[home].append(name)
    return {home: sorted(names) for home, names in sorted(homes.items())}


def _home(module: str, name: str) -> str | None:
    """Return the module of funcmcp that has a name of a module of the originals, None if there is none."""
    home = home_of(module, name)
    if is_types(home):
        return _TYPES if hasattr(sdk_types, name) and not name.startswith("_") else None
    if any(home == other or home.startswith(f"{other}.") for other in OTHER_MEANINGS):
        return None
    if home.startswith("mcp.server.") and name in funcmcp.compat.mcp.__all__:
        return "funcmcp.compat.mcp"
    return ROOT if name in funcmcp.compat.__all__ else None


def _path(module: str, *, is_package: bool) -> Path:
    path = Path(*module.split("."))
    return path / "__init__.py" if is_package else path.with_suffix(".py")


def _text(module: str, modules: dict[str, dict[str, list[str]]]) -> str:
    """Return the text of a module of a tree."""
    homes = modules[module]
    below = {name.rpartition(".")[2] for name in modules if name.rpartition(".")[0] == module}
    names = {name for listed in homes.values() for name in listed}
    imports = [f"    from {home} import {name} as {name}" for home, listed in homes.items() for name in listed]
    shadowing = below & {*names, *original_names()["modules"].get(module, {})}
    imports += [f"    from {ROOT}.{module} import {name} as {name}" for name in sorted(below - shadowing)]
    typed = ["if TYPE_CHECKING:", *imports, "else:"] if imports else ["if not TYPE_CHECKING:"]
    arguments = ", ".join(["__name__", _listed(homes), *([f"shadowing={sorted(shadowing)}"] if shadowing else [])])
    load = f"__getattr__, __dir__, __all__ = names_of({arguments})".replace("'", '"')
    lines = [
        f'"""Names of `{module}` that `{ROOT}` has. Written by scripts/compat_trees.py."""',
        "",
        "from typing import TYPE_CHECKING",
        "",
        "from funcmcp._compat.module_trees import names_of",
        "",
        *typed,
        f"    {load}",
    ]
    return "\n".join(lines) + "\n"


def _listed(homes: dict[str, list[str]]) -> str:
    """Return a table of names by modules as an expression, a line for each module."""
    if not homes:
        return "{}"
    rows: list[str] = []
    for home, names in homes.items():
        rows += [f"        {home!r}: [", *(f"            {name!r}," for name in names), "        ],"]
    return "\n".join(["{", *rows, "    }"])


def main() -> None:
    """Write the modules, and delete those that are no longer in the trees."""
    texts = trees()
    for path, text in texts.items():
        file = FOLDER / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    for file in FOLDER.rglob("*.py"):
        path = file.relative_to(FOLDER)
        if len(path.parts) > 1 and path not in texts and path != Path("mcp", "__init__.py"):
            file.unlink()


if __name__ == "__main__":
    main()
