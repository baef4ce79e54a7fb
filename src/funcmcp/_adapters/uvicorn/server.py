"""uvicorn: listen on an address, serve an ASGI application, and exit in time after a signal.

How it works: after SIGTERM or SIGINT, calls in flight and tasks may finish within the time of `funcmcp._server.drain`.
Then the process exits with code 0, whatever still runs, within two seconds (`exit_deadline`). Only a thread in a C
function that never releases the interpreter's lock can prevent that; worker processes are killed by their parent even
then.

`serve` serves in this process. `serve_processes` serves in worker processes: `_Supervisor` starts them with the "spawn"
method and passes them the listening socket. A worker sends one message through a pipe when it accepts connections, gets
one when its time to end is over, and exits with its parent (`_exit_with_parent`). The supervisor replaces a worker that
dies after it was ready. A worker that dies before ends the command, because its successor would die, too. With `watch`,
all workers are replaced when a file changes, and a worker that dies is not replaced: the next change may correct the
error.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import math
import multiprocessing
import os
import signal
import socket
import ssl
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import uvicorn
from uvicorn.config import LOGGING_CONFIG

from funcmcp._adapters.asgi.application import served_by
from funcmcp._adapters.http1.direct_path import direct_path
from funcmcp._adapters.http1.unsent_bytes import UnsentBytes
from funcmcp._adapters.uvicorn.protocols import http_protocol, websocket_protocol
from funcmcp._protocol.loopback import is_loopback
from funcmcp._server.drain import CLEANUP_SECONDS, HURRY_SIGNALS, drain_seconds
from funcmcp._server.limits import Limits
from funcmcp._server.log_output import is_json, write_to_stderr
from funcmcp._state.keys import shared_by_children
from funcmcp._state.sessions.ended import shared_with_workers
from funcmcp._transports.exit_deadline import start_exit_deadline
from funcmcp._transports.http.options import PORT_VARIABLE, keep_alive_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess
    from types import FrameType

    Application: TypeAlias = Callable[..., Any]

_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - the name of a socket that listens on all addresses
_KILL_SECONDS = CLEANUP_SECONDS + 0.8
"""Seconds after the time of the drain, after which the parent kills a worker process."""

_LAST_TURNS = 10
"""Turns of the event loop in which a server that stops accepts waiting connections, which the kernel would reset."""

_TICK_SECONDS = 0.2
_END_TICK_SECONDS = 0.05
_CLOSING_SECONDS = 0.5
"""Seconds after the time of the drain, in which WebSockets may close by themselves."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_log = logging.getLogger("funcmcp")


class AddressError(OSError):
    """The address can't be listened on: it is in use, not this machine's, or not allowed."""


class CertificateError(OSError):
    """The files for HTTPS can't be read, or are not a certificate and its private key."""


class Certificate(NamedTuple):
    """The files of a certificate for HTTPS.

    Attributes:
        certificate: A PEM file with the certificate and the intermediate certificates.
        key: A PEM file with the private key, without a password.
    """

    certificate: str
    key: str

    def check(self) -> None:
        """Raise CertificateError unless the files are a certificate and its key."""
        for file in self:
            try:
                with open(file, "rb"):  # noqa: PTH123 - a path as the operator wrote it
                    pass
            except OSError as error:
                raise CertificateError(error.errno, f"Can't read {file}: {error.strerror}") from error
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self.certificate, self.key, password=_refuse_password)
        except (ssl.SSLError, ValueError) as error:
            reason = getattr(error, "reason", None) or str(error)
            files = f"{self.certificate} and {self.key}"
            raise CertificateError(
                errno.EINVAL, f"{files} are not a PEM certificate and its private key without a password: {reason}"
            ) from error


def _refuse_password() -> str:
    raise ValueError("the key has a password")


class StartError(RuntimeError):
    """The application's lifespan failed at the start. The log has the reason."""


class WorkerError(RuntimeError):
    """A worker process exited before it could serve."""


def default_port() -> int:
    """Return the default port: the one that the Azure Functions host assigns to a custom handler, or 8000."""
    return int(os.environ.get(PORT_VARIABLE, "8000"))


def announce(origin: str) -> None:
    """Write on stderr where the server is, if that is possible."""
    with contextlib.suppress(OSError, ValueError):  # ValueError: stderr is closed
        sys.stderr.write(f"Serving on {origin}\n")


def _ignore(_files: list[Path]) -> None:
    """Do nothing about changed files."""


