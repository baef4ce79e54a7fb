"""The tracer of FastMCP, with which authors make spans of their own, and what disables FastMCP's spans."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from funcmcp._compat.unasked_spans import SUPPRESSED, mode_of
from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.context import Context
    from opentelemetry.trace import Tracer

_MEMBERS = ("traceparent", "tracestate")


@public("funcmcp.compat.fastmcp.telemetry")
def get_tracer(version: str | None = None) -> Tracer:
    """Return the tracer ``fastmcp`` of OpenTelemetry. It makes no spans if the `telemetry_mode` disables them.

    Args:
        version: The version of the program that makes the spans.

    Raises:
        ImportError: The package `opentelemetry-api` is not installed.
    """
    from opentelemetry import trace  # noqa: PLC0415 - the package is optional

    return trace.get_tracer("fastmcp", version) if native_spans_enabled() else trace.NoOpTracer()


@public("funcmcp.compat.fastmcp.telemetry")
def telemetry_mode() -> str:
    """Return ``"native"``, ``"propagation_only"`` or ``"off"``: what ``fastmcp.settings.telemetry_mode`` says.

    Within `suppress_fastmcp_telemetry` it is ``"propagation_only"`` in place of ``"native"``.
    """
    return mode_of(None)


@public("funcmcp.compat.fastmcp.telemetry")
def native_spans_enabled() -> bool:
    """Return whether servers make spans of their requests unasked."""
    return telemetry_mode() == "native"


@public("funcmcp.compat.fastmcp.telemetry")
@contextmanager
def suppress_fastmcp_telemetry() -> Iterator[None]:
    """Make no spans of requests within a block. Traces are still passed on.

    Raises:
        ImportError: The package `opentelemetry-api` is not installed.
    """
    from opentelemetry.context import attach, detach, set_value  # noqa: PLC0415 - the package is optional

    token = attach(set_value(SUPPRESSED, value=True))
    try:
        yield
    finally:
        detach(token)


@public("funcmcp.compat.fastmcp.telemetry")
def inject_trace_context(meta: dict[str, Any] | None = None) -> dict[str, Any] | None:
    """Return the ``_meta`` of a request with the current trace; unchanged without a trace, or in the mode ``"off"``.

    Args:
        meta: The ``_meta`` so far.

    Raises:
        ImportError: The package `opentelemetry-api` is not installed.
    """
    from opentelemetry.propagate import inject  # noqa: PLC0415 - the package is optional

    carrier: dict[str, str] = {}
    if telemetry_mode() != "off":
        inject(carrier)
    trace = {name: carrier[name] for name in _MEMBERS if name in carrier}
    return {**(meta or {}), **trace} if trace else meta


@public("funcmcp.compat.fastmcp.telemetry")
def extract_trace_context(meta: dict[str, Any] | None) -> Context:
    """Return OpenTelemetry's context with the trace of a request; the current one if that has a trace already.

    Args:
        meta: The ``_meta`` of the request.

    Raises:
        ImportError: The package `opentelemetry-api` is not installed.
    """
    from opentelemetry import trace  # noqa: PLC0415 - the package is optional
    from opentelemetry.context import get_current  # noqa: PLC0415 - as above
    from opentelemetry.propagate import extract  # noqa: PLC0415 - as above

    current = get_current()
    if telemetry_mode() == "off" or trace.get_current_span().get_span_context().is_valid:
        return current
    carrier = {name: value for name, value in (meta or {}).items() if name in _MEMBERS}
    return extract(carrier, current) if carrier else current
