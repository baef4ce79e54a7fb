"""How components are registered, replaced, switched and removed: a part of `FastMCP`."""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from funcmcp._compat.authorization import condition_of
from funcmcp._compat.completion import with_completion
from funcmcp._compat.component_features import made_feature
from funcmcp._compat.components import Component, Resource
from funcmcp._compat.errors import UnknownFeatureError
from funcmcp._compat.failures import failure_start
from funcmcp._compat.input_rounds import answering_input
from funcmcp._compat.options import component_options, ignored_component_options
from funcmcp._compat.server_contexts import ServerContexts
from funcmcp._compat.transports import note_ignored
from funcmcp._compat.versions import check_mixing
from funcmcp._compat.wire_meta import as_listed, with_tags_in_meta
from funcmcp._server.catalog import features
from funcmcp._server.catalog.visibility import kind_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from funcmcp._authoring.calling.unknown_arguments import UnknownArguments
    from funcmcp._compat.completion import CompletionHandler
    from funcmcp._server.catalog.registry import Registry

_logger = logging.getLogger("funcmcp.compat")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


class ServerRegistration(ServerContexts):
    """Makes features of components, and adds and removes them."""

    is_of_sdk = False
    """Whether the server is one with the names of the official SDK."""

    _default_unknown_arguments: Mapping[str, UnknownArguments] = {"tool": "refuse", "prompt": "drop"}
    _unknown_arguments_option: UnknownArguments | None
    _components: dict[str, Component]
    _features: dict[str, Any]
    """The features of the registered components, by their attribute `key`."""
    _completion: CompletionHandler | None
    _on_duplicate: str
    _sends_tags: bool
    _include_tags: Collection[str] | None
    _exclude_tags: Collection[str] | None

    def _unknown_arguments(self, kind: str) -> UnknownArguments:
        """Return what happens to unknown arguments of tools or prompts; by default the same as in the original."""
        return self._unknown_arguments_option or self._default_unknown_arguments[kind]

    def register(self, component: Any) -> Any:
        """Register a component; replace an existing one of the same name as the options say."""
        if not isinstance(component, Component):
            raise TypeError(
                f"{type(component).__name__} is not a component of funcmcp.compat. Pass a function, or an object such "
                "as funcmcp.compat.Tool.from_function(...)."
            )
        if self.has_injected(component):
            return component
        if isinstance(component, Resource) and not is_absolute_uri(component.uri):
            _logger.warning("The URI of the resource %s has no scheme. The resource is left out.", component.name)
            return component
        feature = self.feature_of(component)
        if not self._makes_way(component, feature):
            return component
        previous = self._components.get(component.key)
        was_enabled = previous is None or previous.enabled
        switch = partial(self._switch, feature)
        if component.enabled != was_enabled:
            # Before the feature is added: clients must not see a disabled one, not even for a moment.
            switch(component.enabled)
        self._server.catalog.add(feature)
        component.describe = feature.describe
        component.switches.append(switch)
        component.listeners.append(partial(self._register_again, component))
        self._components[component.key] = component
        self._features[component.key] = feature
        return component

    def _makes_way(self, component: Component, feature: Any) -> bool:
        """Return whether a feature can be added, after one of the same name and version was removed.

        Raises:
            ValueError: One of the two has a version, and the other one has none.
        """
        catalog = self._server.catalog
        registry: Registry[Any] = catalog.tools if component.kind == "tool" else catalog.prompts
        if component.kind == "resource":
            registry = catalog.templates if isinstance(feature, features.ResourceTemplate) else catalog.resources
        prefix = f"{component.key.rpartition('@')[0]}@"
        own = [item for key, item in self._features.items() if key.startswith(prefix) and item.key == feature.key]
        present = [*own, *registry.versions_of(feature.key)]
        check_mixing(component.kind, feature.key, feature.version, [item.version for item in present])
        if not any(item.version == feature.version for item in present) and feature.key not in registry:
            return True
        if not any(item.version == feature.version for item in present):
            return True
        return self._replaces(registry, component, feature.key)

    def feature_of(self, component: Component) -> Any:
        """Return the feature of a component, which is not registered."""
        for option in ignored_component_options(component.options, component.kind):
            note_ignored(self, f"funcmcp.compat ignores {option} of these {component.kind}s", [component.name])
        options = component_options(component.options, component.kind)
        if component.kind == "prompt":
            options.setdefault("unknown_arguments", self._unknown_arguments("prompt"))
        feature = component.finished(self._feature(component, options))
        feature = replace(feature, handler=self._with_context(feature.handler), shown_if=condition_of(component))
        if not self.is_of_sdk:
            feature = as_listed(feature, component.kind, has_title=component.title is not None)
        if self._sends_tags:
            feature = with_tags_in_meta(feature, component.tags)
        if not self.is_of_sdk:
            feature = replace(feature, failure_start=partial(failure_start, component))
        return feature if self._completion is None else with_completion(feature, self._completion)

    def _feature(self, component: Component, options: dict[str, Any]) -> Any:
        """Return what clients get of a component.

        Args:
            component: The component.
            options: Its options without those that change nothing here.
        """
        feature = made_feature(self, component, options)
        handler = feature.handler
        return replace(feature, handler=answering_input(handler, names_revision=not self.is_of_sdk))

    def registered_components(self) -> list[Component]:
        """Return the components that were registered and not removed."""
        return [component for key, component in self._components.items() if key in self._features]

    def _replaces(self, registry: Registry[Any], component: Component, key: str) -> bool:
        """Remove a feature whose name a second one has, and return True; False if the existing one stays."""
        kind = component.kind
        if self._on_duplicate in {"ignore", "keep"}:
            if self._on_duplicate == "keep":
                _logger.warning("The %s %s exists already. The second one is ignored.", kind, key)
            return False
        if self._on_duplicate == "warn":
            _logger.warning("The %s %s exists already and is replaced.", kind, key)
        if self._on_duplicate != "error":
            previous = self._features.pop(component.key, None)
            if previous is None:
                registry.remove(key)
            else:
                self._server.catalog.remove(previous)
        return True

    def _switch(self, feature: Any, enabled: bool) -> None:  # noqa: FBT001 - a callback of the component
        """Show or hide a feature; never show one that the tags of the constructor hide."""
        kind = kind_of(feature)
        if not enabled:
            self.disable({feature.key}, components={kind})
        elif self._has_shown_tags(feature.tags):
            self.enable({feature.key}, components={kind})

    def _has_shown_tags(self, tags: frozenset[str]) -> bool:
        """Return whether a feature with these tags passes ``include_tags`` and ``exclude_tags``."""
        if self._include_tags is not None and tags.isdisjoint(self._include_tags):
            return False
        return self._exclude_tags is None or tags.isdisjoint(self._exclude_tags)

    def remove_tool(self, name: str, version: str | None = None) -> None:
        """Remove a tool; raise NotFoundError, which is also a ToolError, if it does not exist.

        Args:
            name: The name.
            version: The version; None for all of them.
        """
        if self.has_removed("tool", name, version):
            return
        try:
            super().remove_tool(name)
        except KeyError:
            raise UnknownFeatureError(f"Unknown tool: {name}") from None

    def has_removed(self, kind: str, name: str, version: str | None) -> bool:
        """Remove registered components of a name, and return whether there were any."""
        prefix = f"{kind}:{name}"
        keys = [key for key in self._features if key.rpartition("@")[0] == prefix]
        keys = [key for key in keys if version is None or key == f"{prefix}@{version}"]
        for key in keys:
            self._components.pop(key, None)
            self._server.catalog.remove(self._features.pop(key))
        return bool(keys)

    def remove_prompt(self, name: str) -> None:
        """Remove a prompt; raise NotFoundError, which is also a ValueError, if it does not exist."""
        if self.has_removed("prompt", name, None):
            return
        try:
            super().remove_prompt(name)
        except KeyError:
            raise UnknownFeatureError(f"Unknown prompt: {name}") from None

    def remove_resource(self, uri: Any) -> None:
        """Remove a resource or a template; raise NotFoundError, which is also a ValueError, if it does not exist."""
        if self.has_removed("resource", str(uri), None) or self.has_removed("template", str(uri), None):
            return
        try:
            super().remove_resource(str(uri))
        except KeyError:
            raise UnknownFeatureError(f"Unknown resource: {uri}") from None

    def registered_tool(self, name: str, version: str | None = None, feature: Any = None) -> Any:
        """Return the tool that was registered with a name and version, and that clients see under this name.

        Args:
            name: The name.
            version: The version.
            feature: What clients see. A transform may have given its name to another tool.
        """
        return self.registered_component(f"tool:{name}@{version or ''}", feature)

    def registered_component(self, key: str, feature: Any) -> Any:
        """Return the component of a key that was registered, if a feature is what clients see of it."""
        source = self._features.get(key)
        is_same = feature is not None and source is not None and source.handler is feature.handler
        return self._components.get(key) if is_same else None

    def _register_again(self, component: Component) -> None:
        """Change what clients see of a component whose options or function have changed, if it is registered still."""
        key = component.key
        if self._components.get(key) is component:
            feature = self.feature_of(component)
            self._server.catalog.exchange(self._features[key], feature)
            component.describe = feature.describe
            self._features[key] = feature


def is_absolute_uri(uri: str) -> bool:
    """Return whether a URI has a scheme, which every URI needs."""
    return _SCHEME.match(uri) is not None
