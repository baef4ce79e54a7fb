"""The methods of the protocol, one row each.

A request's method is looked up here; a missing row, or one that its revision does not have, is -32601.

Source: the index of every revision's schema; 2026-07-28 "transports, Request Metadata" for mirrored names.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Method:
    """A request that clients send.

    Attributes:
        name: on the wire.
        capability: the server capability that it belongs to; None for the ones that every server has.
        since: the first revision that has it.
        removed_in: the first revision that no longer has it; None while it lives.
        mirrored: the member of `params` that 2026-07-28 clients repeat in the `Mcp-Name` header.
        cached: whether its complete results carry `ttlMs` and `cacheScope` (2026-07-28).
        rounds: whether it may be answered by `input_required` (2026-07-28).
    """

    name: str
    capability: str | None = None
    since: str = "2024-11-05"
    removed_in: str | None = None
    mirrored: str | None = None
    cached: bool = False
    rounds: bool = False


METHODS: dict[str, Method] = {
    row.name: row
    for row in (
        Method("initialize", removed_in="2026-07-28"),
        Method("server/discover", since="2026-07-28", cached=True),
        Method("ping", removed_in="2026-07-28"),
        Method("logging/setLevel", "logging", removed_in="2026-07-28"),
        Method("tools/list", "tools", cached=True),
        Method("tools/call", "tools", mirrored="name", rounds=True),
        Method("resources/list", "resources", cached=True),
        Method("resources/templates/list", "resources", cached=True),
        Method("resources/read", "resources", mirrored="uri", cached=True, rounds=True),
        Method("resources/subscribe", "resources", removed_in="2026-07-28"),
        Method("resources/unsubscribe", "resources", removed_in="2026-07-28"),
        Method("prompts/list", "prompts", cached=True),
        Method("prompts/get", "prompts", mirrored="name", rounds=True),
        Method("completion/complete", "completions"),
        Method("subscriptions/listen", since="2026-07-28"),
    )
}


@dataclass(frozen=True, slots=True)
class ClientMethod:
    """A request that servers send.

    Attributes:
        name: on the wire.
        capability: the client capability that it needs.
        since: the first revision that has it.
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


def can_be_asked(method: str, revision: str) -> bool:
    """Tell whether a revision has a request that servers send. Revisions are dates, so they sort as text."""
    return CLIENT_METHODS[method].since <= revision


def methods_of(revision: str) -> dict[str, Method]:
    """Return the rows that a revision has. Revisions are dates, so they sort as text."""
    return {
        row.name: row
        for row in METHODS.values()
        if row.since <= revision and (row.removed_in is None or revision < row.removed_in)
    }
