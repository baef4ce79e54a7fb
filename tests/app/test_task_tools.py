"""Tasks as tools, for clients that have no tasks."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from funcmcp import Context, Elicit, MCPServer, RegistrationError, Sample
from funcmcp._app import task_tools
from funcmcp._serving.composition import runtime_of
from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp._state.tasks.store import TaskLimits
from funcmcp.auth import APIKeys
from funcmcp.tasks import MemoryTasks, SQLiteTasks
from funcmcp.testing import Client, accept, decline
from funcmcp.transforms import ArgumentChange, Rename, ToolChange, ToolTransform, Wrap
from tests.patience import PATIENCE

pytestmark = pytest.mark.branches("Task tools follow the tools of a catalog.")

if TYPE_CHECKING:
    from pathlib import Path

REVISIONS = ("2024-11-05", "2025-06-18", "2026-07-28")
GENERAL = ["task_status", "task_result", "cancel_task", "answer_task", "list_tasks"]


class Shop:
    """A server with tools whose calls become tasks."""

    def __init__(self, **options: Any) -> None:
        self.mcp = MCPServer("Shop", **options)
        self.go = asyncio.Event()
        self.deleted: list[str] = []

        @self.mcp.tool(task="optional", read_only=True)
        async def report(year: int, context: Context) -> dict[str, int]:
            """Make a report.

            Args:
                year: The year.
            """
            await context.report_progress(1, 2, "reading")
            await self.go.wait()
            return {"year": year}

        @self.mcp.tool(task="required")
        async def greet(context: Context) -> str:
            answer = await context.elicit("Your name?", str)
            return f"Hello, {answer.content}"

        @self.mcp.tool(task="optional", confirm="Delete {name}?")
        def delete(name: str) -> str:
            self.deleted.append(name)
            return f"deleted {name}"

        @self.mcp.tool(task="optional")
        def broken() -> str:
            raise KeyError("secret")

        @self.mcp.tool
        def plain() -> str:
            return "plain"

        self.mcp.task_tools(wait=PATIENCE)


async def started(client: Client, tool: str, arguments: dict[str, Any] | None = None) -> str:
    """Start a task, and return its id."""
    result = await client.call_tool(tool, arguments, raise_on_error=True)
    task_id: str = result.structured_content["task_id"]
    assert task_id in result.text
    return task_id


async def text_of(client: Client, tool: str, task_id: str, **arguments: Any) -> str:
    result = await asyncio.wait_for(client.call_tool(tool, {"task_id": task_id, **arguments}), PATIENCE)
    return result.text


async def status_of(client: Client, task_id: str) -> dict[str, Any]:
    status: dict[str, Any] = (await client.call_tool("task_status", {"task_id": task_id})).structured_content
    return status


async def until(client: Client, task_id: str, status: str) -> dict[str, Any]:
    """Return the state of a task when it has a status."""
    async with asyncio.timeout(PATIENCE):
        while True:
            state = await status_of(client, task_id)
            if state["status"] == status:
                return state
            await asyncio.sleep(0.01)


async def test_a_start_tool_has_the_arguments_of_its_tool() -> None:
    async with Client(Shop().mcp) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
    assert set(tools) == {
        *("report", "greet", "delete", "broken", "plain"),
        *("start_report", "start_greet", "start_delete", "start_broken"),
        *GENERAL,
    }
    start = tools["start_report"]
    assert start.input_schema == tools["report"].input_schema
    assert start.annotations == {"readOnlyHint": True}
    assert start.title == "Start Report"
    assert start.description == "Make a report.\n\nStarts a task, and returns its task_id at once: for long work."
    assert "execution" not in start


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_client_without_tasks_starts_a_task_and_gets_the_result_of_its_tool(revision: str) -> None:
    shop = Shop()
    async with Client(shop.mcp, revision=revision) as client:
        task_id = await started_of(client, "start_report", {"year": 2026})
        assert "has not ended. Its last message: reading (1 of 2)" in await waited(client, task_id)
        shop.go.set()
        result = await client.call_tool("task_result", {"task_id": task_id})
    assert json.loads(result.text) == {"year": 2026}
    assert not result.is_error


async def started_of(client: Client, tool: str, arguments: dict[str, Any]) -> str:
    """Return the id in the text of a start tool; revisions before 2025-06-18 have no structured content."""
    return (await client.call_tool(tool, arguments)).text.split()[3].removesuffix(".")


async def waited(client: Client, task_id: str) -> str:
    """Return what `task_result` says at once when the progress is stored."""
    async with asyncio.timeout(PATIENCE):
        while True:
            text = await text_of(client, "task_result", task_id, wait_seconds=0)
            if "reading" in text:
                return text
            await asyncio.sleep(0.01)


async def test_the_result_has_the_structured_content_of_the_tool() -> None:
    shop = Shop()
    shop.go.set()
    async with Client(shop.mcp) as client:
        task_id = await started(client, "start_report", {"year": 2026})
        result = await client.call_tool("task_result", {"task_id": task_id})
        assert result.structured_content == {"year": 2026}
        state = await status_of(client, task_id)
    assert state["status"] == "completed"
    assert state["tool"] == "report"


async def test_invalid_arguments_start_no_task() -> None:
    shop = Shop()
    async with Client(shop.mcp) as client:
        result = await client.call_tool("start_report", {"year": "soon"})
        assert result.is_error
        assert "year" in result.text
    tasks = runtime_of(shop.mcp).server.tasks
    assert tasks is not None
    assert await tasks.store.page(None, None, 1) == []


async def test_a_failure_is_the_result_that_the_call_would_have_had() -> None:
    async with Client(Shop().mcp) as client:
        task_id = await started(client, "start_broken")
        result = await client.call_tool("task_result", {"task_id": task_id})
    assert result.is_error
    assert "error id" in result.text
    assert "secret" not in result.text


async def test_a_task_is_cancelled_once() -> None:
    async with Client(Shop().mcp) as client:
        task_id = await started(client, "start_report", {"year": 2026})
        cancelled = await client.call_tool("cancel_task", {"task_id": task_id})
        assert cancelled.structured_content["status"] == "cancelled"
        assert "The task has cancelled" in await text_of(client, "task_result", task_id)
        assert "has ended" in await text_of(client, "cancel_task", task_id)


@pytest.mark.parametrize("tool", ["task_status", "task_result", "cancel_task"])
async def test_an_unknown_task_is_an_error_for_the_model(tool: str) -> None:
    async with Client(Shop().mcp) as client:
        for task_id in ("x", "A" * 44):
            result = await client.call_tool(tool, {"task_id": task_id})
            assert result.is_error
            assert "no task with this id" in result.text


@pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28"])
async def test_a_client_without_forms_reads_the_question_and_answers_it(revision: str) -> None:
    async with Client(Shop().mcp, revision=revision) as client:
        task_id = await started(client, "start_greet")
        state = await until(client, task_id, "input_required")
        (question,) = state["questions"]
        assert question["message"] == "Your name?"
        assert "call answer_task" in await text_of(client, "task_result", task_id)
        wrong = {"key": question["key"], "action": "accept", "fields": []}
        assert "do not fit the schema" in await text_of(client, "answer_task", task_id, **wrong)
        assert "no open question" in await text_of(client, "answer_task", task_id, **{**wrong, "key": "other"})
        answer = {"key": question["key"], "action": "accept", "fields": [{"name": "value", "value": "Ada"}]}
        await client.call_tool("answer_task", {"task_id": task_id, **answer}, raise_on_error=True)
        assert await text_of(client, "task_result", task_id) == "Hello, Ada"


@pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28"])
async def test_a_client_with_forms_is_asked_by_task_result_alone(revision: str) -> None:
    async with Client(Shop().mcp, revision=revision, elicit=accept("Ada")) as client:
        task_id = await started(client, "start_greet")
        state = await until(client, task_id, "input_required")
        answer = {"key": state["questions"][0]["key"], "action": "decline"}
        assert "not for the model" in await text_of(client, "answer_task", task_id, **answer)
        assert await text_of(client, "task_result", task_id) == "Hello, Ada"


@pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28"])
async def test_a_confirmation_is_asked_for_before_the_task_begins(revision: str) -> None:
    shop = Shop()
    async with Client(shop.mcp, revision=revision, elicit=accept(True)) as client:
        task_id = await started(client, "start_delete", {"name": "order 7"})
        assert await text_of(client, "task_result", task_id) == "deleted order 7"
    async with Client(shop.mcp, revision=revision, elicit=decline) as client:
        assert (await client.call_tool("start_delete", {"name": "order 8"})).is_error
    async with Client(shop.mcp, revision="2025-06-18") as client:
        assert (await client.call_tool("start_delete", {"name": "order 8"})).is_error
    assert shop.deleted == ["order 7"]


async def test_a_task_that_needs_no_person_runs_without_one() -> None:
    mcp = MCPServer("Shop")
    mcp.tool("first", task="optional", confirm="Sure?", confirm_otherwise="run")(lambda: "done")
    mcp.tool("second", task="optional", confirm=lambda: None)(lambda: "done")
    mcp.task_tools()
    async with Client(mcp) as client:
        for tool in ("first", "second"):
            assert await text_of(client, "task_result", await started(client, f"start_{tool}")) == "done"


async def test_a_confirmation_that_a_task_needs_later_is_not_answered_by_the_model() -> None:
    mcp, texts = MCPServer("Shop"), [None, "Sure?"]
    mcp.tool("late", task="optional", confirm=lambda: texts.pop(0))(lambda: "done")
    mcp.task_tools()
    async with Client(mcp) as client:
        task_id = await started(client, "start_late")
        state = await until(client, task_id, "input_required")
        answer = {
            "key": state["questions"][0]["key"],
            "action": "accept",
            "fields": [{"name": "confirm", "value": "true"}],
        }
        assert "waits for a person's confirmation" in await text_of(client, "task_result", task_id)
        assert "not for the model" in await text_of(client, "answer_task", task_id, **answer)


def guarded() -> Shop:
    keys = APIKeys({"ada": "a" * 32, "bob": "b" * 32})
    return Shop(auth=keys)


def client_of(shop: Shop, key: str) -> Client:
    return Client(shop.mcp, headers={"x-api-key": key * 32})


async def test_tasks_of_other_callers_do_not_exist() -> None:
    shop = guarded()
    async with client_of(shop, "a") as ada, client_of(shop, "b") as bob:
        task_id = await started(ada, "start_report", {"year": 2026})
        for tool in ("task_status", "task_result", "cancel_task"):
            assert "no task with this id" in await text_of(bob, tool, task_id)
        listed = (await ada.call_tool("list_tasks")).structured_content
        assert [(task["task_id"], task["arguments"]) for task in listed["tasks"]] == [(task_id, '{"year":2026}')]
        assert (await bob.call_tool("list_tasks")).structured_content == {"tasks": []}


async def test_a_list_has_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_tools, "PAGE_SIZE", 1)
    shop = guarded()
    async with client_of(shop, "a") as ada:
        ids = {await started(ada, "start_report", {"year": year}) for year in (2025, 2026)}
        first = (await ada.call_tool("list_tasks")).structured_content
        second = (await ada.call_tool("list_tasks", {"cursor": first["next_cursor"]})).structured_content
        assert {task["task_id"] for page in (first, second) for task in page["tasks"]} == ids
        assert "cursor is invalid" in (await ada.call_tool("list_tasks", {"cursor": "x"})).text


async def test_anonymous_callers_have_no_list() -> None:
    async with Client(Shop().mcp) as client:
        assert "Keep the task ids" in (await client.call_tool("list_tasks")).text


async def test_the_general_tools_are_for_anonymous_callers_if_a_tool_is() -> None:
    mcp = MCPServer("Shop", auth=APIKeys({"ada": "a" * 32}))
    mcp.tool("private", task="optional")(lambda: "private")
    mcp.task_tools()
    catalog = runtime_of(mcp).server.catalog
    assert not catalog.has_anonymous
    mcp.tool("open", task="optional", allow_anonymous=True)(lambda: "open")
    async with Client(mcp) as client:
        assert await text_of(client, "task_result", await started(client, "start_open")) == "open"


async def test_the_tools_follow_those_with_tasks() -> None:
    mcp = MCPServer("Shop")
    mcp.task_tools()
    assert await mcp.list_tools() == []
    mcp.tool("report", task="optional", tags={"admin"})(lambda: None)
    assert [tool.name for tool in await mcp.list_tools()] == ["report", "start_report", *GENERAL]
    mcp.disable(names={"report"})
    assert await mcp.list_tools() == []


async def test_a_full_store_is_an_error_for_the_model() -> None:
    mcp = MCPServer("Shop", tasks=MemoryTasks(limits=TaskLimits(total=1)))
    mcp.tool("report", task="optional")(asyncio.Event().wait)
    mcp.task_tools()
    async with Client(mcp) as client:
        await started(client, "start_report")
        assert "too many tasks" in (await client.call_tool("start_report")).text


async def test_a_store_that_is_away_is_an_error_for_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryTasks()

    async def read(_key: Any) -> None:
        raise StoreUnavailableError(5)

    monkeypatch.setattr(store, "read", read)
    mcp = MCPServer("Shop", tasks=store)
    mcp.tool("report", task="optional")(lambda: None)
    mcp.task_tools()
    async with Client(mcp) as client:
        result = await client.call_tool("task_status", {"task_id": "A" * 44})
    assert result.is_error


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_tasks_of_a_shared_store_are_found_by_another_server(tmp_path: Path) -> None:
    shops = [Shop(tasks=SQLiteTasks(str(tmp_path / "tasks.db"))) for _ in range(2)]
    for shop in shops:
        shop.go.set()
    async with Client(shops[0].mcp) as first, Client(shops[1].mcp) as second:
        task_id = await started(first, "start_report", {"year": 2026})
        assert json.loads(await text_of(second, "task_result", task_id)) == {"year": 2026}
    for shop in shops:
        tasks = runtime_of(shop.mcp).server.tasks
        assert tasks is not None
        await tasks.stop(0)


async def test_the_author_starts_a_task_without_a_question() -> None:
    shop = Shop()
    async with Client(shop.mcp) as client:
        result = await shop.mcp.call_tool("start_delete", {"name": "order 7"})
        assert await text_of(client, "task_result", result.structured_content["task_id"]) == "deleted order 7"


async def test_a_server_without_tasks_has_no_such_tools() -> None:
    with pytest.raises(RegistrationError, match="has no tasks"):
        MCPServer("Shop", tasks=None).task_tools()


@pytest.mark.parametrize("wait", [-1, 301, True, "20"])
def test_a_wrong_wait_is_refused(wait: Any) -> None:
    with pytest.raises(ValueError, match="number of seconds from 0 to 300"):
        MCPServer("Shop").task_tools(wait=wait)


def test_a_second_set_of_task_tools_is_refused() -> None:
    mcp = MCPServer("Shop")
    mcp.task_tools()
    with pytest.raises(RegistrationError, match=r"The server has task tools already. Call mcp\.task_tools once"):
        mcp.task_tools()


def test_a_name_that_is_taken_or_too_long_is_refused() -> None:
    mcp = MCPServer("Shop")
    mcp.task_tools()
    with pytest.raises(RegistrationError, match="more than 128 characters"):
        mcp.tool("a" * 125, task="optional")(lambda: None)
    mcp.tool("start_report")(lambda: None)
    with pytest.raises(RegistrationError, match="Duplicate tool name 'start_report'"):
        mcp.tool("report", task="optional")(lambda: None)


async def test_task_result_waits_for_the_end() -> None:
    shop = Shop()
    async with Client(shop.mcp) as client:
        task_id = await started(client, "start_report", {"year": 2026})
        waiting = asyncio.ensure_future(text_of(client, "task_result", task_id))
        await until(client, task_id, "working")
        shop.go.set()
        assert json.loads(await waiting) == {"year": 2026}


async def test_a_tool_that_cannot_check_its_arguments_is_started_too() -> None:
    shop = Shop()
    catalog = runtime_of(shop.mcp).server.catalog
    tool = catalog.tools.get("broken")
    assert tool is not None
    catalog.remove(tool)
    catalog.add(replace(tool, check=None))
    async with Client(shop.mcp) as client:
        task_id = await started(client, "start_broken", {"unknown": 1})
        assert "unknown" in await text_of(client, "task_result", task_id)


async def test_tasks_of_mounted_tools_are_offered_too() -> None:
    mounted, above = MCPServer("mounted"), MCPServer("above")
    mounted.tool("report", task="optional", confirm="Sure?")(lambda: "done")
    above.task_tools()
    above.mount(mounted, prefix="shop")
    async with Client(above, elicit=accept(True)) as client:
        assert await text_of(client, "task_result", await started(client, "start_shop_report")) == "done"


async def test_a_question_to_the_model_is_asked_by_task_result() -> None:
    mcp = MCPServer("Shop")

    @mcp.tool(task="optional")
    async def advise(context: Context) -> str:
        answers = await context.ask({"name": Elicit("Your name?", str), "advice": Sample("Advice?", max_tokens=9)})
        return f"{answers['name'].content}: {answers['advice'].text}"

    async def sample(_params: dict[str, Any]) -> dict[str, Any]:
        return {"role": "assistant", "model": "m", "content": {"type": "text", "text": "rest"}}

    mcp.task_tools()
    async with Client(mcp, sample=sample) as client:
        task_id = await started(client, "start_advise")
        keys = {q["message"]: q["key"] for q in (await until(client, task_id, "input_required"))["questions"]}
        answer = {"action": "accept", "fields": [{"name": "value", "value": "Ada"}]}
        assert "not for the model" in await text_of(client, "answer_task", task_id, key=keys[""], **answer)
        await text_of(client, "answer_task", task_id, key=keys["Your name?"], **answer)
        assert await text_of(client, "task_result", task_id) == "Ada: rest"


async def test_the_values_of_a_form_have_the_types_of_its_schema() -> None:
    mcp = MCPServer("Shop")

    class Order(BaseModel):
        name: str
        count: int
        gift: bool

    @mcp.tool(task="optional")
    async def order(context: Context) -> str:
        answer = await context.elicit("What?", Order)
        return repr(answer.content)

    mcp.task_tools()
    async with Client(mcp) as client:
        task_id = await started(client, "start_order")
        key = (await until(client, task_id, "input_required"))["questions"][0]["key"]
        values = {"name": "5", "count": "many", "gift": "true", "unknown": "1"}
        for count in ("many", "5"):
            values["count"] = count
            fields = [{"name": name, "value": value} for name, value in values.items()]
            text = await text_of(client, "answer_task", task_id, key=key, action="accept", fields=fields)
            assert ("do not fit" in text) is (count == "many")
        assert await text_of(client, "task_result", task_id) == "Order(name='5', count=5, gift=True)"


@pytest.mark.parametrize("is_first", [True, False])
async def test_the_tools_follow_what_transforms_make_of_their_tools(is_first: bool) -> None:
    mcp, calls = MCPServer("Shop"), []

    @mcp.tool(task="optional")
    def report(year: int, place: str = "test") -> str:
        return f"{year} {place}"

    async def note(arguments: Any, forward: Any) -> Any:
        calls.append(arguments)
        return await forward(arguments)

    if is_first:
        mcp.task_tools()
    arguments = {"place": ArgumentChange(hide=True, default="production")}
    mcp.add_transform(ToolTransform({"report": ToolChange("summary", arguments=arguments)}))
    mcp.add_transform(Rename({"summary": "overview"}))
    mcp.add_transform(Wrap(note))
    if not is_first:
        mcp.task_tools()
    assert {tool.name for tool in await mcp.list_tools()} == {"overview", "start_overview", *GENERAL}
    async with Client(mcp) as client:
        task_id = await started(client, "start_overview", {"year": 2026})
        assert await text_of(client, "task_result", task_id) == "2026 production"
    assert calls == [{"year": 2026}]
    mcp.remove_tool("report")
    assert await mcp.list_tools() == []
