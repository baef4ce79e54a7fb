"""`create_proxy` and `FastMCP.as_proxy` with the targets that FastMCP takes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import AnyUrl

from funcmcp import MCPServer, compat
from funcmcp._compat.proxy import _target_of
from funcmcp.client import Client, HTTPEndpoint
from funcmcp.compat import FastMCP, FastMCPProxy, ProxyClient, ProxyProvider, StatefulProxyClient, create_proxy
from tests.serving import serve

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = '''
from funcmcp.compat import Context, FastMCP

mcp = FastMCP("Shop")


@mcp.tool
def token(context: Context) -> str:
    """Return the credentials of the request."""
    request = context.request_context.request
    return str(request and request.headers.get("authorization"))


if __name__ == "__main__":
    mcp.run()
'''


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SCRIPT)
    return tmp_path / "shop.py"


def adding() -> FastMCP:
    mcp = FastMCP("Adding")

    @mcp.tool
    def add(a: int, b: int) -> int:
        return a + b

    return mcp


async def tools(server: MCPServer) -> list[str]:
    async with Client(server) as client:
        return [tool.name for tool in await client.list_tools()]


async def test_a_proxy_of_a_server_passes_calls_on() -> None:
    proxy = create_proxy(adding(), name="Proxy", mode="auto")
    assert isinstance(proxy, FastMCP)
    assert proxy.name == "Proxy"
    async with Client(proxy) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
    assert FastMCP.as_proxy(adding()).name == "FastMCPProxy"
    assert await tools(FastMCP.as_proxy(adding())) == ["add"]


async def test_a_proxy_is_mounted_like_any_server() -> None:
    above = FastMCP("Above")
    above.mount(create_proxy(adding()), prefix="sums")
    async with Client(above) as client:
        assert [tool.name for tool in await client.list_tools()] == ["sums_add"]
        assert (await client.call_tool("sums_add", {"a": 1, "b": 2})).text == "3"


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_a_script_is_started_and_a_configuration_has_prefixes_for_several_servers(script: Path) -> None:
    assert await tools(create_proxy(script)) == ["token"]
    entry = {"command": sys.executable, "args": [str(script)]}
    assert await tools(create_proxy({"mcpServers": {"a": entry}})) == ["token"]
    assert sorted(await tools(create_proxy({"mcpServers": {"a": entry, "b": entry}}))) == ["a_token", "b_token"]


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_the_token_of_a_client_is_not_passed_on_as_fastmcp_does(script: Path) -> None:
    with serve(script, folder=script.parent) as behind:
        for target in (behind.url, AnyUrl(behind.url)):
            proxy = create_proxy(target)
            async with Client(proxy, headers={"authorization": "Bearer canary"}) as client:
                assert (await client.call_tool("token")).text == "None"
        own = create_proxy(HTTPEndpoint(behind.url, headers={"authorization": "Bearer own"}))
        async with Client(own, headers={"authorization": "Bearer canary"}) as client:
            assert (await client.call_tool("token")).text == "Bearer own"


BACKEND = """
import sys
from pathlib import Path

from funcmcp.compat import FastMCP

mcp = FastMCP("Backend", instructions="Ask for the shelf first.")


@mcp.tool(tags={"safe"})
def folder() -> str:
    return Path.cwd().name


@mcp.tool(tags={"unsafe"})
def remove(shelf: str) -> str:
    return shelf


@mcp.resource("note://plan", tags={"unsafe"})
def plan() -> str:
    return "plan"


if __name__ == "__main__":
    mcp.run()
