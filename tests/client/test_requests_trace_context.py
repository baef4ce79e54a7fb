"""The trace context that requests of a client carry."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    TraceFlags,
    TraceState,
    use_span,
)

from funcmcp import Context, MCPServer
from funcmcp._client.requests import trace_context
from funcmcp._serving.composition import runtime_of
from funcmcp.client import Client
from tests.server.parts import NEWEST, PER_REQUEST

if TYPE_CHECKING:
    from funcmcp._transports.http.messages import HttpResponse
    from funcmcp.testing import MemoryRequest

SPAN = NonRecordingSpan(SpanContext(0xA, 0xB, False, TraceFlags(1), TraceState([("vendor", "1")])))
TRACEPARENT = f"00-{10:032x}-{11:016x}-01"
CURRENT = {"traceparent": TRACEPARENT, "tracestate": "vendor=1"}

mcp = MCPServer("Traced")


@mcp.tool
def trace(context: Context) -> dict[str, str]:
    """Return the trace context of the client."""
    return context.trace


@pytest.mark.parametrize("revision", [NEWEST, PER_REQUEST])
async def test_each_request_carries_the_current_span(revision: str) -> None:
    serving = runtime_of(mcp)
    received: list[dict[str, Any]] = []

    async def exchange(request: MemoryRequest) -> HttpResponse:
        message = json.loads(request.body or b"{}")
        if "id" in message:
            received.append(message["params"].get("_meta", {}))
        return await serving.exchange(request)

    with use_span(SPAN):
        async with Client(exchange, revision=revision) as client:  # type: ignore[arg-type]
            assert (await client.call_tool("trace")).structured_content == CURRENT
    assert len(received) >= 2
    assert all(CURRENT.items() <= meta.items() for meta in received)


@pytest.mark.parametrize("revision", [NEWEST, PER_REQUEST])
async def test_a_trace_context_of_the_caller_is_sent_instead(revision: str) -> None:
    other = TRACEPARENT.replace("b", "c")
    async with Client(mcp, revision=revision) as client:
        with use_span(SPAN):
            params = {"name": "trace", "arguments": {}, "_meta": {"traceparent": other}}
            result = await client.request("tools/call", params)
    assert result["structuredContent"]["traceparent"] == other


async def test_without_a_current_span_there_is_no_trace_context() -> None:
    async with Client(mcp) as client:
        assert (await client.call_tool("trace")).structured_content == {}


@pytest.mark.parametrize("revision", [NEWEST, PER_REQUEST])
async def test_a_tool_sees_a_trace_context_of_http_headers(revision: str) -> None:
    async with Client(mcp, revision=revision, headers=CURRENT) as client:
        assert (await client.call_tool("trace")).structured_content == CURRENT


def test_a_program_without_opentelemetry_does_not_import_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "opentelemetry.trace")
    assert trace_context() == {}
    lines = "import sys; from funcmcp._client.requests import trace_context; trace_context(); print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=True).stdout
    assert "opentelemetry" not in modules