def serve(
    app: Application,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    on_ready: Callable[[str], None] = announce,
    certificate: Certificate | None = None,
) -> None:
    """Serve an ASGI application in this process until SIGTERM or SIGINT.

    Args:
        app: The application.
        host: A name or an IPv4 or IPv6 address to listen on.
        port: The port to listen on; 0 for a free one.
        on_ready: Is called once connections are accepted, with the origin, such as ``http://127.0.0.1:8000``.
        certificate: The certificate for HTTPS; None for HTTP.

    Raises:
        AddressError: The address can't be listened on.
        CertificateError: The certificate is not valid.
        StartError: The application's lifespan failed at the start.
    """
    if certificate is not None:
        certificate.check()
    listener = listen(host, port)
    early: list[int] = []
    with contextlib.closing(listener), _handling(_note_in(early)):
        origin = origin_of(host, listener, certificate)
        _Server(app, lambda: on_ready(origin), certificate, early).run([listener])


async def serve_async(
    app: Application, *, host: str = "127.0.0.1", port: int = 8000, on_ready: Callable[[str], None] = announce
) -> None:
    """Serve in the running event loop. Arguments and errors are those of `serve`.

    A task that is cancelled stops the server first, as `MCPServer.stop` does; if it is cancelled again, at once.
    """
    listener = listen(host, port)
    early: list[int] = []
    with contextlib.closing(listener), _handling(_note_in(early)):
        server = _Server(app, lambda: on_ready(origin_of(host, listener)), early=early)
        serving = asyncio.create_task(server.serve([listener]))
        try:
            await asyncio.wait([serving])
        except asyncio.CancelledError:
            server.stop()
            await _end(serving, server)
            raise
        serving.result()


async def _end(serving: asyncio.Task[None], server: _Server) -> None:
    """Wait for the end of a server that stops; cancel its calls in flight if the waiting task is cancelled again."""
    while not serving.done():
        try:
            await asyncio.wait([serving])
        except asyncio.CancelledError:
            server.hurry()


