"""What a tool's function gets beside its arguments: the context, questions for the client, a cancellation token."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from funcmcp.authoring.questions import Elicit, Elicited, ElicitURL, ListRoots, Sample
from funcmcp.protocol.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence

    from funcmcp.authoring.questions import Question
    from funcmcp.server.context import Context, HTTPRequestInfo

T = TypeVar("T")

Level = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
_TRACE = ("traceparent", "tracestate", "baggage")


class CancelledCallError(Exception):
    """The call was cancelled or timed out; nobody waits for its result any more."""


class CancellationToken:
    """Tells a running function that its call was cancelled or timed out.

    A plain function runs in a thread, which nothing can stop from outside: a long one should look at `cancelled`
    from time to time.
    """

    __slots__ = ("cancelled",)

    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        """Mark the call as cancelled."""
        self.cancelled = True

    def raise_if_cancelled(self) -> None:
        """Raise CancelledCallError if the call was cancelled."""
        if self.cancelled:
            raise CancelledCallError


class ToolContext:
    """The context of one call of a tool: who asked, and the ways back to the client.

    Attributes:
        tool_name: the name that the tool was called by.
        arguments: the arguments as the client sent them.
    """

    __slots__ = ("_asked", "_context", "_loop", "_progress", "arguments", "tool_name")

    def __init__(self, context: Context, tool_name: str, arguments: dict[str, Any]) -> None:
        self.tool_name = tool_name
        self.arguments = arguments
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._asked: dict[str, int] = {}
        self._progress: float | None = None

    @property
    def session_id(self) -> str | None:
        """The session; None in 2026-07-28, which has none."""
        return self._context.client.session_id

    @property
    def protocol_version(self) -> str:
        """The date of the protocol revision that this request is made in."""
        return self._context.client.revision.date

    @property
    def client_info(self) -> Mapping[str, Any]:
        """The client's name, version and so on; empty if it did not say."""
        return self._context.client.info

    @property
    def http_request(self) -> HTTPRequestInfo | None:
        """The HTTP request: `method`, `url`, `headers`, `query`, `cookies`; None on a transport without HTTP."""
        return self._context.http

    @property
    def meta(self) -> Mapping[str, Any]:
        """The request's `_meta`; empty if it has none."""
        return self._context.meta

    @property
    def trace(self) -> dict[str, str]:
        """The W3C trace context that the client sent: `traceparent`, `tracestate`, `baggage`, as far as there."""
        meta = self._context.meta
        return {name: meta[name] for name in _TRACE if isinstance(meta.get(name), str)}

    def can(self, capability: str) -> bool:
        """Tell whether the client declared a capability, such as `elicitation`, `sampling` or `roots`."""
        return capability in self._context.client.capabilities

    def get_argument(self, name: str, type: type[T], default: T | None = None) -> T | None:
        """Return an argument as a type, or the default if it is absent or null; raise ToolError if it does not fit."""
        value = self.arguments.get(name)
        return default if value is None else _convert(name, value, type)

    def get_required_argument(self, name: str, type: type[T]) -> T:
        """Return an argument as a type; raise ToolError if it is absent, null or does not fit."""
        value = self.arguments.get(name)
        if value is None:
            raise ToolError(f"{name}: is required.")
        return _convert(name, value, type)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the client how far the call is, if it asked to be told.

        Args:
            progress: a number that grows from report to report; one that does not grow is not sent.
            total: what `progress` will be in the end, if known.
            message: a few words for people.
        """
        token = self._context.meta.get("progressToken")
        if not isinstance(token, str | int) or (self._progress is not None and progress <= self._progress):
            return
        self._progress = progress
        more = {"total": total, "message": message}
        sent = {name: value for name, value in more.items() if value is not None}
        await self._context.notify("notifications/progress", {"progressToken": token, "progress": progress, **sent})

    async def log(self, level: Level, data: object, logger: str | None = None) -> None:
        """Send a log message to the client, if it wants messages of this level.

        Args:
            level: how severe it is.
            data: any JSON value, often a text. Put no secrets in it.
            logger: what wrote the message.
        """
        named = {} if logger is None else {"logger": logger}
        await self._context.notify("notifications/message", {"level": level, **named, "data": data})

    @overload
    async def elicit(self, message: str, schema: type[T], *, key: str | None = None) -> Elicited[T]: ...

    @overload
    async def elicit(
        self, message: str, schema: dict[str, Any], *, key: str | None = None
    ) -> Elicited[dict[str, Any]]: ...

    async def elicit(self, message: str, schema: Any, *, key: str | None = None) -> Elicited[Any]:
        """Ask the user to fill in a form.

        The same code works in every revision. In 2026-07-28 the function is run again from its start when the answer
        is there, so do what must happen only once after the last question.

        Args:
            message: what to tell the user.
            schema: a flat pydantic model, dataclass or TypedDict of texts, numbers, booleans and enums, or a JSON
                schema as the specification allows it here.
            key: a name for the question that is the same in every run; by default, its number in this call.

        Raises:
            ToolError: the client can't be asked, or its answer does not fit.
        """
        return await self._ask_one(Elicit(message, schema), key)

    async def elicit_url(self, message: str, url: str, *, key: str | None = None) -> Elicited[None]:
        """Ask the user to open a page, such as one to sign in or to pay; see `elicit`."""
        return await self._ask_one(ElicitURL(message, url), key)

    async def sample(
        self, messages: str | Sequence[Mapping[str, Any]], *, max_tokens: int, key: str | None = None, **params: Any
    ) -> dict[str, Any]:
        """Ask the client's model; return its CreateMessageResult with `role`, `content` and `model`; see `elicit`.

        Args:
            messages: one text from the user, or SamplingMessage objects.
            max_tokens: the longest answer wanted.
            key: see `elicit`.
            params: more members of the request's params under their wire names, such as ``systemPrompt="..."``.
        """
        return await self._ask_one(Sample(messages, max_tokens=max_tokens, **params), key)

    async def list_roots(self, *, key: str | None = None) -> list[dict[str, Any]]:
        """Return the client's Root objects; see `elicit`."""
        return await self._ask_one(ListRoots(), key)

    async def ask(self, questions: Mapping[str, Question[Any]]) -> dict[str, Any]:
        """Ask several things at once; return the answers under the same keys; see `elicit`.

        Args:
            questions: `Elicit`, `Sample` and `ListRoots` objects by key.
        """
        answers = await self._context.ask({key: question.request() for key, question in questions.items()})
        return {key: question.answer(answers[key]) for key, question in questions.items()}

    def wait(self, awaitable: Awaitable[T]) -> T:
        """Run one of the methods above from a plain function, which runs in a thread.

        ``context.wait(context.log("info", "half done"))``
        """
        return asyncio.run_coroutine_threadsafe(_awaited(awaitable), self._loop).result()

    async def _ask_one(self, question: Question[T], key: str | None) -> T:
        if key is None:
            kind = type(question).__name__.lower()
            self._asked[kind] = self._asked.get(kind, 0) + 1
            key = f"{kind}-{self._asked[kind]}"
        answers: dict[str, T] = await self.ask({key: question})
        return answers[key]


async def _awaited(awaitable: Awaitable[T]) -> T:
    return await awaitable


def _convert(name: str, value: Any, kind: type[T]) -> T:
    from funcmcp.authoring.arguments import Validator  # noqa: PLC0415 - pydantic is loaded when it is needed

    converted: T = Validator.of_value(name, kind)(value)
    return converted


__all__ = ["CancellationToken", "Elicit", "Elicited", "ListRoots", "Sample", "ToolContext"]
