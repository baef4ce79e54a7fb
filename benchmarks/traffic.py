"""The requests that are sent, and the load generator that sends them."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

HANDSHAKE, PER_REQUEST = "2025-11-25", "2026-07-28"
ERAS = (HANDSHAKE, PER_REQUEST)
VARYING = ("nothing", "arguments", "traceparent")
"""What differs between the requests of `variants`."""
PREFIX = "io.modelcontextprotocol/"
ORDER = {
    "customer": {"name": "Ada", "email": "ada@example.com"},
    "lines": [
        {"item_id": "margherita", "quantity": 2},
        {"item_id": "lemonade", "quantity": 3, "note": "no ice"},
        {"item_id": "tiramisu", "quantity": 1},
    ],
}
CALLS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "add": ({"a": 1, "b": 2}, {"result": 3}),
    "create_order": (ORDER, {"order_id": "order-Ada", "lines": 3, "pieces": 6}),
}
"""Arguments and expected structured content of the tools that are called."""
DISH = "menu://dishes/7"
GETS: dict[str, tuple[dict[str, Any], Callable[[dict[str, Any]], object], object]] = {
    "resources/read": (
        {"uri": DISH},
        lambda result: json.loads(result["contents"][0]["text"]),
        {"number": 7, "name": "Minestrone", "price": 6.5, "vegetarian": True, "allergens": ["celery"]},
    ),
    "prompts/get": (
        {"name": "review", "arguments": {"code": "print(1 / 0)"}},
        lambda result: [(message["role"], message["content"]["text"]) for message in result["messages"]],
        [("user", "Review this code, and name the worst fault first:\n\nprint(1 / 0)")],
    ),
}
"""What is asked for, how it is found in the result, and what it should be."""


@dataclass(frozen=True)
class Request:
    """One HTTP request."""

    headers: dict[str, str]
    body: str


@dataclass(frozen=True)
class Load:
    """What one round of load gave.

    Attributes:
        rate: answers a second.
        p50: median latency in milliseconds.
        p99: 99th percentile of latency in milliseconds.
        requests: answers.
    """

    rate: float
    p50: float
    p99: float
    requests: int


def request(era: str, method: str, params: dict[str, Any], session: str | None = None) -> Request:
    """Return a request of an era."""
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": era,
    }
    if era == PER_REQUEST:
        headers["Mcp-Method"] = method
        named = params.get("name") or params.get("uri")
        if named is not None:
            headers["Mcp-Name"] = named
        meta = {
            PREFIX + "protocolVersion": era,
            PREFIX + "clientCapabilities": {},
            PREFIX + "clientInfo": {"name": "bench", "version": "1.0.0"},
        }
        params = {**params, "_meta": meta}
    elif session is not None:
        headers["Mcp-Session-Id"] = session
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return Request(headers, json.dumps(message, separators=(",", ":")))  # compact, as the official clients write it


def initialize() -> Request:
    """Return an `initialize` request."""
    params = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1.0.0"}}
    return request(HANDSHAKE, "initialize", params)


def call(era: str, tool: str, session: str | None = None) -> Request:
    """Return a `tools/call`."""
    return request(era, "tools/call", {"name": tool, "arguments": CALLS[tool][0]}, session)


def variants(era: str, varying: str, session: str | None = None) -> list[Request]:
    """Return calls of `add` that differ in their ids and arguments, in their traceparent, or in nothing."""
    base = call(era, "add", session)
    messages = []
    for number in range(1, 2001):
        headers = dict(base.headers)
        trace = number if varying == "traceparent" else 1
        headers["traceparent"] = f"00-{trace:032x}-{trace:016x}-01"
        message = json.loads(base.body)
        if varying == "arguments":
            message["id"] = number
            message["params"]["arguments"] = {"a": number, "b": 2}
        messages.append(Request(headers, json.dumps(message, separators=(",", ":"))))
    return messages


def send(port: int, message: Request) -> tuple[int, dict[str, str], bytes]:
    """Send a request once; return status, headers and body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("POST", "/mcp", message.body, message.headers)
        response = connection.getresponse()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
    finally:
        connection.close()


