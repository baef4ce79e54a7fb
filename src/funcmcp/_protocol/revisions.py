"""The dated revisions of the protocol, as data.

Code that depends on the revision reads a field of this table. It never compares dates.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

from funcmcp._objects.definitions import definition
from funcmcp._protocol.content_blocks import types_of
from funcmcp._protocol.errors import INVALID_PARAMS, RESOURCE_NOT_FOUND

if TYPE_CHECKING:
    from collections.abc import Mapping


class TaskRules(NamedTuple):
    """How a revision has tasks.

    Attributes:
        extension: Whether they are an extension, which clients declare in each request; otherwise clients ask for a
            task with ``params.task``.
        ttl: The member with the time to live.
        poll_interval: The member with the polling interval.
        tool_failure: The status of a task whose result has ``isError: true``.
        cancels_ended: Whether the cancellation of a task that has ended succeeds.
    """

    extension: bool
    ttl: str
    poll_interval: str
    tool_failure: str
    cancels_ended: bool


@definition
class Revision:
    """One revision of the protocol.

    Attributes:
        date: The name of the revision in messages and headers.
        draft: Whether the revision may still change. Neither servers nor clients use it unless its date is named in
            their options.
        per_request: Whether each request has its version and capabilities in ``_meta`` (2026-07-28). No handshake.
        priming: Whether a resumable stream begins with an event without data (2025-11-25).
        batches: Whether a body may be an array of messages, a JSON-RPC batch (2025-03-26).
        content_types: Types of content blocks in results.
        tool_fields: Members of Tool.
        feature_fields: Members of Resource, ResourceTemplate and Prompt.
        argument_fields: Members of PromptArgument.
        info_fields: Members of Implementation, which describes a client or a server.
        capabilities: Members of ServerCapabilities.
        not_found: The error code for a resource that does not exist.
        structured_content: JSON values that structuredContent may have: none at all, ``"object"`` or ``"any"``.
        elicitation_ids: Whether a question that opens a URL has an id.
        result_members: Members with the same value in every result.
        cache_members: Members of results that clients may cache; `_server/results.py` has their values.
        tasks: How the revision has tasks. None: it has no tasks.
    """

    date: str
    draft: bool = False
    per_request: bool = False
    priming: bool = False
    batches: bool = False
    content_types: frozenset[str] = frozenset()
    tool_fields: frozenset[str] = frozenset()
    feature_fields: frozenset[str] = frozenset()
    argument_fields: frozenset[str] = frozenset()
    info_fields: frozenset[str] = frozenset()
    capabilities: frozenset[str] = frozenset()
    not_found: int = RESOURCE_NOT_FOUND
    structured_content: str | None = None
    elicitation_ids: bool = False
    result_members: Mapping[str, str] = field(default_factory=dict)
    cache_members: tuple[str, ...] = ()
    tasks: TaskRules | None = None


_TOOL_2024 = frozenset({"name", "description", "inputSchema"})
_TOOL_2025_03 = _TOOL_2024 | {"annotations"}
_TOOL_2025_06 = _TOOL_2025_03 | {"title", "outputSchema", "_meta"}
_TOOL_2025_11 = _TOOL_2025_06 | {"icons", "execution"}
_TOOL_2026_07 = _TOOL_2025_11 - {"execution"}

_FEATURE_2024 = frozenset({"annotations", "arguments", "description", "mimeType", "name", "size", "uri", "uriTemplate"})
_FEATURE_2025_06 = _FEATURE_2024 | {"title", "_meta"}
_FEATURE_2025_11 = _FEATURE_2025_06 | {"icons"}

_ARGUMENT_2024 = frozenset({"name", "description", "required"})
_ARGUMENT_2025_06 = _ARGUMENT_2024 | {"title"}

_CAPABILITIES_2024 = frozenset({"experimental", "logging", "prompts", "resources", "tools"})
_CAPABILITIES_2025_03 = _CAPABILITIES_2024 | {"completions"}
# The schema of 2025-11-25 does not list `extensions`. The extension framework adds the member.
_CAPABILITIES_2026_07 = _CAPABILITIES_2025_03 | {"extensions"}
_CAPABILITIES_2025_11 = _CAPABILITIES_2026_07 | {"tasks"}

_INFO_2024 = frozenset({"name", "version"})
_INFO_2025_06 = _INFO_2024 | {"title"}
_INFO_2025_11 = _INFO_2025_06 | {"description", "icons", "websiteUrl"}

_TASKS_2025_11 = TaskRules(
    extension=False, ttl="ttl", poll_interval="pollInterval", tool_failure="failed", cancels_ended=False
)
_TASKS_2026_07 = TaskRules(
    extension=True, ttl="ttlMs", poll_interval="pollIntervalMs", tool_failure="completed", cancels_ended=True
)

REVISIONS: dict[str, Revision] = {
    revision.date: revision
    for revision in (
        Revision(
            "2024-11-05",
            content_types=types_of("2024-11-05"),
            tool_fields=_TOOL_2024,
            feature_fields=_FEATURE_2024,
            argument_fields=_ARGUMENT_2024,
            info_fields=_INFO_2024,
            capabilities=_CAPABILITIES_2024,
        ),
        Revision(
            "2025-03-26",
            batches=True,
            content_types=types_of("2025-03-26"),
            tool_fields=_TOOL_2025_03,
            feature_fields=_FEATURE_2024,
            argument_fields=_ARGUMENT_2024,
            info_fields=_INFO_2024,
            capabilities=_CAPABILITIES_2025_03,
        ),
        Revision(
            "2025-06-18",
            content_types=types_of("2025-06-18"),
            tool_fields=_TOOL_2025_06,
            feature_fields=_FEATURE_2025_06,
            argument_fields=_ARGUMENT_2025_06,
            info_fields=_INFO_2025_06,
            capabilities=_CAPABILITIES_2025_03,
            structured_content="object",
        ),
        Revision(
            "2025-11-25",
            priming=True,
            content_types=types_of("2025-11-25"),
            tool_fields=_TOOL_2025_11,
            feature_fields=_FEATURE_2025_11,
            argument_fields=_ARGUMENT_2025_06,
            info_fields=_INFO_2025_11,
            capabilities=_CAPABILITIES_2025_11,
            structured_content="object",
            elicitation_ids=True,
            tasks=_TASKS_2025_11,
        ),
        Revision(
            "2026-07-28",
            per_request=True,
            content_types=types_of("2026-07-28"),
            tool_fields=_TOOL_2026_07,
            feature_fields=_FEATURE_2025_11,
            argument_fields=_ARGUMENT_2025_06,
            info_fields=_INFO_2025_11,
            capabilities=_CAPABILITIES_2026_07,
            not_found=INVALID_PARAMS,
            structured_content="any",
            result_members={"resultType": "complete"},
            cache_members=("ttlMs", "cacheScope"),
            tasks=_TASKS_2026_07,
        ),
    )
}


def released(revisions: Mapping[str, Revision]) -> list[str]:
    """Return the dates of the revisions that are not drafts, oldest first."""
    return sorted(date for date, revision in revisions.items() if not revision.draft)


def with_handshake(revisions: Mapping[str, Revision]) -> list[str]:
    """Return the dates of the revisions with a handshake that are not drafts, oldest first."""
    return [date for date in released(revisions) if not revisions[date].per_request]


def newest(revisions: Mapping[str, Revision]) -> str:
    """Return the date of the newest revision that is not a draft."""
    return released(revisions)[-1]


NEWEST = newest(REVISIONS)
"""The newest revision that is not a draft."""

NEWEST_HANDSHAKE = with_handshake(REVISIONS)[-1]
"""The newest revision with a handshake that is not a draft."""

ASSUMED = "2025-03-26"
"""The revision of a request without MCP-Protocol-Version and session (2025-11-25 "basic/transports")."""

NEWEST_OF_AZURE = "2025-06-18"
"""The newest revision that Azure's MCP extension speaks. It does not say which one a client has chosen, and answers in
this one where a request names none, as its clients expect (extension 1.6.0, which does not read the header)."""


def handshake_revision(revisions: Mapping[str, Revision], preferred: str | None = None) -> Revision | None:
    """Return *preferred* if it is one of *revisions* with a handshake, or else the newest one of them.

    Args:
        revisions: The revisions that a server speaks, by date.
        preferred: The date that the client requests, or that is assumed for it.

    Returns:
        None if no revision has a handshake.
    """
    dates = [date for date, revision in revisions.items() if not revision.per_request]
    if not dates:
        return None
    return revisions[preferred if preferred in dates else max(dates)]
