"""Features of a mounted server's providers that depend on the caller or the request, in the server above."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from funcmcp._providers.provided import FeaturesOfCaller
from funcmcp._server.catalog.features import Skill, Tool
from funcmcp._server.catalog.transformed import FEATURES, Transform

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from funcmcp._auth.principal import Principal
    from funcmcp._providers.provided import Match, Providers
    from funcmcp._providers.remote import RemoteProvider
    from funcmcp._server.catalog.transformed import AnyTransform
    from funcmcp._server.dispatch import Server

_LISTS = ("tool", "resource", "resource template", "prompt", "skill")


class MountedCallers:
    """The features that the providers of a mounted server have for one caller or one request.

    Args:
        server: The server above.
        providers: The providers of the mounted server.
        copy: Returns what the server above has of a feature of the mounted one.
        transforms: Those of the mount. They change the copies.
        position: That of the mount.
    """

    remote: RemoteProvider | None = None

    def __init__(
        self,
        server: Server,
        providers: Providers,
        copy: Callable[[Any], Any],
        transforms: Sequence[AnyTransform],
        position: tuple[int, ...],
    ) -> None:
        self.position = position
        self._server = server
        self._providers = providers
        self._copy = copy
        self._transforms = list(transforms)

    @property
    def is_used(self) -> bool:
        """Whether the mounted server has such features."""
        return self._providers.is_per_caller

    def may_have(self, kind: type, key: str | None) -> bool:
        """Return whether a feature that clients see under a key can be one of these."""
        del kind, key
        return self.is_used

    def unlisted(self, params: dict[str, Any]) -> None:
        """Return None: only what is listed gets from one server to another."""

    async def catalog_for(self, principal: Principal | None, *, again: bool = False) -> FeaturesOfCaller:
        """Return the features of a caller, with the transforms of both servers."""
        sources = self._providers.per_caller
        catalogs = await asyncio.gather(*(source.catalog_for(principal, again=again) for source in sources))
        features = [feature for catalog in catalogs for kind in _LISTS for feature in catalog.every_version(kind)]
        return self._catalog_of(features)

    async def find(self, named: Any, params: dict[str, Any], principal: Principal | None) -> Match | None:
        """Return the feature that a request names."""
        key = params.get(named.member)
        if not isinstance(key, str) or not self._are_reversible:
            return (await self.catalog_for(principal, again=True)).find(named, params)
        below = {**params, named.member: self._source_key(named.kind, key)}
        for source in self._providers.per_caller:
            match = await source.find(named, below, principal)
            if match is not None and isinstance(match[0], (*FEATURES, Skill)):
                catalog = self._catalog_of([match[0]])
                if isinstance(match[0], Tool) and match[0].name != below[named.member]:
                    params = {**params, named.member: catalog.tool_name}  # the key is another name of the tool
                return catalog.find(named, params)
        return None

    @property
    def _are_reversible(self) -> bool:
        """Whether the transforms say which key a feature had before them. A function does not."""
        return all(isinstance(transform, Transform) for transform in self._all_transforms)

    @property
    def _all_transforms(self) -> list[AnyTransform]:
        return [*self._transforms, *self._server.catalog.transforms]

    def _source_key(self, kind: type, key: str) -> str:
        for transform in reversed(self._all_transforms):
            if isinstance(transform, Transform):
                key = transform.source_key(kind, key)
        return key

    def _catalog_of(self, features: Any) -> FeaturesOfCaller:
        catalog = FeaturesOfCaller(self._server, self._transforms)
        for feature in features:
            copy = self._copy(feature)
            if not catalog.features.has(copy):  # as what a transform adds in the catalog of each source
                catalog.features.add(copy)
        return catalog
