"""Transforms under the names of FastMCP: those of `funcmcp.transforms`, with FastMCP's arguments and methods.

How it works: each of them makes transforms of funcmcp (`native`), which change the features of a server when they are
added. Its methods `list_tools`, `get_tool` and so on do the same to components that a program passes to it.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from funcmcp._compat.components import Tool
from funcmcp._compat.tool_transforms import ArgTransform
from funcmcp._compat.versions import VersionSpec
from funcmcp._compat.visibility import ComponentRule, component_rule
from funcmcp._compat.wire_meta import with_tags_in_meta
from funcmcp._objects.mappings import without_none
from funcmcp._objects.public_names import public
from funcmcp._server.catalog.features import Tool as NativeTool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence

    from funcmcp._server.catalog.transformed import AnyFeature, AnyTransform, Transformed

    CallNext = Callable[..., Awaitable[Any]]


@public("funcmcp.compat")
class Transform:
    """The base class of transforms. A subclass overrides the methods of the kinds that it changes.

    A method ``list_...`` gets the components so far and returns those that come of them. A method ``get_...`` gets a
    name or URI, asks ``call_next`` for the component behind it, and returns what comes of it, or None.
    """

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    async def list_tools(self, tools: Sequence[Any]) -> Sequence[Any]:
        """Return what becomes of the tools."""
        return tools

    async def get_tool(self, name: str, call_next: CallNext, *, version: VersionSpec | None = None) -> Any:
        """Return the tool of a name, or None."""
        return await call_next(name, version=version)

    async def list_resources(self, resources: Sequence[Any]) -> Sequence[Any]:
        """Return what becomes of the resources."""
        return resources

    async def get_resource(self, uri: str, call_next: CallNext, *, version: VersionSpec | None = None) -> Any:
        """Return the resource of a URI, or None."""
        return await call_next(uri, version=version)

    async def list_resource_templates(self, templates: Sequence[Any]) -> Sequence[Any]:
        """Return what becomes of the resource templates."""
        return templates

    async def get_resource_template(self, uri: str, call_next: CallNext, *, version: VersionSpec | None = None) -> Any:
        """Return the resource template that reads a URI, or None."""
        return await call_next(uri, version=version)

    async def list_prompts(self, prompts: Sequence[Any]) -> Sequence[Any]:
        """Return what becomes of the prompts."""
        return prompts

    async def get_prompt(self, name: str, call_next: CallNext, *, version: VersionSpec | None = None) -> Any:
        """Return the prompt of a name, or None."""
        return await call_next(name, version=version)


class BuiltInTransform(Transform):
    """A transform that changes each component by itself, here and as a transform of funcmcp."""

    def native(self) -> list[AnyTransform]:
        """Return the transforms of funcmcp that do the same."""
        raise NotImplementedError

    def rules(self) -> list[ComponentRule]:
        """Return the rules of visibility that a server gets after the transforms."""
        return []

    def changed(self, component: Any) -> Any:
        """Return what becomes of a component; None if it is left out."""
        return component

    def source(self, key: str, *, is_uri: bool) -> str | None:
        """Return the name or URI before the transform, or None for one that can't be a result of it."""
        del is_uri
        return key

    def version_for(self, version: VersionSpec | None) -> VersionSpec | None:
        """Return the versions before the transform that can become those of a lookup."""
        return version

    def _changed(self, components: Iterable[Any]) -> list[Any]:
        changed = [self.changed(component) for component in components]
        return [component for component in changed if component is not None]

    async def _component(self, key: str, call_next: CallNext, version: VersionSpec | None, *, is_uri: bool) -> Any:
        source = self.source(key, is_uri=is_uri)
        if source is None:
            return None
        component = await call_next(source, version=self.version_for(version))
        component = None if component is None else self.changed(component)
        if component is None or is_uri:
            return component
        return component if component.name == key else None

    async def list_tools(self, tools: Sequence[Any]) -> Sequence[Any]:
        """Return what becomes of the tools."""
        return self._changed(tools)

    async def get_tool(self, name: str, call_next: CallNext, *, version: VersionSpec | None = None) -> Any:
        """Return the tool of a name, or None."""
        return await self._component(name, call_next, version, is_uri=False)

    async def list_resources(self, resources: Sequence[Any]) -> Sequence[Any]:
        """Return what becomes of the resources."""
        return self._changed(resources)

    async def get_resource(self, uri: str, call_next: CallNext, *, version: VersionSpec | None = None) -> Any:
        """Return the resource of a URI, or None."""
        return await self._component(uri, call_next, version, is_uri=True)

    async def list_resource_templates(self, templates: Sequence[Any]) -> Sequence[Any]:
        """Return what becomes of the resource templates."""
        return self._changed(templates)

    async def get_resource_template(self, uri: str, call_next: CallNext, *, version: VersionSpec | None = None) -> Any:
        """Return the resource template that reads a URI, or None."""
        return await self._component(uri, call_next, version, is_uri=True)

    async def list_prompts(self, prompts: Sequence[Any]) -> Sequence[Any]:
        """Return what becomes of the prompts."""
        return self._changed(prompts)

    async def get_prompt(self, name: str, call_next: CallNext, *, version: VersionSpec | None = None) -> Any:
        """Return the prompt of a name, or None."""
        return await self._component(name, call_next, version, is_uri=False)


