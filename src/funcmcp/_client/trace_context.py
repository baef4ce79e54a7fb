"""The trace context of the caller, which requests carry to the server.

Source: SEP-414: ``traceparent``, ``tracestate`` and ``baggage`` in the ``_meta`` of a request.
"""

from __future__ import annotations

import sys


def trace_context() -> dict[str, str]:
    """Return what OpenTelemetry's propagators write for the current span and baggage.

    It is empty if the program does not use OpenTelemetry, which is then not imported.
    """
    if "opentelemetry.trace" not in sys.modules:
        return {}
    from opentelemetry.propagate import inject  # noqa: PLC0415 - as the docstring says

    carrier: dict[str, str] = {}
    inject(carrier)
    return carrier
