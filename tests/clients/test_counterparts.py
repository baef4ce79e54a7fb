"""Our client beside the official Python client, at servers of other makes: 200 requests, with the same results."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mcp
import pytest
from mcp import StdioServerParameters

from funcmcp import MCPError
from funcmcp.client import Client, StdioCommand
from tests import nodejs
from tests.patience import PATIENCE
from tests.requirements import require

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow("Two clients send 200 requests to each of three servers.")

HERE = Path(__file__).parent
SERVER = HERE / "counterpart_server.py"
HOP = {"_meta", "resultType", "ttlMs", "cacheScope"}
"""Members that differ for each request or revision."""


def plan() -> list[tuple[str, dict[str, Any]]]:
    """Return 200 requests: tools, resources, prompts, errors, texts of any script, and large results."""
    requests: list[tuple[str, dict[str, Any]]] = []
    for number in range(20):
        text = ("plain", "Grüße", "世界", "🎉\u2028\n\t", '"\\')[number % 5]
        requests += [
            ("tools/call", {"name": "add", "arguments": {"a": number, "b": 2**40}}),
            ("tools/call", {"name": "repeat", "arguments": {"text": text, "times": 1}}),
            ("tools/call", {"name": "repeat", "arguments": {"text": text, "times": 1 + number * 2000}}),
            ("tools/call", {"name": "fail", "arguments": {"reason": text}}),
            ("tools/call", {"name": "add", "arguments": {"a": "x", "b": number}}),
            ("tools/call", {"name": f"missing{number}", "arguments": {}}),
            ("resources/read", {"uri": "data://text"}),
            ("resources/read", {"uri": f"data://items/{number}"}),
            ("resources/read", {"uri": f"nothing://{number}"}),
            ("prompts/get", {"name": "greet", "arguments": {"name": text}}),
        ]
    return requests


async def ours(target: Any) -> list[Any]:
    """Return the results and errors of our client."""
    answers: list[Any] = []
    async with Client(target, timeout=PATIENCE) as client:
        for method, params in plan():
            try:
                if method == "tools/call":
                    result: Any = await client.call_tool(params["name"], params["arguments"])
                elif method == "resources/read":
                    result = await client.read_resource(params["uri"])
                else:
                    result = await client.get_prompt(params["name"], params["arguments"])
                answers.append({name: member for name, member in result.items() if name not in HOP})
            except MCPError as error:
                answers.append((error.code, str(error)))
    return answers


async def official(target: Any) -> list[Any]:
    """Return the results and errors of the official client."""
    answers: list[Any] = []
    async with mcp.Client(target, read_timeout_seconds=PATIENCE, cache=None) as client:
        for method, params in plan():
            try:
                if method == "tools/call":
                    result: Any = await client.call_tool(params["name"], params["arguments"])
                elif method == "resources/read":
                    result = await client.read_resource(params["uri"])
                else:
                    result = await client.get_prompt(params["name"], params["arguments"])
                dumped = result.model_dump(by_alias=True, mode="json", exclude_unset=True)
                answers.append({name: member for name, member in dumped.items() if name not in HOP})
            except mcp.MCPError as error:
                answers.append((error.error.code, error.error.message))
    return answers


def python_of(kind: str) -> str:
    """Return the Python with a framework, or skip the test (fail in CI)."""
    if kind == "sdk":
        return sys.executable
    python = HERE.parents[1] / ".servers" / "fastmcp" / "bin" / "python"
    return str(require("FastMCP (scripts/setup-fastmcp.sh)", python if python.exists() else None))


@contextlib.contextmanager
def served(kind: str) -> Iterator[str]:
    """Serve over HTTP, and yield the URL."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    process = subprocess.Popen([python_of(kind), str(SERVER), kind, str(port)], stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait()


async def compare(target: Any, official_target: Any) -> None:
    answers, expected = await ours(target), await official(official_target)
    assert len(answers) == len(plan()) == 200
    for request, answer, other in zip(plan(), answers, expected, strict=True):
        assert answer == other, request


async def test_results_of_fastmcp_over_stdio_are_those_of_the_official_client() -> None:
    command = [python_of("fastmcp"), str(SERVER), "fastmcp", "stdio"]
    await compare(StdioCommand(*command), StdioServerParameters(command=command[0], args=command[1:]))


async def test_results_of_the_python_sdk_over_http_are_those_of_the_official_client() -> None:
    with served("sdk") as url:
        await compare(url, url)


async def test_results_of_a_typescript_server_are_those_of_the_official_client() -> None:
    nodejs.package("@modelcontextprotocol/sdk")
    command = [str(nodejs.node()), str(HERE / "counterpart_server.mjs"), str(nodejs.HOME)]
    await compare(StdioCommand(*command), StdioServerParameters(command=command[0], args=command[1:]))
