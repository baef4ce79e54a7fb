"""The event stream of one request, which begins only when there is a message to send before the answer, or silence.

How it works: the request runs in a task with a `StreamChannel`, onto which its feature puts messages. `stream_response`
waits for whichever comes first. If the task ends first, the answer is plain JSON; most tasks end before they wait. If a
message comes first, the answer is an event stream: the messages in their order, then the answer, which ends the stream.
If neither comes within `KEEP_ALIVE_SECONDS`, the stream begins with a comment, so that no client or proxy closes it.
The channel is bounded, so that a run waits for a client that reads slowly. When the client disconnects, the channel is
closed, and a `DisconnectWatch` cancels the run in the per-request era; in the handshake era the run continues.

Source: "basic/transports, Streamable HTTP" (the final response ends the stream).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from funcmcp._protocol.codec import encode
from funcmcp._protocol.errors import CannotAskError, ToolError
from funcmcp._server.run import RunCancelledError
from funcmcp._transports.http.streams import sse
from funcmcp._transports.http.streams.eager_tasks import eager_task
from funcmcp._transports.http.streams.event_queue import EventQueue

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping

    from funcmcp._protocol.jsonrpc import RequestId
    from funcmcp._protocol.replies import Reply
    from funcmcp._server.connections.conversation import Conversation
    from funcmcp._transports.http.messages import HttpResponse
    from funcmcp._transports.http.streams.disconnect import DisconnectWatch


class StreamChannel:
    """A channel onto the event stream of one request.

    Args:
        conversation: Receives the client's responses to questions; None in the era without such questions.
    """

    __slots__ = ("_conversation", "messages")

    pushes = True

    def __init__(self, conversation: Conversation | None) -> None:
        self.messages = EventQueue()
        self._conversation = conversation

    def close(self) -> None:
        """Drop queued messages and send no further ones. A run that waits for room in the queue continues."""
        self.messages.close()

    def close_stream(self) -> None:
        """Do nothing: the client can't resume this stream."""

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification, unless the stream is closed."""
        if not self.messages.closed:
            await self.messages.put(encode({"jsonrpc": "2.0", "method": method, "params": params}))

    async def ask(self, questions: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Send the questions as requests and wait for the client's responses."""
        if self._conversation is None or self.messages.closed:
            raise ToolError("The client can't be asked any more.")
        return await self._conversation.ask(questions, self.messages.put)


class BufferedChannel(StreamChannel):
    """A channel onto a stream that reaches the client only when it is complete, so that questions are impossible."""

    __slots__ = ()

    pushes = False

    def __init__(self) -> None:
        super().__init__(None)

    async def ask(self, questions: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Refuse the questions."""
        del questions
        raise CannotAskError(
            "The client can't be asked here: this platform sends an event stream only when it is complete."
        )


async def stream_response(
    work: Coroutine[object, object, Reply],
    channel: StreamChannel,
    *,
    request_id: RequestId,
    respond: Callable[[Reply], HttpResponse],
    watch: DisconnectWatch | None = None,
) -> HttpResponse:
    """Run a request; return plain JSON if it is answered soon and sends nothing before, or else an event stream.

    Args:
        work: The run. It sends its messages to *channel*.
        channel: The channel of the run.
        request_id: The id of the request.
        respond: Returns the plain response for an answer.
        watch: Cancels the run when the client disconnects; None lets the run continue.
    """
    messages = channel.messages
    task = eager_task(work)
    if task.done() and not messages.has_messages:
        return respond(task.result())
    task.add_done_callback(retrieve_outcome)
    task.add_done_callback(lambda _: messages.end())
    silence = sse.KEEP_ALIVE_SECONDS if channel.pushes else None  # a complete stream gains nothing by a comment
    try:
        ready = messages.ready(silence)
        is_silent = not await (ready if watch is None else watch.during(ready))
    except asyncio.CancelledError:
        task.cancel()
        raise
    if is_silent:
        return sse.response(_events(sse.KEEP_ALIVE, task, channel, watch, request_id=request_id))
    part = messages.take()
    if part is None:
        return respond(await task)
    return sse.response(_events(sse.event(part), task, channel, watch, request_id=request_id))


def retrieve_outcome(task: asyncio.Future[Reply]) -> None:
    """Retrieve the outcome of a run whose client may have gone, so that asyncio does not log it as never retrieved."""
    if not task.cancelled():
        task.exception()


async def _events(
    part: bytes | None,
    task: asyncio.Future[Reply],
    channel: StreamChannel,
    watch: DisconnectWatch | None,
    *,
    request_id: RequestId,
) -> AsyncIterator[bytes]:
    """Yield the first part, each later one and the answer, or an error if the server ends before that."""
    try:
        while part is not None:
            yield part
            del part  # a long stream must not hold its last message in memory
            part = await channel.messages.next_part()
        try:
            yield sse.event((await task).body)
        except RunCancelledError:
            return  # the client cancelled the request: nothing more may be sent for it
    except asyncio.CancelledError:
        yield sse.unanswered(request_id)
        raise
    finally:
        channel.close()
        if watch is not None and not task.done():
            watch.run.cancel()
