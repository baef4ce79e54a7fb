"""The client's half of Streamable HTTP: make requests, read answers, answer the server's questions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp.protocol.codec import InvalidJSONError, decode
from funcmcp.transports.http.messages import BodyTooLargeError, HttpRequest
from funcmcp.transports.http.status import EVENT_STREAM

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from funcmcp.transports.http.messages import Exchange, HttpResponse


class Answers:
    """What a client answers to a server's questions; it declares only what it can answer."""

    def __init__(
        self,
        elicit: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]] | None,
        sample: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]] | None,
        roots: Sequence[dict[str, Any]] | None,
    ) -> None:
        self._elicit = elicit
        self._sample = sample
        self._roots = roots
        self.capabilities: dict[str, Any] = {}
        if elicit is not None:
            self.capabilities["elicitation"] = {"form": {}, "url": {}}
        if sample is not None:
            self.capabilities["sampling"] = {}
        if roots is not None:
            self.capabilities["roots"] = {}

    async def to(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a question."""
        params = question.get("params", {})
        if question["method"] == "elicitation/create" and self._elicit is not None:
            return await self._elicit(params)
        if question["method"] == "sampling/createMessage" and self._sample is not None:
            return await self._sample(params)
        if question["method"] == "roots/list" and self._roots is not None:
            return {"roots": list(self._roots)}
        raise RuntimeError(f"The server asked {question['method']}, which this client did not declare.")


async def post(
    exchange: Exchange, path: str, body: bytes, headers: Mapping[str, str], *, method: str = "POST"
) -> HttpResponse:
    """Send one HTTP request in memory."""

    async def read(limit: int) -> bytes:
        if len(body) > limit:
            raise BodyTooLargeError
        return body

    pairs = {
        "host": "127.0.0.1",
        "content-type": "application/json",
        "accept": f"application/json, {EVENT_STREAM}",
        "content-length": str(len(body)),
        **headers,
    }
    return await exchange(HttpRequest(method, path, list(pairs.items()), read, server="127.0.0.1"))


async def read_messages(response: HttpResponse) -> AsyncIterator[dict[str, Any]]:
    """Yield the JSON-RPC messages of a response: one of plain JSON, or those of an event stream."""
    if isinstance(response.body, bytes):
        if dict(response.headers).get("content-type", "").startswith(EVENT_STREAM):
            for message in _events(response.body):
                yield message
        elif response.body:
            yield _message(response.body, response.status)
        return
    rest = b""
    async for part in response.body:
        *events, rest = (rest + part).split(b"\n\n")
        for event in events:
            for message in _events(event):
                yield message


def _events(text: bytes) -> list[dict[str, Any]]:
    lines = [line[5:].strip() for line in text.splitlines() if line.startswith(b"data:")]
    return [decode(line) for line in lines if line]


def _message(body: bytes, status: int) -> dict[str, Any]:
    try:
        message = decode(body)
    except InvalidJSONError:
        message = None
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise RuntimeError(f"The answer is not an MCP message (HTTP status {status}).")
    return message
