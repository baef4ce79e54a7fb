"""The transforms of an author's own, which are asked by each request as FastMCP asks them.

How it works: a server gets a `TransformView` with the first transform whose methods are the author's. From then on all
further transforms, and rules of ``enable`` and ``disable``, are in the view, because their order counts. A list passes
through ``list_tools`` and so on of each transform, the first one first. A request for one component begins at the last
transform, whose ``get_tool`` and so on asks the one before it, up to the catalog. What comes back becomes a feature of
funcmcp. The caller needs the rights of this feature, whichever name it used.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._app.direct_calls import DirectContext
from funcmcp._compat.components import Component
from funcmcp._compat.editable import ListedPrompt, ListedResource, ListedTemplate
from funcmcp._compat.listed_components import ListedTool, with_tags
from funcmcp._compat.session_visibility import rules_of
from funcmcp._compat.transforms import Transform, is_enabled
from funcmcp._compat.versions import VersionSpec, dedupe_with_versions, newest_matching, version_sort_key
from funcmcp._protocol.errors import ResourceNotFound, UnknownFeature
from funcmcp._protocol.uri_template import UnsafeValueError
from funcmcp._server.calls.route import NO_VALUES
from funcmcp._server.catalog.conditions import is_shown
from funcmcp._server.catalog.features import Prompt, Resource, ResourceTemplate, Tool
from funcmcp._server.catalog.versions import requested_version

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from funcmcp._protocol.errors import MCPError
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.calls.route import RoutedRequest

    Lookup = Callable[..., Awaitable[Any]]


class _Kind(NamedTuple):
    """A kind of components.

    Attributes:
        listed: The class of definitions.
        list_method: The method of transforms for lists.
        get_method: The method of transforms for one component.
        feature: The class of features.
        identifier: The attribute of components with the name or URI.
    """

    listed: type[Any]
    list_method: str
    get_method: str
    feature: type[Any]
    identifier: str


_KINDS = {
    "tools/list": _Kind(ListedTool, "list_tools", "get_tool", Tool, "name"),
    "resources/list": _Kind(ListedResource, "list_resources", "get_resource", Resource, "uri"),
    "resources/templates/list": _Kind(
        ListedTemplate, "list_resource_templates", "get_resource_template", ResourceTemplate, "uri_template"
    ),
    "prompts/list": _Kind(ListedPrompt, "list_prompts", "get_prompt", Prompt, "name"),
}
_TOOLS, _RESOURCES, _TEMPLATES, _PROMPTS = _KINDS.values()
_CAPABILITIES = {_TOOLS: "tools", _RESOURCES: "resources", _TEMPLATES: "resources", _PROMPTS: "prompts"}


class TransformView:
    """The transforms of a server that are asked by each request: a `FeatureView`.

    Args:
        server: The server, a `FastMCP`.
    """

    def __init__(self, server: Any) -> None:
        self._server = server
        self._native = server._server  # noqa: SLF001 - a part of FastMCP
        self._transforms: list[Transform] = []

    def add(self, transform: Transform) -> None:
        """Add a transform behind the existing ones."""
        self._transforms.append(transform)
        cls = type(transform)
        changed = {
            capability
            for kind, capability in _CAPABILITIES.items()
            if getattr(cls, kind.list_method) is not getattr(Transform, kind.list_method)
        }
        self._native.catalog.promise(transform, changed)

    # Lists

    async def listed(self, method: str, features: Sequence[Any], context: RequestContext) -> list[Any]:
        """Return the features that a list shows to a caller."""
        kind = _KINDS[method]
        built_in = [feature for feature in features if feature.is_built_in]
        components: Sequence[Any] = [self._component(kind, item) for item in features if not item.is_built_in]
        for transform in self._transforms:
            components = await getattr(transform, kind.list_method)(components)
        shown = [component for component in components if is_enabled(component)]
        if not context.every_version:
            shown = dedupe_with_versions(shown, lambda component: str(getattr(component, kind.identifier)))
        return [*built_in, *(self._feature(kind, component) for component in shown)]

    def _component(self, kind: _Kind, feature: Any) -> Any:
        """Return a feature as transforms get it."""
        definition = dict(feature.describe())
        if feature.version is not None:
            meta = definition.get("_meta", {})
            own = {**meta.get("fastmcp", {}), "version": feature.version}
            definition["_meta"] = {**meta, "fastmcp": own}
        return with_tags(kind.listed(definition), self._server, feature)

    def _feature(self, kind: _Kind, component: Any) -> Any:
        """Return what a transform has returned as a feature.

        Raises:
            TypeError: It is not a component.
        """
        if isinstance(component, Component):
            feature = self._server.feature_of(component)
            if component.version is None:
                return feature
            return replace(feature, version=None, describe=lambda: _public(feature.describe(), component.get_meta()))
        if not isinstance(component, kind.listed):
            raise TypeError(f"A transform returned {type(component).__name__} in place of a component.")
        feature = component.feature
        changes: dict[str, Any] = {
            "version": None,
            "describe": lambda: _public(component, component.meta),
            "tags": frozenset(component.tags),
        }
        if kind in {_TOOLS, _PROMPTS}:
            changes["name"] = component.name
        elif kind is _RESOURCES:
            changes["uri"] = component.uri
            changes["handler"] = partial(_read_as, feature)
        elif component.uri_template != feature.template.text:
            changes["template"] = type(feature.template)(component.uri_template)
            changes["handler"] = partial(_read_template_as, feature)
        return replace(feature, **changes)

    # Single components

    async def component(self, method: str, key: str, spec: VersionSpec | None, context: RequestContext) -> Any:
        """Return what the transforms have under a name or URI; None if they have nothing.

        Args:
            method: The method of the list that has components of this kind.
            key: The name or URI.
            spec: The versions that count; None for the newest one.
            context: The request whose caller looks for the component.
        """
        return await self._component_at(_KINDS[method], key, spec, context)

    async def routed(self, context: RequestContext) -> RoutedRequest:
        """Return the request of a context with the component that its caller has under the name or URI in it."""
        routed = context.routed
        params = routed.request.params
        if routed.feature is not None and (routed.feature.is_built_in or type(routed.feature) not in _FEATURES):
            return routed
        version = requested_version(params)
        spec = None if version is None else VersionSpec(eq=version)
        method = routed.request.method
        reference: Any = params.get("ref") if method == "completion/complete" else params
        if not isinstance(reference, dict):
            return routed  # its fault says what is wrong with it
        name, uri = reference.get("name"), reference.get("uri")
        if isinstance(uri, str):
            return await self._routed_to_resource(context, uri, spec)
        kinds = {"tools/call": _TOOLS, "prompts/get": _PROMPTS, "completion/complete": _PROMPTS}
        if not isinstance(name, str) or method not in kinds:
            return routed
        kind = kinds[method]
        if isinstance(routed.feature, Tool):
            name = routed.feature.name  # which differs if the pages of an app call the tool
        component = await self._component_at(kind, name, spec, context)
        if component is None:
            raise UnknownFeature("tool" if kind is _TOOLS else "prompt", name)
        return await self._with(context, self._feature(kind, component), NO_VALUES)

    async def _routed_to_resource(self, context: RequestContext, uri: str, spec: VersionSpec | None) -> RoutedRequest:
        if context.request.method != "completion/complete":
            resource = await self._component_at(_RESOURCES, uri, spec, context)
            if resource is not None:
                return await self._with(context, self._feature(_RESOURCES, resource), {})
            if self._native.catalog.resources.key_like(uri) is not None:
                raise ResourceNotFound(uri)  # a resource that is hidden must not be read through a template
        template = await self._component_at(_TEMPLATES, uri, spec, context)
        feature = None if template is None else self._feature(_TEMPLATES, template)
        values = None if feature is None else _values_in(feature, uri)
        if values is None:
            raise ResourceNotFound(uri)
        return await self._with(context, feature, values)

    async def _with(self, context: RequestContext, feature: Any, values: Any) -> RoutedRequest:
        """Return the request with a feature; raise MCPError if the caller may not use it."""
        routed = context.routed.with_feature(feature, values)
        guard = self._native.guard
        if guard is not None and not self._may_use_all(context):
            refusal = await guard.check(routed, context.principal)
            if refusal is not None:
                error: MCPError = refusal.error()
                raise error
        return routed

    async def _component_at(self, kind: _Kind, key: str, spec: VersionSpec | None, context: RequestContext) -> Any:
        """Return what the transforms have under a key; if that is hidden, its newest version that is not."""
        lookup: Lookup = partial(self._in_catalog, kind, context)
        for transform in self._transforms:
            lookup = partial(_asked, transform, kind, lookup)
        component = await lookup(key, version=spec)
        if component is None or is_enabled(component):
            return component
        versions = [item for item in await self._versions(kind, key, context) if item.version is not None]
        if spec is None:
            for older in sorted(versions, key=version_sort_key, reverse=True):
                component = await lookup(key, version=VersionSpec(eq=older.version))
                if component is not None and is_enabled(component):
                    return component
        return None

    async def _in_catalog(
        self, kind: _Kind, context: RequestContext, key: str, *, version: VersionSpec | None = None
    ) -> Any:
        """Return a component as the catalog has it; None if the caller does not see one."""
        return newest_matching(await self._versions(kind, str(key), context), version)

    async def _versions(self, kind: _Kind, key: str, context: RequestContext) -> list[Any]:
        """Return the components under a key that the caller sees and may use, in all versions.

        A component of a transform that runs another one has rights of its own, so those of the other one count here.
        """
        registry, rules = self._registry(kind), rules_of(context)
        guard = None if self._may_use_all(context) else self._native.guard
        components = []
        for feature in self._named(kind, registry, key, context):
            allows = registry.is_visible(feature)
            is_visible = allows if rules is None else rules.decide(feature, default=allows)
            may_use = guard is None or await guard.may_use(feature.access, context.principal)
            if is_visible and may_use and await is_shown(feature, context):
                components.append(self._component(kind, feature))
        return components

    def _registry(self, kind: _Kind) -> Any:
        catalog = self._native.catalog
        registries = {
            _TOOLS: catalog.tools,
            _RESOURCES: catalog.resources,
            _TEMPLATES: catalog.templates,
            _PROMPTS: catalog.prompts,
        }
        return registries[kind]

    def _named(self, kind: _Kind, registry: Any, key: str, context: RequestContext) -> list[Any]:
        """Return the features of a key, visible or not; without one in the catalog that of a provider."""
        if kind is _TEMPLATES:
            features = [item for item in registry.every() if _values_in(item, key) is not None]
        else:
            features = registry.versions_of(key)
        provided = context.routed.feature
        if isinstance(provided, Tool) and provided.key == key != context.request.params.get("name"):
            return [provided]  # the tool of an app, even if the server has another one of its name
        if features or not isinstance(provided, kind.feature):
            return features
        return [provided] if kind is _TEMPLATES or provided.key == key else []

    def _may_use_all(self, context: RequestContext) -> bool:
        """Return whether a request is one of the server's author, or of a client that its user has started."""
        return (isinstance(context, DirectContext) and context.by_author) or context.by_user


