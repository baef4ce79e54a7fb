"""The client's half of a connection, without any transport between the two."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from funcmcp._protocol.revisions import REVISIONS
from funcmcp._serving.composition import runtime_of
from funcmcp._transports.connection import Connection
from tests.patience import PATIENCE
from tests.schemas import validate
from tests.wire.offering import offer
from tests.wire.peer import HANDSHAKE, META, PER_REQUEST, initialize, to_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ASKABLE: dict[str, Any] = {"elicitation": {}, "sampling": {}}


class Talk:
    """A client of one revision, and the connection that it talks to.

    Args:
        revision: what it speaks.
        revisions: what the server speaks.
        options: of the connection.

    Attributes:
        heard: every message that the server has sent, as bytes.
        held: while it is set, nothing can be sent to the client.
    """

    def __init__(
        self, revision: str = HANDSHAKE, *, revisions: Sequence[str] = tuple(REVISIONS), **options: Any
    ) -> None:
        self.revision = revision
        self.offering = offer(revisions=revisions)
        self.heard: list[bytes] = []
        self.reading = asyncio.Event()
        self.reading.set()
        self._news: asyncio.Queue[bytes] = asyncio.Queue()
        self.connection = Connection(runtime_of(self.offering.app).server, self._send, **options)

    async def _send(self, data: bytes) -> None:
        await self.reading.wait()
        assert b"\n" not in data
        self.heard.append(data)
        self._news.put_nowait(data)

    async def say(self, message: object) -> None:
        """Send a message: bytes as they are, anything else as JSON."""
        await asyncio.wait_for(self.connection.receive(to_bytes(message)), PATIENCE)

    async def hear(self, method: str | None = None) -> Any:
        """Return the server's next message, valid in the revision; `method` is that of the request it answers."""
        message = json.loads(await asyncio.wait_for(self._news.get(), PATIENCE))
        validate(message, self.revision, method)
        return message

    async def begin(self, capabilities: Mapping[str, Any] | None = None) -> None:
        """Shake hands."""
        await self.say(initialize(self.revision, capabilities))
        answer = await self.hear("initialize")
        assert answer["result"]["protocolVersion"] == self.revision
        await self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def request(self, method: str, params: Mapping[str, Any] | None = None, id: object = 1) -> dict[str, Any]:
        """Return a request of this client's revision."""
        said = dict(params or {})
        if self.revision == PER_REQUEST:
            meta = {META + "protocolVersion": PER_REQUEST, META + "clientCapabilities": ASKABLE}
            said["_meta"] = {**meta, **said.get("_meta", {})}
        return {"jsonrpc": "2.0", "id": id, "method": method, "params": said}

    def call(self, name: str, arguments: Mapping[str, Any] | None = None, id: object = 1) -> dict[str, Any]:
        """Return a call of a tool that asks to be told of progress."""
        params = {"name": name, "arguments": arguments or {}, "_meta": {"progressToken": "token"}}
        return self.request("tools/call", params, id)

    async def reached(self, key: str) -> None:
        """Wait until a held tool has begun."""
        await self.offering.gates.seen("arrived", key)

    async def works(self) -> None:
        """Fail unless the next call is answered, and with nothing before its answer."""
        await self.say(self.call("add", {"a": 20, "b": 22}, id="still alive"))
        answer = await self.hear("tools/call")
        assert (answer["id"], text(answer)) == ("still alive", "42")


def cancelled(request_id: object) -> dict[str, Any]:
    """Return the notification that cancels a request."""
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request_id}}


def text(answer: Mapping[str, Any]) -> str:
    """Return the text of a tool result's first block."""
    found: str = answer["result"]["content"][0]["text"]
    return found


def accept(question: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the response that fills in a form's name."""
    return {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"name": name}}}


async def talk(revision: str = HANDSHAKE, **options: Any) -> Talk:
    """Return a client that is ready to call; one of the handshake era can be asked."""
    made = Talk(revision, **options)
    if revision != PER_REQUEST:
        await made.begin(ASKABLE if revision >= "2025-06-18" else {"sampling": {}})
    return made
