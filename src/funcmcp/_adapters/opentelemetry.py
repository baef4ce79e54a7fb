"""OpenTelemetry: a span around each request that a server runs, within the trace that its client began.

The run of a task has a span in a trace of its own, with a link to the span of the request that created the task: a run
may begin long after the request, in another process, and more than once.

A server that is not traced does not load this module.

Source: OpenTelemetry "Semantic conventions for Model Context Protocol (MCP)", server spans (in development: names may
still change); SEP-414 for the trace context in ``params._meta``.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import threading
from contextvars import copy_context
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

try:
    from opentelemetry.context import Context as TraceContext
    from opentelemetry.context import attach, detach, get_current
    from opentelemetry.propagate import extract
    from opentelemetry.trace import (
        Link,
        SpanKind,
        Status,
        StatusCode,
        get_current_span,
        get_tracer,
        get_tracer_provider,
    )
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ModuleNotFoundError as error:
    raise ModuleNotFoundError('Traces need: pip install "funcmcp[otel]"', name=error.name) from None

from funcmcp._protocol import errors
from funcmcp._protocol.codec import decode
from funcmcp._protocol.methods import METHODS
from funcmcp._protocol.tasks import COMPLETED, FAILED, INPUT_REQUIRED
from funcmcp._server.exception_groups import members_of
from funcmcp._server.log import text_of, traceback_of
from funcmcp._server.tasks.service import task_digest
from funcmcp._server.tasks.worker import NoOutcome
from funcmcp._state.tasks.record import Outcome
from funcmcp._version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from opentelemetry.trace import Span, TracerProvider

    from funcmcp._protocol.replies import Reply
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.calls.task_call import TaskContext
    from funcmcp._server.calls.upstream_call import Around, Send, UpstreamCall
    from funcmcp._server.middleware import CallNext, Middleware
    from funcmcp._server.tasks.worker import RunEnd
    from funcmcp._state.tasks.record import Claim

CLIENT_FAULTS = frozenset(
    {
        errors.PARSE_ERROR,
        errors.INVALID_REQUEST,
        errors.METHOD_NOT_FOUND,
        errors.INVALID_PARAMS,
        errors.RESOURCE_NOT_FOUND,
    }
)
"""Codes of errors that are the caller's own: the server did its work, so its span did not fail."""

_NAMED_BY = {"tools/call": "gen_ai.tool.name", "prompts/get": "gen_ai.prompt.name"}
_OTHER = "_OTHER"  # the conventions' word for what has no name of its own
_LONGEST, _LONGEST_TEXT = 256, 1024
_MAX_EVENTS = 10

_FLUSH_SECONDS = 1.0
"""Seconds to send the last spans, or the last metrics, when the server ends."""

_SAYS_ERROR = b'"isError":true'


def tracing(tracer_provider: TracerProvider | None = None, *, exceptions: bool = False) -> Middleware:
    """Return middleware that makes a span of every request.

    The span is current while the request's function runs, in worker threads too, so that spans which the function
    makes itself are its children. It has names and codes, never arguments or results.

    Args:
        tracer_provider: Makes the spans; the process's global one by default.
        exceptions: Whether spans have the texts and the tracebacks of exceptions.
    """
    tracer = get_tracer("funcmcp", VERSION, tracer_provider)

    async def trace(context: RequestContext, call_next: CallNext) -> Reply:
        parent, links = _origin(context)
        name, attributes = _name(context), _attributes(context)
        token = attach(parent)  # the span alone would not bring the client's baggage along
        try:
            with tracer.start_as_current_span(name, None, SpanKind.SERVER, attributes, links) as span:
                context.log_variables = copy_context()
                reply = await call_next(context)
                if span.is_recording():
                    _set_outcome(span, reply, context.error if exceptions else None)
                    _add_exception(span, context.error, has_text=exceptions)
                return reply
        finally:
            detach(token)

    return trace


