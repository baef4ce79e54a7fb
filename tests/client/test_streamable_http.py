"""Requests and responses of Streamable HTTP, as the client makes and reads them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._client.http_messages import post, read_messages
from funcmcp._protocol.errors import InvalidResponseError
from funcmcp._transports.http.messages import BodyTooLargeError, HttpRequest, HttpResponse
from funcmcp._transports.http.status import JSON_HEADERS
from funcmcp._transports.http.streams import sse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.lowest("httpx2 sends the requests.")

FIRST = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}
ANSWER = {"jsonrpc": "2.0", "id": 1, "result": {"text": "two\n\nlines"}}


async def messages(response: HttpResponse) -> list[dict[str, Any]]:
    return [message async for message in read_messages(response)]


def as_event(message: dict[str, Any]) -> bytes:
    return sse.event(json.dumps(message).encode())


async def test_a_request_looks_as_http_would_bring_it() -> None:
    seen: list[HttpRequest] = []

    async def exchange(request: HttpRequest) -> HttpResponse:
        seen.append(request)
        assert await request.read(100) == b"{}"
        return HttpResponse(202, ())

    response = await post(exchange, "/mcp", b"{}", {"mcp-method": "ping", "accept": "application/json"})
    assert response.status == 202
    [request] = seen
    assert (request.method, request.path, request.server) == ("POST", "/mcp", "127.0.0.1")
    assert request.headers == {
        "host": "127.0.0.1",
        "content-type": "application/json",
        "accept": "application/json",
        "content-length": "2",
        "mcp-method": "ping",
    }


async def test_a_body_over_the_limit_is_refused_as_http_would_do() -> None:
    async def exchange(request: HttpRequest) -> HttpResponse:
        with pytest.raises(BodyTooLargeError):
            await request.read(1)
        return HttpResponse(413, ())

    assert (await post(exchange, "/mcp", b"{}", {}, method="DELETE")).status == 413


async def test_plain_json_is_one_message() -> None:
    assert await messages(HttpResponse(200, JSON_HEADERS, json.dumps(ANSWER).encode())) == [ANSWER]


async def test_a_response_without_a_body_has_no_message() -> None:
    assert await messages(HttpResponse(202, ())) == []


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"5", b'{"message":"not found"}', b"\xff"])
async def test_a_body_that_is_no_message_says_the_status(body: bytes) -> None:
    with pytest.raises(InvalidResponseError, match="HTTP status 502"):
        await messages(HttpResponse(502, JSON_HEADERS, body))


async def test_a_whole_event_stream_is_its_messages() -> None:
    body = b": keep-alive\n\n" + as_event(FIRST) + b"data:\n\n" + as_event(ANSWER)
    assert await messages(HttpResponse(200, sse.HEADERS, body)) == [FIRST, ANSWER]


@pytest.mark.parametrize("size", [1, 7, 10_000])
async def test_a_stream_is_its_messages_however_it_is_cut(size: int) -> None:
    body = as_event(FIRST) + b": keep-alive\n\n" + as_event(ANSWER)

    async def parts() -> AsyncIterator[bytes]:
        for start in range(0, len(body), size):
            yield body[start : start + size]

    assert await messages(HttpResponse(200, sse.HEADERS, parts())) == [FIRST, ANSWER]
