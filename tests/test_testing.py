"""The helpers for tests of servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pydantic import BaseModel

import funcmcp.testing
from funcmcp import Context, MCPServer
from funcmcp.testing import REVISIONS, Client, accept, cancel, decline

if TYPE_CHECKING:
    from funcmcp._client.answers import Callback

ASKING = pytest.mark.parametrize("revision", [revision for revision in REVISIONS if revision >= "2025-06-18"])


class Guest(BaseModel):
    name: str


@pytest.fixture
def mcp() -> MCPServer:
    mcp = MCPServer("Greeter")

    @mcp.tool
    async def greet(context: Context, guests: int = 1) -> str:
        names = []
        for _ in range(guests):
            answer = await context.elicit("Who?", Guest)
            names.append(answer.content.name if answer.content else answer.action)
        return " and ".join(names)

    return mcp


@ASKING
async def test_questions_are_accepted_in_their_order(mcp: MCPServer, revision: str) -> None:
    elicit = accept({"name": "Ada"}, {"name": "Grace"})
    async with Client(mcp, revision=revision, elicit=elicit) as client:
        assert (await client.call_tool("greet", {"guests": 2})).text == "Ada and Grace"


@ASKING
async def test_a_question_without_an_answer_fails_the_test(mcp: MCPServer, revision: str) -> None:
    async with Client(mcp, revision=revision, elicit=accept({"name": "Ada"})) as client:
        with pytest.raises(AssertionError, match="one question more than the test answers: 'Who\\?'"):
            await client.call_tool("greet", {"guests": 2})


@ASKING
@pytest.mark.parametrize(("elicit", "text"), [(decline, "decline"), (cancel, "cancel")])
async def test_questions_are_declined_and_cancelled(mcp: MCPServer, revision: str, elicit: Callback, text: str) -> None:
    async with Client(mcp, revision=revision, elicit=elicit) as client:
        assert (await client.call_tool("greet")).text == text


async def test_a_question_with_a_url_is_accepted_without_content() -> None:
    assert await accept({})({"mode": "url", "url": "https://a.example", "message": "Sign in"}) == {"action": "accept"}


def test_the_revisions_are_all_of_them_oldest_first() -> None:
    assert REVISIONS == ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")


def test_each_public_name_is_there() -> None:
    for name in funcmcp.testing.__all__:
        assert getattr(funcmcp.testing, name) is not None
