"""Spans of OpenTelemetry that FastMCP makes unasked."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from funcmcp.compat import Context, FastMCP
from funcmcp.compat.fastmcp.utilities.tests import temporary_settings
from funcmcp.testing import Client


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """Return the spans of the process's provider."""
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    return spans


def server(**options: Any) -> FastMCP:
    mcp = FastMCP("spans", **options)

    @mcp.tool
    async def outer(ctx: Context) -> str:
        await ctx.fastmcp.call_tool("inner")
        return "done"

    @mcp.tool
    def inner() -> str:
        return "done"

    @mcp.tool
    def fail() -> str:
        raise ValueError("went wrong")

    @mcp.resource("item://{name}")
    def item(name: str) -> str:
        return name

    return mcp


async def test_each_request_has_one_span(exporter: InMemorySpanExporter) -> None:
    async with Client(server(), revision="2025-11-25") as client:
        await client.list_tools()
        await client.call_tool("outer")
        await client.call_tool("fail")
        await client.read_resource("item://tea")
    spans = [span for span in exporter.get_finished_spans() if span.name != "initialize"]
    assert [span.name for span in spans] == ["tools/list", "tools/call outer", "tools/call fail", "resources/read"]
    attributes = [dict(span.attributes or {}) for span in spans]
    assert {member["fastmcp.server.name"] for member in attributes} == {"spans"}
    assert [member["fastmcp.component.type"] for member in attributes] == ["tool", "tool", "tool", "resource_template"]
    assert attributes[1]["fastmcp.component.key"] == "tool:outer@"
    assert attributes[3]["fastmcp.component.key"] == "template:item://{name}@"
    assert spans[2].status.description == "went wrong"


@pytest.mark.parametrize("mode", ["off", "propagation_only"])
async def test_a_server_may_have_no_spans(exporter: InMemorySpanExporter, mode: str) -> None:
    await server(telemetry_mode=mode).call_tool("inner")
    assert exporter.get_finished_spans() == ()


async def test_a_server_that_is_traced_has_no_further_spans(exporter: InMemorySpanExporter) -> None:
    mcp = server()
    mcp.trace()
    await mcp.call_tool("inner")
    assert len(exporter.get_finished_spans()) == 1


@pytest.mark.parametrize(("mode", "continues"), [("propagation_only", True), ("off", False)])
async def test_a_mode_of_the_process_makes_no_spans(mode: str, continues: bool, exporter: InMemorySpanExporter) -> None:
    traces: list[int] = []
    mcp = FastMCP("spans")

    @mcp.tool
    async def work() -> None:
        traces.append(trace.get_current_span().get_span_context().trace_id)

    with temporary_settings(telemetry_mode=mode):
        async with Client(mcp) as client:
            meta = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
            await client.call_tool("work", meta=meta)
    assert exporter.get_finished_spans() == ()
    assert traces == [0x4BF92F3577B34DA6A3CE929D0E0E4736 if continues else 0]
