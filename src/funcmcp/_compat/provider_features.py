"""The providers of FastMCP that a server has, as one provider of funcmcp.

How it works: FastMCP asks its providers in each request, and they may answer each caller differently, so nothing is
remembered of an answer (`Provider.per_request`). A component becomes a feature when it is first seen, and the feature
serves as long as the provider returns the same object. Rules and transforms of a provider that change features rather
than components apply to its features.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from funcmcp._compat.app_addresses import parse_hashed_backend_name
from funcmcp._compat.authorization import Condition
from funcmcp._compat.provider import rules_of
from funcmcp._compat.transforms import is_enabled
from funcmcp._providers.provider import Provider as NativeProvider
from funcmcp._server.catalog.features import Prompt, Resource, ResourceTemplate, Skill, Tool
from funcmcp._server.catalog.transformed import listed_transforms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import AbstractContextManager
    from typing import TypeAlias

    from funcmcp._auth.principal import Principal
    from funcmcp._compat.components import Component
    from funcmcp._compat.provider import Provider
    from funcmcp._compat.skill_entries import MayRead, SkillEntries
    from funcmcp._server.catalog.transformed import AnyFeature, AnyTransform

    InContext: TypeAlias = Callable[[Principal | None], AbstractContextManager[None]]

_logger = logging.getLogger("funcmcp.compat")
_LISTS = ("list_tools", "list_resources", "list_resource_templates", "list_prompts")


class Source:
    """A provider of FastMCP with the transforms of funcmcp for its features.

    Args:
        provider: The provider.
        transforms: The transforms that the server adds, such as a prefix.
        make: Makes a feature of a component.
    """

    def __init__(
        self, provider: Provider, transforms: Sequence[AnyTransform], make: Callable[[Component], AnyFeature]
    ) -> None:
        self.provider = provider
        self._transforms = listed_transforms(transforms)
        self._make = make
        self._features: WeakKeyDictionary[Any, AnyFeature] = WeakKeyDictionary()
        self._left_out: set[str] = set()

    async def features(self) -> list[AnyFeature]:
        """Return the features of all components. A list that fails has none, which is logged."""
        features: list[AnyFeature] = []
        for method in _LISTS:
            for component in await self._listed(method):
                features += self._shown(component)
        return features

    async def _listed(self, method: str) -> Sequence[Any]:
        try:
            components: Sequence[Any] = await getattr(self.provider, method)()
        except Exception as error:  # noqa: BLE001 - an author's code may raise anything
            _logger.warning(
                "%s.%s has failed: %s: %s", type(self.provider).__name__, method, type(error).__name__, error
            )
            return ()
        return components

    async def feature(self, kind: type, key: str) -> AnyFeature | None:
        """Return the feature that clients see under a name, or that reads a URI; None if there is none."""
        identity = parse_hashed_backend_name(key) if kind is Tool else None
        if identity is not None:
            component = await self.provider.get_tool_by_hash(*identity)
            tools = [] if component is None else self._shown(component)
            if tools:
                return tools[0]  # under its listed name, to which the rules and transforms of servers apply
        for component in await self._candidates(kind, self.source_key(kind, key)):
            if component is not None:
                shown = self._shown(component)
                return shown[0] if shown else None
        return None

    def source_key(self, kind: type, key: str) -> str:
        """Return the name or URI in the provider for the one that clients see."""
        for transform in reversed(self.native_transforms):
            source_key = getattr(transform, "source_key", None)
            key = key if source_key is None else source_key(kind, key)
        return key

    async def _candidates(self, kind: type, key: str) -> list[Any]:
        if kind is Tool:
            return [await self.provider.get_tool(key)]
        if kind is Prompt:
            return [await self.provider.get_prompt(key)]
        if kind is Resource:
            resource = await self.provider.get_resource(key)
            return [resource if resource is not None else await self.provider.get_resource_template(key)]
        return []

    @property
    def native_transforms(self) -> list[Any]:
        """The transforms that change features: those of the provider, and those of the server."""
        return [*self._provider_transforms, *self._transforms]

    @property
    def _provider_transforms(self) -> list[Any]:
        return [item for item in self.provider.transforms if callable(item) and not hasattr(item, "list_tools")]

    def _shown(self, component: Any) -> list[AnyFeature]:
        """Return what clients see of a component: its feature after the transforms, or nothing."""
        try:
            features = [self._feature_of(component)]
        except Exception:
            name = str(getattr(component, "name", component))
            if name not in self._left_out:
                self._left_out.add(name)
                _logger.exception("%s: %s is left out.", type(self.provider).__name__, name)
            return []
        is_visible = self._is_visible(features[0], enabled=getattr(component, "enabled", True))
        if not (is_visible and is_enabled(component)):
            features = [replace(features[0], enabled=False)]  # a rule of the server may show it nevertheless
        features = _transformed(features, self._provider_transforms)
        return _transformed([_with_given_tags(feature) for feature in features], self._transforms)

    def _feature_of(self, component: Any) -> AnyFeature:
        if type(component).__hash__ is None:
            return self._make(component)
        feature = self._features.get(component)
        if feature is None:
            feature = self._features[component] = self._make(component)
        return feature

    def _is_visible(self, feature: AnyFeature, *, enabled: bool) -> bool:
        rules = rules_of(self.provider)
        return rules.decide(feature, default=enabled)


def _transformed(features: list[AnyFeature], transforms: Sequence[AnyTransform]) -> list[AnyFeature]:
    """Return what transforms make of features, each one after those before it."""
    for transform in transforms:
        changed: list[AnyFeature] = []
        for feature in features:
            result = transform(feature)
            if result is not None:
                changed += [result] if isinstance(result, Tool | Resource | ResourceTemplate | Prompt) else result
        features = changed
    return features


def _with_given_tags(feature: AnyFeature) -> AnyFeature:
    """Return a feature whose checks count the tags that its provider gives it."""
    condition = getattr(feature, "shown_if", None)
    if not isinstance(condition, Condition):
        return feature
    return replace(feature, shown_if=condition.with_tags(feature.tags))


class ProvidedComponents(NativeProvider):
    """The components of all of FastMCP's providers that a server has. The first provider that has a name wins.

    Args:
        make: Makes a feature of a component.
        in_context: Sets the context of a request whose feature is looked up, until a ``with`` block ends.
    """

    per_request = True

    def __init__(self, make: Callable[[Component], AnyFeature], in_context: InContext) -> None:
        self._make = make
        self._in_context = in_context
        self.sources: list[Source] = []
        self._skills: SkillEntries | None = None

    def add(self, provider: Provider, transforms: Sequence[AnyTransform]) -> None:
        """Ask another provider as well."""
        self.sources.append(Source(provider, transforms, self._make))

    async def list(self, caller: Principal | None) -> Iterable[AnyFeature]:
        """Return the features of all providers."""
        features: dict[tuple[type, str, str | None], AnyFeature] = {}
        with self._in_context(caller):
            for source in self.sources:
                for feature in await source.features():
                    features.setdefault((type(feature), feature.key, feature.version), feature)
            skills: Sequence[Any] = () if self._skills is None else await self._skills.listed()
        return [*features.values(), *skills]

    def serve_skills(
        self, providers: Callable[[], Sequence[Any]], may_read: MayRead, is_own: Callable[[str], bool]
    ) -> None:
        """Serve the skills of providers.

        Args:
            providers: Returns the providers.
            may_read: Returns whether the caller of the request may read a resource.
            is_own: Returns whether the server itself has a resource.
        """
        from funcmcp._compat.skill_entries import SkillEntries  # noqa: PLC0415 - few servers have skills

        self._skills = SkillEntries(self.sources, providers, may_read, is_own)

    async def get(self, kind: type, key: str, caller: Principal | None) -> Any:
        """Return the feature that the first provider has; None if there is none."""
        with self._in_context(caller):
            if kind is Skill:
                return None if self._skills is None else await self._skills.found(key)
            for source in self.sources:
                feature = await source.feature(kind, key)
                if feature is not None:
                    return feature
        return None
