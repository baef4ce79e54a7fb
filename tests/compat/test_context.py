"""The context that functions of other frameworks take, what they send and ask with it."""

from __future__ import annotations

from enum import Enum
from typing import Any, Literal

import pytest
from mcp.types import LoggingMessageNotification, LoggingMessageNotificationParams, SamplingMessage, TextContent
from pydantic import BaseModel

from funcmcp.compat import AcceptedElicitation, Context, DeclinedElicitation, FastMCP, get_context
from funcmcp.testing import Client


async def test_messages_progress_and_data_of_the_request() -> None:
    mcp = FastMCP("c")

    @mcp.tool
    async def work(ctx: Context[Any, Any, Any]) -> dict[str, Any]:
        await ctx.debug("a")
        await ctx.info("b", logger_name="mine")
        await ctx.warning("c", extra={"k": 1})
        await ctx.error("d")
        await ctx.log("e", level="notice")
        await ctx.log("critical", "f")
        await ctx.log(level="alert", data={"g": 1})
        await ctx.session.send_log_message("error", {"h": 1})
        await ctx.report_progress(1, 4, "one")
        await ctx.session.send_progress_notification(ctx.request_context.meta.progressToken, 2, 4)
        return {
            "same": ctx.request_context.request_id == ctx.request_id,
            "client": ctx.session.client_params.clientInfo.name,
            "server": ctx.fastmcp.name,
            "client_id": ctx.client_id,
            "session": ctx.session_id is not None,
        }

    logs: list[tuple[str, Any, str | None]] = []
    progress: list[tuple[float, float | None]] = []
    async with Client(
        mcp,
        revision="2025-11-25",
        log_level="debug",
        on_log=lambda message: logs.append((message.level, message.data, message.logger)),
    ) as client:
        result = await client.call_tool(
            "work", {}, on_progress=lambda update: progress.append((update.progress, update.total))
        )
    assert logs == [
        ("debug", "a", None),
        ("info", "b", "mine"),
        ("warning", {"msg": "c", "extra": {"k": 1}}, None),
        ("error", "d", None),
        ("notice", "e", None),
        ("critical", "f", None),
        ("alert", {"g": 1}, None),
        ("error", {"h": 1}, None),
    ]
    assert progress == [(1, 4), (2, 4)]
    assert result.text.startswith('{"same":true,"client":"')
    assert result.text.endswith('"server":"c","client_id":null,"session":true}')


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


class Order(BaseModel):
    table: int


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_questions_to_the_user_and_the_model(revision: str) -> None:
    mcp = FastMCP("q")

    @mcp.tool
    async def ask(ctx: Context) -> list[str]:
        order = await ctx.elicit("Which table?", response_type=Order)
        assert isinstance(order, AcceptedElicitation)
        size = await ctx.elicit("Which size?", Size)
        name = await ctx.elicit("Your name?", str)
        choice = await ctx.elicit("Which one?", ["a", "b"])
        literal = await ctx.elicit("Which?", Literal["x", "y"])
        sure = await ctx.elicit("Sure?", None)
        model = await ctx.elicit(message="Table?", schema=Order)
        poem = await ctx.sample("Write.", system_prompt="Be brief.", model_preferences="big")
        created = await ctx.session.create_message(
            messages=[SamplingMessage(role="user", content=TextContent(type="text", text="Go."))], max_tokens=5
        )
        answers = [order.data.table, size.data, name.data, choice.data, literal.data, sure.action, model.data]
        return [*map(str, answers), poem.text, created.content.text]

    answers: dict[str, dict[str, Any]] = {
        "Which table?": {"table": 4},
        "Which size?": {"value": "small"},
        "Your name?": {"value": "Ann"},
        "Which one?": {"value": "b"},
        "Which?": {"value": "y"},
    }

    async def on_elicit(question: dict[str, Any]) -> dict[str, Any]:
        if question["message"] not in answers:
            return {"action": "decline"}
        return {"action": "accept", "content": answers[question["message"]]}

    async def on_sample(request: dict[str, Any]) -> dict[str, Any]:
        text = f"{request['messages'][0]['content']['text']} {request['maxTokens']}"
        return {"role": "assistant", "model": "m", "content": {"type": "text", "text": text}}

    async with Client(mcp, revision=revision, elicit=on_elicit, sample=on_sample) as client:
        result = await client.call_tool("ask")
    assert result.structured_content["result"] == [
        *("4", "Size.SMALL", "Ann", "b", "y", "decline", "None", "Write. 512", "Go. 5"),
    ]


