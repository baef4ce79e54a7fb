"""A peer that says exactly what a test wants, over a hand-made ASGI exchange, and judges every answer.

Whatever a test asserts beside it, each answer is checked here: its messages against the official schema of the
revision, one line of JSON, no body where none may be, no server fault, nothing of the server's insides in an error.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from tests.patience import PATIENCE
from tests.schemas import HANDSHAKE_REVISIONS, PER_REQUEST_REVISION, REVISIONS, validate
from tests.wire.direct import DirectConnection, goes_direct

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence

    Scope: TypeAlias = MutableMapping[str, Any]
    App: TypeAlias = Callable[[Scope, Callable[[], Any], Callable[[Any], Any]], Awaitable[None]]

HANDSHAKE: Final = "2025-11-25"
PER_REQUEST: Final = PER_REQUEST_REVISION
ERAS: Final = (HANDSHAKE, PER_REQUEST)
BATCHES: Final = "2025-03-26"
ALL: Final = REVISIONS
HANDSHAKES: Final = HANDSHAKE_REVISIONS


META: Final = "io.modelcontextprotocol/"
ACCEPT_BOTH: Final = "application/json, text/event-stream"
SERVICE_UNAVAILABLE: Final = 503

_INSIDES = re.compile(
    r"Traceback|pydantic|funcmcp|\.py\b|site-packages|https?://|\b\w+(?:Error|Exception)\b|object at 0x|/hom[e]/|/usr/",
)

LOOPBACK = ("127.0.0.1", 50_000)
"""The address that requests come from where a test names none."""


@dataclass(frozen=True)
class Answer:
    """What came back: status, headers in their order, body, and how often the application asked for the body."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes
    reads: int = 0

    def header(self, name: str) -> str | None:
        """Return the only header of a name, or None."""
        values = [value for field, value in self.headers if field.lower() == name]
        assert len(values) <= 1, f"{name} came {len(values)} times"
        return values[0] if values else None

    @property
    def media_type(self) -> str | None:
        """The Content-Type without parameters."""
        value = self.header("content-type")
        return None if value is None else value.partition(";")[0].strip()

    @property
    def messages(self) -> list[Any]:
        """The messages in the body, whether it is JSON or a stream of events."""
        if not self.body:
            return []
        return events(self.body) if self.media_type == "text/event-stream" else [json.loads(self.body)]

    @property
    def message(self) -> Any:
        """The last message: the answer itself."""
        return self.messages[-1]

    @property
    def result(self) -> dict[str, Any]:
        """The answer's result."""
        result: dict[str, Any] = self.message["result"]
        return result

    @property
    def error(self) -> dict[str, Any]:
        """The answer's error."""
        error: dict[str, Any] = self.message["error"]
        return error

    @property
    def outcome(self) -> tuple[int, int | None]:
        """Status and error code, None for a result."""
        return self.status, self.message.get("error", {}).get("code")

    @property
    def text(self) -> str:
        """The text of a tool result's first block."""
        text: str = self.result["content"][0]["text"]
        return text


def events(body: bytes) -> list[Any]:
    """Return the data of a complete event stream, decoded; comments and empty data are left out."""
    parsed = []
    for block in body.decode("utf-8").split("\n\n"):
        lines = [line[5:].removeprefix(" ") for line in block.split("\n") if line.startswith("data:")]
        if any(lines):
            parsed.append(json.loads("\n".join(lines)))
    return parsed


def check(answer: Answer, revision: str, method: str | None = None) -> Answer:
    """Fail unless an answer keeps the rules that hold for every answer; return it."""
    assert answer.status < 500 or answer.status == SERVICE_UNAVAILABLE, answer
    if answer.status in {202, 204}:
        assert answer.body == b""
        assert answer.header("content-type") is None
        return answer
    assert answer.media_type in {"application/json", "text/event-stream"}, answer
    if answer.media_type == "application/json":
        assert b"\n" not in answer.body
        assert b"\r" not in answer.body
    for message in answer.messages:
        is_answer = isinstance(message, list) or "method" not in message
        validate(message, revision, method if is_answer else None)
        for single in message if isinstance(message, list) else [message]:
            _check_insides(single)
    return answer


def _check_insides(message: Mapping[str, Any]) -> None:
    result = message.get("result", {})
    failure = message.get("error") or (result.get("content") if result.get("isError") else None)
    match = _INSIDES.search(json.dumps(failure)) if failure is not None else None
    assert match is None, f"the answer tells {match[0]!r}: {failure}"


def spell(value: str) -> str:
    """Return a header value that says a text: as it is where it is plain, else in the base64 form of 2026-07-28."""
    if (
        value
        and value == value.strip()
        and value.isascii()
        and value.isprintable()
        and not value.startswith("=?base64?")
    ):
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode('ascii')}?="


