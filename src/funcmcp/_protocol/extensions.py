"""Extensions of the protocol that the server has itself, one row each, and what clients declare.

Source: SEP-2133; 2026-07-28 "basic/index, _meta", for the grammar of identifiers.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._protocol import apps, tasks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SKILLS = "io.modelcontextprotocol/skills"
SINCE = "2025-11-25"
"""The first revision in which servers declare extensions, and have the methods of extensions."""


class OwnExtension(NamedTuple):
    """An extension that the server has itself.

    Attributes:
        identifier: Its name in capabilities.
        feature: What the catalog calls it as soon as a feature needs it; see `Catalog.offered`.
        since: The first revision in which the server has it.
        settings: What the server declares with it.
    """

    identifier: str
    feature: str
    since: str = SINCE
    settings: Mapping[str, Any] = {}


EXTENSIONS: dict[str, OwnExtension] = {
    row.identifier: row
    for row in (
        OwnExtension(apps.EXTENSION, "apps"),
        OwnExtension(tasks.EXTENSION, "tasks", since="2026-07-28"),
        OwnExtension(SKILLS, "skills", settings={"directoryRead": True}),
    )
}


def extensions_in(revision: str) -> Iterator[OwnExtension]:
    """Yield the rows of `EXTENSIONS` that a revision has."""
    # Revisions are dates in ISO format, so they sort as text.
    yield from (row for row in EXTENSIONS.values() if row.since <= revision)


def has_extensions(revision: str) -> bool:
    """Return whether servers of a revision have extensions of authors."""
    return revision >= SINCE


MAX_IDENTIFIER = 100
"""Characters of the name of an extension, which a session keeps for each one that its client declares."""

MAX_METHOD = 200
"""Characters of the name of a method of an extension."""

NOT_PARAMETERS = frozenset({"_meta", "inputResponses", "requestState"})
"""Members of params that are never the method's own."""

_LABEL = re.compile(r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?")
_PART = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")


def is_identifier(value: object) -> bool:
    """Return whether a value is the name of an extension, such as ``com.example/search``."""
    if not isinstance(value, str) or len(value) > MAX_IDENTIFIER:
        return False
    prefix, _, name = value.partition("/")
    return all(map(_LABEL.fullmatch, prefix.split("."))) and _PART.fullmatch(name) is not None


def is_method(value: object) -> bool:
    """Return whether a value can be a method of an extension, such as ``com.example/search/query``."""
    if not isinstance(value, str) or len(value) > MAX_METHOD:
        return False
    parts = value.split("/")
    return len(parts) > 1 and all(map(_PART.fullmatch, parts))


def declared_settings(capabilities: Mapping[str, Any], identifier: str) -> Mapping[str, Any] | None:
    """Return the settings with which a client or a server declares an extension; None if it does not declare it."""
    extensions = capabilities.get("extensions")
    settings = extensions.get(identifier) if isinstance(extensions, dict) else None
    return settings if isinstance(settings, dict) else None
