"""JSON-RPC messages of servers, right and wrong ones."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp._client.messages import encode_message, is_response_to, member_of, parse_message, result_of
from funcmcp._protocol.errors import InvalidResponseError, MCPError


def test_a_message_is_parsed() -> None:
    assert parse_message(b'{"jsonrpc":"2.0","id":1,"result":{}}') == {"jsonrpc": "2.0", "id": 1, "result": {}}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello",
        b"\xff",
        b"[]",
        b"5",
        b"{}",
        b'{"jsonrpc":"1.0"}',
        b'{"jsonrpc":"2.0","id":1,"id":2,"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"a":1e999}}',
        b'{"jsonrpc":"2.0","a":' + b"[" * 1000 + b"]" * 1000 + b"}",
    ],
)
def test_anything_else_is_not_a_message(data: bytes) -> None:
    assert parse_message(data) is None


def test_a_message_of_too_many_values_is_not_parsed() -> None:
    assert parse_message(b'{"jsonrpc":"2.0","id":1,"result":{"a":[' + b"[]," * 2_000_000 + b"1]}}") is None


@pytest.mark.parametrize(
    ("message", "is_right"),
    [
        ({"id": 1, "result": {}}, True),
        ({"id": 1, "error": {}}, True),
        ({"id": None, "error": {}}, True),
        ({"error": {}}, True),
        ({"id": 2, "result": {}}, False),
        ({"id": 2, "error": {}}, False),
        ({"id": None, "result": {}}, False),
        ({"result": {}}, False),
        ({"id": True, "result": {}}, False),
        ({"id": "1", "result": {}}, False),
        ({"id": [1], "error": {}}, False),
        ({"id": {}, "result": {}}, False),
    ],
)
def test_a_response_has_the_id_of_its_request(message: dict[str, Any], is_right: bool) -> None:
    assert is_response_to(message, 1) is is_right


def test_an_error_is_raised_with_its_code_and_data() -> None:
    with pytest.raises(MCPError, match="No") as caught:
        result_of({"error": {"code": -32602, "message": "No.", "data": [1]}}, "tools/call")
    assert (caught.value.code, caught.value.data) == (-32602, [1])


@pytest.mark.parametrize("error", [5, "no", [], {}, {"code": "1", "message": "m"}, {"code": True, "message": "m"}])
def test_an_error_of_another_shape_names_the_method(error: object) -> None:
    with pytest.raises(InvalidResponseError, match="The error in the response to tools/call has no code and message"):
        result_of({"error": error}, "tools/call")


@pytest.mark.parametrize("result", [None, 5, "x", []])
def test_a_result_has_to_be_an_object(result: object) -> None:
    with pytest.raises(InvalidResponseError, match=r"The response to tools/call has no result object\."):
        result_of({"result": result}, "tools/call")


def test_a_member_has_to_be_there_and_of_its_type() -> None:
    assert member_of({"tools": [1]}, "tools", list, "tools/list") == [1]
    results: list[dict[str, Any]] = [{}, {"tools": None}, {"tools": {}}]
    for result in results:
        with pytest.raises(InvalidResponseError, match=r"The result of tools/list has no valid 'tools'\."):
            member_of(result, "tools", list, "tools/list")


def test_an_integer_that_python_does_not_read_is_not_sent() -> None:
    assert encode_message({"id": int("9" * 4300)}) == b'{"id":%b}' % (b"9" * 4300)
    assert encode_message({"text": "9" * 9000}) == b'{"text":"%b"}' % (b"9" * 9000)
    with pytest.raises(ValueError, match="4300"):
        encode_message({"id": 10**5000})
