"""Listen on an address or a Unix socket, and serve an ASGI application there with uvicorn.

`serve` serves in this process, `serve_async` in its event loop, and `serve_processes` in worker processes. At SIGHUP,
`serve` and `serve_processes` load the code anew; see `supervisor`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from functools import partial
from typing import TYPE_CHECKING

from funcmcp._processes.listeners import AddressError, bound, origin_of
from funcmcp._processes.supervisor import Supervisor, ThisProcess, WorkerError, WorkerProcess
from funcmcp._processes.systemd import notify_systemd
from funcmcp._processes.uvicorn_server import (
    Certificate,
    CertificateError,
    StartError,
    UvicornServer,
    handling,
    note_in,
)
from funcmcp._server.log_output import write_about_server, write_to_stderr
from funcmcp._state.keys import CommandKey
from funcmcp._state.sessions.ended import shared_with_workers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import FrameType

    from funcmcp._processes.uvicorn_server import Application

__all__ = [
    "AddressError",
    "Certificate",
    "CertificateError",
    "StartError",
    "WorkerError",
    "announce",
    "origin_of",
    "serve",
    "serve_async",
    "serve_processes",
]


def announce(origin: str, note: str = "") -> None:
    """Write the URL of the server on stderr or into a JSON log, with a note in parentheses."""
    write_about_server(f"Serving on {origin} ({note})" if note else f"Serving on {origin}")


def _ignore(_files: list[Path]) -> None:
    """Do nothing about changed files."""


def report(sentence: str, is_failure: bool) -> None:  # noqa: FBT001 - the interface of `on_reload`
    """Write a sentence about a reload on stderr or into a JSON log."""
    write_about_server(sentence, logging.WARNING if is_failure else logging.INFO)


def serve(  # noqa: PLR0913 - one for each option of the command
    app: Application,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    uds: str | None = None,
    on_ready: Callable[[str], None] = announce,
    on_reload: Callable[[str, bool], None] = report,
    certificate: Certificate | None = None,
    factory: Callable[[], Application] | None = None,
    key: CommandKey | None = None,
) -> None:
    """Serve an ASGI application in this process until SIGTERM or SIGINT.

    Args:
        app: The application.
        host: A name or an IPv4 or IPv6 address to listen on. All addresses of a name are listened on.
        port: The port to listen on; 0 for a free one.
        uds: The path of a Unix socket to listen on, in place of *host* and *port*.
        on_ready: Is called once connections are accepted, with the origin, such as ``http://127.0.0.1:8000``.
        on_reload: Is called with a sentence about a reload, and whether it has failed.
        certificate: The certificate for HTTPS; None for HTTP.
        factory: Creates the application anew at SIGHUP, in a process that replaces this one. It must be a function that
            `pickle` can name. None leaves SIGHUP alone.
        key: The key that this process shares with those that replace it.

    Raises:
        AddressError: The address can't be listened on.
        CertificateError: The certificate is not valid.
        StartError: The application's lifespan failed at the start.
        WorkerError: The process that replaced a process that died could not serve.
    """
    if certificate is not None:
        certificate.check()
    early: list[int] = []
    with bound(host, port, uds) as listeners, handling(note_in(early)):
        ready = partial(_report_ready, on_ready, origin_of(host, listeners.sockets[0], _scheme_of(certificate)))
        server = UvicornServer(app, ready, certificate, early, listen=listeners.listen)
        if factory is None:
            server.run(listeners.sockets)
            return
        shared_key = key or CommandKey(os.environ)
        start = partial(_start_worker, partial(WorkerProcess, factory, listeners, certificate), shared_key)
        sockets = listeners.sockets
        first = ThisProcess(server)
        supervisor = Supervisor(
            start,
            1,
            sockets,
            on_ready=ready,
            on_change=_ignore,
            on_reload=on_reload,
            first=first,
            certificate=certificate,
        )
        server.on_signal = supervisor.stop

        def stop(sig: int, frame: FrameType | None) -> None:
            """Handle a signal that comes before or after uvicorn handles them. At its end, it raises its own again."""
            if not server.started:
                early.append(sig)
            elif server.has_served or not server.has_signals:
                supervisor.stop(sig, frame)

        with handling(stop), handling(supervisor.hang_up, _hangup()):
            server.kept = sockets
            server.run([listener.dup() for listener in sockets])  # uvicorn closes them, and its successors need them
            supervisor.wait()


def _scheme_of(certificate: Certificate | None) -> str:
    return "http" if certificate is None else "https"


def _report_ready(on_ready: Callable[[str], None], origin: str) -> None:
    """Tell systemd and the caller that connections are accepted."""
    notify_systemd("READY=1")
    on_ready(origin)


def _start_worker(start: Callable[..., WorkerProcess], key: CommandKey, *, is_successor: bool = False) -> WorkerProcess:
    """Start a worker process with the key of this one."""
    with key.in_children():
        return start(is_successor=is_successor)


def _hangup() -> Sequence[int]:
    """Return SIGHUP, unless the command is to ignore it, as nohup asks, or the system has none."""
    number = getattr(signal, "SIGHUP", None)
    return () if number is None or signal.getsignal(number) == signal.SIG_IGN else (number,)


async def serve_async(
    app: Application, *, host: str = "127.0.0.1", port: int = 8000, on_ready: Callable[[str], None] = announce
) -> None:
    """Serve in the running event loop. Arguments and errors are those of `serve`.

    A task that is cancelled stops the server first, as `MCPServer.stop` does; if it is cancelled again, at once.
    """
    early: list[int] = []
    with bound(host, port) as listeners, handling(note_in(early)):
        server = UvicornServer(
            app, lambda: on_ready(origin_of(host, listeners.sockets[0])), early=early, listen=listeners.listen
        )
        serving = asyncio.create_task(server.serve(listeners.sockets))
        try:
            await asyncio.wait([serving])
        except asyncio.CancelledError:
            server.stop()
            await _end(serving, server)
            raise
        serving.result()


async def _end(serving: asyncio.Task[None], server: UvicornServer) -> None:
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
    uds: str | None = None,
    workers: int = 1,
    watch: Path | None = None,
    on_ready: Callable[[str], None] = announce,
    on_change: Callable[[list[Path]], None] = _ignore,
    on_reload: Callable[[str, bool], None] = report,
    certificate: Certificate | None = None,
) -> None:
    """Serve an application in worker processes until SIGTERM or SIGINT.

    The environment of the workers has a common key and the table of ended sessions, so that each worker serves the
    sessions of the others.

    Args:
        factory: Creates the application in each worker. It must be a function that `pickle` can name.
        host: A name or an IPv4 or IPv6 address to listen on. All addresses of a name are listened on.
        port: The port to listen on; 0 for a free one.
        uds: The path of a Unix socket to listen on, in place of *host* and *port*.
        workers: The number of processes.
        watch: A folder. The workers are replaced when a Python file in it changes.
        on_ready: Is called once all workers accept connections, with the origin.
        on_change: Is called with the files that have changed, before the workers are replaced; with none after SIGHUP.
        on_reload: Is called with a sentence about a reload, and whether it has failed.
        certificate: The certificate for HTTPS; None for HTTP.

    Raises:
        AddressError: The address can't be listened on.
        CertificateError: The certificate is not valid.
        WorkerError: A worker exited before it could serve, without *watch*.
    """
    write_to_stderr()
    if certificate is not None:
        certificate.check()
    with bound(host, port, uds) as listeners:
        ready = partial(_report_ready, on_ready, origin_of(host, listeners.sockets[0], _scheme_of(certificate)))
        start = partial(WorkerProcess, factory, listeners, certificate)
        supervisor = Supervisor(
            start,
            workers,
            listeners.sockets,
            on_ready=ready,
            on_change=on_change,
            on_reload=on_reload,
            certificate=certificate,
        )
        with (
            handling(supervisor.stop),
            handling(supervisor.hang_up, _hangup()),
            CommandKey(os.environ).in_children(),
            shared_with_workers(os.environ),
        ):
            supervisor.run(watch)
