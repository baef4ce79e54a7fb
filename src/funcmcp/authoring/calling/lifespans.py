"""Lifespans: code of the author that runs when a server starts and when it stops; see `MCPServer.add_lifespan`.

How it works: `Lifespans` belongs to a server and counts its users: the process that serves it, a client in memory, a
server that mounts it. The first user starts it, and the last one stops it. While it runs, a task of its own holds the
context managers: libraries such as anyio require that a context manager is left in the task that has entered it, and
the first request and the end of the process have no task in common.

The states are *stopped* (no task), *starting* (the task runs, `_started` is pending), *running* (`_started` is done)
and *stopping* (`_stop` is set). A start that fails ends in *stopped*, so the next user tries again.
"""

from __future__ import annotations

import asyncio
import inspect
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Open = Callable[[], AbstractAsyncContextManager[Any]]


class LifespanError(RuntimeError):
    """A lifespan failed when the server started, so the server can't start."""


class Lifespans:
    """The lifespans of one server.

    Attributes:
        listeners: Functions that are called when a lifespan is added.
    """

    def __init__(self) -> None:
        self._functions: list[tuple[str, Open]] = []
        self._mounted: list[Lifespans] = []
        self.listeners: list[Callable[[], None]] = []
        self._users = 0
        self._task: asyncio.Task[None] | None = None
        self._started: asyncio.Future[Any] | None = None
        self._stop = asyncio.Event()

    def __bool__(self) -> bool:
        return bool(self._functions) or any(self._mounted)

    @property
    def is_running(self) -> bool:
        """Whether every lifespan has been entered."""
        return self._started is not None and self._started.done()

    @property
    def value(self) -> Any:
        """What the lifespans have yielded: the value of the only one, or the members of their dicts together.

        Raises:
            RuntimeError: The server has not started.
        """
        if not self._functions:
            return {}
        if self._started is None or not self._started.done():
            raise RuntimeError(
                "The server has not started, so its lifespan has no value. Write `async with mcp.lifespan():` around "
                "calls without a client."
            )
        return self._started.result()

    def add(self, function: Callable[..., Any], server: object) -> None:
        """Add a lifespan inside the existing ones.

        Args:
            function: Returns an async context manager, or is an async generator function with one ``yield``.
            server: The argument of the function, if it has a parameter.

        Raises:
            TypeError: The function can't be a lifespan.
            RuntimeError: The server has started.
        """
        self._check_stopped("add_lifespan")
        name = getattr(function, "__qualname__", repr(function))
        is_generator = inspect.isasyncgenfunction(function)
        plain = inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function)
        if not callable(function) or plain:
            raise TypeError(
                "A lifespan is an async function with one yield, or a function with @asynccontextmanager; "
                f"{name} is neither."
            )
        make: Callable[..., Any] = asynccontextmanager(function) if is_generator else function
        arguments = (server,) if _takes_server(function) else ()

        def open_lifespan() -> AbstractAsyncContextManager[Any]:
            manager = make(*arguments)
            if not isinstance(manager, AbstractAsyncContextManager):
                raise TypeError(f"it must return an async context manager, not {type(manager).__name__}")
            return manager

        self._functions.append((name, open_lifespan))
        self._notify()

    def mount(self, mounted: Lifespans) -> None:
        """Start and stop the lifespans of another server with these. Raise RuntimeError if the server has started."""
        self._check_stopped("mount")
        self._mounted.append(mounted)
        mounted.listeners.append(self._notify)
        self._notify()

    async def enter(self) -> None:
        """Start, unless another user has done so; raise LifespanError if a lifespan fails."""
        self._users += 1
        try:
            if self:
                await self._start()
        except BaseException:
            self._users -= 1
            raise

    async def leave(self) -> None:
        """Stop, unless the server has another user."""
        self._users -= 1
        if self._users == 0 and self._task is not None:
            self._stop.set()
            await self._task

    async def _start(self) -> None:
        if self._started is None:
            self._stop = asyncio.Event()
            self._started = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._run(self._started, self._stop))
        started = self._started
        await asyncio.wait([started])  # a user that stops waiting must not cancel the start for the others
        started.result()

    async def _run(self, started: asyncio.Future[Any], stop: asyncio.Event) -> None:
        """Enter the lifespans, and leave them when the last user has left."""
        try:
            async with AsyncExitStack() as stack:
                started.set_result(await self._enter_all(stack))
                with suppress(asyncio.CancelledError):  # the end of a loop that cancels all tasks is a stop
                    await stop.wait()
        except BaseException as error:
            if started.done() or not isinstance(error, Exception):
                raise
            started.set_exception(error)
        finally:
            if not started.done():
                started.set_exception(LifespanError("The server can't start: its start was cancelled."))
            self._started = self._task = None

    async def _enter_all(self, stack: AsyncExitStack) -> Any:
        for mounted in self._mounted:
            await mounted.enter()
            stack.push_async_callback(mounted.leave)
        values = []
        for name, open_lifespan in self._functions:
            try:
                values.append((name, await stack.enter_async_context(open_lifespan())))
            except Exception as error:
                raise LifespanError(
                    f"The server can't start: its lifespan {name} failed with {type(error).__name__}: {error}"
                ) from error
        return _joined(values)

    def _notify(self) -> None:
        if self:
            for listener in self.listeners:
                listener()

    def _check_stopped(self, method: str) -> None:
        if self._started is not None:
            raise RuntimeError(f"The server has started. Call mcp.{method} before that.")


def _takes_server(function: Callable[..., Any]) -> bool:
    """Return whether a function has a parameter that it needs, which gets the server."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(parameter.kind in positional for parameter in inspect.signature(function).parameters.values())


def _joined(values: list[tuple[str, Any]]) -> Any:
    """Return the only value that is not None, or the members of several dicts; raise LifespanError."""
    present = [(name, value) for name, value in values if value is not None]
    if not present:
        return {}
    if len(present) == 1:
        return present[0][1]
    members: dict[str, Any] = {}
    for name, value in present:
        if not isinstance(value, dict):
            raise LifespanError(
                f"The server can't start: it has several lifespans with values, so {name} must yield a dict or "
                f"nothing, not {type(value).__name__}."
            )
        members.update(value)
    return members
