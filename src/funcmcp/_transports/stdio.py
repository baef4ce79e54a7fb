"""stdio: messages over a process's standard input and output, one on each line.

How it works: `_Source` reads lines in a thread and `_Sink` writes them in another one, because an event loop can't wait
for files and terminals. Between them a `Connection` runs in the event loop. While the server runs, the descriptors 0
and 1 belong to the protocol alone (`standard_streams`): other code gets an empty stdin, and its output goes to stderr.

The end has three states (`_Shutdown`):

1. *Running*, until stdin ends or a signal comes.
2. *Finishing*: calls in flight may be answered within the time of `funcmcp._server.drain`.
3. *Hurrying*: calls in flight are cancelled, because another signal came or stdout can't be written to.

From the beginning of the second state on, the process has this time and two seconds to exit (`exit_deadline`). If stdin
and not a signal has ended the connection, the process may continue afterwards, as `MCPServer.run` returns.

Source: "basic/transports, stdio" of every revision: messages contain no newline, nothing else may be on stdout, stderr
is for logs, and the end of stdin ends the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import queue
import select
import signal
import sys
import threading
from codecs import BOM_UTF8
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from funcmcp._server.log_output import write_to_stderr
from funcmcp._transports.connection import Connection
from funcmcp._transports.exit_deadline import start_exit_deadline

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
    from contextlib import AbstractContextManager
    from types import FrameType

    from funcmcp._server.dispatch import Server

    Close = Callable[[], Awaitable[None]]
    Start = Callable[[], Awaitable[None]]
    Stoppable = Callable[[Callable[[], None]], AbstractContextManager[object]]

_CHUNK_BYTES = 65536
_MAX_CHUNKS = 2
"""Chunks that are read ahead of the lines that were handled."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StreamError(OSError):
    """stdin or stdout is not open."""


def run(server: Server, close: Close, start: Start | None = None, stoppable: Stoppable = nullcontext) -> None:
    """Serve the client on stdin and stdout until one of them ends, or until SIGTERM or SIGINT.

    Args:
        server: Answers the requests.
        close: Is awaited at the end.
        start: Is awaited before the first message is read. What it raises ends the server.
        stoppable: Returns a context manager around the time in which a function, its argument, stops the server. The
            function can be called from any thread.

    Raises:
        StreamError: stdin or stdout is not open.
    """
    with standard_streams() as (source, sink):
        write_to_stderr()
        _explain(server, source)
        serve(server, close, start, stoppable, source=source, sink=sink)


async def run_async(
    server: Server, close: Close, start: Start | None = None, stoppable: Stoppable = nullcontext
) -> None:
    """Serve as `run` does, in the running event loop. A task that is cancelled ends the server and its lifespans."""
    with standard_streams() as (source, sink):
        write_to_stderr()
        _explain(server, source)
        shutdown = _Shutdown(asyncio.get_running_loop(), server.hurry)
        try:
            await _serve(server, close, start, stoppable, shutdown, (source, sink))
        finally:
            shutdown.cancel_deadline()


def _explain(server: Server, source: int) -> None:
    """Write on stderr what the process waits for, if stdin shows that no client has started it.

    It is a terminal then, or the null device, which a container without ``docker run -i`` has.
    """
    if os.isatty(source):
        sys.stderr.write(
            f"{server.options.name} waits for JSON-RPC messages on stdin, one on each line (Ctrl+D ends it). "
            'To serve HTTP: mcp.run("http"), or the command funcmcp run FILE\n'
        )
    elif _is_null_device(source):
        sys.stderr.write(
            f"{server.options.name} ends, because its stdin is empty, and no client can write to it. "
            'To serve HTTP: mcp.run("http"), or the command funcmcp run FILE\n'
        )


def _is_null_device(descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(os.devnull))  # noqa: PTH116 - a device
    except OSError:  # Windows cannot examine NUL in every version of Python
        return False