def tracing_upstreams(tracer_provider: TracerProvider | None = None) -> Around:
    """Return what makes a span of every request to an upstream, within the span of the request that it is made for.

    The span has names and codes, never arguments or results. Its context is that which the upstream gets.

    Args:
        tracer_provider: Makes the spans; the process's global one by default.
    """
    tracer = get_tracer("funcmcp", VERSION, tracer_provider)

    async def trace(call: UpstreamCall, send: Send) -> dict[str, Any]:
        target = call.params.get("name") if call.method in _NAMED_BY else None
        name = call.method if target is None else f"{call.method} {target}"
        with tracer.start_as_current_span(
            name[:_LONGEST],
            None,
            SpanKind.CLIENT,
            upstream_attributes(call),
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                result = await send()
            except errors.MCPError as error:
                _set_error(span, error.code, error.message)
                raise
            except Exception as error:
                _fail(span, type(error).__qualname__)
                raise
            if result.get("isError") is True:
                _fail(span, "tool_error")
            return result

    return trace


def upstream_attributes(call: UpstreamCall) -> dict[str, str]:
    """Return the attributes of a request to an upstream."""
    attributes: dict[str, Any] = {
        "mcp.method.name": call.method,
        "mcp.protocol.version": call.revision,
        "network.transport": call.network_transport,
        "funcmcp.upstream.name": call.upstream,
        "gen_ai.operation.name": "execute_tool" if call.method == "tools/call" else None,
        "mcp.resource.uri": call.params.get("uri"),
    }
    if call.method in _NAMED_BY:
        attributes[_NAMED_BY[call.method]] = call.params.get("name")
    return {key: value[:_LONGEST] for key, value in attributes.items() if type(value) is str}


class Flush:
    """Exports the last spans or metrics of a provider when a server ends.

    The SDK does so in a function of `atexit`, which uvicorn does not call: a signal ends its process.

    Args:
        provider: Returns the provider.
    """

    def __init__(self, provider: Callable[[], object]) -> None:
        self._provider = provider
        self._thread: threading.Thread | None = None

    async def __call__(self) -> None:
        """Wait until all is sent, for `_FLUSH_SECONDS` at most. Do nothing while the thread of an earlier call runs."""
        force_flush = getattr(self._provider(), "force_flush", None)
        is_flushing = self._thread is not None and self._thread.is_alive()
        if force_flush is None or is_flushing:  # a program without an SDK has no such function
            return
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()

        def run() -> None:
            with contextlib.suppress(Exception):  # the SDK logs its own failures
                force_flush(int(_FLUSH_SECONDS * 1000))
            with contextlib.suppress(RuntimeError):  # the event loop has ended
                loop.call_soon_threadsafe(ended.set)

        self._thread = threading.Thread(target=run, name="funcmcp flush", daemon=True)  # it must not keep the process
        self._thread.start()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FLUSH_SECONDS):
                await ended.wait()


def flush_spans(tracer_provider: TracerProvider | None) -> Flush:
    """Return the flush of a provider's spans, by default of the global provider."""
    return Flush(lambda: get_tracer_provider() if tracer_provider is None else tracer_provider)


class TaskTracing:
    """Makes a span of every run of a task.

    Args:
        tracer_provider: Makes the spans; the process's global one by default.
        exceptions: Whether spans have the texts and the tracebacks of exceptions.
    """

    def __init__(self, tracer_provider: TracerProvider | None = None, *, exceptions: bool = False) -> None:
        self._exceptions = exceptions
        self._tracer = get_tracer("funcmcp", VERSION, tracer_provider)

    def traceparent(self) -> str | None:
        """Return the current span, as the header `traceparent` names it; None without a span."""
        carrier: dict[str, str] = {}
        _W3C.inject(carrier)
        return carrier.get("traceparent")

    async def trace(self, context: TaskContext, claim: Claim, run: Callable[[], Coroutine[Any, Any, RunEnd]]) -> RunEnd:
        """Run the tool of a task within a span."""
        record = claim.record
        attributes: dict[str, str | int | float] = {
            "mcp.method.name": "tools/call",
            "mcp.protocol.version": context.client.revision.date,
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": record.tool[:_LONGEST],
            "mcp.task.id": task_digest(record.key.task_id),
            "mcp.task.attempt": record.attempt,
            "mcp.task.wait_seconds": max(0.0, claim.now - record.updated),
        }
        token = attach(TraceContext())  # not that of the request during which this process began to run tasks
        try:
            with self._tracer.start_as_current_span(
                f"execute_tool {record.tool}", None, SpanKind.CONSUMER, attributes, _links_to(context.traceparent)
            ) as span:
                end = await run()
                if span.is_recording():
                    _set_end(span, end)
                    _add_exception(span, context.error, has_text=self._exceptions)
                return end
        finally:
            detach(token)


_W3C = TraceContextTextMapPropagator()


def _links_to(traceparent: str | None) -> list[Link]:
    """Return a link to a span, if the text names one."""
    if traceparent is None:
        return []
    span = get_current_span(_W3C.extract({"traceparent": traceparent}, TraceContext())).get_span_context()
    return [Link(span)] if span.is_valid else []


def _set_end(span: Span, end: RunEnd) -> None:
    """Set the status of the task after a run."""
    if isinstance(end, NoOutcome):
        return
    if not isinstance(end, Outcome):
        span.set_attribute("mcp.task.status", INPUT_REQUIRED)
    elif end.is_error:
        error = decode(end.text)
        span.set_attribute("mcp.task.status", FAILED)
        _set_error(span, error["code"], error.get("message"))
    else:
        span.set_attribute("mcp.task.status", COMPLETED)
        if end.tool_failed:
            _fail(span, "tool_error")


