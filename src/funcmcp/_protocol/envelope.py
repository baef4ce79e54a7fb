"""The `_meta` of requests in the per-request era.

Source: 2026-07-28 "basic/index, General fields, `_meta`": protocol version and client capabilities are required,
client info and log level are optional.
"""

from __future__ import annotations

from typing import Any

from funcmcp._protocol.errors import UNSUPPORTED_PROTOCOL_VERSION, InvalidParams, MCPError
from funcmcp._protocol.jsonrpc import without_nulls
from funcmcp._protocol.levels import LEVELS
from funcmcp._protocol.revisions import REVISIONS

PREFIX = "io.modelcontextprotocol/"
PROTOCOL_VERSION = PREFIX + "protocolVersion"
CLIENT_CAPABILITIES = PREFIX + "clientCapabilities"
CLIENT_INFO = PREFIX + "clientInfo"
LOG_LEVEL = PREFIX + "logLevel"
SERVER_INFO = PREFIX + "serverInfo"
SUBSCRIPTION_ID = PREFIX + "subscriptionId"
PROGRESS_TOKEN = "progressToken"  # noqa: S105 - the name of a member
_PROGRESS_TOKENS = frozenset({str, int, float})


def carries_version(params: object) -> bool:
    """Return whether the params of a message have a protocol version, which selects the per-request era."""
    if type(params) is not dict:
        return False
    meta = params.get("_meta")
    return type(meta) is dict and PROTOCOL_VERSION in meta


def read_meta(params: dict[str, Any]) -> dict[str, Any]:
    """Return the `_meta` of a request; raise InvalidParams if a member is missing or has the wrong type."""
    meta = params.get("_meta")
    if type(meta) is dict and None in meta.values():
        meta = without_nulls(meta)
    if type(meta) is not dict:
        raise InvalidParams(f'"_meta" must be an object with "{PROTOCOL_VERSION}" and "{CLIENT_CAPABILITIES}".')
    if type(meta.get(PROTOCOL_VERSION)) is not str:
        raise InvalidParams(f'"_meta" must have "{PROTOCOL_VERSION}", a string.')
    if type(meta.get(CLIENT_CAPABILITIES)) is not dict:
        raise InvalidParams(f'"_meta" must have "{CLIENT_CAPABILITIES}", an object.')
    if CLIENT_INFO in meta and type(meta[CLIENT_INFO]) is not dict:
        raise InvalidParams(f'"{CLIENT_INFO}" must be an object.')
    if LOG_LEVEL in meta and not (type(meta[LOG_LEVEL]) is str and meta[LOG_LEVEL] in LEVELS):
        raise InvalidParams(f'"{LOG_LEVEL}" must be one of {", ".join(LEVELS)}.')
    if PROGRESS_TOKEN in meta and type(meta[PROGRESS_TOKEN]) not in _PROGRESS_TOKENS:
        raise InvalidParams(f'"{PROGRESS_TOKEN}" must be a string or a number.')
    return meta


def unsupported_version(requested: str, supported: list[str]) -> MCPError:
    """Return the error -32022 for a revision that the server does not support.

    A revision in ``_meta`` that begins with a handshake is refused, too. Then only those that ``_meta`` may name are
    supported, if there are any: a client that sends the request again takes one of the list.
    """
    if requested in supported:
        supported = [date for date in supported if REVISIONS[date].per_request] or supported
    return MCPError(
        UNSUPPORTED_PROTOCOL_VERSION,
        "Unsupported protocol version",
        {"supported": supported, "requested": requested[:200]},
    )