@contextlib.contextmanager
def standard_streams() -> Iterator[tuple[int, int]]:
    """Reserve stdin and stdout for the protocol while the block runs; yield their descriptors.

    For all other code (Python, C libraries, child processes) stdin is empty, and output to stdout goes to stderr.

    Raises:
        StreamError: stdin or stdout is not open.
    """
    _check_open()
    source, sink = os.dup(0), os.dup(1)  # never closed: a thread may wait for one of them for ever
    if os.name == "posix":  # the parent process may have made them non-blocking, but the threads here wait
        os.set_blocking(source, True)
        os.set_blocking(sink, True)
    before = sys.stdin, sys.stdout
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    _flush(sys.stdout)  # output from before must not get onto stdout either
    with open(os.devnull, encoding="utf-8") as empty:  # noqa: PTH123 - a device
        sys.stdin, sys.stdout = empty, sys.stderr
        try:
            yield source, sink
        finally:
            sys.stdin, sys.stdout = before
            _flush(sys.stdout)
            os.dup2(source, 0)
            os.dup2(sink, 1)


def serve(
    server: Server,
    close: Close,
    start: Start | None = None,
    stoppable: Stoppable = nullcontext,
    *,
    source: int,
    sink: int,
) -> None:
    """Serve the client on two descriptors until one of them ends, or until SIGTERM or SIGINT.

    Args:
        server: Answers the requests.
        close: Is awaited at the end.
        start: Is awaited before the first message is read.
        stoppable: As in `run`.
        source: A blocking descriptor to read from.
        sink: A blocking descriptor to write to.
    """

    async def main() -> _Shutdown:
        shutdown = _Shutdown(asyncio.get_running_loop(), server.hurry)
        await _serve(server, close, start, stoppable, shutdown, (source, sink))
        return shutdown

    shutdown = asyncio.run(main())
    shutdown.cancel_deadline()


async def _serve(
    server: Server,
    close: Close,
    start: Start | None,
    stoppable: Stoppable,
    shutdown: _Shutdown,
    streams: tuple[int, int],
) -> None:
    if start is not None:
        await start()
    source = _Source(streams[0], server.options.limits.message_bytes)
    sink = _Sink(streams[1])
    sink.start(shutdown.hurry)
    connection = Connection(server, sink.send, local=True)
    reading = asyncio.create_task(_read(source, connection, shutdown))
    with shutdown.on_signals(), stoppable(shutdown.stop):
        try:
            await shutdown.started.wait()
            server.drain.begin()
            await _first_of(connection.finish(server.drain.remaining()), shutdown.hurried.wait())
        finally:
            reading.cancel()
            await connection.aclose()
            sink.stop()
            source.stop()
            await close()
            with contextlib.suppress(asyncio.CancelledError):
                await reading


async def _read(source: _Source, connection: Connection, shutdown: _Shutdown) -> None:
    """Pass each line to the connection; the shutdown begins after the last one."""
    try:
        async for line in source.lines():
            if line is None:
                await connection.refuse(f"The message is too long: a line may have {source.max_message} bytes.")
            elif line.strip():
                await connection.receive(line)
    finally:
        connection.end_of_input()
        shutdown.begin()


async def _first_of(first: Coroutine[Any, Any, object], second: Coroutine[Any, Any, object]) -> None:
    """Wait until one of two coroutines is done, and cancel the other one."""
    tasks = {asyncio.create_task(first), asyncio.create_task(second)}
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


class _Shutdown:
    """The shutdown of the server; see the module's docstring.

    Args:
        loop: The running event loop.
        on_hurry: Is called when calls in flight are to be cancelled.

    Attributes:
        started: Is set when the shutdown begins.
        hurried: Is set when calls in flight are to be cancelled.
        signalled: Whether a signal has come.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, on_hurry: Callable[[], None]) -> None:
        self._on_hurry = on_hurry
        self.started = asyncio.Event()
        self.hurried = asyncio.Event()
        self.signalled = False
        self._loop = loop
        self._cancel_deadline: Callable[[], None] | None = None

    def begin(self) -> None:
        """Begin the shutdown."""
        self._start_deadline()
        self.started.set()

    def stop(self) -> None:
        """Begin the shutdown, from any thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self.begin)

    def hurry(self) -> None:
        """Begin the shutdown, and cancel the calls in flight."""
        self.begin()
        self.hurried.set()
        self._on_hurry()

    def cancel_deadline(self) -> None:
        """Cancel the deadline of the process if no signal has ended the connection."""
        if self._cancel_deadline is not None and not self.signalled:
            self._cancel_deadline()

    @contextlib.contextmanager
    def on_signals(self) -> Iterator[None]:
        """Handle SIGINT and SIGTERM while the block runs. Only the main thread can."""
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
        is_first = self._cancel_deadline is None
        self.signalled = True
        self._start_deadline()  # here, because the event loop may be blocked
        self._loop.call_soon_threadsafe(self.begin if is_first else self.hurry)

    def _start_deadline(self) -> None:
        if self._cancel_deadline is None:
            self._cancel_deadline = start_exit_deadline()