def _origin(context: RequestContext) -> tuple[TraceContext, list[Link]]:
    """Return the trace that a request belongs to, and a link to the span around it if that belongs to another trace.

    The trace context in the message's `_meta` precedes the span of an instrumented ASGI server. Without such a span,
    the HTTP headers are read.
    """
    outer = get_current()
    outer_span = get_current_span(outer).get_span_context()
    if not outer_span.is_valid and context.http is not None:
        outer = extract(context.http.headers, outer)
    parent = extract({key: value for key, value in context.meta.items() if type(value) is str}, outer)
    parent_span = get_current_span(parent).get_span_context()
    if outer_span.is_valid and outer_span != parent_span:
        return parent, [Link(outer_span)]
    return parent, []


def _name(context: RequestContext) -> str:
    """Return the span's name. Only names of features are part of it, so that there are few of them."""
    method = context.request.method
    if method in _NAMED_BY and context.feature is not None:
        return f"{method} {context.feature.key}"
    return method_name(context)


def method_name(context: RequestContext) -> str:
    """Return the method of a request; `_OTHER` for one that neither MCP nor the server has."""
    method = context.request.method
    return method if method in METHODS or context.routed.route is not None else _OTHER


def _attributes(context: RequestContext) -> dict[str, Any]:
    """Return the attributes of a request that has not run yet."""
    request, client = context.request, context.client
    method, params = request.method, request.params
    attributes: dict[str, Any] = {
        "mcp.method.name": method_name(context),
        "mcp.protocol.version": client.revision.date,
        "mcp.session.id": _digest(client.session_id) if client.session_id else None,
        "jsonrpc.request.id": str(request.id),
        "network.transport": context.network_transport,
        "gen_ai.operation.name": "execute_tool" if method == "tools/call" else None,
        "mcp.resource.uri": params.get("uri") if method in METHODS and METHODS[method].named_by == "uri" else None,
    }
    if method in _NAMED_BY:
        attributes[_NAMED_BY[method]] = params.get("name")
    chosen: dict[str, Any] = {key: value[:_LONGEST] for key, value in attributes.items() if type(value) is str}
    if context.http is not None and context.network_transport is not None:
        chosen.update(_server_address(context.http.url))
    return chosen


def _server_address(url: str) -> dict[str, str | int]:
    """Return the host and the port in the URL of a request; nothing if its Host header is malformed."""
    try:
        parts = urlsplit(url)
        address, port = parts.hostname, parts.port
    except ValueError:  # a server that takes any Host gets malformed ones as well
        return {}
    if address is None:
        return {}
    if port is None:
        port = 443 if parts.scheme == "https" else 80
    return {"server.address": address[:_LONGEST], "server.port": port}


def _digest(session_id: str) -> str:
    """Return a digest of a session id. Readers of traces could join the session with the id itself."""
    return hashlib.sha256(session_id.encode()).hexdigest()[:16]


def _set_outcome(span: Span, reply: Reply, error: BaseException | None) -> None:
    """Set the attributes and the status of an answer; *error* gives a failed tool its description."""
    outcome = outcome_of(reply)
    span.set_attributes(outcome)
    if "error.type" in outcome:
        message = None if error is None else text_of(error)[:_LONGEST_TEXT]
        if reply.error is not None:
            message = reply.message()["error"].get("message")
        span.set_status(Status(StatusCode.ERROR, message))


def _add_exception(span: Span, error: BaseException | None, *, has_text: bool) -> None:
    """Add an event for an exception; for a group one for each of its first members.

    Without texts it has the type alone, and there is none for exceptions that are answers to the caller.
    """
    if error is None:
        return
    for member in members_of(error)[:_MAX_EVENTS]:
        kind = type(member)
        attributes = {"exception.type": f"{kind.__module__}.{kind.__qualname__}"}
        if has_text:
            attributes["exception.message"] = text_of(member)[:_LONGEST_TEXT]
            attributes["exception.stacktrace"] = traceback_of(member)
        if has_text or not isinstance(member, errors.ToolError | errors.MCPError):
            span.add_event("exception", attributes)


def outcome_of(reply: Reply) -> dict[str, str]:
    """Return the attributes that say how a request failed; none if it did not."""
    if reply.error is not None:
        code = str(reply.error)
        attributes = {"rpc.response.status_code": code}
        if reply.error not in CLIENT_FAULTS:
            attributes["error.type"] = code
        return attributes
    if _SAYS_ERROR in reply.body and reply.message()["result"].get("isError") is True:
        return {"error.type": "tool_error"}
    return {}


def _set_error(span: Span, code: int, message: str | None) -> None:
    span.set_attribute("rpc.response.status_code", str(code))
    if code not in CLIENT_FAULTS:
        _fail(span, str(code), message)


def _fail(span: Span, kind: str, message: str | None = None) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR, message))
