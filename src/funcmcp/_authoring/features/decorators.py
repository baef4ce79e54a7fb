"""Kinds of features, and decorators of methods, whose marks `mcp.add` turns into features.

A mark is a function that creates the feature from the method, the services and the class.
"""

from __future__ import annotations

import re
from functools import partial, partialmethod
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._authoring.features.options import checked_options
from funcmcp._authoring.signatures.partials import unbound
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from funcmcp._authoring.calling.services import Services

_MARK = "__funcmcp_feature__"
_CELL = re.compile(r"<ipython-input-|<command-|ipykernel|__marimo__cell")
"""A part of the names that IPython, Databricks and marimo give to the source of a cell."""


class FeatureKind(NamedTuple):
    """How functions become features of one kind: a row for each of `tool`, `resource`, `resource_lister` and `prompt`.

    Attributes:
        make: Creates a feature from a function, the options, the services and the class of a method.
        options: The TypedDict that declares the options.
    """

    make: Callable[..., Any]
    options: type[Any]

    def maker(self, options: Mapping[str, Any], **place: str) -> Callable[..., Any]:
        """Return the function that creates a feature with these options.

        Args:
            options: The options.
            place: The URI of a resource or the scheme of a lister.

        Raises:
            RegistrationError: An option does not exist.
        """
        return partial(self.make, options=checked_options(options, self.options), **place)


def decorate(function: Any, options: dict[str, Any], kind: FeatureKind) -> Any:
    """Mark a function, for a decorator that may be used with or without parentheses.

    Args:
        function: The function. In a decorator with parentheses it is the name, or None.
        options: The keyword options.
        kind: The kind of the feature.
    """
    if callable(function) or isinstance(function, classmethod | partialmethod):
        return mark(function, kind.maker(options))
    maker = kind.maker(with_name(function, options))
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


def is_of_cell(function: Any) -> bool:
    """Return whether a function is defined in a cell of a notebook, which may be run again."""
    code = getattr(function, "__code__", None)
    return code is not None and _CELL.search(code.co_filename) is not None


def mark(function: Any, maker: Callable[..., Any]) -> Any:
    """Mark a function with the function that creates its feature, and return it."""
    setattr(getattr(function, "__func__", function), _MARK, maker)
    return function


def features_of(owner: object, services: Services) -> list[Any]:
    """Return features of the marked methods of a class or an object: base classes first, in the order of definition.

    A class is constructed for each call, and its constructor's parameters are injected. An object serves all calls. Of
    a module, they are those of its functions.
    """
    if isinstance(owner, ModuleType):
        return features_of_module(owner, services)
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


def features_of_module(module: ModuleType, services: Services) -> list[Any]:
    """Return features of the marked functions of a module, in the order of their definition."""
    features = []
    for value in tuple(vars(module).values()):
        maker = getattr(value, _MARK, None)
        if maker is not None and getattr(value, "__module__", None) == module.__name__:
            features.append(maker(value, services=services))
    return features