def to_bytes(message: object) -> bytes:
    """Return a body: bytes as they are, anything else as JSON."""
    return message if isinstance(message, bytes) else json.dumps(message).encode()


@dataclass
class Exchange:
    """One HTTP exchange with an application, driven by hand.

    Attributes:
        reads: how often the application asked for a part of the body or for the client's leaving.
        late: what it sent after the client had left.
    """

    app: App
    scope: Scope
    parts: list[bytes]
    reads: int = 0
    late: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._gone = asyncio.Event()
        self._sent: list[Any] = []
        self._news: asyncio.Queue[Any] = asyncio.Queue()
        self._task = asyncio.ensure_future(self.app(self.scope, self._receive, self._send))

    def leave(self) -> None:
        """Disconnect."""
        self._gone.set()

    async def ended(self) -> None:
        """Wait until the application is done with this exchange."""
        await asyncio.wait_for(asyncio.shield(self._task), PATIENCE)

    async def answer(self) -> Answer:
        """Wait for the end and return the whole answer."""
        await self.ended()
        start, *parts = self._sent
        assert start["type"] == "http.response.start"
        assert parts[-1].get("more_body", False) is False
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in start["headers"]]
        return Answer(start["status"], headers, b"".join(part.get("body", b"") for part in parts), self.reads)

    async def part(self) -> Any:
        """Wait for what the application sends next: the start of its answer, or a part of the body."""
        return await asyncio.wait_for(self._news.get(), PATIENCE)

    async def begun(self) -> None:
        """Wait until the answer begins; before anything else is waited for."""
        assert (await self.part())["type"] == "http.response.start"

    async def event(self) -> Any:
        """Wait for the next event of a stream and return its message."""
        while True:
            parsed = events((await self.part()).get("body", b""))
            if parsed:
                return parsed[0]

    async def _receive(self) -> Any:
        self.reads += 1
        if self.parts:
            part = self.parts.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(self.parts)}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if self._gone.is_set():
            self.late.append(message)
            return
        self._sent.append(message)
        self._news.put_nowait(message)
        await asyncio.sleep(0)


class DirectExchange(Exchange):
    """One HTTP exchange that goes without ASGI, as bytes. `reads` is 0 then."""

    def __post_init__(self) -> None:
        self._gone = asyncio.Event()
        self._sent = []
        self._news = asyncio.Queue()
        self._connection = DirectConnection(self.app, self.scope, self.parts[0], self._take)
        self._task = self._connection.task

    def leave(self) -> None:
        """Disconnect."""
        super().leave()
        self._connection.lose()

    def _take(self, message: Any) -> None:
        self._sent.append(message)
        self._news.put_nowait(message)


class Slow(Exchange):
    """A client that begins a body, and does not end it before `finish`."""

    def __post_init__(self) -> None:
        self.asked = asyncio.Event()
        self._end: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        super().__post_init__()

    def finish(self, part: bytes) -> None:
        """Send the last part of the body."""
        self._end.set_result(part)

    def leave(self) -> None:
        """Disconnect."""
        super().leave()
        self._end.cancel()

    async def _receive(self) -> Any:
        if self.parts:
            return {"type": "http.request", "body": self.parts.pop(), "more_body": True}
        self.asked.set()
        if not self._end.cancelled():
            await asyncio.wait({self._end})
        if self._end.cancelled():
            return await super()._receive()
        return {"type": "http.request", "body": self._end.result(), "more_body": False}


