"""stdio: messages over a process's standard input and output, one on a line.

Source: "basic/transports, stdio" of every revision: messages hold no newline, nothing else may be on stdout, stderr
is for logs, and the end of stdin ends the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import queue
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

from funcmcp.server.log import write_to_stderr
from funcmcp.transports.connection import GRACE_SECONDS, Connection
from funcmcp.transports.exit_deadline import leave_in_time

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
    from types import FrameType

    from funcmcp.server.dispatch import Server

    Close = Callable[[], Awaitable[None]]

_CHUNK = 65536
_CHUNKS_AHEAD = 2
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StreamError(OSError):
    """stdin or stdout is not open."""


def run(server: Server, close: Close) -> None:
    """Serve the client on this process's stdin and stdout until one of them ends, or SIGTERM or SIGINT comes.

    Args:
        server: answers the requests.
        close: runs at the end.

    Raises:
        StreamError: stdin or stdout is not open.
    """
    with standard_streams() as (source, sink):
        write_to_stderr()
        _explain(server, source)
        serve(server, close, source=source, sink=sink)


async def run_async(server: Server, close: Close) -> None:
    """Serve as `run` does, in the event loop that runs already."""
    with standard_streams() as (source, sink):
        write_to_stderr()
        _explain(server, source)
        (await _serve(server, close, source, sink)).leave()


def _explain(server: Server, source: int) -> None:
    """Say on stderr what the process waits for, where a person and not a client has started it."""
    if os.isatty(source):
        sys.stderr.write(
            f"{server.options.name} waits for JSON-RPC messages, one on a line (Ctrl+D ends it). "
            'To serve HTTP: mcp.run("http"), or the command funcmcp run FILE\n'
        )


@contextlib.contextmanager
def standard_streams() -> Iterator[tuple[int, int]]:
    """Take stdin and stdout for the protocol alone while the block runs; yield their descriptors.

    Meanwhile everybody else's stdin is empty, and what they print goes to stderr: Python code, C libraries and
    child processes alike.

    Raises:
        StreamError: stdin or stdout is not open.
    """
    _check_open()
    source, sink = os.dup(0), os.dup(1)  # never closed again: a thread may wait for one of them for ever
    if os.name == "posix":  # whoever started this process may have chosen otherwise, and the threads here wait
        os.set_blocking(source, True)
        os.set_blocking(sink, True)
    before = sys.stdin, sys.stdout
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    _flush(sys.stdout)  # what was printed until now is no message either
    with open(os.devnull, encoding="utf-8") as empty:  # noqa: PTH123 - a device
        sys.stdin, sys.stdout = empty, sys.stderr
        try:
            yield source, sink
        finally:
            sys.stdin, sys.stdout = before
            _flush(sys.stdout)
            os.dup2(source, 0)
            os.dup2(sink, 1)


def serve(server: Server, close: Close, *, source: int, sink: int) -> None:
    """Serve the client on a pair of descriptors until one of them ends, or SIGTERM or SIGINT comes.

    Calls in flight may go on for `GRACE_SECONDS` then. A signal after the end has begun, and a sink that nobody
    reads any more, end them at once. Within ten seconds the process has ended, whatever hangs.

    Args:
        server: answers the requests.
        close: runs at the end.
        source: is read from; blocking.
        sink: is written to; blocking.
    """
    asyncio.run(_serve(server, close, source, sink)).leave()


async def _serve(server: Server, close: Close, source_descriptor: int, sink_descriptor: int) -> _Ending:
    ending = _Ending(asyncio.get_running_loop())
    source, sink = _Source(source_descriptor, server.options.limits.message_bytes), _Sink(sink_descriptor)
    sink.start(ending.hurry)
    connection = Connection(server, sink.send, local=True)
    reading = asyncio.create_task(_read(source, connection, ending))
    with ending.on_signals():
        try:
            await ending.begun.wait()
            await _either(connection.finish(GRACE_SECONDS), ending.hurried.wait())
        finally:
            reading.cancel()
            await connection.aclose()
            sink.stop()
            await close()
            with contextlib.suppress(asyncio.CancelledError):
                await reading
    return ending


async def _read(source: _Source, connection: Connection, ending: _Ending) -> None:
    """Hand every line to the connection; with the last one the end begins."""
    try:
        async for line in source.lines():
            if line is None:
                await connection.refuse(f"The message is too long: a line may have {source.max_message} bytes.")
            elif line.strip():
                await connection.receive(line)
    finally:
        connection.end_of_input()
        ending.begin()


async def _either(first: Coroutine[Any, Any, object], second: Coroutine[Any, Any, object]) -> None:
    """Wait until one of two is done, and cancel the other one."""
    tasks = {asyncio.create_task(first), asyncio.create_task(second)}
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


class _Ending:
    """When the end begins, and whether it has to hurry; from its beginning on the process has ten seconds."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.begun = asyncio.Event()
        self.hurried = asyncio.Event()
        self.signalled = False
        self._loop = loop
        self._call_off: Callable[[], None] | None = None

    def begin(self) -> None:
        """Begin to end."""
        self._hold_to_time()
        self.begun.set()

    def hurry(self) -> None:
        """End now: nobody waits for calls in flight."""
        self.begin()
        self.hurried.set()

    def leave(self) -> None:
        """Let the process go on if the client, and no signal, has ended the connection."""
        if self._call_off is not None and not self.signalled:
            self._call_off()

    @contextlib.contextmanager
    def on_signals(self) -> Iterator[None]:
        """Handle SIGINT and SIGTERM while the block runs; only a main thread can."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, previous in before.items():
                signal.signal(number, previous)

    def _on_signal(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - a signal handler's signature
        first = self._call_off is None
        self.signalled = True
        self._hold_to_time()  # here, because the event loop may be blocked
        self._loop.call_soon_threadsafe(self.begin if first else self.hurry)

    def _hold_to_time(self) -> None:
        if self._call_off is None:
            self._call_off = leave_in_time()


class _Source:
    """Lines that a thread reads from a descriptor: unlike an event loop, it can wait for files and terminals too."""

    def __init__(self, descriptor: int, max_message: int) -> None:
        self.max_message = max_message
        self._descriptor = descriptor
        self._chunks: asyncio.Queue[bytes] = asyncio.Queue()
        self._room = threading.Semaphore(_CHUNKS_AHEAD)

    async def lines(self) -> AsyncIterator[bytes | None]:
        """Yield line after line; None for one that is too long. What follows the last newline is a line too."""
        loop, cut = asyncio.get_running_loop(), Lines(self.max_message)
        threading.Thread(target=self._work, args=(loop,), name="funcmcp stdin", daemon=True).start()
        while chunk := await self._chunks.get():
            for line in cut.feed(chunk):
                yield line
            self._room.release()
        yield cut.rest()

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        while True:
            self._room.acquire()  # the thread stops reading when nobody takes what it has read
            try:
                chunk = os.read(self._descriptor, _CHUNK)
            except OSError:  # a terminal that is gone
                chunk = b""
            try:
                loop.call_soon_threadsafe(self._chunks.put_nowait, chunk)
            except RuntimeError:  # the loop is closed: it was told to end before stdin was at its own end
                return
            if not chunk:
                return


class Lines:
    """Cuts a stream of bytes into lines.

    Args:
        limit: bytes that a line may have; what a longer one has beyond is not kept.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._line = bytearray()
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes | None]:
        """Return the lines that end in a chunk; None for each that is too long."""
        lines = []
        *ended, begun = chunk.split(b"\n")
        for piece in ended:
            self._keep(piece)
            lines.append(self.rest())
        self._keep(begun)
        return lines

    def rest(self) -> bytes | None:
        """Return what came after the last newline, and begin a new line; None if it is too long."""
        line = None if self._size > self._limit else bytes(self._line)
        self._line.clear()
        self._size = 0
        return line

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= self._limit:
            self._line += piece
        else:
            self._line.clear()


