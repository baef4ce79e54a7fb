"""Server-sent events."""

from __future__ import annotations

import pytest

from funcmcp._transports.http.messages import HttpResponse
from funcmcp._transports.http.status import JSON_HEADERS
from funcmcp._transports.http.streams import sse

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")


def test_an_event_has_one_line_of_data_and_ends_with_an_empty_line() -> None:
    assert sse.event(b'{"a":1}') == b'event: message\ndata: {"a":1}\n\n'
    assert sse.event(b"/sse", name=b"endpoint") == b"event: endpoint\ndata: /sse\n\n"
    assert sse.event(b"{}", event_id=b"a.1-2") == b"id: a.1-2\nevent: message\ndata: {}\n\n"
    assert sse.priming_event(b"a.1-0", 500) == b"id: a.1-0\nretry: 500\ndata: \n\n"


def test_a_json_answer_becomes_a_stream_with_one_event_and_keeps_its_other_headers() -> None:
    session = ("mcp-session-id", "s")
    answer = sse.as_stream(HttpResponse(200, (*JSON_HEADERS, session), b"{}"))
    assert (answer.status, answer.headers) == (200, (*sse.HEADERS, session))
    assert answer.body == b"event: message\ndata: {}\n\n"


@pytest.mark.parametrize(
    "response",
    [HttpResponse(202, ()), HttpResponse(400, JSON_HEADERS, b"{}"), HttpResponse(200, sse.HEADERS, b"")],
    ids=["accepted", "error", "stream"],
)
def test_other_responses_do_not_become_streams(response: HttpResponse) -> None:
    assert sse.as_stream(response) is response
