"""The endpoint: any request gets a valid response.

An input is a request as text: a line with method and path, header lines, an empty line, the body. The response never
has a status of 500 or more and is valid by the official schemas (if they are available), and the next valid request is
answered.

`@INIT@`, `@BATCH@` and `@BOB@` stand for sessions, `@STATE@` for the state of a question, `@KEY@` for a key.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from funcmcp._protocol.codec import decode
from funcmcp._protocol.jsonrpc import Request as Call
from funcmcp._protocol.jsonrpc import classify
from funcmcp._transports.http.messages import BodyTooLargeError, HttpRequest
from fuzz.answers import check_message
from fuzz.endpoints import KEY, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from funcmcp._transports.http.messages import Exchange, HttpResponse, Received

_STATUSES = {200, 202, 204, 400, 401, 403, 404, 405, 406, 409, 413, 415, 421}
_OK, _ACCEPTED, _NO_CONTENT = 200, 202, 204
_MOST_PARTS, _MOST_TURNS, _MOST_LINES = 6, 50, 40
_LIFETIME = 500
"""Number of inputs after which the servers and their sessions are replaced."""

_HOST = "127.0.0.1:8000"
_GOOD = (
    f"POST /mcp\nhost: {_HOST}\ncontent-type: application/json\nmcp-protocol-version: 2026-07-28\n"
    "mcp-method: tools/call\nmcp-name: add\n\n"
    '{"jsonrpc":"2.0","id":"good","method":"tools/call","params":{"name":"add","arguments":{"a":20,"b":22},'
    '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}'
).encode()


class Request(HttpRequest):
    """A complete request whose client stays connected."""

    __slots__ = ("content", "query_line")

    def __init__(self, line: str, pairs: list[tuple[bytes, bytes]], body: bytes) -> None:
        method, _, target = line.partition(" ")
        path, _, self.query_line = target.partition("?")
        self.content = body
        super().__init__(method, path, pairs, "127.0.0.1")

    async def read(self, limit: int, received: Received | None = None) -> bytes:
        """Return the body; raise BodyTooLargeError."""
        del received  # the body is complete
        if len(self.content) > limit:
            raise BodyTooLargeError
        return self.content

    @property
    def query_string(self) -> str:
        """The text after the `?`."""
        return self.query_line


def parse(data: bytes, names: Mapping[bytes, bytes]) -> Request:
    """Return the request that an input describes, without white space around the values of headers."""
    for name, value in names.items():
        if name in data:
            data = data.replace(name, value)
    head, _, body = data.partition(b"\n\n")
    line, *lines = head.split(b"\n", _MOST_LINES + 1)[: _MOST_LINES + 1]
    pairs = [(name.strip().lower(), value.strip()) for name, _, value in (text.partition(b":") for text in lines)]
    return Request(line.decode("utf-8", "replace"), pairs, body)


class Endpoint:
    """The servers under test, in one event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._answered = 0
        self._serve: Exchange
        self._names: dict[bytes, bytes] = {}
        self._begin()

    def _begin(self) -> None:
        self._serve = serving()
        self._loop.run_until_complete(self._find_names())

    def check(self, data: bytes) -> None:
        """Respond to an input and to a valid request after it; fail if a response is wrong."""
        self._answered += 1
        if self._answered % _LIFETIME == 0:
            self._begin()
        self._loop.run_until_complete(self._check(data))

    def close(self) -> None:
        """Close the event loop."""
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    async def _check(self, data: bytes) -> None:
        request = parse(data, self._names)
        response = await self._serve(request)
        await _check_response(request, response)
        await _end_tasks()
        if response.status == _NO_CONTENT:  # a session has ended
            await self._find_names()
        if self._answered % 8 == 0:
            good = await self._serve(parse(_GOOD, {}))
            assert good.status == _OK, "the next valid request is not answered"
            assert b'"text":"42"' in bytes(good.body if isinstance(good.body, bytes) else b"")

    async def _find_names(self) -> None:
        """Create the sessions and the question that inputs can name."""
        for name, path, revision, key in (
            ("@INIT@", "/mcp", "2025-11-25", ""),
            ("@BATCH@", "/mcp", "2025-03-26", ""),
            ("@BOB@", "/guarded", "2025-06-18", f"authorization: Bearer {KEY}\n"),
        ):
            params = {"protocolVersion": revision, "capabilities": {"elicitation": {}}, "clientInfo": {}}
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
            text = f"POST {path}\nhost: {_HOST}\ncontent-type: application/json\n{key}\n{body}"
            response = await self._serve(parse(text.encode(), {}))
            self._names[name.encode()] = dict(response.headers)["mcp-session-id"].encode()
        question = await self._serve(
            parse(_GOOD.replace(b"add", b"ask").replace(b'ities":{}', b'ities":{"elicitation":{}}'), {})
        )
        assert isinstance(question.body, bytes)
        self._names[b"@STATE@"] = json.loads(question.body)["result"]["requestState"].encode()
        self._names[b"@KEY@"] = KEY.encode()


