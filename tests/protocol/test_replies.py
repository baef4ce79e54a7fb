"""Answers as they are sent."""

from __future__ import annotations

import json

import pytest

from funcmcp._protocol.errors import MCPError
from funcmcp._protocol.replies import Reply, encoded_result_reply, error_reply, result_reply
from tests import schemas

PER_REQUEST = "2026-07-28"


def test_an_error_without_a_readable_id_leaves_it_out() -> None:
    reply = error_reply(MCPError(-32700, "Bad."), None)
    message = json.loads(reply.body)
    assert message == {"jsonrpc": "2.0", "error": {"code": -32700, "message": "Bad."}}
    assert reply.error == -32700
    assert reply.result() is None
    for revision in ("2025-11-25", PER_REQUEST):
        schemas.validate(message, revision)


@pytest.mark.parametrize("request_id", [0, "", 'a"b', 5])
def test_a_result_gets_the_id_of_its_request(request_id: str | int) -> None:
    expected = {"jsonrpc": "2.0", "id": request_id, "result": {"a": 1}}
    for reply in (encoded_result_reply(request_id, b'{"a":1}'), result_reply(request_id, {"a": 1})):
        assert json.loads(reply.body) == reply.message() == expected
        assert reply.result() == {"a": 1}
        assert reply.error is None


def test_an_integer_with_very_many_digits_is_read_as_a_string() -> None:
    digits = "9" * 5000
    reply = Reply(b'{"jsonrpc":"2.0","id":1,"result":{"a":%b}}' % digits.encode())
    assert reply.result() == {"a": digits}
