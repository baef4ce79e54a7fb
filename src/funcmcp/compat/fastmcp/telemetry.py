"""Names of `fastmcp.telemetry` that `funcmcp.compat` has. Written by scripts/compat_trees.py."""

from typing import TYPE_CHECKING

from funcmcp._compat.module_trees import names_of

if TYPE_CHECKING:
    from funcmcp._compat.tracers import extract_trace_context as extract_trace_context
    from funcmcp._compat.tracers import get_tracer as get_tracer
    from funcmcp._compat.tracers import inject_trace_context as inject_trace_context
    from funcmcp._compat.tracers import native_spans_enabled as native_spans_enabled
    from funcmcp._compat.tracers import suppress_fastmcp_telemetry as suppress_fastmcp_telemetry
    from funcmcp._compat.tracers import telemetry_mode as telemetry_mode
else:
    __getattr__, __dir__, __all__ = names_of(__name__, {
        "funcmcp._compat.tracers": [
            "extract_trace_context",
            "get_tracer",
            "inject_trace_context",
            "native_spans_enabled",
            "suppress_fastmcp_telemetry",
            "telemetry_mode",
        ],
    })