"""


@pytest.fixture
def backend(tmp_path: Path) -> dict[str, Any]:
    """Return an entry of a configuration."""
    (tmp_path / "backend.py").write_text(BACKEND)
    return {"command": sys.executable, "args": [str(tmp_path / "backend.py")]}


@pytest.mark.parametrize("members", [{"tools": ["*"]}, {"tools": "all"}, {"include_tags": "safe"}, {"exclude_tags": 1}])
def test_members_of_the_configuration_of_another_client_are_ignored(members: dict[str, Any]) -> None:
    proxy = create_proxy({"mcpServers": {"shop": {"command": "shop", **members}}})
    assert isinstance(proxy, FastMCPProxy)


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"include_tags": ["safe"]}, (["folder"], [])),
        ({"include_tags": []}, ([], [])),
        ({"exclude_tags": ["unsafe"]}, (["folder"], [])),
        ({"exclude_tags": []}, (["folder", "remove"], ["note://plan"])),
        ({"tools": {"remove": {"name": "drop", "arguments": {"shelf": {"name": "place"}}}}}, None),
        ({"tools": {"remove": {"tags": {"good"}}}, "include_tags": ["good"]}, (["remove"], [])),
        ({"tools": {"remove": {"enabled": False}}}, (["folder"], ["note://plan"])),
    ],
)
async def test_an_entry_changes_and_hides_features_as_fastmcp_does(
    backend: dict[str, Any], changes: dict[str, Any], shown: Any
) -> None:
    async with Client(create_proxy({"mcpServers": {"one": {**backend, **changes}}})) as client:
        names = [tool.name for tool in await client.list_tools()]
        if shown is None:
            assert names == ["folder", "drop"]
            assert (await client.call_tool("drop", {"place": "top"})).text == "top"
        else:
            assert (names, [item.uri for item in await client.list_resources()]) == shown
    entries = {"one": {**backend, **changes}, "two": backend}
    prefixed = [f"one_{name}" for name in names]
    assert await tools(create_proxy(entries)) == [*prefixed, "two_folder", "two_remove"]


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_a_proxy_of_one_server_has_its_instructions_unless_it_has_its_own(backend: dict[str, Any]) -> None:
    one, two = {"mcpServers": {"one": backend}}, {"mcpServers": {"one": backend, "two": backend}}
    above = FastMCP("Above")
    above.mount(create_proxy(one), namespace="below")
    expected = {
        create_proxy(one): "Ask for the shelf first.",
        create_proxy(Transport(command=sys.executable, args=backend["args"])): "Ask for the shelf first.",
        create_proxy(one, instructions="Own."): "Own.",
        create_proxy(two): None,
        above: None,
    }
    for proxy, instructions in expected.items():
        for revision in ("2025-11-25", "2026-07-28"):
            async with Client(proxy, revision=revision) as client:
                assert client.instructions == instructions


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_a_script_may_be_a_string_and_a_transport_has_a_folder(backend: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "shelves").mkdir()
    transport = Transport(command=sys.executable, args=backend["args"], cwd=str(tmp_path / "shelves"))
    async with Client(create_proxy(transport)) as client:
        assert (await client.call_tool("folder")).text == "shelves"
    assert await tools(create_proxy(backend["args"][0])) == ["folder", "remove"]


def test_an_entry_that_is_left_out_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    create_proxy({"mcpServers": {"one": {"command": "uvx"}, "two": {"command": 5}}})
    assert "The server 'two' is left out" in caplog.text
    with pytest.raises(ValueError, match=r"The server 'one' is disabled\."):
        create_proxy({"mcpServers": {"one": {"command": "uvx", "disabled": True}}})


async def test_a_tool_whose_server_names_a_version_keeps_its_tags() -> None:
    behind = FastMCP("Behind")

    @behind.tool(version="2", tags={"unsafe"})
    def remove() -> str:
        return "removed"

    [tool] = await create_proxy(behind).list_tools()
    assert (tool.version, tool.tags) == ("2", {"unsafe"})


def test_other_targets_are_errors(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"notes\.txt is not a script of Python or Node\."):
        create_proxy(tmp_path / "notes.txt")
    with pytest.raises(ValueError, match=r"No server of the configuration can be used\."):
        create_proxy({"mcpServers": {"a": 5}})


@pytest.mark.parametrize("name", ["MCPConfig"])
def test_other_names_of_proxies_say_what_to_use(name: str) -> None:
    with pytest.raises(ImportError, match=r"create_proxy|Upstream"):
        getattr(compat, name)


def test_a_server_of_funcmcp_says_what_to_use_in_place_of_as_proxy() -> None:
    server: Any = MCPServer("Plain")
    with pytest.raises(AttributeError, match=r"mcp\.mount\(funcmcp\.upstreams\.Upstream\(target\)\)"):
        server.as_proxy("https://example.com/mcp")


@pytest.mark.parametrize("kind", [ProxyClient, StatefulProxyClient])
async def test_a_proxy_provider_serves_another_server(kind: type[ProxyClient]) -> None:
    mcp = FastMCP("Front")
    mcp.add_provider(ProxyProvider(lambda: kind(adding())), namespace="math")
    async with Client(mcp) as client:
        assert [tool.name for tool in await client.list_tools()] == ["math_add"]
        assert (await client.call_tool("math_add", {"a": 1, "b": 2})).content[0]["text"] == "3"


async def test_a_proxy_is_made_with_a_function() -> None:
    proxy = FastMCPProxy(client_factory=lambda: ProxyClient(adding()), name="Proxy")
    assert (proxy.name, await tools(proxy)) == ("Proxy", ["add"])


async def test_the_rules_of_a_proxy_provider_hide_features() -> None:
    provider = ProxyProvider(lambda: ProxyClient(adding()))
    provider.disable(names={"add"})
    assert await tools(FastMCP("Front", providers=[provider])) == []


class Transport:
    """What FastMCP's transports have."""

    def __init__(self, **members: Any) -> None:
        vars(self).update(members)


