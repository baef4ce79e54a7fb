"""The members of `_meta` that belong to one connection, and those that are passed on.

Source: "basic/index, General fields, `_meta`" of every revision; SEP-414 for the trace context.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._client.requests import trace_context
from funcmcp._objects.mappings import without
from funcmcp._protocol import envelope
from funcmcp._protocol.tasks import IDEMPOTENCY_KEY, RELATED_TASK

if TYPE_CHECKING:
    from collections.abc import Mapping

_OF_CONNECTION = frozenset(
    {
        envelope.PROTOCOL_VERSION,
        envelope.CLIENT_CAPABILITIES,
        envelope.CLIENT_INFO,
        envelope.LOG_LEVEL,
        envelope.SERVER_INFO,
        envelope.SUBSCRIPTION_ID,
        IDEMPOTENCY_KEY,
        RELATED_TASK,
        "progressToken",
    }
)
"""Members that describe one of the two connections, or have an id that only one of them knows."""


def end_to_end(meta: object) -> dict[str, Any]:
    """Return the members of a `_meta` that are passed on. Empty if it is not an object."""
    if not isinstance(meta, dict):
        return {}
    return {name: value for name, value in meta.items() if name not in _OF_CONNECTION}


def with_end_to_end_meta(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return params of the upstream without the members of `_meta` that belong to its connection."""
    shown = without(params, "_meta")
    meta = end_to_end(params.get("_meta"))
    if meta:
        shown["_meta"] = meta
    return shown


def request_meta(meta: Mapping[str, Any], token: int | None) -> dict[str, Any]:
    """Return the `_meta` of a request for an upstream.

    The trace context of the client is left out if this server has a span: the request gets that of its own span.

    Args:
        meta: That of the client.
        token: The progress token for the upstream. None if it need not report progress.
    """
    passed = end_to_end(meta) if meta else {}
    passed = without(passed, *trace_context())
    if token is not None:
        passed["progressToken"] = token
    return passed