_FEATURES = {kind.feature for kind in _KINDS.values()}


def _asked(transform: Transform, kind: _Kind, lookup: Lookup, key: str, *, version: VersionSpec | None = None) -> Any:
    """Return what a transform has under a key, which asks the transforms before it."""
    return getattr(transform, kind.get_method)(key, lookup, version=version)


def _values_in(feature: Any, uri: str) -> Any:
    """Return the values that a URI has for a template, or none for the template's own text; None if neither is it."""
    if feature.key == uri:
        return NO_VALUES
    try:
        return feature.template.match(uri)
    except UnsafeValueError:
        return None


async def _read_as(feature: Any, context: RequestContext, uri: str, values: Any) -> Any:
    """Read a resource that clients see under another URI."""
    del uri
    return await feature.handler(context, feature.uri, values)


async def _read_template_as(feature: Any, context: RequestContext, uri: str, values: Any) -> Any:
    """Read a template that clients see under another one."""
    del uri
    return await feature.handler(context, feature.template.expand(values), values)


def _public(definition: Any, meta: Any) -> dict[str, Any]:
    """Return a definition without what only transforms read in its meta."""
    members = {name: value for name, value in dict(meta or {}).items() if name != "fastmcp"}
    fastmcp = {name: value for name, value in (meta or {}).get("fastmcp", {}).items() if not name.startswith("_")}
    if fastmcp:
        members["fastmcp"] = fastmcp
    public = {name: value for name, value in dict(definition).items() if name != "_meta"}
    return {**public, "_meta": members} if members else public
