"""A bridge: it serves one client on stdio or over HTTP, and passes the messages on to a transport.

How it works: the transport leads to a server, or to a cassette. Requests get ids of their own on the way to it, because
a client may choose any. What the server sends while a request runs goes to the client on the same way as the response:
as a line on stdio, and as an event of the response's stream over HTTP. The client answers a question with a message of
its own. There are no sessions: one bridge serves one client.

Any page in a browser can send requests to a port of this machine, so Host and Origin are checked as for a server.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

from funcmcp._client.errors import AuthenticationError
from funcmcp._client.messages import encode_message, is_response, parse_message
from funcmcp._protocol import headers as header_names
from funcmcp._protocol.envelope import PROTOCOL_VERSION
from funcmcp._protocol.errors import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR, ClientError
from funcmcp._protocol.methods import repeated_members
from funcmcp._transports.http.admission.origin import OriginCheck
from funcmcp._transports.http.messages import BodyTooLargeError, HttpResponse
from funcmcp._transports.http.options import HTTPOptions
from funcmcp._transports.http.status import JSON_HEADERS, accepted, refuse, wrong_method
from funcmcp._transports.http.streams import sse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from funcmcp._client.transport import Message, Transport
    from funcmcp._transports.http.messages import HttpRequest

    Deliver = Callable[[Message], None]

_PATH = "/mcp"
_MAX_BODY = 64 * 1024 * 1024
_CLOSE_SECONDS = 5.0


class Bridge:
    """Passes on the messages of one client to a transport, and back.

    Args:
        transport: Leads to the server.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._ids = count(1)
        self._running: dict[int, tuple[Message, Deliver]] = {}
        self._upstream_ids: dict[Any, int] = {}  # by the id of the client
        self._version: str | None = None
        self._mirrored: dict[str, tuple[header_names.MirroredParameter, ...]] = {}
        self._deliver_always: Deliver | None = None
        self._is_open = False
        self._opening = asyncio.Lock()
        self._origin = OriginCheck(HTTPOptions())

    async def open(self) -> None:
        """Connect to the server, unless that has happened."""
        async with self._opening:
            if not self._is_open:
                await self._transport.connect(self._received)
                self._is_open = True

    async def aclose(self) -> None:
        """Close the connection to the server."""
        if self._is_open:
            await self._transport.aclose()

    async def serve_lines(self, lines: AsyncIterator[bytes], write: Callable[[bytes], None]) -> None:
        """Serve a client on stdio until its input ends.

        Args:
            lines: The lines of the client.
            write: Writes a line.
        """

        def deliver(message: Message) -> None:
            write(encode_message(message) + b"\n")

        await self.open()
        self._deliver_always = deliver
        running: set[asyncio.Task[None]] = set()
        async for line in lines:
            if not line.strip():
                continue
            message = parse_message(line)
            if message is None:
                deliver(_error_for({"id": None}, PARSE_ERROR, "The line is not a JSON-RPC message."))
                continue
            task = asyncio.create_task(self._pass_on(message, deliver))
            running.add(task)
            task.add_done_callback(running.discard)
        if running:
            await asyncio.wait(running, timeout=_CLOSE_SECONDS)
        for task in running:
            task.cancel()

    async def exchange(self, request: HttpRequest) -> HttpResponse:
        """Answer one HTTP request of a client."""
        refusal = self._origin.refusal(request)
        if refusal is not None:
            return refusal
        if request.path.rstrip("/") != _PATH:
            return refuse(404, INVALID_REQUEST, f"The endpoint is {_PATH}.")
        if request.method != "POST":
            return wrong_method(["POST"])
        try:
            message = parse_message(await request.read(_MAX_BODY))
        except BodyTooLargeError:
            return refuse(413, INVALID_REQUEST, f"The body may have {_MAX_BODY} bytes.")
        if message is None:
            return refuse(400, PARSE_ERROR, "The body is not a JSON-RPC message. Batches are not passed on.")
        headers = {
            name: value
            for name, value in request.headers.items()
            if name.startswith("mcp-") and name != header_names.SESSION_ID
        }
        await self.open()
        if not _is_request(message):
            await self._send(message, headers)
            return accepted()
        return await self._answer_over_http(message, headers)

    async def _answer_over_http(self, message: Message, headers: Mapping[str, str]) -> HttpResponse:
        """Return the response to a request: JSON, or a stream if the server sends something before it."""
        received: asyncio.Queue[Message] = asyncio.Queue()

        async def run() -> None:
            received.put_nowait(await self._request(message, headers, received.put_nowait))

        task = asyncio.create_task(run())
        try:
            first = await received.get()
        except BaseException:
            task.cancel()
            raise
        if is_response(first):
            return HttpResponse(200, JSON_HEADERS, encode_message(first))
        return sse.response(_events(first, received, task))

    async def _pass_on(self, message: Message, deliver: Deliver) -> None:
        """Pass on a message of a client on stdio, and deliver the response to a request."""
        headers = self._headers_of(message)
        if _is_request(message):
            deliver(await self._request(message, headers, deliver))
        else:
            await self._send(message, headers)

    async def _request(self, message: Message, headers: Mapping[str, str], deliver: Deliver) -> Message:
        """Return the response of the server to a request, with the id of the client."""
        upstream_id = next(self._ids)
        self._running[upstream_id] = message, deliver
        self._upstream_ids[message["id"]] = upstream_id
        try:
            response = await self._transport.request({**message, "id": upstream_id}, headers)
        except AuthenticationError as error:
            text = f"The server does not accept the credentials of the bridge (HTTP status {error.status})."
            return _error_for(message, INTERNAL_ERROR, text)
        except ClientError as error:
            return _error_for(message, INTERNAL_ERROR, str(error))
        finally:
            del self._running[upstream_id]
            self._upstream_ids.pop(message["id"], None)
        result = response.get("result")
        if isinstance(result, dict):
            self._learn(message["method"], result)
        return {**response, "id": message["id"]}

    def _learn(self, method: str, result: Mapping[str, Any]) -> None:
        """Remember what later requests need over HTTP: the revision, and the arguments that headers repeat."""
        if method == "initialize":
            self._version = result.get("protocolVersion")
        elif method == "tools/list" and isinstance(result.get("tools"), list):
            for tool in result["tools"]:
                with suppress(ValueError, TypeError, KeyError, AttributeError):  # it is the client that checks tools
                    self._mirrored[tool["name"]] = header_names.mirrored_parameters(tool["inputSchema"])

    async def _send(self, message: Message, headers: Mapping[str, str]) -> None:
        """Pass on a notification or an answer. A request that the client cancels has another id at the server."""
        params = message.get("params")
        if message.get("method") == "notifications/cancelled" and isinstance(params, dict):
            upstream_id = self._upstream_ids.get(params.get("requestId"))
            if upstream_id is None:
                return
            message = {**message, "params": {**params, "requestId": upstream_id}}
        with suppress(ClientError):  # there is no response for the client
            await self._transport.send(message, headers)

    async def _received(self, message: Message) -> None:
        """Deliver a message of the server on the way of the request that it belongs to."""
        deliver = self._deliver_always or self._way_of(message)
        if deliver is not None:
            deliver(message)

    def _way_of(self, message: Message) -> Deliver | None:
        """Return the way of the request with the token of a progress notification, or of the one that runs longest."""
        params = message.get("params")
        token = params.get("progressToken") if isinstance(params, dict) else None
        ways = list(self._running.values())
        for request, deliver in ways:
            meta = (request.get("params") or {}).get("_meta")
            if token is not None and isinstance(meta, dict) and meta.get("progressToken") == token:
                return deliver
        return ways[0][1] if ways else None

    def _headers_of(self, message: Message) -> dict[str, str]:
        """Return the header fields that a message of a client on stdio has over HTTP."""
        method = message.get("method")
        if not self._transport.is_http or method == "initialize":
            return {}
        params = message.get("params")
        if not isinstance(params, dict):
            params = {}
        meta = params.get("_meta")
        version = meta.get(PROTOCOL_VERSION) if isinstance(meta, dict) else None
        if not isinstance(version, str):
            return {} if self._version is None else {header_names.VERSION: self._version}
        headers = {header_names.VERSION: version}
        if isinstance(method, str):
            headers[header_names.METHOD] = header_names.encode_value(method)
            for header, value in repeated_members(method, params, version).items():
                headers[header] = header_names.encode_value(value)
            if method == "tools/call" and isinstance(params.get("arguments"), dict):
                mirrored = self._mirrored.get(str(params.get("name")), ())
                headers |= header_names.encode_mirrored(params["arguments"], mirrored)
        return headers


async def _events(first: Message, received: asyncio.Queue[Message], task: asyncio.Task[None]) -> AsyncIterator[bytes]:
    """Yield the messages of a stream until the response; cancel the request if the client closes the stream."""
    message = first
    try:
        while not is_response(message):
            yield sse.event(encode_message(message))
            message = await received.get()
        yield sse.event(encode_message(message))
    finally:
        task.cancel()


def _is_request(message: Message) -> bool:
    """Return whether a message needs a response."""
    return isinstance(message.get("method"), str) and isinstance(message.get("id"), str | int)


def _error_for(request: Mapping[str, Any], code: int, text: str) -> Message:
    return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": text}}
