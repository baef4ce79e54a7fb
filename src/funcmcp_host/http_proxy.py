"""HTTP triggers of a worker that serves HTTP itself, such as a Node app with ``enableHttpStream``.

How it works. The host invokes the function over the worker's socket and sends the HTTP request to the worker's port at
the same time; both have the same invocation id, by which the worker joins them. The response comes back over HTTP, part
by part as the function writes it. The invocation ends when the response has ended. If it fails before the response
begins, the request fails; if it fails later, the response breaks off.

Source: ``HttpUri`` in the worker's load answer, and httpProxy.ts of @azure/functions 4.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import httpx2

from funcmcp._adapters.asgi.application import ClientDisconnectedError
from funcmcp._objects.mappings import without
from funcmcp._transports.http.messages import HttpResponse
from funcmcp._transports.http.status import checked_status
from funcmcp_host.paths import target_of
from funcmcp_host.workers.worker import FunctionFailed, WorkerGone, text_for_log

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

    from funcmcp._transports.http.messages import HttpRequest
    from funcmcp_host.invocation import FunctionRequest
    from funcmcp_host.workers.worker import Invocation, LanguageWorker, Outcome

_log = logging.getLogger("funcmcp.host")

_INVOCATION_ID = "x-ms-invocation-id"
_OF_THE_CONNECTION = {
    *("connection", "expect", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te"),
    *("trailer", "transfer-encoding", "upgrade"),
}
_REPLACED = {
    *("content-length", "host", "x-forwarded-host", "x-forwarded-proto", _INVOCATION_ID),
}
_IDLE_SECONDS = 2.0
"""A connection is not used again after this time. Node closes idle connections after 5 s."""

_END_SECONDS = 1.0
"""The time between the end of an invocation and that of its exchange over HTTP. Both are on this machine."""


class HTTPProxy:
    """Sends HTTP requests on to a worker."""

    def __init__(self) -> None:
        self._transport: httpx2.AsyncHTTPTransport | None = None

    async def exchange(
        self,
        worker: LanguageWorker,
        invocation: Invocation,
        request: FunctionRequest,
        body: bytes,
        *,
        seconds: float | None,
        finish: Callable[[Outcome], Awaitable[None]],
    ) -> HttpResponse:
        """Invoke a function with an HTTP request, and return its response once the status and the headers are there.

        Args:
            worker: Runs the function; it has an `http_url`.
            invocation: The call.
            request: The request.
            body: The request's body.
            seconds: The time that the call may take, with its response; None for any time.
            finish: Stores the outputs of the function after its response.

        Raises:
            FunctionFailed: The function raised an exception.
            WorkerGone: The worker ended.
            TimeoutError: The time is over.
        """
        invocation = replace(invocation, id=str(uuid.uuid4()))
        call = asyncio.create_task(worker.invoke(invocation, seconds))
        sending = asyncio.create_task(self._send(worker.http_url or "", invocation.id, request, body))
        leaving = asyncio.create_task(request.disconnected())
        response = None
        try:
            await asyncio.wait({call, sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if leaving.done():
                return HttpResponse(204, ())  # nobody reads it
            response = await _response_of(call, sending)
            if response is None:
                await finish(call.result())
                return HttpResponse(204, ())
        finally:
            await _cancel(leaving)
            if response is None:
                await _cancel(sending)
                await _cancel(call)
                await _close_unused(sending)
        return HttpResponse(
            response.status_code,
            response_headers(response),
            _parts(response, call, invocation.function, finish),
        )

    async def aclose(self) -> None:
        """Close the connections."""
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.aclose()

    async def _send(self, url: str, invocation_id: str, request: FunctionRequest, body: bytes) -> httpx2.Response:
        if self._transport is None:
            limits = httpx2.Limits(max_connections=None, keepalive_expiry=_IDLE_SECONDS)
            self._transport = httpx2.AsyncHTTPTransport(trust_env=False, limits=limits)
        headers = list(forwarded_headers(request).items())
        headers += [
            (_INVOCATION_ID, invocation_id),
            ("x-forwarded-host", request.headers.get("host", "")),
            ("x-forwarded-proto", request.scheme),
        ]
        content = None if request.method in {"GET", "HEAD"} else body
        extensions = {"target": target_of(request)}
        outgoing = httpx2.Request(request.method, url, headers=headers, content=content, extensions=extensions)
        return await self._transport.handle_async_request(outgoing)


def forwarded_headers(request: HttpRequest) -> dict[str, str]:
    """Return the headers of a request but for those that are about its connection, and those that the proxy writes."""
    named = {name.strip().lower() for name in request.headers.get("connection", "").split(",")}
    dropped = _OF_THE_CONNECTION | _REPLACED | named
    return without(request.headers, *dropped)


def response_headers(response: httpx2.Response) -> tuple[tuple[str, str], ...]:
    """Return the headers of a response but for those that are about its connection.

    The length of a response with Transfer-Encoding is not that of its body (RFC 9112 section 6.3).
    """
    dropped = _OF_THE_CONNECTION | {"date", _INVOCATION_ID}
    if "transfer-encoding" in response.headers:
        dropped = dropped | {"content-length"}
    return tuple((name, text) for name, text in response.headers.multi_items() if name.lower() not in dropped)


async def _response_of(call: asyncio.Task[Outcome], sending: asyncio.Task[httpx2.Response]) -> httpx2.Response | None:
    """Return the head of the response, or None if the function returned nothing; raise why there is none."""
    if not sending.done():
        await call  # it failed, or its response is about to come
    try:
        async with asyncio.timeout(_END_SECONDS):
            response = await asyncio.shield(sending)
    except TimeoutError:
        return None
    except httpx2.TransportError as error:
        await asyncio.wait({call}, timeout=_END_SECONDS)  # that the worker ended says more than a broken connection
        if call.done():
            call.result()
        raise FunctionFailed(f"Its worker does not answer over HTTP ({type(error).__name__}).") from error
    try:
        checked_status(response.status_code, response.headers.multi_items())
    except ValueError as error:
        raise FunctionFailed(f"Its response can't be sent: {error}") from error
    return response


async def _parts(
    response: httpx2.Response,
    call: asyncio.Task[Outcome],
    function: str,
    finish: Callable[[Outcome], Awaitable[None]],
) -> AsyncGenerator[bytes]:
    """Yield the body of a response until it ends or its function fails; cancel the function if nobody reads on."""
    stream = response.stream
    assert isinstance(stream, httpx2.AsyncByteStream)  # noqa: S101 - narrows the type of the transport's answer
    parts = aiter(stream)
    try:
        while True:
            part = await _next(parts, call)
            if part is None:
                break
            yield part
        async with asyncio.timeout(_END_SECONDS):
            await finish(await call)
    except (FunctionFailed, WorkerGone, TimeoutError, httpx2.TransportError) as error:
        _log.error("The function %s failed during its response. %s", function, text_for_log(error))
        raise ClientDisconnectedError from error  # the connection closes, so that the client sees an incomplete body
    finally:
        await stream.aclose()
        await _cancel(call)


async def _next(parts: AsyncIterator[bytes], call: asyncio.Task[Outcome]) -> bytes | None:
    """Return the next part of a body, or None at its end; raise if the function fails meanwhile."""
    reading = asyncio.ensure_future(anext(parts, None))
    try:
        await asyncio.wait({reading, call}, return_when=asyncio.FIRST_COMPLETED)
        if not reading.done():
            call.result()
        return await reading
    finally:
        await _cancel(reading)


async def _cancel(task: asyncio.Future[Any]) -> None:
    """Cancel a task and wait for its end; its result does not matter."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def _close_unused(sending: asyncio.Task[httpx2.Response]) -> None:
    """Close the response that a task has returned and that nobody reads."""
    if not sending.cancelled() and sending.exception() is None:
        await sending.result().aclose()
