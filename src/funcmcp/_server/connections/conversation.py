"""The state of one session of the handshake era in this process, besides its handshake.

How it works: a `Conversation` has the runs under way by request id, the questions that wait for the client's answer by
an id of the server's own, the log level, and the subscriptions. A client chooses request ids, so they are only used to
find the runs that the same client cancels. With several instances, a `Keeper` stores log level and subscriptions where
all of them find them, and `restore` reads them.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any, Protocol

from funcmcp._protocol.answers import read_answer
from funcmcp._protocol.codec import encode
from funcmcp._protocol.errors import INTERNAL_ERROR, AnsweredWithError, ToolError
from funcmcp._protocol.jsonrpc import Response
from funcmcp._server.connections.subscribed_uris import SubscribedURIs

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from funcmcp._protocol.jsonrpc import RequestId
    from funcmcp._server.connections.hub import Change
    from funcmcp._server.run import Run


class Keeper(Protocol):
    """Stores a session's log level and subscriptions for all instances. Each method may raise StoreUnavailableError."""

    async def restore(self) -> None:
        """Update the conversation from the store, unless it is up to date."""

    async def keep_level(self, level: str) -> None:
        """Store a log level."""

    async def keep_subscription(self, uri: str, *, is_subscribed: bool) -> None:
        """Store or delete the URI of a resource."""


class Rules(Protocol):
    """Rules that hide and show features in one session."""

    def decide(self, feature: Any, *, default: bool) -> bool:
        """Return whether the session sees a feature; *default* if no rule matches it."""


class Conversation:
    """The state of one session in this process.

    Args:
        pushes: Whether messages outside of a request can reach the client.

    Attributes:
        log_level: The lowest level of the log messages that the client wants.
        subscribed: The URIs of resources to which the client subscribed.
        keeper: Stores these two for other instances; None if there is one instance.
        rules: Hide and show features in this session; None if it sees what other clients see.
        session: The object that functions get as the session, if an API has one; None until it is asked for.
    """

    __slots__ = (
        "__weakref__",
        "_questions",
        "_runs",
        "keeper",
        "log_level",
        "pushes",
        "rules",
        "session",
        "subscribed",
    )

    def __init__(self, *, pushes: bool = False) -> None:
        self.pushes: bool = pushes
        self.log_level: str = "info"
        self.keeper: Keeper | None = None
        self.subscribed: SubscribedURIs = SubscribedURIs()
        self.rules: Rules | None = None
        self.session: object | None = None
        self._runs: dict[RequestId, list[Run]] = {}
        self._questions: dict[str, asyncio.Future[Response]] = {}

    @property
    def busy(self) -> bool:
        """Whether a run is under way, or a question waits for its answer."""
        return bool(self._runs or self._questions)

    @property
    def idle(self) -> bool:
        """Whether the conversation can be discarded without losing anything."""
        if self.busy:
            return False
        return self.keeper is not None or not (self.subscribed or self.log_level != "info" or self.rules is not None)

    async def restore(self) -> None:
        """Read what other instances stored for the session; raise StoreUnavailableError."""
        if self.keeper is not None:
            await self.keeper.restore()

    async def set_level(self, level: str) -> None:
        """Set the log level of the session; raise StoreUnavailableError."""
        if self.keeper is not None:
            await self.keeper.keep_level(level)
        self.log_level = level

    async def subscribe(self, uri: str, *, is_subscribed: bool) -> None:
        """Subscribe to the URI of a resource, or unsubscribe; raise StoreUnavailableError."""
        if self.keeper is not None:
            await self.keeper.keep_subscription(uri, is_subscribed=is_subscribed)
        if is_subscribed:
            self.subscribed.add(uri)
        else:
            self.subscribed.discard(uri)

    def wants(self, change: Change) -> bool:
        """Return whether the client gets a change: of every list, and of the resources to which it subscribed."""
        return change.uri is None or change.uri in self.subscribed

    def begin(self, request_id: RequestId, run: Run) -> None:
        """Add a run, so that the client can cancel it; several runs may have the same id."""
        self._runs.setdefault(request_id, []).append(run)

    def finish(self, request_id: RequestId, run: Run) -> None:
        """Remove a run."""
        runs = self._runs[request_id]
        runs.remove(run)
        if not runs:
            del self._runs[request_id]

    def cancel(self, request_id: RequestId) -> bool:
        """Cancel the runs of an id; return whether there was one."""
        runs = self._runs.get(request_id, ())
        for run in runs:
            run.cancel()
        return bool(runs)

    async def ask(
        self, questions: Mapping[str, Mapping[str, Any]], send: Callable[[bytes], Awaitable[None]]
    ) -> dict[str, dict[str, Any]]:
        """Send the questions as requests, wait for the client's responses, and return them by key.

        Raises:
            ToolError: The client answered with an error, or with an invalid answer.
        """
        waiting: dict[str, asyncio.Future[Response]] = {}
        try:
            for key, question in questions.items():
                question_id, waiting[key] = self.question()
                await send(encode({"jsonrpc": "2.0", "id": question_id, **question}))
            return {key: _read(questions[key], await future) for key, future in waiting.items()}
        finally:
            for future in waiting.values():
                future.cancel()

    def question(self) -> tuple[str, asyncio.Future[Response]]:
        """Open a question; return its request id and the future of its answer."""
        question_id = f"ask-{os.urandom(8).hex()}"  # never used again: a late answer must not meet another question
        future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._questions[question_id] = future
        future.add_done_callback(lambda _: self._questions.pop(question_id, None))
        return question_id, future

    def answer(self, response: Response) -> bool:
        """Pass a client's response to the question that waits for it; return whether there is one."""
        future = self._questions.get(response.id) if isinstance(response.id, str) else None
        if future is None:
            return False
        if not future.done():
            future.set_result(response)
        return True

    def abandon(self) -> None:
        """Give up the questions that are open: the client will say no more."""
        for future in list(self._questions.values()):
            if not future.done():
                future.set_result(Response(None, None, {"code": INTERNAL_ERROR, "message": "The client has gone."}))


def _read(question: Mapping[str, Any], response: Response) -> dict[str, Any]:
    answer = read_answer(question, response.result)
    if answer is not None:
        return answer
    if response.error is not None:
        raise AnsweredWithError(question["method"], response.error)
    raise ToolError(f"The client's answer to {question['method']} is not valid.")
