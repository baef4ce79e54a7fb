"""Marks on methods: what `mcp.add` makes features of.

A mark is a function that makes the feature, once the method, the services and the owner are known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp.server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp.authoring.calling.services import Services

_MARK = "__funcmcp_feature__"


def decorate(function: Any, options: dict[str, Any], make: Callable[[dict[str, Any]], Callable[..., Any]]) -> Any:
    """Do what a marker does that is used with or without parentheses, with a name by position or as an option.

    Args:
        function: the function, or the name, or None.
        options: the keyword options.
        make: returns, for the options, what makes the feature of a function.
    """
    if callable(function) or isinstance(function, classmethod):
        return mark(function, make(options))
    maker = make(with_name(function, options))
    return lambda decorated: mark(decorated, maker)


def with_name(name: str | None, options: dict[str, Any]) -> dict[str, Any]:
    """Return options with a name that was given by position."""
    if name is None:
        return options
    if not isinstance(name, str):
        raise RegistrationError(
            f"A decorator needs a function or a name, not an object of the type {type(name).__name__}."
        )
    if "name" in options:
        raise RegistrationError("Give the name once: by position or as name=.")
    return {**options, "name": name}


def mark(function: Any, maker: Callable[..., Any]) -> Any:
    """Mark a function with what makes a feature of it."""
    setattr(getattr(function, "__func__", function), _MARK, maker)
    return function


def features_of(owner: object, services: Services) -> list[Any]:
    """Make features of the marked methods of a class or an object, base classes first, in the order of definition.

    A class is constructed for each call, its constructor's parameters injected; an object is used as it is.
    """
    cls = owner if isinstance(owner, type) else type(owner)
    members: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        members.update(vars(base))
    made = []
    for name, member in members.items():
        maker = getattr(getattr(member, "__func__", member), _MARK, None)
        if maker is None:
            continue
        if isinstance(owner, type) and not isinstance(member, staticmethod | classmethod):
            made.append(maker(member, services=services, owner=owner))
        else:
            made.append(maker(getattr(owner, name), services=services))
    return made
