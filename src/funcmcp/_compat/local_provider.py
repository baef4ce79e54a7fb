"""`LocalProvider`: components that are registered with decorators, for one or several servers.

How it works: a `Shelf` is a server whose decorators and methods register components, but which never serves. It hands
each component to its provider, which keeps it by FastMCP's key. It is loaded when a provider is made, because servers
know this module.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, overload

from funcmcp._compat.components import Resource, ResourceTemplate
from funcmcp._compat.provider import Provider, key_of
from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

F = TypeVar("F", bound="Callable[..., Any]")

_logger = logging.getLogger("funcmcp.compat")


@public("funcmcp.compat")
class LocalProvider(Provider):
    """Components that are registered with decorators, as those of a server are.

    Args:
        on_duplicate: What happens to a second component of one name: ``"error"``, ``"warn"``, ``"replace"`` or
            ``"ignore"``.

    Example:
        ```python
        provider = LocalProvider()

        @provider.tool
        def greet(name: str) -> str:
            return f"Hello, {name}!"

        mcp = FastMCP("Hello", providers=[provider])
        ```
    """

    def __init__(self, on_duplicate: str = "error") -> None:
        super().__init__()
        self._on_duplicate = on_duplicate
        self._components: dict[str, Any] = {}
        self._registrar: Any = import_module("funcmcp._compat.shelf").Shelf(self.add_component)

    def add_component(self, component: Any) -> Any:
        """Keep a component; return the existing one if that stays.

        Raises:
            ValueError: There is one of the same name, or one with a version and one without would have one name.
        """
        key = key_of(component)
        existing = self._components.get(key)
        if existing is not None and self._on_duplicate == "error":
            raise ValueError(f"Component already exists: {key}")
        if existing is not None and self._on_duplicate == "ignore":
            return existing
        if existing is not None and self._on_duplicate == "warn":
            _logger.warning("Component already exists: %s", key)
        self._check_versions(component, key)
        self._components[key] = component
        return component

    def _check_versions(self, component: Any, key: str) -> None:
        """Raise ValueError if a component has a version and another one of its name has none, or the reverse."""
        name = key.rpartition("@")[0]
        for other_key, other in self._components.items():
            if other_key.rpartition("@")[0] != name or (other.version is None) == (component.version is None):
                continue
            kind, _, label = name.partition(":")
            if component.version is None:
                problem = f"Cannot add unversioned {kind} {label!r}: versioned {kind}s with this name already exist."
            else:
                problem = (
                    f"Cannot add versioned {kind} {label!r} (version={component.version!r}): an unversioned {kind} "
                    "with this name already exists."
                )
            raise ValueError(f"{problem} Either version all components or none.")

    # Decorators

    @overload
    def tool(self, name_or_fn: F, /, **options: Any) -> F: ...

    @overload
    def tool(self, name_or_fn: str | None = None, /, **options: Any) -> Callable[[F], F]: ...

    def tool(self, name_or_fn: Any = None, /, **options: Any) -> Any:
        """Register a function as a tool, as ``mcp.tool`` does."""
        return self._registrar.tool(name_or_fn, **options)

    def resource(self, uri: str, **options: Any) -> Callable[[F], F]:
        """Return a decorator that registers a function as a resource or a template, as ``mcp.resource`` does."""
        decorator: Callable[[F], F] = self._registrar.resource(uri, **options)
        return decorator

    @overload
    def prompt(self, name_or_fn: F, /, **options: Any) -> F: ...

    @overload
    def prompt(self, name_or_fn: str | None = None, /, **options: Any) -> Callable[[F], F]: ...

    def prompt(self, name_or_fn: Any = None, /, **options: Any) -> Any:
        """Register a function as a prompt, as ``mcp.prompt`` does."""
        return self._registrar.prompt(name_or_fn, **options)

    def add_tool(self, tool: Any) -> Any:
        """Register a function or a `Tool`."""
        return self._registrar.add_tool(tool)

    def add_resource(self, resource: Any) -> Any:
        """Register a `Resource`."""
        return self._registrar.add_resource(resource)

    def add_template(self, template: Any) -> Any:
        """Register a `ResourceTemplate`."""
        return self._registrar.add_template(template)

    def add_prompt(self, prompt: Any) -> Any:
        """Register a function or a `Prompt`."""
        return self._registrar.add_prompt(prompt)

    def remove_tool(self, name: str, version: str | None = None) -> None:
        """Remove a tool; raise KeyError if it does not exist.

        Args:
            name: The name.
            version: The version; None for all of them.
        """
        self._remove("tool", name, version)

    def remove_resource(self, uri: str, version: str | None = None) -> None:
        """Remove a resource; raise KeyError if it does not exist."""
        self._remove("resource", str(uri), version)

    def remove_template(self, uri_template: str, version: str | None = None) -> None:
        """Remove a template; raise KeyError if it does not exist."""
        self._remove("template", uri_template, version)

    def remove_prompt(self, name: str, version: str | None = None) -> None:
        """Remove a prompt; raise KeyError if it does not exist."""
        self._remove("prompt", name, version)

    def _remove(self, kind: str, name: str, version: str | None) -> None:
        prefix = f"{kind}:{name}"
        keys = [
            key
            for key in self._components
            if key.rpartition("@")[0] == prefix and (version is None or key == f"{prefix}@{version}")
        ]
        if not keys:
            suffix = "" if version is None else f" version {version!r}"
            raise KeyError(f"{kind.title()} {name!r}{suffix} not found")
        for key in keys:
            del self._components[key]

    # The provider

    def _registered(self) -> Iterable[Any]:
        return tuple(self._components.values())

    async def _list_tools(self) -> Sequence[Any]:
        return [item for item in self._registered() if item.kind == "tool"]

    async def _list_resources(self) -> Sequence[Any]:
        return [item for item in self._registered() if isinstance(item, Resource) and not _is_template(item)]

    async def _list_resource_templates(self) -> Sequence[Any]:
        return [item for item in self._registered() if _is_template(item)]

    async def _list_prompts(self) -> Sequence[Any]:
        return [item for item in self._registered() if item.kind == "prompt"]


class ServerComponents(LocalProvider):
    """The components of a server itself: ``mcp.local_provider``.

    Args:
        server: The server.
    """

    def __init__(self, server: Any) -> None:
        super().__init__()
        self._registrar = server

    @property
    def _components(self) -> dict[str, Any]:
        """The components of the server by FastMCP's keys."""
        return {key_of(component): component for component in self._registrar.registered_components()}

    @_components.setter
    def _components(self, _: Any) -> None:
        """Ignore the empty dict of the base class."""

    def add_transform(self, transform: Any) -> None:
        """Change the components of the server with a transform."""
        self._registrar.add_transform(transform)

    def _remove(self, kind: str, name: str, version: str | None) -> None:
        if not self._registrar.has_removed(kind, name, version):
            raise KeyError(f"{kind.title()} {name!r} not found")


def _is_template(component: Any) -> bool:
    return isinstance(component, ResourceTemplate)
