"""The order of the checks before a request is served, which is the same at every endpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import HTTPOptions, Limits, MCPServer
from funcmcp._serving.composition import runtime_of
from funcmcp._transports.http.messages import HttpRequest
from funcmcp.auth import APIKeys
from funcmcp.state import MemoryRates
from funcmcp.testing import MemoryRequest

if TYPE_CHECKING:
    from funcmcp._transports.http.messages import HttpResponse

PATHS = {"streamable": "/mcp", "sse": "/sse", "websocket": "/ws"}
KEY = "key-of-alice-1234"


class Attempt:
    """A request that breaks no rule; each method breaks one.

    Args:
        endpoint: One of PATHS.
    """

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        http = HTTPOptions(sse="/sse", websocket="/ws", rates=MemoryRates(0.001, 1))
        limits = Limits(header_bytes=1000, requests=2, requests_per_principal=2, message_bytes=1000)
        self.mcp = MCPServer("Shop", auth=APIKeys({"alice": KEY}), http=http, limits=limits)
        self.serving = runtime_of(self.mcp)
        self.method = "POST" if endpoint == "streamable" else "GET"
        self.headers = {
            "host": "localhost",
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
            "mcp-protocol-version": "2026-07-28",
            "sec-websocket-protocol": "mcp",
            "x-api-key": KEY,
        }

    def exceed_the_header(self) -> None:
        self.headers["x-padding"] = "x" * 1000

    def name_another_host(self) -> None:
        self.headers["host"] = "evil.example"

    def break_the_endpoints_rules(self) -> None:
        if self.endpoint == "websocket":
            self.headers["sec-websocket-protocol"] = "other"
        else:
            self.method = "PUT"

    def announce_a_large_body(self) -> None:
        self.headers["content-length"] = "1001"

    def make_the_server_busy(self) -> None:
        self.serving.server.load.requests.count(None, 2)

    def leave_out_the_key(self) -> None:
        del self.headers["x-api-key"]

    async def send(self) -> HttpResponse | None:
        lines = [(name.encode(), value.encode()) for name, value in self.headers.items()]
        request = MemoryRequest(self.method, PATHS[self.endpoint], lines, b"")
        if self.endpoint == "websocket":
            return await self.serving.open_websocket().admit(request)
        return await self.serving.exchange(request)


FAULTS = [
    (Attempt.exceed_the_header, 431),
    (Attempt.name_another_host, 421),
    (Attempt.break_the_endpoints_rules, 405),
    (Attempt.announce_a_large_body, 413),
    (Attempt.make_the_server_busy, 503),
    (Attempt.leave_out_the_key, 401),
]


@pytest.mark.parametrize("first", range(len(FAULTS)))
@pytest.mark.parametrize("endpoint", PATHS)
async def test_the_first_fault_decides_in_the_same_order_at_every_endpoint(endpoint: str, first: int) -> None:
    attempt = Attempt(endpoint)
    for break_rule, _ in FAULTS[first:]:
        break_rule(attempt)
    _, status = FAULTS[first]
    if (endpoint, status) == ("websocket", 405):
        status = 400
    response = await attempt.send()
    assert response is not None
    assert response.status == status


@pytest.mark.parametrize("credentials", [True, False])
@pytest.mark.parametrize("endpoint", PATHS)
async def test_a_request_counts_for_the_rate_of_its_caller_whatever_its_credentials(
    endpoint: str, credentials: bool
) -> None:
    attempt = Attempt(endpoint)
    if not credentials:
        attempt.leave_out_the_key()
    first, second = await attempt.send(), await attempt.send()
    assert (None if first is None else first.status) != 429
    assert second is not None
    assert second.status == 429
    assert int(dict(second.headers)["retry-after"]) > 1


@pytest.mark.parametrize(
    ("options", "key", "forwarded", "peer", "is_logged"),
    [
        ({}, None, "192.0.2.1", "10.0.0.1", True),
        ({}, None, "192.0.2.1", None, True),
        ({}, None, "192.0.2.1, 10.0.0.1", "10.0.0.1", False),  # the server has read the header
        ({}, None, None, "10.0.0.1", False),
        ({}, KEY, "192.0.2.1", "10.0.0.1", False),
        ({"proxies": 1}, None, "192.0.2.1", "10.0.0.1", False),
    ],
)
async def test_the_first_address_in_a_header_that_is_ignored_is_in_the_log_once(
    options: dict[str, Any],
    key: str | None,
    forwarded: str | None,
    peer: str | None,
    is_logged: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    auth = APIKeys({"alice": KEY}) if key else None
    serving = runtime_of(MCPServer("Shop", auth=auth, http=HTTPOptions(allowed_hosts=["localhost"], **options)))
    fields = {"host": "localhost", "x-forwarded-for": forwarded, "x-api-key": key}
    lines = [(name.encode(), value.encode()) for name, value in fields.items() if value]
    for method in ("POST", "GET") * 2:
        request = HttpRequestAt(method, "/mcp", [*lines, *MEDIA_TYPES], peer)
        request.body = b"{}"
        await serving.exchange(request)
    messages = [record.getMessage() for record in caplog.records]
    assert [message.partition(",")[0] for message in messages] == ["X-Forwarded-For is ignored"] * is_logged


MEDIA_TYPES = [(b"accept", b"application/json, text/event-stream"), (b"content-type", b"application/json")]


class HttpRequestAt(HttpRequest):
    """A request from an address."""

    def __init__(self, method: str, path: str, pairs: list[tuple[bytes, bytes]], peer: str | None) -> None:
        super().__init__(method, path, pairs)
        self._peer = peer

    @property
    def peer(self) -> str | None:
        return self._peer
