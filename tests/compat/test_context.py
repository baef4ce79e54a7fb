"""The context that functions of other frameworks take, what they send and ask with it."""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import Any, Literal

import pytest
from mcp.types import LoggingMessageNotification, LoggingMessageNotificationParams, SamplingMessage, TextContent
from pydantic import BaseModel

from funcmcp import Context as NativeContext
from funcmcp import MCPServer as NativeMCPServer
from funcmcp.compat import (
    AcceptedElicitation,
    Context,
    CurrentContext,
    DeclinedElicitation,
    FastMCP,
    MCPServer,
    Middleware,
    MiddlewareContext,
    Progress,
    get_context,
)
from funcmcp.compat.mcp.types import (
    ClientCapabilities,
    ElicitationCapability,
    RootsCapability,
    SamplingCapability,
)
from funcmcp.state import MemoryState
from funcmcp.tasks import TaskOptions
from funcmcp.testing import Client, accept

pytestmark = pytest.mark.branches("Requests inside of requests find their features.")


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
        ("debug", {"msg": "a", "extra": None}, None),
        ("info", {"msg": "b", "extra": None}, "mine"),
        ("warning", {"msg": "c", "extra": {"k": 1}}, None),
        ("error", {"msg": "d", "extra": None}, None),
        ("notice", {"msg": "e", "extra": None}, None),
        ("critical", {"msg": "f", "extra": None}, None),
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


class OutsideState(MemoryState):
    """A store outside of the process."""

    shared = True


async def test_state_is_in_the_store_of_the_server_for_callers_that_are_known() -> None:
    store = OutsideState()

    def process() -> FastMCP:
        mcp = FastMCP("s", state=store)

        @mcp.tool
        async def count(ctx: Context) -> int:
            number: int = await ctx.get_state("n", 0)
            await ctx.set_state("n", number + 1)
            await ctx.set_state("other", 1)
            await ctx.set_state("here", {1}, serializable=False)
            await ctx.delete_state("other")
            assert await ctx.get_state("other", "gone") == "gone"
            assert await ctx.get_state("here") == {1}
            return number

        return mcp

    for number in range(3):
        async with Client(process()) as client:
            assert (await client.call_tool("count")).text == str(number)
    served = process()
    async with Client(served, revision="2025-11-25") as first, Client(served, revision="2025-11-25") as second:
        assert [(await first.call_tool("count")).text for _ in range(2)] == ["0", "1"]
        assert (await second.call_tool("count")).text == "0"
    with pytest.raises(ValueError, match="state must be 'memory' or a store"):
        FastMCP("s", state="redis")


class Stamping(Middleware):
    """Stores values before the tool runs."""

    async def on_call_tool(self, context: MiddlewareContext, call_next: Any) -> Any:
        ctx = context.fastmcp_context
        assert ctx is not None
        await ctx.set_state("session", "set", serializable=True)
        await ctx.set_state("request", {"unserializable"}, serializable=False)
        return await call_next(context)


def stateful(mcp: FastMCP) -> FastMCP:
    """Add tools that return what a caller has stored, and that store something."""

    @mcp.tool()
    async def exchange(ctx: Context, value: str = "") -> list[str | list[str] | None]:
        stored = [await ctx.get_state("session"), await ctx.get_state("request")]
        ctx.set_state("session", value)
        ctx.set_state("request", value, serializable=False)
        return stored

    mcp.tool(name="exchange_in_task", task=True)(exchange)

    @mcp.tool()
    async def forward(value: str) -> str:
        return (await mcp.call_tool("exchange", {"value": value})).text

    return mcp


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("make", [FastMCP, MCPServer])
async def test_requests_without_a_session_share_no_state(make: type[FastMCP], revision: str) -> None:
    mcp = stateful(make("stateless", stateless_http=True))
    async with Client(mcp, revision=revision) as ann, Client(mcp, revision=revision) as bob:
        for tool in ("exchange", "forward"):
            await ann.call_tool(tool, {"value": "ann's"})
            for client in (ann, bob):
                assert "ann" not in (await client.call_tool(tool, {"value": ""})).text


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_tasks_of_different_callers_share_no_state() -> None:
    mcp = stateful(FastMCP("tasks"))
    async with Client(mcp) as client:
        for _ in range(2):
            task = await client.start_tool("exchange_in_task", {"value": "ann's"})
            assert (await task.result()).structured_content == {"result": [None, None]}
    assert (await mcp.call_tool("exchange", {"value": "author's"})).structured_content == {"result": [None, None]}
    assert (await mcp.call_tool("exchange", {"value": "author's"})).structured_content == {"result": [None, None]}


