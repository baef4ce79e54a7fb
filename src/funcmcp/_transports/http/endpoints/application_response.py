"""Responses that an ASGI application sends itself, such as those of Starlette's routes.

How it works: an endpoint returns an `ApplicationResponse` when it has admitted a request. The adapter calls `run` with
the scope and the functions of the connection, so that the application streams, reads the body and learns of a
disconnect as under any ASGI server. The limits of the server hold for what it reads. `run` returns a response if the
application failed before it sent anything; the adapter sends it. If the application fails in the middle of its
response, `run` raises the exception, and the ASGI server closes the connection.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from funcmcp._protocol.http_rules import WITHOUT_CONTENT
from funcmcp._server.run import is_failure
from funcmcp._transports.http.admission.body import too_large, too_late
from funcmcp._transports.http.messages import BodyTooLargeError, HttpResponse
from funcmcp._transports.http.status import checked_status, failed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping
    from typing import TypeAlias

    from funcmcp._server.limits import Limits

    Message: TypeAlias = MutableMapping[str, Any]
    Receive: TypeAlias = Callable[[], Awaitable[Message]]
    Send: TypeAlias = Callable[[Message], Awaitable[None]]
    Application: TypeAlias = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


class ApplicationResponse(HttpResponse):
    """The response of an ASGI application. Its headers are added to those that the application sends.

    Args:
        application: Answers the request.
        limits: The size of the body, and the time in which it has to arrive.
        feature: The name of the application in the log.
        on_end: Called when the application has ended.

    Attributes:
        status: The status that the application has sent; 200 before.
        on_end: Functions that are called when the application has ended.
    """

    __slots__ = ("_application", "_feature", "_limits", "on_end")

    def __init__(self, application: Application, limits: Limits, feature: str, on_end: Callable[[], None]) -> None:
        super().__init__(200, ())
        self._application = application
        self._limits = limits
        self._feature = feature
        self.on_end = [on_end]

    def with_headers(self, *headers: tuple[str, str]) -> HttpResponse:
        """Return the response with more header fields."""
        self.headers = (*self.headers, *headers)
        return self

    async def run(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> HttpResponse | None:
        """Run the application. Return the response to send if it failed before it sent one."""
        body, sender = _Body(receive, self._limits), _Sender(send, self)
        try:
            await self._application(scope, body.receive, sender.send)
        except BaseException as error:
            if sender.is_broken or not is_failure(error):
                raise
            failure = body.refusal
            if failure is None:
                failure = failed(error, self._feature)
            if sender.has_ended:
                return None
            if sender.has_started:
                raise
            return failure.with_headers(*self.headers)
        finally:
            for on_end in self.on_end:
                on_end()
        return None


class _Body:
    """Reads the body of a request within the limits.

    Attributes:
        refusal: The refusal of a body that is too large or too slow.
    """

    def __init__(self, receive: Receive, limits: Limits) -> None:
        self.refusal: HttpResponse | None = None
        self._receive = receive
        self._limits = limits
        self._deadline = asyncio.get_running_loop().time() + limits.message_seconds
        self._size = 0
        self._is_complete = False

    async def receive(self) -> Message:
        """Return the next event of the request."""
        if self._is_complete:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            self.refusal = too_late(self._limits.message_seconds)
            raise
        self._size += len(message.get("body", b""))
        self._is_complete = not message.get("more_body", False)
        if self._size > self._limits.message_bytes:
            self.refusal = too_large(self._limits.message_bytes)
            raise BodyTooLargeError
        return message


class _Sender:
    """Sends the events of a response, with the headers that others add.

    Attributes:
        has_started: Whether the status and the headers have been sent.
        has_ended: Whether the last part of the body has been sent.
        is_broken: Whether the connection did not take an event.
    """

    def __init__(self, send: Send, response: HttpResponse) -> None:
        self.has_started = False
        self.has_ended = False
        self.is_broken = False
        self._send = send
        self._response = response

    async def send(self, message: Message) -> None:
        """Send an event; raise ValueError if a server can't send the status or a header of a response."""
        if message["type"] == "http.response.start":
            message = self._begun(message)
        elif message["type"] == "http.response.body":
            self.has_ended = not message.get("more_body", False)
            if self._response.status in WITHOUT_CONTENT:
                message = {**message, "body": b""}
        try:
            await self._send(message)
        except BaseException:
            self.is_broken = True
            raise

    def _begun(self, message: Message) -> Message:
        """Return the first event of a response as it is sent."""
        lines = [(bytes(name), bytes(value)) for name, value in message.get("headers", ())]
        texts = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in lines]
        self._response.status = status = checked_status(message["status"], texts)
        if status in WITHOUT_CONTENT:
            lines = [(name, value) for name, value in lines if name.lower() != b"content-length"]
        self.has_started = True
        added = [(name.encode("ascii"), value.encode("latin-1")) for name, value in self._response.headers]
        return {**message, "headers": [*lines, *added]}
