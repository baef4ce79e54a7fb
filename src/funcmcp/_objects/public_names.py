"""Public modules load their names when they are first used.

A public module lists its names three times: for type checkers under ``if TYPE_CHECKING``, for readers in ``__all__``,
and here with the private module that defines each. ``tests/architecture/test_public_names.py`` compares the three.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_Public = TypeVar("_Public")


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


def public(module: str) -> Callable[[_Public], _Public]:
    """Return a decorator for a class or function that users import from a public module.

    Its ``__module__`` becomes the public module, so that tracebacks, logs and pickles name what users import. Overloads
    of a function need it as well, below `overload`: `typing.get_overloads` finds them by ``__module__``.

    Args:
        module: The name of the public module. For a name of two, the shorter one.
    """

    def publish(value: _Public) -> _Public:
        value.__module__ = module
        return value

    return publish
