"""Spans and metrics of the requests to upstreams."""

from __future__ import annotations

import contextlib
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from funcmcp import MCPError, MCPServer
from funcmcp.client import Client
from funcmcp.upstreams import Upstream
from tests.upstreams.scripted import Exchange, scripted_server
from tests.upstreams.test_failures import reset


async def failed_tool(exchange: Exchange) -> None:
    exchange.result({"content": [], "isError": True})


async def fault(exchange: Exchange) -> None:
    exchange.write(
        "200 OK", b'{"jsonrpc": "2.0", "id": %d, "error": {"code": -32099, "message": "no"}}' % exchange.message["id"]
    )


async def test_each_request_to_an_upstream_has_a_client_span_within_that_of_its_request() -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    mcp = MCPServer("Desk")
    mcp.trace(provider)
    async with scripted_server() as scripted:
        mcp.mount(Upstream(scripted.url, name="scripted"), prefix="up")
        async with Client(mcp, revision="2025-11-25") as client:
            await client.list_tools()
            exporter.clear()
            await client.call_tool("up_act")
            request, own = exporter.get_finished_spans()[0], exporter.get_finished_spans()[-1]
            assert (request.name, request.kind) == ("tools/call act", SpanKind.CLIENT)
            assert own.name == "tools/call up_act"
            assert request.parent is not None
            assert request.parent.span_id == own.context.span_id
            assert dict(request.attributes or {}) == {
                "mcp.method.name": "tools/call",
                "mcp.protocol.version": "2025-11-25",
                "network.transport": "tcp",
                "funcmcp.upstream.name": "scripted",
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "act",
            }
            outcomes = []
            for answer in (failed_tool, fault, reset):
                exporter.clear()
                scripted.answers.append(answer)
                with contextlib.suppress(MCPError):
                    await client.call_tool("up_act")
                spans = [span for span in exporter.get_finished_spans() if span.kind is SpanKind.CLIENT]
                outcomes.append((spans[0].attributes or {})["error.type"])
                assert spans[0].status.status_code is StatusCode.ERROR
            assert outcomes == ["tool_error", "-32099", "UpstreamError"]
    provider.shutdown()


async def test_the_upstream_gets_the_span_of_its_request_as_trace_context() -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    metas: list[dict[str, Any]] = []

    async def record(exchange: Exchange) -> None:
        metas.append(exchange.message["params"].get("_meta", {}))
        exchange.text("done")

    mcp = MCPServer("Desk")
    mcp.trace(provider)
    async with scripted_server() as scripted:
        mcp.mount(Upstream(scripted.url, name="scripted"), prefix="up")
        async with Client(mcp, revision="2025-11-25") as client:
            scripted.answers.append(record)
            await client.call_tool("up_act")
    (span,) = [span for span in exporter.get_finished_spans() if span.name == "tools/call act"]
    assert metas[0]["traceparent"].startswith(f"00-{span.context.trace_id:032x}-{span.context.span_id:016x}-")
    provider.shutdown()


async def test_requests_sessions_failures_and_returns_of_upstreams_are_measured() -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    mcp = MCPServer("Desk")
    mcp.measure(provider)
    async with scripted_server() as scripted:
        mcp.mount(Upstream(scripted.url, name="scripted"), prefix="up")
        async with Client(mcp, revision="2025-11-25") as client:
            await client.call_tool("up_act")
            scripted.answers.append(reset)
            await client.call_tool("up_act")
            await client.call_tool("up_act")
            points = points_of(reader)
    assert points["funcmcp.upstream.sessions"]["scripted"] >= 2
    assert points["funcmcp.upstream.failures"] == {"scripted": 1}
    assert points["funcmcp.upstream.reconnects"] == {"scripted": 1}
    durations = points["mcp.client.operation.duration"]
    assert durations["tools/call", "act", None] == 2
    assert durations["tools/call", "act", "UpstreamError"] == 1
    provider.shutdown()


def points_of(reader: InMemoryMetricReader) -> dict[str, dict[Any, Any]]:
    data = reader.get_metrics_data()
    assert data is not None
    points: dict[str, dict[Any, Any]] = {}
    for metric in data.resource_metrics[0].scope_metrics[0].metrics:
        values = points.setdefault(metric.name, {})
        for point in metric.data.data_points:
            attributes = point.attributes or {}
            if hasattr(point, "count"):
                names = ("mcp.method.name", "gen_ai.tool.name", "error.type")
                values[tuple(attributes.get(name) for name in names)] = point.count
            else:
                values[attributes.get("funcmcp.upstream.name")] = point.value
    return points
