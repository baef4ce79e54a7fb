"""Lifespans: code of the author that runs when a server starts and when it stops; see `MCPServer.add_lifespan`.

How it works: `Lifespans` belongs to a server. What is open belongs to one event loop (`_OpenLifespans`), because
connections, locks and tasks of one loop can't be used in another: a server that is used in two loops has two of each.
Each counts its users: the process that serves the server, a client in memory, a server that mounts it. The first user
starts it, and the last one stops it. While it runs, a task of its own holds the context managers: libraries such as
anyio require that a context manager is left in the task that has entered it, and the first request and the end of the
process have no task in common.

The states are *stopped* (no task), *starting* (the task runs, `started` is pending), *running* (`started` is done)
and *stopping* (`stop` is set). A start that fails ends in *stopped*, so the next user tries again. A user that comes
while it stops waits for the end, and starts it again.

A loop that ends without its last user, as `asyncio.run` does with a server that was used without a lifespan, cancels
the task, which leaves the lifespans.
"""

from __future__ import annotations

import asyncio
import inspect
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from funcmcp._objects.background import hold_until_done
from funcmcp._server.log import types_and_texts
from funcmcp._server.run import is_failure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Open = Callable[[], AbstractAsyncContextManager[Any]]


class LifespanError(RuntimeError):
    """A lifespan failed when the server started, so the server can't start."""


class CannotStartError(LifespanError):
    """The server can't start for a reason outside of its code. The text says all, so no traceback is logged."""


class _FailedLifespanError(LifespanError):
    """A lifespan raised an exception.

    Args:
        lifespan: The name of its function.
        reason: The exceptions and their texts.
        server: The name of the mounted server that has the lifespan; None for the server that starts.
    """

    def __init__(self, lifespan: str, reason: str, server: str | None = None) -> None:
        subject = f"its lifespan {lifespan}"
        if server is not None:
            subject = f"the lifespan {lifespan} of its mounted server {server!r}"
        super().__init__(f"The server can't start: {subject} failed with {reason}")
        self.lifespan = lifespan
        self.reason = reason
        self.server = server


