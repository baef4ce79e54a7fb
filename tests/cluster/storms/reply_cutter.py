"""A TCP port in front of a Redis on a Unix socket that loses replies, delays them, and resets connections.

Arguments: the path of the socket, the port, and a file for the counts (JSON), which is written every second and at
SIGTERM. Options: ``--replies N`` cuts each connection after one of its first N replies, ``--slow P`` delays this part
of the replies, and ``--reset S`` resets all connections every S seconds.

How it works: requests and replies are read as messages of RESP2, so each reply is known by its place in its connection,
and by the script that it answers. A connection that is cut after n replies has sent the next command, too: Redis has
executed it, and its reply is lost. The n-th connection is cut after n replies, up to the last number, then the numbers
begin again. So that the replies of rare scripts are lost as well, a quarter of the replies is lost whose script and
place have been cut less than three times.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import signal
import socket
import struct
from collections import Counter, deque
from hashlib import sha1
from pathlib import Path

from funcmcp._adapters.redis import task_scripts
from funcmcp._adapters.redis.task_scripts import Script

_CHUNK = 65536
_NO_LINGER = struct.pack("ii", 1, 0)
"""With this SO_LINGER, closing a socket sends RST instead of FIN."""

_RARE, _RARE_SHARE = 3, 0.25
SCRIPTS = {script.digest: name for name, script in vars(task_scripts).items() if isinstance(script, Script)}


def message_end(data: bytes, start: int = 0) -> int | None:
    """Return where the RESP2 message ends that begins at *start*; None if its end is missing."""
    line_end = data.find(b"\r\n", start)
    if line_end < 0:
        return None
    end: int | None = line_end + 2
    kind = data[start : start + 1]
    if kind not in (b"$", b"*"):
        return end
    count = max(int(data[start + 1 : line_end]), -1)
    if kind == b"$":
        end = line_end + 2 if count < 0 else line_end + 2 + count + 2
        return end if end <= len(data) else None
    for _ in range(count):
        if end is None:
            return None
        end = message_end(data, end)
    return end


def name_of(request: bytes) -> str:
    """Return the script that a request runs, or its command."""
    words = request.split(b"\r\n", 5)
    command = words[2].decode().upper()
    if command == "EVALSHA":
        return SCRIPTS.get(words[4].decode(), command)
    if command == "EVAL":
        length = int(words[3][1:])
        text = request[request.index(words[3]) + len(words[3]) + 2 :][:length]
        return SCRIPTS.get(sha1(text, usedforsecurity=False).hexdigest(), command)
    return command


class Cutter:
    """The port.

    Args:
        path: Of the Unix socket.
        replies: Connections are cut after one of their first so many replies; 0 for none.
        slow: The part of the replies that are delayed.

    Attributes:
        cuts: How often a connection was cut after n replies, where the next reply was that of a script.
        resets: How many connections were reset at any moment.
        delays: How many replies were delayed.
    """

    def __init__(self, path: str, *, replies: int, slow: float) -> None:
        self.cuts: Counter[tuple[str, int]] = Counter()
        self.resets = 0
        self.delays = 0
        self._path = path
        self._replies = replies
        self._slow = slow
        self._connections = 0
        self._clients: set[asyncio.StreamWriter] = set()

    def counts(self) -> dict[str, object]:
        """Return what was done, for JSON."""
        scripts: dict[str, dict[int, int]] = {}
        for (name, place), count in sorted(self.cuts.items()):
            scripts.setdefault(name, {})[place] = count
        return {"cuts": scripts, "resets": self.resets, "delays": self.delays}

    def reset(self) -> None:
        """Reset all connections of clients."""
        for writer in [*self._clients]:
            self.resets += 1
            _abort(writer)

    async def forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one connection until it ends or is cut."""
        self._clients.add(writer)
        names: deque[str] = deque()
        try:
            upstream_reader, upstream_writer = await asyncio.open_unix_connection(self._path)
            try:
                copying = asyncio.ensure_future(self._send(reader, upstream_writer, names))
                await self._reply(upstream_reader, writer, names)
                copying.cancel()
                await asyncio.wait([copying])
            finally:
                upstream_writer.transport.abort()
        except OSError:
            pass  # Redis is away, or the client has gone
        finally:
            self._clients.discard(writer)
            _abort(writer)

    async def _send(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, names: deque[str]) -> None:
        """Pass requests on, and note what they run."""
        data = b""
        with contextlib.suppress(OSError):
            while chunk := await source.read(_CHUNK):
                data += chunk
                start = 0
                while (end := message_end(data, start)) is not None:
                    names.append(name_of(data[start:end]))
                    start = end
                sink.write(data[:start])
                data = data[start:]
                await sink.drain()
        sink.transport.abort()

    async def _reply(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, names: deque[str]) -> None:
        """Pass replies on, up to the one that is lost."""
        data = b""
        place = 0
        last = self._connections % self._replies if self._replies else -1
        self._connections += 1
        while chunk := await source.read(_CHUNK):
            data += chunk
            start = 0
            while (end := message_end(data, start)) is not None:
                if self._cuts(names.popleft(), place, last):
                    sink.write(data[:start])
                    await sink.drain()
                    return
                start = end
                place += 1
            if start and random.random() < self._slow:
                self.delays += 1
                await asyncio.sleep(random.uniform(0.2, 2))
            sink.write(data[:start])
            data = data[start:]
            await sink.drain()

    def _cuts(self, name: str, place: int, last: int) -> bool:
        """Return whether the reply of a script at a place of its connection is lost, which is cut at the last one."""
        if place > last:
            return False
        if place < last and (self.cuts[name, place] >= _RARE or random.random() >= _RARE_SHARE):
            return False
        self.cuts[name, place] += 1
        return True


def _abort(writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):  # a connection that has just been closed
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
    writer.transport.abort()


async def main(options: argparse.Namespace) -> None:
    """Forward connections until SIGTERM."""
    cutter = Cutter(options.path, replies=options.replies, slow=options.slow)
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    server = await asyncio.start_server(cutter.forward, "127.0.0.1", options.port, backlog=1024)
    since_reset = 0.0
    while not stopping.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), 1)
        since_reset += 1
        if options.reset and since_reset >= options.reset:
            since_reset = 0.0
            cutter.reset()
        partial = options.counts.with_suffix(".partial")
        partial.write_text(json.dumps(cutter.counts()), encoding="utf-8")
        partial.replace(options.counts)
    server.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("path")
    parser.add_argument("port", type=int)
    parser.add_argument("counts", type=Path)
    parser.add_argument("--replies", type=int, default=0)
    parser.add_argument("--slow", type=float, default=0.0)
    parser.add_argument("--reset", type=float, default=0.0)
    asyncio.run(main(parser.parse_args()))
