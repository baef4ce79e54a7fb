"""The per-request era over HTTP."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._protocol.headers import mirrored_parameters
from funcmcp._protocol.tasks import EXTENSION
from funcmcp._server.catalog.task_options import TaskOptions
from funcmcp._state.tasks.memory import MemoryTasks
from funcmcp._transports.http.streams import disconnect
from tests import schemas
from tests.patience import PATIENCE
from tests.server.parts import ASK_NAME, CAPABILITIES, NEWEST, PER_REQUEST, VERSION, text_result, tool
from tests.transports.http.endpoint import Endpoint, Got, events, mirrored, next_message, per_request, request

if TYPE_CHECKING:
    from funcmcp._server.calls.context import RequestContext

MODERN = {"mcp-protocol-version": PER_REQUEST}
LIST = per_request("tools/list")
ADD = per_request("tools/call", {"name": "add"})
REGIONAL = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
    },
}
MISMATCH, MISSING_CAPABILITY, UNSUPPORTED = -32020, -32021, -32022


@pytest.fixture
def endpoint() -> Endpoint:
    return Endpoint(tool("add"), tool("regional", mirrored=mirrored_parameters(REGIONAL)))


def valid(got: Got, method: str | None = None) -> Got:
    """Return a response once its messages have proved valid."""
    for message in got.messages:
        schemas.validate(message, PER_REQUEST, method)
    assert "mcp-session-id" not in got.headers
    return got


def verdict(got: Got) -> tuple[int, int | None]:
    return valid(got).status, got.code


@pytest.mark.parametrize("method", ["server/discover", "tools/list"])
async def test_a_request_that_carries_all_the_facts_is_answered(endpoint: Endpoint, method: str) -> None:
    body = per_request(method)
    got = valid(await endpoint.send(body, mirrored(body)), method)
    assert (got.status, got.answer["id"]) == (200, 1)


async def test_a_tool_is_called_without_any_handshake(endpoint: Endpoint) -> None:
    got = valid(await endpoint.send(ADD, mirrored(ADD)), "tools/call")
    assert (got.status, got.text) == (200, "add")


async def test_client_info_is_not_required_but_read(endpoint: Endpoint) -> None:
    seen = []

    async def look(context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
        seen.append((context.client.info, context.client.session_id, context.http is not None))
        return text_result("seen")

    endpoint = Endpoint(tool("look", look))
    info = {"name": "client", "version": "1"}
    for more in ({}, {"io.modelcontextprotocol/clientInfo": info}):
        body = per_request("tools/call", {"name": "look"}, meta=more)
        await endpoint.send(body, mirrored(body))
    assert seen == [({}, None, True), (info, None, True)]


@pytest.mark.parametrize(("name", "code"), [("x", -32602), ("y", MISMATCH), (None, -32602)])
async def test_the_name_of_a_task_may_be_missing_in_the_headers_but_not_differ(name: str | None, code: int) -> None:
    """The official Python SDK does not send it."""
    endpoint = Endpoint(tool("job", task=TaskOptions()), tasks=MemoryTasks())
    body = per_request("tasks/get", {"taskId": "x"}, {"extensions": {EXTENSION: {}}})
    got = await endpoint.send(body, {**mirrored(body), "mcp-name": name})
    assert got.code == code


@pytest.mark.parametrize("session_id", ["unknown", ""])
async def test_a_session_id_is_ignored(endpoint: Endpoint, session_id: str) -> None:
    assert verdict(await endpoint.send(LIST, mirrored(LIST, mcp_session_id=session_id))) == (200, None)


@pytest.mark.parametrize(
    "method", ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"]
)
async def test_a_removed_method_is_not_found(endpoint: Endpoint, method: str) -> None:
    body = per_request(method)
    assert verdict(await endpoint.send(body, mirrored(body))) == (404, -32601)


@pytest.mark.parametrize("method", ["nope", "resources/subscribe", "completion/complete", "tasks/get"])
async def test_a_method_that_is_not_served_is_not_found(endpoint: Endpoint, method: str) -> None:
    body = per_request(method)
    assert verdict(await endpoint.send(body, mirrored(body))) == (404, -32601)


@pytest.mark.parametrize(
    "body",
    [
        [],
        [LIST],
        {"jsonrpc": "2.0", "id": None, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 1.5, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": True, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "m"}},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": []},
    ],
)
async def test_a_body_that_is_no_single_request_is_a_bad_request(endpoint: Endpoint, body: Any) -> None:
    assert verdict(await endpoint.send(body, MODERN)) == (400, -32600)


@pytest.mark.parametrize("method", ["notifications/cancelled", "notifications/initialized", "anything"])
async def test_a_notification_is_accepted_and_dropped(endpoint: Endpoint, method: str) -> None:
    got = await endpoint.send({"jsonrpc": "2.0", "method": method, "params": {"requestId": 1}}, MODERN)
    assert (got.status, got.body, got.headers) == (202, b"", {})


@pytest.mark.parametrize("version", ["v999.0.0", " 2030-01-01 "])
async def test_a_notification_of_an_unknown_version_is_refused(endpoint: Endpoint, version: str) -> None:
    got = await endpoint.send({"jsonrpc": "2.0", "method": "anything"}, {"mcp-protocol-version": version})
    assert verdict(got) == (400, UNSUPPORTED)
    assert "id" not in got.answer


class TestTheOrderOfTheChecks:
    @pytest.mark.parametrize(
        "params",
        [
            {},
            {"_meta": {}},
            {"_meta": {VERSION: PER_REQUEST}},
            {"_meta": {CAPABILITIES: {}}},
            {"_meta": {VERSION: PER_REQUEST, CAPABILITIES: []}},
            {"_meta": []},
        ],
    )
    async def test_a_missing_fact_is_invalid_params(self, endpoint: Endpoint, params: dict[str, Any]) -> None:
        got = await endpoint.send(request("tools/list", params), {**MODERN, "mcp-method": "tools/list"})
        assert verdict(got) == (400, -32602)

    async def test_a_version_header_that_nobody_knows_comes_before_missing_facts(self, endpoint: Endpoint) -> None:
        got = await endpoint.send(request("tools/list"), {"mcp-protocol-version": "v999.0.0"})
        assert verdict(got) == (400, UNSUPPORTED)
        assert got.answer["error"]["data"]["requested"] == "v999.0.0"

    async def test_header_and_body_that_disagree_on_the_version_are_a_mismatch(self, endpoint: Endpoint) -> None:
        body = per_request("tools/list", meta={VERSION: "v999.0.0"})
        assert verdict(await endpoint.send(body, mirrored(body, mcp_protocol_version=PER_REQUEST))) == (400, MISMATCH)
        assert verdict(await endpoint.send(LIST, mirrored(LIST, mcp_protocol_version=NEWEST))) == (400, MISMATCH)

    async def test_header_and_body_that_agree_on_an_unknown_version_are_told_the_known_ones(
        self, endpoint: Endpoint
    ) -> None:
        body = per_request("tools/list", meta={VERSION: "v999.0.0"})
        got = await endpoint.send(body, mirrored(body))
        assert verdict(got) == (400, UNSUPPORTED)
        data = got.answer["error"]["data"]
        assert data["requested"] == "v999.0.0"
        discover = per_request("server/discover")
        known = (await endpoint.send(discover, mirrored(discover))).answer["result"]["supportedVersions"]
        assert set(data["supported"]) <= set(known)

    async def test_a_handshake_revision_is_not_spoken_without_a_handshake(self, endpoint: Endpoint) -> None:
        body = per_request("tools/list", meta={VERSION: NEWEST})
        assert verdict(await endpoint.send(body, mirrored(body))) == (400, UNSUPPORTED)

    async def test_a_server_of_the_handshake_era_alone_names_its_revisions(self) -> None:
        endpoint = Endpoint(revisions=[NEWEST])
        got = await endpoint.send(LIST, mirrored(LIST))
        assert verdict(got) == (400, UNSUPPORTED)
        assert got.answer["error"]["data"]["supported"] == [NEWEST]

    async def test_an_unknown_version_comes_before_an_unknown_method(self, endpoint: Endpoint) -> None:
        body = per_request("nope", meta={VERSION: "v999.0.0"})
        assert verdict(await endpoint.send(body, mirrored(body))) == (400, UNSUPPORTED)

    async def test_a_method_header_that_disagrees_comes_before_an_unknown_method(self, endpoint: Endpoint) -> None:
        body = per_request("nope")
        assert verdict(await endpoint.send(body, mirrored(body, mcp_method="tools/list"))) == (400, MISMATCH)

    async def test_a_name_header_that_disagrees_comes_before_an_unknown_version(self, endpoint: Endpoint) -> None:
        body = per_request("tools/call", {"name": "add"}, meta={VERSION: "v999.0.0"})
        assert verdict(await endpoint.send(body, mirrored(body, mcp_name="sub"))) == (400, MISMATCH)

    async def test_a_name_header_that_disagrees_comes_before_an_unknown_tool(self, endpoint: Endpoint) -> None:
        body = per_request("tools/call", {"name": "unknown"})
        assert verdict(await endpoint.send(body, mirrored(body, mcp_name="add"))) == (400, MISMATCH)
        assert verdict(await endpoint.send(body, mirrored(body))) == (400, -32602)

    @pytest.mark.parametrize("name", [None, 5, ["add"]])
    async def test_a_name_that_is_no_text_is_invalid_params(self, endpoint: Endpoint, name: object) -> None:
        body = per_request("tools/call", {"name": name})
        assert verdict(await endpoint.send(body, mirrored(body, mcp_name="add"))) == (400, -32602)


class TestMirroredHeaders:
    @pytest.mark.parametrize("header", ["mcp_protocol_version", "mcp_method", "mcp_name"])
    async def test_a_missing_header_is_a_mismatch(self, endpoint: Endpoint, header: str) -> None:
        assert verdict(await endpoint.send(ADD, mirrored(ADD, **{header: None}))) == (400, MISMATCH)

    @pytest.mark.parametrize("header", ["mcp_method", "mcp_name"])
    @pytest.mark.parametrize(
        "value", ["", "Tools/Call", "ADD", "=?base64?YWRk=?=", "=?base64?SGVs!!!bG8=?=", "add\x00"]
    )
    async def test_a_header_that_says_something_else_is_a_mismatch(
        self, endpoint: Endpoint, header: str, value: str
    ) -> None:
        assert verdict(await endpoint.send(ADD, mirrored(ADD, **{header: value}))) == (400, MISMATCH)

    @pytest.mark.parametrize("value", ["add", "  add  ", "\tadd", "=?base64?YWRk?="])
    async def test_white_space_and_base64_do_not_count(self, endpoint: Endpoint, value: str) -> None:
        assert verdict(await endpoint.send(ADD, mirrored(ADD, mcp_name=value))) == (200, None)

    @pytest.mark.parametrize("name", ["mcp-protocol-version", "mcp-method", "mcp-name", "mcp-param-region"])
    async def test_a_header_that_comes_twice_is_a_mismatch(self, endpoint: Endpoint, name: str) -> None:
        body = per_request("tools/call", {"name": "regional", "arguments": {"region": "eu"}})
        headers = [(key, value) for key, value in mirrored(body, mcp_param_region="eu").items() if value is not None]
        assert verdict(await endpoint.send(body, headers)) == (200, None)
        twice = [*headers, (name, dict(headers)[name])]
        assert verdict(await endpoint.send(body, twice)) == (400, MISMATCH)

    async def test_any_other_header_may_come_twice(self, endpoint: Endpoint) -> None:
        headers = [(key, value) for key, value in mirrored(ADD).items() if value is not None]
        assert verdict(await endpoint.send(ADD, [*headers, ("x-trace", "1"), ("x-trace", "2")])) == (200, None)

    @pytest.mark.parametrize(
        ("arguments", "headers", "status"),
        [
            ({"region": "eu", "count": 42}, {"mcp_param_region": "eu", "mcp_param_count": "42.0"}, 200),
            ({"region": "Grüße"}, {"mcp_param_region": "=?base64?R3LDvMOfZQ==?="}, 200),
            ({}, {}, 200),
            ({"region": None}, {}, 200),
            ({"region": "eu"}, {}, 400),
            ({"region": "eu"}, {"mcp_param_region": "us"}, 400),
            ({"region": "eu"}, {"mcp_param_region": "=?base64?bad?="}, 400),
            ({"count": 42}, {"mcp_param_count": "43"}, 400),
        ],
    )
    async def test_marked_arguments_must_be_repeated(
        self, endpoint: Endpoint, arguments: dict[str, Any], headers: dict[str, str], status: int
    ) -> None:
        body = per_request("tools/call", {"name": "regional", "arguments": arguments})
        got = await endpoint.send(body, mirrored(body, **headers))
        assert verdict(got) == (status, None if status == 200 else MISMATCH)

    async def test_arguments_that_are_no_object_repeat_nothing(self, endpoint: Endpoint) -> None:
        body = per_request("tools/call", {"name": "regional", "arguments": [1]})
        assert verdict(await endpoint.send(body, mirrored(body))) == (400, -32602)


async def ask_name(context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
    answers = await context.ask({"name": ASK_NAME})
    return text_result(f"Hello, {answers['name']['content']['name']}!")


@pytest.mark.parametrize("accept", ["application/json", "application/json, text/event-stream"])
async def test_a_question_is_a_result_and_never_a_request(accept: str) -> None:
    endpoint = Endpoint(tool("greet", ask_name, interactive=True))
    body = per_request("tools/call", {"name": "greet"}, {"elicitation": {}})
    first = valid(await endpoint.send(body, mirrored(body, accept=accept)), "tools/call")
    assert (first.status, first.answer["result"]["resultType"]) == (200, "input_required")
    ada = {"action": "accept", "content": {"name": "Ada"}}
    again = {"inputResponses": {"name": ada}, "requestState": first.answer["result"]["requestState"]}
    body = per_request("tools/call", {"name": "greet", **again}, {"elicitation": {}})
    last = valid(await endpoint.send(body, mirrored(body, accept=accept)), "tools/call")
    assert last.text == "Hello, Ada!"


async def test_a_capability_that_is_missing_is_a_bad_request() -> None:
    endpoint = Endpoint(tool("greet", ask_name, interactive=True))
    body = per_request("tools/call", {"name": "greet"})
    got = await endpoint.send(body, mirrored(body))
    assert verdict(got) == (400, MISSING_CAPABILITY)
    assert got.answer["error"]["data"] == {"requiredCapabilities": {"elicitation": {}}}


async def report(context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
    for progress in (0, 50, 100):
        await context.notify("notifications/progress", {"progressToken": "t", "progress": progress})
    return text_result("reported")


async def test_progress_comes_before_the_answer_as_events() -> None:
    endpoint = Endpoint(tool("report", report, interactive=True))
    body = per_request("tools/call", {"name": "report"}, meta={"progressToken": "t"})
    got = valid(await endpoint.send(body, mirrored(body)), "tools/call")
    assert got.streamed
    assert got.headers["x-accel-buffering"] == "no"
    assert [one.get("params", {}).get("progress") for one in got.messages] == [0, 50, 100, None]
    assert got.text == "reported"


async def test_a_client_that_takes_no_events_gets_the_answer_alone() -> None:
    endpoint = Endpoint(tool("report", report, interactive=True))
    body = per_request("tools/call", {"name": "report"})
    got = valid(await endpoint.send(body, mirrored(body, accept="application/json")), "tools/call")
    assert not got.streamed
    assert len(got.messages) == 1


class Watched:
    """A tool that waits for ever, and a client whose leaving the test decides."""

    def __init__(self, *, speaks: bool = False, interactive: bool = False) -> None:
        self.running = asyncio.Event()
        self.stopped = asyncio.Event()
        self.left = asyncio.Event()
        self.let_go = asyncio.Event()
        self._speaks = speaks
        self.endpoint = Endpoint(tool("wait", self._wait, interactive=interactive))
        self.body = per_request("tools/call", {"name": "wait"})

    async def _wait(self, context: RequestContext, _arguments: dict[str, Any]) -> dict[str, Any]:
        if self._speaks:
            await context.notify("notifications/progress", {"progressToken": "t", "progress": 1})
        self.running.set()
        try:
            await self.let_go.wait()
        except asyncio.CancelledError:
            self.stopped.set()
            raise
        return text_result("let go")

    async def leave(self) -> None:
        """Return when the client has left."""
        await self.left.wait()

    def send(self, *, watch: bool = True) -> asyncio.Task[Got]:
        """Begin the call."""
        disconnected = self.leave if watch else None
        return asyncio.create_task(self.endpoint.send(self.body, mirrored(self.body), disconnected=disconnected))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Watch for the client's leaving at once."""
    monkeypatch.setattr(disconnect, "WATCH_DELAY", 0)