def serve_processes(  # noqa: PLR0913 - one for each option of the command
    factory: Callable[[], Application],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    workers: int = 1,
    watch: Path | None = None,
    on_ready: Callable[[str], None] = announce,
    on_change: Callable[[list[Path]], None] = _ignore,
    certificate: Certificate | None = None,
) -> None:
    """Serve an application in worker processes until SIGTERM or SIGINT.

    The environment of the workers has a common key and the table of ended sessions, so that each worker serves the
    sessions of the others.

    Args:
        factory: Creates the application in each worker. It must be a function that `pickle` can name.
        host: A name or an IPv4 or IPv6 address to listen on.
        port: The port to listen on; 0 for a free one.
        workers: The number of processes.
        watch: A folder. The workers are replaced when a Python file in it changes.
        on_ready: Is called once all workers accept connections, with the origin.
        on_change: Is called with the files that have changed, before the workers are replaced.
        certificate: The certificate for HTTPS; None for HTTP.

    Raises:
        AddressError: The address can't be listened on.
        CertificateError: The certificate is not valid.
        WorkerError: A worker exited before it could serve, without *watch*.
    """
    if certificate is not None:
        certificate.check()
    listener = listen(host, port)
    origin = origin_of(host, listener, certificate)
    start = partial(_Worker, factory, listener, certificate)
    supervisor = _Supervisor(start, workers, on_ready=lambda: on_ready(origin), on_change=on_change)
    with (
        contextlib.closing(listener),
        _handling(supervisor.stop),
        shared_by_children(os.environ),
        shared_with_workers(os.environ),
    ):
        supervisor.run(watch)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address; raise AddressError."""
    try:
        addresses = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP, flags=socket.AI_PASSIVE
        )
        # With an explicit protocol, asyncio turns Nagle's algorithm off; create_server() would leave it on.
        family, kind, protocol, _, address = addresses[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a host name"
        raise AddressError(errno.EADDRNOTAVAIL, f"{host!r} is not an address to listen on: {reason}") from error
    try:
        if os.name == "posix":  # on Windows two programs could then share the port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6 and address[0] == "::" and socket.has_dualstack_ipv6():
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)  # all addresses, of IPv4 as well
        listener.bind(address)
        listener.listen(2048)
    except OSError as error:
        listener.close()
        reason = error.strerror
        if error.errno == errno.EADDRINUSE:
            reason = "it is in use by another program"
        raise AddressError(error.errno, f"Can't listen on {_authority(host, port)}: {reason}") from error
    return listener


def origin_of(host: str, listener: socket.socket, certificate: Certificate | None = None) -> str:
    """Return the origin of a listening socket, with a loopback address if it listens on all addresses."""
    address, port = listener.getsockname()[:2]
    scheme = "http" if certificate is None else "https"
    return f"{scheme}://{_authority(_LOOPBACK.get(address, host), port)}"


def _authority(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _writes_to_journal() -> bool:
    """Return whether stderr goes to systemd's journal, so that nobody develops the server right now.

    Source: systemd.exec(5), JOURNAL_STREAM.
    """
    try:
        status = os.fstat(2)
    except OSError:
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"


class _Server(uvicorn.Server):
    """uvicorn's server, which reports when it is ready and exits in time.

    Args:
        app: The application.
        on_ready: Is called once connections are accepted.
        certificate: The certificate for HTTPS; None for HTTP.
        early: The signals that have come before uvicorn handles them. They end the server once it has started.
    """

    def __init__(
        self,
        app: Application,
        on_ready: Callable[[], None],
        certificate: Certificate | None = None,
        early: Sequence[int] = (),
    ) -> None:
        self._early = early
        write_to_stderr()
        self._served = served_by(app)
        answer = partial(self._run_application, app)
        limits = Limits() if self._served is None else self._served.limits
        unsent = UnsentBytes(limits.unsent_bytes)
        config = uvicorn.Config(
            answer,
            access_log=False,
            http=http_protocol(limits, direct=direct_path(app, answer), unsent=unsent),
            interface="asgi3",
            lifespan="on",
            log_config=None if is_json() else LOGGING_CONFIG,  # without one, uvicorn's records go to the root logger
            log_level="warning",
            proxy_headers=False,  # any client can write X-Forwarded-*
            server_header=False,
            ssl_certfile=None if certificate is None else certificate.certificate,
            ssl_keyfile=None if certificate is None else certificate.key,
            timeout_graceful_shutdown=drain_seconds(),
            timeout_keep_alive=keep_alive_seconds(),
            ws=websocket_protocol(limits, unsent),  # the application refuses them if it has no endpoint for them
            ws_max_size=limits.message_bytes,
            ws_per_message_deflate=False,  # a few compressed bytes could become too many
        )
        super().__init__(config)
        self._on_ready = on_ready
        self._websockets: set[asyncio.Task[Any]] = set()
        self._signals: list[int] = []

    async def _run_application(self, app: Application, scope: Any, receive: Any, send: Any) -> None:
        """Run an application."""
        task = asyncio.current_task()
        if scope["type"] == "websocket" and task is not None:
            self._websockets.add(task)
            task.add_done_callback(self._websockets.discard)
        await app(scope, receive, send)

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until `stop` or a signal."""
        if self._served is None:
            await super().serve(sockets)
            return
        with self._served.stoppable(self.stop):
            await super().serve(sockets)

    def stop(self) -> None:
        """Begin the shutdown, as a signal does, but the process continues. From any thread."""
        if not self.should_exit:
            self._drain()
        self.should_exit = True

    def _drain(self) -> None:
        if self._served is not None:
            self._served.drain()

    def hurry(self) -> None:
        """Cancel the calls in flight of a server that stops, and end the time of its tasks."""
        if self._served is not None:
            self._served.hurry()
        for task in self.server_state.tasks:
            task.cancel()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and report it; raise StartError if the application's lifespan fails."""
        with contextlib.suppress(SystemExit):  # newer versions of uvicorn raise it, older ones return
            await super().startup(sockets=sockets)
        if not self.started:
            raise StartError("The server could not start. The reason is above.")
        if self._served is not None:
            if self._served.has_websocket and self.config.ws_protocol_class is None:
                _log.warning('The WebSocket endpoint is not served. It needs: pip install "funcmcp[websocket]"')
            addresses = [listener.getsockname()[0] for listener in sockets or ()]
            for address in addresses:
                self._served.on_listening(address)
            if addresses and all(map(is_loopback, addresses)) and not _writes_to_journal():
                self._served.show_tracebacks()
        self._on_ready()
        for number in self._early[:1]:
            asyncio.get_running_loop().call_soon(self.handle_exit, number, None)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop. uvicorn would close WebSockets at once, so they get time to end by themselves before."""
        start, seconds = time.monotonic(), drain_seconds()
        if self._served is not None:
            for _ in range(_LAST_TURNS):
                await asyncio.sleep(0)
            for server in self.servers:
                server.close()
            while self._websockets and not self.force_exit and time.monotonic() < start + seconds + _CLOSING_SECONDS:
                await asyncio.wait(self._websockets, timeout=_TICK_SECONDS)
        self.config.timeout_graceful_shutdown = max(0, seconds - int(time.monotonic() - start))
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin the shutdown. Its time runs from the first signal; when the same signal comes again, it is over."""
        self._signals.append(sig)
        times = self._signals.count(sig)
        if not self.should_exit:
            start_exit_deadline()
            self._drain()
            super().handle_exit(sig, frame)
        elif times > HURRY_SIGNALS:
            super().handle_exit(sig, frame)  # uvicorn leaves everything
        elif times == HURRY_SIGNALS or len(self._signals) == 1:  # the first one after `stop`
            self.hurry()


