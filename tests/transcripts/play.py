"""Plays the client's half of a transcript against a server, and writes down what the server says."""

from __future__ import annotations

import json
import re
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.schemas import validate
from tests.transcripts.served import change, serve
from tests.wire.peer import ACCEPT_BOTH, connect, events, exchange

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.wire.peer import Exchange

LINE = re.compile(r"(\d+)([<>]) (.*)")
SESSION = "<session>"
INVALID = "(not valid)"
"""Marks a message of the client that the schema refuses."""
_ERROR_ID = re.compile(r"(?<=error id )[0-9a-f]{16}")
_NOTABLE = ("mcp-session-id", "allow")
USUAL = {"host": "127.0.0.1:8000", "content-type": "application/json", "accept": ACCEPT_BOTH}


@dataclass
class _Open:
    """An exchange under way.

    Attributes:
        method: of the request in it, for the schema of its result.
        messages: what came and was not written down yet.
    """

    exchange: Exchange
    method: str | None
    head: str = ""
    streams: bool = False
    ended: bool = False
    body: bytes = b""
    messages: deque[Any] = field(default_factory=deque)


class Player:
    """One client of one revision, and its server."""

    def __init__(self, revision: str) -> None:
        self.mcp = serve()
        self.revision = revision
        self._open: dict[str, _Open] = {}
        self._questions: dict[str, str] = {}
        self._real: dict[str, str] = {}
        """What the words in angle brackets stand for."""

    async def play(self, lines: Iterable[str]) -> list[str]:
        """Play lines of a transcript; return them with what the server really said.

        Of the server's lines only the kind counts: `status`, `message`, `end`, or `rest` for all messages to the end;
        what a recorded line is shows in how it begins.
        """
        said: list[str] = []
        waiting = deque(lines)
        while waiting:
            line = waiting.popleft()
            found = LINE.fullmatch(line)
            if found is None:
                if line.startswith("! "):
                    await self._act(line.removeprefix("! "))
                said.append(line)
            elif found[2] == ">":
                block = [found[3]]
                while waiting and (more := LINE.fullmatch(waiting[0])) and more.group(1, 2) == found.group(1, 2):
                    block.append(more[3])
                    waiting.popleft()
                await self._send(found[1], block)
                said += [f"{found[1]}> {one}" for one in block]
            else:
                said += [f"{found[1]}< {one}" for one in await self._hear(self._open[found[1]], found[3])]
        for under_way in self._open.values():
            await self._end(under_way)
        return said

    async def _act(self, what: str) -> None:
        """Do what a line with an exclamation mark says: connect, or change the server."""
        verb, _, rest = what.partition(" ")
        if verb == "connect":
            peer = await connect(self.mcp, self.revision, json.loads(rest))
            self._real[SESSION] = peer.session_id or ""
        elif verb == "update":
            self.mcp.notify_resource_updated(rest)
        else:
            change(self.mcp, what)

    async def _send(self, number: str, block: list[str]) -> None:
        if block == ["leave"]:
            under_way = self._open.pop(number)
            under_way.exchange.leave()
            await under_way.exchange.ended()
            return
        said = [line for line in block[1:] if line.startswith(("{", "["))]
        told = [line for line in block[1:] if line not in said and line != INVALID]
        headers = {**USUAL, **dict(self._shown(line).split(": ", 1) for line in told)}
        body = self._shown(said[0]).encode() if said else b""
        method = None
        if said:
            headers["content-length"] = str(len(body))
            method = self._check_said(json.loads(body), valid=INVALID not in block)
        self._open[number] = _Open(exchange(self.mcp, block[0], headers.items(), [body]), method)

    def _check_said(self, message: Any, *, valid: bool) -> str | None:
        """Check that a client's message is valid, or is not; return the method of its answer's schema."""
        if isinstance(message, list):
            validate(message, self.revision)
            return None
        try:
            validate(message, self.revision, self._questions.get(str(message.get("id"))))
        except AssertionError:
            if valid:
                raise
        else:
            assert valid, f"the message is valid after all: {message}"
        method: str | None = message.get("method")
        return method

    async def _hear(self, under_way: _Open, kind: str) -> list[str]:
        if kind == "status" or kind[:1].isdigit():
            while not under_way.head:
                await self._pull(under_way)
            return [under_way.head]
        if kind == "end":
            await self._end(under_way)
            return ["end"]
        heard: list[str] = []
        while kind == "rest" or not heard:
            while not under_way.messages and not under_way.ended:
                await self._pull(under_way)
            if not under_way.messages:
                assert kind == "rest", f"the answer {under_way.head} ended before {kind}"
                break
            heard.append(self._written(under_way.messages.popleft(), under_way.method))
        return heard

    async def _end(self, under_way: _Open) -> None:
        while not under_way.ended:
            await self._pull(under_way)
        assert not under_way.messages, f"more was said: {under_way.messages}"

    async def _pull(self, under_way: _Open) -> None:
        """Take the next part of an answer."""
        part = await under_way.exchange.part()
        if part["type"] == "http.response.start":
            headers = {name.decode(): value.decode() for name, value in part["headers"]}
            under_way.streams = headers.get("content-type") == "text/event-stream"
            if "mcp-session-id" in headers:
                self._real[SESSION] = headers["mcp-session-id"]
                headers["mcp-session-id"] = SESSION
            notable = [f"{name}={headers[name]}" for name in _NOTABLE if name in headers]
            under_way.head = " ".join([str(part["status"]), headers.get("content-type", "-"), *notable])
            return
        under_way.ended = not part.get("more_body", False)
        if under_way.streams:
            under_way.messages += events(part["body"])
            return
        under_way.body += part["body"]
        if under_way.ended and under_way.body:
            under_way.messages.append(json.loads(under_way.body))

    def _written(self, message: Any, method: str | None) -> str:
        """Check a message of the server, and return it with words for what is never the same."""
        calls = isinstance(message, dict) and "method" in message
        validate(message, self.revision, None if calls else method)
        if calls and "id" in message:
            self._questions[message["id"]] = message["method"]
            message["id"] = self._hidden("question", message["id"])
        result = message.get("result", {}) if isinstance(message, dict) else {}
        if "requestState" in result:
            result["requestState"] = self._hidden("state", result["requestState"])
        return _ERROR_ID.sub("<error id>", json.dumps(message, ensure_ascii=False))

    def _hidden(self, kind: str, value: str) -> str:
        word = f"<{kind} {sum(name.startswith(f'<{kind}') for name in self._real) + 1}>"
        self._real[word] = value
        return word

    def _shown(self, text: str) -> str:
        for word, value in self._real.items():
            text = text.replace(word, value)
        return text
