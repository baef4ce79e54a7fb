"""The attribute ``_mcp_server``, with which programs for the SDK 1.x choose what its constructor does not take."""

from __future__ import annotations

import pytest

from funcmcp.compat import FastMCP
from funcmcp.testing import Client


async def test_clients_get_the_version_the_name_and_the_instructions_that_are_set_later() -> None:
    mcp = FastMCP("Orders", instructions="Before")
    low_level = mcp._mcp_server
    low_level.name, low_level.version, low_level.instructions = "Shop", "2.5", f"{low_level.instructions}, and after"
    async with Client(mcp, revision="2025-11-25") as client:
        assert client.server_info == {"name": "Shop", "version": "2.5"}
        assert client.instructions == "Before, and after"
    assert (mcp._mcp_server.name, mcp._mcp_server.version, mcp.instructions) == ("Shop", "2.5", "Before, and after")


def test_what_it_lacks_is_an_error() -> None:
    with pytest.raises(AttributeError, match="_mcp_server has no 'request_handlers'"):
        _ = FastMCP("Orders")._mcp_server.request_handlers