def test_a_declined_answer_has_no_data() -> None:
    assert (DeclinedElicitation().action, DeclinedElicitation().data) == ("decline", None)


async def test_state_lasts_for_the_session() -> None:
    mcp = FastMCP("s")

    @mcp.tool
    async def count(ctx: Context) -> int:
        number: int = await ctx.get_state("n") or 0
        ctx.set_state("n", number + 1)
        await ctx.set_state("other", 1)
        await ctx.delete_state("other")
        assert await ctx.get_state("other", "gone") == "gone"
        return number

    async with Client(mcp, revision="2025-11-25") as first, Client(mcp, revision="2025-11-25") as second:
        assert [(await first.call_tool("count")).text for _ in range(3)] == ["0", "1", "2"]
        assert (await second.call_tool("count")).text == "0"


async def test_the_context_without_a_parameter_and_other_features() -> None:
    mcp = FastMCP("g")

    @mcp.resource("note://one")
    def note() -> str:
        return "First."

    @mcp.tool
    async def read() -> str:
        (contents,) = await get_context().read_resource("note://one")
        await get_context().close_sse_stream()  # does nothing: this client can't resume the stream
        await get_context().info("read")
        return f"{contents.content} {contents.mime_type}"

    @mcp.tool
    def missing(ctx: Context) -> str:
        return str(getattr(ctx, "is_background_task"))  # noqa: B009 - type checkers know that it is missing

    async with Client(mcp) as client:
        assert (await client.call_tool("read")).text == "First. text/plain"
        assert "Use funcmcp.Context" in (await client.call_tool("missing")).text
    with pytest.raises(RuntimeError, match="No active context"):
        get_context()


async def test_sampling_with_tools_is_refused_by_name() -> None:
    mcp = FastMCP("x")

    @mcp.tool
    async def ask(ctx: Context) -> str:
        return (await ctx.sample("Go.", tools=[print])).text

    async with Client(mcp) as client:
        result = await client.call_tool("ask")
    assert result.text.startswith("ctx.sample of funcmcp.compat has no tools.")


async def test_notifications_and_other_names_of_the_sdk() -> None:
    published: list[str | None] = []

    class Shop(FastMCP):
        def notify_resource_updated(self, uri: str) -> None:
            published.append(uri)

        def notify_resources_changed(self) -> None:
            published.append(None)

    mcp = Shop("n")

    @mcp.tool
    async def work(ctx: Context | None = None) -> dict[str, Any]:
        assert ctx is not None
        await ctx.notify_resource_updated("note://one")
        await ctx.notify_resources_changed()
        await ctx.notify_tools_changed()
        await ctx.notify_prompts_changed()
        await ctx.session.send_elicit_complete("one")
        message = LoggingMessageNotificationParams(level="info", logger="mine", data="raw")
        await ctx.session.send_notification(LoggingMessageNotification(params=message), related_request_id="1")
        return {
            "versions": ctx.protocol_version == ctx.session.protocol_version == "2025-11-25",
            "capabilities": [ctx.client_capabilities.sampling, ctx.session.client_capabilities.roots],
            "headers": (ctx.headers or {})["host"],
            "request": ctx.request_context.request.url.path,
        }

    logs: list[Any] = []
    async with Client(
        mcp,
        revision="2025-11-25",
        log_level="debug",
        roots=[{"uri": "file:///a"}],
        on_log=lambda message: logs.append((message.data, message.logger)),
    ) as client:
        result = await client.call_tool("work")
    assert result.structured_content == {
        "versions": True,
        "capabilities": [None, {}],
        "headers": "127.0.0.1",
        "request": "/mcp",
    }
    assert logs == [("raw", "mine")]
    assert published == ["note://one", None]