@public("funcmcp.compat")
class Namespace(BuiltInTransform):
    """Puts a prefix before names and URIs: ``add`` becomes ``api_add``, ``data://x`` becomes ``data://api/x``.

    Args:
        prefix: The prefix.
    """

    def __init__(self, prefix: str) -> None:
        from funcmcp._providers.namespace import Namespace as NativeNamespace  # noqa: PLC0415 - few servers need it

        self._prefix = prefix
        self._native = NativeNamespace(prefix)

    def __repr__(self) -> str:
        return f"Namespace({self._prefix!r})"

    def native(self) -> list[AnyTransform]:
        """Return the transforms of funcmcp that do the same."""
        return [self._native]

    def changed(self, component: Any) -> Any:
        """Return a component under its new name or URI."""
        if component.key.startswith("resource:"):
            return component.model_copy(update={"uri": self._native.uri(component.uri)})
        if component.key.startswith("template:"):
            return component.model_copy(update={"uri_template": self._native.uri(component.uri_template)})
        return component.model_copy(update={"name": f"{self._prefix}_{component.name}"})

    def source(self, key: str, *, is_uri: bool) -> str | None:
        """Return the name or URI without the prefix; None for one that does not have it."""
        source = self._native.source_uri(key) if is_uri else key.removeprefix(f"{self._prefix}_")
        return None if source == key else source


@public("funcmcp.compat")
class VersionFilter(BuiltInTransform):
    """Leaves out the components whose version is not in a range.

    Args:
        version_gte: The lowest version that remains.
        version_lt: The version from which on no version remains.
        include_unversioned: Whether components without a version remain.

    Raises:
        ValueError: There is neither a lowest nor a highest version.
    """

    def __init__(
        self, *, version_gte: str | None = None, version_lt: str | None = None, include_unversioned: bool = True
    ) -> None:
        if version_gte is None and version_lt is None:
            raise ValueError("At least one of version_gte or version_lt must be specified")
        self.version_gte = version_gte
        self.version_lt = version_lt
        self.include_unversioned = include_unversioned
        self._spec = VersionSpec(gte=version_gte, lt=version_lt)

    def __repr__(self) -> str:
        limits: dict[str, Any] = without_none({"version_gte": self.version_gte, "version_lt": self.version_lt})
        if not self.include_unversioned:
            limits["include_unversioned"] = False
        return f"VersionFilter({', '.join(f'{name}={value!r}' for name, value in limits.items())})"

    def native(self) -> list[AnyTransform]:
        """Return the transforms of funcmcp that do the same."""
        return [self._filtered]

    def _filtered(self, feature: AnyFeature) -> Transformed:
        return feature if self._matches(feature.version) else None

    def _matches(self, version: str | None) -> bool:
        return self._spec.matches(version, match_none=self.include_unversioned)

    def changed(self, component: Any) -> Any:
        """Return a component if its version is in the range."""
        return component if self._matches(component.version) else None

    def version_for(self, version: VersionSpec | None) -> VersionSpec | None:
        """Return the versions of a lookup that are in the range."""
        return self._spec.intersect(version)


