"""Looks for the most memory that one anonymous caller can make a server use: memory.py [SECONDS [SEED]].

How it works: a server runs in a process of its own (`memory_server`). The attacker has one address and 1,500
connections. A sequence of moves is chosen at random; each move uses up something, and holds on to it: sessions, tasks,
bodies that never end, running calls, streams, subscriptions, stored events, questions. After each move the resident
memory of the server is compared with the one before the first move. Each sequence that is worse than all before it is
printed, and the last one of them is the worst.

What a connection itself takes up is left out: responses that the client does not read (`Limits.unsent_bytes` is their
limit), headers that do not end, what has arrived of bodies that are refused, and connections beyond 1,500.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import os
import random
import socket
import subprocess
import sys
from collections import deque
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).resolve().parents[1]
MAX_GROWTH = 50
"""MiB that one caller may make the server use."""

NEWEST, PER_REQUEST, WITH_BATCHES = "2025-11-25", "2026-07-28", "2025-03-26"
_ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}
"""Lets glibc return freed memory at once, so that the resident memory is what the server holds."""

_PATIENCE = 10.0
_MAX_CONNECTIONS = 1500
_MAX_LARGE_BODIES = 50
"""Large bodies of a move. Most of them are refused, and a connection keeps what has arrived of each."""


_TASKS: dict[str, dict[str, Any]] = {"io.modelcontextprotocol/tasks": {}}


class AttackedServer:
    """A server in a process of its own."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        command = [sys.executable, "-m", "fuzz.memory_server", str(self.port)]
        self._process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **_ALLOCATOR}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def memory(self) -> float:
        """Return the resident memory in MiB."""
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="utf-8")
        (kibibytes,) = [line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")]
        return int(kibibytes) / 1024

    def end(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.wait()


class Connection:
    """An HTTP connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._draining: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, port: int) -> Connection:
        """Return a new connection to a port of this machine."""
        return cls(*await asyncio.open_connection("127.0.0.1", port, limit=2**16))

    async def send(self, data: bytes) -> None:
        """Send bytes, and wait until the server has taken most of them."""
        self._writer.write(data)
        await self._writer.drain()

    async def read_head(self) -> tuple[int, dict[str, str]]:
        """Return the status and the header of a response."""
        async with asyncio.timeout(_PATIENCE):
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        lines = head.split("\r\n")
        return int(lines[0].split()[1]), {
            name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:] if line)
        }

    async def read_body(self, fields: dict[str, str]) -> bytes:
        """Return the body of a response."""
        async with asyncio.timeout(_PATIENCE):
            if "content-length" in fields:
                return await self._reader.readexactly(int(fields["content-length"]))
            body = b""
            while "transfer-encoding" in fields:
                size = int(await self._reader.readline(), 16)
                body += (await self._reader.readexactly(size + 2))[:-2]
                if not size:
                    break
            return body

    def drain(self) -> None:
        """Begin to read and drop all that the server sends."""
        self._draining = asyncio.create_task(self._drain())

    async def _drain(self) -> None:
        with contextlib.suppress(ConnectionError):
            while await self._reader.read(2**16):
                pass

    def close(self) -> None:
        """Close the connection."""
        if self._draining is not None:
            self._draining.cancel()
        self._writer.close()


class Attacker:
    """One anonymous caller, which holds on to everything that it gets.

    Each method `_move_NAME` is a move. Its argument says how often it does something.
    """

    def __init__(self, server: AttackedServer) -> None:
        self._server = server
        self._held: deque[Connection] = deque()
        self._spare: list[Connection] = []
        self._sessions: list[str] = []
        self._tasks: list[str] = []
        self._ids = itertools.count()

    async def warm_up(self) -> None:
        """Use each endpoint once, so that its code is loaded."""
        await self._move_begin_sessions(1)
        await self._move_use_sessions(1)
        await self._move_create_small_tasks(1)
        await self._move_open_sse(1)
        await self._move_open_websockets(1)
        await asyncio.sleep(0.5)

    async def _move_begin_sessions(self, count: int) -> None:
        text = "ä" * 2000
        capabilities: dict[str, Any] = {
            "extensions": {f"{'ä' * 90}{number}": {} for number in range(8)},
            "elicitation": {"form": {}, "url": {}},
            "sampling": {"context": {}, "tools": {}},
            "roots": {},
        }
        info = {"name": text[:100], "title": text[:100], "version": text[:100]}
        params = {"protocolVersion": NEWEST, "capabilities": capabilities, "clientInfo": info}
        for _ in range(count):
            status, fields, _ = await self._post("initialize", params)
            if status != 200:
                return
            self._sessions.append(fields["mcp-session-id"])

    async def _move_use_sessions(self, count: int) -> None:
        for session in self._sessions[-count:]:
            await self._post("logging/setLevel", {"level": "debug"}, session=session)

    async def _move_subscribe(self, count: int) -> None:
        for session in self._sessions[-count:]:
            for number in range(60):
                uri = f"item://{number}{'x' * 8000}"
                if (await self._post("resources/subscribe", {"uri": uri}, session=session))[0] != 200:
                    return

    async def _move_create_large_tasks(self, count: int) -> None:
        for _ in range(min(count, 30)):
            if (await self._call("wait", "x" * 4_000_000, as_task=True))[0] != 200:
                return

    async def _move_create_tasks_of_many_values(self, count: int) -> None:
        for _ in range(min(count, 30)):
            if (await self._call("wait", _many(60_000), as_task=True))[0] != 200:
                return

    async def _move_create_small_tasks(self, count: int) -> None:
        for _ in range(count * 10):
            status, _, body = await self._call("wait", "x", as_task=True)
            if status != 200:
                return
            self._tasks.append(json.loads(body)["result"]["taskId"])

    async def _move_keep_results(self, count: int) -> None:
        for _ in range(min(count, 30)):
            if (await self._call("echo", 2_000_000, as_task=True))[0] != 200:
                return
            await asyncio.sleep(0.02)

    async def _move_begin_bodies(self, count: int) -> None:
        for _ in range(min(count, _MAX_LARGE_BODIES)):
            await self._begin(b"POST", b"Content-Length: 4000000\r\n", b"x" * 3_900_000)

    async def _move_begin_small_bodies(self, count: int) -> None:
        for _ in range(count * 10):
            await self._begin(b"POST", b"Content-Length: 4000000\r\n", b"x")

    async def _move_open_connections(self, count: int) -> None:
        for _ in range(count * 5):
            await self._hold()

    async def _move_run_large_calls(self, count: int) -> None:
        for _ in range(min(count, _MAX_LARGE_BODIES)):
            await self._begin_call("wait", "x" * 4_000_000)

    async def _move_run_calls_of_many_values(self, count: int) -> None:
        for _ in range(min(count, _MAX_LARGE_BODIES)):
            await self._begin_call("wait", _many(60_000))

    async def _move_run_small_calls_of_many_values(self, count: int) -> None:
        for _ in range(count * 5):
            await self._begin_call("wait", _many(3000))

    async def _move_ask(self, count: int) -> None:
        for session in self._sessions[-count:]:
            await self._begin_call("ask", _many(500), session=session)

    async def _move_store_events(self, count: int) -> None:
        for session in self._sessions[-count:]:
            for _ in range(3):
                params = {
                    "name": "report",
                    "arguments": {"count": 50, "text": "x" * 10_000},
                    "_meta": {"progressToken": "t" * 1000},
                }
                await self._post("tools/call", params, session=session)

    async def _move_report_unheard(self, count: int) -> None:
        for session in self._sessions[-count:]:
            await self._begin_call("report", None, session=session)

    async def _move_open_general_streams(self, count: int) -> None:
        for session in self._sessions[-count:]:
            await self._begin(b"GET", f"Mcp-Session-Id: {session}\r\n".encode(), b"", version=NEWEST)

    async def _move_listen(self, count: int) -> None:
        for number in range(count):
            uris = [f"item://{number}-{index}{'x' * 2000}" for index in range(100)]
            notifications = {"toolsListChanged": True, "resourceSubscriptions": uris}
            await self._begin_post("subscriptions/listen", {"notifications": notifications})

    async def _move_listen_to_tasks(self, count: int) -> None:
        ids = self._tasks[:1000]
        for _ in range(count):
            await self._begin_post("subscriptions/listen", {"notifications": {"taskIds": ids}}, as_task=True)

    async def _move_open_sse(self, count: int) -> None:
        for _ in range(count):
            await self._begin(b"GET", b"", b"", path=b"/sse")

    async def _move_open_websockets(self, count: int) -> None:
        key = base64.b64encode(os.urandom(16))
        upgrade = (
            b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Protocol: mcp\r\nSec-WebSocket-Key: " + key + b"\r\n"
        )
        for _ in range(count):
            await self._begin(b"GET", upgrade, b"", path=b"/ws")

    async def _move_complete(self, count: int) -> None:
        params = {
            "ref": {"type": "ref/resource", "uri": "item://{name}"},
            "argument": {"name": "name", "value": "x" * 1_000_000},
        }
        for _ in range(min(count, 20)):
            await self._post("completion/complete", params)

    async def _move_send_batches(self, count: int) -> None:
        params = {"protocolVersion": WITH_BATCHES, "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
        status, fields, _ = await self._post("initialize", params)
        if status != 200:
            return
        session = fields["mcp-session-id"]
        for _ in range(min(count, 20)):
            call = {"name": "wait", "arguments": {"value": "x" * 30_000}}
            batch = [
                {"jsonrpc": "2.0", "id": f"{'i' * 1000}{next(self._ids)}", "method": "tools/call", "params": call}
                for _ in range(100)
            ]
            await self._begin_body(json.dumps(batch).encode(), WITH_BATCHES, session)

    async def _move_use_large_names(self, count: int) -> None:
        for number in range(min(count, 20)):
            await self._post(f"{'m' * 100_000}{number}", {})
            await self._post("tools/call", {"name": f"{'n' * 100_000}{number}", "arguments": {}})
            await self._post("resources/read", {"uri": f"item://{'u' * 8000}{number}"})
            await self._post("ping", {}, request_id="i" * 100_000)

    async def _move_send_other_headers(self, count: int) -> None:
        for number in range(count):
            await self._post("ping", {}, fields={f"X-{number}": f"{number}" + "x" * 20_000})

    async def _move_pipeline(self, count: int) -> None:
        for _ in range(min(count, 50)):
            await self._begin_call("wait", "x", then=b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n" + b"x" * 60_000)

    def close(self) -> None:
        """Close all connections."""
        for connection in [*self._held, *self._spare]:
            connection.close()

    async def _hold(self) -> Connection:
        """Return a connection that stays open, and whose responses are read."""
        connection = await Connection.open(self._server.port)
        connection.drain()
        self._held.append(connection)
        if len(self._held) > _MAX_CONNECTIONS:
            self._held.popleft().close()
        return connection

    async def _call(self, name: str, value: Any, *, as_task: bool = False) -> tuple[int, dict[str, str], bytes]:
        return await self._post("tools/call", {"name": name, "arguments": {"value": value}}, as_task=as_task)

    async def _begin_call(self, name: str, value: Any, *, session: str | None = None, then: bytes = b"") -> None:
        """Send a call whose response is not read."""
        arguments = {"count": 5000, "text": "x" * 1000} if name == "report" else {"value": value}
        params = {"name": name, "arguments": arguments, "_meta": {"progressToken": next(self._ids)}}
        await self._begin_post("tools/call", params, session=session, then=then)

    async def _begin_post(
        self,
        method: str,
        params: dict[str, Any],
        *,
        session: str | None = None,
        as_task: bool = False,
        then: bytes = b"",
    ) -> None:
        connection = await self._hold()
        with contextlib.suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                body = self._body(method, params, session, as_task=as_task)
                await connection.send(_request(body, method, params, session) + then)

    async def _begin_body(self, body: bytes, version: str, session: str) -> None:
        fields = b"MCP-Protocol-Version: %b\r\nMcp-Session-Id: %b\r\n" % (version.encode(), session.encode())
        await self._begin(b"POST", fields + b"Content-Length: %d\r\n" % len(body), body)

    async def _begin(
        self,
        method: bytes,
        fields: bytes,
        body: bytes,
        *,
        path: bytes = b"/mcp",
        version: str | None = None,
        ends_header: bool = True,
    ) -> None:
        """Send a request, or a part of it, whose response is not read."""
        connection = await self._hold()
        head = b"%b %b HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\n" % (method, path)
        if method == b"POST":
            head += b"Content-Type: application/json\r\n"
        if version is not None:
            head += f"MCP-Protocol-Version: {version}\r\n".encode()
        with contextlib.suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                await connection.send(head + fields + (b"\r\n" if ends_header else b"") + body)

    async def _post(
        self,
        method: str,
        params: dict[str, Any],
        *,
        session: str | None = None,
        as_task: bool = False,
        request_id: str | int = 1,
        fields: dict[str, str] | None = None,
    ) -> tuple[int, dict[str, str], bytes]:
        """Send a request; return the status, the header and the body of its response."""
        body = self._body(method, params, session, as_task=as_task, request_id=request_id)
        request = _request(body, method, params, session, fields)
        connection = self._spare.pop() if self._spare else await Connection.open(self._server.port)
        try:
            await connection.send(request)
            status, header = await connection.read_head()
            content = await connection.read_body(header)
        except (ConnectionError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            connection.close()
            return 0, {}, b""
        if header.get("connection") == "close":
            connection.close()
        else:
            self._spare.append(connection)
        return status, header, content

    def _body(
        self,
        method: str,
        params: dict[str, Any],
        session: str | None,
        *,
        as_task: bool = False,
        request_id: str | int = 1,
    ) -> bytes:
        params = dict(params)
        if session is None and method != "initialize":
            params["_meta"] = {
                **params.get("_meta", {}),
                "io.modelcontextprotocol/protocolVersion": PER_REQUEST,
                "io.modelcontextprotocol/clientInfo": {"name": "attacker", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {"extensions": _TASKS if as_task else {}},
            }
        message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        return json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode()


def _request(
    body: bytes, method: str, params: dict[str, Any], session: str | None, fields: dict[str, str] | None = None
) -> bytes:
    lines = {
        "Host": "localhost",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        **(fields or {}),
    }
    if session is not None:
        lines |= {"MCP-Protocol-Version": NEWEST, "Mcp-Session-Id": session}
    elif method != "initialize":
        lines |= {"MCP-Protocol-Version": PER_REQUEST, "Mcp-Method": method[:1000]}
        name = params.get("name") or params.get("uri")
        if name is not None:
            lines["Mcp-Name"] = name[:1000]
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return b"POST /mcp HTTP/1.1\r\n" + head.encode() + b"\r\n" + body


def _many(count: int) -> list[Any]:
    """Return so many objects and arrays, which take up much memory for their bytes."""
    return [{"": [{}, {}, [], {}]} for _ in range(count // 6)]


MOVES = tuple(name.removeprefix("_move_") for name in dir(Attacker) if name.startswith("_move_"))


async def attack(moves: Sequence[tuple[str, int]]) -> list[float]:
    """Return the growth of a new server's memory after each move, in MiB.

    Args:
        moves: Names of moves, and how often each of them does something.
    """
    server = AttackedServer()
    attacker = Attacker(server)
    try:
        await _begun(server)
        await attacker.warm_up()
        before = server.memory()
        growth = []
        for name, count in moves:
            await getattr(attacker, f"_move_{name}")(count)
            await asyncio.sleep(0.2)
            growth.append(server.memory() - before)
        return growth
    finally:
        attacker.close()
        server.end()


async def _begun(server: AttackedServer) -> None:
    """Wait until a server accepts connections."""
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(ConnectionError):
                (await Connection.open(server.port)).close()
                return
            await asyncio.sleep(0.05)


def _sequences(seed: int) -> Iterator[list[tuple[str, int]]]:
    """Yield sequences of moves without end."""
    rng = random.Random(seed)
    while True:
        yield [(rng.choice(MOVES), rng.choice((1, 10, 100, 1000))) for _ in range(rng.randint(3, 12))]


def main(seconds: int = 600, seed: int = 0) -> int:
    """Attack for so many seconds; return 1 if a sequence makes a server grow too much."""
    end, worst = monotonic() + seconds, 0.0
    for number, moves in enumerate(_sequences(seed)):
        growth = asyncio.run(attack(moves))
        if max(growth) > worst:
            worst = max(growth)
            steps = [f"{name} {count}: {size:.1f}" for (name, count), size in zip(moves, growth, strict=True)]
            print(f"Sequence {number}: {worst:.1f} MiB ({', '.join(steps)})", flush=True)
        if monotonic() >= end:
            break
    print(f"The worst of {number + 1} sequences from seed {seed}: {worst:.1f} MiB; the goal is {MAX_GROWTH} MiB.")
    return int(worst > MAX_GROWTH)


if __name__ == "__main__":
    sys.exit(main(*(int(argument) for argument in sys.argv[1:3])))
