"""Questions of an upstream that works on while its client of 2026-07-28 answers in the next round."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import pytest

from funcmcp.client import Client
from tests.upstreams.scripted_transport import FORM, PER_REQUEST, proxy_of, text

if TYPE_CHECKING:
    from funcmcp.client import CallToolResult
    from tests.upstreams.scripted_transport import Message, ScriptedServer, Work


class AnsweringClient:
    """A client that answers its first question only after the upstream has done something more."""

    def __init__(self) -> None:
        self.was_asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.messages: list[Message] = []

    async def elicit(self, params: Message) -> Message:
        self.was_asked.set()
        await self.may_answer.wait()
        self.messages.append({"method": "answered", "params": params})
        return {"action": "accept", "content": {"name": params["message"]}}

    async def call(self, work: Work) -> CallToolResult:
        client = Client(
            proxy_of(work),
            revision=PER_REQUEST,
            elicit=self.elicit,
            on_notification=self.messages.append,
            log_level="info",
        )
        async with client:
            return await client.call_tool("up_act", meta={"progressToken": "mine"})


@pytest.mark.parametrize("in_stream", [False, True], ids=["other reader", "stream of the response"])
async def test_what_an_upstream_sends_between_rounds_comes_in_the_next_one(in_stream: bool) -> None:
    client = AnsweringClient()

    async def work(server: ScriptedServer, message: Message) -> Message:
        push = server.push_in_stream if in_stream else server.push
        token = message["params"]["_meta"]["progressToken"]
        await push("notifications/progress", {"progressToken": token, "progress": 1})
        await push("elicitation/create", {**FORM, "message": "First?"}, "q1")
        await client.was_asked.wait()
        await push("notifications/progress", {"progressToken": token, "progress": 2})
        await push("notifications/message", {"level": "info", "data": "in between"})
        await push("elicitation/create", {**FORM, "message": "Second?"}, "q2")
        client.may_answer.set()
        answers = [await server.answers.get(), await server.answers.get()]
        await push("notifications/progress", {"progressToken": token, "progress": 3})
        return text({answer["id"]: answer["result"]["content"]["name"] for answer in answers})

    answer = await client.call(work)
    seen = [
        (message["method"], message["params"].get("progress", message["params"].get("data")))
        for message in client.messages
        if message["method"] != "answered"
    ]
    assert answer.text == str({"q1": "First?", "q2": "Second?"})
    assert seen == [
        ("notifications/progress", 1),
        ("notifications/progress", 2),
        ("notifications/message", "in between"),
        ("notifications/progress", 3),
    ]
    tokens = {message["params"]["progressToken"] for message in client.messages if "progress" in message["params"]}
    assert tokens == {"mine"}


async def test_what_an_upstream_sends_before_its_result_comes_though_no_round_was_open() -> None:
    client = AnsweringClient()

    async def work(server: ScriptedServer, message: Message) -> Message:
        await server.push("elicitation/create", FORM, "q")
        await client.was_asked.wait()
        token = message["params"]["_meta"]["progressToken"]
        await server.push("notifications/progress", {"progressToken": token, "progress": 1})
        asyncio.get_running_loop().call_later(0.1, client.may_answer.set)
        return text("without the answer")

    assert (await client.call(work)).text == "without the answer"
    assert [message["method"] for message in client.messages] == ["answered", "notifications/progress"]


async def test_an_answer_reaches_the_upstream_before_that_to_a_later_question() -> None:
    """A question for roots, which a client answers by itself, does not wait for a person."""
    first_is_answered = asyncio.Event()

    class Declining(AnsweringClient):
        async def elicit(self, params: Message) -> Message:
            if params["message"] != "Second?":
                return await super().elicit(params)
            await first_is_answered.wait()
            return {"action": "decline"}

    client = Declining()

    async def work(server: ScriptedServer, message: Message) -> Message:
        del message
        await server.push("elicitation/create", {**FORM, "message": "First?"}, "q1")
        await client.was_asked.wait()
        await server.push("elicitation/create", {**FORM, "message": "Second?"}, "q2")
        client.may_answer.set()
        first = await server.answers.get()
        first_is_answered.set()
        second = await server.answers.get()
        return text([first["id"], first["result"]["action"], second["id"], second["result"]["action"]])

    assert (await client.call(work)).text == str(["q1", "accept", "q2", "decline"])


async def test_what_waits_for_the_next_round_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    client = AnsweringClient()

    async def work(server: ScriptedServer, message: Message) -> Message:
        del message
        await server.push("elicitation/create", FORM, "q")
        await client.was_asked.wait()
        for _ in range(100):
            await server.push("notifications/message", {"level": "info", "data": "x" * 10_000})
        client.may_answer.set()
        await server.answers.get()
        return text("done")

    with caplog.at_level(logging.WARNING):
        assert (await client.call(work)).text == "done"
    assert [message["method"] for message in client.messages] == ["answered", *["notifications/message"] * 6]
    assert len([record for record in caplog.records if "notifications are dropped" in record.getMessage()]) == 1
