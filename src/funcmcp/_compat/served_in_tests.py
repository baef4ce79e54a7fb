"""FastMCP's helpers that serve a server over HTTP in tests."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import socket
import time
from typing import TYPE_CHECKING, Any

from funcmcp._authoring.calling.lifespans import LifespanError
from funcmcp._objects.public_names import public
from funcmcp._serving.composition import runtime_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

_SECONDS_TO_START = 10.0
_SECONDS_TO_STOP = 5.0
_INTERVAL = 0.02


@public("funcmcp.compat.fastmcp.utilities.tests")
@contextlib.asynccontextmanager
async def run_server_async(
    server: Any, port: int | None = None, transport: str = "http", path: str = "/mcp", host: str = "127.0.0.1"
) -> AsyncIterator[str]:
    """Serve a server over HTTP in this process within a block, which gets its URL.

    Args:
        server: The server.
        port: The port; by default a free one.
        transport: ``"http"``, ``"streamable-http"`` or ``"sse"``.
        path: The path of the endpoint.
        host: The address.

    Raises:
        RuntimeError: The server does not accept connections within 10 seconds, or has ended.
        Exception: What a lifespan of the server raised.
    """
    port = port or free_port(host)
    options = {"host": host, "port": port, "transport": transport, "path": path, "show_banner": False}
    async with _lifespans_of(server):
        serving = asyncio.create_task(server.run_http_async(**options))
        try:
            await _wait_until_accepting(host, port, serving)
            yield f"http://{host}:{port}{path}"
        finally:
            serving.cancel()
            await asyncio.wait([serving], timeout=_SECONDS_TO_STOP)


@contextlib.asynccontextmanager
async def _lifespans_of(server: Any) -> AsyncIterator[None]:
    """Hold the lifespans of a server open, so that what one of them raises reaches the test."""
    lifespans = runtime_of(server).services.lifespans
    try:
        await lifespans.enter()
    except LifespanError as error:
        raise error.__cause__ or error from None
    try:
        yield
    finally:
        await lifespans.leave()


async def _wait_until_accepting(host: str, port: int, serving: asyncio.Task[None]) -> None:
    deadline = time.monotonic() + _SECONDS_TO_START
    while not await _accepts(host, port):
        if serving.done():
            await serving
            raise RuntimeError("The server has ended before it accepted a connection.")
        if time.monotonic() >= deadline:
            raise RuntimeError(f"The server did not accept a connection at {host}:{port} within 10 seconds.")
        await asyncio.wait([serving], timeout=_INTERVAL)


async def _accepts(host: str, port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(host, port)
    except OSError:
        return False
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return True


@public("funcmcp.compat.fastmcp.utilities.tests")
@contextlib.contextmanager
def run_server_in_process(
    server_fn: Callable[..., None],
    *args: Any,
    provide_host_and_port: bool = True,
    host: str = "127.0.0.1",
    port: int | None = None,
    **kwargs: Any,
) -> Iterator[str]:
    """Run a function that serves a server in a process of its own within a block, which gets the URL of the process.

    Args:
        server_fn: The function.
        args: Its arguments.
        provide_host_and_port: Whether it gets ``host`` and ``port``.
        host: The address.
        port: The port; by default a free one.
        kwargs: Its keyword arguments.

    Raises:
        RuntimeError: The process does not accept connections within 10 seconds, or has ended.
    """
    port = port or free_port(host)
    options = {**kwargs, "host": host, "port": port} if provide_host_and_port else kwargs
    process = multiprocessing.Process(target=server_fn, args=args, kwargs=options, daemon=True)
    process.start()
    try:
        deadline = time.monotonic() + _SECONDS_TO_START
        while not _accepts_now(host, port):
            if not process.is_alive() or time.monotonic() >= deadline:
                raise RuntimeError(f"The process did not accept a connection at {host}:{port} within 10 seconds.")
            process.join(_INTERVAL)
        yield f"http://{host}:{port}"
    finally:
        process.terminate()
        process.join(_SECONDS_TO_STOP)
        if process.is_alive():
            process.kill()
            process.join()


def _accepts_now(host: str, port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=1):
        return True
    return False


def free_port(host: str) -> int:
    """Return a port that no program listens on now."""
    with socket.socket() as listener:
        listener.bind((host, 0))
        port: int = listener.getsockname()[1]
        return port
