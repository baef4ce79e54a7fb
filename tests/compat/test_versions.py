"""Versions of components: clients get the newest one that they see, and calls can name another one."""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from funcmcp.compat import FastMCP, NotFoundError, Tool, VersionKey, VersionSpec, compare_versions, dedupe_with_versions
from funcmcp.testing import Client

if TYPE_CHECKING:
    from collections.abc import Callable


def resource_of(version: str | None) -> Callable[[], str]:
    return lambda: f"resource {version}"


def shop(**options: Any) -> FastMCP:
    mcp = FastMCP("shop", **options)
    for version in ("1", "10", "2.0"):
        mcp.tool(lambda version=version: f"tool {version}", name="read", version=version)
        mcp.resource("shop://read", name="read", version=version)(resource_of(version))
        mcp.prompt(lambda version=version: f"prompt {version}", name="read", version=version)
    return mcp


@pytest.mark.parametrize("order", [[None, "1", "1.9", "1.10", "v2", "2024-01-01", "latest"]])
def test_versions_are_ordered_as_in_fastmcp(order: list[str | None]) -> None:
    shuffled = [order[number] for number in (3, 0, 6, 2, 5, 1, 4)]
    assert sorted(shuffled, key=VersionKey) == order
    for number, version in enumerate(order):
        assert [compare_versions(version, other) for other in order] == (
            [1] * number + [0] + [-1] * (len(order) - number - 1)
        )
    assert VersionKey("1") == VersionKey("v1.0.0")


@pytest.mark.parametrize(
    ("spec", "matching"),
    [
        (VersionSpec(gte="2"), ["2.0", "10"]),
        (VersionSpec(lt="2"), ["1"]),
        (VersionSpec(eq="v10.0"), ["10"]),
        (VersionSpec(gte="2").intersect(VersionSpec(lt="10")), ["2.0"]),
        (VersionSpec(gte="2").intersect(VersionSpec(eq="10")), ["10"]),
        (VersionSpec(eq="1").intersect(VersionSpec(gte="2")), []),
    ],
)
def test_a_spec_matches_its_versions(spec: VersionSpec, matching: list[str]) -> None:
    assert [version for version in ("1", "2.0", "10") if spec.matches(version)] == matching
    assert spec.matches(None)
    assert not spec.matches(None, match_none=False)


async def test_clients_get_the_newest_version_and_call_any() -> None:
    above = FastMCP("above")
    above.mount(shop(), "p")
    for mcp, prefix in ((shop(), ""), (above, "p_")):
        async with Client(mcp) as client:
            (tool,) = await client.list_tools()
            assert tool.meta["fastmcp"] == {"tags": [], "version": "10", "versions": ["10", "2.0", "1"]}
            assert (await client.call_tool(f"{prefix}read")).text == "tool 10"
            old = await client.request(
                "tools/call", {"name": f"{prefix}read", "_meta": {"fastmcp": {"version": "1.0"}}}
            )
            assert old["content"][0]["text"] == "tool 1"
        assert [tool.version for tool in await mcp.list_tools()] == ["1", "10", "2.0"]


async def test_the_server_finds_and_runs_versions() -> None:
    mcp = shop(list_page_size=2)
    old = VersionSpec(lt="10")
    tool = await mcp.get_tool("read", old)
    resource = await mcp.get_resource("shop://read", old)
    prompt = await mcp.get_prompt("read", old)
    assert tool is not None
    assert resource is not None
    keys = [tool.key, resource.key, prompt.key]
    assert keys == ["tool:read@2.0", "resource:shop://read@2.0", "prompt:read@2.0"]
    assert "tool 2.0" in str((await tool.run({})).content[0])
    assert (await mcp.call_tool("read", version=old)).text == "tool 2.0"
    assert (await mcp.read_resource("shop://read", version=old)).contents[0].content == "resource 2.0"
    (message,) = (await mcp.render_prompt("read", version=old)).messages
    assert "prompt 2.0" in str(message)
    assert [len(await items) for items in (mcp.list_tools(), mcp.list_resources(), mcp.list_prompts())] == [3, 3, 3]
    assert list(await mcp.get_tools()) == ["read"]
    missing = VersionSpec(eq="7")
    assert await mcp.get_tool("read", missing) is None
    for call in (mcp.call_tool, mcp.render_prompt):
        with pytest.raises(NotFoundError, match="read"):
            await call("read", version=missing)
    with pytest.raises(NotFoundError, match="shop://read"):
        await mcp.read_resource("shop://read", version=missing)


async def test_a_version_that_is_hidden_gives_way_to_an_older_one() -> None:
    mcp = shop()
    mcp.disable(version=VersionSpec(gte="10"))
    async with Client(mcp) as client:
        assert (await client.call_tool("read")).text == "tool 2.0"
        mcp.disable(keys={"tool:read@2.0"})
        assert (await client.call_tool("read")).text == "tool 1"
        mcp.enable(version=VersionSpec(eq="10"), components={"tool"}, only=True)
        assert [tool.meta["fastmcp"]["versions"] for tool in await client.list_tools()] == [["10"]]
        assert await client.list_prompts() == []


@pytest.mark.parametrize("first", [None, "1"])
def test_a_name_has_versions_or_none(first: str | None) -> None:
    mcp = FastMCP("t")
    mcp.tool(lambda: "x", name="t", version=first)
    with pytest.raises(ValueError, match=r"versioned.*versioned"):
        mcp.tool(lambda: "x", name="t", version="2" if first is None else None)


@pytest.mark.parametrize(("version", "error"), [("1@2", ValueError), (True, TypeError), ([1], TypeError)])
def test_what_is_not_a_version_is_refused(version: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="Version"):
        Tool.from_function(lambda: "x", name="t", version=version)


def test_the_newest_of_several_has_all_versions_in_its_meta() -> None:
    tools = [Tool.from_function(lambda: "x", name="t", version=version) for version in (1, "1.0", 3)]
    (newest,) = dedupe_with_versions(tools, lambda tool: tool.name)
    assert newest.key == "tool:t@3"
    assert newest.get_meta() == {"fastmcp": {"versions": ["3", "1.0", "1"], "tags": [], "version": "3"}}
    assert tools[2].meta is None