@pytest.mark.usefixtures("impatient")
class TestLeaving:
    @pytest.mark.parametrize("interactive", [False, True])
    async def test_a_client_that_leaves_before_anything_was_sent_cancels_its_call(self, interactive: bool) -> None:
        watched = Watched(interactive=interactive)
        running = watched.send()
        await asyncio.wait_for(watched.running.wait(), PATIENCE)
        watched.left.set()
        got = await asyncio.wait_for(running, PATIENCE)
        assert watched.stopped.is_set()
        assert got.body == b""

    async def test_a_client_that_leaves_a_stream_cancels_its_call(self) -> None:
        watched = Watched(speaks=True, interactive=True)
        stream = events(await watched.endpoint.open(watched.body, mirrored(watched.body)))
        await next_message(stream)
        await stream.aclose()  # type: ignore[attr-defined]
        await asyncio.wait_for(watched.stopped.wait(), PATIENCE)

    async def test_a_client_that_stays_gets_its_answer(self) -> None:
        watched = Watched()
        running = watched.send()
        await asyncio.wait_for(watched.running.wait(), PATIENCE)
        for _ in range(3):
            await asyncio.sleep(0)
        watched.let_go.set()
        assert (await asyncio.wait_for(running, PATIENCE)).text == "let go"

    async def test_where_the_platform_cannot_tell_the_call_goes_on(self) -> None:
        watched = Watched()
        running = watched.send(watch=False)
        await asyncio.wait_for(watched.running.wait(), PATIENCE)
        watched.let_go.set()
        assert (await asyncio.wait_for(running, PATIENCE)).text == "let go"


async def test_a_quick_call_is_answered_before_any_watch_begins() -> None:
    watched = Watched()
    running = watched.send()
    await asyncio.wait_for(watched.running.wait(), PATIENCE)
    watched.let_go.set()
    assert (await asyncio.wait_for(running, PATIENCE)).text == "let go"
