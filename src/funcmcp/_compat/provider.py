"""FastMCP's providers: classes whose methods return tools, resources, templates and prompts for each request.

How it works: `Provider` has the methods that subclasses override (``_list_tools``, ``_get_tool`` and so on), and those
that apply its transforms to what they return. A server asks its providers through `funcmcp._compat.provider_features`.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from funcmcp._compat.app_addresses import is_app_tool_with_identity
from funcmcp._compat.components import Resource, ResourceTemplate
from funcmcp._compat.transforms import native_transforms
from funcmcp._compat.visibility import component_rule
from funcmcp._objects.public_names import public
from funcmcp._server.catalog.versions import order_of
from funcmcp._server.catalog.visibility import Visibility

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
    from typing import Self

    from funcmcp._compat.visibility import ComponentRule

_logger = logging.getLogger("funcmcp.compat")


@public("funcmcp.compat")
class Provider:
    """Computes components for each request. A subclass overrides ``_list_tools``, ``_get_tool`` and so on.

    A server asks its providers in the order in which they were added, and its own components come first. A provider
    whose list fails has none, which is logged.
    """

    def __init__(self) -> None:
        self._transforms: list[Any] = []
        self._is_fixed = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    @property
    def transforms(self) -> list[Any]:
        """The transforms, the innermost one first."""
        return list(self._transforms)

    def add_transform(self, transform: Any) -> None:
        """Change the components of this provider with a transform, after those that were added before.

        Raises:
            RuntimeError: The provider has the features of another server, and belongs to a server already, which would
                not ask the transform.
        """
        self._check_open()
        self._transforms.append(transform)

    def _check_open(self) -> None:
        if self._is_fixed:
            raise RuntimeError(
                f"This {type(self).__name__} belongs to a server already. Add transforms and rules of visibility "
                "before mcp.add_provider."
            )

    def wrap_transform(self, transform: Any) -> Provider:
        """Return a provider with the components of this one, changed by a transform. This one stays as it is."""
        wrapped = WrappedProvider(self)
        wrapped.add_transform(transform)
        return wrapped

    def fix(self) -> None:
        """Take no further transforms."""
        self._is_fixed = True

    def add_to(self, server: Any, namespace: str | None, transforms: Sequence[Any]) -> None:
        """Serve the components with a server: what ``mcp.add_provider`` calls."""
        server.add_components(self, namespace, transforms)

    # With the transforms

    async def list_tools(self) -> Sequence[Any]:
        """Return the tools after the transforms."""
        return await self._listed("list_tools", await self._list_tools())

    async def get_tool(self, name: str, version: Any = None) -> Any:
        """Return a tool by its name after the transforms; None if there is none."""
        return await self._got("get_tool", self._get_tool, name, version)

    async def get_tool_by_hash(self, tool_hash: str, tool_name: str) -> Any:
        """Return the tool of an app that its pages call, after the transforms; None if there is none.

        Args:
            tool_hash: The hash of the tool.
            tool_name: The tool's name in the app.
        """
        del tool_name  # a transform may have changed it
        tools = await self.list_tools()
        tool = newest((tool for tool in tools if is_app_tool_with_identity(tool, tool_hash)), None)
        if tool is None:
            return None
        named = await self.get_tool(tool.name)  # which a subclass or a transform may refuse
        return named if named is None or is_app_tool_with_identity(named, tool_hash) else tool

    async def list_resources(self) -> Sequence[Any]:
        """Return the resources after the transforms."""
        return await self._listed("list_resources", await self._list_resources())

    async def get_resource(self, uri: str, version: Any = None) -> Any:
        """Return a resource by its URI after the transforms; None if there is none."""
        return await self._got("get_resource", self._get_resource, str(uri), version)

    async def list_resource_templates(self) -> Sequence[Any]:
        """Return the templates after the transforms."""
        return await self._listed("list_resource_templates", await self._list_resource_templates())

    async def get_resource_template(self, uri: str, version: Any = None) -> Any:
        """Return the template that a URI matches after the transforms; None if there is none."""
        return await self._got("get_resource_template", self._get_resource_template, str(uri), version)

    async def list_prompts(self) -> Sequence[Any]:
        """Return the prompts after the transforms."""
        return await self._listed("list_prompts", await self._list_prompts())

    async def get_prompt(self, name: str, version: Any = None) -> Any:
        """Return a prompt by its name after the transforms; None if there is none."""
        return await self._got("get_prompt", self._get_prompt, name, version)

    async def _listed(self, method: str, components: Sequence[Any]) -> Sequence[Any]:
        for transform in self.transforms:
            change = getattr(transform, method, None)
            if change is not None:
                components = await change(components)
        return components

    async def _got(self, method: str, get: Callable[..., Awaitable[Any]], key: str, version: Any) -> Any:
        async def inner(inner_key: str, *, version: Any = None) -> Any:
            return await get(inner_key, version)

        chain: Any = inner
        for transform in self.transforms:
            change = getattr(transform, method, None)
            if change is not None:
                chain = partial(change, call_next=chain)
        return await chain(key, version=version)

    # For subclasses

    async def _list_tools(self) -> Sequence[Any]:
        """Return all tools, in all their versions."""
        return []

    async def _get_tool(self, name: str, version: Any = None) -> Any:
        """Return the newest version of a tool that *version*, a ``VersionSpec``, allows; None if there is none."""
        tools = await self._list_tools()
        return newest((tool for tool in tools if tool.name == name), version)

    async def _list_resources(self) -> Sequence[Any]:
        """Return all resources, in all their versions."""
        return []

    async def _get_resource(self, uri: str, version: Any = None) -> Any:
        """Return the newest version of a resource, as `_get_tool` does."""
        resources = await self._list_resources()
        return newest((resource for resource in resources if str(resource.uri) == uri), version)

    async def _list_resource_templates(self) -> Sequence[Any]:
        """Return all templates, in all their versions."""
        return []

    async def _get_resource_template(self, uri: str, version: Any = None) -> Any:
        """Return the newest version of a template that a URI matches, as `_get_tool` does."""
        templates = await self._list_resource_templates()
        return newest((template for template in templates if template.matches(uri) is not None), version)

    async def _list_prompts(self) -> Sequence[Any]:
        """Return all prompts, in all their versions."""
        return []

    async def _get_prompt(self, name: str, version: Any = None) -> Any:
        """Return the newest version of a prompt, as `_get_tool` does."""
        prompts = await self._list_prompts()
        return newest((prompt for prompt in prompts if prompt.name == name), version)

    def required_extensions(self) -> Sequence[Any]:
        """Return the extensions that a server gets with the provider, such as that for skills."""
        return ()

    async def get_tasks(self) -> Sequence[Any]:
        """Return the components that may run as tasks."""
        lists = [
            await self.list_tools(),
            await self.list_resources(),
            await self.list_resource_templates(),
            await self.list_prompts(),
        ]
        return [component for components in lists for component in components if _runs_as_task(component)]

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Start with the server, and stop with it. A subclass overrides it."""
        yield

    # Visibility

    def enable(self, **conditions: Any) -> Self:
        """Show the components that meet all conditions: ``names``, ``keys``, ``tags``, ``components``, ``version``.

        With ``only=True`` all others are hidden.
        """
        only = conditions.pop("only", False)
        self._check_open()
        self._transforms.append(ComponentVisibility(conditions, shows=True, only=only))
        return self

    def disable(self, **conditions: Any) -> Self:
        """Hide the components that meet all conditions, which are those of `enable`."""
        self._check_open()
        self._transforms.append(ComponentVisibility(conditions, shows=False))
        return self


