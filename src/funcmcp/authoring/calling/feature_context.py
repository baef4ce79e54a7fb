"""What a feature may know of its request, and its ways back to the client; `CancellationToken`."""

from __future__ import annotations

import asyncio
import concurrent.futures
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar, overload
from uuid import uuid4

from funcmcp.authoring.calling.questions import Elicit, Elicited, ElicitURL, ListRoots, Root, Sample, Sampled
from funcmcp.authoring.signatures.signature import EMPTY, Parameter
from funcmcp.protocol.codec import encode
from funcmcp.protocol.errors import ToolError
from funcmcp.protocol.levels import LEVELS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import Unpack

    from funcmcp.auth.principal import Principal
    from funcmcp.authoring.calling.questions import Question, SampleOptions
    from funcmcp.authoring.values.content import Content
    from funcmcp.server.calls.context import HTTPRequestInfo, RequestContext

__all__ = [
    "CancellationToken",
    "Elicit",
    "Elicited",
    "ListRoots",
    "PromptContext",
    "ResourceContext",
    "Root",
    "Sample",
    "Sampled",
    "ToolContext",
]

T = TypeVar("T")
D = TypeVar("D")

_TRACE = ("traceparent", "tracestate", "baggage")
_HANDSHAKE_ERA_IDS = "2025-11-25"
"""The one revision in which a URL question has an id."""


class CancellationToken:
    """Tells a tool that nobody waits for its result any more; to be asked from any thread.

    Example:
        ```python
        @mcp.tool
        def crunch(rows: list[int], token: CancellationToken) -> int:
            for row in rows:
                token.raise_if_cancelled()
        ```
    """

    __slots__ = ("_cancelled",)

    def __init__(self) -> None:
        self._cancelled = False

    @property
    def cancelled(self) -> bool:
        """Whether the call was cancelled or its time is up."""
        return self._cancelled

    def raise_if_cancelled(self) -> None:
        """Raise ToolError if the call was cancelled or its time is up."""
        if self._cancelled:
            raise ToolError("The call was cancelled.")

    def cancel(self) -> None:
        """Set the token."""
        self._cancelled = True


class FeatureContext:
    """What a feature may know of its request, and its ways back to the client.

    A function gets it by a parameter of its type. In a plain function, which runs in a worker thread, the async methods
    are called through `wait`: ``context.wait(context.progress(1, 10))``.
    """

    __slots__ = ("_closed", "_context", "_counts", "_loop", "_progress", "_waits")

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._counts: dict[str, int] = {}
        self._progress: float | None = None
        self._closed = False
        self._waits: set[concurrent.futures.Future[Any]] = set()

    @property
    def principal(self) -> Principal | None:
        """Who calls; None for callers without credentials, and where nobody is asked for any."""
        return self._context.principal

    @property
    def session_id(self) -> str | None:
        """The session's id, or None where there is no session."""
        return self._context.client.session_id

    @property
    def protocol_version(self) -> str:
        """The protocol revision of the call, such as ``"2026-07-28"``."""
        return self._context.client.revision.date

    @property
    def client_info(self) -> Mapping[str, Any]:
        """The client's name, version and so on; empty when unknown."""
        return self._context.client.info

    @property
    def http_request(self) -> HTTPRequestInfo | None:
        """The HTTP request (method, url, headers, query, cookies); None on a transport without HTTP."""
        return self._context.http

    @property
    def meta(self) -> Mapping[str, Any]:
        """The request's ``_meta``."""
        return self._context.meta

    @property
    def trace(self) -> dict[str, str]:
        """The W3C trace context that the client sent: ``traceparent``, ``tracestate``, ``baggage``, where present."""
        meta = self.meta
        return {name: meta[name] for name in _TRACE if isinstance(meta.get(name), str)}

    def can(self, capability: str) -> bool:
        """Tell whether the client declared a capability: ``"elicitation"``, ``"sampling"``, ``"roots"``."""
        return isinstance(self._context.client.capabilities.get(capability), dict)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress, if the client asked for it; a value that is not higher than the last one is dropped.

        Raises:
            ValueError: a number is none or is not finite, or the message is not Unicode text.
        """
        params: dict[str, Any] = {"progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        if not all(isinstance(number, int | float) for number in (progress, total or 0)):
            raise ValueError("progress and total must be numbers.")
        encode(params)  # refuses what JSON can't say here, where the author sees it, whether the client asked or not
        token = self.meta.get("progressToken")
        if self._closed or type(token) not in {str, int} or (self._progress is not None and progress <= self._progress):
            return
        self._progress = progress
        await self._context.notify("notifications/progress", {"progressToken": token, **params})

    async def log(self, level: str, data: Any, logger: str | None = None) -> None:
        """Send a log message, if the client wants to hear of its level.

        Args:
            level: debug, info, notice, warning, error, critical, alert or emergency.
            data: any JSON value; no secrets.
            logger: names the part of the program that speaks.

        Raises:
            ValueError: the level is unknown, or the data is not JSON.
        """
        if level not in LEVELS:
            raise ValueError(f"The level must be one of {', '.join(LEVELS)}, not {level!r}.")
        if self._closed:
            return
        params = {"level": level, "data": data}
        if logger is not None:
            params["logger"] = logger
        encode(params)
        await self._context.notify("notifications/message", params)

    async def close_stream(self) -> None:
        """Let the client fetch the rest later: end the connection of this request, and go on.

        The client takes the stream up again where it broke off. Where that is not possible, nothing happens.
        """
        self._context.channel.close_stream()

    async def elicit(self, message: str, schema: Any, *, key: str | None = None) -> Elicited:
        """Ask the user to fill in a form; see `Elicit` for the schema.

        Args:
            message: why the user is asked.
            schema: the form.
            key: names the question; by default it is numbered. A 2026-07-28 client sends the call again with the
                answer, so a tool must ask the same questions in the same order each time it is run.

        Raises:
            ToolError: the client can't be asked, or its answer does not fit.
        """
        answer: Elicited = await self._one(Elicit(message, schema), key)
        return answer

    async def elicit_url(self, message: str, url: str, *, key: str | None = None) -> Elicited:
        """Ask the user to visit a page: for what must not pass through the client, such as a password."""
        named = self.protocol_version == _HANDSHAKE_ERA_IDS
        question = ElicitURL(message, url, elicitation_id=uuid4().hex if named else None)
        answer: Elicited = await self._one(question, key)
        return answer

    async def sample(
        self,
        messages: str | Content | Sequence[str | Content | Mapping[str, Any]],
        *,
        max_tokens: int,
        key: str | None = None,
        **options: Unpack[SampleOptions],
    ) -> Sampled:
        """Ask the client's model; see `Sample`."""
        answer: Sampled = await self._one(Sample(messages, max_tokens=max_tokens, **options), key)
        return answer

    async def list_roots(self, *, key: str | None = None) -> list[Root]:
        """Ask for the client's roots."""
        roots: list[Root] = await self._one(ListRoots(), key)
        return roots

    async def ask(self, questions: Mapping[str, Question]) -> dict[str, Any]:
        """Ask several questions at once and return the answers under the same keys.

        Example:
            ```python
            answers = await context.ask({"name": Elicit("Who are you?", Name), "roots": ListRoots()})
            ```
        """
        if not questions:
            return {}
        answers = await self._context.ask({key: question.request() for key, question in questions.items()})
        return {key: question.read(answers[key]) for key, question in questions.items()}

    async def _one(self, question: Question, key: str | None) -> Any:
        if key is None:
            number = self._counts[question.kind] = self._counts.get(question.kind, 0) + 1
            key = f"{question.kind}-{number}"
        return (await self.ask({key: question}))[key]

    def wait(self, awaitable: Awaitable[T]) -> T:
        """Wait in a worker thread for something on the server's event loop, and return its result.

        Raises:
            RuntimeError: called on the event loop itself, where ``await`` does it.
            ToolError: the call was cancelled in the meantime.
        """
        if _running_loop() is self._loop:
            if asyncio.iscoroutine(awaitable):
                awaitable.close()
            raise RuntimeError("context.wait is for plain functions; use await here.")
        future = asyncio.run_coroutine_threadsafe(_awaited(awaitable), self._loop)
        self._waits.add(future)
        try:
            if self._closed:
                future.cancel()
            return future.result()
        except concurrent.futures.CancelledError:
            raise ToolError("The call was cancelled.") from None
        finally:
            self._waits.discard(future)

    def close(self) -> None:
        """End the context with its call: nothing more is sent, and threads that `wait` are let go."""
        self._closed = True
        for future in tuple(self._waits):
            future.cancel()