async def _check_response(request: Request, response: HttpResponse) -> None:
    assert response.status in _STATUSES, response.status
    names = [name for name, _ in response.headers]
    assert len(set(names) - {"vary"}) == len([name for name in names if name != "vary"]), names
    for name, value in response.headers:
        assert name.isascii()
        assert value.isprintable(), value
        value.encode("latin-1")
    kind = dict(response.headers).get("content-type")
    if not isinstance(response.body, bytes):
        assert kind == "text/event-stream"
        await _check_events(response.body)
    elif response.status in {_ACCEPTED, _NO_CONTENT}:
        assert response.body == b""
        assert kind is None
    elif kind == "text/event-stream":
        _check_event(response.body)
    else:
        assert kind == "application/json"
        _check_json(request, response)


def _check_json(request: Request, response: HttpResponse) -> None:
    assert isinstance(response.body, bytes)
    assert b"\n" not in response.body
    message = json.loads(response.body)
    if request.path.startswith("/.well-known") and response.status == _OK:
        assert message["resource"]
        return
    call = _call(request.content)
    check_message(message, call.method if call is not None else None)
    assert response.status == _OK or "error" in message, "a refusal without an error"
    if call is not None and request.method == "POST" and response.status == _OK:
        assert message["id"] == call.id
        assert type(message["id"]) is type(call.id)


def _call(body: bytes) -> Call | None:
    try:
        message = classify(decode(body))
    except ValueError:
        return None
    return message if isinstance(message, Call) else None


async def _check_events(events: AsyncIterator[bytes]) -> None:
    """Look at what comes at once, then leave."""
    iterator = events.__aiter__()
    for _ in range(_MOST_PARTS):
        part = asyncio.ensure_future(iterator.__anext__())
        for _turn in range(_MOST_TURNS):
            if part.done():
                break
            await asyncio.sleep(0)
        if not part.done():
            part.cancel()
            await asyncio.wait({part})
            break
        if isinstance(part.exception(), StopAsyncIteration):
            return
        _check_event(part.result())
    close: Any = getattr(iterator, "aclose", None)
    if close is not None:
        await close()


def _check_event(data: bytes) -> None:
    for block in data.decode("utf-8").split("\n\n"):
        fields = [line.partition(":")[::2] for line in block.split("\n") if line]
        assert {name for name, _ in fields} <= {"", "event", "data", "id", "retry"}
        text = "\n".join(value.removeprefix(" ") for name, value in fields if name == "data")
        if text and ("event", " endpoint") not in fields:
            check_message(json.loads(text), None)


async def _end_tasks() -> None:
    """Wait for running requests to end, and cancel those that do not."""
    await asyncio.sleep(0)
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left)


_endpoint: Endpoint | None = None


def check(data: bytes) -> None:
    """Answer one input; the servers are made with the first one."""
    global _endpoint  # noqa: PLW0603 - they live as long as the process
    if _endpoint is None:
        _endpoint = Endpoint()
    _endpoint.check(data)


def close() -> None:
    """Close the servers."""
    global _endpoint  # noqa: PLW0603 - as above
    if _endpoint is not None:
        _endpoint.close()
    _endpoint = None
