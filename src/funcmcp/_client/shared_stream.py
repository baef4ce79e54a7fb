"""One stream for all that a server sends: the stdout of a process, or the event stream of HTTP+SSE.

How it works: a response settles the request with its id, a notification is handled at once, and a request of the server
is answered in an asyncio task of its own, so that reading goes on. While `MAX_ANSWERING` of them are open, nothing is
read: a server that asks without end, or reads no answers, takes no more memory. A failure fails all requests that wait.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from funcmcp._client.messages import is_response, is_response_to

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from funcmcp._client.transport import Message, Receive


MAX_ANSWERING = 200
"""Requests of the server that are answered at the same time."""


class SharedStream:
    """The requests that wait for a response on one stream.

    Args:
        receive: Handles the notifications and requests of the server.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._waiting: dict[Any, asyncio.Future[Message]] = {}
        self._answering: set[asyncio.Task[None]] = set()

    async def response_to(self, message: Message, sending: Awaitable[None]) -> Message:
        """Return the response to a request.

        Args:
            message: The request.
            sending: Sends it.
        """
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[message["id"]] = future
        try:
            await sending
            return await future
        finally:
            del self._waiting[message["id"]]
            if future.done() and not future.cancelled():
                future.exception()  # retrieved: `sending` may have raised first

    async def take(self, message: Message) -> None:
        """Handle a message of the server."""
        if is_response(message):
            self._settle(message)
        elif "id" in message:
            while len(self._answering) >= MAX_ANSWERING:
                await asyncio.wait(self._answering, return_when=asyncio.FIRST_COMPLETED)
            answering = asyncio.create_task(self._handle(message))
            self._answering.add(answering)
            answering.add_done_callback(self._answering.discard)
        else:
            await self._handle(message)

    def fail(self, error: Exception) -> None:
        """Fail the requests that wait."""
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(error)

    def cancel_answers(self) -> None:
        """Stop answering requests of the server."""
        for task in self._answering:
            task.cancel()

    async def _handle(self, message: Message) -> None:
        """Pass a message on. What the client's callback raises fails the requests that wait."""
        try:
            await self._receive(message)
        except Exception as error:  # noqa: BLE001 - the caller of the request is the one to see it
            self.fail(error)

    def _settle(self, response: Message) -> None:
        """Give a response to the request with its id. An error without an id can only be for the single one."""
        for request_id, future in self._waiting.items():
            is_single = len(self._waiting) == 1
            if is_response_to(response, request_id) and (is_single or response.get("id") is not None):
                if not future.done():
                    future.set_result(response)
                return
