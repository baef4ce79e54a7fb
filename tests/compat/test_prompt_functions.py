"""Arguments of prompts as FastMCP reads and describes them, as clients see them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from funcmcp import MCPError
from funcmcp.compat import FastMCP, Prompt, PromptError
from funcmcp.testing import Client


@pytest.mark.parametrize(
    ("hint", "text", "expected"),
    [
        (list[int], "[1, 2]", "[1, 2]"),
        (int | None, "null", "None"),
        (str | None, "null", "'null'"),
        (bytes, '"hello"', "b'hello'"),
        (bytes, "hello", "b'hello'"),
        (Path, '"a/b"', repr(Path("a/b"))),
        (dict[str, int], '{"a": 1}', "{'a': 1}"),
    ],
)
async def test_a_text_becomes_the_value_that_it_is_in_fastmcp(hint: Any, text: str, expected: str) -> None:
    def show(value: Any) -> str:
        return repr(value)

    show.__annotations__["value"] = hint
    mcp = FastMCP("p")
    mcp.prompt(show)
    async with Client(mcp) as client:
        assert (await client.get_prompt("show", {"value": text})).messages[0].content.text == expected
    assert (await Prompt.from_function(show).render({"value": text})).messages[0].content.text == expected


async def test_a_text_that_does_not_fit_is_refused_without_words_of_pydantic() -> None:
    def show(numbers: list[int]) -> str:
        return str(numbers)

    mcp = FastMCP("p")
    mcp.prompt(show)
    async with Client(mcp) as client:
        with pytest.raises(MCPError, match="Could not convert argument 'numbers'") as caught:
            await client.get_prompt("show", {"numbers": "x"})
        assert "pydantic" not in str(caught.value)
        with pytest.raises(MCPError, match="Missing required arguments"):
            await client.get_prompt("show", {})
    with pytest.raises(PromptError, match=r"list\[int\]"):
        await Prompt.from_function(show).render({"numbers": "x"})


async def test_arguments_and_results_are_described_as_in_fastmcp() -> None:
    mcp = FastMCP("p")

    @mcp.prompt(meta={"team": "infra", "fastmcp": {"_internal": 1}})
    def ask(topic: str, numbers: list[int]) -> str:
        """Ask about a topic.

        Args:
            topic: What to ask about.
            numbers: Which ones.
        """
        return topic

    async with Client(mcp) as client:
        [prompt] = await client.list_prompts()
        assert prompt.description == "Ask about a topic."
        topic, numbers = prompt.arguments
        assert topic.description == "What to ask about."
        assert numbers.description == (
            "Which ones.\n\nProvide a value matching the following JSON schema: "
            '{"items":{"type":"integer"},"type":"array"}. Encode non-string values as JSON.'
        )
        result = await client.get_prompt("ask", {"topic": "tea", "numbers": "[]"})
        assert (result.description, result["_meta"]["team"]) == ("Ask about a topic.", "infra")
        assert "fastmcp" not in result["_meta"]
    rendered = await mcp.render_prompt("ask", {"topic": "tea", "numbers": [1]})
    assert rendered.messages[0].content.text == "tea"
