"""The client follows tasks, in both eras."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import pytest
from pydantic import BaseModel

from funcmcp import Context, Elicit, MCPError, MCPServer, ToolError
from funcmcp._protocol.replies import result_reply
from funcmcp._serving.composition import runtime_of
from funcmcp._transports.http.messages import HttpResponse
from funcmcp.client import (
    Client,
    ClientError,
    ConnectionFailedError,
    InvalidResponseError,
    Task,
    TaskCancelledError,
)
from funcmcp.tasks import TaskOptions
from funcmcp.testing import accept
from tests.patience import PATIENCE
from tests.server.parts import NEWEST, PER_REQUEST

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from funcmcp._protocol.replies import Reply
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.middleware import CallNext
    from funcmcp.testing import MemoryRequest

pytestmark = pytest.mark.branches("Typed objects are made of what clients receive.")

BOTH_ERAS = pytest.mark.parametrize("revision", [NEWEST, PER_REQUEST])
JSON = (("content-type", "application/json"),)


class Name(BaseModel):
    name: str


class Agreement(BaseModel):
    agreed: bool


def brief(mode: Literal["optional", "required"] = "optional", *, detaches: bool = False) -> TaskOptions:
    return TaskOptions(mode, detaches=detaches, poll=0.02)


class Shop:
    """A server with tasks, and what became of its tools."""

    def __init__(self) -> None:
        self.mcp = mcp = MCPServer("Shop")
        self.hanging = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.proceed = asyncio.Event()

        @mcp.tool(task=brief())
        async def count(context: Context) -> str:
            await context.report_progress(1, 2, "counting")
            await self.proceed.wait()
            return f"counted in a task: {context.task_id is not None}"

        @mcp.tool(task=brief())
        async def greet(context: Context) -> str:
            first = await context.elicit("Who?", Name)
            answers: dict[str, Any] = await context.ask(
                {"name": Elicit("And who?", Name), "agreed": Elicit("Do you agree?", Agreement)}
            )
            return f"{first.content and first.content.name} {answers['name'].content.name} {answers['agreed'].action}"

        @mcp.tool(task=brief())
        async def fail() -> str:
            raise ToolError("No luck.")

        @mcp.tool(task=brief("required"))
        async def break_down() -> str:
            raise MCPError(-32000, "Broken", {"part": "axle"})

        @mcp.tool(task=brief())
        async def hang() -> str:
            self.hanging.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
            return "never"

        @mcp.tool(task=brief(detaches=True))
        async def quote(context: Context, *, cached: bool = False) -> str:
            if cached:
                return "42"
            answer = await context.elicit("For whom?", Name)
            await context.detach()
            return f"43 for {answer.content and answer.content.name}"

        @mcp.tool
        async def add(a: int, b: int) -> int:
            return a + b


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    shop = Shop()
    yield shop
    shop.proceed.set()
    await runtime_of(shop.mcp).aclose()


@BOTH_ERAS
async def test_a_call_is_followed_to_the_end_of_its_task(shop: Shop, revision: str) -> None:
    states: list[Task] = []

    def on_task(state: Task) -> None:
        states.append(state)
        if state.status_message:
            shop.proceed.set()

    async with Client(shop.mcp, revision=revision, on_task=on_task, timeout=PATIENCE) as client:
        result = await client.call_tool("count")
        assert (result.text, result.is_error) == ("counted in a task: True", False)
    assert (states[0].status, states[-1].status) == ("working", "completed")
    assert "counting (1 of 2)" in [state.status_message for state in states]
    assert (states[0].poll_seconds, states[0].ttl_seconds) == (0.02, 3600)
    assert len({state.task_id for state in states}) == 1


@BOTH_ERAS
async def test_questions_of_a_task_go_to_the_callbacks(shop: Shop, revision: str) -> None:
    elicit = accept({"name": "Ada"}, {"name": "Grace"}, {"agreed": True})
    async with Client(shop.mcp, revision=revision, elicit=elicit) as client:
        async with asyncio.timeout(PATIENCE):
            assert (await client.call_tool("greet")).text == "Ada Grace accept"


@BOTH_ERAS
async def test_a_tools_failure_is_a_result(shop: Shop, revision: str) -> None:
    async with Client(shop.mcp, revision=revision) as client:
        result = await client.call_tool("fail")
        assert (result.is_error, result.text) == (True, "No luck.")
        with pytest.raises(ToolError, match="No luck"):
            await client.call_tool("fail", raise_on_error=True)


@BOTH_ERAS
async def test_an_error_of_a_task_is_raised_with_its_code_and_data(shop: Shop, revision: str) -> None:
    async with Client(shop.mcp, revision=revision) as client:
        with pytest.raises(MCPError, match="Broken") as caught:
            await client.call_tool("break_down")
    assert (caught.value.code, caught.value.data) == (-32000, {"part": "axle"})


@BOTH_ERAS
async def test_a_handle_has_the_state_and_the_result(shop: Shop, revision: str) -> None:
    async with Client(shop.mcp, revision=revision) as client:
        task = await client.start_tool("count")
        assert task.task_id is not None
        assert task.status == "working"
        state = await task.get()
        assert (state.task_id, state.status, state.has_ended) == (task.task_id, "working", False)
        shop.proceed.set()
        result = await task.result()
        assert result.text == "counted in a task: True"
        assert task.status == "completed"
        assert await task.result() is result
        await task.cancel()  # it has ended, so nothing happens
        assert (await task.get()).status == "completed"


@BOTH_ERAS
async def test_a_task_can_be_cancelled(shop: Shop, revision: str) -> None:
    async with Client(shop.mcp, revision=revision) as client:
        task = await client.start_tool("hang")
        await task.cancel()
        assert task.status == "cancelled"
        with pytest.raises(TaskCancelledError, match=r"^The task was cancelled\.$"):
            await task.result()
        other = await client.start_tool("count")
        handle = await client.get_task(str(other.task_id))
        await handle.cancel()
        await other.cancel()  # cancelled in the meantime, which this handle has not seen
        assert other.status == "cancelled"


async def expire(limit: asyncio.Timeout, event: asyncio.Event) -> None:
    """End a time limit when something has happened."""
    await event.wait()
    limit.reschedule(asyncio.get_running_loop().time())


@BOTH_ERAS
async def test_a_call_whose_caller_stops_waiting_cancels_the_task(shop: Shop, revision: str) -> None:
    async with Client(shop.mcp, revision=revision) as client:

        async def wait_too_long() -> None:
            async with asyncio.timeout(PATIENCE) as limit, asyncio.TaskGroup() as group:
                group.create_task(expire(limit, shop.hanging))
                await client.call_tool("hang")

        with pytest.raises(TimeoutError):
            await wait_too_long()
        async with asyncio.timeout(PATIENCE):
            await shop.cancelled.wait()


@BOTH_ERAS
async def test_a_handle_whose_caller_stops_waiting_leaves_the_task_running(shop: Shop, revision: str) -> None:
    async with Client(shop.mcp, revision=revision) as client:
        task = await client.start_tool("count")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await task.result()
        assert (await task.get()).status == "working"
        shop.proceed.set()
        assert (await task.result()).text == "counted in a task: True"


@BOTH_ERAS
async def test_a_call_whose_callback_fails_cancels_the_task(shop: Shop, revision: str) -> None:
    task_ids: list[str] = []

    async def elicit(_params: dict[str, Any]) -> dict[str, Any]:
        raise OSError("no terminal")

    options: dict[str, Any] = {"elicit": elicit, "on_task": lambda state: task_ids.append(state.task_id)}
    async with Client(shop.mcp, revision=revision, **options) as client:
        with pytest.raises(OSError, match="no terminal"):
            await client.call_tool("greet")
        assert (await client.get_task(task_ids[0])).status == "cancelled"


@BOTH_ERAS
async def test_another_client_can_follow_a_task(shop: Shop, revision: str) -> None:
    async with Client(shop.mcp, revision=revision) as client:
        task_id = (await client.start_tool("count")).task_id
    shop.proceed.set()
    async with Client(shop.mcp, revision=revision) as client:
        assert (await (await client.get_task(str(task_id))).result()).text == "counted in a task: True"
        with pytest.raises(MCPError, match="Task not found"):
            await client.get_task("A" * 44)


async def test_questions_can_be_answered_by_hand(shop: Shop) -> None:
    async with Client(shop.mcp, revision=PER_REQUEST, elicit=accept()) as client:
        task = await client.start_tool("greet")
        for answers in ([{"name": "Ada"}], [{"name": "Grace"}, {"agreed": True}]):
            async with asyncio.timeout(PATIENCE):
                while not (await task.get()).input_requests:  # noqa: ASYNC110 - the client polls
                    await asyncio.sleep(0.01)
            keys = list(task.state.input_requests)
            assert task.status == "input_required"
            contents = dict(zip(keys, answers, strict=True))
            await task.answer({key: {"action": "accept", "content": contents[key]} for key in keys})
        assert (await task.result()).text == "Ada Grace accept"


async def test_in_2025_11_25_only_callbacks_answer_questions(shop: Shop) -> None:
    async with Client(shop.mcp, revision=NEWEST) as client:
        task = await client.start_tool("count")
        with pytest.raises(ClientError, match="callbacks of the client answer"):
            await task.answer({})


async def test_older_revisions_have_no_tasks(shop: Shop) -> None:
    shop.proceed.set()
    async with Client(shop.mcp, revision="2025-06-18") as client:
        assert (await client.call_tool("count")).text == "counted in a task: False"
        task = await client.start_tool("count")
        assert (task.task_id, task.status) == (None, "completed")
        with pytest.raises(ClientError, match="The revision 2025-06-18 has no tasks"):
            await client.get_task("A" * 44)


async def test_a_tool_can_ask_before_it_becomes_a_task_or_answer_at_once(shop: Shop) -> None:
    async with Client(shop.mcp, revision=PER_REQUEST, elicit=accept({"name": "Ada"})) as client:
        assert (await client.call_tool("quote")).text == "43 for Ada"
        task = await client.start_tool("quote", {"cached": True})
        assert (task.task_id, task.status) == (None, "completed")
        await task.cancel()
        await task.answer({})
        assert await task.get() == {"status": "completed"}
        assert (await task.result()).text == "42"


@BOTH_ERAS
async def test_a_tool_without_tasks_is_called_as_ever(shop: Shop, revision: str) -> None:
    async with Client(shop.mcp, revision=revision) as client:
        task = await client.start_tool("add", {"a": 1, "b": 2})
        assert (task.task_id, (await task.result()).structured_content) == (None, {"result": 3})


async def test_a_notification_ends_the_wait_for_the_next_poll(shop: Shop) -> None:
    @shop.mcp.tool(task=TaskOptions(poll=60))
    async def rarely_polled() -> str:
        await shop.proceed.wait()
        return "done"

    async with Client(shop.mcp, revision=PER_REQUEST) as client:
        task = await client.start_tool("rarely_polled")
        assert task.state.poll_seconds == 60
        wish = {"notifications": {"taskIds": [task.task_id]}}
        listening = asyncio.create_task(client.request("subscriptions/listen", wish))
        following = asyncio.create_task(task.result())
        await asyncio.sleep(0.1)
        shop.proceed.set()
        async with asyncio.timeout(PATIENCE):
            assert (await following).text == "done"
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)


async def test_a_broken_wait_for_the_result_falls_back_to_polling(shop: Shop) -> None:
    served = runtime_of(shop.mcp)
    broken: list[bytes] = []

    async def exchange(request: MemoryRequest) -> HttpResponse:
        body = await request.read(100_000)
        if b'"tasks/result"' in body and len(broken) < 2:
            broken.append(body)
            raise ConnectionFailedError("A gateway ended the request.")
        return await served.exchange(request)

    elicit = accept({"name": "Ada"}, {"name": "Grace"}, {"agreed": True})
    async with Client(exchange, revision=NEWEST, elicit=elicit) as client:  # type: ignore[arg-type]
        async with asyncio.timeout(PATIENCE):
            assert (await client.call_tool("greet")).text == "Ada Grace accept"
    assert len(broken) == 2


def task_of(**members: Any) -> dict[str, Any]:
    return {"taskId": "t1", "status": "working", "createdAt": "", "lastUpdatedAt": "", "ttlMs": None, **members}


Respond = Callable[[dict[str, Any]], "dict[str, Any]"]


def scripted(results: Mapping[str, dict[str, Any] | Respond]) -> Any:
    """Return a server of 2026-07-28 that answers each method with a fixed result, or a function of the message."""

    async def exchange(request: MemoryRequest) -> HttpResponse:
        message = json.loads(await request.read(100_000))
        answers: dict[str, Any] = {
            "server/discover": {"supportedVersions": [PER_REQUEST], "capabilities": {"tools": {}}},
            "tools/list": {"tools": []},
            "tools/call": {"resultType": "task", **task_of()},
            **results,
        }
        result = answers[message["method"]]
        if callable(result):
            result = result(message)
        body = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        return HttpResponse(200, JSON, json.dumps(body).encode())

    return exchange


FAST = {"tools/call": {"resultType": "task", **task_of(pollIntervalMs=1)}}
QUESTION = {"method": "elicitation/create", "params": {"message": "?"}}


@pytest.mark.parametrize(
    ("results", "match", "cancels"),
    [
        ({"tools/call": {"resultType": "task", **task_of(status="sleeping")}}, "unknown status 'sleeping'", 0),
        ({"tools/call": {"resultType": "task", **task_of(taskId="")}}, "task without an id", 0),
        ({"tools/call": {"resultType": "task", "status": "working"}}, "Task has no 'taskId'", 0),
        ({"tasks/get": task_of(taskId="t2")}, "another task", 1),
        ({"tasks/get": task_of(status="completed")}, "no result object", 0),
        ({"tasks/get": task_of(status="completed", result=5)}, "no result object", 0),
        ({"tasks/get": task_of(status="failed", error="x")}, "has no code and message", 0),
        ({"tasks/get": task_of(status="input_required", inputRequests={"a": 5})}, "not an object", 1),
        ({"tasks/get": task_of(status="input_required", inputRequests=[5])}, "'inputRequests' of Task has the type", 1),
        ({"tasks/get": {"resultType": "riddle", **task_of()}}, "the type 'riddle', which this client does not know", 1),
    ],
)
async def test_a_task_that_does_not_follow_the_protocol_is_an_error(
    results: dict[str, Any], match: str, cancels: int
) -> None:
    cancelled: list[dict[str, Any]] = []

    def cancel(message: dict[str, Any]) -> dict[str, Any]:
        cancelled.append(message["params"])
        return {}

    async with Client(scripted({"tasks/cancel": cancel, **FAST, **results}), elicit=accept()) as client:
        with pytest.raises(InvalidResponseError, match=match):
            await client.call_tool("dig")
    assert [params["taskId"] for params in cancelled] == ["t1"] * cancels


async def test_a_task_can_ask_only_a_limited_number_of_times() -> None:
    serial = iter(range(1000))

    def ask(_message: dict[str, Any]) -> dict[str, Any]:
        return task_of(status="input_required", pollIntervalMs=1, inputRequests={f"q.{next(serial)}": QUESTION})

    async def elicit(_params: dict[str, Any]) -> dict[str, Any]:
        return {"action": "decline"}

    server = scripted({**FAST, "tasks/get": ask, "tasks/update": {}, "tasks/cancel": {}})
    async with Client(server, elicit=elicit) as client:
        with pytest.raises(InvalidResponseError, match="asked for input more than 20 times"):
            await (await client.start_tool("insist")).result()


async def test_a_question_is_answered_once_even_if_the_server_shows_it_again() -> None:
    shown = iter([{"q.1": QUESTION}, {"q.1": QUESTION}, {"q.1": QUESTION, "q.2": QUESTION}, {}])
    updates: list[Any] = []

    def get(_message: dict[str, Any]) -> dict[str, Any]:
        requests = next(shown)
        if not requests:
            return task_of(status="completed", result={"content": []})
        return task_of(status="input_required", pollIntervalMs=1, inputRequests=requests)

    def update(message: dict[str, Any]) -> dict[str, Any]:
        updates.append(list(message["params"]["inputResponses"]))
        return {}

    server = scripted({**FAST, "tasks/get": get, "tasks/update": update})
    async with Client(server, elicit=accept({}, {})) as client:
        assert (await client.call_tool("ask")).content == []
    assert updates == [["q.1"], ["q.2"]]


async def test_the_task_members_of_another_form_are_ignored() -> None:
    result = {"content": [], "task": task_of()}
    async with Client(scripted({"tools/call": result})) as client:
        assert (await client.call_tool("dig")) == result


def test_times_of_a_task_can_be_missing_or_wrong() -> None:
    assert Task(task_of(pollIntervalMs="soon")).poll_seconds is None
    assert Task(task_of(pollIntervalMs=10**400)).poll_seconds is None
    assert Task(task_of(pollInterval=500)).poll_seconds == 0.5
    assert Task(task_of(ttl=60_000)).ttl_seconds == 60
    assert Task(task_of()).ttl_seconds is None


@pytest.mark.parametrize("flag", ["false", 0, 1, [], {}])
async def test_an_is_error_that_is_not_a_boolean_is_an_invalid_response(flag: object) -> None:
    mcp = MCPServer("Flags")

    async def replaced(context: RequestContext, call_next: CallNext) -> Reply:
        reply = await call_next(context)
        if context.request.method != "tools/call":
            return reply
        return result_reply(context.request.id, {"content": [], "isError": flag, "resultType": "complete"})

    mcp.add_middleware(replaced)

    @mcp.tool
    def nothing() -> None:
        pass

    async with Client(mcp) as client:
        with pytest.raises(InvalidResponseError, match="isError"):
            await client.call_tool("nothing")
