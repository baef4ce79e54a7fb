"""What a hostile or broken upstream sends while it works: nothing of it reaches the wrong client."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import pytest

from funcmcp.client import Client
from tests.upstreams.scripted_transport import FORM, HANDSHAKE, PER_REQUEST, proxy_of, text

if TYPE_CHECKING:
    from tests.upstreams.scripted_transport import Message, ScriptedServer


async def test_invalid_notifications_are_dropped_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async def work(server: ScriptedServer, message: Message) -> Message:
        token = message["params"]["_meta"]["progressToken"]
        for params in (
            {"progressToken": "other", "progress": 1},
            {"progressToken": True, "progress": 1},
            {"progressToken": token, "progress": "much"},
            {"progressToken": token, "progress": 10**400},
            {"progressToken": token, "progress": 2, "total": "x", "message": ["y"], "vendor": 1},
            {"progressToken": token, "progress": 2},
            {"progressToken": token, "progress": 1},
            ["no object"],
        ):
            await server.push("notifications/progress", params)
        for log in ({"level": "loud", "data": 1}, {"level": "error"}, {"level": ["x"], "data": 1}, None):
            await server.push("notifications/message", log)
        await server.push(["no method"], {})  # type: ignore[arg-type]
        await server.push("notifications/unknown", {})
        return text("done")

    messages: list[Message] = []
    with caplog.at_level(logging.WARNING):
        async with Client(proxy_of(work), revision=HANDSHAKE, on_notification=messages.append) as client:
            await client.call_tool("up_act", meta={"progressToken": "mine"})
    assert [(message["method"], message["params"]) for message in messages] == [
        ("notifications/progress", {"progressToken": "mine", "progress": 2, "vendor": 1})
    ]
    assert len([record for record in caplog.records if "is dropped" in record.getMessage()]) == 1


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_notifications_without_end_are_bounded() -> None:
    async def work(server: ScriptedServer, message: Message) -> Message:
        del message
        for number in range(5000):
            await server.push("notifications/message", {"level": "error", "data": number})
        return text("done")

    numbers: list[int] = []
    async with Client(proxy_of(work), revision=HANDSHAKE, on_log=lambda log: numbers.append(log.data)) as client:
        assert (await client.call_tool("up_act")).text == "done"
    assert numbers == sorted(numbers)
    assert numbers[-1] == 4999


@pytest.mark.parametrize("revision", [HANDSHAKE, PER_REQUEST])
async def test_questions_that_the_client_has_not_declared_are_refused(revision: str) -> None:
    async def work(server: ScriptedServer, message: Message) -> Message:
        del message
        codes = []
        for number, (method, params) in enumerate(
            [
                ("sampling/createMessage", {"messages": [], "maxTokens": 1}),
                ("roots/list", {}),
                ("vendor/ask", {}),
                ("elicitation/create", {"mode": ["form"]}),
                ("elicitation/create", {"message": "x", "requestedSchema": {"properties": {"a": {"enum": 1}}}}),
                ("elicitation/create", "no object"),
            ]
        ):
            await server.push(method, params, f"q{number}")
            codes.append((await server.answers.get())["error"]["code"])
        return text(codes)

    async def elicit(params: Message) -> Message:
        raise AssertionError(params)

    async with Client(proxy_of(work), revision=revision, elicit=elicit) as client:
        answer = await client.call_tool("up_act")
    assert answer.text == "[-32601, -32601, -32601, -32602, -32602, -32602]"


async def test_a_question_that_may_be_for_another_client_is_refused() -> None:
    both = asyncio.Barrier(2)

    async def work(server: ScriptedServer, message: Message) -> Message:
        await both.wait()
        if message["params"]["arguments"].get("asks"):
            await server.push("elicitation/create", FORM, "q")
            return text((await server.answers.get())["error"]["code"])
        await both.wait()
        return text("quiet")

    async def elicit(params: Message) -> Message:
        raise AssertionError(params)

    proxy = proxy_of(work)
    async with (
        Client(proxy, revision=HANDSHAKE, elicit=elicit) as first,
        Client(proxy, revision=HANDSHAKE, elicit=elicit) as second,
    ):
        quiet = asyncio.create_task(first.call_tool("up_act"))
        assert (await second.call_tool("up_act", {"asks": True})).text == "-32600"
        await both.wait()
        assert (await quiet).text == "quiet"


async def test_a_result_does_not_wait_for_the_answer_to_a_question() -> None:
    never = asyncio.Event()
    asked = asyncio.Event()

    async def work(server: ScriptedServer, message: Message) -> Message:
        del message
        await server.push("elicitation/create", FORM, "q")
        await asked.wait()
        return text("without an answer")

    async def elicit(params: Message) -> Message:
        del params
        asked.set()
        await never.wait()
        return {"action": "cancel"}

    async with Client(proxy_of(work), revision=HANDSHAKE, elicit=elicit) as client:
        call = asyncio.create_task(client.call_tool("up_act"))
        await asked.wait()
        never.set()
        assert (await call).text == "without an answer"


@pytest.mark.parametrize(
    "result",
    [{"content": "text"}, {"content": [1]}, {"content": [{"text": "no type"}]}, {"content": [{"type": 1}]}],
)
async def test_an_invalid_result_is_an_error(result: Message) -> None:
    async def work(server: ScriptedServer, message: Message) -> Message:
        del server, message
        return result

    async with Client(proxy_of(work), revision=HANDSHAKE) as client:
        answer = await client.call_tool("up_act")
    assert answer.is_error
    assert "not valid" in answer.text


async def test_a_block_of_a_type_that_no_revision_has_becomes_text() -> None:
    async def work(server: ScriptedServer, message: Message) -> Message:
        del server, message
        return {"content": [{"type": "hologram", "data": 1}, {"type": "text", "text": "beside it"}]}

    async with Client(proxy_of(work), revision=HANDSHAKE) as client:
        answer = await client.call_tool("up_act")
    assert [block["type"] for block in answer["content"]] == ["text", "text"]
    assert "hologram" in answer["content"][0]["text"]


async def test_a_call_that_waits_for_an_answer_ends_when_its_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = asyncio.Event()

    async def work(server: ScriptedServer, message: Message) -> Message:
        del message
        await server.push("elicitation/create", FORM, "q")
        try:
            await server.answers.get()
        finally:
            ended.set()
        return text("answered")

    async def elicit(params: Message) -> Message:
        del params
        await ended.wait()
        return {"action": "accept", "content": {"name": "Ada"}}

    monkeypatch.setattr("funcmcp._upstreams.forwarding.HOLD_SECONDS", 0.2)
    async with Client(proxy_of(work), revision=PER_REQUEST, elicit=elicit) as client:
        answer = await client.call_tool("up_act")
    assert answer.is_error
    assert "without requestState" in answer.text
