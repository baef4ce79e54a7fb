"""Values as TypedData: how HTTP requests depend on the worker's capabilities, and responses of all kinds."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp_host.workers.rpc_messages import TypedData
from funcmcp_host.workers.rpc_values import read_typed_data, write_typed_data
from funcmcp_host.workers.worker import NULL, Value

NULLABLE = {"UseNullableValueDictionaryForHttp": "true"}
BODY_ONLY = {"RpcHttpBodyOnly": "true"}
RAW = {"RawHttpBodyBytes": "true"}


def request_of(capabilities: dict[str, str], body: bytes = b"", media_type: str = "") -> Any:
    headers = {"content-type": media_type, "x-empty": ""}
    request = {"method": "POST", "url": "http://a/b?c=d", "headers": headers, "query": {"c": "d", "e": ""}}
    data = TypedData()
    write_typed_data(data, Value("http", {**request, "params": {"id": "7"}, "body": body}), capabilities)
    return data.http


def test_a_request_has_its_parts() -> None:
    http = request_of({})
    assert (http.method, http.url) == ("POST", "http://a/b?c=d")
    assert dict(http.headers) == {"content-type": "", "x-empty": ""}
    assert (dict(http.query), dict(http.params)) == ({"c": "d"}, {"id": "7"})
    assert not http.HasField("body")
    assert not http.HasField("rawBody")


def test_empty_values_are_sent_to_workers_that_tell_them_from_missing_ones() -> None:
    http = request_of(NULLABLE)
    assert {name: text.value for name, text in http.nullable_query.items()} == {"c": "d", "e": ""}
    assert http.nullable_params["id"].value == "7"
    assert http.nullable_headers["x-empty"].WhichOneof("string") == "value"
    assert (dict(http.headers), dict(http.query), dict(http.params)) == ({}, {}, {})


@pytest.mark.parametrize(
    ("media_type", "capabilities", "body", "raw"),
    [
        ("text/plain", {}, ("string", "{}"), ("string", "{}")),
        ("text/plain", RAW, ("string", "{}"), ("bytes", b"{}")),
        ("text/plain", BODY_ONLY, ("string", "{}"), None),
        ("text/plain", {**BODY_ONLY, **RAW}, ("bytes", b"{}"), None),
        ("Application/JSON; charset=utf-8", {}, ("json", "{}"), ("string", "{}")),
        ("application/octet-stream", {}, ("bytes", b"{}"), ("string", "{}")),
        ("multipart/form-data; boundary=x", BODY_ONLY, ("bytes", b"{}"), None),
    ],
)
def test_a_body_depends_on_its_type_and_on_the_worker(
    media_type: str, capabilities: dict[str, str], body: tuple[str, Any], raw: tuple[str, Any] | None
) -> None:
    http = request_of(capabilities, b"{}", media_type)
    assert (http.body.WhichOneof("data"), getattr(http.body, body[0])) == body
    assert http.HasField("rawBody") is (raw is not None)
    if raw is not None:
        assert (http.rawBody.WhichOneof("data"), getattr(http.rawBody, raw[0])) == raw


def test_a_body_that_is_not_json_is_text() -> None:
    http = request_of({}, b"{\xff", "application/json")
    assert http.body.string == http.rawBody.string == "{\ufffd"
    assert request_of({}, b"[" * 100_000, "application/json").body.string == "[" * 100_000


def test_nothing_is_an_empty_message() -> None:
    data = TypedData()
    write_typed_data(data, NULL, {})
    assert data.WhichOneof("data") is None
    assert read_typed_data(data) == NULL


@pytest.mark.parametrize(
    ("body", "content"),
    [
        ({}, b""),
        ({"string": "\u00e9"}, b"\xc3\xa9"),
        ({"bytes": b"\x00"}, b"\x00"),
        ({"int": 5}, b"5"),
        ({"json": "{}"}, b"{}"),
    ],
)
def test_a_response_has_the_bytes_of_its_body(body: dict[str, Any], content: bytes) -> None:
    response = read_typed_data(TypedData(http={"body": body, "headers": {"Content-Type": "a/b"}}))
    assert response == Value("http", {"status": 200, "headers": [("Content-Type", "a/b")], "body": content})


@pytest.mark.parametrize("content", [b"{", b"\xff"])
def test_content_that_claims_to_be_json_and_is_not_is_base64(content: bytes) -> None:
    data = TypedData(model_binding_data={"content_type": "application/json", "content": content})
    assert read_typed_data(data).kind == "json"
    assert '"content": "' in read_typed_data(data).data
