"""What floods of small pieces cost the event loop with h11."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from typing import Any

import pytest

from funcmcp._adapters.http1.h11_parser import H11Parser
from funcmcp._server.limits import Limits
from tests.adapters.http1.test_connection import OK, Application, connected, running
from tests.patience import PATIENCE

pytestmark = pytest.mark.lowest("uvicorn, httptools, h11 and uvloop read and write HTTP.")

CHUNKED = b"POST / HTTP/1.1\r\nhost: here\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.slow("Much data is sent.")
def test_a_flood_of_small_chunks_is_parsed_in_many_rounds_of_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two rounds, other connections get their turn. A round can parse the end of a read, and the next read."""
    with running(Application(), "h11", Limits()) as (port, server), connected(port) as line:
        line.sendall(CHUNKED + b"1\r\n")
        while not server.server_state.connections:
            pass
        protocol: Any = next(iter(server.server_state.connections))
        feed = H11Parser.feed
        parsed: Counter[int] = Counter()
        rounds = 0

        def count_round() -> None:
            nonlocal rounds
            rounds += 1
            protocol.loop.call_soon(count_round)

        def count_bytes(parser: H11Parser, data: bytes) -> None:
            parsed[rounds] += len(data)
            feed(parser, data)

        monkeypatch.setattr(H11Parser, "feed", count_bytes)
        protocol.loop.call_soon_threadsafe(count_round)
        line.sendall(b"x\r\n" + b"1\r\nx\r\n" * 50_000 + b"0\r\n\r\n")
        assert line.recv(65536).startswith(OK)
    assert sum(parsed.values()) > 250_000
    assert len(parsed) > 8
    assert max(parsed.values()) <= 2 * H11Parser.ROUND_BYTES


@pytest.mark.slow("Much data is sent.")
def test_a_flood_of_small_chunks_does_not_buy_more_time() -> None:
    app = Application()
    with running(app, "h11", Limits(message_seconds=0.2)) as (port, _), connected(port) as line:
        line.sendall(CHUNKED)
        end = time.monotonic() + PATIENCE
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            while time.monotonic() < end:
                line.sendall(b"1\r\nx\r\n" * 10_000)
        assert app.gone.wait(PATIENCE)
    assert time.monotonic() < end