@pytest.mark.parametrize("stateless", [True, False])
async def test_a_tool_gets_the_state_that_middleware_set_in_its_request(stateless: bool) -> None:
    mcp = stateful(FastMCP("m", stateless_http=stateless, middleware=[Stamping()]))
    async with Client(mcp, revision="2025-11-25") as client:
        for _ in range(2):
            result = await client.call_tool("exchange", {"value": "tool's"})
            assert result.structured_content == {"result": ["set", ["unserializable"]]}


async def test_state_of_a_request_reaches_tools_of_mounted_servers_and_no_other_request() -> None:
    native = NativeMCPServer("between")
    native.mount(stateful(FastMCP("child")), prefix="c")
    above = FastMCP("above", middleware=[Stamping()])
    above.mount(native, prefix="n")
    above.mount(stateful(FastMCP("direct")), prefix="d")

    @above.tool
    async def unstamp(ctx: Context) -> list[int | str | None]:
        await ctx.delete_state("request")
        ctx.set_state("session", 1, serializable=False)
        first = await ctx.get_state("session")
        ctx.set_state("session", 2)
        return [await ctx.get_state("request"), first, await ctx.get_state("session")]

    async with Client(above, revision="2025-11-25") as client:
        assert (await client.call_tool("n_c_exchange")).structured_content == {"result": [None, ["unserializable"]]}
        for stored in (None, "child's"):
            result = await client.call_tool("d_exchange", {"value": "child's"})
            assert result.structured_content == {"result": [stored, ["unserializable"]]}
        assert (await client.call_tool("unstamp")).structured_content == {"result": [None, 1, 2]}


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
@pytest.mark.parametrize("make", [FastMCP, MCPServer])
@pytest.mark.parametrize("mode", ["optional", "required"])
async def test_a_task_has_the_context(make: type[FastMCP], mode: str) -> None:
    mcp = make("tasks")

    @mcp.tool(task=mode)
    async def by_parameter(ctx: Context) -> str:
        await ctx.info("sent")
        return ctx.fastmcp.name

    @mcp.tool(task=mode)
    async def by_call() -> str:
        return get_context().fastmcp.name

    @mcp.tool(task=mode)
    async def by_dependency(ctx: Context = CurrentContext(), progress: Progress = Progress()) -> str:  # noqa: B008 - as in FastMCP
        await progress.set_total(2)
        await progress.increment()
        return ctx.fastmcp.name

    above = FastMCP("above")
    above.mount(mcp, prefix="m")
    async with Client(mcp) as client, Client(above) as client_above:
        for name in ("by_parameter", "by_call", "by_dependency"):
            assert (await (await client.start_tool(name)).result()).text == "tasks"
            assert (await (await client_above.start_tool(f"m_{name}")).result()).text == "tasks"
    with pytest.raises(RuntimeError, match="No active context"):
        get_context()


async def test_a_tool_that_detaches_asks_before_it_is_a_task_and_has_the_context_in_it() -> None:
    mcp = FastMCP("tasks")

    @mcp.tool(task=TaskOptions(detaches=True))
    async def order(context: NativeContext, ctx: Context) -> str:
        answer = await ctx.elicit("How many?", response_type=int)
        await context.detach()
        return f"{answer.data} {ctx.fastmcp.name} {context.task_id is not None}"

    async with Client(mcp, elicit=accept({"value": 3})) as client:
        assert (await (await client.start_tool("order")).result()).text == "3 tasks True"


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
        return f"{ctx.is_background_task} {getattr(ctx, 'colour')}"  # noqa: B009 - type checkers know that it is missing

    async with Client(mcp) as client:
        assert (await client.call_tool("read")).text == "First. text/plain"
        assert "Context has no attribute 'colour'" in (await client.call_tool("missing")).text
    with pytest.raises(RuntimeError, match="No active context"):
        get_context()


async def test_sampling_with_tools_is_refused_by_name() -> None:
    mcp = FastMCP("x")

    @mcp.tool
    async def ask(ctx: Context) -> str:
        return (await ctx.sample("Go.", tools=[print])).text

    async with Client(mcp) as client:
        result = await client.call_tool("ask")
    assert result.text.startswith("Error calling tool 'ask': ctx.sample of funcmcp.compat has no tools.")


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
        "capabilities": [None, {"list_changed": None}],
        "headers": "127.0.0.1",
        "request": "/mcp",
    }
    assert logs == [("raw", "mine")]
    assert published == ["note://one", None]


@pytest.mark.parametrize(
    ("make", "data"),
    [
        (FastMCP, [{"msg": "hello", "extra": None}, {"msg": "hello", "extra": {"a": 1}}]),
        (MCPServer, ["hello", {"msg": "hello", "extra": {"a": 1}}]),
    ],
)
async def test_log_messages_have_the_form_of_the_framework(make: type[FastMCP], data: list[Any]) -> None:
    mcp = make("logs")

    @mcp.tool()
    async def log(ctx: Context) -> str:
        await ctx.info("hello")
        await ctx.warning("hello", extra={"a": 1})
        return ""

    logs: list[Any] = []
    async with Client(mcp, revision="2025-11-25", on_log=lambda message: logs.append(message.data)) as client:
        await client.call_tool("log")
    assert logs == data


