"""`MCPServer(extensions=)` and `MCPServer.method`."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp import MCPServer, RegistrationError
from funcmcp.extensions import Extension
from funcmcp.testing import Client

SEARCH = "com.example/search"
QUERY = "com.example/search/query"


def nothing() -> dict[str, Any]:
    return {}


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_an_extension_is_declared_with_its_settings(revision: str) -> None:
    mcp = MCPServer("Shop", extensions=[Extension(SEARCH, {"languages": ["en"]}), Extension("com.example/plain")])
    async with Client(mcp, revision=revision) as client:
        assert client.capabilities["extensions"] == {SEARCH: {"languages": ["en"]}, "com.example/plain": {}}


async def test_the_methods_of_an_extension_serve_several_servers() -> None:
    extension = Extension(SEARCH)
    extension.method(QUERY)(nothing)
    for _ in range(2):
        async with Client(MCPServer("s", extensions=[extension]), extensions=[SEARCH]) as client:
            assert await client.request(QUERY)


def test_a_value_that_is_not_an_extension_is_an_error() -> None:
    with pytest.raises(TypeError, match=r"Extension\(...\)"):
        MCPServer("s", extensions=["com.example/search"])  # type: ignore[list-item]


def test_names_are_there_once() -> None:
    with pytest.raises(RegistrationError, match="twice"):
        MCPServer("s", extensions=[Extension(SEARCH), Extension(SEARCH)])
    mcp = MCPServer("s")
    mcp.method(QUERY)(nothing)
    with pytest.raises(RegistrationError, match="Duplicate"):
        mcp.method(QUERY)(nothing)


def test_a_method_names_an_extension_of_the_server() -> None:
    with pytest.raises(RegistrationError, match="not one of the server"):
        MCPServer("s").method(QUERY, extension=SEARCH)(nothing)
    events = Extension("io.modelcontextprotocol/events")
    events.method("events/poll")(nothing)
    MCPServer("s", extensions=[events]).method("events/list", extension=events.identifier)(nothing)


def test_extensions_are_chosen_in_the_constructor() -> None:
    with pytest.raises(AttributeError, match="after the construction"):
        MCPServer("s").extensions = []