_INTERNAL = ("fastmcp", "_internal", "visibility")
"""Where the meta of a component says whether a `Visibility` has hidden or shown it."""


@public("funcmcp.compat")
def is_enabled(component: Any) -> bool:
    """Return whether a component is shown: not hidden by the last `Visibility` that matched it."""
    value: Any = component.meta or {}
    for member in _INTERNAL[:-1]:
        value = value.get(member, {})
    return bool(value.get(_INTERNAL[-1], True))


@public("funcmcp.compat")
class Visibility(BuiltInTransform):
    """Shows or hides the components that meet all conditions; without conditions none.

    Args:
        enabled: Whether it shows them.
        names: Names, or URIs of resources and templates.
        keys: Keys such as ``"tool:add@"``.
        version: Versions. Components without one do not match.
        tags: Tags of which the component has one.
        components: Kinds of components.
        match_all: Whether it matches all components, whatever the conditions.
    """

    def __init__(  # noqa: PLR0913 - FastMCP's conditions
        self,
        enabled: bool,  # noqa: FBT001 - as in FastMCP
        *,
        names: Collection[str] | None = None,
        keys: Collection[str] | None = None,
        version: VersionSpec | None = None,
        tags: Collection[str] | None = None,
        components: Collection[Any] | None = None,
        match_all: bool = False,
    ) -> None:
        malformed = sorted(key for key in keys or () if "@" not in key)
        if malformed:
            warnings.warn(
                f"Keys of components are missing the '@' version delimiter: {malformed}. A key ends in '@' or "
                "'@<version>', such as 'tool:add@'. Take it from `component.key`, or use `names`.",
                UserWarning,
                stacklevel=2,
            )
        self._enabled = enabled
        self._conditions = without_none(
            {"names": names, "keys": keys, "version": version, "components": components, "tags": tags}
        )
        self._match_all = match_all
        self.rule: ComponentRule = component_rule(self._conditions, shows=enabled, match_all=match_all)

    def __repr__(self) -> str:
        if self._match_all:
            return f"Visibility({self._enabled}, match_all=True)"
        conditions = [f"{name}={value!r}" for name, value in self._conditions.items()]
        return f"Visibility({', '.join(['enable' if self._enabled else 'disable', *conditions])})"

    def native(self) -> list[AnyTransform]:
        """Return the transforms of funcmcp that do the same, where no rules of a server can."""
        return [self._decided]

    def _decided(self, feature: AnyFeature) -> Transformed:
        return replace(feature, enabled=self._enabled) if self.rule.matches(feature) else feature

    def rules(self) -> list[ComponentRule]:
        """Return the rule."""
        return [self.rule]

    def _matches(self, component: Any) -> bool:
        return self.rule.matches_component(component)

    def _mark_component(self, component: Any) -> Any:
        return self.changed(component)

    def changed(self, component: Any) -> Any:
        """Return a component whose meta says whether it is shown."""
        if not self._matches(component):
            return component
        meta = component.meta or {}
        fastmcp = meta.get("fastmcp", {})
        internal = {**fastmcp.get("_internal", {}), "visibility": self._enabled}
        return component.model_copy(update={"meta": {**meta, "fastmcp": {**fastmcp, "_internal": internal}}})


