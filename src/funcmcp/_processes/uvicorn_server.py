"""uvicorn's server: it serves an ASGI application on sockets, reports when it is ready, and exits in time.

How it works: after SIGTERM or SIGINT, calls in flight and tasks may finish within the time of `funcmcp._server.drain`.
Then the process exits with code 0, whatever still runs, within two seconds (`exit_deadline`). Only a thread in a C
function that never releases the interpreter's lock can prevent that.

A connection that waits for a request remains open for `_LAST_REQUESTS_SECONDS`, or until it has answered one more, with
"Connection: close". If it closed at once, a request that a proxy has just sent on it would be lost: it is a POST, and
no proxy sends that again.

`stop` ends the server, and the process continues. `retire` does so when another process serves on the same sockets:
connections that wait for a request then remain open for all of the time.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import signal
import ssl
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import uvicorn

from funcmcp._adapters.asgi.application import http_runtime_of
from funcmcp._adapters.http1.connection import HTTPConnection
from funcmcp._adapters.http1.direct_path import direct_path
from funcmcp._adapters.http1.open_connections import OpenConnections, descriptor_limit
from funcmcp._adapters.http1.tls_handshake import TLSHandshake
from funcmcp._adapters.http1.unsent_bytes import UnsentBytes
from funcmcp._adapters.uvicorn.descriptors import ACCEPTED_AT_ONCE, DescriptorWatch
from funcmcp._adapters.uvicorn.protocols import http_protocol, websocket_protocol
from funcmcp._processes.listeners import AddressError
from funcmcp._processes.systemd import notify_systemd
from funcmcp._protocol.loopback import is_loopback
from funcmcp._server.drain import HURRY_SIGNALS, drain_seconds
from funcmcp._server.limits import Limits
from funcmcp._server.log import quote
from funcmcp._server.log_output import write_to_stderr
from funcmcp._transports.exit_deadline import start_exit_deadline
from funcmcp._transports.http.options import keep_alive_seconds, root_path_of_environment

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType

    from funcmcp._adapters.asgi.application import HTTPRuntime

    Application: TypeAlias = Callable[..., Any]
    Handler: TypeAlias = Callable[[int, FrameType | None], None]

_NO_CERTIFICATE = "PEER_DID_NOT_RETURN_A_CERTIFICATE"  # the reason that OpenSSL gives
_HANDSHAKE_SECONDS = 10.0
"""Seconds for the handshake of TLS."""

_LAST_TURNS = 10
"""Turns of the event loop in which a server that stops accepts waiting connections, which the kernel would reset."""

_LAST_REQUESTS_SECONDS = 0.5
"""Seconds in which a connection may send one more request when the server stops."""

_TICK_SECONDS = 0.2
_LAST_TICK_SECONDS = 0.05
_CLOSING_SECONDS = 0.5
"""Seconds after the time of the drain, in which WebSockets may close by themselves."""

_IDLE_SECONDS = 1
"""Seconds in which idle connections, and tasks that are cancelled, end."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_log = logging.getLogger("funcmcp")
_TICKS = 10


class CertificateError(OSError):
    """The files for HTTPS can't be read, or are not a certificate and its private key."""


class Certificate(NamedTuple):
    """The files of a certificate for HTTPS.

    Attributes:
        certificate: A PEM file with the certificate and the intermediate certificates.
        key: A PEM file with the private key, without a password.
        client_ca: A PEM file with certificates of authorities, one of which must have issued the certificate of each
            client. With None, clients need no certificate.
    """

    certificate: str
    key: str
    client_ca: str | None = None

    def check(self) -> None:
        """Raise CertificateError unless the files are a certificate and its key, and certificates of authorities."""
        for file in self:
            if file is None:
                continue
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
        if self.client_ca is None:
            return
        try:
            context.load_verify_locations(self.client_ca)
        except ssl.SSLError as error:
            raise CertificateError(
                errno.EINVAL, f"{self.client_ca} has no PEM certificates of authorities: {error.reason or error}"
            ) from error


def _refuse_password() -> str:
    raise ValueError("the key has a password")


