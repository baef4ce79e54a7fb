"""Calls of an ASGI application for a request that the Functions host has handed over as a whole.

How it works: the application runs in a task of its own. Its first event has the status and the headers of the response.
The parts of the body follow as the host reads them. What the application does after the last part, such as background
tasks of Starlette, goes on in its task.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from funcmcp._objects.background import hold_until_done
from funcmcp._transports.http.messages import HttpResponse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from funcmcp._transports.http.endpoints.application_response import ApplicationResponse, Message
    from funcmcp._transports.http.messages import HttpRequest


async def called(response: ApplicationResponse, request: HttpRequest) -> HttpResponse:
    """Return the response of an application as one that the host accepts.

    Args:
        response: The response that the application sends itself.
        request: The request, whose body has arrived.

    Raises:
        RuntimeError: The application ended without a response.
    """
    call = _Call(request)
    call.task = hold_until_done(asyncio.create_task(response.run(_scope(request), call.receive, call.send)))
    start = await call.next_event()
    if start is None:
        failure = call.task.result()
        if failure is None:
            raise RuntimeError("The application ended without a response.")
        return failure
    headers = tuple((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in start["headers"])
    return HttpResponse(start["status"], headers, call.body())


def _scope(request: HttpRequest) -> dict[str, Any]:
    """Return the scope of ASGI for a request."""
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": request.scheme,
        "path": request.path,
        "root_path": request.mount,
        "query_string": request.query_string.encode("latin-1"),
        "headers": request.pairs,
        "client": None if request.peer is None else (request.peer, 0),
        "server": None if request.server is None else (request.server, None),
    }


class _Call:
    """The events of one call.

    Attributes:
        task: The task in which the application runs.
    """

    task: asyncio.Task[HttpResponse | None]

    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        self._has_read = False
        self._events: asyncio.Queue[Message] = asyncio.Queue(1)

    async def receive(self) -> Message:
        """Return the body, and then the end of the connection."""
        if not self._has_read:
            self._has_read = True
            return {"type": "http.request", "body": self._request.body or b"", "more_body": False}
        await self._request.disconnected()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Wait until the last event has been taken, and hand over the next one."""
        await self._events.put(message)

    async def next_event(self) -> Message | None:
        """Return the next event, or None if the application ends without one."""
        event = asyncio.ensure_future(self._events.get())
        try:
            await asyncio.wait({event, self.task}, return_when=asyncio.FIRST_COMPLETED)
            if not event.done() and self._events.empty():
                return None
            return await event
        finally:
            event.cancel()

    async def body(self) -> AsyncIterator[bytes]:
        """Yield the parts of the body; end the application if the host stops reading."""
        has_ended = False
        try:
            while not has_ended:
                message = await self.next_event()
                if message is None:
                    self.task.result()  # raises what the application raised in the middle of its response
                    return
                has_ended = not message.get("more_body", False)
                yield message.get("body", b"")
        finally:
            if not has_ended:
                self.task.cancel()
                with suppress(asyncio.CancelledError):
                    await asyncio.wait({self.task})
