"""What the host needs from a language worker: the functions of an app, and a way to invoke them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from funcmcp._server.log import quote

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence


class Value(NamedTuple):
    """A value that a function gets or returns.

    Attributes:
        kind: "string", "json" (a text), "bytes", "int", "double", "http" or "null".
        data: A string for "string" and "json"; bytes; a number; a mapping with status, headers and body for "http";
            None for "null".
    """

    kind: str
    data: Any = None


NULL = Value("null")

_MAX_LOGGED = 2000
"""Characters of a function's text in the log."""

_STOPPED = "The function app stopped while it ran the function. The call may have had an effect."
_NOT_RUNNING = "The function app is not running. The call had no effect."


@dataclass(frozen=True, slots=True)
class FunctionInfo:
    """A function as its worker describes it.

    Attributes:
        name: The function's name, unique in the app.
        bindings: The JSON texts of its bindings; one of them is the trigger.
        error: Why the worker can't run it, or None.
    """

    name: str
    bindings: tuple[str, ...]
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call of a function.

    Attributes:
        function: The function's name.
        inputs: Values for the trigger and the input bindings, by the bindings' names.
        metadata: The trigger's binding data, by name.
        trace_parent: The W3C trace context of the call; empty without one.
        id: Identifies the call in the worker; empty for an id that the worker makes.
    """

    function: str
    inputs: Mapping[str, Value]
    metadata: Mapping[str, Value] = field(default_factory=dict)
    trace_parent: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a function returned.

    Attributes:
        value: The return value.
        outputs: The values of output bindings, by the bindings' names.
    """

    value: Value
    outputs: Mapping[str, Value] = field(default_factory=dict)


class LoadFailed(Exception):
    """The worker could not load the app. The text is for the person who runs it."""


def text_for_log(error: BaseException) -> str:
    """Return why a call failed, for the log: functions put texts of callers, of any length, into their exceptions."""
    general = "It did not finish in time." if isinstance(error, TimeoutError) else type(error).__name__
    return quote(str(error) or general, _MAX_LOGGED)


class FunctionFailed(Exception):
    """The function raised an exception.

    Args:
        text: The type and the message of the exception.
        trace: Its traceback.
    """

    def __init__(self, text: str, trace: str = "") -> None:
        super().__init__(text)
        self.trace = trace


class WorkerGone(Exception):
    """The worker's process ended.

    Args:
        begun: Whether it had begun with the call; a call that it had not begun can go to another worker.
    """

    def __init__(self, *, begun: bool) -> None:
        super().__init__(_STOPPED if begun else _NOT_RUNNING)
        self.begun = begun


class LanguageWorker(Protocol):
    """A language worker with one app."""

    @property
    def functions(self) -> Sequence[FunctionInfo]:
        """The app's functions, once `start` has returned."""

    @property
    def http_url(self) -> str | None:
        """Where the worker serves HTTP itself; None where requests are sent with the invocation."""

    async def start(self) -> None:
        """Start the process and load the app; raise LoadFailed."""

    async def invoke(self, invocation: Invocation, seconds: float | None) -> Outcome:
        """Call a function.

        Args:
            invocation: The call.
            seconds: The time that it may take; None for any.

        Raises:
            FunctionFailed: The function raised an exception.
            WorkerGone: The worker ended before the answer.
            TimeoutError: The time is over; the worker was asked to cancel the call.
        """

    async def aclose(self) -> None:
        """End the process."""


class SingleWorker(LanguageWorker, Protocol):
    """A worker with one process, which is started once. `Supervised` starts the next one when it ends."""

    async def invoke(
        self, invocation: Invocation, seconds: float | None, overdue: Callable[[], Awaitable[None]] | None = None
    ) -> Outcome:
        """Call a function; see `LanguageWorker`.

        Args:
            invocation: The call.
            seconds: The time that it may take; None for any.
            overdue: Is awaited if the time is over and the worker has not begun with the call. It ends a worker that
                does not answer, so that the call fails with `WorkerGone` and can go to another one.
        """

    @property
    def description(self) -> str:
        """The language, its version and the library that runs the functions, for people."""

    @property
    def pid(self) -> int | None:
        """The process id; None before the start."""

    @property
    def exit_code(self) -> int | None:
        """The exit code of the process, or the negative number of the signal that ended it; None while it runs."""

    @property
    def ended(self) -> asyncio.Future[None]:
        """Done when the worker can't take calls any more."""

    async def ping(self, seconds: float) -> bool:
        """Return whether the worker answers in this time."""

    async def idle(self) -> None:
        """Wait until no call is open, or the process has ended."""


class OpenCall:
    """A call that waits for its answer.

    How it works. A timer expires the call. If the worker has begun with it by then, the call fails with TimeoutError.
    Otherwise it has not used its time: *overdue* decides whether the worker is ended, and then the call fails with
    `WorkerGone`. If the worker begins with it meanwhile, it has all of its time from then on.

    Args:
        function: The function's name.

    Attributes:
        function: The function's name.
        future: Has the outcome, or the reason why there is none.
        begun: Whether the worker has begun with it.
    """

    __slots__ = ("_late", "_timer", "begun", "function", "future")

    def __init__(self, function: str) -> None:
        self.function = function
        self.future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self.begun = False
        self._timer: asyncio.TimerHandle | None = None
        self._late: asyncio.Task[None] | None = None

    async def outcome(self, seconds: float | None, overdue: Callable[[], Awaitable[None]] | None) -> Outcome:
        """Return the outcome; see `SingleWorker.invoke`."""
        if seconds is not None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._expire, seconds, overdue)
        try:
            return await self.future
        finally:
            if self._timer is not None:
                self._timer.cancel()
            if self._late is not None:
                self._late.cancel()

    def _expire(self, seconds: float, overdue: Callable[[], Awaitable[None]] | None) -> None:
        if self.begun or overdue is None:
            self._fail()
        else:
            self._late = asyncio.create_task(self._wait_until_decided(seconds, overdue))

    async def _wait_until_decided(self, seconds: float, overdue: Callable[[], Awaitable[None]]) -> None:
        await overdue()
        if self.begun:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._fail)
        else:
            self._fail()

    def _fail(self) -> None:
        if not self.future.done():
            self.future.set_exception(TimeoutError())
