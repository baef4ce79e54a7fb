"""Servers for the wire tests: the application itself, and a real uvicorn around it."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
import uvicorn

from funcmcp._adapters.asgi.application import http_runtime_of
from funcmcp._adapters.http1.direct_path import direct_path
from funcmcp._adapters.uvicorn.protocols import http_protocol
from funcmcp._server.limits import Limits
from tests.patience import PATIENCE
from tests.wire.offering import Offering, offer, offer_all
from tests.wire.peer import HANDSHAKE, PER_REQUEST

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Literal, TypeAlias

    from tests.wire.peer import App

    Way: TypeAlias = Literal["direct", "httptools", "h11"]

SMALL_LIMIT = 20_000


@pytest.fixture
def offering() -> Offering:
    """A server with the default settings."""
    return offer()


@pytest.fixture
def stocked() -> Offering:
    """A server that has resources and prompts, too."""
    return offer_all()


@pytest.fixture
def limited() -> Offering:
    """A server that speaks two revisions, one of each era, and takes small bodies."""
    return offer(revisions=(HANDSHAKE, PER_REQUEST), limits=Limits(message_bytes=SMALL_LIMIT))


@contextmanager
def running_server(server: uvicorn.Server) -> Iterator[int]:
    """Run a server in a thread until the block ends; give the port."""
    # asyncio turns Nagle's algorithm off only on sockets that say that they are TCP.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(100)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            yield int(listener.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join(PATIENCE)
            assert not thread.is_alive(), "uvicorn did not stop"


@contextmanager
def serving(app: App, http: Way) -> Iterator[int]:
    """Serve an application as `mcp.run()` does, in a thread until the block ends; give the port."""
    served = http_runtime_of(app)
    limits = Limits() if served is None else served.limits
    if http == "direct":
        protocol = http_protocol(limits, "httptools", direct=direct_path(app))
    else:
        protocol = http_protocol(limits, http)
    config = uvicorn.Config(
        app,
        http=protocol,
        loop="asyncio",
        ws="none",
        lifespan="off",
        log_config=None,
        proxy_headers=False,
        timeout_graceful_shutdown=1,
    )
    with running_server(uvicorn.Server(config)) as port:
        yield port


@pytest.fixture(params=["direct", "httptools", "h11"])
def parser(request: pytest.FixtureRequest) -> Way:
    """Each of uvicorn's two HTTP parsers through ASGI, and the way without ASGI."""
    chosen: Way = request.param
    return chosen


@pytest.fixture
def port(offering: Offering, parser: Way) -> Iterator[int]:
    """The port where `offering` is served for real."""
    with serving(offering.app, parser) as port:
        yield port
