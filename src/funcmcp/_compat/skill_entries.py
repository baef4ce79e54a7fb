"""The skills of FastMCP's providers as features of a server.

How it works: a provider names its skills by entries, and serves their files as resources. An entry becomes a feature
for one request, if this server reads each file from the same provider, and if middleware lets the caller read it.
"""

from __future__ import annotations

import logging
from collections import Counter
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from funcmcp._compat.context import context_variable
from funcmcp._server.catalog.features import Resource, Skill
from funcmcp._server.catalog.transformed import Transform

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import TypeAlias

    MayRead: TypeAlias = Callable[[str], Awaitable[bool]]

_logger = logging.getLogger("funcmcp.compat")
_METHODS = ("skills/", "resources/directory/")
"""What the names of methods begin with that need skills."""

_reading: ContextVar[bool] = ContextVar("funcmcp_compat_reading_skills", default=False)
"""Whether skills are being read, so that a look at their files does not read them again."""


class Source(Protocol):
    """A provider of FastMCP that a server has.

    Attributes:
        provider: The provider.
    """

    provider: Any

    @property
    def native_transforms(self) -> Sequence[Any]:
        """The transforms that change features."""

    def source_key(self, kind: type, key: str) -> str:
        """Return the name or URI in the provider for the one that clients see."""

    async def feature(self, kind: type, key: str) -> Any:
        """Return the feature with a name or URI; None if there is none."""


class Entry(NamedTuple):
    """The entry of a skill.

    Attributes:
        source: The provider that has the skill.
        definition: The entry as JSON, with the URIs that clients see.
    """

    source: Source
    definition: Mapping[str, Any]


class SkillEntries:
    """The skills of the providers of a server.

    Args:
        sources: All providers of the server.
        providers: Returns those whose skills clients list.
        may_read: Returns whether the caller of the request may read a resource.
        is_own: Returns whether the server itself has a resource, so that it is not the one of a provider.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        providers: Callable[[], Sequence[Any]],
        may_read: MayRead,
        is_own: Callable[[str], bool],
    ) -> None:
        self._sources = sources
        self._providers = providers
        self._may_read = may_read
        self._is_own = is_own

    async def listed(self) -> list[Skill]:
        """Return the skills for the request that runs; none if its method does not need them."""
        if _reading.get() or not _method().startswith(_METHODS):
            return []
        entries: list[Entry] = []
        for source in self._chosen():
            entries += [Entry(source, _shown(source, entry)) for entry in await _entries_of(source)]
        counts = Counter([entry.definition["uri"] for entry in entries])
        duplicates = sorted(uri for uri, count in counts.items() if count > 1)
        if duplicates:
            _logger.warning("Omitting duplicate Skills entries for URIs: %s", ", ".join(duplicates))
        skills = [await self._skill(entry) for entry in entries if counts[entry.definition["uri"]] == 1]
        return sorted(filter(None, skills), key=lambda skill: skill.uri)

    async def found(self, uri: str) -> Skill | None:
        """Return the skill whose SKILL.md has a URI; None if there is none, or more than one."""
        if _reading.get():
            return None
        entries: list[Entry] = []
        for source in self._chosen():
            entry = await source.provider._get_skill_entry(source.source_key(Resource, uri), _request())  # noqa: SLF001 - FastMCP's name
            if entry is not None:
                entries.append(Entry(source, _shown(source, entry)))
        return await self._skill(entries[0]) if len(entries) == 1 else None

    def _chosen(self) -> list[Source]:
        providers = self._providers()
        return [source for source in self._sources if any(source.provider is provider for provider in providers)]

    async def _skill(self, entry: Entry) -> Skill | None:
        """Return the feature of an entry; None if a file is not served to the caller as the entry has it."""
        files = entry.definition["resources"]
        resources: list[Resource] = []
        token = _reading.set(True)
        try:
            for file in files if isinstance(files, list) else ():
                resource = await self._resource(entry.source, file["uri"])
                if resource is None:
                    return None
                resources.append(resource)
        finally:
            _reading.reset(token)
        return Skill(entry.definition["uri"], lambda: entry.definition, tuple(resources))

    async def _resource(self, source: Source, uri: str) -> Resource | None:
        """Return the resource of a file; None if the server reads the URI elsewhere, or the caller may not read it."""
        if self._is_own(uri):
            return None
        for other in self._sources:
            feature = await other.feature(Resource, uri)
            if feature is not None and (other is not source or not feature.enabled):
                return None
            if feature is not None:
                resource: Any = feature if isinstance(feature, Resource) else _file_of(feature, uri)
                return resource if await self._may_read(uri) else None
        return None


def _file_of(template: Any, uri: str) -> Resource:
    """Return the resource with a URI that a template has."""
    definition = {"uri": uri, "name": uri}
    return Resource(uri, lambda: definition, template.handler, access=template.access, tags=template.tags)


async def _entries_of(source: Source) -> Sequence[Any]:
    """Return the entries of a provider. One that fails has none, which is logged."""
    try:
        entries: Sequence[Any] = await source.provider._list_skill_entries(_request())  # noqa: SLF001 - FastMCP's name
    except Exception as error:  # noqa: BLE001 - an author's code may raise anything
        _logger.warning("Error loading Skills source: %s: %s", type(error).__name__, error)
        return ()
    return entries


def _shown(source: Source, entry: Any) -> Mapping[str, Any]:
    """Return an entry as JSON, with the URIs that clients see."""
    definition: dict[str, Any] = entry.model_dump(mode="json", by_alias=True, exclude_none=True)
    skill = Skill(definition["uri"], lambda: definition, ())
    for transform in source.native_transforms:
        if isinstance(transform, Transform):
            skill = transform.skill_of(skill)
    return skill.describe()


def _method() -> str:
    context = context_variable.get()
    call = None if context is None else context._call  # noqa: SLF001 - a part of Context
    return "" if call is None else call.request.request.method


def _request() -> Any:
    """Return the request that runs, as FastMCP's providers get it; None without one."""
    context = context_variable.get()
    return None if context is None else context.request_context
