"""Public modules load their names when they are first used.

A public module lists its names three times: for type checkers under ``if TYPE_CHECKING``, for readers in ``__all__``,
and here with the private module that defines each. ``tests/architecture/test_public_names.py`` compares the three.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def lazy_names(module: str, homes: Mapping[str, Sequence[str]]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and the ``__dir__`` of a public module.

    Args:
        module: The name of the public module.
        homes: The public names by the module below ``funcmcp`` that defines them. A public submodule is its own home.
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def load(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home = import_module(f"funcmcp.{home_of[name]}")
        value = home if home_of[name] == name else getattr(home, name)
        setattr(sys.modules[module], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[module]), *home_of})

    return load, names