async def test_client_log_level_counts_for_clients_that_chose_none() -> None:
    mcp = FastMCP("logs", client_log_level="error")

    @mcp.tool
    async def log(ctx: Context) -> str:
        await ctx.info("hello")
        await ctx.error("help")
        return ""

    logs: list[Any] = []
    async with Client(mcp, revision="2025-11-25", on_log=lambda message: logs.append(message.data)) as client:
        await client.call_tool("log")
    assert logs == [{"msg": "help", "extra": None}]


async def test_contexts_that_were_made_by_hand_share_the_state_of_their_session() -> None:
    class Session: ...

    mcp, ann, bob = FastMCP("hand"), Session(), Session()
    async with Context(fastmcp=mcp, session=ann) as context:
        await context.set_state("a", 1)
        await context.set_state("b", object, serializable=False)
        async with Context(fastmcp=mcp, session=ann) as inner:
            assert await inner.get_state("b") is object
    assert await Context(fastmcp=mcp, session=ann).get_state("a") == 1
    assert await Context(fastmcp=mcp, session=bob).get_state("a") is None
    bare = Context(fastmcp=mcp, task_id="t")
    assert (bare.request_context, bare.transport, bare.is_background_task) == (None, None, True)
    assert await bare.list_resources() == []
    with pytest.raises(RuntimeError, match="session is not available"):
        _ = bare.session


@pytest.mark.parametrize("server_class", [FastMCP, MCPServer])
async def test_session_is_one_object_for_all_requests_of_a_session(server_class: type[FastMCP]) -> None:
    mcp = server_class("c")
    seen: list[Any] = []

    @mcp.tool()
    async def remember(name: str, ctx: Context) -> str:
        session = ctx.request_context.session
        seen.append(session)
        before = getattr(session, "told", None)
        session.told = name
        await session.send_log_message("info", name)
        return f"{before}"

    async with Client(mcp, revision="2025-11-25") as client:
        assert (await client.call_tool("remember", {"name": "a"})).content[0].text == "None"
        assert (await client.call_tool("remember", {"name": "b"})).content[0].text == "a"
    async with Client(mcp, revision="2025-11-25") as client:
        assert (await client.call_tool("remember", {"name": "c"})).content[0].text == "None"
    assert seen[0] is seen[1]
    assert seen[2] is not seen[0]


async def test_session_sends_messages_of_the_request_that_runs() -> None:
    mcp = FastMCP("c")
    both = asyncio.Barrier(2)

    @mcp.tool
    async def work(name: str, ctx: Context) -> str:
        session = ctx.session
        await both.wait()
        await session.report_progress(1, message=name)
        return name

    async with Client(mcp, revision="2025-11-25") as client:
        told: dict[str, list[Any]] = {"a": [], "b": []}
        calls = [client.call_tool("work", {"name": name}, on_progress=told[name].append) for name in told]
        await asyncio.gather(*calls)
    assert {name: [step.message for step in steps] for name, steps in told.items()} == {"a": ["a"], "b": ["b"]}


async def test_members_that_the_client_does_not_send_are_none() -> None:
    mcp = FastMCP("Info")

    @mcp.tool
    def info(ctx: Context) -> list[bool]:
        client = ctx.session.client_params.client_info
        return [bool(client.name), client.title is None]

    async with Client(mcp) as client:
        assert (await client.call_tool("info")).structured_content == {"result": [True, True]}


async def test_capabilities_of_a_client_are_compared_at_each_depth() -> None:
    mcp = MCPServer("c")
    some = [
        ClientCapabilities(),
        ClientCapabilities(sampling=SamplingCapability()),
        ClientCapabilities(roots=RootsCapability(list_changed=False)),
        ClientCapabilities(extensions={"com.example/a": {"b": 1}}),
        ClientCapabilities(elicitation=ElicitationCapability()),
        ClientCapabilities(extensions={"com.example/a": {"b": 2}}),
        ClientCapabilities(experimental={"x": {}}),
    ]

    @mcp.tool()
    async def which(ctx: Context) -> list[bool]:
        return [ctx.session.check_client_capability(capability) for capability in some]

    async def answer(params: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    extensions = {"com.example/a": {"b": 1, "c": 2}}
    async with Client(mcp, roots=[], sample=answer, extensions=extensions) as client:
        result = await client.call_tool("which")
    assert result.structured_content == {"result": [True] * 4 + [False] * 3}