class Lifespans:
    """The lifespans of one server.

    Args:
        close_services: Closes the server's services of the running event loop. Called before its lifespans are left.

    Attributes:
        listeners: Functions that are called when a lifespan is added.
    """

    def __init__(self, close_services: Callable[[], Awaitable[None]]) -> None:
        self._close_services = close_services
        self._functions: list[tuple[str, Open]] = []
        self._mounted: list[tuple[str, Lifespans]] = []
        self.listeners: list[Callable[[], None]] = []
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, _OpenLifespans] = WeakKeyDictionary()

    def __bool__(self) -> bool:
        return bool(self._functions) or any(mounted for _, mounted in self._mounted)

    @property
    def is_running(self) -> bool:
        """Whether every lifespan has been entered in the running event loop."""
        opened = self._by_loop.get(asyncio.get_running_loop())
        return opened is not None and opened.is_running

    @property
    def has_started(self) -> bool:
        """Whether the lifespans have been entered, or are being entered, in any event loop."""
        return any(opened.started is not None for opened in self._by_loop.values())

    @property
    def has_users(self) -> bool:
        """Whether something in the running event loop has entered the lifespans and will leave them."""
        opened = self._by_loop.get(asyncio.get_running_loop())
        return opened is not None and opened.users > 0

    @property
    def value(self) -> Any:
        """What the lifespans have yielded in the running event loop; elsewhere in the only loop where they run.

        Raises:
            RuntimeError: The server has not started, or in several loops.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            loops = [loop for loop, opened in self._by_loop.items() if opened.is_running]
            if len(loops) > 1:
                raise RuntimeError("The server runs in several event loops. Read the value in one of them.") from None
            if not loops:
                return self._value_of(None)
            loop = loops[0]
        return self.value_in(loop)

    def value_in(self, loop: asyncio.AbstractEventLoop) -> Any:
        """Return what the lifespans have yielded in a loop: the value of the only one, or the members of their dicts.

        Raises:
            RuntimeError: The server has not started in this loop.
        """
        return self._value_of(self._by_loop.get(loop))

    def _value_of(self, opened: _OpenLifespans | None) -> Any:
        if not self._functions:
            return {}
        if opened is None or opened.started is None or not opened.is_running:
            raise RuntimeError(
                "The server has not started, so its lifespan has no value. Write `async with mcp.lifespan():` around "
                "calls without a client."
            )
        return opened.started.result()

    def add(self, function: Callable[..., Any], server: object) -> None:
        """Add a lifespan inside the existing ones.

        Args:
            function: Returns an async context manager, or is an async generator function with one ``yield``.
            server: The argument of the function, if it has a parameter.

        Raises:
            TypeError: The function can't be a lifespan.
            RuntimeError: The server has started.
        """
        if self.has_started:
            raise RuntimeError("The server has started. Call mcp.add_lifespan before that.")
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

    def mount(self, mounted: Lifespans, name: str) -> None:
        """Start and stop the lifespans and services of another server, which has this name, with these."""
        self._mounted.append((name, mounted))
        mounted.listeners.append(self._notify)
        self._notify()

    async def enter(self) -> None:
        """Start in the running event loop, unless another user has; raise LifespanError if a lifespan fails."""
        loop = asyncio.get_running_loop()
        opened = self._by_loop.get(loop)
        if opened is None:
            opened = self._by_loop[loop] = _OpenLifespans(self._enter_all)
        opened.users += 1
        try:
            if self._functions or self._mounted:
                await opened.start()
        except BaseException:
            opened.users -= 1
            if opened.users == 0:
                opened.end_soon()
            raise

    async def leave(self) -> None:
        """Stop in the running event loop, unless the server has another user there.

        Raises:
            RuntimeError: Nothing has entered the lifespans in this event loop.
        """
        opened = self._by_loop.get(asyncio.get_running_loop())
        if opened is None or opened.users == 0:
            raise RuntimeError("The server was started in another event loop. Stop it in the same loop.")
        opened.users -= 1
        if opened.users > 0:
            return
        try:
            await self.close_services()
        finally:
            if opened.users == 0:
                await opened.end()

    async def close_services(self) -> None:
        """Close the services of the running event loop, and those of mounted servers that have no other user."""
        async with AsyncExitStack() as stack:
            for _, mounted in self._mounted:
                if not mounted.has_users:
                    stack.push_async_callback(mounted.close_services)
            stack.push_async_callback(self._close_services)

    async def _enter_all(self, stack: AsyncExitStack) -> Any:
        """Enter the lifespans of the mounted servers and the own ones, and return their value."""
        for server, mounted in self._mounted:
            try:
                await mounted.enter()
            except _FailedLifespanError as error:
                if error.server is not None:
                    raise
                raise _FailedLifespanError(error.lifespan, error.reason, server) from error.__cause__
            stack.push_async_callback(mounted.leave)
        values = []
        for name, open_lifespan in self._functions:
            try:
                values.append((name, await stack.enter_async_context(open_lifespan())))
            except CannotStartError:
                raise
            except BaseException as error:
                if isinstance(error, SystemExit | KeyboardInterrupt) or not is_failure(error):
                    raise
                raise _FailedLifespanError(name, types_and_texts(error)) from error
        return _joined(values)

    def _notify(self) -> None:
        if self:
            for listener in self.listeners:
                listener()


class _OpenLifespans:
    """The lifespans of one server in one event loop.

    Args:
        enter_all: Enters all lifespans into a stack, and returns their value.

    Attributes:
        users: The number of users.
        started: The value of the lifespans; None if they are stopped.
    """

    def __init__(self, enter_all: Callable[[AsyncExitStack], Awaitable[Any]]) -> None:
        self._enter_all = enter_all
        self.users = 0
        self.started: asyncio.Future[Any] | None = None
        self._task: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()

    @property
    def is_running(self) -> bool:
        """Whether every lifespan has been entered."""
        return self.started is not None and self.started.done()

    async def start(self) -> None:
        """Enter the lifespans, unless that has happened; raise LifespanError if one of them fails."""
        while self._stop.is_set() and self._task is not None:
            await asyncio.wait([self._task])
        if self.started is None:
            self._stop = asyncio.Event()
            self.started = asyncio.get_running_loop().create_future()
            self._task = hold_until_done(asyncio.create_task(self._run(self.started, self._stop)))
        started = self.started
        await asyncio.wait([started])  # a user that stops waiting must not cancel the start for the others
        started.result()

    async def end(self) -> None:
        """Leave the lifespans. A caller that is cancelled does not cancel the code of the author."""
        task = self._task
        if task is not None:
            self._stop.set()
            await asyncio.wait([task])
            task.result()

    def end_soon(self) -> None:
        """Leave the lifespans as soon as they have been entered."""
        self._stop.set()

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
            self.started = self._task = None


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
