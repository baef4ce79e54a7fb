"""The methods of the protocol, one row each.

A request whose method has no row, or no row in its revision, is rejected with -32601.

Source: the index of every revision's schema; the extensions tasks and skills; 2026-07-28 "transports, Request
Metadata" for mirrored names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Method(NamedTuple):
    """A request that clients send.

    Attributes:
        name: The value of ``method`` in messages.
        capability: The server capability that the method belongs to. None: every server has the method.
        since: The first revision with the method.
        removed_in: The first revision without the method. None: no revision has removed it.
        items: The member of the result with the items, if the method is a list.
        named_by: The member of ``params`` that names the feature or the task.
        mirror: Whether clients of 2026-07-28 must repeat that member in the ``Mcp-Name`` header. The header is optional
            for the tasks extension, because the official Python SDK does not send it.
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
    mirror: Literal["required", "optional"] | None = None
    serves_none: bool = False


METHODS: dict[str, Method] = {
    row.name: row
    for row in (
        Method("initialize", removed_in="2026-07-28"),
        Method("server/discover", since="2026-07-28"),
        Method("ping", removed_in="2026-07-28"),
        Method("logging/setLevel", "logging", removed_in="2026-07-28"),
        Method("tools/list", "tools", items="tools", serves_none=True),
        Method("tools/call", "tools", named_by="name", mirror="required", serves_none=True),
        Method("resources/list", "resources", items="resources", serves_none=True),
        Method("resources/templates/list", "resources", items="resourceTemplates", serves_none=True),
        Method("resources/read", "resources", named_by="uri", mirror="required", serves_none=True),
        Method("resources/subscribe", "resources", removed_in="2026-07-28", named_by="uri"),
        Method("resources/unsubscribe", "resources", removed_in="2026-07-28", named_by="uri"),
        Method("resources/directory/read", "skills", since="2025-11-25", named_by="uri"),
        Method("prompts/list", "prompts", items="prompts", serves_none=True),
        Method("prompts/get", "prompts", named_by="name", mirror="required", serves_none=True),
        Method("completion/complete", "completions"),
        Method("subscriptions/listen", since="2026-07-28"),
        Method("tasks/get", "tasks", since="2025-11-25", named_by="taskId", mirror="optional"),
        Method("tasks/update", "tasks", since="2026-07-28", named_by="taskId", mirror="optional"),
        Method("tasks/cancel", "tasks", since="2025-11-25", named_by="taskId", mirror="optional"),
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


CLIENT_CAPABILITIES_SINCE = {"sampling.tools": "2025-11-25"}
"""The first revision with a part of a capability, of those parts that are newer than the capability."""


def can_be_asked(method: str, revision: str) -> bool:
    """Return whether a revision has a method of `CLIENT_METHODS`."""
    # Revisions are dates in ISO format, so they sort as text.
    return CLIENT_METHODS[method].since <= revision


def methods_of(revision: str) -> dict[str, Method]:
    """Return the rows of `METHODS` that a revision has, by name."""
    # Revisions are dates in ISO format, so they sort as text.
    return {
        row.name: row
        for row in METHODS.values()
        if row.since <= revision and (row.removed_in is None or revision < row.removed_in)
    }


def mirrored_name(method: str, params: Mapping[str, Any]) -> str | None:
    """Return what a request of 2026-07-28 repeats in ``Mcp-Name``; None if it repeats nothing."""
    row = METHODS.get(method)
    if row is None or row.mirror is None or row.named_by is None:
        return None
    name = params.get(row.named_by)
    return name if isinstance(name, str) else None
