"""The check whether a client declared the capabilities that a question to it needs.

Source: "basic/lifecycle, Capability Negotiation"; "client/elicitation", "client/sampling" and "client/roots".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._protocol.jsonrpc import without_nulls
from funcmcp._protocol.methods import CLIENT_METHODS, can_be_asked

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from funcmcp._server.connections.client import Client


def missing_capability(client: Client, question: Mapping[str, Any]) -> dict[str, Any]:
    """Return the capabilities that a question needs and the client lacks, in the shape of ClientCapabilities."""
    capability = CLIENT_METHODS[question["method"]].capability
    declared = client.capabilities.get(capability)
    if not isinstance(declared, dict) or not can_be_asked(question["method"], client.revision.date):
        return {capability: {}}
    declared = without_nulls(declared)
    needed = _SUB_CAPABILITIES[capability](question["params"])
    if "form" in needed and "url" not in declared:
        return {}  # a client that names no mode can show forms
    missing: dict[str, Any] = {name: {} for name in needed if name not in declared}
    return {capability: missing} if missing else {}


def _sampling_needs(params: Mapping[str, Any]) -> list[str]:
    needed = ["tools"] if "tools" in params or "toolChoice" in params else []
    return [*needed, "context"] if params.get("includeContext", "none") != "none" else needed


_SUB_CAPABILITIES: dict[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "elicitation": lambda params: [params.get("mode", "form")],
    "sampling": _sampling_needs,
    "roots": lambda _: [],
}