class _Source:
    """Reads lines from a descriptor in a thread."""

    def __init__(self, descriptor: int, max_message: int) -> None:
        self.max_message = max_message
        self._descriptor = descriptor
        self._chunks: asyncio.Queue[bytes] = asyncio.Queue()
        self._room = threading.Semaphore(_MAX_CHUNKS)
        self._stopped, self._stop = os.pipe()

    def stop(self) -> None:
        """End the thread, without a chunk that it would take from a later reader. On Windows it reads one more."""
        os.close(self._stop)
        self._room.release()

    async def lines(self) -> AsyncIterator[bytes | None]:
        """Yield each line; None for one that is too long. The data after the last newline is a line, too."""
        loop = asyncio.get_running_loop()
        splitter = LineSplitter(self.max_message)
        threading.Thread(target=self._work, args=(loop,), name="funcmcp stdin", daemon=True).start()
        while chunk := await self._chunks.get():
            for line in splitter.feed(chunk):
                yield line
            self._room.release()
        yield splitter.flush()

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        while True:
            self._room.acquire()  # the thread stops reading while earlier chunks wait
            try:
                chunk = self._read()
                if chunk is None:
                    return
            except OSError:  # a terminal that was closed
                chunk = b""
            try:
                loop.call_soon_threadsafe(self._chunks.put_nowait, chunk)
            except RuntimeError:  # the loop was closed before stdin ended
                return
            if not chunk:
                return

    def _read(self) -> bytes | None:
        """Wait for the next chunk and return it; None after `stop`."""
        if sys.platform != "win32":
            poll = select.poll()
            for descriptor in (self._descriptor, self._stopped):
                poll.register(descriptor, select.POLLIN)
            if any(descriptor == self._stopped for descriptor, _ in poll.poll()):
                os.close(self._stopped)
                return None
        return os.read(self._descriptor, _CHUNK_BYTES)


class LineSplitter:
    """Splits a stream of bytes into lines.

    Args:
        limit: The bytes that a line may have. The data of a longer line is dropped.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._is_first = True
        self._line = bytearray()
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes | None]:
        """Return the lines that end in a chunk; None for each that is too long."""
        lines = []
        *pieces, last_piece = chunk.split(b"\n")
        for piece in pieces:
            self._append(piece)
            lines.append(self.flush())
        self._append(last_piece)
        return lines

    def flush(self) -> bytes | None:
        """Return the data after the last newline, and begin a new line; None if it is too long."""
        line = None if self._size > self._limit else bytes(self._line)
        if self._is_first and line is not None:
            line = line.removeprefix(BOM_UTF8)  # PowerShell 5 writes one
        self._is_first = False
        self._line.clear()
        self._size = 0
        return line

    def _append(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= self._limit:
            self._line += piece
        else:
            self._line.clear()


class _Sink:
    """Writes messages to a descriptor in a thread, so that a client that does not read blocks only the writing."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._messages: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]] | None] = queue.SimpleQueue()

    def start(self, on_closed: Callable[[], None]) -> None:
        """Start the thread. It calls *on_closed* in the event loop when the descriptor can't be written to."""
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._work, args=(loop, on_closed), name="funcmcp stdout", daemon=True).start()

    def stop(self) -> None:
        """End the thread after the messages that were sent."""
        self._messages.put(None)

    async def send(self, message: bytes) -> None:
        """Write a message as one line, and wait until it is written."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._messages.put((message, future))
        await future

    def _work(self, loop: asyncio.AbstractEventLoop, on_closed: Callable[[], None]) -> None:
        while (entry := self._messages.get()) is not None:
            message, future = entry
            with contextlib.suppress(RuntimeError):  # the loop was closed in the meantime
                try:
                    self._write(message + b"\n")
                except OSError:
                    loop.call_soon_threadsafe(on_closed)
                loop.call_soon_threadsafe(_settle, future)

    def _write(self, data: bytes) -> None:
        remaining = memoryview(data)
        while remaining:
            remaining = remaining[os.write(self._descriptor, remaining) :]


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _check_open() -> None:
    """Raise StreamError unless stdin and stdout are open. Open stderr, so that no other file gets its number."""
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
        with contextlib.suppress(OSError, ValueError):  # it was closed
            stream.flush()
