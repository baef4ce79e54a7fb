"""The helpers for tests of servers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pytest
from pydantic import BaseModel

import funcmcp.testing
from funcmcp import Context, MCPServer
from funcmcp.testing import REVISIONS, Client, accept, cancel, decline

if TYPE_CHECKING:
    from funcmcp._client.answers import Callback

pytestmark = [
    pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio."),
    pytest.mark.branches("Calls without an event loop of asyncio are refused."),
]

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


@dataclass
class Address:
    street: str


@ASKING
@pytest.mark.parametrize(
    ("form", "content", "answer"),
    [
        (str, "Bob", "Bob"),
        (int, 5, 5),
        (float, 1.5, 1.5),
        (bool, True, True),
        (Literal["a", "b"], "b", "b"),
        (["small", "large"], "large", "large"),
        ([["red", "blue"]], ["red"], ["red"]),
        (str, {"value": "Bob"}, "Bob"),
        (Guest, Guest(name="Ada"), Guest(name="Ada")),
        (Guest, {"name": "Ada"}, Guest(name="Ada")),
        (Guest, "Ada", Guest(name="Ada")),
        (Address, Address("Main"), Address("Main")),
    ],
)
async def test_a_value_answers_a_form_of_a_single_field(form: Any, content: Any, answer: Any, revision: str) -> None:
    mcp, answers = MCPServer("Greeter"), []

    @mcp.tool
    async def ask(context: Context) -> None:
        answers.append((await context.elicit("Who?", form)).content)

    async with Client(mcp, revision=revision, elicit=accept(content)) as client:
        assert not (await client.call_tool("ask")).is_error
    assert answers == [answer]


async def test_a_value_does_not_answer_a_form_of_several_fields() -> None:
    params = {"message": "Who?", "requestedSchema": {"properties": {"name": {}, "age": {}}}}
    with pytest.raises(AssertionError, match=r"'Who\?' is a form with the fields name, age; got 'Bob'\."):
        await accept("Bob")(params)


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_client_in_memory_answers_for_a_model_with_tools(revision: str) -> None:
    mcp, requests = MCPServer("Weather"), []
    use = {"type": "tool_use", "id": "1", "name": "add", "input": {"a": 1}}

    @mcp.tool
    async def ask(context: Context) -> str | None:
        tools = [{"name": "add", "inputSchema": {"type": "object"}}]
        answer = await context.sample("Add.", max_tokens=5, tools=tools, tool_choice="auto")
        return answer.stop_reason if answer.content == [use] else None

    async def model(params: dict[str, Any]) -> dict[str, Any]:
        requests.append(params)
        return {"role": "assistant", "model": "m", "stopReason": "toolUse", "content": [use]}

    async with Client(mcp, revision=revision, sample=model) as client:
        assert (await client.call_tool("ask")).text == "toolUse"
    assert (requests[0]["tools"][0]["name"], requests[0]["toolChoice"]) == ("add", {"mode": "auto"})


def test_an_event_loop_of_another_library_is_refused_with_the_remedy() -> None:
    entering = Client(MCPServer("Greeter")).__aenter__()
    with pytest.raises(RuntimeError, match=r"^funcmcp needs a running event loop of asyncio\. trio is not supported"):
        entering.send(None)


def test_the_revisions_are_all_of_them_oldest_first() -> None:
    assert REVISIONS == ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")


def test_each_public_name_is_there() -> None:
    for name in funcmcp.testing.__all__:
        assert getattr(funcmcp.testing, name) is not None
