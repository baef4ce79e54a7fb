"""Tasks from the call to their end, in both eras."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import MCPServer
from funcmcp._auth.access import Access
from funcmcp._auth.owner import owner_of
from funcmcp._auth.policy import Auth
from funcmcp._auth.principal import Principal
from funcmcp._protocol.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_CLIENT_CAPABILITY,
    MCPError,
    ToolError,
)
from funcmcp._protocol.tasks import EXTENSION, RELATED_TASK
from funcmcp._server.calls.feature import TimeLimit
from funcmcp._server.catalog.features import JSONResult, RawResponse
from funcmcp._server.catalog.task_options import TaskOptions
from funcmcp._server.handlers import tasks as module
from funcmcp._server.handlers.tasks import TaskMethods
from funcmcp._server.limits import LimitReachedError
from funcmcp._server.tasks.service import change_of
from funcmcp._state.tasks.memory import MemoryTasks
from funcmcp._state.tasks.record import TaskKey
from funcmcp._state.tasks.sqlite import SQLiteTasks
from funcmcp._state.tasks.store import TaskLimits, UnreadableTaskError
from funcmcp.auth import APIKeys
from funcmcp.client import Client
from funcmcp.testing._task_stores import newer_version
from tests import schemas
from tests.clock import Clock
from tests.patience import PATIENCE
from tests.server.parts import ASK_NAME, NEWEST, PER_REQUEST, Recorder, reply_to, server, text_result, tool
from tests.server.task_parts import ALICE, BOB, ERAS, HTTP, ask, asking, create, get, serving, until, waiting

if TYPE_CHECKING:
    from pathlib import Path

    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.catalog.features import Tool
    from funcmcp._server.dispatch import Server

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")

NAME = {"action": "accept", "content": {"name": "Ada"}}
UNKNOWN = "x" * 44
WITHOUT_SUBJECT = Principal("9f86d081884c7d65", "issuer", per_token=True)


async def nobody(_credentials: Any) -> None:
    return None


async def echo(_context: RequestContext, arguments: dict[str, Any]) -> dict[str, Any]:
    return text_result(json.dumps(arguments))


async def fail(_context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
    raise ToolError("No luck")


async def break_protocol(_context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
    raise MCPError(-1, "Broken", {"why": "because"})


async def wait_forever(_context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
    await asyncio.Event().wait()
    return text_result("never")


async def ask_name(context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
    answers = await context.ask({"name": ASK_NAME})
    return text_result(answers["name"]["content"]["name"])


async def detach(context: RequestContext, arguments: dict[str, Any]) -> dict[str, Any]:
    if arguments.get("quick"):
        return text_result("at once")
    answers = await context.ask({"name": ASK_NAME})
    await context.detach()
    return text_result(f"{answers['name']['content']['name']} {context.task_id is not None}")


def job(name: str = "job", handler: Any = echo, **options: Any) -> Tool:
    mode = options.pop("mode", "optional")
    names = ("access", "check", "time_limit", "task_time_limit", "interactive")
    members = {key: options.pop(key) for key in names if key in options}
    return tool(name, handler, task=TaskOptions(mode, **options), **members)


@pytest.mark.parametrize("revision", ERAS)
async def test_a_task_is_found_at_once_and_ends_with_the_result_of_the_call(revision: str) -> None:
    async with serving(job()) as served:
        task_id = await create(served, "job", {"a": [1, {}]}, revision=revision)
        assert (await get(served, task_id, revision=revision))["taskId"] == task_id
        task = await until(served, task_id, "completed", revision=revision)
        if revision == PER_REQUEST:
            assert task["result"]["content"] == text_result('{"a": [1, {}]}')["content"]
        else:
            assert "result" not in task
            result = (await ask(served, "tasks/result", {"taskId": task_id}, revision=revision))["result"]
            assert result["content"] == text_result('{"a": [1, {}]}')["content"]
            assert result["_meta"] == {"io.modelcontextprotocol/related-task": {"taskId": task_id}}


async def test_the_created_task_is_flat_and_has_no_result() -> None:
    async with serving(job(ttl=10, poll=2)) as served:
        result = (await ask(served, "tools/call", {"name": "job", "task": {"ttl": -1}}))["result"]
        assert result["resultType"] == "task"
        assert (result["ttlMs"], result["pollIntervalMs"], result["status"]) == (10_000, 2000, "working")
        assert result.keys() & {"task", "result", "error", "requestState", "inputRequests", "ttl"} == set()
        assert len(result["taskId"]) == 44


async def test_a_result_that_is_json_already_is_returned_unchanged() -> None:
    async def large(_context: RequestContext, _arguments: dict[str, Any]) -> JSONResult:
        return JSONResult(b'"text"', b'{"empty":[],"large":9223372036854775808}')

    async with serving(job(handler=large)) as served:
        task_id = await create(served, "job")
        await until(served, task_id, "completed")
        reply = await reply_to(served, asking("tasks/get", {"taskId": task_id}))
        assert b'"structuredContent":{"empty":[],"large":9223372036854775808}' in reply.body


@pytest.mark.parametrize("member", ["result", "error"])
async def test_a_response_that_the_tool_made_itself_ends_the_task(member: str) -> None:
    value: dict[str, Any] = text_result("own") if member == "result" else {"code": 7, "message": "own"}

    async def respond(context: RequestContext, _arguments: dict[str, Any]) -> RawResponse:
        return RawResponse({"jsonrpc": "2.0", "id": context.request.id, member: value})

    async with serving(job(handler=respond)) as served:
        task = await until(served, await create(served, "job"), "completed", "failed")
        assert {**task[member], **value} == task[member]


@pytest.mark.parametrize(("revision", "status"), [(NEWEST, "failed"), (PER_REQUEST, "completed")])
async def test_a_tools_failure_is_a_result(revision: str, status: str) -> None:
    async with serving(job(handler=fail)) as served:
        task_id = await create(served, "job", revision=revision)
        task = await until(served, task_id, "completed", "failed", revision=revision)
        assert (task["status"], task["statusMessage"]) == (status, "No luck")
        if revision == PER_REQUEST:
            result = task["result"]
        else:
            result = (await ask(served, "tasks/result", {"taskId": task_id}, revision=revision))["result"]
        assert (result["content"], result["isError"]) == (text_result("No luck")["content"], True)


async def test_a_tools_failure_without_text_has_no_message() -> None:
    async def show(_context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}], "isError": True}

    async with serving(job(handler=show)) as served:
        task = await until(served, await create(served, "job"), "completed")
        assert (task["result"]["isError"], "statusMessage" in task) == (True, False)


@pytest.mark.parametrize("revision", ERAS)
async def test_an_mcp_error_fails_the_task_in_both_eras(revision: str) -> None:
    error = {"code": -1, "message": "Broken", "data": {"why": "because"}}
    async with serving(job(handler=break_protocol)) as served:
        task_id = await create(served, "job", revision=revision)
        task = await until(served, task_id, "failed", revision=revision)
        assert task["statusMessage"] == "Broken"
        if revision == PER_REQUEST:
            assert (task["error"], "result" in task) == (error, False)
        else:
            assert (await ask(served, "tasks/result", {"taskId": task_id}, revision=revision))["error"] == error


async def test_a_result_that_is_no_json_fails_the_task(caplog: pytest.LogCaptureFixture) -> None:
    async def wrong(_context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
        return {"content": [], "structuredContent": {"x": float("nan")}}

    async with serving(job(handler=wrong)) as served:
        task = await until(served, await create(served, "job"), "failed")
        assert (task["error"]["code"], task["error"]["message"]) == (-32603, "Internal error")
        assert task["error"]["data"]["errorId"] in caplog.text


@pytest.mark.parametrize("as_json", [True, False])
async def test_a_result_that_is_too_large_is_an_error_in_words(as_json: bool) -> None:
    async def large(_context: RequestContext, _arguments: dict[str, Any]) -> Any:
        return JSONResult(b'"%b"' % (b"x" * 1000)) if as_json else text_result("x" * 1000)

    store = MemoryTasks(limits=TaskLimits(result_bytes=500))
    async with serving(job(handler=large), tasks=store) as served:
        task = await until(served, await create(served, "job"), "completed")
        assert task["result"]["isError"] is True
        assert task["result"]["content"][0]["text"].endswith(" bytes; 500 fit.")


async def test_a_run_of_a_task_has_the_time_limit_of_its_tool() -> None:
    async with serving(job("limited", wait_forever, task_time_limit=TimeLimit(0.01))) as served:
        task = await until(served, await create(served, "limited"), "completed")
        assert task["result"]["content"] == text_result("It did not finish within 0.01 seconds (timeout=).")["content"]


async def test_a_task_that_is_not_over_at_its_ttl_has_failed_and_its_run_is_stopped() -> None:
    wait, stopped = waiting()
    async with serving(job(handler=wait, ttl=1)) as served:
        task = await until(served, await create(served, "job"), "failed")
        assert task["error"] == {"code": -32603, "message": "The task did not finish within 1 second (its ttl)."}
        await asyncio.wait_for(stopped.wait(), PATIENCE)


# Who gets a task


async def test_a_client_of_the_extension_that_does_not_declare_it_gets_a_plain_call() -> None:
    async with serving(job()) as served:
        undeclared: list[dict[str, Any]] = [{}, {"extensions": {}}, {"tasks": {}}]
        for capabilities in undeclared:
            result = (await ask(served, "tools/call", {"name": "job"}, capabilities=capabilities))["result"]
            assert result["resultType"] == "complete"


async def test_a_tool_that_runs_only_as_a_task_is_refused_without_the_extension() -> None:
    async with serving(job(mode="required")) as served:
        error = (await ask(served, "tools/call", {"name": "job"}, capabilities={}))["error"]
        assert error["code"] == MISSING_CLIENT_CAPABILITY
        assert error["message"] == (
            f"This tool runs only as a task, which needs a client that declares: extensions.{EXTENSION}"
        )
        assert error["data"] == {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18", NEWEST])
async def test_without_tasks_an_optional_tool_runs_in_the_call_and_a_required_one_is_refused(revision: str) -> None:
    async with serving(job("optional"), job("required", mode="required")) as served:
        assert "content" in (await ask(served, "tools/call", {"name": "optional"}, revision=revision))["result"]
        error = (await ask(served, "tools/call", {"name": "required"}, revision=revision))["error"]
        assert error["code"] == METHOD_NOT_FOUND


async def test_a_tool_without_tasks_refuses_one_in_2025_11_25_and_ignores_the_member_in_the_extension() -> None:
    params = {"name": "plain", "task": {"ttl": 1000}}
    async with serving(tool("plain"), job()) as served:
        error = (await ask(served, "tools/call", params, revision=NEWEST))["error"]
        assert error == {"code": METHOD_NOT_FOUND, "message": "This tool does not run as a task."}
        assert (await ask(served, "tools/call", params))["result"]["resultType"] == "complete"
        assert "content" in (await ask(served, "tools/call", params, revision="2025-06-18"))["result"]


@pytest.mark.parametrize(
    ("ttl", "seconds"), [(None, 600), (1000, 60), (0, 60), (90_500, 90.5), (1e30, 600), (10**400, 600), (600_000, 600)]
)
async def test_a_client_of_2025_11_25_chooses_the_ttl_within_limits(ttl: float | None, seconds: float) -> None:
    async with serving(job(ttl=600)) as served:
        task = {} if ttl is None else {"ttl": ttl}
        result = (await ask(served, "tools/call", {"name": "job", "task": task}, revision=NEWEST))["result"]
        assert result["task"]["ttl"] == seconds * 1000


@pytest.mark.parametrize("task", [None, [], "x", {"ttl": -1}, {"ttl": "x"}, {"ttl": True}])
async def test_an_invalid_request_for_a_task_is_refused(task: Any) -> None:
    async with serving(job()) as served:
        error = (await ask(served, "tools/call", {"name": "job", "task": task}, revision=NEWEST))["error"]
        assert error["code"] == INVALID_PARAMS


def reject(_arguments: dict[str, Any]) -> None:
    raise ToolError("a: is required")


async def test_invalid_arguments_are_told_at_once_by_the_extension_and_fail_the_task_in_2025_11_25() -> None:
    async def handler(_context: RequestContext, arguments: dict[str, Any]) -> dict[str, Any]:
        reject(arguments)
        return {}

    async with serving(job(handler=handler, check=reject)) as served:
        result = (await ask(served, "tools/call", {"name": "job"}))["result"]
        assert (result["resultType"], result["isError"]) == ("complete", True)
        task = await until(served, await create(served, "job", revision=NEWEST), "failed", revision=NEWEST)
        assert task["statusMessage"] == "a: is required"


async def test_valid_arguments_become_a_task() -> None:
    async with serving(job(check=lambda _arguments: None)) as served:
        await until(served, await create(served, "job"), "completed")


# Looking a task up


@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize("task_id", ["", "x", UNKNOWN, "a\x00b", "../..", "x" * 1_000_000, "ä" * 44])
async def test_an_unknown_id_is_an_invalid_parameter(task_id: str, revision: str) -> None:
    async with serving(job()) as served:
        for method, params in {"tasks/get": {}, "tasks/cancel": {}, **_more(revision)}.items():
            error = (await ask(served, method, {"taskId": task_id, **params}, revision=revision))["error"]
            assert error == {"code": INVALID_PARAMS, "message": "Task not found"}


def _more(revision: str) -> dict[str, dict[str, Any]]:
    return {"tasks/update": {"inputResponses": {}}} if revision == PER_REQUEST else {"tasks/result": {}}


@pytest.mark.parametrize("params", [{}, {"taskId": None}, {"taskId": 7}, {"taskId": ["x"]}])
async def test_an_id_is_a_string(params: dict[str, Any]) -> None:
    async with serving(job()) as served:
        error = (await ask(served, "tasks/get", params))["error"]
        assert error == {"code": INVALID_PARAMS, "message": '"taskId" must be a string.'}


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
async def test_an_undeclared_client_gets_the_missing_capability_before_anything_else(method: str) -> None:
    async with serving(job()) as served:
        for params in ({}, {"taskId": UNKNOWN}, {"taskId": await create(served, "job")}):
            error = (await ask(served, method, params, capabilities={}))["error"]
            assert error["code"] == MISSING_CLIENT_CAPABILITY
            assert error["data"] == {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}


@pytest.mark.parametrize(("method", "revision"), [("tasks/result", PER_REQUEST), ("tasks/list", PER_REQUEST)])
async def test_what_the_extension_removed_is_not_found(method: str, revision: str) -> None:
    async with serving(job()) as served:
        error = (await ask(served, method, {"taskId": UNKNOWN}, revision=revision))["error"]
        assert error["code"] == METHOD_NOT_FOUND


@pytest.mark.parametrize("revision", ERAS)
async def test_another_callers_task_is_an_unknown_one_byte_for_byte(revision: str) -> None:
    callers = [HTTP(ALICE), HTTP(BOB), HTTP(None)]
    async with serving(job(handler=wait_forever)) as served:
        for owner in callers:
            task_id = await create(served, "job", revision=revision, http=owner)
            before = await get(served, task_id, revision=revision, http=owner)
            for caller in callers:
                if caller is owner:
                    continue
                for method, params in {"tasks/get": {}, "tasks/cancel": {}, **_more(revision)}.items():
                    replies = [
                        await reply_to(
                            served, asking(method, {"taskId": name, **params}, revision=revision, http=caller)
                        )
                        for name in (task_id, UNKNOWN)
                    ]
                    assert replies[0].body == replies[1].body
            assert await get(served, task_id, revision=revision, http=owner) == before


async def test_a_caller_who_may_not_use_the_tool_any_more_does_not_find_the_task() -> None:
    scoped = job(handler=wait_forever, access=Access(required_scopes=("read",)))
    async with serving(scoped, auth=Auth(nobody)) as served:
        task_id = await create(served, "job", http=HTTP(ALICE))
        assert (await get(served, task_id, http=HTTP(ALICE)))["taskId"] == task_id
        withdrawn = HTTP(type(ALICE)(ALICE.subject, ALICE.issuer))
        before = await get(served, task_id, http=HTTP(ALICE))
        for method, params in {"tasks/get": {}, "tasks/cancel": {}, **_more(PER_REQUEST)}.items():
            replies = [
                (await reply_to(served, asking(method, {"taskId": name, **params}, http=withdrawn))).body
                for name in (task_id, UNKNOWN)
            ]
            assert replies[0] == replies[1]
            assert json.loads(replies[0])["error"] == {"code": INVALID_PARAMS, "message": "Task not found"}
        assert await get(served, task_id, http=HTTP(ALICE)) == before


# Questions


async def test_a_question_is_answered_by_update_and_the_tool_runs_again() -> None:
    async with serving(job(handler=ask_name)) as served:
        task_id = await create(served, "job")
        task = await until(served, task_id, "input_required")
        assert task["inputRequests"] == {"name.1": ASK_NAME}
        for useless in ({}, {"name": NAME}, {"other.1": NAME, "name.2": 7}):
            result = (await ask(served, "tasks/update", {"taskId": task_id, "inputResponses": useless}))["result"]
            assert result["resultType"] == "complete"
            assert (await get(served, task_id))["status"] == "input_required"
        answers = {"taskId": task_id, "inputResponses": {"name.1": NAME}}
        await ask(served, "tasks/update", answers)
        task = await until(served, task_id, "completed")
        assert task["result"]["content"] == text_result("Ada")["content"]
        assert (await ask(served, "tasks/update", answers))["result"]["resultType"] == "complete"
        assert await get(served, task_id) == task


@pytest.mark.parametrize("wrong", [None, 7, [], {}, {"action": "accept"}, {"action": "accept", "content": {"name": 7}}])
async def test_an_answer_that_does_not_fit_is_refused_and_nothing_is_taken(wrong: Any) -> None:
    async def ask_two(context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
        await context.ask({"a": ASK_NAME, "b": ASK_NAME})
        return text_result("done")

    async with serving(job(handler=ask_two)) as served:
        task_id = await create(served, "job")
        before = await until(served, task_id, "input_required")
        responses = {"a.1": NAME, "b.2": wrong}
        error = (await ask(served, "tasks/update", {"taskId": task_id, "inputResponses": responses}))["error"]
        assert error == {"code": INVALID_PARAMS, "message": "The answer 'b.2' does not fit its question."}
        assert await get(served, task_id) == before


async def test_an_answer_that_comes_after_a_cancellation_is_ignored() -> None:
    async with serving(job(handler=ask_name)) as served:
        task_id = await create(served, "job")
        await until(served, task_id, "input_required")
        assert served.tasks is not None
        methods = TaskMethods(served.tasks, served.results, hub=served.hub, load=served.load)
        record = await served.tasks.store.read(TaskKey(None, task_id))
        assert record is not None
        await served.tasks.cancel(record)
        await methods.take(record, {"name.1": NAME})
        assert (await get(served, task_id))["status"] == "cancelled"


@pytest.mark.parametrize("params", [{}, {"inputResponses": None}, {"inputResponses": []}])
async def test_responses_are_an_object(params: dict[str, Any]) -> None:
    async with serving(job(handler=ask_name)) as served:
        task_id = await create(served, "job")
        error = (await ask(served, "tasks/update", {"taskId": task_id, **params}))["error"]
        assert error == {"code": INVALID_PARAMS, "message": '"inputResponses" must be an object.'}


async def test_ten_thousand_keys_that_nobody_asked_for_are_ignored() -> None:
    async with serving(job(handler=ask_name)) as served:
        task_id = await create(served, "job")
        await until(served, task_id, "input_required")
        responses = {f"key {number}": NAME for number in range(10_000)}
        assert "result" in await ask(served, "tasks/update", {"taskId": task_id, "inputResponses": responses})


async def test_a_client_of_2025_11_25_is_asked_on_the_stream_of_tasks_result() -> None:
    channel = Recorder({"name.1": NAME})
    async with serving(job(handler=ask_name)) as served:
        task_id = await create(served, "job", revision=NEWEST)
        params = {"taskId": task_id}
        result = (await ask(served, "tasks/result", params, revision=NEWEST, channel=channel))["result"]
        assert result["content"] == text_result("Ada")["content"]
        (asked,) = channel.asked
        question = asked["name.1"]
        assert question["method"] == "elicitation/create"
        assert question["params"]["_meta"] == {"io.modelcontextprotocol/related-task": params}


async def test_an_answer_on_the_stream_that_does_not_fit_ends_the_request_but_not_the_task() -> None:
    channel = Recorder({"name.1": {"action": "accept", "content": {}}})
    async with serving(job(handler=ask_name)) as served:
        task_id = await create(served, "job", revision=NEWEST)
        reply = await ask(served, "tasks/result", {"taskId": task_id}, revision=NEWEST, channel=channel)
        assert reply["error"]["code"] == INVALID_PARAMS
        assert (await get(served, task_id, revision=NEWEST))["status"] == "input_required"


class Silent(Recorder):
    """A channel to a client that never answers a question."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asking = asyncio.Event()

    async def ask(self, questions: Any) -> Any:
        self.is_asking.set()
        await asyncio.Event().wait()