class ToolContext(FeatureContext):
    """The context of a tool's call.

    Attributes:
        tool_name: the tool's name.
        arguments: the arguments as they came.
    """

    __slots__ = ("arguments", "tool_name")

    def __init__(self, context: RequestContext, tool_name: str, arguments: Mapping[str, Any]) -> None:
        super().__init__(context)
        self.tool_name = tool_name
        self.arguments = arguments

    @overload
    def get_argument(self, name: str, type: type[T]) -> T | None: ...

    @overload
    def get_argument(self, name: str, type: type[T], default: D) -> T | D: ...

    def get_argument(self, name: str, type: Any = Any, default: Any = None) -> Any:
        """Return an argument as a type, or the default if it is absent or null.

        Raises:
            ToolError: it does not fit the type.
        """
        value = self.arguments.get(name)
        return default if value is None else _read(name, value, type)

    def get_required_argument(self, name: str, type: type[T]) -> T:
        """Return an argument as a type.

        Raises:
            ToolError: it is absent, or does not fit the type.
        """
        if name not in self.arguments:
            raise ToolError(f"{name}: is required")
        result: T = _read(name, self.arguments[name], type)
        return result


class ResourceContext(FeatureContext):
    """The context of reading a resource, or of listing some.

    Attributes:
        uri: the URI that is read; empty while resources are listed.
    """

    __slots__ = ("uri",)

    def __init__(self, context: RequestContext, uri: str = "") -> None:
        super().__init__(context)
        self.uri = uri


class PromptContext(FeatureContext):
    """The context of getting a prompt.

    Attributes:
        prompt_name: the prompt's name.
        arguments: the arguments as they came, texts by name.
    """

    __slots__ = ("arguments", "prompt_name")

    def __init__(self, context: RequestContext, prompt_name: str, arguments: Mapping[str, str]) -> None:
        super().__init__(context)
        self.prompt_name = prompt_name
        self.arguments = arguments


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


async def _awaited(awaitable: Awaitable[T]) -> T:
    return await awaitable


def _read(name: str, value: Any, type: Any) -> Any:
    try:
        reader = _reader(name, type)
    except TypeError:  # a type with marks that can't be hashed
        reader = _reader.__wrapped__(name, type)
    return reader({name: value})[name]


@lru_cache(maxsize=256)
def _reader(name: str, type: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    from funcmcp.authoring.calling.arguments import parts_of, reader_of  # noqa: PLC0415 - pydantic, for tools that convert

    return reader_of(parts_of([Parameter(name, type, EMPTY)], "get_argument", lax=False), lax=False)
