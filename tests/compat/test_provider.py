"""FastMCP's providers: `add_provider`, ``providers=``, a user's own classes, and `LocalProvider`."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp.compat import (
    AggregateProvider,
    FastMCP,
    FastMCPProvider,
    LocalProvider,
    Prompt,
    Provider,
    Resource,
    ResourceTemplate,
    Tool,
    get_http_headers,
)
from funcmcp.providers import Provider as NativeProvider
from funcmcp.testing import Client
from funcmcp.transforms import Rename

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def hello() -> str:
    return "hello"


class Greetings(Provider):
    """One component of each kind."""

    async def _list_tools(self) -> list[Tool]:
        return [Tool(hello, "greet", tags={"polite"})]

    async def _list_resources(self) -> list[Resource]:
        return [Resource(hello, "text://greeting", "greeting")]

    async def _list_resource_templates(self) -> list[ResourceTemplate]:
        return [ResourceTemplate(lambda name: f"hello {name}", "text://for/{name}", "for")]

    async def _list_prompts(self) -> list[Prompt]:
        return [Prompt(hello, "greeting")]


async def text_of_call(server: FastMCP, name: str, **headers: str) -> str:
    async with Client(server, headers=headers) as client:
        text: str = (await client.call_tool(name, {})).content[0]["text"]
        return text


async def tools(server: FastMCP, **headers: str) -> list[str]:
    async with Client(server, headers=headers) as client:
        return [tool.name for tool in await client.list_tools()]


@pytest.mark.parametrize(("prefix", "authority"), [(None, ""), ("shop", "shop/")])
async def test_components_of_a_provider_are_served(prefix: str | None, authority: str) -> None:
    mcp = FastMCP("Server", providers=[Greetings()])
    if prefix is not None:
        above = FastMCP("Above")
        above.mount(mcp, prefix)
        mcp = above
    name = f"{prefix}_" if prefix else ""
    async with Client(mcp) as client:
        assert [tool.name for tool in await client.list_tools()] == [f"{name}greet"]
        assert (await client.call_tool(f"{name}greet", {})).content[0]["text"] == "hello"
        assert [item.uri for item in await client.list_resources()] == [f"text://{authority}greeting"]
        assert (await client.read_resource(f"text://{authority}greeting")).contents[0].text == "hello"
        assert [item.uri_template for item in await client.list_resource_templates()] == [
            f"text://{authority}for/{{name}}"
        ]
        assert (await client.read_resource(f"text://{authority}for/Ada")).contents[0].text == "hello Ada"
        assert [prompt.name for prompt in await client.list_prompts()] == [f"{name}greeting"]
        assert (await client.get_prompt(f"{name}greeting")).messages[0].content["text"] == "hello"


class ByTenant(Provider):
    """A tool for the tenant of the request, which only `_get_tool` looks up."""

    async def _get_tool(self, name: str, version: Any = None) -> Tool | None:
        del version
        tenant = get_http_headers().get("x-tenant")
        return Tool(lambda: f"secret of {tenant}", name) if name == f"of_{tenant}" else None

    async def _list_tools(self) -> list[Tool]:
        return [Tool(hello, f"of_{get_http_headers().get('x-tenant')}")]


@pytest.mark.parametrize("is_mounted", [False, True])
async def test_each_request_gets_its_own_components(is_mounted: bool) -> None:
    mcp = FastMCP("Server", providers=[ByTenant()])
    if is_mounted:
        above = FastMCP("Above")
        above.mount(mcp)
        mcp = above
    assert await tools(mcp, **{"x-tenant": "a"}) == ["of_a"]
    assert await tools(mcp, **{"x-tenant": "b"}) == ["of_b"]
    assert await text_of_call(mcp, "of_a", **{"x-tenant": "a"}) == "secret of a"
    assert await text_of_call(mcp, "of_a", **{"x-tenant": "b"}) == "Unknown tool: 'of_a'"


class Failing(Provider):
    """A provider whose lists fail."""

    async def _list_tools(self) -> list[Tool]:
        raise RuntimeError("no database")


async def test_a_provider_that_fails_has_no_components(caplog: pytest.LogCaptureFixture) -> None:
    assert await tools(FastMCP("Server", providers=[Failing(), Greetings()])) == ["greet"]
    assert "Failing.list_tools has failed: RuntimeError: no database" in caplog.text


async def test_the_server_itself_and_earlier_providers_come_first() -> None:
    first, second = LocalProvider(), LocalProvider()
    first.add_tool(Tool(lambda: "first", "greet"))
    second.add_tool(Tool(lambda: "second", "greet"))
    assert await text_of_call(FastMCP("Server", providers=[first, second]), "greet") == "first"
    mcp = FastMCP("Server", providers=[first])

    @mcp.tool
    def greet() -> str:
        return "own"

    assert await text_of_call(mcp, "greet") == "own"
    assert await tools(mcp) == ["greet"]


async def test_a_namespace_and_transforms_change_names() -> None:
    mcp = FastMCP("Server")
    mcp.add_provider(Greetings(), namespace="shop", transforms=[Rename({"greet": "welcome"})])
    assert await tools(mcp) == ["shop_welcome"]
    assert await text_of_call(mcp, "shop_welcome") == "hello"


async def test_rules_of_a_provider_hide_its_components() -> None:
    hidden, shown = Greetings(), Greetings()
    hidden.disable(tags={"polite"})
    shown.disable(names={"greet"}).enable(names={"greet"})
    assert await tools(FastMCP("Server", providers=[hidden])) == []
    assert await text_of_call(FastMCP("Server", providers=[hidden]), "greet") == "Unknown tool: 'greet'"
    assert await tools(FastMCP("Server", providers=[shown])) == ["greet"]


async def test_the_server_may_show_what_a_provider_hides() -> None:
    provider = LocalProvider()
    provider.add_tool(Tool(hello, "greet", enabled=False))
    mcp = FastMCP("Server", providers=[provider])
    above = FastMCP("Above")
    above.mount(mcp, "sub")
    assert (await tools(mcp), await tools(above)) == ([], [])
    mcp.enable(names={"greet"})
    assert (await tools(mcp), await tools(above)) == (["greet"], ["sub_greet"])
    assert await text_of_call(mcp, "greet") == "hello"


async def test_a_provider_starts_and_stops_with_the_server() -> None:
    events: list[str] = []

    class WithDatabase(Greetings):
        @asynccontextmanager
        async def lifespan(self) -> AsyncIterator[None]:
            events.append("start")
            yield
            events.append("stop")

    mcp = FastMCP("Server", providers=[WithDatabase()])
    assert await text_of_call(mcp, "greet") == "hello"
    assert events == ["start", "stop"]


def test_only_providers_are_added() -> None:
    mcp = FastMCP("Server")
    with pytest.raises(TypeError, match=r"takes an object, not a class. Write Greetings\(...\)"):
        mcp.add_provider(Greetings)
    with pytest.raises(TypeError, match="not int"):
        mcp.add_provider(1)


async def test_providers_of_funcmcp_and_other_servers_are_added() -> None:
    other = FastMCP("Other")
    other.add_tool(Tool(hello, "theirs"))

    class Native(NativeProvider):
        async def list(self, caller: Any) -> list[Any]:
            del caller
            return []

    mcp = FastMCP("Server", providers=[Native(), other])
    mcp.add_provider(FastMCPProvider(other), namespace="sub")
    assert await tools(mcp) == ["theirs", "sub_theirs"]


async def test_details_of_errors_are_masked_as_the_server_says() -> None:
    provider = LocalProvider()

    @provider.tool
    def fail() -> str:
        raise ValueError("secret")

    assert "secret" in await text_of_call(FastMCP("Server", providers=[provider]), "fail")
    masking = FastMCP("Server", providers=[provider], mask_error_details=True)
    assert "secret" not in await text_of_call(masking, "fail")


async def test_a_local_provider_registers_as_a_server_does() -> None:
    provider = LocalProvider()

    @provider.tool("add", description="Add.")
    def add(a: int, b: int) -> int:
        return a + b

    @provider.resource("text://{name}")
    def text(name: str) -> str:
        return name

    @provider.prompt
    def ask() -> str:
        return "?"

    assert [tool.name for tool in await provider.list_tools()] == ["add"]
    assert await provider.get_tool("add") is not None
    assert await provider.get_tool("other") is None
    assert (await provider.get_resource_template("text://a")).uri_template == "text://{name}"
    assert [prompt.name for prompt in await provider.list_prompts()] == ["ask"]
    mcp = FastMCP("Server", providers=[provider])
    assert await tools(mcp) == ["add"]
    provider.remove_tool("add")
    assert await tools(mcp) == []
    with pytest.raises(KeyError, match="add"):
        provider.remove_tool("add")


@pytest.mark.parametrize(("policy", "text"), [("warn", "second"), ("replace", "second"), ("ignore", "first")])
async def test_a_local_provider_treats_equal_names_as_it_is_told(policy: str, text: str) -> None:
    provider = LocalProvider(on_duplicate=policy)
    provider.add_tool(Tool(lambda: "first", "greet"))
    provider.add_tool(Tool(lambda: "second", "greet"))
    assert await text_of_call(FastMCP("Server", providers=[provider]), "greet") == text


def test_a_local_provider_refuses_equal_names_and_mixed_versions() -> None:
    provider = LocalProvider()
    provider.add_tool(Tool(hello, "greet"))
    with pytest.raises(ValueError, match="Component already exists: tool:greet@"):
        provider.add_tool(Tool(hello, "greet"))
    with pytest.raises(ValueError, match="Cannot add versioned tool 'greet'"):
        provider.add_tool(Tool(hello, "greet", version="2"))


@pytest.mark.parametrize("prefix", [None, "sub"])
async def test_a_request_may_choose_a_version(prefix: str | None) -> None:
    provider = LocalProvider()
    for version in ("1.0", "2.0"):
        provider.add_tool(Tool(lambda version=version: version, "greet", version=version))
    mcp = FastMCP("Server", providers=[provider])
    name = "greet"
    if prefix is not None:
        above = FastMCP("Above")
        above.mount(mcp, prefix)
        mcp, name = above, "sub_greet"
    async with Client(mcp) as client:
        (listed,) = await client.list_tools()
        assert listed["_meta"]["fastmcp"] == {"tags": [], "version": "2.0", "versions": ["2.0", "1.0"]}
        assert (await client.call_tool(name, {})).content[0]["text"] == "2.0"
        older = await client.call_tool(name, {}, meta={"fastmcp": {"version": "1.0"}})
        assert older.content[0]["text"] == "1.0"


async def test_a_server_has_its_own_components_as_a_provider() -> None:
    mcp = FastMCP("Server")
    mcp.local_provider.add_tool(Tool(hello, "greet"))
    assert [tool.name for tool in await mcp.local_provider.list_tools()] == ["greet"]
    mcp.local_provider.remove_tool("greet")
    assert await tools(mcp) == []
    with pytest.raises(KeyError, match="greet"):
        mcp.local_provider.remove_tool("greet")


async def test_providers_are_joined() -> None:
    joined = AggregateProvider([Failing()])
    joined.add_provider(Greetings())
    assert [tool.name for tool in await joined.list_tools()] == ["greet"]
    assert (await joined.get_tool("greet")).name == "greet"
    assert await tools(FastMCP("Server", providers=[joined])) == ["greet"]
    with pytest.raises(RuntimeError, match="no database"):
        await AggregateProvider([Failing()], provider_error_strategy="raise").list_tools()
