"""A client, this server and another server behind it, in the four pairs of eras and over three transports."""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn

from funcmcp import MCPServer
from funcmcp.client import Client, StdioCommand
from funcmcp.state import MemorySessions
from funcmcp.upstreams import Upstream
from tests.serving import REPOSITORY
from tests.upstreams.everything import ERAS, PAIRS, Everything
from tests.upstreams.recording import Recording, recording

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


class Pair:
    """A client, this server, and the other server behind it.

    Args:
        revisions: Those of client and upstream.
        target: The other server.
        events: What its tools report.
        sessions: Which requests share a session of the other server.
    """

    def __init__(
        self, revisions: tuple[str, str], target: Any, events: asyncio.Queue[str], sessions: Any = "client"
    ) -> None:
        self.client_revision, self.upstream_revision = revisions
        self.proxy = MCPServer("Proxy", sessions=MemorySessions())
        self.proxy.mount(Upstream(target, sessions=sessions), prefix="up")
        self.events = events

    def connect(self, **options: Any) -> Client:
        """Return a client with options."""
        return Client(self.proxy, revision=self.client_revision, **options)

    async def wait_for(self, event: str) -> None:
        """Wait until a tool of the upstream reports an event."""
        while await self.events.get() != event:
            pass


CROSSED = [pair for pair in PAIRS if pair[0] != pair[1]]
SLOWEST = ("per-request", "handshake", "stdio")
_SLOW = pytest.mark.slow("A process starts for each test, as with the other pair on stdio.")
CASES = [
    *((*pair, transport) for transport in ("memory", "http") for pair in PAIRS),
    *((*pair, "stdio") for pair in CROSSED),  # each starts a process; every client and every upstream is among them
]
PARAMETERS = [pytest.param(case, id="-".join(case), marks=[_SLOW] if case == SLOWEST else []) for case in CASES]


@pytest.fixture(params=PARAMETERS)
async def pair(request: pytest.FixtureRequest) -> AsyncIterator[Pair]:
    """Return each of the four pairs of eras, with an upstream in memory and over HTTP, and two of them on stdio."""
    client_era, upstream_era, transport = request.param
    revisions = ERAS[client_era], ERAS[upstream_era]
    events: asyncio.Queue[str] = asyncio.Queue()
    async with TARGETS[transport](revisions[1], events) as target:
        yield Pair(revisions, target, events)


@pytest.fixture(params=PARAMETERS)
async def shared_pair(request: pytest.FixtureRequest) -> AsyncIterator[Pair]:
    """Return each of the pairs with one session of the other server for all clients."""
    client_era, upstream_era, transport = request.param
    revisions = ERAS[client_era], ERAS[upstream_era]
    events: asyncio.Queue[str] = asyncio.Queue()
    async with TARGETS[transport](revisions[1], events) as target:
        yield Pair(revisions, target, events, "shared")


@asynccontextmanager
async def in_memory(revision: str, events: asyncio.Queue[str]) -> AsyncIterator[MCPServer]:
    yield Everything([revision], events.put_nowait).mcp


@asynccontextmanager
async def over_http(revision: str, events: asyncio.Queue[str]) -> AsyncIterator[str]:
    async with serving(Everything([revision], events.put_nowait).mcp) as url:
        yield url


@asynccontextmanager
async def serving(app: Any) -> AsyncIterator[str]:
    """Serve an ASGI application in this event loop, and yield the URL of its endpoint."""
    config = uvicorn.Config(app, port=0, log_level="error")
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup()
    task = asyncio.create_task(server.main_loop())
    try:
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.should_exit = True
        await task
        await server.shutdown()


@asynccontextmanager
async def on_stdio(revision: str, events: asyncio.Queue[str]) -> AsyncIterator[StdioCommand]:
    async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        events.put_nowait((await reader.readline()).decode().strip())
        writer.close()

    async with await asyncio.start_server(receive, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        env = {"EVENTS_PORT": str(port), "PYTHONPATH": str(REPOSITORY)}
        yield StdioCommand(sys.executable, "-m", "tests.upstreams.everything", revision, env=env)


TARGETS: dict[str, Any] = {"memory": in_memory, "http": over_http, "stdio": on_stdio}


@pytest.fixture(scope="session")
def shared_upstream() -> Iterator[Recording]:
    with recording() as upstream:
        yield upstream


@pytest.fixture(scope="session")
def shared_issuer() -> Iterator[Recording]:
    with recording() as issuer:
        yield issuer


@pytest.fixture
def upstream(shared_upstream: Recording) -> Recording:
    """Return the recording upstream as if it had just started."""
    shared_upstream.reset()
    return shared_upstream


@pytest.fixture
def issuer(shared_issuer: Recording) -> Recording:
    """Return another recording server, whose token endpoint is that of the authorization server."""
    shared_issuer.reset()
    return shared_issuer
