"""Who gets the traceback of an error id, and who does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import HTTPOptions, MCPServer
from funcmcp._client.http_messages import MemoryRequest
from funcmcp._server.recent_failures import RecentFailures
from funcmcp._serving.composition import runtime_of
from funcmcp._transports.http.options import PAGE_VARIABLE

if TYPE_CHECKING:
    from funcmcp._transports.http.messages import HttpResponse

pytestmark = pytest.mark.every_python("Exceptions and tracebacks have other texts.")

ID = "0123456789abcdef"


@pytest.fixture(autouse=True)
def failures(monkeypatch: pytest.MonkeyPatch) -> RecentFailures:
    """The failures that the endpoint and the server have in place of those of the process."""
    failures = RecentFailures()
    for module in ("_serving.composition", "_transports.http.endpoints.tracebacks"):
        monkeypatch.setattr(f"funcmcp.{module}.recent_failures", failures)
    failures.add(ID, "Traceback: <b>\u202e\ud800")
    return failures


class Visit(MemoryRequest):
    """A request with a peer and a query."""

    def __init__(self, method: str, query: str, pairs: list[tuple[bytes, bytes]], peer: str | None) -> None:
        super().__init__(method, "/mcp", pairs, b"")
        self._query, self._peer = query, peer

    @property
    def query_string(self) -> str:
        return self._query

    @property
    def peer(self) -> str | None:
        return self._peer


def visit(
    *,
    query: str = f"error_id={ID}",
    method: str = "GET",
    peer: str | None = "127.0.0.1",
    server: str | None = "127.0.0.1",
    host: str = "localhost:8000",
    fields: dict[str, str] | None = None,
    hosts: int = 1,
) -> Visit:
    pairs = [(b"host", host.encode())] * hosts
    pairs += [(name.encode(), value.encode()) for name, value in (fields or {}).items()]
    request = Visit(method, query, pairs, peer)
    request.server = server
    return request


async def answer(request: Visit, http: HTTPOptions | None = None, *, times: int = 1) -> HttpResponse:
    serving = runtime_of(MCPServer("Page", http=http))
    for _ in range(times):
        serving.show_tracebacks()
    return await serving.exchange(request)


@pytest.mark.parametrize("fields", [{}, {"sec-fetch-site": "same-origin"}, {"sec-fetch-site": "none"}])
@pytest.mark.parametrize("peer", ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
async def test_a_person_at_this_machine_gets_the_traceback_as_text(fields: dict[str, str], peer: str) -> None:
    response = await answer(visit(fields=fields, peer=peer), times=2)
    assert (response.status, response.body) == (200, "Traceback: <b>\u202e\\ud800".encode())
    headers = dict(response.headers)
    assert headers["content-type"] == "text/plain; charset=utf-8"
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "request_parts",
    [
        {"peer": "192.0.2.7"},
        {"peer": None},
        {"server": "192.0.2.1"},
        {"server": None},
        {"host": "attacker.example"},
        {"host": "192.0.2.1"},
        {"hosts": 2},
        {"hosts": 0},
        {"fields": {"x-forwarded-for": "192.0.2.7"}},
        {"fields": {"x-real-ip": "127.0.0.1"}},
        {"fields": {"forwarded": "for=192.0.2.7"}},
        {"fields": {"via": "1.1 proxy"}},
        {"fields": {"sec-fetch-site": "cross-site"}},
        {"fields": {"sec-fetch-site": "same-site"}},
        {"method": "POST"},
        {"query": f"error_id={ID}&x=1"},
        {"query": f"error_id={ID.upper()}"},
        {"query": ""},
    ],
)
async def test_no_other_request_gets_it(request_parts: dict[str, Any]) -> None:
    response = await answer(visit(**request_parts))
    assert response.status >= 400
    assert b"Traceback" not in bytes(response.body)  # type: ignore[arg-type]


async def test_an_unknown_id_has_no_content() -> None:
    assert (await answer(visit(query=f"error_id={'f' * 16}"))).status == 204


@pytest.mark.parametrize("http", [HTTPOptions(page=False), HTTPOptions(proxies=1)])
async def test_a_server_without_a_page_or_behind_a_proxy_keeps_none(
    http: HTTPOptions, failures: RecentFailures
) -> None:
    assert (await answer(visit(), http)).status == 405
    assert not failures.is_kept


async def test_the_environment_switches_it_off_with_the_page(
    monkeypatch: pytest.MonkeyPatch, failures: RecentFailures
) -> None:
    monkeypatch.setenv(PAGE_VARIABLE, "off")
    assert (await answer(visit())).status == 405
    assert not failures.is_kept


async def test_a_server_that_is_not_known_to_listen_on_loopback_only_has_none() -> None:
    """Only funcmcp's own server knows all its sockets."""
    response = await runtime_of(MCPServer("Page")).exchange(visit())
    assert response.status == 405