@pytest.mark.parametrize("end", ["cancel", "expire", "answer"])
async def test_tasks_result_stops_asking_when_the_task_needs_no_answer(
    monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    monkeypatch.setattr(module, "_LOOK_INTERVAL", 0.02)
    channel = Silent()
    clock = Clock()
    async with serving(job(handler=ask_name), tasks=MemoryTasks(clock=clock)) as served:
        task_id = await create(served, "job", revision=NEWEST)
        await until(served, task_id, "input_required", revision=NEWEST)
        params = {"taskId": task_id}
        waiting = asyncio.ensure_future(ask(served, "tasks/result", params, revision=NEWEST, channel=channel))
        async with asyncio.timeout(PATIENCE):
            await channel.is_asking.wait()
            if end == "cancel":
                await ask(served, "tasks/cancel", params, revision=NEWEST)
                expected: dict[str, Any] = {"error": {"code": -32603, "message": "The task was cancelled."}}
            elif end == "expire":
                clock.now += 4000
                text = "The task did not finish within 3600 seconds (its ttl)."
                expected = {"error": {"code": -32603, "message": text}}
            else:
                await ask(served, "tasks/result", params, revision=NEWEST, channel=Recorder({"name.1": NAME}))
                expected = {"result": {**text_result("Ada"), "_meta": {RELATED_TASK: params}}}
            reply = await waiting
        assert reply == {"jsonrpc": "2.0", "id": 1, **expected}
        assert served.load.streams.used == 0


async def test_a_question_to_a_client_without_a_stream_is_refused_in_words() -> None:
    async with serving(job(handler=ask_name)) as served:
        task_id = await create(served, "job", revision=NEWEST)
        reply = await ask(served, "tasks/result", {"taskId": task_id}, revision=NEWEST)
        assert reply["error"] == {
            "code": -32603,
            "message": "The client can't be asked here: it accepts no event stream.",
        }


async def test_a_question_that_the_client_can_not_answer_fails_the_tool() -> None:
    async with serving(job(handler=ask_name)) as served:
        capabilities: dict[str, Any] = {"extensions": {EXTENSION: {}}}
        task = await until(served, await create(served, "job", capabilities=capabilities), "failed")
        assert task["error"]["code"] == MISSING_CLIENT_CAPABILITY


# Detaching


async def test_a_tool_asks_within_the_call_and_then_becomes_a_task() -> None:
    async with serving(job(handler=detach, detaches=True, interactive=True)) as served:
        first = (await ask(served, "tools/call", {"name": "job"}))["result"]
        assert first["resultType"] == "input_required"
        assert "taskId" not in first
        again = {"name": "job", "inputResponses": {"name": NAME}, "requestState": first["requestState"]}
        created = (await ask(served, "tools/call", again))["result"]
        assert created["resultType"] == "task"
        assert created.keys() & {"requestState", "inputRequests"} == set()
        task = await until(served, created["taskId"], "completed")
        assert task["result"]["content"] == text_result("Ada True")["content"]


async def test_a_tool_that_does_not_detach_answers_at_once() -> None:
    async with serving(job(handler=detach, detaches=True, interactive=True)) as served:
        result = (await ask(served, "tools/call", {"name": "job", "arguments": {"quick": True}}))["result"]
        assert (result["resultType"], result["content"]) == ("complete", text_result("at once")["content"])


async def test_a_tool_detaches_from_a_task_group_and_before_it_asks_anything() -> None:
    async def handler(context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
        async with asyncio.TaskGroup() as group:
            group.create_task(context.detach())
        return text_result("done")

    async with serving(job(handler=handler, detaches=True)) as served:
        await until(served, await create(served, "job"), "completed")


async def test_without_the_extension_a_tool_that_detaches_goes_on_in_the_call() -> None:
    capabilities: dict[str, Any] = {"elicitation": {}}
    async with serving(job(handler=detach, detaches=True, interactive=True)) as served:
        params: dict[str, Any] = {"name": "job", "inputResponses": {"name": NAME}}
        result = (await ask(served, "tools/call", params, capabilities=capabilities))["result"]
        assert result["content"] == text_result("Ada False")["content"]


# Cancelling, waiting and listing


async def test_a_cancelled_task_stops_and_stays_cancelled() -> None:
    async with serving(job(handler=wait_forever)) as served:
        task_id = await create(served, "job")
        await asyncio.sleep(0.01)
        for _ in range(2):
            result = (await ask(served, "tasks/cancel", {"taskId": task_id}))["result"]
            assert result["resultType"] == "complete"
            assert result.keys() & {"taskId", "status", "result", "error", "inputRequests"} == set()
        assert (await get(served, task_id))["status"] == "cancelled"


async def test_2025_11_25_returns_the_cancelled_task_and_refuses_one_that_has_ended() -> None:
    async with serving(job(handler=wait_forever)) as served:
        task_id = await create(served, "job", revision=NEWEST)
        result = (await ask(served, "tasks/cancel", {"taskId": task_id}, revision=NEWEST))["result"]
        assert (result["taskId"], result["status"]) == (task_id, "cancelled")
        error = (await ask(served, "tasks/cancel", {"taskId": task_id}, revision=NEWEST))["error"]
        assert error == {"code": INVALID_PARAMS, "message": "The task has ended and can't be cancelled."}
        error = (await ask(served, "tasks/result", {"taskId": task_id}, revision=NEWEST))["error"]
        assert error == {"code": -32603, "message": "The task was cancelled."}


async def test_tasks_result_waits_for_the_end() -> None:
    go = asyncio.Event()

    async def wait(_context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
        await go.wait()
        return {**text_result("done"), "_meta": {"own": 1}}

    async with serving(job(handler=wait)) as served:
        task_id = await create(served, "job", revision=NEWEST)
        waiting = asyncio.ensure_future(ask(served, "tasks/result", {"taskId": task_id}, revision=NEWEST))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        assert served.load.runs.used == 0
        go.set()
        async with asyncio.timeout(PATIENCE):
            result = (await waiting)["result"]
        related = {"io.modelcontextprotocol/related-task": {"taskId": task_id}}
        assert result == {**text_result("done"), "_meta": {"own": 1, **related}}
        assert served.load.streams.used == 0


async def test_tasks_result_looks_at_the_task_even_if_no_change_is_published(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOOK_INTERVAL", 0.02)
    async with serving(job(handler=wait_forever)) as served:
        task_id = await create(served, "job", revision=NEWEST)
        waiting = asyncio.ensure_future(ask(served, "tasks/result", {"taskId": task_id}, revision=NEWEST))
        await asyncio.sleep(0.05)
        assert served.tasks is not None
        await served.tasks.store.cancel(TaskKey(None, task_id))
        assert (await waiting)["error"]["message"] == "The task was cancelled."


async def test_tasks_result_ends_when_the_server_stops() -> None:
    async with serving(job(handler=wait_forever)) as served:
        task_id = await create(served, "job", revision=NEWEST)
        waiting = asyncio.ensure_future(ask(served, "tasks/result", {"taskId": task_id}, revision=NEWEST))
        await asyncio.sleep(0.05)
        served.hub.close()
        assert (await waiting)["error"] == {"code": -32603, "message": "The server stops. Send the request again."}


async def test_a_platform_without_streams_answers_for_tasks_that_have_ended_only() -> None:
    http = HTTP(can_stream=False)
    async with serving(job(), job("forever", wait_forever)) as served:
        ended = await create(served, "job", revision=NEWEST, http=http)
        await until(served, ended, "completed", revision=NEWEST, http=http)
        assert "result" in await ask(served, "tasks/result", {"taskId": ended}, revision=NEWEST, http=http)
        running = await create(served, "forever", revision=NEWEST, http=http)
        error = (await ask(served, "tasks/result", {"taskId": running}, revision=NEWEST, http=http))["error"]
        assert (error["code"], "Poll tasks/get" in error["message"]) == (-32603, True)


async def test_tasks_are_listed_for_their_principal_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAGE_SIZE", 2)
    async with serving(job()) as served:
        created = []
        for _ in range(5):
            created.append(await create(served, "job", revision=NEWEST, http=HTTP(ALICE)))
            await create(served, "job", revision=NEWEST, http=HTTP(BOB))
            await asyncio.sleep(0.002)
        listed: list[str] = []
        params: dict[str, Any] = {}
        for _ in range(3):
            page = (await ask(served, "tasks/list", params, revision=NEWEST, http=HTTP(ALICE)))["result"]
            listed += [task["taskId"] for task in page["tasks"]]
            params = {"cursor": page.get("nextCursor")}
        assert listed == created
        assert params == {"cursor": None}


@pytest.mark.parametrize("cursor", [7, "x", "1.2", ["x"]])
async def test_an_invalid_cursor_is_refused(cursor: Any) -> None:
    async with serving(job()) as served:
        error = (await ask(served, "tasks/list", {"cursor": cursor}, revision=NEWEST, http=HTTP(ALICE)))["error"]
        assert error["code"] == INVALID_PARAMS
        assert "cursor" in error["message"]


@pytest.mark.parametrize("cursor", ["", None])
async def test_an_empty_cursor_is_the_first_page(cursor: str | None) -> None:
    async with serving(job()) as served:
        answer = await ask(served, "tasks/list", {"cursor": cursor}, revision=NEWEST, http=HTTP(ALICE))
        assert answer["result"]["tasks"] == []


@pytest.mark.parametrize("http", [None, HTTP(), HTTP(WITHOUT_SUBJECT)])
async def test_nobody_else_gets_a_list(http: HTTP | None) -> None:
    async with serving(job()) as served:
        await create(served, "job", revision=NEWEST, http=http)
        error = (await ask(served, "tasks/list", {}, revision=NEWEST, http=http))["error"]
        assert error["code"] == METHOD_NOT_FOUND


# Notifications


class Listening:
    """A client that listens to tasks."""

    def __init__(self, served: Server, task_ids: Any, **options: Any) -> None:
        self.channel = Recorder()
        request = asking(
            "subscriptions/listen", {"notifications": {"taskIds": task_ids}}, channel=self.channel, **options
        )
        self.reply = asyncio.ensure_future(reply_to(served, request))

    async def received(self, status: str | None = None) -> list[dict[str, Any]]:
        """Return the params of all notifications once the last one has a status; None is the acknowledgement."""
        sent = self.channel.sent
        async with asyncio.timeout(PATIENCE):
            while not sent or sent[-1][1].get("status") != status:  # noqa: ASYNC110 - the channel has no event
                await asyncio.sleep(0.005)
        for method, params in sent[1:]:
            schemas.validate_as(
                {"jsonrpc": "2.0", "method": method, "params": params}, "ext-tasks", "TaskStatusNotification"
            )
        return [params for _method, params in sent]


async def test_a_client_that_listens_gets_the_state_first_and_then_each_change() -> None:
    async with serving(job(handler=ask_name)) as served:
        task_id = await create(served, "job")
        await until(served, task_id, "input_required")
        listening = Listening(served, [task_id, UNKNOWN, "x"])
        acknowledged, state = await listening.received("input_required")
        assert acknowledged["notifications"] == {"taskIds": [task_id]}
        assert (state["status"], state["inputRequests"]) == ("input_required", {"name.1": ASK_NAME})
        await ask(served, "tasks/update", {"taskId": task_id, "inputResponses": {"name.1": NAME}})
        last = (await listening.received("completed"))[-1]
        assert last["result"]["content"] == text_result("Ada")["content"]
        assert last["_meta"] == {"io.modelcontextprotocol/subscriptionId": 1}
        served.hub.close()
        await listening.reply


async def test_a_failed_task_is_sent_with_its_error() -> None:
    async with serving(job(handler=break_protocol)) as served:
        task_id = await create(served, "job")
        await until(served, task_id, "failed")
        listening = Listening(served, [task_id])
        assert (await listening.received("failed"))[-1]["error"]["code"] == -1
        served.hub.close()
        await listening.reply


async def test_another_callers_task_is_neither_honoured_nor_sent() -> None:
    async with serving(job()) as served:
        task_id = await create(served, "job", http=HTTP(ALICE))
        listening = Listening(served, [task_id], http=HTTP(BOB))
        (acknowledged,) = await listening.received()
        assert acknowledged["notifications"] == {"taskIds": []}
        served.hub.close()
        await listening.reply


async def test_a_caller_who_may_not_use_the_tool_any_more_can_not_listen_to_its_task() -> None:
    scoped = job(handler=wait_forever, access=Access(required_scopes=("read",)))
    async with serving(scoped, auth=Auth(nobody)) as served:
        task_id = await create(served, "job", http=HTTP(ALICE))
        withdrawn = HTTP(type(ALICE)(ALICE.subject, ALICE.issuer))
        listening = [Listening(served, [name], http=withdrawn) for name in (task_id, UNKNOWN)]
        acknowledged = [await each.received() for each in listening]
        assert acknowledged[0] == acknowledged[1]
        assert acknowledged[0][0]["notifications"] == {"taskIds": []}
        served.hub.close()
        for each in listening:
            await each.reply
            assert len(each.channel.sent) == 1


async def test_a_listener_who_loses_access_to_the_tool_gets_no_more_states_of_its_task() -> None:
    allowed = {ALICE.subject}
    guarded = job(handler=wait_forever, access=Access(authorize=lambda principal: principal.subject in allowed))
    async with serving(guarded, auth=Auth(nobody)) as served:
        task_id = await create(served, "job", http=HTTP(ALICE))
        listening = Listening(served, [task_id], http=HTTP(ALICE))
        assert [params.get("status") for params in await listening.received("working")] == [None, "working"]
        allowed.clear()
        assert served.tasks is not None
        key = TaskKey(owner_of(ALICE), task_id)
        cancelled = await served.tasks.store.cancel(key)
        assert cancelled is not None
        served.tasks.changed(cancelled)
        served.hub.close()
        await listening.reply
        assert len(listening.channel.sent) == 2


async def test_a_call_while_the_server_stops_makes_a_task_only_if_another_process_can_run_it() -> None:
    class SharedTasks(MemoryTasks):
        shared = True

    for store, code in ((MemoryTasks(), -32603), (SharedTasks(), None)):
        async with serving(job(handler=wait_forever, mode="required"), tasks=store) as served:
            running = await create(served, "job")
            assert served.tasks is not None
            stopping = asyncio.ensure_future(served.tasks.stop(5))
            await asyncio.sleep(0.02)
            reply = await ask(served, "tools/call", {"name": "job", "arguments": {}})
            if code is None:
                waiting = reply["result"]["taskId"]
                assert (await get(served, waiting))["status"] == "working"
            else:
                assert reply["error"] == {"code": code, "message": "The server stops. Send the request again."}
            await ask(served, "tasks/cancel", {"taskId": running})
            async with asyncio.timeout(PATIENCE):
                await stopping
            assert len(store) == (1 if code else 2)


async def test_a_task_that_was_removed_is_sent_no_more() -> None:
    clock = Clock()
    async with serving(job(), tasks=MemoryTasks(clock=clock)) as served:
        task_id = await create(served, "job")
        await until(served, task_id, "completed")
        listening = Listening(served, [task_id])
        await listening.received("completed")
        clock.now += 100_000
        served.hub.publish(change_of(TaskKey(None, task_id)))
        served.hub.close()
        await listening.reply
        assert len(listening.channel.sent) == 2


async def test_tasks_are_not_listened_to_without_the_extension_or_with_wrong_ids() -> None:
    async with serving(job()) as served:
        undeclared = await Listening(served, [], capabilities={}).reply
        assert undeclared.error == MISSING_CLIENT_CAPABILITY
        wrong: list[Any] = ["x", [7], ["x"] * 2000]
        for task_ids in wrong:
            assert (await Listening(served, task_ids).reply).error == INVALID_PARAMS
    without = server(tool("plain"))
    listening = Listening(without, ["x"], capabilities={})
    (acknowledged,) = await listening.received()
    assert acknowledged["notifications"] == {}
    without.hub.close()
    await listening.reply


# Limits and capabilities


async def test_too_many_tasks_of_one_principal_are_refused_and_others_are_served() -> None:
    store = MemoryTasks(limits=TaskLimits(live_per_principal=3, total=5))
    async with serving(job(handler=wait_forever, mode="required"), tasks=store) as served:
        for _ in range(3):
            await create(served, "job", http=HTTP(ALICE))
        with pytest.raises(LimitReachedError) as caught:
            await create(served, "job", http=HTTP(ALICE))
        assert (caught.value.is_caller_limit, caught.value.retry_after) == (True, 60)
        await create(served, "job", http=HTTP(BOB))
        await create(served, "job")
        with pytest.raises(LimitReachedError) as caught:
            await create(served, "job", http=HTTP(BOB))
        assert caught.value.is_caller_limit is False


async def test_a_tool_that_needs_no_task_runs_as_a_plain_call_while_others_take_all_room() -> None:
    async def quick(_context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
        return text_result("done")

    store = MemoryTasks(limits=TaskLimits(live_per_principal=2, total=2))
    tools = [job("wait", wait_forever), job("quick", quick), job("long", quick, mode="required")]
    async with serving(*tools, tasks=store) as served:
        for _ in range(2):
            await create(served, "wait", http=HTTP(ALICE))
        answered = await ask(served, "tools/call", {"name": "quick", "arguments": {}}, http=HTTP(BOB))
        assert answered["result"]["content"] == [{"type": "text", "text": "done"}]
        with pytest.raises(LimitReachedError):
            await create(served, "long", http=HTTP(BOB))
    async with serving(*tools, tasks=MemoryTasks(limits=TaskLimits(live_per_principal=1))) as served:
        await create(served, "wait", http=HTTP(ALICE))
        with pytest.raises(LimitReachedError) as caught:
            await create(served, "quick", http=HTTP(ALICE))
        assert caught.value.is_caller_limit is True


@pytest.mark.parametrize("http", [HTTP(ALICE, "principal:alice"), HTTP(None, "address:192.0.2.1")])
async def test_the_arguments_of_one_callers_tasks_have_so_many_bytes_and_others_are_served(http: HTTP) -> None:
    store = MemoryTasks(limits=TaskLimits(total_bytes=40_000, bytes_per_principal=20_000))
    async with serving(job(handler=wait_forever, mode="required"), tasks=store) as served:
        await create(served, "job", {"text": "x" * 15_000}, http=http)
        with pytest.raises(LimitReachedError, match="The arguments and results of your tasks") as caught:
            await create(served, "job", {"text": "x" * 15_000}, http=http)
        assert (caught.value.is_caller_limit, caught.value.retry_after) == (True, 60)
        await create(served, "job", {"text": "x" * 15_000}, http=HTTP(None, "address:192.0.2.2"))
        with pytest.raises(LimitReachedError, match="The arguments and results of all tasks") as caught:
            await create(served, "job", {"text": "x" * 15_000})
        assert caught.value.is_caller_limit is False


async def test_callers_whose_address_is_unknown_have_the_limit_of_all_callers() -> None:
    store = MemoryTasks(limits=TaskLimits(total_bytes=40_000))
    async with serving(job(handler=wait_forever, mode="required"), tasks=store) as served:
        for _ in range(2):
            await create(served, "job", {"text": "x" * 15_000})
        with pytest.raises(LimitReachedError) as caught:
            await create(served, "job", {"text": "x" * 15_000})
        assert caught.value.is_caller_limit is False


async def test_an_answer_for_which_there_is_no_room_is_refused_and_the_question_stays_open() -> None:
    store = MemoryTasks(limits=TaskLimits(bytes_per_principal=8000))
    async with serving(job(handler=ask_name), tasks=store) as served:
        task_id = await create(served, "job", http=HTTP(ALICE))
        (key,) = (await until(served, task_id, "input_required", http=HTTP(ALICE)))["inputRequests"]
        answer = {"action": "accept", "content": {"name": "x" * 8000}}
        with pytest.raises(LimitReachedError, match="The arguments and results of your tasks"):
            await ask(served, "tasks/update", {"taskId": task_id, "inputResponses": {key: answer}}, http=HTTP(ALICE))
        await ask(served, "tasks/update", {"taskId": task_id, "inputResponses": {key: NAME}}, http=HTTP(ALICE))
        assert (await until(served, task_id, "completed", http=HTTP(ALICE)))["result"]


@pytest.mark.parametrize("principal", [None, ALICE, WITHOUT_SUBJECT])
async def test_the_capability_of_2025_11_25_has_lists_for_callers_with_a_subject_only(principal: Any) -> None:
    handshake = {"protocolVersion": NEWEST, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    async with serving(job()) as served:
        result = (await ask(served, "initialize", handshake, revision=NEWEST, http=HTTP(principal)))["result"]
        tasks: dict[str, Any] = {"cancel": {}, "requests": {"tools": {"call": {}}}}
        assert result["capabilities"]["tasks"] == ({**tasks, "list": {}} if principal is ALICE else tasks)


async def test_the_extension_is_advertised_if_a_tool_has_tasks() -> None:
    async with serving(job()) as served:
        declared = (await ask(served, "server/discover", {}))["result"]["capabilities"]
        assert declared["extensions"] == {EXTENSION: {}}
        assert "tasks" not in declared
    async with serving(tool("plain")) as served:
        assert "extensions" not in (await ask(served, "server/discover", {}))["result"]["capabilities"]
        assert (await ask(served, "tasks/get", {"taskId": UNKNOWN}))["error"]["code"] == METHOD_NOT_FOUND


async def test_progress_becomes_the_status_message_and_the_last_one_is_kept() -> None:
    go = asyncio.Event()

    async def work(context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
        await context.notify("notifications/progress", {"progress": 3, "total": 10, "message": "reading"})
        await context.notify("notifications/message", {"level": "error", "data": "dropped"})
        await go.wait()
        await context.notify("notifications/progress", {"progress": 10.0})
        return text_result("done")

    async with serving(job(handler=work)) as served:
        task_id = await create(served, "job")
        await asyncio.sleep(0.05)
        assert (await get(served, task_id))["statusMessage"] == "reading (3 of 10)"
        go.set()
        assert "statusMessage" not in await until(served, task_id, "completed")


KEY = "io.funcmcp/idempotencyKey"


def repeating(key: object, arguments: dict[str, Any], name: str = "echo") -> dict[str, Any]:
    """Return the params of a call with an idempotency key."""
    return {"name": name, "arguments": arguments, "_meta": {KEY: key}}


async def repeat(served: Server, key: object, arguments: dict[str, Any], **options: Any) -> dict[str, Any]:
    return await ask(served, "tools/call", repeating(key, arguments, options.pop("name", "echo")), **options)


async def test_a_call_with_the_same_idempotency_key_is_the_same_task() -> None:
    runs: list[dict[str, Any]] = []

    async def count(_context: RequestContext, arguments: dict[str, Any]) -> dict[str, Any]:
        runs.append(arguments)
        return text_result("done")

    key = "0f8fad5b-d9cb-469f-a165-70867728950e"
    tools = [tool("echo", count, task=TaskOptions()), tool("other", count, task=TaskOptions())]
    async with serving(*tools) as served:
        first = (await repeat(served, key, {"a": 1}))["result"]["taskId"]
        await until(served, first, "completed")
        again = (await repeat(served, key, {"a": 1}))["result"]
        assert (again["taskId"], again["status"]) == (first, "completed")
        for changed in ({"arguments": {"a": 2}}, {"arguments": {"a": 1}, "name": "other"}):
            error = (await repeat(served, key, changed.pop("arguments"), **changed))["error"]  # type: ignore[arg-type]
            assert error["code"] == INVALID_PARAMS
            assert error["message"] == (
                "The idempotency key was used for a call of another tool or with other arguments."
            )
        others = [
            (await repeat(served, key, {"a": 1}, http=HTTP(principal)))["result"]["taskId"]
            for principal in (ALICE, BOB)
        ]
        assert len({first, *others}) == 3
        for task_id, principal in zip(others, (ALICE, BOB), strict=True):
            await until(served, task_id, "completed", http=HTTP(principal))
    assert runs == [{"a": 1}] * 3


async def test_a_task_of_a_newer_version_is_unavailable_and_its_key_creates_no_other_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = SQLiteTasks(tmp_path / "tasks.db", concurrency=0)
    async with serving(tool("echo", echo, task=TaskOptions()), tasks=store) as served:
        with newer_version():
            task_id = (await repeat(served, "k" * 16, {"a": 1}))["result"]["taskId"]
        for method in ("tasks/get", "tasks/cancel"):
            with pytest.raises(UnreadableTaskError):
                await ask(served, method, {"taskId": task_id})
        with pytest.raises(UnreadableTaskError):
            await repeat(served, "k" * 16, {"a": 1})
        [line] = [message for message in caplog.messages if "newer version" in message]
        assert "answered with 503 here" in line
        with newer_version():
            assert (await get(served, task_id))["status"] == "working"
            assert (await repeat(served, "k" * 16, {"a": 1}))["result"]["taskId"] == task_id
    await store.aclose()


@pytest.mark.parametrize("revision", [NEWEST, PER_REQUEST])
async def test_a_client_learns_that_another_process_can_read_a_task(tmp_path: Path, revision: str) -> None:
    store = SQLiteTasks(tmp_path / "tasks.db", concurrency=0)
    mcp = MCPServer("Tasks", tasks=store, auth=APIKeys({"ada": "k" * 32}))

    @mcp.tool(task="required")
    def job() -> str:
        return "done"

    params: dict[str, Any] = {"name": "job", "arguments": {}}
    if revision == NEWEST:
        params["task"] = {}
    async with Client(mcp, revision=revision, headers={"x-api-key": "k" * 32}) as client:
        with newer_version():
            created = await client.request("tools/call", params)
        task_id = created.get("task", created)["taskId"]
        for method in ("tasks/get", "tasks/cancel"):
            with pytest.raises(MCPError) as refused:
                await client.request(method, {"taskId": task_id})
            error = refused.value
            text = "The task was written by a newer version of the server. Try again later."
            assert (error.code, error.message) == (INTERNAL_ERROR, text)
        if revision == NEWEST:
            assert (await client.request("tasks/list", {}))["tasks"] == []
    await store.aclose()


async def test_of_two_equal_calls_at_once_both_get_one_task() -> None:
    async with serving(tool("echo", echo, task=TaskOptions())) as served:
        calls = [repeat(served, "k" * 16, {"a": 1}) for _ in range(2)]
        first, second = await asyncio.gather(*calls)
        assert first["result"]["taskId"] == second["result"]["taskId"]


async def test_a_tool_that_detaches_does_not_run_again_for_the_same_key() -> None:
    runs: list[str | None] = []

    async def count(context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
        runs.append(context.task_id)
        await context.detach()
        return text_result("done")

    async with serving(tool("echo", count, task=TaskOptions(detaches=True))) as served:
        task_ids = {(await repeat(served, "k" * 16, {}))["result"]["taskId"] for _ in range(2)}
        (task_id,) = task_ids
        await until(served, task_id, "completed")
    assert runs == [None, task_id]


@pytest.mark.parametrize(
    "key", ["", "short", "x" * 129, "with a space in it", "schlüssel-schlüssel", 1, True, ["x" * 16]]
)
async def test_an_invalid_idempotency_key_is_refused(key: object) -> None:
    async with serving(tool("echo", echo, task=TaskOptions())) as served:
        error = (await repeat(served, key, {}))["error"]
        assert error["code"] == INVALID_PARAMS
        assert error["message"] == "The idempotency key must have 16 to 128 visible ASCII characters."


async def test_a_plain_call_has_no_use_for_an_idempotency_key() -> None:
    async with serving(tool("echo", echo)) as served:
        assert (await repeat(served, "x", {"a": 1}))["result"]["content"][0]["text"] == '{"a": 1}'


async def test_a_part_of_a_task_does_not_run_again_after_a_question() -> None:
    charges: list[str | None] = []

    async def order(context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
        async def charge() -> int:
            charges.append(context.task_id)
            return len(charges)

        first = await context.once("charge", charge)
        await context.ask({"name": ASK_NAME})
        return text_result(f"{first} {await context.once('charge', charge)}")

    async with serving(tool("order", order, task=TaskOptions(), interactive=True)) as served:
        task_id = await create(served, "order")
        task = await until(served, task_id, "input_required")
        responses = dict.fromkeys(task["inputRequests"], NAME)
        await ask(served, "tasks/update", {"taskId": task_id, "inputResponses": responses})
        assert (await until(served, task_id, "completed"))["result"]["content"][0]["text"] == "1 1"
    assert charges == [task_id]
