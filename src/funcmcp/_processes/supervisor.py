"""The processes that serve, and their successors.

How it works: `WorkerProcess` starts a process with the "spawn" method and passes it the sockets. Through a pipe, a
worker sends `_READY` when it accepts connections, and `_CLOSED` when it accepts no more. It gets `_RETIRE` when other
processes serve on the same sockets, and `_HURRY` when its time to end is over. It exits with its parent
(`_exit_with_parent`).

`Supervisor` keeps workers running. It replaces a worker that dies after it was ready. A worker that dies before ends
the command, because its successor would die, too. With `watch`, all workers are replaced when a file changes, and a
worker that dies is not replaced: the next change may correct the error.

SIGHUP makes the supervisor start successors of all workers, which load the code anew and accept connections on the same
sockets. When all of them are ready, the earlier workers retire: they accept no more connections, and end as after
SIGTERM. If one successor dies before, all successors end, and the earlier workers serve on. A SIGHUP during a reload is
kept: one more reload begins when this one has ended, so frequent signals do not postpone it. A reload that has not
ended after `_RELOAD_SECONDS` is given up for the next one: code that hangs while it is imported can be corrected. A
process that serves without workers (`serve`) is the first worker itself: the supervisor then runs in a thread, begins
with the first SIGHUP, and its successors are processes.

A terminal that closes sends SIGHUP, too, and ends the command.
"""

from __future__ import annotations

import contextlib
import logging
import math
import multiprocessing
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from funcmcp._adapters.asgi.application import http_runtime_of
from funcmcp._processes.listeners import AddressError
from funcmcp._processes.systemd import VARIABLE, notify_reload, notify_systemd
from funcmcp._processes.uvicorn_server import CertificateError, StartError, UvicornServer, handling, note_in
from funcmcp._server.drain import CLEANUP_SECONDS, HURRY_SIGNALS, drain_seconds
from funcmcp._transports.exit_deadline import start_exit_deadline

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess
    from types import FrameType

    from funcmcp._processes.listeners import Listeners
    from funcmcp._processes.uvicorn_server import Application, Certificate

_KILL_SECONDS = CLEANUP_SECONDS + 0.8
"""Seconds after the time of the drain, after which the parent kills a worker process."""

_EXIT_SECONDS = 0.5
"""Seconds in which the parent exits when its workers have ended at the last moment."""

_RELOAD_SECONDS = 30.0
"""Seconds after which a reload that has not ended gives way to the next one."""

_TICK_SECONDS = 0.2
_END_TICK_SECONDS = 0.05
_READY = "ready"
_CLOSED = "closed"
_RETIRE = "retire"
_HURRY = "hurry"
_TERMINAL = "/dev/tty"

_log = logging.getLogger("funcmcp")


class WorkerError(RuntimeError):
    """A worker process exited before it could serve."""


class ServerProcess(Protocol):
    """A process that serves."""

    @property
    def name(self) -> str:
        """Its id, for the log."""

    @property
    def ready(self) -> bool:
        """Whether it has accepted connections."""

    @property
    def alive(self) -> bool:
        """Whether it serves or ends."""

    @property
    def accepts(self) -> bool:
        """Whether it may still accept connections."""

    @property
    def has_stopped(self) -> bool:
        """Whether it has ended as the author's code asked it to."""

    def retire(self) -> None:
        """End it, because its successors serve."""

    def terminate(self) -> None:
        """End it."""

    def hurry(self) -> None:
        """End the time that its calls and tasks have."""

    def kill(self, seconds: float) -> None:
        """Wait for its end, and kill it when this time is over."""


class ThisProcess:
    """The process that runs the command, as the first that serves. Its own handlers of signals end it.

    Args:
        server: Its server.
    """

    def __init__(self, server: UvicornServer) -> None:
        self._server = server
        self.name = str(os.getpid())
        self.ready = True
        self.alive = True

    @property
    def accepts(self) -> bool:
        """Whether it may still accept connections."""
        return self._server.accepts

    @property
    def has_stopped(self) -> bool:
        """Whether it has ended without a successor."""
        return not self.alive and not self._server.retires

    def retire(self) -> None:
        """End it, because its successor serves."""
        self._server.retire()

    def terminate(self) -> None:
        """End it: it has got the signal itself."""

    def hurry(self) -> None:
        """End the time that its calls have: it has got the signal itself."""

    def kill(self, seconds: float) -> None:
        """Wait for its end. `start_exit_deadline` ends the process."""


