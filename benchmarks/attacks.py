"""Attack funcmcp and its peers on this machine, and measure what each attack costs.

Each attack runs for some seconds against a server in a process of its own, on loopback. Meanwhile a bystander calls a
tool twenty times a second, each time on a connection of its own. What is reported: what the attacker sent, by how much
the server's memory grew at its worst, and the slowest answer that the bystander got.

`python benchmarks/attacks.py [--before REVISION]` writes `results/attacks.md`; with a revision of this repository, that
is attacked too. The peers are those of `benchmarks/requirements.txt`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import traffic
from peers import PACKAGES, run_with_peers
from targets import SERVERS, environment, free_port

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    Attack = Callable[[int], Awaitable[str]]

HERE = Path(__file__).parent
RESULTS = HERE / "results"
SECONDS = 10
PATIENCE = 15.0
"""How long the bystander waits for an answer, in seconds."""
LIBRARIES = ("funcmcp", "mcp", "fastmcp")


@dataclass
class Outcome:
    """What an attack did to a server.

    Attributes:
        attack: The attack's name.
        server: The library, or "before" for an earlier revision of funcmcp.
        sent: What the attacker sent.
        memory: Growth of the server's resident memory at its peak, in MiB.
        slowest: The bystander's slowest answer, in milliseconds; None if there was none within `PATIENCE`.
        refused: How many of the bystander's calls got no result.
        calls: How many calls the bystander made.
        seen: What the attacker achieved, where that is not memory or time.
    """

    attack: str
    server: str
    sent: str
    memory: float
    slowest: float | None
    refused: int
    calls: int
    seen: str = ""


class Connection:
    """A connection of an attacker: it counts what it sends, and needs no answer."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.sent = 0
        self.ended = ""

    @classmethod
    async def open(cls, port: int, *, receive_buffer: int = 2**16) -> Connection:
        """Connect; the reader takes no more than *receive_buffer* bytes before it stops."""
        return cls(*await asyncio.open_connection("127.0.0.1", port, limit=receive_buffer))

    async def send(self, data: bytes) -> bool:
        """Send bytes; return False when the server has closed the connection or takes nothing for two seconds."""
        if self.writer.is_closing():
            self.ended = "closed by the server"
            return False
        try:
            self.writer.write(data)
            await asyncio.wait_for(self.writer.drain(), 2)
        except OSError:
            self.ended = "closed by the server"
            return False
        except TimeoutError:
            self.ended = "the server stopped reading"
            return False
        self.sent += len(data)
        return True

    async def flood(self, data: bytes, *, max_bytes: int = 2**34, seconds: float = SECONDS) -> None:
        """Send the same bytes until the server ends it, for some seconds at most."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self.sent < max_bytes:
            if not await self.send(data):
                return

    def close(self) -> None:
        """Hang up at once."""
        self.writer.transport.abort()


def _head(port: int, message: traffic.Request, *lines: str) -> bytes:
    fields = [f"{name}: {value}" for name, value in message.headers.items()]
    return "\r\n".join(["POST /mcp HTTP/1.1", f"Host: 127.0.0.1:{port}", *fields, *lines, "", ""]).encode()


def _tool(name: str, arguments: dict[str, Any]) -> traffic.Request:
    return traffic.request(traffic.PER_REQUEST, "tools/call", {"name": name, "arguments": arguments})


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size:,} bytes"


async def trailer_as_header(port: int) -> str:
    """Send a header field of a trusted proxy as a trailer."""
    message = _tool("certificate", {})
    body = message.body.encode()
    connection = await Connection.open(port)
    chunked = b"%x\r\n%s\r\n0\r\nx-client-certificate: alice\r\n\r\n" % (len(body), body)
    await connection.send(_head(port, message, "Transfer-Encoding: chunked", "Connection: close") + chunked)
    answer = await asyncio.wait_for(connection.reader.read(), PATIENCE)
    connection.close()
    return f"1 request|{'accepted as a header' if b'alice' in answer else 'dropped'}"


async def endless_trailers(port: int) -> str:
    """Send trailers without end on one connection."""
    message = _tool("add", {"a": 1, "b": 2})
    body = message.body.encode()
    connection = await Connection.open(port)
    await connection.send(_head(port, message, "Transfer-Encoding: chunked") + b"%x\r\n%s\r\n0\r\n" % (len(body), body))
    await connection.flood(b"".join(b"a%06d: %s\r\n" % (number, b"x" * 100) for number in range(500)))
    connection.close()
    return f"{_megabytes(connection.sent)}, 1 connection|{connection.ended}"


async def pipelining(port: int) -> str:
    """Send many short requests on one connection and read no answer."""
    connection = await Connection.open(port)
    await connection.flood(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 1000, max_bytes=17_000_000)
    await asyncio.sleep(2)
    connection.close()
    return f"{_megabytes(connection.sent)}, 1 connection|{connection.ended}"


async def half_bodies(port: int) -> str:
    """Send all of 1,100 requests but their last byte."""
    message = _tool("add", {"a": 1, "b": 2})
    body = message.body.encode()
    connections = []
    for _ in range(1100):
        connection = await Connection.open(port)
        await connection.send(_head(port, message, f"Content-Length: {len(body)}") + body[:-1])
        connections.append(connection)
    await asyncio.sleep(SECONDS)
    for connection in connections:
        connection.close()
    return f"{_megabytes(sum(connection.sent for connection in connections))}, 1,100 connections|"


async def long_subscriptions(port: int) -> str:
    """Listen on ten streams, each with as many and as long URIs as one message has room for."""
    uris = ["menu://" + "x" * 3_900 + str(number) for number in range(1000)]
    message = traffic.request(
        traffic.PER_REQUEST, "subscriptions/listen", {"notifications": {"resourceSubscriptions": uris}}
    )
    body = message.body.encode()
    connections = []
    first = b""
    for _ in range(10):
        connection = await Connection.open(port)
        await connection.send(_head(port, message, f"Content-Length: {len(body)}") + body)
        with contextlib.suppress(TimeoutError):
            first = await asyncio.wait_for(connection.reader.read(12), 5)
        connections.append(connection)
    await asyncio.sleep(2)
    for connection in connections:
        connection.close()
    return f"{_megabytes(sum(connection.sent for connection in connections))}, 10 streams|status {first[9:].decode()}"


async def never_reads(port: int) -> str:
    """Ask for 5 MB on each of 40 connections and never read."""
    message = _tool("big", {})
    body = message.body.encode()
    connections = []
    for _ in range(40):
        connection = await Connection.open(port, receive_buffer=1024)
        await connection.send(_head(port, message, f"Content-Length: {len(body)}") + body)
        connections.append(connection)
    await asyncio.sleep(70)
    for _ in range(
        2
    ):  # the peer of a closed connection answers the first byte with a reset, which the second one meets
        for connection in connections:
            await connection.send(b"x")
        await asyncio.sleep(0.5)
    closed = sum(connection.writer.is_closing() for connection in connections)
    for connection in connections:
        connection.close()
    return f"{_megabytes(sum(connection.sent for connection in connections))}, 40 connections|{closed} closed in 70 s"


async def _one_request(port: int, message: traffic.Request) -> str:
    body = message.body.encode()
    connection = await Connection.open(port)
    await connection.send(_head(port, message, f"Content-Length: {len(body)}") + body)
    status = b""
    with contextlib.suppress(TimeoutError, OSError):
        status = await asyncio.wait_for(connection.reader.read(12), PATIENCE)
    connection.close()
    return f"{_megabytes(len(body))}, 1 request|{'status ' + status[9:].decode() if status else 'no response'}"


async def recursive_schema(port: int) -> str:
    """Send a deep value for a schema that refers to itself in two alternatives."""
    value: Any = "no object"
    for _ in range(40):
        value = {"next": value}
    return await _one_request(port, _tool("tree", {"node": value}))


async def colliding_numbers(port: int) -> str:
    """Send integers with the same hash for a set."""
    return await _one_request(port, _tool("count", {"numbers": [n * (2**61 - 1) for n in range(60_000)]}))


async def empty_lists(port: int) -> str:
    """Send 1.2 million empty lists."""
    return await _one_request(port, _tool("size", {"value": [[]] * 1_200_000}))


ATTACKS: dict[str, tuple[Attack, Sequence[str]]] = {
    "A proxy's header as a trailer": (trailer_as_header, LIBRARIES),
    "Endless trailers": (endless_trailers, LIBRARIES),
    "Pipelined requests": (pipelining, LIBRARIES),
    "A recursive `anyOf` in `input_schema`": (recursive_schema, ("funcmcp",)),
    "Half-sent bodies": (half_bodies, LIBRARIES),
    "Long URIs in `subscriptions/listen`": (long_subscriptions, LIBRARIES),
    "Clients that never read": (never_reads, LIBRARIES),
    "Integers that collide in a set": (colliding_numbers, LIBRARIES),
    "Empty lists": (empty_lists, LIBRARIES),
}
"""Each attack, and the libraries that can be attacked that way."""


@contextlib.contextmanager
def serving(library: str, source: Path | None) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """Serve `attacked.py` on a free port; *source* is the folder of another funcmcp than the installed one."""
    port = free_port()
    settings = {} if source is None else {"PYTHONPATH": source}
    process = subprocess.Popen(
        [sys.executable, SERVERS / "attacked.py", library, str(port)],
        env=environment(settings),
        cwd=SERVERS,
        stderr=subprocess.DEVNULL,  # some log a traceback for each connection
    )
    try:
        for _ in range(600):
            with contextlib.suppress(OSError, RuntimeError):
                traffic.check_call(port, traffic.call(traffic.PER_REQUEST, "add"), "add")
                break
            time.sleep(0.1)
        yield port, process
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _memory(process: subprocess.Popen[bytes], field: str) -> float:
    """Return a field of the process's status, such as VmRSS or its peak VmHWM, in MiB."""
    match = re.search(rf"^{field}:\s*(\d+)", Path(f"/proc/{process.pid}/status").read_text(), re.MULTILINE)
    if match is None:
        raise RuntimeError("The server has ended.")
    return int(match[1]) / 1024


