"""Decorators that mark functions as tools, resources and prompts without a server: ``from fastmcp.tools import tool``.

The function stays as it is. A `FileSystemProvider`, ``mcp.add_tool`` and so on make a component of a marked function.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field, fields
from types import MethodType
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar, cast, overload

from funcmcp._compat.components import Component, Prompt, Resource, ResourceTemplate, Tool
from funcmcp._compat.security import INHERIT_SECURITY
from funcmcp._objects.mappings import without, without_none
from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Self

F = TypeVar("F", bound="Callable[..., Any]")

_MARK = "__fastmcp__"
_Kind: TypeAlias = type[Component]


@dataclass(frozen=True, kw_only=True)
class Mark:
    """What a decorator says about a function: an option has its default if it was not chosen.

    Attributes:
        name: The name; None for the function's.
        others: Options that FastMCP's class of this name does not have.
    """

    type: ClassVar[str]
    kind: ClassVar[_Kind]

    name: str | None = None
    version: str | int | None = None
    title: str | None = None
    description: str | None = None
    icons: Any = None
    tags: set[str] | None = None
    meta: dict[str, Any] | None = None
    auth: Any = None
    enabled: bool = True
    others: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str | None, options: Mapping[str, Any], **required: Any) -> Self:
        """Return the mark for the options of a decorator."""
        names = {item.name for item in fields(cls)}
        known = {key: value for key, value in options.items() if key in names}
        return cls(name=name, others=without(options, *names), **known, **required)

    @property
    def options(self) -> dict[str, Any]:
        """The options that were chosen, without the name."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        chosen = {item.name: values[item.name] for item in fields(self) if values[item.name] != item.default}
        return {**without(chosen, "name", "uri", "others"), **self.others}

    def component(self, function: Callable[..., Any]) -> Any:
        """Return the component of the function."""
        return self.kind(function, self.name, **self.options)


@public("funcmcp.compat.fastmcp.tools.function_tool")
@dataclass(frozen=True, kw_only=True)
class ToolMeta(Mark):
    """What the decorator `tool` says about a function: its attribute ``__fastmcp__``."""

    type: ClassVar[str] = "tool"
    kind: ClassVar[_Kind] = Tool

    output_schema: Any = None
    annotations: Any = None
    app: Any = None
    task: Any = None
    timeout: float | None = None
    run_in_thread: bool = True


@public("funcmcp.compat.fastmcp.prompts.function_prompt")
@dataclass(frozen=True, kw_only=True)
class PromptMeta(Mark):
    """What the decorator `prompt` says about a function: its attribute ``__fastmcp__``."""

    type: ClassVar[str] = "prompt"
    kind: ClassVar[_Kind] = Prompt


@public("funcmcp.compat.fastmcp.resources.function_resource")
@dataclass(frozen=True, kw_only=True)
class ResourceMeta(Mark):
    """What the decorator `resource` says about a function: its attribute ``__fastmcp__``."""

    type: ClassVar[str] = "resource"
    kind: ClassVar[_Kind] = Resource

    uri: str
    mime_type: str | None = None
    annotations: Any = None
    security: Any = INHERIT_SECURITY

    def component(self, function: Callable[..., Any]) -> Any:
        """Return the resource of the function, or its template if the URI has variables."""
        kind = ResourceTemplate if "{" in self.uri else Resource
        return kind.from_function(function, uri=self.uri, name=self.name, **self.options)


@public("funcmcp.compat.fastmcp.decorators")
def get_fastmcp_meta(fn: Any) -> Mark | None:
    """Return what a decorator said about a function, its method or the function in it; None if it has none."""
    if hasattr(fn, _MARK):
        return cast("Mark", getattr(fn, _MARK))
    return getattr(inspect.unwrap(fn), _MARK, None) if callable(fn) else None


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
    return _decorated(ToolMeta, name_or_fn, options)


@overload
def prompt(name_or_fn: F, /, **options: Any) -> F: ...


@overload
def prompt(name_or_fn: str | None = None, /, **options: Any) -> Callable[[F], F]: ...


@public("funcmcp.compat")
def prompt(name_or_fn: Any = None, /, **options: Any) -> Any:
    """Mark a function as a prompt, as `tool` does."""
    return _decorated(PromptMeta, name_or_fn, options)


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
        return _marked(function, ResourceMeta.of(name, without_none(options), uri=uri))

    return decorate


def _decorated(kind: type[Mark], name_or_fn: Any, options: dict[str, Any]) -> Any:
    check_not_classmethod(name_or_fn, kind.type)
    name = options.pop("name", None)
    if isinstance(name_or_fn, str):
        if name is not None:
            raise TypeError("Cannot specify name both as first argument and keyword")
        name, name_or_fn = name_or_fn, None
    mark = kind.of(name, without_none(options))
    if name_or_fn is None:
        return lambda function: _marked(function, mark)
    if not inspect.isroutine(name_or_fn):
        raise TypeError(f"Invalid first argument: {type(name_or_fn)}")
    return _marked(name_or_fn, mark)


def _marked(function: F, mark: Mark) -> F:
    check_not_classmethod(function, mark.type)
    target = function.__func__ if isinstance(function, staticmethod | MethodType) else function
    setattr(target, _MARK, mark)
    return function


def check_not_classmethod(function: Any, decorator: str) -> None:
    """Raise TypeError for a class method, which has no class yet when it is decorated."""
    if isinstance(function, classmethod):
        raise TypeError(f"To decorate a classmethod, use @classmethod above @{decorator}.")