class WorkerProcess:
    """A process that this one has started, and that serves.

    Args:
        factory: Creates the application. It must be a function that `pickle` can name.
        listeners: The sockets that it accepts connections on.
        certificate: The certificate for HTTPS; None for HTTP.
        is_successor: Whether it replaces a process that serves until this one is ready.
    """

    def __init__(
        self,
        factory: Callable[[], Application],
        listeners: Listeners,
        certificate: Certificate | None,
        *,
        is_successor: bool = False,
    ) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._pipe, theirs = spawn.Pipe()
        arguments = (factory, listeners, certificate, theirs, is_successor)
        self._process: SpawnProcess = spawn.Process(target=_work, args=arguments)
        self._process.start()
        theirs.close()
        self._messages: set[str] = set()

    @property
    def name(self) -> str:
        """The id of the process."""
        return str(self._process.pid)

    @property
    def ready(self) -> bool:
        """Whether it has accepted connections."""
        return self._has_sent(_READY)

    @property
    def accepts(self) -> bool:
        """Whether it may still accept connections."""
        return self.alive and not self._has_sent(_CLOSED)

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process.is_alive()

    @property
    def has_stopped(self) -> bool:
        """Whether it has ended as the author's code asked it to."""
        return self.ready and self._process.exitcode == 0

    def retire(self) -> None:
        """End it, because its successors serve."""
        if self.ready:
            self._send(_RETIRE)
        else:
            self.terminate()

    def terminate(self) -> None:
        """End it."""
        self._process.terminate()

    def hurry(self) -> None:
        """End the time that its calls and tasks have."""
        self._send(_HURRY)

    def kill(self, seconds: float) -> None:
        """Wait for its end, and kill it when this time is over."""
        self._process.join(max(0.0, seconds))
        self._process.kill()
        self._process.join()

    def _has_sent(self, message: str) -> bool:
        while message not in self._messages and self._pipe.poll():
            try:
                self._messages.add(self._pipe.recv())
            except EOFError:  # it has exited
                return False
        return message in self._messages

    def _send(self, message: str) -> None:
        with contextlib.suppress(OSError):  # it has exited
            self._pipe.send(message)


class Retired(NamedTuple):
    """A process that ends because its successors serve.

    Attributes:
        worker: The process.
        deadline: When it is killed.
    """

    worker: ServerProcess
    deadline: float


