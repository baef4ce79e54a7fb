"""Connections to a PostgreSQL server: every step has a time limit, and every failure is a StoreUnavailableError.

How it works: a *step* is some statements on one connection (`PostgresLink.do`). At most `_CONNECTIONS` steps run at
once; others wait for a connection within their time limit. A step runs in an asyncio task of its own and is never
cancelled, as it would take seconds to cancel a statement at a server that does not answer. When its time is up, its
connection is shut down, so that it fails at once. If only the caller is cancelled, the step ends by itself.

If a connection fails during a step, it is unknown whether the server has committed, and it may do so later. So the
server's process for that connection is ended before the next step begins. If there is time, the step then runs once
more on a new connection. It has to find out whether its first run was committed: a write stores a random token of its
writer.

When a step fails, PostgreSQL counts as away: for `_FAILURE_PAUSE` seconds other steps fail at once. This is logged
once, and so is the return. A server that refuses a statement, because a table or a right is missing, is a lasting
error.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from secrets import token_hex
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

try:
    from psycopg import AsyncConnection, Error, InterfaceError, NotSupportedError, OperationalError, ProgrammingError
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
    from psycopg.errors import (
        DeadlockDetected,
        DuplicatePreparedStatement,
        InvalidSqlStatementName,
        SerializationFailure,
    )
except ImportError as error:  # also if psycopg finds no libpq
    raise ModuleNotFoundError('PostgreSQL needs: pip install "funcmcp[postgres]"', name=error.name) from None

from funcmcp._state.outage import Outage
from funcmcp._state.sessions.store import StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeAlias

    Connection: TypeAlias = AsyncConnection[Any]

T = TypeVar("T")

_CONNECTIONS = 8
"""Connections for steps. Further steps wait for one."""

_FAILURE_PAUSE = 0.25
"""Seconds after a failure in which other steps fail at once."""

_KEEPALIVES = {"keepalives_idle": "10", "keepalives_interval": "5", "keepalives_count": "3"}
"""Options of libpq that the URL may set otherwise: a connection over a dead network fails after 25 seconds."""

_CONFLICTS = (DeadlockDetected, SerializationFailure)
_MAX_CONFLICTS = 5
_LASTING = (NotSupportedError, ProgrammingError)
"""Errors after which a later attempt fails as well."""

_POOLER_ERRORS = (DuplicatePreparedStatement, InvalidSqlStatementName)
"""Errors of a connection whose statements a pooler sends to several connections of the server."""

_POOLER_ADVICE = (
    " A pooler, such as PgBouncer, gives each transaction another connection. Use it in session mode, or connect to "
    "the server itself; see docs/guides/running-tasks.md."
)

_LOCK_SECONDS = 10
"""Seconds for which the locks of a process last that is suspended within a transaction."""

_END_PROCESSES = "SELECT pg_terminate_backend(pid, 500) FROM pg_stat_activity WHERE application_name = ANY(%s)"


class PostgresLink:
    """Some connections to a PostgreSQL server for each event loop, also for those of several threads.

    Args:
        url: A URL or a connection string of libpq.
        timeout: Seconds that one step may take, connecting included.
        prepare: Is called with the first connection, and may create tables.
        store: The name of the store in errors.

    Raises:
        ValueError: The URL is not valid.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float,
        prepare: Callable[[Connection], Awaitable[None]],
        store: str = "task store",
    ) -> None:
        try:
            options = conninfo_to_dict(url)
        except ProgrammingError as error:
            raise ValueError(
                f"A store in PostgreSQL needs a URL, such as 'postgresql://localhost/app': {str(error).strip()}"
            ) from None
        self.timeout = timeout
        self._store = store
        self._url = make_conninfo(url, **{name: value for name, value in _KEEPALIVES.items() if name not in options})
        self._prepare = prepare
        self._prepared = False
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Connections] = WeakKeyDictionary()
        self._adding = Lock()
        self._lost: set[str] = set()
        self._outage = Outage()
        self._paused_until = 0.0

    async def do(self, step: Callable[[Connection], Awaitable[T]]) -> T:
        """Run a step and return its result; run it once more if its connection fails.

        Raises:
            StoreUnavailableError: PostgreSQL can't be reached in time, or refuses a statement.
        """
        if monotonic() < self._paused_until:
            raise StoreUnavailableError(store=self._store, nothing_written=True)
        connections = self._connections()
        run = _Run()
        task = asyncio.ensure_future(self._run(step, run, connections))
        connections.running.add(task)
        task.add_done_callback(connections.forget)
        done, _ = await asyncio.wait({task}, timeout=self.timeout)
        if not done:
            run.end()
            raise self._failure(TimeoutError("no reply in time"), nothing_written=not run.began)
        try:
            result = task.result()
        except (Error, OSError) as error:
            raise self._failure(error, nothing_written=not run.is_unknown) from error
        self._outage.end("PostgreSQL is back.")
        return result

    async def connect(self) -> Connection:
        """Return a new connection, which the caller closes; raise the errors of psycopg and of sockets."""
        async with asyncio.timeout(self.timeout):
            connection = await AsyncConnection.connect(
                self._url, autocommit=True, application_name=f"funcmcp {token_hex(8)}"
            )
            try:
                await connection.execute(f"SET idle_in_transaction_session_timeout = '{_LOCK_SECONDS}s'")
                if not self._prepared:
                    await self._prepare(connection)
                    self._prepared = True
            except BaseException:
                await connection.close()
                raise
        return connection

    async def aclose(self) -> None:
        """Close the connections of this event loop when its steps have ended."""
        await self.settle()
        await self._connections().close_idle()

    async def settle(self) -> None:
        """Wait for steps whose callers have been cancelled."""
        running = self._connections().running
        if running:
            await asyncio.wait(running, timeout=self.timeout)

    def note_failure(self, error: Exception) -> None:
        """Log the first of several failures, and let other steps fail at once for a moment."""
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        advice = _POOLER_ADVICE if isinstance(error, _POOLER_ERRORS) else ""
        self._outage.begin(
            "PostgreSQL fails (%s). Requests that need the %s are answered with 503.%s", reason, self._store, advice
        )
        if not isinstance(error, _LASTING):
            self._paused_until = monotonic() + _FAILURE_PAUSE

    def _failure(self, error: Exception, *, nothing_written: bool) -> StoreUnavailableError:
        """Return the error for requests, and note it."""
        self.note_failure(error)
        if isinstance(error, _LASTING):
            return StoreUnavailableError(None, store=self._store, nothing_written=True)
        return StoreUnavailableError(store=self._store, nothing_written=nothing_written)

    def _connections(self) -> _Connections:
        """Return the connections of the running event loop."""
        loop = asyncio.get_running_loop()
        with self._adding:
            if loop not in self._loops:
                self._loops[loop] = _Connections()
            return self._loops[loop]

    async def _run(self, step: Callable[[Connection], Awaitable[T]], run: _Run, connections: _Connections) -> T:
        """Run a step; run it again after a conflict with another transaction, or once on a new connection."""
        async with connections.free:
            for _ in range(_MAX_CONFLICTS):
                try:
                    return await self._run_once(step, run, connections.idle)
                except _CONFLICTS:
                    continue
                except (OperationalError, InterfaceError):
                    if run.has_ended or not run.is_unknown:
                        raise
                    break
            else:
                raise OperationalError("other transactions write the same rows")
            await connections.close_idle()
            return await self._run_once(step, run, connections.idle)

    async def _run_once(self, step: Callable[[Connection], Awaitable[T]], run: _Run, idle: list[Connection]) -> T:
        """Run a step on one connection, when the processes of lost connections have ended."""
        connection = idle.pop() if idle else await self.connect()
        run.use(connection)
        try:
            if self._lost:
                lost = set(self._lost)
                await connection.execute(_END_PROCESSES, (list(lost),))
                self._lost -= lost
            result = await step(connection)
        except BaseException:
            run.is_unknown = connection.broken
            if connection.broken:
                self._lost.add(run.name)
            raise
        finally:
            run.leave()
            if connection.broken:
                await connection.close()
            else:
                idle.append(connection)
        run.is_unknown = False
        return result


