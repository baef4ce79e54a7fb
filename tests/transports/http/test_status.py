"""Status codes and media types."""

from __future__ import annotations

import json

import pytest

from funcmcp._protocol.errors import MCPError
from funcmcp._protocol.replies import Reply, error_reply
from funcmcp._transports.http.endpoints.per_request import per_request_response
from funcmcp._transports.http.status import (
    accepted,
    accepts,
    authored_response,
    handshake_response,
    is_json,
    refuse,
)
from tests import schemas

BOTH = (True, True)
JSON_ONLY = (True, False)
EVENTS_ONLY = (False, True)
NEITHER = (False, False)


@pytest.mark.parametrize(
    ("header", "taken"),
    [
        (None, JSON_ONLY),
        ("", JSON_ONLY),
        ("  ", JSON_ONLY),
        ("*/*", JSON_ONLY),
        ("application/json", JSON_ONLY),
        ("application/*", JSON_ONLY),
        ("Application/JSON; charset=utf-8", JSON_ONLY),
        ("application/json, text/event-stream", BOTH),
        ("text/event-stream,application/json", BOTH),
        ("text/event-stream;q=0.5, application/json ;q=0.9", BOTH),
        ("text/*, application/*", BOTH),
        ("text/event-stream", EVENTS_ONLY),
        ("text/event-stream, */*", BOTH),
        ("text/event-stream;q=0, */*", JSON_ONLY),
        ("application/json;q=0, text/event-stream", EVENTS_ONLY),
        ("application/json;q=0.0, */*", NEITHER),
        ("text/html", NEITHER),
        ("image/png, application/xml", NEITHER),
        ("application/json;q=1.0", JSON_ONLY),
        ("application/json;q=0.001", JSON_ONLY),
    ],
)
def test_a_client_takes_what_its_accept_header_says(header: str | None, taken: tuple[bool, bool]) -> None:
    found = accepts(None if header is None else header.encode())
    assert (found.json, found.events) == taken


def test_an_endless_accept_header_is_read_only_so_far() -> None:
    assert accepts(b"text/html," * 1000 + b"application/json").json is False


@pytest.mark.parametrize(
    "header",
    [
        "application/json",
        "Application/JSON",
        "application/json; charset=UTF-8",
        'application/json;charset="utf-8"',
        " application/json ;v=1",
    ],
)
def test_json_is_json(header: str) -> None:
    assert is_json(header.encode())


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "text/plain",
        "application/jsonp",
        "application/json-seq",
        "text/json",
        "application/json; charset=latin-1",
        "application/x-www-form-urlencoded",
    ],
)
def test_anything_else_is_not_json(header: str | None) -> None:
    assert not is_json(None if header is None else header.encode())


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (None, 200),
        (-32700, 400),
        (-32600, 400),
        (-32601, 404),
        (-32602, 400),
        (-32020, 400),
        (-32021, 400),
        (-32022, 400),
        (-32603, 200),
        (7, 200),
    ],
)
def test_the_status_of_an_answer_depends_on_the_era(code: int | None, status: int) -> None:
    reply = Reply(b"{}", code)
    assert per_request_response(reply).status == status
    assert handshake_response(reply).status == 200
    for response in (per_request_response(reply), handshake_response(reply)):
        assert dict(response.headers) == {"content-type": "application/json"}
        assert response.body == b"{}"


@pytest.mark.parametrize("request_id", [None, 0, "a"])
def test_a_refusal_is_a_json_rpc_error_on_one_line(request_id: str | int | None) -> None:
    response = refuse(405, -32600, "Use POST.", request_id=request_id, headers=(("allow", "POST"),))
    assert response.status == 405
    assert dict(response.headers) == {"content-type": "application/json", "allow": "POST"}
    assert isinstance(response.body, bytes)
    assert b"\n" not in response.body
    message = json.loads(response.body)
    assert message.get("id") == request_id
    assert ("id" in message) == (request_id is not None)
    for revision in schemas.REVISIONS:
        schemas.validate(message, revision)


def test_a_message_without_an_answer_is_accepted_without_a_body() -> None:
    response = accepted()
    assert (response.status, response.headers, response.body) == (202, (), b"")


def test_a_refusal_has_the_same_form_as_an_answer() -> None:
    assert refuse(400, 7, "No.", request_id=1).body == error_reply(MCPError(7, "No."), 1).body


@pytest.mark.parametrize("status", [100, 101, 103, 199, 0, -1, 600, 99999, "200", None, True, 200.0, float("nan")])
def test_a_status_that_does_not_end_a_response_is_an_error(status: object) -> None:
    with pytest.raises(ValueError, match="is not an HTTP status from 200 to 599"):
        authored_response(status, [], b"body")


@pytest.mark.parametrize(("status", "body"), [(200, b"body"), (599, b"body"), (204, b""), (205, b""), (304, b"")])
def test_a_body_is_sent_where_the_status_allows_one(status: int, body: bytes) -> None:
    assert authored_response(status, [("x-a", "b")], b"body").body == body


@pytest.mark.parametrize(
    ("name", "text", "is_valid"),
    [
        ("x-a", "b\tc \x80\xff", True),
        ("x-a", "", True),
        ("x-a", "b\r\nset-cookie: c", False),
        ("x-a", "b\0", False),
        ("x-a", "\u0142", False),
        ("x a", "b", False),
        ("x-a:", "b", False),
        ("", "b", False),
        ("x-\u0142", "b", False),
    ],
)
def test_a_header_that_can_not_be_sent_is_an_error(name: str, text: str, is_valid: bool) -> None:
    if is_valid:
        assert authored_response(200, [(name, text)], b"").headers == ((name, text),)
        return
    with pytest.raises(ValueError, match="is not a valid header field"):
        authored_response(200, [(name, text)], b"")