def exchange(
    app: App,
    method: str,
    headers: Iterable[tuple[str, str]],
    parts: Sequence[bytes] = (b"",),
    *,
    path: str = "/mcp",
    server: tuple[str, int] | None = ("127.0.0.1", 8000),
    client: tuple[str, int] | None = LOOPBACK,
    query: bytes = b"",
) -> Exchange:
    """Begin an exchange with exactly these headers and parts of a body."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.5"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query,
        "headers": [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers],
        "client": client,
        "server": server,
    }
    made = list(parts)
    return DirectExchange(app, scope, made) if goes_direct(app, scope, made) else Exchange(app, scope, made)


Headers: TypeAlias = "Mapping[str, str | None]"


@dataclass
class Peer:
    """A client of one revision.

    Attributes:
        capabilities: what it declares.
        session_id: of the handshake era, once `initialize` was answered.
    """

    app: App
    revision: str = HANDSHAKE
    capabilities: dict[str, Any] = field(default_factory=dict)
    session_id: str | None = None

    @property
    def per_request(self) -> bool:
        """Whether its revision has no handshake."""
        return self.revision == PER_REQUEST

    def message(self, method: str, params: Mapping[str, Any] | None = None, id: object = 1) -> dict[str, Any]:
        """Return a request of this revision."""
        members = dict(params or {})
        if self.per_request:
            members["_meta"] = {**self.meta(), **members.get("_meta", {})}
        return {"jsonrpc": "2.0", "id": id, "method": method, "params": members}

    def meta(self) -> dict[str, Any]:
        """Return the `_meta` that every request of the per-request era has."""
        return {META + "protocolVersion": self.revision, META + "clientCapabilities": self.capabilities}

    def headers(self, message: object) -> dict[str, str]:
        """Return the headers that go with a message of this revision."""
        headers = {"host": "127.0.0.1:8000", "content-type": "application/json", "accept": ACCEPT_BOTH}
        begins = isinstance(message, dict) and message.get("method") == "initialize" and "id" in message
        if begins and not self.per_request:
            return headers
        headers["mcp-protocol-version"] = self.revision
        if not self.per_request:
            return headers if self.session_id is None else {**headers, "mcp-session-id": self.session_id}
        if isinstance(message, dict) and isinstance(message.get("method"), str):
            headers["mcp-method"] = spell(message["method"])
            params = message.get("params")
            member = "uri" if message["method"] == "resources/read" else "name"
            name = params.get(member) if isinstance(params, dict) else None
            if isinstance(name, str):
                headers["mcp-name"] = spell(name)
        return headers

    def start(
        self,
        message: object,
        headers: Headers | None = None,
        *,
        like: object = None,
        client: tuple[str, int] | None = LOOPBACK,
    ) -> Exchange:
        """Begin to post a message: bytes as they are, anything else as JSON.

        Args:
            message: the body.
            headers: replace the usual ones; None takes one away.
            like: the message that the headers are made for, where the body is bytes.
            client: the address that the request comes from.
        """
        body = to_bytes(message)
        chosen = {
            **self.headers(message if like is None else like),
            "content-length": str(len(body)),
            **(headers or {}),
        }
        pairs = [(name, value) for name, value in chosen.items() if value is not None]
        return exchange(self.app, "POST", pairs, [body], client=client)

    async def post(self, message: object, headers: Headers | None = None, *, like: object = None) -> Answer:
        """Post a message and return the checked answer."""
        answer = await self.start(message, headers, like=like).answer()
        mirrored = message if like is None else like
        method = mirrored.get("method") if isinstance(mirrored, dict) else None
        return check(answer, self.revision, method if isinstance(method, str) else None)

    async def request(
        self, method: str, params: Mapping[str, Any] | None = None, *, id: object = 1, headers: Headers | None = None
    ) -> Answer:
        """Send a request."""
        return await self.post(self.message(method, params, id), headers)

    async def call(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, id: object = 1, headers: Headers | None = None
    ) -> Answer:
        """Call a tool."""
        return await self.post(self.call_message(name, arguments, id), headers)

    def call_message(self, name: str, arguments: Mapping[str, Any] | None = None, id: object = 1) -> dict[str, Any]:
        """Return a call that asks to be told of progress."""
        params = {"name": name, "arguments": arguments or {}, "_meta": {"progressToken": "token"}}
        return self.message("tools/call", params, id)

    def start_call(self, name: str, arguments: Mapping[str, Any] | None = None, *, id: object = 1) -> Exchange:
        """Begin a call of a tool."""
        return self.start(self.call_message(name, arguments, id))

    async def notify(
        self, method: str, params: Mapping[str, Any] | None = None, headers: Headers | None = None
    ) -> Answer:
        """Send a notification."""
        message = self.message(method, params)
        del message["id"]
        return await self.post(message, headers)

    async def delete(self, headers: Headers | None = None) -> Answer:
        """Send DELETE."""
        chosen = {**self.headers(None), **(headers or {})}
        pairs = [(name, value) for name, value in chosen.items() if value is not None]
        return check(await exchange(self.app, "DELETE", pairs).answer(), self.revision)

    async def works(self) -> None:
        """Fail unless the next good request is answered."""
        answer = await self.call("add", {"a": 20, "b": 22}, id="still alive")
        assert (answer.status, answer.message["id"], answer.text) == (200, "still alive", "42")


def initialize(revision: str, capabilities: Mapping[str, Any] | None = None, id: object = 1) -> dict[str, Any]:
    """Return an `initialize` request."""
    params = {
        "protocolVersion": revision,
        "capabilities": capabilities or {},
        "clientInfo": {"name": "wire tests", "version": "1"},
    }
    return {"jsonrpc": "2.0", "id": id, "method": "initialize", "params": params}


async def connect(app: App, revision: str, capabilities: dict[str, Any] | None = None) -> Peer:
    """Return a peer that is ready to call, with a session where its era has them."""
    peer = Peer(app, revision, capabilities or {})
    if not peer.per_request:
        answer = await peer.post(initialize(revision, capabilities))
        assert answer.result["protocolVersion"] == revision
        peer.session_id = answer.header("mcp-session-id")
        assert (await peer.notify("notifications/initialized")).status == 202
    return peer
