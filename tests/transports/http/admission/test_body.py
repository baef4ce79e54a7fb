"""What a body that does not come to its end leaves behind."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import weakref
from typing import TYPE_CHECKING

import pytest

from funcmcp import MCPServer
from funcmcp._server.limits import LimitReachedError, Limits
from funcmcp._server.load import Body, Load
from funcmcp._serving.composition import runtime_of
from funcmcp._transports.http.admission.body import read_body
from funcmcp._transports.http.messages import BodyTooLargeError, HttpRequest, HttpResponse
from funcmcp.testing import MemoryRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from funcmcp._transports.http.messages import Received


class Part:
    """What has come of a body."""


class EndlessRequest(HttpRequest):
    """A request whose body does not come to its end."""

    def __init__(self) -> None:
        super().__init__("POST", "/", [])
        self.part: weakref.ref[Part] | None = None

    async def read(self, limit: int, received: Received | None = None) -> bytes:
        """Wait for the rest of the body."""
        del limit
        part = Part()
        self.part = weakref.ref(part)
        if received is not None:
            received(1)
        await asyncio.Event().wait()
        return b""


@pytest.fixture(autouse=True)
def no_garbage_collection() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


async def test_bodies_that_are_dropped_or_too_late_are_freed_at_once() -> None:
    """Not by the next garbage collection, which may be hundreds of bodies later."""
    limits = Limits(message_seconds=0.1, body_bytes=40_000)  # room for two of them
    bodies = Load(limits).bodies
    requests = [EndlessRequest() for _ in range(4)]

    async def status_of(request: HttpRequest) -> int | None:
        with contextlib.closing(Body(bodies, None)) as body:
            try:
                response = await read_body(request, limits, body)
            except LimitReachedError:
                return None
            assert isinstance(response, HttpResponse)
            return response.status

    assert await asyncio.gather(*map(status_of, requests)) == [None, None, 408, 408]
    parts = [request.part for request in requests]
    assert all(part is not None and part() is None for part in parts)
    assert bodies.budget.used == 0


async def test_a_body_that_has_arrived_already_has_the_same_limit_as_one_that_is_read() -> None:
    exchange = runtime_of(MCPServer("Orders", limits=Limits(message_bytes=100))).exchange
    lines = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
    for size, status in ((100, 400), (101, 413)):
        request = MemoryRequest("POST", "/mcp", lines, b"x" * size)
        assert (await exchange(request)).status == status
        if size > 100:
            with pytest.raises(BodyTooLargeError):
                await request.read(100)
        else:
            assert await request.read(100) == b"x" * size
