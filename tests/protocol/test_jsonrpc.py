"""JSON-RPC messages told apart."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funcmcp._protocol.jsonrpc import Malformed, Notification, Request, Response, classify

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner))
MEMBERS: dict[str, st.SearchStrategy[Any]] = {
    "jsonrpc": st.just("2.0") | VALUES,
    "id": SCALARS,
    "method": VALUES,
    "params": VALUES,
    "result": VALUES,
    "error": VALUES,
}


@settings(deadline=None, max_examples=100)
@given(VALUES | st.fixed_dictionaries({}, optional=MEMBERS))
def test_every_json_value_is_told_without_an_exception(value: Any) -> None:
    message = classify(value)
    if isinstance(message, Request):
        assert type(message.id) in {str, int}
        assert (message.id, message.method) == (value["id"], value["method"])
    elif isinstance(message, Notification):
        assert "id" not in value
    elif isinstance(message, Response):
        assert (message.result is None) != (message.error is None)
    else:
        assert message.reason


@pytest.mark.parametrize("request_id", [0, -1, 1, 2**70, "1", ""])
def test_a_message_with_method_and_id_is_a_request(request_id: str | int) -> None:
    message = classify({"jsonrpc": "2.0", "id": request_id, "method": "ping", "params": {"a": 1}})
    assert isinstance(message, Request)
    assert (message.id, message.method, message.params) == (request_id, "ping", {"a": 1})
    assert type(message.id) is type(request_id)


def test_params_that_are_absent_are_empty() -> None:
    message = classify({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert isinstance(message, Request)
    assert message.params == {}


def test_a_request_is_shown_as_it_stands_on_the_wire() -> None:
    on_the_wire = {"jsonrpc": "2.0", "id": "a", "method": "ping", "params": {}}
    assert Request("a", "ping", {}).message() == on_the_wire


def test_a_message_with_a_method_and_no_id_is_a_notification() -> None:
    message = classify({"jsonrpc": "2.0", "method": "notifications/initialized", "params": {"a": 1}})
    assert isinstance(message, Notification)
    assert (message.method, message.params) == ("notifications/initialized", {"a": 1})


def test_a_message_with_a_result_is_a_response() -> None:
    message = classify({"jsonrpc": "2.0", "id": "ask-1", "result": {"a": 1}})
    assert isinstance(message, Response)
    assert (message.id, message.result, message.error) == ("ask-1", {"a": 1}, None)


@pytest.mark.parametrize("members", [{"id": "ask-1"}, {}])
def test_a_message_with_an_error_is_a_response_even_without_an_id(members: dict[str, Any]) -> None:
    error = {"code": 1, "message": "No."}
    message = classify({"jsonrpc": "2.0", "error": error, **members})
    assert isinstance(message, Response)
    assert (message.id, message.result, message.error) == (members.get("id"), None, error)


@pytest.mark.parametrize("request_id", [None, 1.5, 1.0, True, False, [], {}])
def test_a_request_whose_id_is_no_string_or_integer_is_malformed(request_id: object) -> None:
    message = classify({"jsonrpc": "2.0", "id": request_id, "method": "ping"})
    assert isinstance(message, Malformed)
    assert message.id is None
    assert '"id"' in message.reason


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (None, "object"),
        (1, "object"),
        ("ping", "object"),
        ([], "object"),
        ([{"jsonrpc": "2.0", "method": "a"}], "object"),
        ({"id": 7, "method": "ping"}, '"2.0"'),
        ({"jsonrpc": 2.0, "id": 7, "method": "ping"}, '"2.0"'),
        ({"jsonrpc": "1.0", "id": 7, "method": "ping"}, '"2.0"'),
        ({"jsonrpc": "2.0", "id": 7, "method": None}, '"method"'),
        ({"jsonrpc": "2.0", "id": 7, "method": ["ping"]}, '"method"'),
        ({"jsonrpc": "2.0", "id": 7, "method": "ping", "params": [1]}, '"params"'),
        ({"jsonrpc": "2.0", "id": 7}, '"method"'),
        ({"jsonrpc": "2.0", "id": 7, "result": 1}, '"result"'),
        ({"jsonrpc": "2.0", "id": 7, "error": "no"}, '"error"'),
        ({"jsonrpc": "2.0", "id": 7, "result": {}, "error": {}}, '"result"'),
        ({"jsonrpc": "2.0", "result": {}}, '"result"'),
    ],
)
def test_anything_else_is_malformed_and_keeps_the_id_that_was_readable(value: Any, why: str) -> None:
    message = classify(value)
    assert isinstance(message, Malformed)
    assert why in message.reason
    assert message.id == (value.get("id") if isinstance(value, dict) else None)


@pytest.mark.parametrize("params", [None, {}, {"cursor": None}, {"cursor": None, "_meta": None}])
def test_an_optional_member_that_is_null_is_absent(params: Any) -> None:
    request = classify({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params})
    assert isinstance(request, Request)
    assert request.params == {}
    notification = classify({"jsonrpc": "2.0", "method": "notifications/initialized", "params": params})
    assert isinstance(notification, Notification)
    assert notification.params == {}


def test_null_in_a_value_of_a_member_stays() -> None:
    request = classify({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"arguments": {"a": None}}})
    assert isinstance(request, Request)
    assert request.params == {"arguments": {"a": None}}


def test_a_response_may_have_the_other_member_as_null() -> None:
    result = classify({"jsonrpc": "2.0", "id": 1, "result": {}, "error": None})
    error = classify({"jsonrpc": "2.0", "id": 1, "result": None, "error": {"code": 1, "message": "m"}})
    assert isinstance(result, Response)
    assert isinstance(error, Response)
    assert (result.result, error.error) == ({}, {"code": 1, "message": "m"})
