"""The transport for each kind of target."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp import MCPServer
from funcmcp._client.http_exchange import HTTPTransport
from funcmcp._client.stdio import StdioTransport
from funcmcp._client.streamable_http import MemoryTransport, StreamableHTTP
from funcmcp._client.target_transports import transport_for
from funcmcp.client import HTTPEndpoint, StdioCommand


async def exchange(request: Any) -> Any:
    raise NotImplementedError


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        ("http://127.0.0.1:9/mcp", HTTPTransport),
        (HTTPEndpoint("http://127.0.0.1:9/mcp"), HTTPTransport),
        (StdioCommand("uvx"), StdioTransport),
        (MCPServer("shop"), MemoryTransport),
        (exchange, StreamableHTTP),
    ],
    ids=["URL", "endpoint", "command", "server", "exchange"],
)
def test_each_target_has_its_transport(target: Any, kind: type) -> None:
    transport = transport_for(target, {})
    assert type(transport) is kind
    assert transport_for(transport, {}) is transport


def test_other_targets_are_errors() -> None:
    with pytest.raises(TypeError, match=r"got int\.$"):
        transport_for(5, {})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^headers are for HTTP\."):
        transport_for(StdioCommand("uvx"), {"x-key": "1"})
