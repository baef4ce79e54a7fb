"""FastMCP's mixin for objects whose methods are tools, resources and prompts."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from funcmcp._compat.components import Prompt, Resource, ResourceTemplate, Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MARKS = {kind: f"_mcp_{kind}_registration" for kind in ("tool", "resource", "prompt")}
_OF_ALL = {"name", "version", "title", "description", "icons", "tags", "meta", "auth", "task"}
_OPTIONS = {
    "tool": _OF_ALL | {"annotations", "exclude_args", "output_schema", "serializer", "timeout", "run_in_thread"},
    "resource": _OF_ALL | {"annotations", "mime_type", "app"},
    "prompt": _OF_ALL,
}
"""The options of each decorator, beside ``enabled``."""


def mcp_tool(name: str | None = None, *, enabled: bool | None = None, **options: Any) -> Callable[[Any], Any]:
    """Return a decorator for a method that `MCPMixin` registers as a tool.

    Args:
        name: The name of the tool; by default, that of the method.
        enabled: Whether the tool is registered.
        options: Options of ``Tool.from_function``.
    """
    return _marking("tool", options, name=name, enabled=enabled)


def mcp_resource(
    uri: str, *, name: str | None = None, enabled: bool | None = None, **options: Any
) -> Callable[[Any], Any]:
    """Return a decorator for a method that `MCPMixin` registers as a resource, or as a template.

    Args:
        uri: The URI; a template of URIs if it has variables.
        name: The name of the resource; by default, that of the method.
        enabled: Whether the resource is registered.
        options: Options of ``Resource.from_function``.
    """
    return _marking("resource", options, name=name, enabled=enabled, uri=uri)


def mcp_prompt(name: str | None = None, *, enabled: bool | None = None, **options: Any) -> Callable[[Any], Any]:
    """Return a decorator for a method that `MCPMixin` registers as a prompt.

    Args:
        name: The name of the prompt; by default, that of the method.
        enabled: Whether the prompt is registered.
        options: Options of ``Prompt.from_function``.
    """
    return _marking("prompt", options, name=name, enabled=enabled)


def _marking(
    kind: str, options: dict[str, Any], *, name: str | None, enabled: bool | None, **required: str
) -> Callable[[Any], Any]:
    """Return a decorator that stores the options of a method on it.

    Raises:
        TypeError: An option does not exist.
    """
    unknown = sorted(options.keys() - _OPTIONS[kind])
    if unknown:
        raise TypeError(
            f"mcp_{kind}() got unexpected keyword argument(s): {unknown}. Valid options: {sorted(_OPTIONS[kind])}"
        )

    def mark(function: Any) -> Any:
        registration = {**required, "name": name or function.__name__, **options}
        setattr(function, _MARKS[kind], (enabled is not False, registration))
        return function

    return mark


class MCPMixin:
    """A base class for objects that register their marked methods with a server."""

    def _registrations(self, kind: str) -> Iterator[tuple[Any, dict[str, Any]]]:
        """Yield the methods of one kind that are enabled, with their options. No attribute is read for it."""
        for name in dir(self):
            attribute = inspect.getattr_static(self, name, None)
            mark = getattr(getattr(attribute, "__func__", attribute), _MARKS[kind], None)
            if mark is not None and mark[0]:
                yield getattr(self, name), dict(mark[1])

    def register_tools(self, mcp_server: Any, prefix: str | None = None, separator: str = "_") -> None:
        """Register the methods with `mcp_tool`.

        Args:
            mcp_server: The server.
            prefix: What each name begins with.
            separator: What stands between the prefix and the name.
        """
        for method, options in self._registrations("tool"):
            options["name"] = _prefixed(options["name"], prefix, separator)
            mcp_server.add_tool(Tool.from_function(method, **options))

    def register_resources(self, mcp_server: Any, prefix: str | None = None, separator: str = "+") -> None:
        """Register the methods with `mcp_resource`.

        Args:
            mcp_server: The server.
            prefix: What each name and each URI begins with.
            separator: What stands between the prefix and the name or the URI.
        """
        for method, options in self._registrations("resource"):
            options["name"] = _prefixed(options["name"], prefix, separator)
            uri = _prefixed(options.pop("uri"), prefix, separator)
            if "{" in uri and "}" in uri:
                mcp_server.add_template(ResourceTemplate.from_function(method, uri_template=uri, **options))
            else:
                mcp_server.add_resource(Resource.from_function(method, uri=uri, **options))

    def register_prompts(self, mcp_server: Any, prefix: str | None = None, separator: str = "_") -> None:
        """Register the methods with `mcp_prompt`.

        Args:
            mcp_server: The server.
            prefix: What each name begins with.
            separator: What stands between the prefix and the name.
        """
        for method, options in self._registrations("prompt"):
            options["name"] = _prefixed(options["name"], prefix, separator)
            mcp_server.add_prompt(Prompt.from_function(method, **options))

    def register_all(
        self,
        mcp_server: Any,
        prefix: str | None = None,
        tool_separator: str = "_",
        resource_separator: str = "+",
        prompt_separator: str = "_",
    ) -> None:
        """Register all marked methods.

        Args:
            mcp_server: The server.
            prefix: What each name and each URI begins with.
            tool_separator: What stands between the prefix and the name of a tool.
            resource_separator: The same for names and URIs of resources.
            prompt_separator: The same for names of prompts.
        """
        self.register_tools(mcp_server, prefix, tool_separator)
        self.register_resources(mcp_server, prefix, resource_separator)
        self.register_prompts(mcp_server, prefix, prompt_separator)


def _prefixed(name: str, prefix: str | None, separator: str) -> str:
    return f"{prefix}{separator}{name}" if prefix else name
