"""Functions that return an ``InputRequiredResult``, and read the answers in the next round."""

from __future__ import annotations

from typing import Any

import pytest
from mcp import types

from funcmcp import MCPError
from funcmcp.compat import Context, FastMCP, MCPServer, PromptsAsTools, RegexSearchTransform, ResourcesAsTools
from funcmcp.testing import Client

pytestmark = pytest.mark.branches("Rounds of questions take every way to their end.")

QUESTION = types.ElicitRequest(
    params=types.ElicitRequestFormParams(
        message="Size?", requested_schema={"type": "object", "properties": {"size": {"type": "string"}}}
    )
)


def asking(kind: type[FastMCP]) -> FastMCP:
    mcp = kind("Shop")

    async def answer(name: str, ctx: Context) -> str | types.InputRequiredResult:
        if ctx.input_responses is None:
            assert ctx.request_state is None
            return types.InputRequiredResult(input_requests={"size": QUESTION}, request_state=f"for {name}")
        reply = ctx.input_responses["size"]
        assert isinstance(reply, types.ElicitResult)
        return f"{name}: {reply.content} {ctx.request_state}"

    mcp.tool()(answer)
    mcp.prompt()(answer)
    mcp.resource("shop://{name}")(answer)
    return mcp


async def reply(_: dict[str, Any]) -> dict[str, Any]:
    return {"action": "accept", "content": {"size": "big"}}


@pytest.mark.parametrize("kind", [MCPServer, FastMCP])
async def test_a_function_asks_and_reads_the_answers_and_its_state(kind: type[FastMCP]) -> None:
    expected = "tea: {'size': 'big'} for tea"
    async with Client(asking(kind), revision="2026-07-28", elicit=reply) as client:
        assert (await client.call_tool("answer", {"name": "tea"})).text == expected
        prompt = await client.get_prompt("answer", {"name": "tea"})
        assert prompt.messages[0].content.text == expected
        assert (await client.read_resource("shop://tea")).text == expected


async def test_the_state_is_sealed_for_its_request() -> None:
    async with Client(asking(MCPServer), revision="2026-07-28") as client:
        params = {"name": "answer", "arguments": {"name": "tea"}}
        first = await client.request("tools/call", params)
        assert first["resultType"] == "input_required"
        assert first["inputRequests"]["size"]["params"]["message"] == "Size?"
        assert "for tea" not in first["requestState"]
        answers = {"inputResponses": {"size": await reply({})}, "requestState": first["requestState"]}
        other = {"name": "answer", "arguments": {"name": "milk"}}
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await client.request("tools/call", {**other, **answers})
        result = await client.request("tools/call", {**params, **answers})
        assert result["content"][0]["text"] == "tea: {'size': 'big'} for tea"


@pytest.mark.parametrize(
    ("kind", "problem", "code"),
    [(MCPServer, "Handler returned an invalid result", -32603), (FastMCP, "only exists at MCP 2026-07-28", -32602)],
)
async def test_a_client_of_the_handshake_era_gets_an_error(kind: type[FastMCP], problem: str, code: int) -> None:
    async with Client(asking(kind), revision="2025-11-25", elicit=reply) as client:
        with pytest.raises(MCPError, match=problem) as error:
            await client.call_tool("answer", {"name": "tea"})
        assert error.value.code == code


async def test_a_direct_call_returns_the_questions() -> None:
    mcp = asking(MCPServer)
    for result in (
        await mcp.call_tool("answer", {"name": "tea"}),
        await mcp.get_prompt("answer", {"name": "tea"}),
        await mcp.read_resource("shop://tea"),
    ):
        assert isinstance(result, types.InputRequiredResult)
        assert result.request_state == "for tea"
    with pytest.raises(RuntimeError, match="Resource returned InputRequiredResult"):
        await Context(mcp_server=mcp).read_resource("shop://tea")


CALLS_OF_OTHERS: list[tuple[str, dict[str, Any]]] = [
    ("read_resource", {"uri": "shop://tea"}),
    ("get_prompt", {"name": "answer", "arguments": {"name": "tea"}}),
    ("call_tool", {"name": "answer", "arguments": {"name": "tea"}}),
]
"""Tools that call other components."""


def asking_through_others() -> FastMCP:
    mcp = asking(FastMCP)
    mcp.add_transform(ResourcesAsTools(mcp))
    mcp.add_transform(PromptsAsTools(mcp))
    mcp.add_transform(RegexSearchTransform())
    return mcp


@pytest.mark.parametrize(("tool", "arguments"), CALLS_OF_OTHERS)
async def test_a_component_that_a_tool_calls_reads_the_answers(tool: str, arguments: dict[str, Any]) -> None:
    async with Client(asking_through_others(), revision="2026-07-28", elicit=reply) as client:
        text = (await client.call_tool(tool, arguments)).content[0]["text"]
    assert "tea: {'size': 'big'} for tea" in text


@pytest.mark.parametrize(("tool", "arguments"), CALLS_OF_OTHERS)
async def test_a_component_that_a_tool_calls_has_its_error_of_the_era(tool: str, arguments: dict[str, Any]) -> None:
    async with Client(asking_through_others(), revision="2025-11-25", elicit=reply) as client:
        with pytest.raises(MCPError, match="only exists at MCP 2026-07-28"):
            await client.call_tool(tool, arguments)


async def test_a_mounted_function_reads_the_answers() -> None:
    mcp = FastMCP("Mall")
    mcp.mount(asking(FastMCP), "shop")
    async with Client(mcp, revision="2026-07-28", elicit=reply) as client:
        assert (await client.call_tool("shop_answer", {"name": "tea"})).text == "tea: {'size': 'big'} for tea"
