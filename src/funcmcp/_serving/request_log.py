"""Records about the requests that a server answers: what was asked for, how it ended, who asked, and the time.

How it works: there are two parts. The function around the server's exchange starts the clock of an HTTP request, and
passes on the entries after the last byte of the response. In between, the middleware makes a `LoggedRequest` for each
JSON-RPC request (a batch has several) and notes how it ended. A context variable connects them: it holds the entries of
the HTTP request that the task serves. On transports without HTTP the middleware passes on the entry itself.

The line of a request is written after its span has ended. It is written in the context variables of the span, so that
it belongs to the span.

While a request runs, it is also `funcmcp._server.log.current_request`, from which records about failures and the lines
of JSON take its id.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple, Protocol

from funcmcp._middleware.request_log import OK, is_tool_error, outcome_of
from funcmcp._protocol.methods import METHODS
from funcmcp._server.log import LoggedRequest, current_request
from funcmcp._server.log_output import REQUESTS
from funcmcp._text.visible import visible_line, visible_url
from funcmcp._transports.http.endpoints.application_response import ApplicationResponse
from funcmcp._transports.http.messages import HttpResponse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from typing import TypeAlias

    from funcmcp._auth.principal import Principal
    from funcmcp._protocol.replies import Reply
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.middleware import CallNext, Middleware
    from funcmcp._transports.http.messages import Exchange, HttpRequest

_MAX_TEXT = 100
"""Characters of a client's text in a line."""

_HTTP_OK = 200
_FIRST_FAILURE = 400
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:+/=@-]{1,128}")
"""What the header X-Request-ID may be, so that it can be searched for and is no other field of a line."""

_PLAIN = re.compile(r"[\w.@:/+-]+", re.ASCII)
"""Values that stand in a line without quotation marks."""


class HasPrincipal(Protocol):
    """An HTTP request that may have credentials."""

    @property
    def principal(self) -> Principal | None:
        """Its principal; None for an anonymous caller."""


class Entry(NamedTuple):
    """An answered request.

    Attributes:
        request: The request, with its outcome.
        status: The HTTP status; 0 on transports without HTTP.
        seconds: The time from the request's arrival to the last byte of the response.
    """

    request: LoggedRequest
    status: int
    seconds: float

    def write_with(self, write: Write) -> None:
        """Pass the entry to a function, within the span of the request if there is one."""
        variables = self.request.variables
        if variables is None:
            write(self)
        else:
            variables.run(write, self)

    @property
    def is_failure(self) -> bool:
        """Whether the request has failed."""
        return self.status >= _FIRST_FAILURE or self.request.outcome not in ("", OK)

    @property
    def text(self) -> str:
        """The entry in words: method, name, outcome or status, and milliseconds."""
        parts = [self.request.method, self.request.name, self.request.outcome]
        if not self.request.outcome or self.status not in (0, _HTTP_OK):
            parts.append(str(self.status))
        return f"{' '.join(filter(None, parts))} {self.seconds * 1000:.1f} ms"


Write: TypeAlias = "Callable[[Entry], None]"

_entries: ContextVar[list[LoggedRequest] | None] = ContextVar("_entries", default=None)
"""The JSON-RPC requests of the HTTP request that the task serves. None outside of HTTP requests."""


def write_text_record(entry: Entry) -> None:
    """Log an entry as text, with its caller and its ids."""
    request = entry.request
    fields = {
        "upstream": request.upstream,
        "caller": request.caller,
        "request_id": request.request_id,
        "error_id": request.error_id,
    }
    details = " ".join(f"{name}={_quoted(value)}" for name, value in fields.items() if value)
    logging.getLogger(REQUESTS).info("%s %s", entry.text, details)


def write_json_record(entry: Entry) -> None:
    """Log an entry with an attribute for each of its fields."""
    request = entry.request
    fields = {
        "request_id": request.request_id,
        "error_id": request.error_id,
        "method": request.method,
        "feature": request.name,
        "upstream": request.upstream,
        "caller": request.caller,
        "outcome": request.outcome,
        "status": entry.status or None,
        "duration_ms": round(entry.seconds * 1000, 1),
    }
    logging.getLogger(REQUESTS).info("%s", entry.text, extra=fields)


