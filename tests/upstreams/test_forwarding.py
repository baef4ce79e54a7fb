"""Requests of clients at an upstream, in the four pairs of eras."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import MCPError
from tests.upstreams.everything import ERAS, RAW_RESULT

if TYPE_CHECKING:
    from funcmcp.client import LogMessage
    from tests.upstreams.conftest import Pair


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_result_passes_without_loss(pair: Pair) -> None:
    async with pair.connect() as client:
        result = await client.call_tool("up_raw")
    assert result["content"] == RAW_RESULT["content"]
    assert result["structuredContent"] == RAW_RESULT["structuredContent"]
    assert type(result["structuredContent"]["float"]) is float
    assert result["vendorMember"] == [True]
    assert result["_meta"]["example.com/trace"] == "x"


async def test_errors_keep_code_message_and_data(pair: Pair) -> None:
    async with pair.connect() as client:
        failed = await client.call_tool("up_fail")
        with pytest.raises(MCPError) as refused:
            await client.call_tool("up_refuse")
    assert failed.is_error
    assert failed.text == "It is closed on Sundays."
    assert (refused.value.code, refused.value.message) == (-31999, "Quota used up")
    assert refused.value.data == {"left": 0, "of": [1, 1.0]}


async def test_progress_has_the_token_of_the_client(pair: Pair) -> None:
    messages: list[dict[str, Any]] = []
    async with pair.connect(on_notification=messages.append) as client:
        await client.call_tool("up_steps", {"count": 50}, meta={"progressToken": "mine"})
        progress = [message["params"] for message in messages if message["method"] == "notifications/progress"]
        await client.call_tool("up_steps", {"count": 3})
    assert [params["progress"] for params in progress] == list(range(1, 51))
    assert {params["progressToken"] for params in progress} == {"mine"}
    assert progress[6]["message"] == "step 7"
    assert len([message for message in messages if message["method"] == "notifications/progress"]) == 50


async def test_log_messages_have_the_level_that_the_client_asked_for(pair: Pair) -> None:
    received: dict[str, list[LogMessage]] = {"debug": [], "error": []}
    for level, messages in received.items():
        async with pair.connect(on_log=messages.append, log_level=level) as client:
            await client.call_tool("up_speak")
    assert [(message.level, message.data) for message in received["debug"]] == [
        ("debug", "quiet"),
        ("info", {"text": "usual"}),
        ("error", "loud"),
    ]
    assert [message.data for message in received["error"]] == ["loud"]
    assert {message.logger for message in received["debug"]} == {"example.logger"}


async def test_questions_reach_the_client(pair: Pair) -> None:
    asked: list[dict[str, Any]] = []

    async def elicit(params: dict[str, Any]) -> dict[str, Any]:
        asked.append(params)
        values = {"First?": "a", "Second?": 2, "Your name?": "Ada"}
        if params.get("mode") == "url":
            return {"action": "accept"}
        (name,) = params["requestedSchema"]["properties"]
        return {"action": "accept", "content": {name: values[params["message"]]}}

    async def sample(params: dict[str, Any]) -> dict[str, Any]:
        asked.append(params)
        return {"role": "assistant", "model": "test", "content": {"type": "text", "text": "Hi"}}

    roots = [{"uri": "file:///data"}]
    async with pair.connect(elicit=elicit, sample=sample, roots=roots) as client:
        assert (await client.call_tool("up_ask")).text == "accept: Ada"
        assert (await client.call_tool("up_ask_twice")).text == "a 2"
        assert (await client.call_tool("up_open_url")).text == "accept"
        assert "Hi" in (await client.call_tool("up_sample")).text
        assert "file:///data" in (await client.call_tool("up_roots")).text
    assert len(asked) == 5


async def test_upstream_sees_the_capabilities_of_the_client(pair: Pair) -> None:
    async def elicit(params: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError(params)

    async with pair.connect() as client:
        without = await client.call_tool("up_look", meta={"example.com/key": 7})
        if ERAS["handshake"] in {pair.client_revision, pair.upstream_revision}:
            assert (await client.call_tool("up_ask")).is_error
        else:
            with pytest.raises(MCPError) as refused:
                await client.call_tool("up_ask")
            assert refused.value.code == -32021
    async with pair.connect(elicit=elicit) as client:
        with_elicitation = await client.call_tool("up_look")
    assert without["structuredContent"]["capabilities"] == []
    assert with_elicitation["structuredContent"]["capabilities"] == ["elicitation"]
    assert without["structuredContent"]["meta"]["example.com/key"] == 7
    assert "progressToken" not in without["structuredContent"]["meta"]


async def test_cancelled_request_is_cancelled_at_the_upstream(pair: Pair) -> None:
    async with pair.connect() as client:
        call = asyncio.create_task(client.call_tool("up_wait"))
        await pair.wait_for("began")
        call.cancel()
        await pair.wait_for("cancelled")
        assert (await client.call_tool("up_echo", {"text": "on"})).text == "on"


async def test_resources_and_prompts_pass(pair: Pair) -> None:
    async with pair.connect() as client:
        read = await client.read_resource("memo://up/note")
        prompt = await client.get_prompt("up_greet", {"name": "Ada"})
        with pytest.raises(MCPError) as missing:
            await client.read_resource("memo://up/nothing")
    assert read["contents"][0]["text"] == "remember"
    assert prompt["messages"][0]["content"]["text"] == "Greet Ada."
    assert missing.value.code == (-32602 if pair.client_revision == ERAS["per-request"] else -32002)
