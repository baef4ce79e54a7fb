"""Questions of several resolvers of one call: they are asked together, and once."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from mcp import types
from pydantic import BaseModel

from funcmcp import MCPError
from funcmcp.compat import Elicit, ListRoots, MCPServer, Resolve, Sample
from funcmcp.testing import Client


class Size(BaseModel):
    size: str


class Colour(BaseModel):
    colour: str


class Gift(BaseModel):
    gift: bool


runs: list[str] = []


async def ask_size() -> Elicit[Size]:
    runs.append("size")
    return Elicit("Size?", Size)


def ask_colour() -> Elicit[Colour]:
    return Elicit("Colour?", Colour)


async def ask_gift(size: Annotated[Size, Resolve(ask_size)]) -> Gift | Elicit[Gift]:
    return Elicit(f"Is {size.size} a gift?", Gift)


def shop() -> MCPServer:
    mcp = MCPServer("Shop")

    @mcp.tool()
    def order(
        size: Annotated[Size, Resolve(ask_size)],
        colour: Annotated[Colour, Resolve(ask_colour)],
        gift: Annotated[Gift, Resolve(ask_gift)],
    ) -> str:
        return f"{size.size} {colour.colour} {gift.gift}"

    return mcp


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_questions_without_dependencies_are_asked_at_once(revision: str) -> None:
    asked: list[str] = []

    async def answer(params: dict[str, Any]) -> dict[str, Any]:
        asked.append(params["message"])
        return {"action": "accept", "content": {"size": "big", "colour": "red", "gift": True}}

    async with Client(shop(), revision=revision, elicit=answer) as client:
        assert (await client.call_tool("order")).text == "big red True"
    assert sorted(asked[:2]) == ["Colour?", "Size?"]
    assert asked[2:] == ["Is big a gift?"]


async def test_a_round_has_the_questions_by_the_names_of_their_resolvers() -> None:
    async def never(_: dict[str, Any]) -> dict[str, Any]:
        raise AssertionError

    async with Client(shop(), revision="2026-07-28", elicit=never) as client:
        first = await client.request("tools/call", {"name": "order", "arguments": {}})
        assert set(first["inputRequests"]) == {f"{__name__}:ask_size", f"{__name__}:ask_colour"}


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_client_that_does_not_answer_such_questions_gets_the_error_of_the_protocol(revision: str) -> None:
    async with Client(shop(), revision=revision) as client:
        with pytest.raises(MCPError, match="did not declare the form elicitation capability") as error:
            await client.call_tool("order")
        assert (error.value.code, error.value.data) == (
            -32021,
            {"requiredCapabilities": {"elicitation": {"form": {}}}},
        )


def test_closures_of_one_function_have_different_keys() -> None:
    def asking(message: str) -> Any:
        def ask() -> Elicit[Size]:
            return Elicit(message, Size)

        return ask

    from funcmcp._compat.resolver_runs import keys_of

    first, second = asking("a"), asking("b")
    keys = keys_of([first, second, first])
    assert keys[second] == f"{keys[first]}#1"


async def test_the_client_is_asked_for_a_message_with_tools_and_for_its_roots() -> None:
    tool = types.Tool(name="add", input_schema={"type": "object"})
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="2 + 2?"))

    def ask_model() -> Sample:
        return Sample([message], max_tokens=10, tools=[tool], system_prompt="Be short.")

    def ask_roots() -> ListRoots:
        return ListRoots()

    mcp = MCPServer("Shop")

    @mcp.tool()
    def solve(
        answer: Annotated[types.CreateMessageResultWithTools, Resolve(ask_model)],
        roots: Annotated[types.ListRootsResult, Resolve(ask_roots)],
    ) -> str:
        assert isinstance(answer, types.CreateMessageResultWithTools)
        assert isinstance(answer.content, types.TextContent)
        return f"{answer.content.text} in {roots.roots[0].uri}"

    async def sample(params: dict[str, Any]) -> dict[str, Any]:
        assert (params["tools"][0]["name"], params["systemPrompt"]) == ("add", "Be short.")
        return {"role": "assistant", "model": "m", "content": {"type": "text", "text": "4"}}

    roots = [{"uri": "file:///a"}]
    async with Client(mcp, sample=sample, roots=roots) as client:
        assert (await client.call_tool("solve")).text == "4 in file:///a"
