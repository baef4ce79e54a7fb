"""The tracer of FastMCP, with which authors make spans of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._compat.spans import makes_spans
from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer


@public("funcmcp.compat.fastmcp.telemetry")
def get_tracer(version: str | None = None) -> Tracer:
    """Return the tracer ``fastmcp`` of OpenTelemetry. It makes no spans if ``FASTMCP_TELEMETRY_MODE`` disables them.

    Args:
        version: The version of the program that makes the spans.

    Raises:
        ImportError: The package `opentelemetry-api` is not installed.
    """
    from opentelemetry import trace  # noqa: PLC0415 - the package is optional

    return trace.get_tracer("fastmcp", version) if makes_spans(None) else trace.NoOpTracer()
