"""Files with calls: a broken one is refused, and each call has its outcome."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from funcmcp import MCPServer
from funcmcp.client import Client
from funcmcp_cli.calls import outcome_of, read_calls
from funcmcp_cli.failure import Failure

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("{}", "must have an array of calls"),
        ("[1]", "Call 1 in"),
        ('[{"tool": "a"}, {}]', "Call 2 in"),
        ('[{"tool": "a", "prompt": "b"}]', "must be an object with a tool, a prompt or a resource"),
        ('[{"tool": 1}]', "Call 1"),
        ('[{"tool": "a", "arguments": []}]', "Call 1"),
        ('[{"tool": "a", "args": {}}]', "Call 1"),
    ],
)
def test_a_broken_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "calls.json"
    file.write_text(text)
    with pytest.raises(Failure, match=message):
        read_calls(file)
    with pytest.raises(Failure, match="cannot be read"):
        read_calls(tmp_path / "missing")


async def test_each_call_has_its_outcome(tmp_path: Path) -> None:
    mcp = MCPServer("Kinds")

    @mcp.tool
    def work() -> str:
        return "done"

    @mcp.prompt
    def ask(topic: str) -> str:
        return f"About {topic}"

    @mcp.resource("a://b")
    def text() -> str:
        return "text"

    calls = [{"tool": "work"}, {"prompt": "ask", "arguments": {"topic": "x"}}, {"resource": "a://b"}, {"tool": "no"}]
    file = tmp_path / "calls.json"
    file.write_text(json.dumps(calls))
    async with Client(mcp) as client:
        outcomes = [await outcome_of(client, call) for call in read_calls(file)]
    assert outcomes[0]["result"]["content"] == [{"type": "text", "text": "done"}]
    assert outcomes[1]["result"]["messages"][0]["content"]["text"] == "About x"
    assert outcomes[2]["result"]["contents"][0]["text"] == "text"
    assert outcomes[3]["error"]["code"] == -32602


async def test_a_call_without_an_answer_in_time_has_an_error() -> None:
    mcp = MCPServer("slow")

    @mcp.tool
    async def wait() -> None:
        await asyncio.Event().wait()

    async with Client(mcp) as client:
        outcomes = [await outcome_of(client, {"tool": name}, 0.1) for name in ("wait", "nothing")]
    message = outcomes[0]["error"]["message"]
    assert message == "The server did not answer within 0.1 seconds."
    assert outcomes[1]["error"]["code"] == -32602
