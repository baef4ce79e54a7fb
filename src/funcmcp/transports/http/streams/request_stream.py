"""The event stream of one request, which begins only when there is a message to send before the answer.

How it works: the request runs in a task with a `StreamChannel`, onto which its feature puts messages. `stream_response`
waits for whichever comes first. If the task ends first, the answer is plain JSON. If a message comes first, the answer
is an event stream: the messages in their order, then the answer, which ends the stream. The channel is bounded, so that
a run waits for a client that reads slowly. When the client disconnects, the channel is closed, and a `DisconnectWatch`
cancels the run in the per-request era; in the handshake era the run continues.

Source: "basic/transports, Streamable HTTP" (the final response ends the stream).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from funcmcp.protocol.codec import encode
from funcmcp.protocol.errors import ToolError
from funcmcp.server.run import RunCancelledError
from funcmcp.transports.http.streams import sse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping

    from funcmcp.protocol.replies import Reply
    from funcmcp.server.connections.conversation import Conversation
    from funcmcp.transports.http.messages import HttpResponse
    from funcmcp.transports.http.streams.disconnect import DisconnectWatch

_MAX_QUEUED = 1000
"""Messages that may be queued for a slow reader. Beyond that, the run waits."""

_MAX_QUEUED_BYTES = 1024 * 1024
"""Bytes that may be queued for a slow reader. Beyond that, the run waits."""


class _BoundedQueue(asyncio.Queue[bytes]):
    """A queue of messages that is bounded in their number and, up to the last message, in their bytes."""

    def __init__(self) -> None:
        super().__init__(_MAX_QUEUED)
        self._bytes = 0

    def full(self) -> bool:
        return super().full() or self._bytes >= _MAX_QUEUED_BYTES

    def _put(self, item: bytes) -> None:
        self._bytes += len(item)
        super()._put(item)

    def _get(self) -> bytes:
        item = super()._get()
        self._bytes -= len(item)
        return item


class StreamChannel:
    """A channel onto the event stream of one request.

    Args:
        conversation: Receives the client's responses to questions; None in the era without such questions.
    """

    pushes = True

    def __init__(self, conversation: Conversation | None) -> None:
        self.messages: asyncio.Queue[bytes] = _BoundedQueue()
        self._conversation = conversation
        self._closed = False

    def close(self) -> None:
        """Drop queued messages and send no further ones. A run that waits for room in the queue continues."""
        self._closed = True
        while not self.messages.empty():
            self.messages.get_nowait()

    def close_stream(self) -> None:
        """Do nothing: the client can't resume this stream."""

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification, unless the stream is closed."""
        if not self._closed:
            await self.messages.put(encode({"jsonrpc": "2.0", "method": method, "params": params}))

    async def ask(self, questions: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Send the questions as requests and wait for the client's responses."""
        if self._conversation is None or self._closed:
            raise ToolError("The client can't be asked any more.")
        return await self._conversation.ask(questions, self.messages.put)


class BufferedChannel(StreamChannel):
    """A channel onto a stream that reaches the client only when it is complete, so that questions are impossible."""

    pushes = False

    def __init__(self) -> None:
        super().__init__(None)

    async def ask(self, questions: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Refuse the questions."""
        del questions
        raise ToolError("The client can't be asked here: this platform sends an event stream only when it is complete.")


async def stream_response(
    work: Coroutine[object, object, Reply],
    channel: StreamChannel,
    *,
    respond: Callable[[Reply], HttpResponse],
    watch: DisconnectWatch | None = None,
) -> HttpResponse:
    """Run a request; return plain JSON if it sends nothing before its answer, or else an event stream.

    Args:
        work: The run. It sends its messages to *channel*.
        channel: The channel of the run.
        respond: Returns the plain response for an answer.
        watch: Cancels the run when the client disconnects; None lets the run continue.
    """
    task = asyncio.create_task(work)
    task.add_done_callback(retrieve_outcome)
    first_message = asyncio.ensure_future(channel.messages.get())
    watching = None if watch is None else asyncio.ensure_future(watch.watch())
    try:
        await asyncio.wait({task, first_message}, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        task.cancel()
        raise
    finally:
        for waiting in (first_message, watching):
            if waiting is not None and not waiting.done():
                waiting.cancel()
    if first_message.done() and not first_message.cancelled():
        return sse.response(_events(first_message.result(), task, channel, watch))
    return respond(await task)


def retrieve_outcome(task: asyncio.Task[Reply]) -> None:
    """Retrieve the outcome of a run whose client may have gone, so that asyncio does not log it as never retrieved."""
    if not task.cancelled():
        task.exception()


async def _events(
    first_message: bytes, task: asyncio.Task[Reply], channel: StreamChannel, watch: DisconnectWatch | None
) -> AsyncIterator[bytes]:
    try:
        yield sse.event(first_message)
        del first_message  # a long stream must not hold its first message in memory
        while (part := await sse.next_part(channel.messages, task)) is not None:
            yield part
            del part
        try:
            yield sse.event((await task).body)
        except RunCancelledError:
            return  # the client cancelled the request: nothing more may be sent for it
    finally:
        channel.close()
        if watch is not None and not task.done():
            watch.run.cancel()
