"""A client for tests: it speaks to a server in memory, through the same function that HTTP goes through."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from funcmcp.app import MCPServer
from funcmcp.protocol import envelope, headers
from funcmcp.protocol.codec import InvalidJSONError, decode, encode
from funcmcp.protocol.errors import INVALID_REQUEST, METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION, MCPError
from funcmcp.protocol.methods import METHODS
from funcmcp.protocol.revisions import REVISIONS
from funcmcp.transports.http.messages import BodyTooLargeError, HttpRequest
from funcmcp.transports.http.status import EVENT_STREAM

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from funcmcp.protocol.headers import MirroredParameter
    from funcmcp.transports.http.messages import Exchange, HttpResponse, Received

    Answer: TypeAlias = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]

_MAX_ROUNDS = 20
_MAX_PAGES = 1000
_MAX_VALUES = 2_000_000
"""Values in one message of a server: more would take gigabytes of memory."""
_LATEST_HANDSHAKE = max(date for date, revision in REVISIONS.items() if not revision.per_request)


class Client:
    """A client of one server.

    ```python
    async with Client(mcp, revision="2026-07-28") as client:
        result = await client.call_tool("add", {"a": 1, "b": 2})
    ```

    Args:
        server: an MCPServer, or any async function from HttpRequest to HttpResponse.
        revision: the protocol revision to speak; None for the newest that the server has.
        elicit: answers `elicitation/create`: gets its params, returns an ElicitResult such as
            ``{"action": "accept", "content": {...}}``. The capability is declared only where this is given.
        sample: answers `sampling/createMessage` in the same way.
        roots: answers `roots/list` with these Root objects.
        on_notification: gets every notification as a message.
        headers: more header fields of every request, such as ``{"authorization": "Bearer ..."}``.
    """

    def __init__(  # noqa: PLR0913 - one for each thing that a client may have
        self,
        server: MCPServer | Exchange,
        *,
        revision: str | None = None,
        elicit: Answer | None = None,
        sample: Answer | None = None,
        roots: Sequence[dict[str, Any]] | None = None,
        on_notification: Callable[[dict[str, Any]], None] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        if revision is not None and revision not in REVISIONS:
            raise ValueError(f"revision must be one of {', '.join(REVISIONS)}; got {revision!r}.")
        self.exchange: Exchange = server.exchange if isinstance(server, MCPServer) else server
        self.path = server.path if isinstance(server, MCPServer) else "/mcp"
        self.revision = revision or ""
        self.server_info: dict[str, Any] = {}
        self.capabilities: dict[str, Any] = {}
        self.instructions: str | None = None
        self.session_id: str | None = None
        self._answers = Answers(elicit, sample, roots)
        self._on_notification = on_notification or (lambda _: None)
        self._more = {name.lower(): value for name, value in (headers or {}).items()}
        self._ids = count(1)
        self._mirrored: dict[str, tuple[MirroredParameter, ...]] | None = None

    async def __aenter__(self) -> Self:
        if self.revision:
            await (self._discover if REVISIONS[self.revision].per_request else self._initialize)()
            return self
        self.revision = max(REVISIONS)
        try:
            await self._discover()
        except MCPError as error:
            if error.code not in {METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION, INVALID_REQUEST}:
                raise
            self.revision = _LATEST_HANDSHAKE
            await self._initialize()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.session_id is not None:
            await post(self.exchange, self.path, b"", self._headers({}), method="DELETE")

    async def list_tools(self) -> list[dict[str, Any]]:
        """Return the definitions of all tools, page by page."""
        return await self._all("tools/list", "tools")

    async def list_resources(self) -> list[dict[str, Any]]:
        """Return the definitions of all resources, page by page."""
        return await self._all("resources/list", "resources")

    async def list_templates(self) -> list[dict[str, Any]]:
        """Return the definitions of all resource templates, page by page."""
        return await self._all("resources/templates/list", "resourceTemplates")

    async def list_prompts(self) -> list[dict[str, Any]]:
        """Return the definitions of all prompts, page by page."""
        return await self._all("prompts/list", "prompts")

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, meta: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Call a tool and return its CallToolResult as it stands on the wire.

        Questions of the tool are answered through the functions that the client was made with.

        Args:
            name: the tool's name.
            arguments: its arguments.
            meta: more members of the request's `_meta`, such as ``{"progressToken": 1}``.
        """
        return await self._in_rounds("tools/call", {"name": name, "arguments": dict(arguments or {})}, meta)

    async def read_resource(self, uri: str, *, meta: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Read a resource and return its ReadResourceResult; questions and `meta` are as for `call_tool`."""
        return await self._in_rounds("resources/read", {"uri": uri}, meta)

    async def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, *, meta: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Get a prompt and return its GetPromptResult; questions and `meta` are as for `call_tool`."""
        return await self._in_rounds("prompts/get", {"name": name, "arguments": dict(arguments or {})}, meta)

    async def _all(self, method: str, member: str) -> list[dict[str, Any]]:
        """Return all items of a list, page by page."""
        items: list[dict[str, Any]] = []
        params: dict[str, Any] = {}
        for _ in range(_MAX_PAGES):
            result = await self.request(method, params)
            items += result[member]
            if "nextCursor" not in result:
                return items
            params = {"cursor": result["nextCursor"]}
        raise RuntimeError(f"{method} has more than {_MAX_PAGES} pages.")

    async def _in_rounds(self, method: str, params: dict[str, Any], meta: Mapping[str, Any] | None) -> dict[str, Any]:
        """Send a request, and again with the answers to what the server asks, until there is a result."""
        if meta:
            params["_meta"] = dict(meta)
        result = await self.request(method, params)
        for _ in range(_MAX_ROUNDS):
            if result.get("resultType") != "input_required":
                return result
            answers = {key: await self._answers.to(ask) for key, ask in result.get("inputRequests", {}).items()}
            again = {**params, "inputResponses": answers}
            if "requestState" in result:
                again["requestState"] = result["requestState"]
            result = await self.request(method, again)
        raise RuntimeError(f"{method} asked for input more than {_MAX_ROUNDS} times.")

    async def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send a request and return its result; raise MCPError if the answer is an error."""
        result, _ = await self._send(method, dict(params or {}))
        return result

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification."""
        message = {"jsonrpc": "2.0", "method": method, "params": dict(params or {})}
        await post(self.exchange, self.path, encode(message), self._headers({}))

    async def _send(self, method: str, params: dict[str, Any]) -> tuple[dict[str, Any], HttpResponse]:
        request_id = next(self._ids)
        mirrored = await self._request_headers(method, params)
        if self._per_request:
            params["_meta"] = {**params.get("_meta", {}), **self._envelope()}
        message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        response = await post(self.exchange, self.path, encode(message), self._headers(mirrored))
        async for answer in read_messages(response):
            if "method" not in answer:
                if "error" in answer:
                    error = answer["error"]
                    raise MCPError(error["code"], error["message"], error.get("data"))
                return answer["result"], response
            if "id" in answer:
                reply = {"jsonrpc": "2.0", "id": answer["id"], "result": await self._answers.to(answer)}
                await post(self.exchange, self.path, encode(reply), self._headers({}))
            else:
                self._on_notification(answer)
        raise RuntimeError(f"{method} got no answer (HTTP status {response.status}).")

    @property
    def _per_request(self) -> bool:
        if not self.revision:
            raise RuntimeError("The client is not connected. Write: async with Client(mcp) as client")
        return REVISIONS[self.revision].per_request

    def _envelope(self) -> dict[str, Any]:
        return {
            envelope.PROTOCOL_VERSION: self.revision,
            envelope.CLIENT_CAPABILITIES: self._answers.capabilities,
            envelope.CLIENT_INFO: _CLIENT_INFO,
        }

    def _headers(self, more: Mapping[str, str]) -> dict[str, str]:
        session = {headers.SESSION_ID: self.session_id} if self.session_id is not None else {}
        version = {headers.VERSION: self.revision} if session or self._per_request else {}
        return {**self._more, **session, **version, **more}

    async def _request_headers(self, method: str, params: dict[str, Any]) -> dict[str, str]:
        if not self._per_request:
            return {}
        named = METHODS[method].mirrored if method in METHODS else None
        found = {headers.METHOD: headers.encode_value(method)}
        if named is not None and isinstance(params.get(named), str):
            found[headers.NAME] = headers.encode_value(params[named])
        if method == "tools/call" and isinstance(params.get("arguments"), dict):
            if self._mirrored is None:
                self._mirrored = {}
                for tool in await self.list_tools():
                    self._mirrored[tool["name"]] = headers.mirrored_parameters(tool["inputSchema"])
            found |= headers.encode_mirrored(params["arguments"], self._mirrored.get(params.get("name", ""), ()))
        return found

    async def _discover(self) -> None:
        result = await self.request("server/discover")
        self.server_info = result.get("_meta", {}).get(envelope.SERVER_INFO, {})
        self.capabilities, self.instructions = result["capabilities"], result.get("instructions")

    async def _initialize(self) -> None:
        wanted = {
            "protocolVersion": self.revision,
            "capabilities": self._answers.capabilities,
            "clientInfo": _CLIENT_INFO,
        }
        result, response = await self._send("initialize", wanted)
        self.revision = result["protocolVersion"]
        self.server_info, self.capabilities = result["serverInfo"], result["capabilities"]
        self.instructions = result.get("instructions")
        self.session_id = dict(response.headers).get(headers.SESSION_ID)
        await self.notify("notifications/initialized")


_CLIENT_INFO = {"name": "funcmcp", "version": "0.1.0"}


class Answers:
    """What a client answers to a server's questions; it declares only what it can answer."""

    def __init__(
        self,
        elicit: Answer | None,
        sample: Answer | None,
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


class MemoryRequest(HttpRequest):
    """An HTTP request whose body is at hand, as from a client on this machine."""

    __slots__ = ("_body",)

    def __init__(self, method: str, path: str, pairs: list[tuple[bytes, bytes]], body: bytes) -> None:
        super().__init__(method, path, pairs, "127.0.0.1")
        self._body = body

    async def read(self, limit: int, received: Received | None = None) -> bytes:
        """Return the body; raise BodyTooLargeError if it has more than so many bytes."""
        del received  # it comes as a whole
        if len(self._body) > limit:
            raise BodyTooLargeError
        return self._body


async def post(
    exchange: Exchange, path: str, body: bytes, headers: Mapping[str, str], *, method: str = "POST"
) -> HttpResponse:
    """Send one HTTP request in memory."""
    pairs = {
        "host": "127.0.0.1",
        "content-type": "application/json",
        "accept": f"application/json, {EVENT_STREAM}",
        "content-length": str(len(body)),
        **headers,
    }
    lines = [(name.encode(), value.encode("latin-1")) for name, value in pairs.items()]
    return await exchange(MemoryRequest(method, path, lines, body))


async def read_messages(response: HttpResponse) -> AsyncIterator[dict[str, Any]]:
    """Yield the JSON-RPC messages of a response: one of plain JSON, or those of an event stream."""
    if isinstance(response.body, bytes):
        if dict(response.headers).get("content-type", "").startswith(EVENT_STREAM):
            for message in _events(response.body):
                yield message
        elif response.body:
            yield _message(response.body, response.status)
        return
    held = bytearray()
    async for part in response.body:
        searched = max(0, len(held) - 1)  # a long event comes in many parts, and is searched once
        held += part
        if held.find(b"\n\n", searched) < 0:
            continue
        *events, incomplete = bytes(held).split(b"\n\n")
        held[:] = incomplete
        for event in events:
            for message in _events(event):
                yield message


def _events(text: bytes) -> list[dict[str, Any]]:
    lines = [line[5:].strip() for line in text.splitlines() if line.startswith(b"data:")]
    return [decode(line, values=_MAX_VALUES) for line in lines if line]


def _message(body: bytes, status: int) -> dict[str, Any]:
    try:
        message = decode(body, values=_MAX_VALUES)
    except InvalidJSONError:
        message = None
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise RuntimeError(f"The answer is not an MCP message (HTTP status {status}).")
    return message