def test_clients_of_fastmcp_are_targets() -> None:
    url = Transport(transport=Transport(url="http://127.0.0.1:1/mcp", headers={"x-key": "1"}))
    endpoint = _target_of(url)
    assert (endpoint.url, dict(endpoint.headers)) == ("http://127.0.0.1:1/mcp", {"x-key": "1"})
    command = _target_of(Transport(command="uvx", args=["shop"], env={"KEY": "1"}))
    assert (command.command, command.env) == (("uvx", "shop"), {"KEY": "1"})


def test_clients_of_proxies_take_the_type_of_a_transport() -> None:
    generic: Any = ProxyClient
    assert generic[Transport] is ProxyClient


def test_the_sign_in_of_a_client_is_not_dropped() -> None:
    with pytest.raises(TypeError, match="auth"):
        _target_of(Transport(url="http://127.0.0.1:1/mcp", headers={}, auth=object()))


@pytest.mark.parametrize(("mode", "revision"), [("legacy", "2025-11-25"), ("auto", "2026-07-28")])
async def test_a_client_of_a_proxy_has_its_era_and_introduces_itself(mode: str, revision: str) -> None:
    backend = FastMCP("Backend")

    @backend.tool
    def who(context: compat.Context) -> str:
        native = context.session.client_params
        return f"{context.protocol_version} {native.client_info.name}"

    info = {"name": "proxy-backend", "version": "1.0"}
    client = ProxyClient(backend, mode=mode, client_info=info).new()
    proxy = FastMCPProxy(client_factory=lambda: client)
    async with Client(proxy) as session:
        assert (await session.call_tool("who")).content[0].text == f"{revision} proxy-backend"


REVIEW = compat.Skill(name="review", description="Review.", instructions="# Review\n", files={"notes.md": "one\n"})


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_the_skills_of_a_backend_are_passed_on_where_that_is_chosen() -> None:
    backend = FastMCP("Backend", providers=[compat.SkillCatalogProvider([REVIEW])])
    async with Client(create_proxy(backend)) as client:
        assert await client.list_resources()
        assert "extensions" not in client.capabilities
    refused: set[str] = set()
    proxy = FastMCP(
        "Proxy", middleware=[compat.AuthMiddleware(auth=lambda item: str(item.component.uri) not in refused)]
    )
    proxy.add_provider(ProxyProvider(lambda: ProxyClient(backend), skills=True))
    proxy.add_middleware(compat.ResponseCachingMiddleware())
    async with Client(proxy, headers={"x-client": "test"}) as client:
        (skill,) = await client.list_skills()
        assert skill.uri == "skill://review/SKILL.md"
        assert (await client.read_skill(skill)).is_verified
        refused.add("skill://review/notes.md")
        assert await client.list_skills() == []


async def test_a_skill_of_a_backend_whose_file_is_served_here_is_hidden() -> None:
    backend = FastMCP("Backend", providers=[compat.SkillCatalogProvider([REVIEW])])
    proxy = create_proxy(backend, skills=True)
    proxy.resource("skill://review/notes.md")(lambda: "other")
    async with Client(proxy) as client:
        assert await client.list_skills() == []