class Supervisor:
    """Keeps worker processes running.

    Args:
        start: Starts a worker process, with `is_successor` as `WorkerProcess`.
        count: The number of workers.
        listeners: The sockets of the workers, which it closes when it stops.
        on_ready: Is called once all workers accept connections.
        on_change: Is called with the files that have changed, before the workers are replaced; with none after SIGHUP.
        on_reload: Is called with a sentence about a reload, and whether it has failed.
        first: The process of the command, if it serves itself. It is the only worker until the first reload.
        certificate: The certificate for HTTPS, which is checked before a reload starts processes; None for HTTP.
    """

    def __init__(  # noqa: PLR0913 - the functions that start workers, and those that it notifies
        self,
        start: Callable[..., WorkerProcess],
        count: int,
        listeners: Sequence[socket.socket],
        *,
        on_ready: Callable[[], None],
        on_change: Callable[[list[Path]], None],
        on_reload: Callable[[str, bool], None],
        first: ThisProcess | None = None,
        certificate: Certificate | None = None,
    ) -> None:
        self._start_worker = start
        self._count = count
        self._listeners = listeners
        self._on_ready = on_ready
        self._on_change = on_change
        self._on_reload = on_reload
        self._first = first
        self._certificate = certificate
        self._workers: list[ServerProcess] = [] if first is None else [first]
        self._successors: list[WorkerProcess] = []
        self._retired: list[Retired] = []
        self._closing: list[ServerProcess] = []
        self._announced = first is not None
        self._reload_asked = False
        self._reload_began = -math.inf
        self._has_terminal = _has_terminal()
        self._stopping = False
        self._signals: list[int] = []
        self._hurried_at = math.inf
        self._exits_at = math.inf
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None

    # Signals, which come at any time: no lock

    def stop(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - a signal handler's signature
        """Begin the shutdown; when the same signal comes again, end its time."""
        if self._thread is not None:
            start_exit_deadline()  # a thread of the author may keep this process, which has served
        if not self._stopping:
            self._exits_at = time.monotonic() + drain_seconds() + CLEANUP_SECONDS
        self._stopping = True
        self._signals.append(sig)
        if self._signals.count(sig) == HURRY_SIGNALS:
            self._hurried_at = time.monotonic()

    def hang_up(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - as above
        """Reload; end the command if its terminal has closed."""
        if self._has_terminal and not _has_terminal():
            os.kill(os.getpid(), signal.SIGTERM)
            return
        self._reload_asked = True
        if self._first is not None and self._thread is None:
            self._thread = threading.Thread(target=self._run_in_thread, name="funcmcp supervisor", daemon=True)
            self._thread.start()

    def is_set(self) -> bool:
        """Return whether the watcher of files has to end."""
        return self._stopping

    # The process of the command as the first worker

    def wait(self) -> None:
        """Wait until the successors of this process have ended, after its own server has; raise WorkerError."""
        assert self._first is not None  # noqa: S101 - `serve` passes it
        self._first.alive = False
        while self._thread is not None and self._thread.is_alive():
            self._thread.join(_TICK_SECONDS)  # a signal's handler runs in between
        if self._failure is not None:
            raise self._failure

    def _run_in_thread(self) -> None:
        try:
            self.run(None)
        except BaseException as error:  # noqa: BLE001 - `wait` raises it
            self._failure = error

    # The loop

    def run(self, watch: Path | None) -> None:
        """Start the workers, keep them running, and end them."""
        try:
            if self._first is None:
                self._start()
            for changed in self._ticks(watch):
                if changed or (self._reload_asked and watch is not None):
                    self._reload_asked = False
                    self._on_change(changed)
                    self._end()
                    self._start()
                elif self._reload_asked and self._may_reload():
                    self._reload_asked = False
                    self._begin_reload()
                self._check_successors()
                self._check_closing()
                self._check_workers(replace=watch is None)
                self._check_retired()
        finally:
            self._end()

    def _ticks(self, watch: Path | None) -> Iterator[list[Path]]:
        """Yield from time to time, until the shutdown, the files that have changed."""
        if watch is None:
            while not self._stopping:
                time.sleep(_TICK_SECONDS)
                yield []
            return
        import watchfiles  # noqa: PLC0415 - only for those who write code right now

        watched = watchfiles.watch(
            watch,
            watch_filter=watchfiles.PythonFilter(),
            stop_event=self,
            rust_timeout=int(_TICK_SECONDS * 1000),
            yield_on_timeout=True,
            ignore_permission_denied=True,
        )
        for changes in watched:
            yield [Path(path) for _, path in changes]

    def _start(self) -> None:
        self._announced = False
        if not self._stopping:
            self._workers = [self._start_worker() for _ in range(self._count)]

    def _check_workers(self, *, replace: bool) -> None:
        """Report when all workers are ready. If *replace*, replace a worker that died after it was ready."""
        for index, worker in enumerate(self._workers):
            if self._stopping or worker.alive or not replace:
                continue
            if self._first is not None and worker.has_stopped:
                self._stopping = True  # as it ends the command before the first reload
                return
            if not worker.ready:
                raise WorkerError("A worker process exited before it could serve.")
            _log.warning("Worker process %s died. A new one replaces it.", worker.name)
            self._workers[index] = self._start_worker()
        if not self._announced and all(worker.ready for worker in self._workers):
            self._announced = True
            self._on_ready()

    # Reloads

    def _may_reload(self) -> bool:
        """Return whether no reload is under way, or its time is over."""
        is_reloading = self._successors or self._closing
        return not is_reloading or time.monotonic() - self._reload_began > _RELOAD_SECONDS

    def _begin_reload(self) -> None:
        """Start the successors of the workers, in place of those of an earlier SIGHUP that are not ready."""
        self._reload_began = time.monotonic()
        notify_reload()
        self._on_reload("Reloading because of SIGHUP.", False)
        self._end_successors()
        try:
            if self._certificate is not None:
                self._certificate.check()
            for _ in range(self._count):
                self._successors.append(self._start_worker(is_successor=True))
        except CertificateError as error:
            _log.error("%s", error.strerror)
            self._fail_reload()
        except OSError as error:  # no memory, or too many processes or files
            _log.error("Can't start a process: %s", error.strerror)
            self._fail_reload()

    def _check_successors(self) -> None:
        """Retire the workers if all their successors are ready; end the successors if one of them died."""
        if not self._successors or self._stopping:
            return
        if not all(worker.alive for worker in self._successors):
            self._fail_reload()
        elif all(worker.ready for worker in self._successors):
            retired, self._workers, self._successors = self._workers, list(self._successors), []
            for worker in retired:
                worker.retire()
                self._expect_end(worker)
            self._closing += retired

    def _check_closing(self) -> None:
        """Report a reload when the earlier workers accept no more connections."""
        if self._closing and not any(worker.accepts for worker in self._closing):
            self._closing = []
            notify_systemd("READY=1", "STATUS=")
            self._on_reload("Reloaded: the new code serves.", False)

    def _fail_reload(self) -> None:
        self._end_successors()
        notify_systemd("READY=1", "STATUS=The last reload failed. The old code keeps running.")
        self._on_reload("The reload failed. The old code keeps running. The reason is above.", True)

    def _end_successors(self) -> None:
        for worker in self._successors:
            worker.terminate()
            self._expect_end(worker)
        self._successors = []

    def _expect_end(self, worker: ServerProcess) -> None:
        self._retired.append(Retired(worker, time.monotonic() + drain_seconds() + _KILL_SECONDS))

    def _check_retired(self) -> None:
        """Kill processes that did not end in time, and forget those that have ended."""
        for retired in self._retired:
            if retired.worker.alive and time.monotonic() > retired.deadline:
                retired.worker.kill(0)
        self._retired = [retired for retired in self._retired if retired.worker.alive]

    # The end

    def _end(self) -> None:
        end = time.monotonic() + drain_seconds()
        workers: list[ServerProcess] = [
            *self._workers,
            *self._successors,
            *(retired.worker for retired in self._retired),
        ]
        if self._stopping:
            notify_systemd("STOPPING=1")
            for listener in self._listeners:  # the workers have their own; on this one, nobody would accept connections
                listener.close()
        for worker in workers:
            worker.terminate()
        while self._hurried_at == math.inf and time.monotonic() < end and any(worker.alive for worker in workers):
            time.sleep(_END_TICK_SECONDS)
        if self._hurried_at < math.inf:
            for worker in workers:
                worker.hurry()
        deadline = min(end, self._hurried_at) + _KILL_SECONDS
        for worker in workers:
            worker.kill(deadline - time.monotonic())
        self._workers, self._successors, self._retired = [], [], []
        if self._stopping and self._first is None:
            # The author's module was imported here, too: its threads and functions of atexit may keep this process.
            start_exit_deadline(max(_EXIT_SECONDS, self._exits_at - time.monotonic()))


def _has_terminal() -> bool:
    """Return whether the process has a controlling terminal. It has none from the moment when the terminal closes."""
    if sys.platform == "win32":
        return False
    try:
        os.close(os.open(_TERMINAL, os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


# In a worker process


class WorkerServer(UvicornServer):
    """The server of a worker process.

    One Ctrl+C brings it SIGINT of the terminal and SIGTERM of its parent, and systemd sends SIGTERM to it and to its
    parent, which sends it again. So the parent counts the signals, and sends a message when the time is over.

    Args:
        app: The application.
        pipe: The pipe to the parent.
        certificate: The certificate for HTTPS; None for HTTP.
        early: The signals that have come before uvicorn handles them.
        listen: Is called before connections are accepted, as by `UvicornServer`.
    """

    def __init__(
        self,
        app: Application,
        pipe: Connection,
        certificate: Certificate | None,
        early: Sequence[int],
        listen: Callable[[], None],
    ) -> None:
        super().__init__(app, lambda: pipe.send(_READY), certificate, early, listen=listen)
        self._pipe = pipe
        self._is_hurried = False
        threading.Thread(target=self._wait_for_parent, name="funcmcp hurry", daemon=True).start()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin the shutdown. The time of its end is the parent's to shorten."""
        if not self.should_exit or not self.has_signals:
            super().handle_exit(sig, frame)
        elif self._is_hurried:
            self.hurry()

    def on_closed(self) -> None:
        """Notify the parent that no more connections are accepted."""
        super().on_closed()
        with contextlib.suppress(OSError):  # the parent has exited
            self._pipe.send(_CLOSED)

    def _wait_for_parent(self) -> None:
        with contextlib.suppress(EOFError, OSError):  # the parent has exited
            while True:
                if self._pipe.recv() == _RETIRE:
                    start_exit_deadline()
                    self.retire()
                else:
                    self._is_hurried = True
                    os.kill(os.getpid(), signal.SIGTERM)  # the main thread handles it


def _work(
    factory: Callable[[], Application],
    listeners: Listeners,
    certificate: Certificate | None,
    pipe: Connection,
    is_successor: bool,  # noqa: FBT001 - `Process` passes arguments by position
) -> None:
    """Serve in a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C reaches all processes; the parent sends SIGTERM
    if sys.platform != "win32":
        signal.signal(signal.SIGHUP, lambda _sig, _frame: None)  # as above; programs would inherit SIG_IGN
    os.environ.pop(VARIABLE, None)  # the parent sends systemd's messages
    threading.Thread(target=_exit_with_parent, name="funcmcp parent", daemon=True).start()
    app = factory()
    runtime = http_runtime_of(app)
    if runtime is not None:
        runtime.has_predecessor = is_successor
    early: list[int] = []
    try:
        if certificate is not None:
            certificate.check()  # after a reload its files may be others
        with handling(note_in(early)):
            WorkerServer(app, pipe, certificate, early, listeners.listen).run(listeners.sockets)
    except (AddressError, CertificateError, StartError) as error:
        _log.error("%s", error if isinstance(error, StartError) else error.strerror)
        sys.exit(1)


def _exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
