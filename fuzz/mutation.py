"""Changes an input a little, and knows the shapes of inputs: bytes, lines, and a JSON text at the end."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from types import ModuleType

Mutator: TypeAlias = Callable[[bytes, int], bytes]

_TEXTS = (
    "",
    "add",
    "ask",
    "report",
    "region",
    "greet",
    "order",
    "tools/call",
    "resources/read",
    "prompts/get",
    "tools/list",
    "initialize",
    "shop://orders/1?lang=x&tag=1",
    "shop://files/../raw",
    "shop://files/a%2Fb/raw",
    "2026-07-28",
    "2025-03-26",
    "2024-11-05",
    "@INIT@",
    "@BATCH@",
    "@BOB@",
    "@STATE@",
    "ask-0",
    "\u00e9\u20ac",
    "\x00",
    "a" * 300,
    "..",
    "%00",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/logLevel",
    "debug",
    "requestState",
    "inputResponses",
    "progressToken",
    "cursor",
    "arguments",
    "params",
    "_meta",
    "id",
    "method",
    "name",
    "uri",
    "elicitation",
    "notifications/cancelled",
)
_VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2**53,
    2**64,
    -(10**400),
    1.5,
    1e308,
    -0.0,
    [],
    {},
    [[]],
    {"": None},
    [1, "a", None],
    {"a": {"b": [{}]}},
)
_LINES = (
    b"accept: text/event-stream",
    b"accept: application/json",
    b"mcp-protocol-version: 2026-07-28",
    b"mcp-protocol-version: 2025-03-26",
    b"mcp-session-id: @INIT@",
    b"mcp-session-id: @BATCH@",
    b"mcp-session-id: @BOB@",
    b"authorization: Bearer @KEY@",
    b"mcp-method: tools/call",
    b"mcp-name: add",
    b"mcp-name: =?base64?YXNr?=",
    b"mcp-param-region: eu",
    b"origin: null",
    b"origin: https://app.example.com",
    b"host: localhost",
    b"content-type: application/json",
    b"content-length: 9",
    b"last-event-id: 1",
    b"cookie: a=b",
    b"GET /mcp",
    b"POST /guarded",
    b"DELETE /mcp",
    b"traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
)
_DEEPEST = 70


def mutator_of(target: ModuleType) -> Mutator:
    """Return the function that changes a target's inputs: its own ``mutate``, or the one of this module."""
    mutator: Mutator = getattr(target, "mutate", mutate)
    return mutator


def mutate(data: bytes, seed: int) -> bytes:
    """Return another input; the same one for the same input and number."""
    random = Random(seed)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        data = random.choice((_in_json, _in_json, _in_lines, _in_bytes))(data, random)
    return data


def _in_bytes(data: bytes, random: Random) -> bytes:
    start = random.randrange(len(data) + 1)
    end = min(len(data), start + random.choice((0, 1, 1, 2, 8, 64)))
    piece = random.choice(
        (
            b"",
            random.randbytes(random.choice((1, 1, 2, 4))),
            random.choice(_TEXTS).encode(),
            data[start:end] * 2,
            random.choice((b'"', b"\\u", b"{", b"]", b"%", b"/", b":", b".", b"\n", b"=", b"\xff", b"?")),
        )
    )
    return data[:start] + piece + data[end:]


def _in_lines(data: bytes, random: Random) -> bytes:
    head, blank, body = data.partition(b"\n\n")
    lines = head.split(b"\n")
    place = random.randrange(len(lines))
    change = random.randrange(4)
    if change == 0:
        lines.insert(place + 1, random.choice(_LINES))
    elif change == 1:
        del lines[place]
    elif change == 2:
        lines.insert(place, lines[random.randrange(len(lines))])
    else:
        lines[place] = _in_bytes(lines[place], random)
    return b"\n".join(lines) + blank + body


def _in_json(data: bytes, random: Random) -> bytes:
    """Change the JSON text at the end; where there is none, change bytes."""
    for mark in (b"\n\n", b"\n", b""):
        head, _, body = data.rpartition(mark) if mark else (b"", b"", data)
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            continue
        text = json.dumps(_changed(value, random), ensure_ascii=random.random() < 0.5, separators=(",", ":"))
        return head + mark + text.encode("utf-8", "surrogatepass")
    return _in_bytes(data, random)


def _changed(value: Any, random: Random) -> Any:
    """Return a value with one change somewhere in it."""
    if isinstance(value, dict) and value and random.random() < 0.85:
        name = random.choice(list(value))
        members = {**value, name: _changed(value[name], random)}
        if random.random() < 0.1:
            members[random.choice(_TEXTS)] = members.pop(name)
        return members
    if isinstance(value, list) and value and random.random() < 0.85:
        place = random.randrange(len(value))
        return [*value[:place], _changed(value[place], random), *value[place + 1 :]]
    change = random.randrange(6)
    if change == 0 and isinstance(value, dict):
        return {**value, random.choice(_TEXTS): random.choice((*_VALUES, *_TEXTS))}
    if change == 1:
        return [value] * random.choice((0, 1, 2, 101))
    if change == 2:
        for _ in range(_DEEPEST):
            value = [value]
        return value
    return random.choice(_TEXTS if change == 3 else (*_VALUES, *_TEXTS))
