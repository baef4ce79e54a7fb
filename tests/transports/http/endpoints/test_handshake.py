"""The handshake era over HTTP."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._protocol.errors import ToolError
from funcmcp._server.connections.hub import TOOLS
from funcmcp._state.sessions.memory import MemorySessions
from funcmcp._state.sessions.store import Handshake, SessionKey
from tests import rules, schemas
from tests.patience import PATIENCE
from tests.server.parts import ASK_NAME, NEWEST, PER_REQUEST, text_result, tool
from tests.transports.http.endpoint import INITIALIZE, Endpoint, Got, events, next_message, read_all, request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.catalog.features import Tool

pytestmark = pytest.mark.branches("Responses come to no open question.")

EVERY_REVISION = pytest.mark.parametrize("revision", schemas.HANDSHAKE_REVISIONS)
ADA = {"action": "accept", "content": {"name": "Ada"}}
PING = request("ping")
JSON_ONLY = {"accept": "application/json"}


async def ask_name(context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
    answers = await context.ask({"name": ASK_NAME})
    return text_result(f"Hello, {answers['name']['content']['name']}!")


async def report(context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
    for progress in (0, 50, 100):
        await context.notify("notifications/progress", {"progressToken": "t", "progress": progress})
    return text_result("reported")


class Held:
    """A tool that waits until the test lets it go."""

    def __init__(self, **members: Any) -> None:
        self.running = asyncio.Event()
        self.let_go = asyncio.Event()
        self.stopped = asyncio.Event()
        self.tool: Tool = tool("wait", self._wait, **members)

    async def _wait(self, _context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
        self.running.set()
        try:
            await self.let_go.wait()
        except asyncio.CancelledError:
            self.stopped.set()
            raise
        return text_result("let go")


def call(name: str, request_id: str | int = 1, **params: Any) -> dict[str, Any]:
    return request("tools/call", {"name": name, **params}, request_id)


def cancelled(request_id: str | int) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request_id}}


def response(question: dict[str, Any], **outcome: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": question["id"], **outcome}


async def next_data(stream: AsyncIterator[bytes]) -> dict[str, Any]:
    """Return the next message of a stream whose events may have ids."""
    async with asyncio.timeout(PATIENCE):
        async for part in stream:
            if b"data: {" in part:
                message: dict[str, Any] = json.loads(part.split(b"data: ", 1)[1])
                return message
    raise AssertionError("The stream ended.")


def is_refusal(got: Got, status: int) -> bool:
    schemas.validate(got.answer, NEWEST)
    return (got.status, got.code, "mcp-session-id" in got.headers) == (status, -32600, False)


@EVERY_REVISION
async def test_initialize_begins_a_session_whose_requests_are_answered(revision: str) -> None:
    endpoint = Endpoint(tool("add"))
    session = await endpoint.begin(revision)
    for method in ("ping", "tools/list"):
        got = await endpoint.send(request(method, request_id="a"), session)
        assert got.status == 200
        schemas.validate(got.answer, revision, method)
        assert got.answer["id"] == "a"
        assert "mcp-session-id" not in got.headers


async def test_every_session_has_an_id_of_its_own_in_visible_ascii() -> None:
    endpoint = Endpoint()
    ids = [(await endpoint.begin())["mcp-session-id"] for _ in range(10)]
    assert len(set(ids)) == 10
    assert all("!" <= character <= "~" for session_id in ids for character in session_id)


async def test_a_wrong_initialize_is_an_error_with_status_200_and_begins_no_session() -> None:
    endpoint = Endpoint()
    got = await endpoint.send(request("initialize", {}))
    assert (got.status, got.code) == (200, -32602)
    assert "mcp-session-id" not in got.headers


async def test_too_many_sessions_are_refused_while_all_have_calls(caplog: pytest.LogCaptureFixture) -> None:
    begun, done = asyncio.Event(), asyncio.Event()

    async def wait(_context: object, _arguments: object) -> Any:
        begun.set()
        await done.wait()
        return text_result("done")

    endpoint = Endpoint(tool("wait", wait), sessions=MemorySessions(limit=1, idle=600, clock=lambda: 0.0))
    session = await endpoint.begin()
    call = asyncio.create_task(endpoint.send(request("tools/call", {"name": "wait", "arguments": {}}), session))
    await begun.wait()
    got = await endpoint.send(request("initialize", INITIALIZE, 7))
    assert (got.status, got.code, got.answer["id"]) == (503, -32603, 7)
    assert got.headers["retry-after"] == "5"
    assert "The store of sessions has no room (MemorySessions). The session of a client at" in caplog.text
    done.set()
    assert (await call).status == 200
    assert (await endpoint.send(PING, session)).status == 200


async def test_a_session_that_is_idle_makes_room_and_its_client_gets_404() -> None:
    endpoint = Endpoint(sessions=MemorySessions(limit=1))
    first, second = await endpoint.begin(), await endpoint.begin()
    assert is_refusal(await endpoint.send(PING, first), 404)
    assert (await endpoint.send(PING, second)).status == 200


@pytest.mark.parametrize("headers", [{}, {"mcp-session-id": ""}, {"mcp-session-id": "  "}])
@pytest.mark.parametrize("body", [PING, cancelled(1), {"jsonrpc": "2.0", "id": "ask-1", "result": {}}, [PING]])
async def test_a_message_without_a_session_is_a_bad_request(headers: dict[str, str], body: Any) -> None:
    assert is_refusal(await Endpoint().send(body, headers), 400)


@pytest.mark.parametrize("body", [PING, cancelled(1), {"jsonrpc": "2.0", "id": "ask-1", "result": {}}, [PING]])
async def test_a_message_of_an_unknown_session_is_not_found(body: Any) -> None:
    assert is_refusal(await Endpoint().send(body, {"mcp-session-id": "unknown"}), 404)


async def test_white_space_around_a_session_id_does_not_count() -> None:
    endpoint = Endpoint()
    session_id = (await endpoint.begin())["mcp-session-id"]
    assert (await endpoint.send(PING, {"mcp-session-id": f" {session_id}\t"})).status == 200


async def test_an_ended_session_is_not_found() -> None:
    endpoint = Endpoint()
    session = await endpoint.begin()
    ended = await endpoint.send(b"", session, method="DELETE")
    assert (ended.status, ended.body, ended.headers) == (204, b"", {})
    assert is_refusal(await endpoint.send(PING, session), 404)
    assert is_refusal(await endpoint.send(b"", session, method="DELETE"), 404)


async def test_a_delete_without_a_session_is_a_bad_request() -> None:
    assert is_refusal(await Endpoint().send(b"", {}, method="DELETE"), 400)


async def test_a_session_of_a_revision_that_is_no_longer_served_is_not_found() -> None:
    sessions = MemorySessions()
    session_id = await sessions.create(Handshake("2024-11-05"))
    endpoint = Endpoint(sessions=sessions, revisions=[NEWEST])
    assert is_refusal(await endpoint.send(PING, {"mcp-session-id": session_id}), 404)


async def test_a_version_header_that_the_server_does_not_speak_is_a_bad_request() -> None:
    endpoint = Endpoint(revisions=[NEWEST])
    session = await endpoint.begin()
    for version in ("2024-11-05", "2025-06-18", "1999-01-01", "latest"):
        got = await endpoint.send(PING, {**session, "mcp-protocol-version": version})
        assert got.status == 400
    assert (await endpoint.send(PING, {**session, "mcp-protocol-version": NEWEST})).status == 200
    assert (await endpoint.send(PING, session)).status == 200


async def test_the_session_is_judged_before_the_version_header() -> None:
    got = await Endpoint(revisions=[NEWEST]).send(
        PING, {"mcp-session-id": "gone", "mcp-protocol-version": "2024-11-05"}
    )
    assert is_refusal(got, 404)


@EVERY_REVISION
@pytest.mark.parametrize("method", ["nope", "server/discover", "resources/subscribe", "completion/complete"])
async def test_an_unknown_method_is_an_error_with_status_200(revision: str, method: str) -> None:
    endpoint = Endpoint()
    got = await endpoint.send(request(method), await endpoint.begin(revision))
    assert (got.status, got.code) == (200, -32601)
    schemas.validate(got.answer, revision, method)


@pytest.mark.parametrize(
    "body", [{"jsonrpc": "2.0", "id": 5, "method": 7}, {"jsonrpc": "2.0", "id": None, "method": "ping"}]
)
async def test_a_malformed_message_is_a_bad_request_with_its_id_where_that_was_readable(body: dict[str, Any]) -> None:
    endpoint = Endpoint()
    got = await endpoint.send(body, await endpoint.begin())
    assert (got.status, got.code, got.answer.get("id")) == (400, -32600, body["id"])
    schemas.validate(got.answer, NEWEST)


@EVERY_REVISION
@pytest.mark.parametrize(
    "body",
    [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "notifications/unheard_of", "params": {"a": 1}},
        cancelled("unknown"),
    ],
)
async def test_a_message_that_wants_no_answer_is_accepted_without_a_body(revision: str, body: dict[str, Any]) -> None:
    endpoint = Endpoint()
    got = await endpoint.send(body, await endpoint.begin(revision))
    assert (got.status, got.body, got.headers) == (202, b"", {})


@rules.verifies(rules.THREAT_8)
@EVERY_REVISION
@pytest.mark.parametrize("outcome", [{"result": {}}, {"error": {"code": -1, "message": "no"}}])
async def test_a_response_to_no_open_question_is_a_bad_request(revision: str, outcome: dict[str, Any]) -> None:
    """The error shows the client that no question received its answer."""
    endpoint = Endpoint()
    session = await endpoint.begin(revision)
    for request_id in ("ask-0", 7, "unknown"):
        assert is_refusal(await endpoint.send({"jsonrpc": "2.0", "id": request_id, **outcome}, session), 400)
    assert (await endpoint.send(PING, session)).status == 200


async def test_two_requests_in_flight_with_the_same_id_each_get_their_own_answer() -> None:
    async def echo(_context: RequestContext, arguments: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0)
        return text_result(arguments["say"])

    endpoint = Endpoint(tool("echo", echo))
    session = await endpoint.begin()
    said: list[tuple[str | int, str]] = [(1, "a"), (1, "b"), ("1", "c")]
    sent = [endpoint.send(call("echo", key, arguments={"say": text}), session) for key, text in said]
    got = await asyncio.gather(*sent)
    assert [(one.answer["id"], one.text) for one in got] == said


class TestBatches:
    async def test_requests_are_answered_in_one_array_of_2025_03_26(self) -> None:
        endpoint = Endpoint(tool("add"))
        session = await endpoint.begin("2025-03-26")
        batch = [PING, cancelled(9), request("tools/list", request_id="two"), request("nope", request_id=3)]
        got = await endpoint.send(batch, session)
        assert (got.status, got.headers["content-type"]) == (200, "application/json")
        schemas.validate(got.answer, "2025-03-26")
        answers: Any = got.answer
        assert [one["id"] for one in answers] == [1, "two", 3]
        assert answers[2]["error"]["code"] == -32601

    @pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18", "2025-11-25"])
    async def test_other_revisions_have_none(self, revision: str) -> None:
        endpoint = Endpoint()
        assert is_refusal(await endpoint.send([PING], await endpoint.begin(revision)), 400)

    @pytest.mark.parametrize(
        "batch",
        [
            [],
            [PING] * 101,
            [PING, 1],
            [PING, [PING]],
            [{"jsonrpc": "2.0", "id": None, "method": "ping"}],
            [PING, request("initialize", INITIALIZE)],
        ],
        ids=["empty", "too many", "a number", "nested", "null id", "initialize"],
    )
    async def test_a_wrong_batch_is_a_bad_request_as_a_whole(self, batch: list[Any]) -> None:
        endpoint = Endpoint()
        assert is_refusal(await endpoint.send(batch, await endpoint.begin("2025-03-26")), 400)

    @pytest.mark.parametrize("revision", ["2025-03-26", NEWEST])
    async def test_a_refused_batch_leaves_nothing_behind(self, revision: str) -> None:
        endpoint = Endpoint()
        session = await endpoint.begin(revision)
        await endpoint.send([], session)
        client = endpoint.exchange._handshake._clients.get(SessionKey(session["mcp-session-id"]))
        assert client is not None
        assert client.conversation.idle

    async def test_a_batch_that_wants_no_answer_is_accepted(self) -> None:
        endpoint = Endpoint()
        session = await endpoint.begin("2025-03-26")
        stray = {"jsonrpc": "2.0", "id": "ask-0", "result": {}}
        for batch in ([cancelled(1), cancelled(2)], [stray, cancelled(1)], [cancelled(1), stray]):
            got = await endpoint.send(batch, session)
            assert (got.status, got.body) == (202, b"")

    async def test_a_batch_of_responses_to_no_open_question_is_a_bad_request(self) -> None:
        endpoint = Endpoint()
        session = await endpoint.begin("2025-03-26")
        strays: list[dict[str, Any]] = [
            {"jsonrpc": "2.0", "id": request_id, "result": {}} for request_id in ("ask-0", 7)
        ]
        for batch in (strays[:1], strays):
            assert is_refusal(await endpoint.send(batch, session), 400)

    async def test_the_requests_of_a_batch_run_side_by_side(self) -> None:
        met = asyncio.Barrier(3)

        async def meet(_context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
            await met.wait()
            return text_result("met")

        endpoint = Endpoint(tool("meet", meet))
        got = await endpoint.send([call("meet", key) for key in (1, 2, 3)], await endpoint.begin("2025-03-26"))
        answers: Any = got.answer
        assert [one["id"] for one in answers] == [1, 2, 3]

    async def test_a_request_of_a_batch_can_be_cancelled_and_then_has_no_answer(self) -> None:
        held = Held()
        endpoint = Endpoint(held.tool)
        session = await endpoint.begin("2025-03-26")
        for batch in ([call("wait", 5), PING], [call("wait", 5)]):
            held.running.clear()
            running = asyncio.create_task(endpoint.send(batch, session))
            await asyncio.wait_for(held.running.wait(), PATIENCE)
            await endpoint.send(cancelled(5), session)
            got = await asyncio.wait_for(running, PATIENCE)
            answers: Any = got.messages[0] if got.messages else []
            assert [one["id"] for one in answers] == ([1] if len(batch) == 2 else [])
            assert got.status == (200 if len(batch) == 2 else 202)


class TestStreams:
    async def test_progress_comes_before_the_answer_as_events(self) -> None:
        endpoint = Endpoint(tool("report", report, interactive=True))
        got = await endpoint.send(call("report", 4), await endpoint.begin())
        assert (got.status, got.headers["content-type"]) == (200, "text/event-stream")
        assert [one["params"]["progress"] for one in got.messages[:-1]] == [0, 50, 100]
        for message in got.messages:
            schemas.validate(message, NEWEST, "tools/call")
        assert (got.answer["id"], got.text) == (4, "reported")

    async def test_a_tool_that_says_nothing_before_its_answer_answers_in_json(self) -> None:
        endpoint = Endpoint(tool("quiet", interactive=True))
        got = await endpoint.send(call("quiet"), await endpoint.begin())
        assert got.headers["content-type"] == "application/json"

    @pytest.mark.parametrize("accept", [None, "*/*", "application/json"])
    async def test_a_client_that_does_not_name_events_gets_none(self, accept: str | None) -> None:
        endpoint = Endpoint(tool("report", report, interactive=True))
        got = await endpoint.send(call("report"), {**await endpoint.begin(), "accept": accept})
        assert got.headers["content-type"] == "application/json"
        assert got.text == "reported"

    @pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
    async def test_a_question_is_a_request_on_the_stream_and_its_answer_another_post(self, revision: str) -> None:
        endpoint = Endpoint(tool("greet", ask_name, interactive=True))
        session = await endpoint.begin(revision)
        stream = events(await endpoint.open(call("greet"), session))
        question = await next_message(stream)
        schemas.validate(question, revision)
        assert question["method"] == "elicitation/create"
        assert (await endpoint.send(response(question, result=ADA), session)).status == 202
        answer = await next_message(stream)
        assert answer["result"]["content"][0]["text"] == "Hello, Ada!"
        schemas.validate(answer, revision, "tools/call")
        assert [part async for part in stream] == []

    @pytest.mark.parametrize(
        "outcome",
        [
            {"error": {"code": -1, "message": "The user has left."}},
            {"result": {"action": "accept", "content": {"name": 5}}},
            {"result": {}},
        ],
    )
    async def test_a_question_without_a_usable_answer_is_told_to_the_model(self, outcome: dict[str, Any]) -> None:
        endpoint = Endpoint(tool("greet", ask_name, interactive=True))
        session = await endpoint.begin()
        stream = events(await endpoint.open(call("greet"), session))
        await endpoint.send(response(await next_message(stream), **outcome), session)
        result = (await next_message(stream))["result"]
        assert result["isError"] is True
        assert "elicitation/create" in result["content"][0]["text"]

    @rules.verifies(rules.THREAT_48)
    @pytest.mark.parametrize("kept", [True, False])
    async def test_sessions_of_others_displace_no_open_question_and_no_stream(self, *, kept: bool) -> None:
        """A session with a running call or an open question is never removed to make room."""
        sessions = MemorySessions() if kept else None
        endpoint = Endpoint(tool("greet", ask_name, interactive=True), sessions=sessions)
        endpoint.exchange._handshake._clients._limit = 20
        session, listening = await endpoint.begin(), await endpoint.begin()
        stream = events(await endpoint.open(call("greet"), session))
        question = await next_data(stream)
        if kept:
            general = events(await endpoint.open(b"", listening, method="GET"))
            assert await anext(general)
        for _ in range(200):
            set_level = request("logging/setLevel", {"level": "debug"})
            assert (await endpoint.send(set_level, await endpoint.begin())).status == 200
        assert (await endpoint.send(response(question, result=ADA), session)).status == 202
        assert (await next_data(stream))["result"]["content"][0]["text"] == "Hello, Ada!"
        if kept:
            endpoint.server.hub.publish(TOOLS)
            assert (await next_data(general))["method"] == "notifications/tools/list_changed"
        assert len(endpoint.exchange._handshake._clients) <= 21

    async def test_an_answer_of_another_session_answers_nothing(self) -> None:
        endpoint = Endpoint(tool("greet", ask_name, interactive=True))
        session, stranger = await endpoint.begin(), await endpoint.begin()
        stream = events(await endpoint.open(call("greet"), session))
        question = await next_message(stream)
        await endpoint.send(response(question, result=ADA), stranger)
        await endpoint.send(response(question, result={**ADA, "content": {"name": "Bob"}}), session)
        assert (await next_message(stream))["result"]["content"][0]["text"] == "Hello, Bob!"

    async def test_two_calls_that_begin_together_are_each_asked_and_answered(self) -> None:
        endpoint = Endpoint(tool("greet", ask_name, interactive=True))
        session = await endpoint.begin()
        opened = await asyncio.gather(*(endpoint.open(call("greet", key), session) for key in (1, 2)))
        names = []
        for name, one in zip(("Ada", "Bob"), opened, strict=True):
            stream = events(one)
            result = {"action": "accept", "content": {"name": name}}
            await endpoint.send(response(await next_message(stream), result=result), session)
            names.append((await next_message(stream))["result"]["content"][0]["text"])
        assert names == ["Hello, Ada!", "Hello, Bob!"]

    async def test_a_call_that_ends_does_not_cost_another_its_answer(self) -> None:
        endpoint = Endpoint(tool("greet", ask_name, interactive=True), tool("report", report, interactive=True))
        session = await endpoint.begin()
        asked, reported = await asyncio.gather(
            endpoint.open(call("greet"), session), endpoint.open(call("report"), session)
        )
        assert (await read_all(reported)).text == "reported"
        stream = events(asked)
        await endpoint.send(response(await next_message(stream), result=ADA), session)
        assert (await next_message(stream))["result"]["content"][0]["text"] == "Hello, Ada!"

    async def test_a_quick_request_does_not_cost_another_its_answer(self) -> None:
        endpoint = Endpoint(tool("greet", ask_name, interactive=True))
        session = await endpoint.begin()
        asked, _ = await asyncio.gather(endpoint.open(call("greet"), session), endpoint.send(PING, session))
        stream = events(asked)
        await endpoint.send(response(await next_message(stream), result=ADA), session)
        assert (await next_message(stream))["result"]["content"][0]["text"] == "Hello, Ada!"

    async def test_a_client_that_leaves_its_stream_does_not_stop_the_call(self) -> None:
        let_go, finished = asyncio.Event(), asyncio.Event()

        async def work(context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
            await context.notify("notifications/progress", {"progressToken": "t", "progress": 1})
            await let_go.wait()
            await context.notify("notifications/progress", {"progressToken": "t", "progress": 2})
            with pytest.raises(ToolError):
                await context.ask({"name": ASK_NAME})
            finished.set()
            return text_result("nobody hears this")

        endpoint = Endpoint(tool("work", work, interactive=True))
        stream = events(await endpoint.open(call("work"), await endpoint.begin()))
        await next_message(stream)
        await stream.aclose()  # type: ignore[attr-defined]
        let_go.set()
        await asyncio.wait_for(finished.wait(), PATIENCE)

    async def test_a_chosen_level_holds_for_the_session_and_for_no_other(self) -> None:
        async def log(context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
            for level in ("debug", "info", "error"):
                await context.notify("notifications/message", {"level": level, "data": "x"})
            return text_result("logged")

        endpoint = Endpoint(tool("log", log, interactive=True))
        loud, quiet = await endpoint.begin(), await endpoint.begin()
        await endpoint.send(request("logging/setLevel", {"level": "debug"}), loud)
        await endpoint.send(request("logging/setLevel", {"level": "error"}), quiet)
        for session, levels in ((loud, ["debug", "info", "error"]), (quiet, ["error"])):
            got = await endpoint.send(call("log"), session)
            assert [one["params"]["level"] for one in got.messages[:-1]] == levels


class TestCancelling:
    @pytest.mark.parametrize("interactive", [False, True])
    @pytest.mark.parametrize("request_id", [5, "5"])
    async def test_a_cancelled_request_is_stopped(self, interactive: bool, request_id: str | int) -> None:
        held = Held(interactive=interactive)
        endpoint = Endpoint(held.tool)
        session = await endpoint.begin()
        running = asyncio.create_task(endpoint.send(call("wait", request_id), session))
        await asyncio.wait_for(held.running.wait(), PATIENCE)
        assert (await endpoint.send(cancelled(request_id), session)).status == 202
        got = await asyncio.wait_for(running, PATIENCE)
        assert held.stopped.is_set()
        assert (got.status, got.streamed, got.body) == (200, True, b"")

    async def test_a_client_that_takes_only_json_is_told_that_it_was_cancelled(self) -> None:
        held = Held()
        endpoint = Endpoint(held.tool)
        session = await endpoint.begin()
        running = asyncio.create_task(endpoint.send(call("wait", 5), {**session, **JSON_ONLY}))
        await asyncio.wait_for(held.running.wait(), PATIENCE)
        await endpoint.send(cancelled(5), session)
        got = await asyncio.wait_for(running, PATIENCE)
        assert (got.status, got.code, got.answer["id"]) == (200, -32603, 5)
        schemas.validate(got.answer, NEWEST)

    async def test_a_cancelled_stream_ends_without_an_answer(self) -> None:
        endpoint = Endpoint(tool("greet", ask_name, interactive=True))
        session = await endpoint.begin()
        stream = events(await endpoint.open(call("greet", 5), session))
        await next_message(stream)
        await endpoint.send(cancelled(5), session)
        async with asyncio.timeout(PATIENCE):
            assert [part async for part in stream] == []

    @pytest.mark.parametrize("wrong", ["5", 6])
    async def test_another_id_or_another_session_cancels_nothing(self, wrong: str | int) -> None:
        held = Held()
        endpoint = Endpoint(held.tool)
        session, stranger = await endpoint.begin(), await endpoint.begin()
        running = asyncio.create_task(endpoint.send(call("wait", 5), session))
        await asyncio.wait_for(held.running.wait(), PATIENCE)
        await endpoint.send(cancelled(wrong), session)
        await endpoint.send(cancelled(5), stranger)
        held.let_go.set()
        assert (await asyncio.wait_for(running, PATIENCE)).text == "let go"

    async def test_a_session_is_the_same_after_a_cancelled_request(self) -> None:
        held = Held()
        endpoint = Endpoint(held.tool)
        session = await endpoint.begin()
        running = asyncio.create_task(endpoint.send(call("wait", 5), session))
        await asyncio.wait_for(held.running.wait(), PATIENCE)
        await endpoint.send(cancelled(5), session)
        await asyncio.wait_for(running, PATIENCE)
        held.let_go.set()
        assert (await endpoint.send(call("wait", 5), session)).text == "let go"


async def test_a_server_without_a_handshake_says_what_it_speaks() -> None:
    got = await Endpoint(revisions=[PER_REQUEST]).send(request("initialize", INITIALIZE))
    assert (got.status, got.code) == (200, -32602)
    assert got.answer["error"]["data"] == {"supported": [PER_REQUEST]}
