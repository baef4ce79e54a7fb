"""The methods of the protocol, one row each.

A request whose method has no row, or no row in its revision, is rejected with -32601.

Source: the index of every revision's schema; the extensions tasks and skills; 2026-07-28 "transports, Request
Metadata" for mirrored names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._protocol.headers import NAME

if TYPE_CHECKING:
    from collections.abc import Mapping


class RepeatedMember(NamedTuple):
    """A member of ``params`` that requests of the per-request era over HTTP repeat in a header, if it is a text.

    Attributes:
        member: The member.
        header: The name of the header, in lower case.
        is_optional: Whether the header may be missing.
        since: The first revision whose requests repeat the member.
    """

    member: str
    header: str = NAME
    is_optional: bool = False
    since: str = "2026-07-28"


class Method(NamedTuple):
    """A request that clients send.

    Attributes:
        name: The value of ``method`` in messages.
        capability: The server capability that the method belongs to. None: every server has the method.
        since: The first revision with the method.
        removed_in: The first revision without the method. None: no revision has removed it.
        items: The member of the result with the items, if the method is a list.
        named_by: The member of ``params`` that names the feature or the task.
        repeats: The members of ``params`` that headers repeat.
        is_always_offered: Whether every server declares the capability. Otherwise its features decide (`Catalog`).
        serves_none: Whether a server without features of the kind answers the method: a list is empty, and a feature is
            not found. The specification allows -32601, with which clients such as LlamaIndex and Cline fail. FastMCP
            and the official SDK also answer.
    """

    name: str
    capability: str | None = None
    since: str = "2024-11-05"
    removed_in: str | None = None
    items: str | None = None
    named_by: str | None = None
    repeats: tuple[RepeatedMember, ...] = ()
    is_always_offered: bool = False
    serves_none: bool = False


_NAME = (RepeatedMember("name"),)
_URI = (RepeatedMember("uri"),)
# The official Python SDK does not send the header for the tasks extension.
_TASK_ID = (RepeatedMember("taskId", is_optional=True),)

METHODS: dict[str, Method] = {
    row.name: row
    for row in (
        Method("initialize", removed_in="2026-07-28"),
        Method("server/discover", since="2026-07-28"),
        Method("ping", removed_in="2026-07-28"),
        Method("logging/setLevel", "logging", is_always_offered=True, removed_in="2026-07-28"),
        Method("tools/list", "tools", items="tools", serves_none=True),
        Method("tools/call", "tools", named_by="name", repeats=_NAME, serves_none=True),
        Method("resources/list", "resources", items="resources", serves_none=True),
        Method("resources/templates/list", "resources", items="resourceTemplates", serves_none=True),
        Method("resources/read", "resources", named_by="uri", repeats=_URI, serves_none=True),
        Method("resources/subscribe", "resources", removed_in="2026-07-28", named_by="uri"),
        Method("resources/unsubscribe", "resources", removed_in="2026-07-28", named_by="uri"),
        Method("resources/directory/read", "skills", since="2025-11-25", named_by="uri"),
        Method("prompts/list", "prompts", items="prompts", serves_none=True),
        Method("prompts/get", "prompts", named_by="name", repeats=_NAME, serves_none=True),
        Method("completion/complete", "completions"),
        Method("subscriptions/listen", since="2026-07-28"),
        Method("tasks/get", "tasks", since="2025-11-25", named_by="taskId", repeats=_TASK_ID),
        Method("tasks/update", "tasks", since="2026-07-28", named_by="taskId", repeats=_TASK_ID),
        Method("tasks/cancel", "tasks", since="2025-11-25", named_by="taskId", repeats=_TASK_ID),
        Method("tasks/result", "tasks", since="2025-11-25", removed_in="2026-07-28", named_by="taskId"),
        Method("tasks/list", "tasks", since="2025-11-25", removed_in="2026-07-28", items="tasks"),
        Method("skills/list", "skills", since="2025-11-25", items="skills"),
        Method("skills/get", "skills", since="2025-11-25", named_by="uri"),
    )
}


FEATURE_LISTS: dict[str, str] = {
    row.name: row.items
    for row in METHODS.values()
    if row.items is not None and row.capability not in {"skills", "tasks"}
}
"""The member of the result with the definitions, by the method of each list of features."""


class ClientMethod(NamedTuple):
    """A request that servers send.

    Attributes:
        name: The value of ``method`` in messages.
        capability: The client capability that the method needs.
        since: The first revision with the method.
    """

    name: str
    capability: str
    since: str = "2024-11-05"


CLIENT_METHODS: dict[str, ClientMethod] = {
    row.name: row
    for row in (
        ClientMethod("elicitation/create", "elicitation", since="2025-06-18"),
        ClientMethod("sampling/createMessage", "sampling"),
        ClientMethod("roots/list", "roots"),
    )
}


_PARTS_SINCE = {"sampling.tools": "2025-11-25"}
"""The first revision with a part of a client capability, of those parts that are newer than the capability."""


def has_part(capability: str, part: str, revision: str) -> bool:
    """Return whether a revision has a part of a client capability, such as ``tools`` of ``sampling``."""
    # Revisions are dates in ISO format, so they sort as text.
    return _PARTS_SINCE.get(f"{capability}.{part}", "") <= revision


def can_be_asked(method: str, revision: str) -> bool:
    """Return whether a revision has a method of `CLIENT_METHODS`."""
    # Revisions are dates in ISO format, so they sort as text.
    return CLIENT_METHODS[method].since <= revision


def methods_of(revision: str) -> dict[str, Method]:
    """Return the rows of `METHODS` that a revision has, by name."""
    return {row.name: row for row in METHODS.values() if _is_in(row, revision)}


def members_repeated_in(revision: str) -> dict[str, tuple[RepeatedMember, ...]]:
    """Return what requests of a revision repeat in headers, by method, of those methods that repeat something."""
    repeated = {name: _repeated(row, revision) for name, row in methods_of(revision).items()}
    return {method: members for method, members in repeated.items() if members}


def repeating_headers() -> set[str]:
    """Return the names of all headers that repeat a member of ``params``, in lower case."""
    return {member.header for row in METHODS.values() for member in row.repeats}


def repeated_members(method: str, params: Mapping[str, Any], revision: str) -> dict[str, str]:
    """Return the values that a request of a revision repeats in headers, by the header's name in lower case."""
    row = METHODS.get(method)
    if row is None or not row.repeats or not _is_in(row, revision):
        return {}
    values = {member.header: params.get(member.member) for member in _repeated(row, revision)}
    return {header: value for header, value in values.items() if isinstance(value, str)}


def _repeated(row: Method, revision: str) -> tuple[RepeatedMember, ...]:
    # Revisions are dates in ISO format, so they sort as text.
    return tuple(member for member in row.repeats if member.since <= revision)


def _is_in(row: Method, revision: str) -> bool:
    # Revisions are dates in ISO format, so they sort as text.
    return row.since <= revision and (row.removed_in is None or revision < row.removed_in)