def open_session(port: int, who: Mapping[str, str] | None = None) -> str | None:
    """Initialize, as somebody if need be, and return the session id if the server gave one."""
    message = initialize()
    status, headers, body = send(port, Request({**message.headers, **(who or {})}, message.body))
    if status != 200:
        raise RuntimeError(f"initialize was answered {status}: {body[:200]!r}")
    return headers.get("mcp-session-id")


def check_call(port: int, message: Request, tool: str) -> bytes:
    """Send a call once and see to it that its answer is right; return the body."""
    status, _, body = send(port, message)
    result = json.loads(body).get("result", {})
    if status != 200 or result.get("structuredContent") != CALLS[tool][1] or result.get("isError"):
        raise RuntimeError(f"{tool} was answered {status}: {body[:300]!r}")
    return body


def check_get(port: int, message: Request, method: str) -> bytes:
    """Send a `resources/read` or `prompts/get` once and see to it that its answer is right; return the body."""
    _, find, expected = GETS[method]
    status, _, body = send(port, message)
    result = json.loads(body).get("result")
    if status != 200 or result is None or find(result) != expected:
        raise RuntimeError(f"{method} was answered {status}: {body[:300]!r}")
    return body


def check_list(port: int, message: Request, tools: int) -> bytes:
    """Send a `tools/list` once and count the tools; return the body."""
    status, _, body = send(port, message)
    count = len(json.loads(body).get("result", {}).get("tools", []))
    if status != 200 or count != tools:
        raise RuntimeError(f"tools/list was answered {status} with {count} tools.")
    return body


_DONE = """
done = function(summary, latency, requests)
  io.write(string.format('{"requests":%d,"microseconds":%d,"p50":%d,"p99":%d,"bad":%d}\\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.status
      + summary.errors.timeout))
end
"""


_IN_TURN = """
local prepared, number = {}, 0
init = function()
  for index, message in ipairs(messages) do
    prepared[index] = wrk.format("POST", "/mcp", message[1], message[2])
  end
end
request = function()
  number = number % #prepared + 1
  return prepared[number]
end
"""
"""Prepares all requests before the round, so that the load generator is not the limit."""


def load(port: int, message: Request | Sequence[Request], *, connections: int, seconds: int, core: int) -> Load:
    """Send a request over and over from another core, or each of several requests in turn.

    Raises:
        RuntimeError: A response is not 2xx.
    """
    messages = [message] if isinstance(message, Request) else message
    lines = ["local messages = {"]
    for prepared in messages:
        fields = {"Host": f"127.0.0.1:{port}", **prepared.headers}
        headers = ", ".join(f"[{json.dumps(name)}] = {json.dumps(value)}" for name, value in fields.items())
        lines.append(f"  {{{{{headers}}}, {json.dumps(prepared.body)}}},")
    lines += ["}", _IN_TURN]
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write("\n".join(lines) + _DONE)
        script.flush()
        command = ["taskset", "-c", str(core), "wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency"]
        command += ["-s", script.name, f"http://127.0.0.1:{port}/mcp"]
        run = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60, check=True)
    match = re.search(r"^\{.*\}$", run.stdout, re.MULTILINE)
    if match is None:
        raise RuntimeError(f"wrk said nothing: {run.stdout}{run.stderr}")
    summary = json.loads(match[0])
    if summary["bad"]:
        raise RuntimeError(f"{summary['bad']} answers were not 2xx.")
    requests = summary["requests"]
    rate = requests / summary["microseconds"] * 1e6
    return Load(rate, summary["p50"] / 1000, summary["p99"] / 1000, requests)


def many(port: int, message: Request, count: int) -> None:
    """Send a request so many times over one connection; raise RuntimeError if any answer is not 200."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    for _ in range(count):
        connection.request("POST", "/mcp", message.body, message.headers)
        response = connection.getresponse()
        response.read()
        if response.status != 200:
            raise RuntimeError(f"An answer had status {response.status}.")
    connection.close()


def write_body(body: bytes, folder: Path, name: str) -> Path:
    """Keep an answer for `const` to repeat."""
    path = folder / name
    path.write_bytes(body)
    return path
