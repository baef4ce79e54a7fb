"""The tracer of FastMCP for spans of authors."""

from __future__ import annotations

import pytest

from funcmcp.compat.fastmcp.telemetry import (
    extract_trace_context,
    get_tracer,
    inject_trace_context,
    native_spans_enabled,
    suppress_fastmcp_telemetry,
    telemetry_mode,
)
from funcmcp.compat.fastmcp.utilities.tests import temporary_settings

PARENT = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}


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


@pytest.mark.parametrize(
    ("setting", "within"), [("native", "propagation_only"), ("propagation_only", "propagation_only"), ("off", "off")]
)
def test_a_block_suppresses_spans_and_no_more(setting: str, within: str) -> None:
    with temporary_settings(telemetry_mode=setting):
        with suppress_fastmcp_telemetry():
            assert (telemetry_mode(), native_spans_enabled()) == (within, False)
        assert telemetry_mode() == setting


def test_a_trace_is_passed_on_unless_telemetry_is_off() -> None:
    from opentelemetry.context import attach, detach, get_current
    from opentelemetry.trace import get_current_span

    parent = extract_trace_context({**PARENT, "other": 1})
    assert format(get_current_span(parent).get_span_context().trace_id, "032x") in PARENT["traceparent"]
    assert inject_trace_context({"other": 1}) == {"other": 1}
    assert inject_trace_context() is None
    token = attach(parent)
    try:
        assert inject_trace_context({"other": 1}) == {"other": 1, **PARENT}
        assert extract_trace_context(PARENT) is get_current()
        with temporary_settings(telemetry_mode="off"):
            assert inject_trace_context() is None
    finally:
        detach(token)
    with temporary_settings(telemetry_mode="off"):
        assert extract_trace_context(PARENT) is get_current()