class RuleTransform(Transform):
    """A rule of ``mcp.enable`` or ``mcp.disable`` among transforms that are asked by each request.

    Args:
        rule: The rule.
    """

    def __init__(self, rule: ComponentRule) -> None:
        self._rule = rule
        self._marks = {shows: Visibility(shows, match_all=True) for shows in (True, False)}

    def _changed(self, component: Any) -> Any:
        if component is None:
            return None
        if self._rule.matches_component(component):
            return self._marks[self._rule.shows].changed(component)
        return self._marks[False].changed(component) if self._rule.only else component

    async def list_tools(self, tools: Sequence[Any]) -> Sequence[Any]:
        """Return the tools, marked as hidden or shown."""
        return [self._changed(tool) for tool in tools]

    async def get_tool(self, name: str, call_next: CallNext, *, version: VersionSpec | None = None) -> Any:
        """Return the tool, marked as hidden or shown."""
        return self._changed(await call_next(name, version=version))

    async def list_resources(self, resources: Sequence[Any]) -> Sequence[Any]:
        """Return the resources, marked as hidden or shown."""
        return [self._changed(resource) for resource in resources]

    async def get_resource(self, uri: str, call_next: CallNext, *, version: VersionSpec | None = None) -> Any:
        """Return the resource, marked as hidden or shown."""
        return self._changed(await call_next(uri, version=version))

    async def list_resource_templates(self, templates: Sequence[Any]) -> Sequence[Any]:
        """Return the templates, marked as hidden or shown."""
        return [self._changed(template) for template in templates]

    async def get_resource_template(self, uri: str, call_next: CallNext, *, version: VersionSpec | None = None) -> Any:
        """Return the template, marked as hidden or shown."""
        return self._changed(await call_next(uri, version=version))

    async def list_prompts(self, prompts: Sequence[Any]) -> Sequence[Any]:
        """Return the prompts, marked as hidden or shown."""
        return [self._changed(prompt) for prompt in prompts]

    async def get_prompt(self, name: str, call_next: CallNext, *, version: VersionSpec | None = None) -> Any:
        """Return the prompt, marked as hidden or shown."""
        return self._changed(await call_next(name, version=version))


@public("funcmcp.compat")
class ArgTransformConfig:
    """How clients see an argument of a tool of `ToolTransformConfig`, as `ArgTransform`.

    Args:
        options: ``name``, ``description``, ``default``, ``hide``, ``required`` and ``examples``.

    Raises:
        TypeError: There is no such option.
    """

    def __init__(self, **options: Any) -> None:
        _check_options(type(self), options, {"name", "description", "default", "hide", "required", "examples"})
        if options.get("required") is False:
            raise ValueError("required must be True; set a default for an optional argument.")
        self.options = options
        for name in ("name", "description", "default", "hide", "required", "examples"):
            setattr(self, name, options.get(name, False if name == "hide" else None))

    def to_arg_transform(self) -> ArgTransform:
        """Return the change as an `ArgTransform`."""
        return ArgTransform(**self.options)


@public("funcmcp.compat")
class ToolTransformConfig:
    """How clients see a tool of `ToolTransform`.

    Args:
        options: ``name``, ``version``, ``title``, ``description``, ``tags``, ``meta``, ``enabled`` and ``arguments``, a
            dict with an `ArgTransformConfig` for each argument that changes.

    Raises:
        TypeError: There is no such option.
    """

    _OPTIONS = frozenset({"name", "version", "title", "description", "tags", "meta", "enabled", "arguments"})

    def __init__(self, **options: Any) -> None:
        _check_options(type(self), options, self._OPTIONS)
        self.options = options
        self.name: str | None = options.get("name")
        self.version: str | None = options.get("version")
        self.title: str | None = options.get("title")
        self.description: str | None = options.get("description")
        self.tags: set[str] = set(options.get("tags") or ())
        self.meta: dict[str, Any] | None = options.get("meta")
        self.enabled: bool = options.get("enabled", True)
        self.arguments: dict[str, ArgTransformConfig] = {
            name: change if isinstance(change, ArgTransformConfig) else ArgTransformConfig(**change)
            for name, change in (options.get("arguments") or {}).items()
        }

    def apply(self, tool: Any) -> Any:
        """Return a tool as clients see it: a `TransformedTool`."""
        changes = {name: value for name, value in self.options.items() if name not in {"arguments", "enabled"}}
        arguments = {name: change.to_arg_transform() for name, change in self.arguments.items()}
        changed = Tool.from_tool(tool, transform_args=arguments, **changes)
        if "enabled" not in self.options:
            return changed
        return Visibility(self.enabled, match_all=True).changed(changed)