class _Sink:
    """Writes messages to a descriptor in a thread, so that a client that does not read blocks nothing else."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._messages: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]] | None] = queue.SimpleQueue()

    def start(self, on_gone: Callable[[], None]) -> None:
        """Start the thread; `on_gone` is called in the event loop when nobody reads any more."""
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._work, args=(loop, on_gone), name="funcmcp stdout", daemon=True).start()

    def stop(self) -> None:
        """End the thread after what has been sent."""
        self._messages.put(None)

    async def send(self, message: bytes) -> None:
        """Write a message as a line of its own, and wait until it is written."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._messages.put((message, future))
        await future

    def _work(self, loop: asyncio.AbstractEventLoop, on_gone: Callable[[], None]) -> None:
        while (entry := self._messages.get()) is not None:
            message, future = entry
            with contextlib.suppress(RuntimeError):  # the loop is closed: it was told to end meanwhile
                try:
                    self._write(message + b"\n")
                except OSError:
                    loop.call_soon_threadsafe(on_gone)
                loop.call_soon_threadsafe(_settle, future)

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _check_open() -> None:
    """Raise StreamError unless stdin and stdout are open; open stderr, so that no stream here gets its number."""
    for number, name in enumerate(("stdin", "stdout")):
        try:
            os.fstat(number)
        except OSError as error:
            raise StreamError(error.errno, f"{name} is not open") from None
    try:
        os.fstat(2)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def _flush(stream: object) -> None:
    if isinstance(stream, io.TextIOBase):
        with contextlib.suppress(OSError, ValueError):  # nobody reads it any more
            stream.flush()
