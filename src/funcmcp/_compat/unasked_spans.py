"""Spans of OpenTelemetry that FastMCP makes unasked, in programs that have set up an SDK of OpenTelemetry.

How it works: the outermost middleware of a server makes the span of `MCPServer.trace` for each request, with further
attributes under FastMCP's names. A call that runs within another request has no span of its own.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from funcmcp._compat import authorization
from funcmcp._compat.context import context_variable
from funcmcp._compat.server_settings import PROCESS_VALUES
from funcmcp._objects.mappings import without_none
from funcmcp._server.catalog.visibility import kind_of

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from funcmcp._protocol.replies import Reply
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.middleware import CallNext, Middleware

_TYPES = {
    "template": "resource_template",
    "tools/list": "tool",
    "resources/list": "resource",
    "resources/templates/list": "resource_template",
    "prompts/list": "prompt",
}
"""FastMCP's types of components, by the kind of a feature if that has another name, and by the method of a list."""
_MAX_TEXT = 1000


SUPPRESSED = "funcmcp_suppress_fastmcp_telemetry"
"""The member of OpenTelemetry's context within `suppress_fastmcp_telemetry`."""


def mode_of(option: str | None) -> str:
    """Return the ``telemetry_mode`` that counts now: ``"native"``, ``"propagation_only"`` or ``"off"``.

    Args:
        option: FastMCP's option of a server; None for ``fastmcp.settings.telemetry_mode``, or that of the environment.
    """
    setting = PROCESS_VALUES.get("telemetry_mode") or os.environ.get("FASTMCP_TELEMETRY_MODE")
    mode: str = option or setting or "native"
    if mode == "native" and "opentelemetry.context" in sys.modules:
        from opentelemetry.context import get_value  # noqa: PLC0415 - the package is optional

        return "propagation_only" if get_value(SUPPRESSED) else mode
    return mode


async def _in_trace(request: RequestContext, call_next: CallNext) -> Reply:
    """Answer a request within the trace that its ``_meta`` names, without a span of its own."""
    from opentelemetry.context import attach, detach  # noqa: PLC0415 - the package is optional
    from opentelemetry.propagate import extract  # noqa: PLC0415 - as above

    token = attach(extract({name: value for name, value in request.meta.items() if isinstance(value, str)}))
    try:
        return await call_next(request)
    finally:
        detach(token)


class UnaskedSpans:
    """The middleware that makes the spans.

    Args:
        server: The name of the server.
        mode: FastMCP's ``telemetry_mode``: there are spans in the mode ``"native"``. None: the one of the process.

    Attributes:
        is_off: Whether there are no spans because the server is traced in another way.
    """

    def __init__(self, server: str, mode: str | None) -> None:
        self.is_off: bool = False
        self._mode = mode
        self._server = server
        self._trace: Middleware | None = None

    def __call__(self, request: RequestContext, call_next: CallNext) -> Coroutine[Any, Any, Reply]:
        """Make the span of a request."""
        if self.is_off or "opentelemetry.sdk.trace" not in sys.modules:
            return call_next(request)
        if request.outer is not None or context_variable.get() is not None:
            return call_next(request)
        mode = mode_of(self._mode)
        if mode == "off":
            return call_next(request)
        return self._traced(request, call_next) if mode == "native" else _in_trace(request, call_next)

    async def _traced(self, request: RequestContext, call_next: CallNext) -> Reply:
        if self._trace is None:
            from funcmcp._adapters.opentelemetry import tracing  # noqa: PLC0415 - vendor code

            self._trace = tracing(exceptions=True)

        async def described(request: RequestContext, /) -> Reply:
            from opentelemetry.trace import get_current_span  # noqa: PLC0415 - as above

            span = get_current_span()
            if span.is_recording():
                span.set_attributes(self._attributes(request))
            return await call_next(request)

        reply: Reply = await self._trace(request, described)
        return reply

    def _attributes(self, request: RequestContext) -> dict[str, str]:
        """Return the attributes of a request under FastMCP's names."""
        attributes: dict[str, Any] = {"fastmcp.server.name": self._server}
        attributes["fastmcp.component.type"] = _TYPES.get(request.request.method)
        if request.feature is not None:
            kind = kind_of(request.feature)
            attributes["fastmcp.component.type"] = _TYPES.get(kind, kind)
            attributes["fastmcp.component.key"] = f"{kind}:{request.feature.key}@{request.feature.version or ''}"
        token = authorization.caller_of(request).token
        if token is not None:
            attributes["enduser.id"] = token.subject or token.client_id
            attributes["enduser.scope"] = " ".join(token.scopes) or None
        return {name: str(value)[:_MAX_TEXT] for name, value in without_none(attributes).items()}