async def attack(name: str, server: str, port: int, process: subprocess.Popen[bytes]) -> Outcome:
    """Run one attack beside a bystander."""
    message = traffic.call(traffic.PER_REQUEST, "add")
    for _ in range(20):
        traffic.check_call(port, message, "add")
    before = _memory(process, "VmRSS")
    times: list[float] = []
    refused = 0
    attacking = asyncio.create_task(_as_task(ATTACKS[name][0](port)))

    async def stand_by() -> None:
        nonlocal refused
        started = time.perf_counter()
        try:
            body = message.body.encode()
            connection = await Connection.open(port)
            await connection.send(_head(port, message, f"Content-Length: {len(body)}", "Connection: close") + body)
            answer = await asyncio.wait_for(connection.reader.read(), PATIENCE)
            connection.close()
            refused += b'"result":3' not in answer.replace(b" ", b"")
        except (OSError, TimeoutError):
            refused += 1
        times.append(time.perf_counter() - started)

    calls: list[asyncio.Task[None]] = []
    while not attacking.done():
        calls.append(asyncio.create_task(stand_by()))
        await asyncio.sleep(0.05)
    await asyncio.gather(*calls)
    sent, _, seen = (await attacking).partition("|")
    slowest = max(times) if times else 0.0
    return Outcome(
        name,
        server,
        sent,
        max(0.0, _memory(process, "VmHWM") - before),
        None if slowest >= PATIENCE else slowest * 1000,
        refused,
        len(times),
        seen,
    )


