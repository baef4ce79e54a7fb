"""Attributes that an author's own class of components declares, as models of pydantic have them in FastMCP."""

from __future__ import annotations

import inspect
from copy import deepcopy
from typing import Any


def set_fields(component: Any, base: type, options: dict[str, Any]) -> dict[str, Any]:
    """Set the attributes that the classes below *base* declare, such as ``operation: str``; return the other options.

    Args:
        component: The component.
        base: The last class that is not the author's.
        options: The arguments of the constructor by name.

    Raises:
        TypeError: There is no value for an attribute without a default.
    """
    remaining = dict(options)
    for name in _declared(type(component), base):
        if name in remaining:
            setattr(component, name, remaining.pop(name))
        elif hasattr(type(component), name):
            setattr(component, name, deepcopy(getattr(type(component), name)))
        else:
            raise TypeError(f"{type(component).__name__} needs {name}=.")
    return remaining


def _declared(cls: type, base: type) -> list[str]:
    """Return the names of the attributes, those of classes further up first."""
    names: dict[str, None] = {}
    for owner in reversed(cls.__mro__):
        if not issubclass(owner, base) or owner.__module__.startswith("funcmcp."):
            continue
        for name, hint in inspect.get_annotations(owner).items():
            if not (name.startswith("_") or hasattr(base, name) or "ClassVar" in str(hint) or name == "model_config"):
                names[name] = None
    return list(names)
