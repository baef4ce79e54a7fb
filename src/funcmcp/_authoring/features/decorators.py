"""Decorators of methods, whose marks `mcp.add` turns into features.

A mark is a function that creates the feature from the method, the services and the class.
"""

from __future__ import annotations

from functools import partialmethod
from typing import TYPE_CHECKING, Any

from funcmcp._authoring.signatures.partials import unbound
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._authoring.calling.services import Services

_MARK = "__funcmcp_feature__"


def decorate(function: Any, options: dict[str, Any], make: Callable[[dict[str, Any]], Callable[..., Any]]) -> Any:
    """Mark a function, for a decorator that may be used with or without parentheses.

    Args:
        function: The function. In a decorator with parentheses it is the name, or None.
        options: The keyword options.
        make: Returns, for the options, the function that creates the feature.
    """
    if callable(function) or isinstance(function, classmethod | partialmethod):
        return mark(function, make(options))
    maker = make(with_name(function, options))
    return lambda decorated: mark(decorated, maker)


def with_name(name: str | None, options: dict[str, Any]) -> dict[str, Any]:
    """Return options with the name that a decorator got by position, if any."""
    if name is None:
        return options
    if not isinstance(name, str):
        raise RegistrationError(
            f"A decorator takes a function or a name, not an object of the type {type(name).__name__}."
        )
    if "name" in options:
        raise RegistrationError("Pass the name once: by position or as name=.")
    return {**options, "name": name}


def mark(function: Any, maker: Callable[..., Any]) -> Any:
    """Mark a function with the function that creates its feature, and return it."""
    setattr(getattr(function, "__func__", function), _MARK, maker)
    return function


def features_of(owner: object, services: Services) -> list[Any]:
    """Return features of the marked methods of a class or an object: base classes first, in the order of definition.

    A class is constructed for each call, and its constructor's parameters are injected. An object serves all calls.
    """
    cls = owner if isinstance(owner, type) else type(owner)
    members: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        members.update(vars(base))
    features = []
    for name, member in members.items():
        maker = getattr(getattr(member, "__func__", member), _MARK, None)
        if maker is None:
            continue
        inner = member.func if isinstance(member, partialmethod) else member
        if not isinstance(owner, type) or isinstance(inner, staticmethod | classmethod):
            features.append(maker(getattr(owner, name), services=services))
        else:
            function = unbound(member) if isinstance(member, partialmethod) else member
            features.append(maker(function, services=services, owner=owner))
    return features
