"""Mounted servers in compat: equal names, names of tools, and what FastMCP refuses."""

from __future__ import annotations

import pytest

from funcmcp.compat import FastMCP, PromptResult, ResourceResult
from funcmcp.testing import Client

pytestmark = pytest.mark.branches("Mounted features keep their conditions.")


def shop(text: str) -> FastMCP:
    mcp = FastMCP(text)
    mcp.tool(lambda: text, name="tool")
    mcp.prompt(lambda: text, name="prompt")
    mcp.resource("x://one", name="one")(lambda: text)
    mcp.resource("x://many/{a}", name="many")(lambda a: text)
    return mcp


async def texts_of(mcp: FastMCP, prefix: str = "") -> list[str | None]:
    name, folder = (f"{prefix}_", f"{prefix}/") if prefix else ("", "")
    async with Client(mcp) as client:
        assert len(await client.list_tools()) == len(await client.list_resources()) == 1
        return [
            (await client.call_tool(f"{name}tool")).text,
            (await client.get_prompt(f"{name}prompt")).messages[0].content.text,
            (await client.read_resource(f"x://{folder}one")).text,
            (await client.read_resource(f"x://{folder}many/1")).text,
        ]


@pytest.mark.parametrize("prefix", ["", "p"])
async def test_of_equal_names_the_first_server_counts(prefix: str) -> None:
    mcp, first, second = FastMCP("above"), shop("first"), shop("second")
    mcp.mount(first, prefix)
    mcp.mount(second, prefix)
    assert await texts_of(mcp, prefix) == ["first"] * 4
    second.remove_tool("tool")
    assert await texts_of(mcp, prefix) == ["first"] * 4


async def test_the_features_of_the_server_itself_count_before_mounted_ones() -> None:
    before, after = shop("own"), FastMCP("above")
    before.mount(shop("mounted"))
    assert await texts_of(before) == ["own"] * 4
    mounted = shop("mounted")
    after.mount(mounted)
    after.tool(lambda: "own", name="tool")
    assert (await texts_of(after))[0] == "own"
    mounted.remove_tool("tool")
    assert (await texts_of(after))[0] == "own"


@pytest.mark.parametrize(("prefix", "expected"), [(None, "other"), ("p", "p_other")])
async def test_tools_get_other_names_before_the_prefix(prefix: str | None, expected: str) -> None:
    mcp = FastMCP("above")
    mcp.mount(shop("a"), prefix, tool_names={"tool": "other"})
    async with Client(mcp) as client:
        assert [tool.name for tool in await client.list_tools()] == [expected]
        assert (await client.call_tool(expected)).text == "a"


def test_a_mount_that_means_nothing_is_refused() -> None:
    mcp = FastMCP("above")
    with pytest.raises(TypeError, match="Valid options: prefix, namespace, tool_names"):
        mcp.mount(shop("a"), prefixes="x")
    with pytest.raises(ValueError, match="Cannot mount a server onto itself"):
        mcp.mount(mcp)


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_the_meta_of_results_is_that_of_the_mounted_server(revision: str) -> None:
    mcp, mounted = FastMCP("above"), FastMCP("mounted")
    mounted.resource("x://one", name="one")(lambda: ResourceResult("1", meta={"a": 1}))
    mounted.prompt(lambda: PromptResult("1", meta={"b": 2}), name="prompt")
    mcp.mount(mounted, "p")
    async with Client(mcp, revision=revision) as client:
        read, prompt = await client.read_resource("x://p/one"), await client.get_prompt("p_prompt")
    assert (read["_meta"]["a"], prompt["_meta"]["b"]) == (1, 2)
    assert "mounted" not in str([read, prompt])


@pytest.mark.parametrize(("masked", "warns"), [((True, False), True), ((True, True), False), ((False, False), False)])
def test_a_mounted_server_that_shows_more_errors_is_reported(
    caplog: pytest.LogCaptureFixture, masked: tuple[bool, bool], *, warns: bool
) -> None:
    above, below = (FastMCP(name, mask_error_details=mask) for name, mask in zip(("a", "b"), masked, strict=True))
    above.mount(below)
    assert ("Pass mask_error_details to both" in caplog.text) is warns
