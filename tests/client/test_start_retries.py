"""Requests that are sent again while a server starts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from funcmcp._client import start_retries
from funcmcp._client.http_messages import MemoryRequest
from funcmcp._client.start_retries import RepeatingExchange
from funcmcp._transports.http.messages import HttpResponse

if TYPE_CHECKING:
    from funcmcp._transports.http.messages import HttpRequest


class StartingServer:
    """Answers with statuses, and then with 200.

    Attributes:
        bodies: The bodies that it has received.
    """

    def __init__(self, *statuses: int, **headers: str) -> None:
        self.statuses = list(statuses)
        self.headers = tuple((name.replace("_", "-"), value) for name, value in headers.items())
        self.bodies: list[bytes] = []

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        self.bodies.append(await request.read(1000))
        if self.statuses:
            return HttpResponse(self.statuses.pop(0), self.headers, b"starting")
        return HttpResponse(200, (), b"done")


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that were made, in seconds, on a clock that only they move."""
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(start_retries, "sleep", sleep)
    monkeypatch.setattr(start_retries, "monotonic", lambda: sum(pauses))
    return pauses


def request_for(method: str, http_method: str = "POST") -> MemoryRequest:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method}).encode()
    return MemoryRequest(http_method, "/mcp", [], body)


@pytest.mark.parametrize("status", [429, 503])
async def test_a_request_that_was_not_begun_is_sent_again_as_it_was(status: int, pauses: list[float]) -> None:
    server = StartingServer(status, status, status)
    response = await RepeatingExchange(server, 60.0)(request_for("tools/call"))
    assert response.body == b"done"
    assert len(server.bodies) == 4
    assert len(set(server.bodies)) == 1
    assert [pause <= longest for pause, longest in zip(pauses, [0.5, 1.0, 2.0], strict=True)] == [True] * 3


@pytest.mark.parametrize(
    ("method", "http_method", "is_repeated"),
    [
        ("tools/call", "POST", False),
        ("tools/list", "POST", True),
        ("initialize", "POST", True),
        ("tools/call", "GET", True),
        ("tasks/cancel", "POST", False),
        ("", "DELETE", False),
    ],
)
@pytest.mark.parametrize("status", [502, 504])
async def test_what_may_have_begun_is_sent_again_if_it_only_reads(
    status: int, method: str, http_method: str, is_repeated: bool, pauses: list[float]
) -> None:
    server = StartingServer(status)
    response = await RepeatingExchange(server, 60.0)(request_for(method, http_method))
    assert response.status == (200 if is_repeated else status)
    assert len(pauses) == is_repeated


@pytest.mark.parametrize("body", [b"", b"{", b"[]"])
async def test_a_body_that_is_not_a_message_is_not_sent_again(body: bytes, pauses: list[float]) -> None:
    response = await RepeatingExchange(StartingServer(502), 60.0)(MemoryRequest("POST", "/mcp", [], body))
    assert response.status == 502
    assert pauses == []


@pytest.mark.parametrize("status", [200, 400, 401, 404, 500])
async def test_other_answers_are_returned(status: int, pauses: list[float]) -> None:
    assert (await RepeatingExchange(StartingServer(status), 60.0)(request_for("tools/list"))).status == status
    assert pauses == []


@pytest.mark.parametrize(("wanted", "pause"), [("7", 7.0), ("Wed, 21 Oct 2026 07:28:00 GMT", 0.5), ("0", 0.5)])
async def test_the_pause_that_the_server_wants_is_made(wanted: str, pause: float, pauses: list[float]) -> None:
    await RepeatingExchange(StartingServer(503, retry_after=wanted), 60.0)(request_for("tools/call"))
    (made,) = pauses
    assert pause / 2 <= made <= pause


async def test_the_last_answer_is_returned_when_the_time_is_over(pauses: list[float]) -> None:
    server = StartingServer(*[503] * 100)
    response = await RepeatingExchange(server, 10.0)(request_for("tools/call"))
    assert response.status == 503
    assert 3.0 < sum(pauses) <= 10.0
    assert len(server.bodies) == len(pauses) + 1


async def test_a_pause_beyond_the_time_is_not_made(pauses: list[float]) -> None:
    response = await RepeatingExchange(StartingServer(503, retry_after="3600"), 60.0)(request_for("tools/call"))
    assert response.status == 503
    assert pauses == []