def noting(write: Write) -> Middleware:
    """Return middleware that notes JSON-RPC requests, and passes those without HTTP to a function."""

    async def note_request(context: RequestContext, call_next: CallNext) -> Reply:
        http, start = current_request.get(), time.perf_counter()
        entries = _entries.get()
        request_id = os.urandom(8).hex() if http is None else http.request_id
        caller = "" if context.http is None else _caller_of(context.http, "" if http is None else http.caller)
        method, name = _short(context.request.method), _name_in(context)
        request = LoggedRequest(request_id, caller, method, name, upstream=_upstream_of(context))
        if entries is not None:
            entries.append(request)
        token = current_request.set(request)
        try:
            reply = await call_next(context)
        finally:
            current_request.reset(token)
        request.outcome = outcome_of(reply.error, is_tool_error=is_tool_error(context, reply))
        request.variables = context.log_variables
        if entries is None:
            Entry(request, 0, time.perf_counter() - start).write_with(write)
        return reply

    return note_request


def logging_exchange(exchange: Exchange, write: Write, proxies: int) -> Exchange:
    """Return a function that answers HTTP requests as *exchange* and passes their entries to a function.

    Args:
        exchange: The function.
        write: Gets an entry for each JSON-RPC request, or one for an HTTP request without any, after the response.
        proxies: The number of proxies whose X-Forwarded-For counts.
    """

    async def exchange_and_log(request: HttpRequest) -> HttpResponse:
        start = time.perf_counter()
        entries: list[LoggedRequest] = []
        request.proxies = proxies  # the endpoint sets it as well, but a request may be refused before
        address = request.client_address or request.peer or ""
        outer = LoggedRequest(_request_id_of(request), address, _short(request.method), _short(request.path))
        tokens = _entries.set(entries), current_request.set(outer)

        def write_entries(status: int) -> None:
            seconds = time.perf_counter() - start
            outer.caller = _caller_of(request, address)
            for entry in entries or [outer]:
                entry.caller = outer.caller
                Entry(entry, status, seconds).write_with(write)

        try:
            response = await exchange(request)
        finally:
            _entries.reset(tokens[0])
            current_request.reset(tokens[1])
        if isinstance(response, ApplicationResponse):
            response.on_end.append(lambda: write_entries(response.status))
            return response
        if isinstance(response.body, bytes):
            write_entries(response.status)
            return response
        body = _logged_stream(response.body, lambda: write_entries(response.status))
        return HttpResponse(response.status, response.headers, body)

    return exchange_and_log


async def _logged_stream(body: AsyncIterator[bytes], write: Callable[[], None]) -> AsyncIterator[bytes]:
    """Yield the parts of a response's body, and call a function after the last one."""
    try:
        async for part in body:
            yield part
    finally:
        write()
        if hasattr(body, "aclose"):
            await body.aclose()


def _request_id_of(request: HttpRequest) -> str:
    """Return the id that a proxy or the client has given a request, or a random one."""
    field = request.fields.get(b"x-request-id", b"")
    return field.decode("ascii") if _REQUEST_ID.fullmatch(field) else os.urandom(8).hex()


def _caller_of(request: HasPrincipal, address: str) -> str:
    """Return the subject of a request's principal; the address if it has none."""
    return address if request.principal is None else _short(request.principal.subject)


def _name_in(context: RequestContext) -> str:
    """Return the name that a request uses; a URI without what may be secret; for a task a digest of its id; or ""."""
    row = METHODS.get(context.request.method)
    name = None if row is None or row.named_by is None else context.request.params.get(row.named_by)
    if not isinstance(name, str):
        return ""
    if row is not None and row.named_by == "taskId":
        return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return _short(visible_url(name) if row is not None and row.named_by == "uri" else name)


def _upstream_of(context: RequestContext) -> str:
    """Return the name of the other server that has the feature of a request; "" if this one has it."""
    source = None if context.feature is None else context.feature.upstream
    return "" if source is None else _short(source.upstream.name)


def _short(text: str) -> str:
    """Return the beginning of a client's text, on one line and without control characters."""
    if len(text) > _MAX_TEXT:
        text = f"{text[:_MAX_TEXT]}..."
    return visible_line(text)


def _quoted(text: str) -> str:
    """Return a value of a line, in quotation marks if it could be read as another field."""
    return text if _PLAIN.fullmatch(text) else json.dumps(text)