def _check_options(cls: type, options: Mapping[str, Any], valid: Collection[str]) -> None:
    unknown = sorted(options.keys() - set(valid))
    if unknown:
        raise TypeError(f"{cls.__name__} has no option {unknown[0]!r}. Valid options: {', '.join(sorted(valid))}.")


@public("funcmcp.compat")
class ToolTransform(BuiltInTransform):
    """Changes tools: ``ToolTransform({"run_query": ToolTransformConfig(name="search")})``.

    Args:
        transforms: The changes by the names that the tools have.

    Raises:
        ValueError: Two tools would get one name.
    """

    def __init__(self, transforms: Mapping[str, ToolTransformConfig]) -> None:
        self._transforms = dict(transforms)
        self._sources: dict[str, str] = {}
        for name, change in self._transforms.items():
            target = change.name or name
            if target in self._sources:
                raise ValueError(
                    f"ToolTransform has duplicate target name {target!r}: both {self._sources[target]!r} and {name!r} "
                    "map to it"
                )
            self._sources[target] = name

    def __repr__(self) -> str:
        names = list(self._transforms)
        shown = 3
        if len(names) <= shown:
            return f"ToolTransform({names!r})"
        return f"ToolTransform({names[:shown]!r}... +{len(names) - shown} more)"

    def native(self) -> list[AnyTransform]:
        """Return the transforms of funcmcp that do the same."""
        from funcmcp._providers.tool_changes import ArgumentChange, ToolChange  # noqa: PLC0415 - few servers need it
        from funcmcp._providers.tool_changes import ToolTransform as NativeTransform  # noqa: PLC0415 - as above

        changes = {}
        for name, change in self._transforms.items():
            arguments = {argument: ArgumentChange(**item.options) for argument, item in change.arguments.items()}
            options = {option: value for option, value in change.options.items() if option != "arguments"}
            options = without_none({**options, "tags": change.tags or None})
            changes[name] = ToolChange(**options, arguments=arguments or None)
        tags = {change.name or name: change.tags for name, change in self._transforms.items() if change.tags}

        def tagged(feature: AnyFeature) -> AnyFeature:
            return with_tags_in_meta(feature, tags.get(feature.key, ())) if isinstance(feature, NativeTool) else feature

        return [NativeTransform(changes), tagged] if tags else [NativeTransform(changes)]

    def rules(self) -> list[ComponentRule]:
        """Return the rules for the tools that are shown or hidden."""
        chosen = {name: change for name, change in self._transforms.items() if "enabled" in change.options}
        return [
            component_rule({"names": {change.name or name}, "components": {"tool"}}, shows=change.enabled)
            for name, change in chosen.items()
        ]

    def changed(self, component: Any) -> Any:
        """Return a component as clients see it."""
        change = self._transforms.get(component.name) if component.key.startswith("tool:") else None
        return component if change is None else change.apply(component)

    def source(self, key: str, *, is_uri: bool) -> str | None:
        """Return the name before the transform."""
        return key if is_uri else self._sources.get(key, key)


def native_transforms(transforms: Iterable[Any]) -> list[AnyTransform]:
    """Return transforms for a mount or a provider as those of funcmcp.

    Raises:
        TypeError: A transform of the author's own can be added to a server only.
    """
    native: list[AnyTransform] = []
    for transform in transforms:
        if isinstance(transform, BuiltInTransform):
            native += transform.native()
        elif isinstance(transform, Transform):
            raise TypeError(
                f"{type(transform).__name__} has methods of its own, so it can be added to a server only: "
                "mcp.add_transform(...)."
            )
        elif callable(transform):
            native.append(transform)
        else:
            raise TypeError(f"{type(transform).__name__} is not a transform of funcmcp.compat or funcmcp.transforms.")
    return native