def _tls_options(certificate: Certificate | None) -> dict[str, Any]:
    """Return the options of uvicorn for HTTPS."""
    if certificate is None:
        return {}
    return {
        "ssl_certfile": certificate.certificate,
        "ssl_keyfile": certificate.key,
        "ssl_ca_certs": certificate.client_ca,
        "ssl_cert_reqs": ssl.CERT_NONE if certificate.client_ca is None else ssl.CERT_REQUIRED,
    }


class _LoggedHandshake(ssl.SSLObject):
    """TLS of a connection whose client needs a certificate. asyncio ends one that is refused without a line."""

    def do_handshake(self) -> None:
        """Continue the handshake; write a line if it fails because of the client's certificate.

        Its level is that of the lines of requests, because any client can cause it.
        """
        try:
            super().do_handshake()
        except ssl.SSLError as error:
            if isinstance(error, ssl.SSLCertVerificationError):
                _log.info("A client is refused: its certificate is not valid: %s.", quote(error.verify_message))
            elif error.reason == _NO_CERTIFICATE:
                _log.info("A client is refused: it has no certificate.")
            raise


class StartError(RuntimeError):
    """The application's lifespan failed at the start. The log has the reason."""


def _writes_to_journal() -> bool:
    """Return whether stderr goes to systemd's journal, so that nobody develops the server right now.

    Source: systemd.exec(5), JOURNAL_STREAM.
    """
    try:
        status = os.fstat(2)
    except OSError:
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"


def _address_of(listener: socket.socket) -> str:
    """Return the address or the path that a socket listens on."""
    name = listener.getsockname()
    return str(name if isinstance(name, str) else name[0])


def _open_connections(runtime: HTTPRuntime | None) -> OpenConnections:
    """Return what counts the connections of a process that serves an application."""
    if runtime is None:
        return OpenConnections(descriptor_limit())
    return OpenConnections(descriptor_limit(), has_shares=not runtime.has_proxies, headers=runtime.headers)


