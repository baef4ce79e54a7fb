"""Requests from elsewhere, through proxies and tunnels, and under other names."""

from __future__ import annotations

import pytest

from funcmcp._transports.http.admission.this_machine import ThisMachine
from funcmcp._transports.http.messages import HttpRequest, HttpResponse


class PlacedRequest(HttpRequest):
    """A request of a client with an address."""

    client: str | None = "127.0.0.1"

    @property
    def peer(self) -> str | None:
        return self.client


async def answer(_request: HttpRequest) -> HttpResponse:
    return HttpResponse(200, ())


async def status_of(
    *fields: tuple[str, str],
    client: str | None = "127.0.0.1",
    server: str | None = "127.0.0.1",
    host: str = "127.0.0.1:8000",
) -> int:
    pairs = [(name.encode(), value.encode("latin-1")) for name, value in (("host", host), *fields)]
    request = PlacedRequest("GET", "/oauth/authorize", pairs, server)
    request.client = client
    return (await ThisMachine(answer)(request)).status


@pytest.mark.parametrize(
    ("client", "server", "host"),
    [
        ("127.0.0.1", "127.0.0.1", "localhost:8000"),
        ("127.0.0.1:53122", "127.0.0.1", "127.0.0.1:8000"),
        ("::1", "::1", "[::1]:8000"),
        ("::ffff:127.0.0.1", "::ffff:127.0.0.1", "LOCALHOST"),
    ],
)
async def test_programs_on_this_machine_are_answered(client: str, server: str, host: str) -> None:
    assert await status_of(client=client, server=server, host=host) == 200


@pytest.mark.parametrize(
    ("client", "server", "host"),
    [
        ("192.0.2.7", "127.0.0.1", "127.0.0.1:8000"),
        ("192.0.2.7", "192.0.2.1", "127.0.0.1:8000"),
        ("127.0.0.1", "192.0.2.1", "127.0.0.1:8000"),
        (None, "127.0.0.1", "127.0.0.1:8000"),
        ("/run/orders.sock", "/run/orders.sock", "127.0.0.1:8000"),
        ("127.0.0.1", None, "127.0.0.1:8000"),
        ("127.0.0.1", "127.0.0.1", "orders.example.com"),
        ("127.0.0.1", "127.0.0.1", "localhost.evil.example"),
        ("127.0.0.1", "127.0.0.1", "127.0.0.1.evil.example:8000"),
        ("127.0.0.1", "127.0.0.1", "0.0.0.0:8000"),
        ("127.0.0.1", "127.0.0.1", "localhost, evil.example"),
        ("127.0.0.1", "127.0.0.1", ""),
    ],
)
async def test_other_machines_and_other_names_are_refused(client: str | None, server: str | None, host: str) -> None:
    assert await status_of(client=client, server=server, host=host) == 403


@pytest.mark.parametrize(
    "name",
    [
        "forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-anything",
        "x-real-ip", "x_forwarded_for", "cf-connecting-ip", "true-client-ip", "tailscale-user-login",
        "x-ms-client-principal", "x-original-host", "x-envoy-external-address",
    ],
)  # fmt: skip
@pytest.mark.parametrize("value", ["203.0.113.9", "127.0.0.1", ""])
async def test_requests_through_a_proxy_or_a_tunnel_are_refused(name: str, value: str) -> None:
    assert await status_of((name, value)) == 403


async def test_a_refusal_is_logged_once_and_escaped(caplog: pytest.LogCaptureFixture) -> None:
    machine = ThisMachine(answer)
    for _ in range(3):
        pairs = [(b"host", b"127.0.0.1"), (b"x-forwarded-\x1b[31mred" + b"x" * 500, b"1")]
        assert (await machine(PlacedRequest("GET", "/", pairs, "127.0.0.1"))).status == 403
    (line,) = caplog.messages
    assert "\x1b" not in line
    assert len(line) < 250
