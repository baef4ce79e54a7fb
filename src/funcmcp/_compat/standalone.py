"""Decorators that mark functions as tools, resources and prompts without a server: ``from fastmcp.tools import tool``.

The function stays as it is. A `FileSystemProvider`, ``mcp.add_tool`` and so on make a component of a marked function.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from types import MethodType
from typing import TYPE_CHECKING, Any, TypeVar, overload

from funcmcp._compat.components import Component, Prompt, Resource, ResourceTemplate, Tool
from funcmcp._objects.mappings import without_none
from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")

_MARK = "__fastmcp__"
_OPTIONS = frozenset(
    {
        *("annotations", "auth", "description", "exclude_args", "icons", "meta", "mime_type", "output_schema"),
        *("security", "tags", "task", "timeout", "title", "version"),
    }
)
"""Options of decorators that are attributes of the mark, as in FastMCP."""


@dataclass(frozen=True)
class Mark:
    """What a decorator says about a function.

    Attributes:
        kind: The class of the component.
        name: The name; None for the function's.
        options: The options of the decorator.
        uri: The URI of a resource or a template; None for tools and prompts.
    """

    kind: type[Component]
    name: str | None
    options: dict[str, Any]
    uri: str | None = None

    @property
    def type(self) -> str:
        """The kind of the component: ``"tool"``, ``"prompt"`` or ``"resource"``."""
        return self.kind.kind

    def component(self, function: Callable[..., Any]) -> Any:
        """Return the component of the function."""
        if self.uri is None:
            return self.kind(function, self.name, **self.options)
        kind = ResourceTemplate if "{" in self.uri else Resource
        return kind.from_function(function, uri=self.uri, name=self.name, **self.options)

    def __getattr__(self, name: str) -> Any:
        """Return an option of the decorator; None if it was not chosen."""
        if name not in _OPTIONS:
            raise AttributeError(f"Mark has no attribute {name!r}.", name=name)
        return self.options.get(name)


def mark_of(function: Any) -> Mark | None:
    """Return what a decorator said about a function; None if it has none."""
    mark = getattr(function, _MARK, None)
    return mark if isinstance(mark, Mark) else None


def component_of(value: Any) -> Component | None:
    """Return a component, or the one of a marked function; None for another value."""
    if isinstance(value, Component):
        return value
    mark = mark_of(value)
    return None if mark is None else mark.component(value)


@overload
def tool(name_or_fn: F, /, **options: Any) -> F: ...


@overload
def tool(name_or_fn: str | None = None, /, **options: Any) -> Callable[[F], F]: ...


@public("funcmcp.compat")
def tool(name_or_fn: Any = None, /, **options: Any) -> Any:
    """Mark a function as a tool: ``@tool``, ``@tool("name")`` or ``@tool(title="Title")``.

    Args:
        name_or_fn: The function or the name.
        options: The options of ``mcp.tool``.

    Returns:
        The function, or a decorator.

    Raises:
        TypeError: The decorator is above ``@classmethod``, or the name is given twice.
    """
    return _decorated(Tool, name_or_fn, options)


@overload
def prompt(name_or_fn: F, /, **options: Any) -> F: ...


@overload
def prompt(name_or_fn: str | None = None, /, **options: Any) -> Callable[[F], F]: ...


@public("funcmcp.compat")
def prompt(name_or_fn: Any = None, /, **options: Any) -> Any:
    """Mark a function as a prompt, as `tool` does."""
    return _decorated(Prompt, name_or_fn, options)


@public("funcmcp.compat")
def resource(uri: str, **options: Any) -> Callable[[F], F]:
    """Return a decorator that marks a function as a resource, or as a template if the URI has variables.

    Args:
        uri: The URI.
        options: The options of ``mcp.resource``.

    Raises:
        TypeError: The decorator has no URI, or is above ``@classmethod``.
    """
    if not isinstance(uri, str):
        raise TypeError(
            "The @resource decorator was used incorrectly. It requires a URI as the first argument. "
            'Use @resource("uri") instead of @resource'
        )
    name = options.pop("name", None)

    def decorate(function: F) -> F:
        return _marked(function, Mark(Resource, name, without_none(options), uri))

    return decorate


def _decorated(kind: type[Component], name_or_fn: Any, options: dict[str, Any]) -> Any:
    check_not_classmethod(name_or_fn, kind.kind)
    name = options.pop("name", None)
    if isinstance(name_or_fn, str):
        if name is not None:
            raise TypeError("Cannot specify name both as first argument and keyword")
        name, name_or_fn = name_or_fn, None
    mark = Mark(kind, name, without_none(options))
    if name_or_fn is None:
        return lambda function: _marked(function, mark)
    if not inspect.isroutine(name_or_fn):
        raise TypeError(f"Invalid first argument: {type(name_or_fn)}")
    return _marked(name_or_fn, mark)


def _marked(function: F, mark: Mark) -> F:
    check_not_classmethod(function, mark.kind.kind)
    target = function.__func__ if isinstance(function, staticmethod | MethodType) else function
    setattr(target, _MARK, mark)
    return function


def check_not_classmethod(function: Any, decorator: str) -> None:
    """Raise TypeError for a class method, which has no class yet when it is decorated."""
    if isinstance(function, classmethod):
        raise TypeError(f"To decorate a classmethod, use @classmethod above @{decorator}.")