class ComponentVisibility:
    """A rule of `Provider.enable` and `Provider.disable`, which a server applies to the features of the provider."""

    def __init__(self, conditions: dict[str, Any], *, shows: bool, only: bool = False) -> None:
        self.rule = component_rule(conditions, shows=shows, only=only)


def rules_of(provider: Provider) -> Visibility:
    """Return the rules of a provider that hide and show its features."""
    rules = Visibility()
    for transform in provider.transforms:
        if isinstance(transform, ComponentVisibility):
            rules.add(transform.rule)
    return rules


def feature_transforms(provider: Provider) -> list[Any]:
    """Return the transforms of a provider whose features are those of another server. It gets no further ones.

    Raises:
        TypeError: A transform has methods of its author's own, which no other server asks.
    """
    provider.fix()
    transforms: list[Any] = []
    for transform in provider.transforms:
        if isinstance(transform, ComponentVisibility):
            transforms.append(partial(decided, transform.rule))
        else:
            transforms += native_transforms([transform])
    return transforms


def decided(rule: ComponentRule, feature: Any) -> Any:
    """Return a feature with what a rule of visibility decides about it."""
    if not rule.matches(feature):
        return replace(feature, enabled=False) if rule.only else feature
    return replace(feature, enabled=rule.shows)


class WrappedProvider(Provider):
    """The components of another provider, before the transforms of this one.

    Args:
        inner: The other provider.
    """

    def __init__(self, inner: Provider) -> None:
        super().__init__()
        self.inner = inner

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r})"

    def add_to(self, server: Any, namespace: str | None, transforms: Sequence[Any]) -> None:
        """Add the other provider with the transforms of this one, if these are for features."""
        if self._is_of_components:
            super().add_to(server, namespace, transforms)
        else:
            self.inner.add_to(server, namespace, [*feature_transforms(self), *transforms])

    @property
    def _is_of_components(self) -> bool:
        """Whether the transforms change components rather than features."""
        return not all(callable(item) or isinstance(item, ComponentVisibility) for item in self.transforms)

    async def _list_tools(self) -> Sequence[Any]:
        return await self.inner.list_tools()

    async def _get_tool(self, name: str, version: Any = None) -> Any:
        return await self.inner.get_tool(name, version)

    async def _list_resources(self) -> Sequence[Any]:
        return await self.inner.list_resources()

    async def _get_resource(self, uri: str, version: Any = None) -> Any:
        return await self.inner.get_resource(uri, version)

    async def _list_resource_templates(self) -> Sequence[Any]:
        return await self.inner.list_resource_templates()

    async def _get_resource_template(self, uri: str, version: Any = None) -> Any:
        return await self.inner.get_resource_template(uri, version)

    async def _list_prompts(self) -> Sequence[Any]:
        return await self.inner.list_prompts()

    async def _get_prompt(self, name: str, version: Any = None) -> Any:
        return await self.inner.get_prompt(name, version)

    def lifespan(self) -> Any:
        """Start and stop with the other provider."""
        return self.inner.lifespan()


