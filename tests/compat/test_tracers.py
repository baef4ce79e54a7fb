"""The tracer of FastMCP for spans of authors."""

from __future__ import annotations

import pytest

from funcmcp.compat.fastmcp.telemetry import get_tracer


@pytest.mark.parametrize(("mode", "names"), [("native", ["parse"]), ("off", []), ("propagation_only", [])])
def test_spans_are_made_unless_the_environment_disables_them(
    mode: str, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    monkeypatch.setenv("FASTMCP_TELEMETRY_MODE", mode)
    with get_tracer("1.2").start_as_current_span("parse"):
        pass
    spans = exporter.get_finished_spans()
    assert [span.name for span in spans] == names
    assert {span.instrumentation_scope and span.instrumentation_scope.name for span in spans} <= {"fastmcp"}