async def _as_task(running: Awaitable[str]) -> str:
    return await running


def table(outcomes: Sequence[Outcome], versions: dict[str, str]) -> str:
    """Return the outcomes as a Markdown table, an attack a row."""
    servers = list(dict.fromkeys(outcome.server for outcome in outcomes))
    names = [f"{server} {versions.get(server, '')}".strip() for server in servers]
    lines = [
        f"| attack | sent | {' | '.join(names)} |",
        f"|---|---|{'---|' * len(servers)}",
    ]
    for name in dict.fromkeys(outcome.attack for outcome in outcomes):
        row = {outcome.server: outcome for outcome in outcomes if outcome.attack == name}
        sent = max((outcome.sent for outcome in row.values()), key=len)
        lines.append(f"| {name} | {sent} | {' | '.join(_cell(row.get(server)) for server in servers)} |")
    return "\n".join(lines) + "\n"


def _cell(outcome: Outcome | None) -> str:
    if outcome is None:
        return "-"
    slowest = f"no response in {PATIENCE:.0f} s" if outcome.slowest is None else f"{outcome.slowest:,.0f} ms"
    refused = f", {outcome.refused} of {outcome.calls} calls rejected" if outcome.refused else ""
    seen = f"; {outcome.seen}" if outcome.seen else ""
    return f"+{outcome.memory:,.0f} MiB, {slowest}{refused}{seen}"


@contextlib.contextmanager
def earlier(revision: str | None) -> Iterator[Path | None]:
    """Lay the sources of a revision in a temporary folder."""
    if revision is None:
        yield None
        return
    archive = subprocess.run(["git", "archive", revision, "src"], cwd=HERE.parent, capture_output=True, check=True)
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
            files.extractall(folder, filter="data")
        yield Path(folder) / "src"


def main() -> None:
    """Run the attacks and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", metavar="REVISION", help="attack this revision of funcmcp too")
    parser.add_argument("--only", action="append", choices=list(ATTACKS), help="one attack; may be repeated")
    parser.add_argument("--server", action="append", choices=["before", *LIBRARIES], help="one server; may be repeated")
    options = parser.parse_args()
    run_with_peers(Path(__file__))
    outcomes = []
    with earlier(options.before) as source:
        servers: list[tuple[str, Path | None]] = [("before", source)] if source else []
        servers += [(library, None) for library in LIBRARIES]
        for name in options.only or ATTACKS:
            for server, folder in servers:
                library = "funcmcp" if server == "before" else server
                if library not in ATTACKS[name][1] or server not in (options.server or [server]):
                    continue
                with serving(library, folder) as (port, process):
                    outcome = asyncio.run(attack(name, server, port, process))
                print(json.dumps(asdict(outcome)), flush=True)
                outcomes.append(outcome)
    from importlib.metadata import version

    versions = {name: version(name) for name in PACKAGES} | {"before": options.before or ""}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "attacks.md").write_text(table(outcomes, versions))
    print((RESULTS / "attacks.md").read_text())


if __name__ == "__main__":
    main()
