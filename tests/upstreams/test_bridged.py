"""Servers that stand for another one: their description, and what happens at the start."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from funcmcp import MCPServer, ProtocolOptions, ServerInfo
from funcmcp._authoring.calling.lifespans import CannotStartError
from funcmcp._serving.composition import runtime_of
from funcmcp._upstreams.bridged import bridge_to, server_of, upstreams_of
from funcmcp._upstreams.servers_file import read_servers
from funcmcp.client import Client, StdioCommand

if TYPE_CHECKING:
    from pathlib import Path

SHOP = """
from funcmcp import MCPServer

mcp = MCPServer("Shop")


@mcp.tool
def price() -> int:
    return 3


mcp.run()
"""
REVISIONS = ["2024-11-05", "2025-11-25", "2026-07-28"]


def shop() -> MCPServer:
    mcp = MCPServer(
        "Shop",
        version="3.2.1",
        instructions="Ask first.",
        info=ServerInfo(title="The shop", website_url="https://shop.example"),
        protocol=ProtocolOptions(offer_tools=None),
    )

    @mcp.prompt
    def greet() -> str:
        return "hello"

    return mcp


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_bridge_has_the_description_of_the_server_behind_it(revision: str) -> None:
    async with (
        Client(shop(), revision=revision) as direct,
        Client(bridge_to(shop(), "x"), revision=revision) as bridged,
    ):
        assert bridged.server_info == direct.server_info
        assert bridged.instructions == direct.instructions == "Ask first."
        may_have = {"completions", "logging"}  # of features that the bridge does not know yet
        assert bridged.capabilities.keys() - may_have == direct.capabilities.keys() - may_have
        result = await bridged.get_prompt("greet")
        assert result.get("_meta") == (await direct.get_prompt("greet")).get("_meta")


async def test_a_bridge_has_no_instructions_and_no_tools_if_the_other_server_has_none() -> None:
    async with Client(bridge_to(MCPServer("Empty", protocol=ProtocolOptions(offer_tools=None)), "x")) as client:
        assert client.instructions is None
        assert not {"tools", "resources", "prompts"} & client.capabilities.keys()


async def test_a_bridge_does_not_start_without_the_other_server() -> None:
    bridge = bridge_to(StdioCommand("no-such-program"), "x")
    with pytest.raises(CannotStartError, match=r"^no-such-program cannot be started: No such file or directory\."):
        await runtime_of(bridge).start()


async def test_a_bridge_that_does_not_start_has_the_end_of_what_its_program_wrote() -> None:
    lines = "import sys; print('Loading.\\nUnknown option --port.\\n', file=sys.stderr); sys.exit(2)"
    bridge = bridge_to(StdioCommand(sys.executable, "-c", lines), "x")
    with pytest.raises(CannotStartError, match=r"exit code 2\. Its stderr .* ends with: Unknown option --port\.$"):
        await runtime_of(bridge).start()


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_one_server_of_a_file_is_passed_on_and_several_have_prefixes(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    entry = {"command": sys.executable, "args": [str(tmp_path / "shop.py")]}
    one = read_servers({"mcpServers": {"a": entry}}, {})
    async with Client(server_of(one, "one")) as client:
        assert client.server_info["name"] == "Shop"
        assert [tool.name for tool in await client.list_tools()] == ["price"]
    several = read_servers({"mcpServers": {"a": entry, "b": {"command": "no-such-program"}}}, {})
    async with Client(server_of(several, "several")) as client:
        assert client.server_info["name"] == "several"
        assert (await client.call_tool("a_price")).text == "3"


@pytest.mark.parametrize("keys", [("mcp_1", "mcp"), ("mcp", "mcp_1")])
def test_the_order_of_a_file_does_not_decide_about_names(keys: tuple[str, str]) -> None:
    assert list(upstreams_of(read_servers({"mcpServers": {key: {"command": "uvx"} for key in keys}}, {}))) == [
        "mcp",
        "mcp_1",
    ]


def test_the_servers_of_a_file_are_optional_and_have_the_names_of_its_entries() -> None:
    servers = read_servers({"mcpServers": {"A b": {"command": "uvx"}, "c": {"url": "http://127.0.0.1:9/mcp"}}}, {})
    upstreams = upstreams_of(servers)
    assert list(upstreams) == ["A_b", "c"]
    assert [(upstream.name, upstream.status.optional) for upstream in upstreams.values()] == [
        ("A b", True),
        ("c", True),
    ]