class UvicornServer(uvicorn.Server):
    """uvicorn's server, which reports when it is ready and exits in time.

    Args:
        app: The application.
        on_ready: Is called once connections are accepted.
        certificate: The certificate for HTTPS; None for HTTP.
        early: The signals that have come before uvicorn handles them. They end the server once it has started.
        listen: Is called when the application has started, and raises AddressError if its sockets can't be listened on.

    Attributes:
        accepts: Whether connections are accepted. `on_closed` is called when that ends.
        retires: Whether another process serves on the same sockets, and this server only ends.
        kept: The sockets for a process that replaces this one. Without one they are closed when no more connections are
            accepted: the kernel would go on to accept some, which nobody answers.
        has_served: Whether the server has ended. uvicorn no longer handles signals then.
        on_signal: Is called with the signals that end the process, before they are handled.
    """

    def __init__(
        self,
        app: Application,
        on_ready: Callable[[], None],
        certificate: Certificate | None = None,
        early: Sequence[int] = (),
        *,
        listen: Callable[[], None] = lambda: None,
    ) -> None:
        self.accepts = True
        self.retires = False
        self.kept: Sequence[socket.socket] = ()
        self.has_served = False
        self.on_signal: Handler = lambda _sig, _frame: None
        self._early = early
        write_to_stderr()
        self._runtime = http_runtime_of(app)
        answer = partial(self._run_application, app)
        limits = Limits() if self._runtime is None else self._runtime.limits
        unsent = UnsentBytes(limits.unsent_bytes)
        connections = _open_connections(self._runtime)
        self._connection_class = http_protocol(
            limits, direct=direct_path(app, answer), unsent=unsent, connections=connections
        )
        config = uvicorn.Config(
            answer,
            access_log=False,
            http=self._connection_class,
            interface="asgi3",
            lifespan="on",
            log_config=None,  # its records go to the root logger, and so have the format of the log
            log_level="warning",
            proxy_headers=False,  # any client can write X-Forwarded-*
            root_path=root_path_of_environment(),
            server_header=False,
            **_tls_options(certificate),
            timeout_graceful_shutdown=drain_seconds(),
            timeout_keep_alive=keep_alive_seconds(),
            # The application refuses WebSockets if it has no endpoint for them.
            ws=websocket_protocol(limits, unsent, connections),
            ws_max_size=limits.message_bytes,
            ws_per_message_deflate=False,  # a few compressed bytes could become too many
        )
        super().__init__(config)
        self._on_ready = on_ready
        self._listen = listen
        self._websockets: set[asyncio.Task[Any]] = set()
        self._signals: list[int] = []
        self._descriptors = DescriptorWatch()

    async def _run_application(self, app: Application, scope: Any, receive: Any, send: Any) -> None:
        """Run an application."""
        task = asyncio.current_task()
        if scope["type"] == "websocket" and task is not None:
            self._websockets.add(task)
            task.add_done_callback(self._websockets.discard)
        await app(scope, receive, send)

    @property
    def has_signals(self) -> bool:
        """Whether a signal has ended the server."""
        return bool(self._signals)

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until `stop` or a signal."""
        try:
            with self._descriptors.handling(asyncio.get_running_loop()):
                if self._runtime is None:
                    await super().serve(sockets)
                    return
                with self._runtime.stoppable(self.stop):
                    await super().serve(sockets)
        finally:
            self.has_served = True

    async def on_tick(self, counter: int) -> bool:
        """Do what uvicorn does ten times a second; once a second, check for descriptors."""
        if counter % _TICKS == 0:
            self._descriptors.check()
        return await super().on_tick(counter)

    def stop(self) -> None:
        """Begin the shutdown, as a signal does, but the process continues. From any thread."""
        if not self.should_exit:
            self._drain()
        self.should_exit = True

    def retire(self) -> None:
        """Begin the shutdown, as `stop` does, of a server that another process replaces. From any thread."""
        self._set_retires(retires=True)
        self.stop()

    def _set_retires(self, *, retires: bool) -> None:
        self.retires = retires
        if self._runtime is not None:
            self._runtime.has_successor = retires

    def _drain(self) -> None:
        if self._runtime is not None:
            self._runtime.drain()

    def hurry(self) -> None:
        """Cancel the calls in flight of a server that stops, and end the time of its tasks."""
        if self._runtime is not None:
            self._runtime.hurry()
        for task in self.server_state.tasks:
            task.cancel()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the application, accept connections, and report it; raise StartError or AddressError."""
        with contextlib.suppress(SystemExit):  # newer versions of uvicorn raise it, older ones return
            await super().startup(sockets=[])
        if not self.started:
            raise StartError("The server could not start. The reason is above.")
        try:
            self._listen()
        except AddressError:
            await self.lifespan.shutdown()
            raise
        await self._accept_connections(sockets or ())
        if self._runtime is not None:
            if self._runtime.has_websocket and self.config.ws_protocol_class is None:
                _log.warning('The WebSocket endpoint is not served. It needs: pip install "funcmcp[websocket]"')
            addresses = [_address_of(listener) for listener in sockets or ()]
            for address in addresses:
                self._runtime.on_listening(address)
            if addresses and all(map(is_loopback, addresses)) and not _writes_to_journal():
                self._runtime.show_tracebacks()
        self._on_ready()
        for number in self._early[:1]:
            asyncio.get_running_loop().call_soon(self.handle_exit, number, None)

    async def _accept_connections(self, listeners: Sequence[socket.socket]) -> None:
        """Accept connections on sockets. uvicorn would count those with TLS only after their handshakes."""
        config, state, loop = self.config, self.server_state, asyncio.get_running_loop()
        make: Callable[[], asyncio.Protocol] = partial(self._connection_class, config, state, self.lifespan.state)
        if config.ssl is not None:
            if config.ssl.verify_mode is ssl.CERT_REQUIRED:
                config.ssl.sslobject_class = _LoggedHandshake
            open_connections = self._connection_class.open_connections
            make = partial(TLSHandshake, make, config.ssl, _HANDSHAKE_SECONDS, open_connections, state.connections)
        backlog = config.backlog
        if isinstance(loop, asyncio.SelectorEventLoop):
            backlog = min(backlog, ACCEPTED_AT_ONCE)
        for listener in listeners:
            server = await loop.create_server(make, sock=listener, backlog=backlog)
            listener.listen(config.backlog)
            self.servers.append(server)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop. uvicorn would close WebSockets at once, so they get time to end by themselves before."""
        start, seconds = time.monotonic(), drain_seconds()
        if self._runtime is not None:
            for _ in range(_LAST_TURNS):
                await asyncio.sleep(0)
            for server in self.servers:
                server.close()
            self.on_closed()
            self._announce_end_of_connections()
            while self._websockets and not self.force_exit and time.monotonic() < start + seconds + _CLOSING_SECONDS:
                await asyncio.wait(self._websockets, timeout=_TICK_SECONDS)
            await self._wait_for_last_requests(start)
        least = 0 if self.server_state.tasks else _IDLE_SECONDS
        await self._end_connections(max(start + seconds, time.monotonic() + least))
        self.config.timeout_graceful_shutdown = _IDLE_SECONDS
        await super().shutdown(sockets)

    async def _end_connections(self, end: float) -> None:
        """Close HTTP connections after their responses, and abort at *end* what has not ended.

        uvicorn would log an error with the number of the tasks that it cancels, also if it is 0.
        """
        for connection in self._http_connections():
            connection.shutdown()
        while (self._http_connections() or self.server_state.tasks) and time.monotonic() < end:
            if self.force_exit:
                return
            await asyncio.sleep(_LAST_TICK_SECONDS)
        tasks = list(self.server_state.tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_TICK_SECONDS)  # they may still send a response
        for connection in self._http_connections():
            connection.transport.abort()

    def _http_connections(self) -> list[HTTPConnection | TLSHandshake]:
        """Return the connections that are not WebSockets."""
        connections = self.server_state.connections
        return [each for each in connections if isinstance(each, (HTTPConnection, TLSHandshake))]

    async def _wait_for_last_requests(self, start: float) -> None:
        """Wait for the last requests of connections. A server that retires waits longer, unless a signal ends it."""
        while self.server_state.connections and not self.force_exit:
            seconds = drain_seconds() if self.retires else min(_LAST_REQUESTS_SECONDS, drain_seconds())
            if time.monotonic() > start + seconds:
                return
            await asyncio.sleep(_LAST_TICK_SECONDS)

    def on_closed(self) -> None:
        """Note that no more connections are accepted."""
        self.accepts = False
        if not self.retires:
            for listener in self.kept:
                listener.close()

    def _announce_end_of_connections(self) -> None:
        """Make each connection close after its next response, also those that are just being accepted."""
        self._connection_class.closes_soon = True
        for connection in list(self.server_state.connections):
            if isinstance(connection, HTTPConnection):  # and not a WebSocket
                connection.close_soon()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin the shutdown. Its time runs from the first signal; when the same signal comes again, it is over."""
        self.on_signal(sig, frame)
        self._signals.append(sig)
        times = self._signals.count(sig)
        if self.retires:
            self._set_retires(retires=False)  # connections that wait for a request are closed from here on
            start_exit_deadline()
        elif not self.should_exit:
            notify_systemd("STOPPING=1")
            start_exit_deadline()
            self._drain()
            super().handle_exit(sig, frame)
        elif times > HURRY_SIGNALS:
            super().handle_exit(sig, frame)  # uvicorn leaves everything
        elif times == HURRY_SIGNALS or len(self._signals) == 1:  # the first one after `stop`
            self.hurry()


def note_in(early: list[int]) -> Handler:
    """Return a handler that only adds signals to a list: those before uvicorn handles them are read later.

    uvicorn raises them again at its end. The process then exits with code 0.
    """
    return lambda sig, _frame: early.append(sig)


@contextlib.contextmanager
def handling(handler: Handler, numbers: Sequence[int] = _SIGNALS) -> Iterator[None]:
    """Handle signals, SIGINT and SIGTERM by default, while the block runs. Only the main thread can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)