class _Connections:
    """The connections of an event loop.

    Attributes:
        free: Has a place for each connection that may be opened or used.
        idle: Connections that no step uses.
        running: The steps.
    """

    def __init__(self) -> None:
        self.free = asyncio.Semaphore(_CONNECTIONS)
        self.idle: list[Connection] = []
        self.running: set[asyncio.Task[Any]] = set()

    def forget(self, task: asyncio.Task[Any]) -> None:
        """Forget a step that has ended."""
        self.running.discard(task)
        if not task.cancelled():
            task.exception()  # which nobody retrieves if the caller does not wait any more

    async def close_idle(self) -> None:
        """Close the connections that no step uses."""
        while self.idle:
            await self.idle.pop().close()


class _Run:
    """A step that runs.

    Attributes:
        name: The name of its last connection, in `pg_stat_activity`.
        began: Whether it had a connection.
        is_unknown: Whether its last connection failed, so that it is unknown whether it was committed.
        has_ended: Whether its time is up.
    """

    def __init__(self) -> None:
        self.name = ""
        self.began = False
        self.is_unknown = False
        self.has_ended = False
        self._connection: Connection | None = None

    def use(self, connection: Connection) -> None:
        """Note the connection on which the step runs."""
        self.began = True
        self.name = connection.info.parameter_status("application_name") or ""
        self._connection = connection
        if self.has_ended:
            self.end()

    def leave(self) -> None:
        """Note that the step does not use its connection any more."""
        self._connection = None

    def end(self) -> None:
        """Shut the connection down, so that the step fails."""
        self.has_ended = True
        if self._connection is not None:
            with contextlib.suppress(OSError, Error), socket.socket(fileno=os.dup(self._connection.fileno())) as copy:
                copy.shutdown(socket.SHUT_RDWR)
