"""The low-level server, with which programs choose what the constructor does not take."""

from __future__ import annotations

import pytest

from funcmcp.compat import FastMCP, MCPServer
from funcmcp.testing import Client


@pytest.mark.parametrize(("server_class", "attribute"), [(FastMCP, "_mcp_server"), (MCPServer, "_lowlevel_server")])
async def test_clients_get_the_version_the_name_and_the_instructions_that_are_set_later(
    server_class: type[FastMCP], attribute: str
) -> None:
    mcp = server_class("Orders", instructions="Before")
    low_level = getattr(mcp, attribute)
    low_level.name, low_level.version, low_level.instructions = "Shop", "2.5", f"{low_level.instructions}, and after"
    async with Client(mcp, revision="2025-11-25") as client:
        assert client.server_info == {"name": "Shop", "version": "2.5"}
        assert client.instructions == "Before, and after"
    again = getattr(mcp, attribute)
    assert (again.name, again.version, mcp.instructions) == ("Shop", "2.5", "Before, and after")


def test_what_it_lacks_is_an_error() -> None:
    with pytest.raises(AttributeError, match=r"has no 'request_handlers'\. .* pass the server itself to the client"):
        _ = FastMCP("Orders")._mcp_server.request_handlers
    with pytest.raises(AttributeError, match="has no 'run'"):
        _ = MCPServer("Orders")._lowlevel_server.run