class _WorkerServer(_Server):
    """The server of a worker process.

    One Ctrl+C brings it SIGINT of the terminal and SIGTERM of its parent, and systemd sends SIGTERM to it and to its
    parent, which sends it again. So the parent counts the signals, and sends a message when the time is over.
    """

    def __init__(
        self, app: Application, pipe: Connection, certificate: Certificate | None, early: Sequence[int]
    ) -> None:
        super().__init__(app, lambda: pipe.send(True), certificate, early)
        self._pipe = pipe
        self._is_hurried = False
        threading.Thread(target=self._wait_for_parent, name="funcmcp hurry", daemon=True).start()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin the shutdown. The time of its end is the parent's to shorten."""
        if not self.should_exit or not self._signals:
            super().handle_exit(sig, frame)
        elif self._is_hurried:
            self.hurry()

    def _wait_for_parent(self) -> None:
        with contextlib.suppress(EOFError, OSError):  # the parent has exited
            self._is_hurried = self._pipe.recv()
            os.kill(os.getpid(), signal.SIGTERM)  # the main thread handles it


def _note_in(early: list[int]) -> Callable[[int, FrameType | None], None]:
    """Return a handler that only adds signals to a list: those before uvicorn handles them are read later.

    uvicorn raises them again at its end. The process then exits with code 0.
    """
    return lambda sig, _frame: early.append(sig)


@contextlib.contextmanager
def _handling(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Handle SIGINT and SIGTERM while the block runs. Only the main thread can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


class _Worker:
    """A process that serves."""

    def __init__(
        self, factory: Callable[[], Application], listener: socket.socket, certificate: Certificate | None
    ) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._pipe, theirs = spawn.Pipe()
        self.process: SpawnProcess = spawn.Process(target=_work, args=(factory, listener, certificate, theirs))
        self.process.start()
        theirs.close()
        self._ready = False

    @property
    def ready(self) -> bool:
        """Whether it has accepted connections."""
        if not self._ready and self._pipe.poll():
            with contextlib.suppress(EOFError):  # it exited before
                self._ready = self._pipe.recv()
        return self._ready

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self.process.is_alive()

    def hurry(self) -> None:
        """End the time that its calls and tasks have."""
        with contextlib.suppress(OSError):  # it has exited
            self._pipe.send(True)


class _Supervisor:
    """Keeps worker processes running."""

    def __init__(
        self,
        start: Callable[[], _Worker],
        count: int,
        *,
        on_ready: Callable[[], None],
        on_change: Callable[[list[Path]], None],
    ) -> None:
        self._start_worker = start
        self._count = count
        self._on_ready = on_ready
        self._on_change = on_change
        self._workers: list[_Worker] = []
        self._announced = False
        self._stopping = False
        self._signals: list[int] = []
        self._hurried_at = math.inf

    def stop(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - a signal handler's signature
        """Begin the shutdown; when the same signal comes again, end its time. A signal comes at any time: no lock."""
        self._stopping = True
        self._signals.append(sig)
        if self._signals.count(sig) == HURRY_SIGNALS:
            self._hurried_at = time.monotonic()

    def is_set(self) -> bool:
        """Return whether the watcher of files has to end."""
        return self._stopping

    def run(self, watch: Path | None) -> None:
        """Start the workers, keep them running, and end them."""
        try:
            self._start()
            for changed in self._ticks(watch):
                if changed:
                    self._on_change(changed)
                    self._end()
                    self._start()
                self._check_workers(replace=watch is None)
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
            if not worker.ready:
                raise WorkerError("A worker process exited before it could serve.")
            _log.warning("Worker process %s died. A new one replaces it.", worker.process.pid)
            self._workers[index] = self._start_worker()
        if not self._announced and all(worker.ready for worker in self._workers):
            self._announced = True
            self._on_ready()

    def _end(self) -> None:
        end = time.monotonic() + drain_seconds()
        for worker in self._workers:
            worker.process.terminate()
        while self._hurried_at == math.inf and time.monotonic() < end and any(worker.alive for worker in self._workers):
            time.sleep(_END_TICK_SECONDS)
        if self._hurried_at < math.inf:
            for worker in self._workers:
                worker.hurry()
        deadline = min(end, self._hurried_at) + _KILL_SECONDS
        for worker in self._workers:
            worker.process.join(max(0.0, deadline - time.monotonic()))
            worker.process.kill()
            worker.process.join()
        self._workers = []


def _work(
    factory: Callable[[], Application],
    listener: socket.socket,
    certificate: Certificate | None,
    pipe: Connection,
) -> None:
    """Serve in a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C reaches all processes; the parent sends SIGTERM
    threading.Thread(target=_exit_with_parent, name="funcmcp parent", daemon=True).start()
    app = factory()
    early: list[int] = []
    with _handling(_note_in(early)):
        _WorkerServer(app, pipe, certificate, early).run([listener])


def _exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
