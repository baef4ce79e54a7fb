"""The MCP Inspector's command line against the orders sample, in both eras."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests import nodejs
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow("The Inspector takes seconds to start for each command.")

FAILED = 5
"""Exit code for a tool that is unknown or answers with an error."""


class Inspector:
    """Runs the Inspector against an endpoint in one era, with a home folder of its own."""

    def __init__(self, url: str, era: str, home: Path) -> None:
        script = nodejs.package("@modelcontextprotocol/inspector") / "clients/launcher/build/index.js"
        self._command = [str(nodejs.node()), str(script), "--cli", "--server-url", url, "--transport", "http"]
        self._command += ["--protocol-era", era, "--format", "json", "--quiet"]
        path = f"{nodejs.node().parent}{os.pathsep}{os.environ['PATH']}"
        self._environment = {**os.environ, "HOME": str(home), "PATH": path}

    def run(self, *options: str) -> tuple[int, dict[str, Any]]:
        """Return the exit code and what was printed: results to stdout, errors to stderr."""
        finished = subprocess.run(
            [*self._command, *options],
            capture_output=True,
            env=self._environment,
            text=True,
            encoding="utf-8",
            timeout=PATIENCE,
            check=False,
        )
        printed = finished.stdout or finished.stderr
        assert printed.startswith("{"), finished.stderr
        told: dict[str, Any] = json.loads(printed.splitlines()[0])
        return finished.returncode, told

    def call(self, tool: str, arguments: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Call a tool."""
        return self.run("--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments))


def test_the_inspector_starts_a_file_that_calls_run_and_calls_its_tool(tmp_path: Path) -> None:
    server = tmp_path / "server.py"
    server.write_text(
        "from funcmcp import MCPServer\n\nmcp = MCPServer('Greeter')\n\n\n"
        "@mcp.tool\ndef greet(name: str) -> str:\n    return f'Hello, {name}!'\n\n\n"
        "mcp.run()\n"
    )
    script = nodejs.package("@modelcontextprotocol/inspector") / "clients/launcher/build/index.js"
    options = ["--method", "tools/call", "--tool-name", "greet", "--tool-args-json", '{"name": "Ada"}']
    finished = subprocess.run(
        [str(nodejs.node()), str(script), "--cli", sys.executable, str(server), *options, "--format", "json"],
        capture_output=True,
        env={**os.environ, "HOME": str(tmp_path), "PATH": f"{nodejs.node().parent}{os.pathsep}{os.environ['PATH']}"},
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert json.loads(finished.stdout.splitlines()[0])["result"]["content"][0]["text"] == "Hello, Ada!"


@pytest.fixture(params=["legacy", "modern"])
def inspector(request: pytest.FixtureRequest, orders_url: str, tmp_path: Path) -> Inspector:
    return Inspector(orders_url, request.param, tmp_path)


def test_the_inspector_lists_the_tools(inspector: Inspector) -> None:
    code, told = inspector.run("--method", "tools/list")
    assert code == 0
    names = [tool["name"] for tool in told["result"]["tools"]]
    assert {"search_menu", "get_order", "create_order", "cancel_order", "sales_report"} <= set(names)


def test_the_inspector_finds_no_fault_in_the_tool_schemas(inspector: Inspector) -> None:
    code, _ = inspector.run("--method", "tools/list", "--strict")
    assert code == 0


def test_the_inspector_calls_a_tool_and_gets_structured_content(inspector: Inspector) -> None:
    order = {"customerId": "ada", "items": [{"itemId": "margherita", "quantity": 2}]}
    code, told = inspector.call("create_order", order)
    assert code == 0
    placed = told["result"]["structuredContent"]
    assert placed["total"] == 19.8
    code, told = inspector.call("get_order", {"order_id": placed["orderId"]})
    assert (code, told["result"]["structuredContent"]) == (0, placed)


def test_the_inspector_shows_which_argument_is_wrong(inspector: Inspector) -> None:
    code, told = inspector.call(
        "create_order", {"customerId": "ada", "items": [{"itemId": "margherita", "quantity": 0}]}
    )
    assert code == FAILED
    assert "items[0].quantity" in told["result"]["content"][0]["text"]


def test_the_inspector_knows_no_tool_that_is_not_listed(inspector: Inspector) -> None:
    code, told = inspector.call("order_pizza", {})
    assert code == FAILED
    assert told["error"]["code"] == "tool_not_found"