@public("funcmcp.compat")
class AggregateProvider(Provider):
    """The components of several providers.

    Args:
        providers: The providers.
        provider_error_strategy: ``"warn"`` logs the failure of a provider and goes on without it, ``"raise"`` raises.
    """

    def __init__(self, providers: Sequence[Provider] | None = None, *, provider_error_strategy: str = "warn") -> None:
        super().__init__()
        self.provider_error_strategy = provider_error_strategy
        self.providers: list[Provider] = list(providers or [])

    def __repr__(self) -> str:
        return f"{type(self).__name__}(providers={self.providers!r})"

    def add_provider(self, provider: Provider, *, namespace: str = "") -> None:
        """Add a provider.

        Args:
            provider: The provider.
            namespace: A prefix of its names and URIs; an empty text for none.
        """
        if namespace:
            # The transform is one for components, which is loaded when it is first used.
            provider = provider.wrap_transform(import_module("funcmcp.compat").Namespace(namespace))
        self.providers.append(provider)

    async def _asked(self, method: str, *arguments: Any) -> list[Any]:
        """Return what a method of each provider returns; without those that fail."""
        answers = await asyncio.gather(
            *(getattr(provider, method)(*arguments) for provider in self.providers), return_exceptions=True
        )
        results = []
        for provider, answer in zip(self.providers, answers, strict=True):
            if not isinstance(answer, BaseException):
                results.append(answer)
            elif self.provider_error_strategy == "raise" or not isinstance(answer, Exception):
                raise answer
            else:
                _logger.warning("%r.%s has failed: %s", provider, method, answer)
        return results

    async def _all(self, method: str) -> list[Any]:
        return [component for components in await self._asked(method) for component in components]

    async def _first(self, method: str, key: str, version: Any) -> Any:
        components = [component for component in await self._asked(method, key, version) if component is not None]
        return newest(components, None)

    async def _list_tools(self) -> Sequence[Any]:
        return await self._all("list_tools")

    async def _get_tool(self, name: str, version: Any = None) -> Any:
        return await self._first("get_tool", name, version)

    async def _list_resources(self) -> Sequence[Any]:
        return await self._all("list_resources")

    async def _get_resource(self, uri: str, version: Any = None) -> Any:
        return await self._first("get_resource", uri, version)

    async def _list_resource_templates(self) -> Sequence[Any]:
        return await self._all("list_resource_templates")

    async def _get_resource_template(self, uri: str, version: Any = None) -> Any:
        return await self._first("get_resource_template", uri, version)

    async def _list_prompts(self) -> Sequence[Any]:
        return await self._all("list_prompts")

    async def _get_prompt(self, name: str, version: Any = None) -> Any:
        return await self._first("get_prompt", name, version)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Start and stop with all providers."""
        async with AsyncExitStack() as stack:
            for provider in self.providers:
                await stack.enter_async_context(provider.lifespan())
            yield


def newest(components: Iterable[Any], version: Any) -> Any:
    """Return the first component of the newest version; None if there is none.

    Args:
        components: The components.
        version: A ``VersionSpec``, whose method ``matches`` says which versions are allowed; None for all.
    """
    matching = [item for item in components if not version or version.matches(item.version)]
    if not matching:
        return None
    return max(matching, key=lambda item: order_of(item.version))


def key_of(component: Any) -> str:
    """Return FastMCP's key of a component, such as ``"tool:add@"`` and ``"template:item://{id}@1.0"``."""
    version = component.version or ""
    if isinstance(component, ResourceTemplate):
        return f"template:{component.uri_template}@{version}"
    if isinstance(component, Resource):
        return f"resource:{component.uri}@{version}"
    return f"{component.kind}:{component.name}@{version}"


def _runs_as_task(component: Any) -> bool:
    task = getattr(component, "task_config", None)
    return task is not None and getattr(task, "mode", "forbidden") != "forbidden"
