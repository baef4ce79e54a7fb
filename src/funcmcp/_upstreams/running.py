"""The requests of clients that run at an upstream over one connection, and the messages that belong to them.

How it works: an upstream sends progress, log messages and questions while it works on a request. Each of them goes to
the client of that request and to no other one:

- Progress names the token of its request. Each request has a token of its own here, whatever the client's token is.
- Over HTTP, what belongs to a request comes in the stream of its response. The asyncio task that waits for the response
  reads it, so that task identifies the request.
- Otherwise, as on stdio, a message belongs to the only request that runs on the connection. If several run, they have
  to be requests of the same client.

What belongs to no request is dropped, and a question is refused. The log has one line about it in a minute.

A notification from a response stream is passed on before the stream is read further, so a client that reads slowly
slows its upstream down. A reader that serves several requests does not wait: its notifications are queued for each
request, and the oldest is dropped if there are too many. In both cases they keep their order and come before the
answer.

A client of 2026-07-28 that is asked sends its request again with the answers. What the upstream sends in between is
queued for the next round, up to a limit.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from itertools import count
from typing import TYPE_CHECKING, Any, TypeGuard

from funcmcp._protocol.codec import encode
from funcmcp._protocol.levels import LEVELS
from funcmcp._protocol.objects import number_of
from funcmcp._server.log import quote
from funcmcp._state.line_limit import LineLimit
from funcmcp._upstreams.metadata import with_end_to_end_meta

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import TypeAlias

    from funcmcp._server.calls.context import RequestContext

    Ask: TypeAlias = Callable[["RunningRequest", Mapping[str, Any]], Awaitable[dict[str, Any]]]

_MAX_QUEUED = 200
"""Notifications of one request that wait for its client."""

_MAX_PAUSED_BYTES = 65_536
"""Bytes of JSON of those that wait for the next round of the client."""

_PROGRESS = "notifications/progress"
_LOG = "notifications/message"
_ELICITED = "notifications/elicitation/complete"


class RunningRequest:
    """A request of a client that runs at an upstream.

    Attributes:
        context: The request of the client, in its last round. None after the end.
        is_paused: Whether the client gets nothing until its next round.
        token: The progress token at the upstream. None if the client did not ask for progress.
        ask: Returns the answer of the client to a question that the upstream asks for the request.
        asking: The tasks that wait for answers of the client.
        missing: The capabilities that the client lacks for questions of the upstream, which were refused.
    """

    __slots__ = (
        "_last_progress",
        "_paused_bytes",
        "_queue",
        "_sender",
        "ask",
        "asking",
        "context",
        "is_paused",
        "missing",
        "token",
    )

    def __init__(self, context: RequestContext, token: int | None, ask: Ask) -> None:
        self.context: RequestContext | None = context
        self.is_paused = False
        self.token = token
        self.ask = ask
        self.asking: set[asyncio.Task[Any]] = set()
        self.missing: dict[str, Any] = {}
        self._last_progress = -math.inf
        self._paused_bytes = 0
        self._queue: deque[tuple[str, dict[str, Any]]] | None = None
        self._sender: asyncio.Task[None] | None = None

    def params_of(self, method: str, params: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the params of a notification for the client. Return None if it is invalid."""
        if method == _PROGRESS:
            return self._progress_of(params)
        if method == _LOG and not _is_log_message(params):
            return None
        return with_end_to_end_meta(params)

    def _progress_of(self, params: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the params of progress that is higher than before."""
        progress = params.get("progress")
        if not is_number(progress) or progress <= self._last_progress:
            return None
        self._last_progress = progress
        shown = with_end_to_end_meta(params)
        if not is_number(shown.get("total", 0)):
            del shown["total"]
        if not isinstance(shown.get("message", ""), str):
            del shown["message"]
        return shown

    async def send(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification to the client, after those in the queue."""
        await self.flush()
        if self.is_paused:
            self.queue(method, params)
        else:
            await self._send(method, params)

    def queue(self, method: str, params: dict[str, Any]) -> bool:
        """Send a notification without waiting for the client. Return False if it, or an older one, is dropped."""
        if self._queue is None:
            self._queue = deque(maxlen=_MAX_QUEUED)
        has_room = len(self._queue) < _MAX_QUEUED
        if self.is_paused:
            size = len(encode(params))
            if self._paused_bytes + size > _MAX_PAUSED_BYTES:
                return False
            self._paused_bytes += size
        self._queue.append((method, params))
        self._begin_sending(self._queue)
        return has_room

    def pause(self) -> None:
        """Keep what comes until the next round of the client."""
        self.is_paused = True
        self._paused_bytes = 0

    def resume(self, context: RequestContext) -> None:
        """Send what has come since `pause`, and what comes from now on, in another round."""
        self.context = context
        self.is_paused = False
        if self._queue:
            self._begin_sending(self._queue)

    @property
    def has_queue(self) -> bool:
        """Whether notifications were queued."""
        return self._sender is not None

    async def flush(self) -> None:
        """Wait until the client has the notifications in the queue."""
        if self._sender is not None:
            await asyncio.wait({self._sender})

    def close(self) -> None:
        """Send no more to the client, and do not wait for its answers."""
        self.context = None
        if self._sender is not None:
            self._sender.cancel()
        for task in self.asking:
            task.cancel()

    def _begin_sending(self, queue: deque[tuple[str, dict[str, Any]]]) -> None:
        if not self.is_paused and (self._sender is None or self._sender.done()):
            self._sender = asyncio.create_task(self._send_queued(queue))

    async def _send_queued(self, queue: deque[tuple[str, dict[str, Any]]]) -> None:
        while queue and not self.is_paused:
            await self._send(*queue.popleft())

    async def _send(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification to the client, progress with the token of the client's round."""
        context = self.context
        if context is None:
            return
        if method == _PROGRESS:
            token = context.meta.get("progressToken")
            if token is None and context.task_id is None:
                return  # the client asks for progress in another round only
            params = {**params, "progressToken": token}
        await context.notify(method, params)


class RunningRequests:
    """The requests that run at an upstream over one connection.

    Args:
        name: The name of the upstream, for the log.
        on_other: Receives the notifications that belong to no request, such as changes of lists.

    Attributes:
        log_level: The level of the log messages that the session of the upstream sends, as far as this server knows.
    """

    def __init__(self, name: str, on_other: Callable[[dict[str, Any]], None]) -> None:
        self._name = name
        self.log_level = "info"
        self._on_other = on_other
        self._tokens = count(1)
        self._running: dict[RunningRequest, None] = {}
        self._by_token: dict[int, RunningRequest] = {}
        self._by_task: dict[asyncio.Task[Any] | None, RunningRequest] = {}
        self._lines = LineLimit()

    def new_token(self) -> int:
        """Return a progress token that no other request of the connection has."""
        return next(self._tokens)

    def begin(self, request: RunningRequest) -> RunningRequest | None:
        """Add a request that the current asyncio task sends; return what `end` needs."""
        task = asyncio.current_task()
        outer = self._by_task.get(task)
        self._running[request] = None
        self._by_task[task] = request
        if request.token is not None:
            self._by_token[request.token] = request
        return outer

    def end(self, request: RunningRequest, outer: RunningRequest | None) -> None:
        """Remove a request, in the asyncio task that has sent it.

        Args:
            request: The request.
            outer: What `begin` has returned: the request during which the task has sent this one.
        """
        task = asyncio.current_task()
        del self._running[request]
        if outer is None:
            del self._by_task[task]
        else:
            self._by_task[task] = outer
        if request.token is not None:
            del self._by_token[request.token]

    def request_of(self, message: Mapping[str, Any]) -> RunningRequest | None:
        """Return the request to which a message of the upstream belongs. Return None if that is not certain."""
        if message.get("method") == _PROGRESS:
            params = message.get("params")
            token = params.get("progressToken") if isinstance(params, dict) else None
            return self._by_token.get(token) if type(token) is int else None
        streamed = self._by_task.get(asyncio.current_task())
        return self._request_of_single_client() if streamed is None else streamed

    def _request_of_single_client(self) -> RunningRequest | None:
        """Return the last of the requests that run, if all of them are of one client."""
        conversation = None
        for request in self._running:
            context = request.context
            if context is None:
                return None
            if len(self._running) == 1:
                return request
            if conversation is None:
                conversation = context.client.conversation
            if conversation is None or context.client.conversation is not conversation:
                return None
        return next(reversed(self._running), None)

    def notified(self, message: dict[str, Any]) -> Awaitable[None] | None:
        """Pass a notification of the upstream on. Return an awaitable if the upstream has to wait for the client."""
        method, params = message["method"], message.get("params")
        if method not in (_PROGRESS, _LOG, _ELICITED):
            self._on_other(message)
            return None
        request = self.request_of(message)
        shown = None
        if request is not None and request.context is not None and isinstance(params, dict):
            shown = request.params_of(method, params)
        if request is None or shown is None:
            self._lines.write("%s: a %s that belongs to no request, or is invalid, is dropped.", self._name, method)
            return None
        if self._by_task.get(asyncio.current_task()) is request and not request.is_paused:
            return request.send(method, shown)
        if not request.queue(method, shown):
            self._lines.write("%s: a client reads or answers slowly, and notifications are dropped.", self._name)
        return None

    def refused(self, method: object, reason: str) -> None:
        """Write a line to the log about a question that was refused, unless there was one in the last minute."""
        self._lines.write("%s: the question %s is refused. %s", self._name, quote(str(method)), reason)


def _is_log_message(params: Mapping[str, Any]) -> bool:
    level = params.get("level")
    return isinstance(level, str) and level in LEVELS and "data" in params


def is_number(value: object) -> TypeGuard[int | float]:
    """Return whether a value is a number that is not too large for arithmetic."""
    return number_of(value) is not None
