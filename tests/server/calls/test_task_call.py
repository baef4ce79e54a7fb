"""What is stored of a call, and the context of a run in a worker."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._auth.principal import Principal
from funcmcp._protocol.errors import MCPError
from funcmcp._protocol.jsonrpc import Request
from funcmcp._protocol.revisions import REVISIONS
from funcmcp._server.calls import task_call
from funcmcp._server.calls.channel import ClosedChannel
from funcmcp._server.calls.rounds import InputRequired
from funcmcp._server.calls.route import RoutedRequest
from funcmcp._server.calls.task_call import (
    STATUS,
    DetachableContext,
    StoredResults,
    TaskChannel,
    decode_call,
    encode_call,
    progress_message,
    stored_questions,
)
from funcmcp._server.connections.client import ConnectedClient
from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp._state.tasks.store import TasksFullError
from tests.server.parts import ASK_NAME, PER_REQUEST, tool
from tests.server.task_parts import HTTP, asking

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

TOOL = tool("job")


async def note_nothing(_key: str, _result: Any) -> None:
    return None


NO_RESULTS = StoredResults({}, note_nothing)
CHANNEL = TaskChannel({}, print, NO_RESULTS)
ALICE = Principal(
    "alice",
    "issuer",
    "client",
    scopes=frozenset({"read"}),
    roles=frozenset({"cook"}),
    claims={"sub": "alice", "aud": ["a", "b"]},
    name="Alice",
)
ARGUMENTS: dict[str, Any] = {"empty": [], "large": 2**63, "small": 1e-320, "text": "ä\u2028"}


def call_of(principal: Principal | None = ALICE, **params: Any) -> bytes:
    http = HTTP(principal, headers={"authorization": "Bearer secret", "cookie": "secret"})
    params = {"name": "job", "arguments": ARGUMENTS, "_meta": {"x": 1}, **params}
    return encode_call(asking("tools/call", params, http=http))


@pytest.mark.parametrize("principal", [ALICE, Principal("9f86d081884c7d65", per_token=True), None])
def test_a_run_has_the_arguments_the_client_and_the_principal_of_the_call(principal: Principal | None) -> None:
    context = decode_call(call_of(principal), TOOL, task_id="id", channel=CHANNEL)
    assert context is not None
    assert context.request.params == {"name": "job", "arguments": ARGUMENTS, "_meta": {"x": 1}}
    assert (context.request.id, context.client.revision.date) == (1, PER_REQUEST)
    assert "elicitation" in context.client.capabilities
    assert context.principal == principal
    if principal is not None:
        assert context.principal is not None
        assert context.principal.claims == principal.claims
    assert (context.task_id, context.http, context.client.session_id) == ("id", None, None)
    assert context.feature is TOOL


async def test_to_detach_within_a_task_does_nothing() -> None:
    context = decode_call(call_of(), TOOL, task_id="id", channel=CHANNEL)
    assert context is not None
    await context.detach()


def test_nothing_of_tokens_headers_answers_or_states_is_stored() -> None:
    call = call_of(inputResponses={"name": "secret"}, requestState="secret", task={"ttl": 7})
    assert b"secret" not in call
    assert b"ttl" not in call


def test_arguments_of_the_greatest_depth_are_stored() -> None:
    nested: Any = 1
    for _ in range(62):
        nested = [nested]
    call = call_of(arguments={"nested": nested})
    assert decode_call(call, TOOL, task_id="id", channel=CHANNEL) is not None


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"v": 2}, id="another version"),
        pytest.param({"revision": "2030-01-01"}, id="an unknown revision"),
        pytest.param({"params": []}, id="no params"),
        pytest.param({"principal": "alice"}, id="no principal"),
    ],
)
def test_a_call_that_this_version_did_not_write_is_not_run(change: dict[str, Any]) -> None:
    call = json.dumps({**json.loads(call_of()), **change}).encode()
    assert decode_call(call, TOOL, task_id="id", channel=CHANNEL) is None


def test_a_call_with_members_of_a_later_version_is_run() -> None:
    stored = json.loads(call_of())
    later = {**stored, "added": [1], "principal": {**stored["principal"], "added": {}}}
    context = decode_call(json.dumps(later).encode(), TOOL, task_id="id", channel=CHANNEL)
    assert context is not None
    assert context.principal == ALICE


def test_a_call_whose_caller_this_version_can_not_read_is_not_run() -> None:
    stored = json.loads(call_of())
    principal = stored["principal"]
    for name in principal:
        missing = {other: value for other, value in principal.items() if other != name}
        for bad in (missing, {**principal, name: 7}, {**principal, name: [None]}, {**principal, "subject": ""}):
            call = json.dumps({**stored, "principal": bad}).encode()
            assert decode_call(call, TOOL, task_id="id", channel=CHANNEL) is None, bad


@pytest.mark.parametrize("call", [b"", b"x", b"[]", b"{}"])
def test_bytes_that_are_no_call_are_not_run(call: bytes) -> None:
    assert decode_call(call, TOOL, task_id="id", channel=CHANNEL) is None


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"progress": 3}, "3"),
        ({"progress": 0.5, "total": 1}, "0.5 of 1"),
        ({"progress": 3, "total": 10, "message": "reading"}, "reading (3 of 10)"),
        ({"progress": 3, "message": "reading"}, "reading (3)"),
    ],
)
def test_progress_is_a_message(params: dict[str, Any], message: str) -> None:
    assert progress_message(params) == message


async def test_a_status_message_has_a_thousand_characters_at_most() -> None:
    messages: list[str] = []
    await TaskChannel({}, messages.append, NO_RESULTS).notify(
        "notifications/progress", {"progress": 1, "message": "x" * 5000}
    )
    assert messages == ["x" * 1000]


async def test_an_answer_counts_for_exactly_its_question() -> None:
    answer = {"action": "decline"}
    digest = stored_questions({"name": ASK_NAME})["name"].digest
    channel = TaskChannel({"name": (digest, answer)}, print, NO_RESULTS)
    assert await channel.ask({"name": ASK_NAME}) == {"name": answer}
    changed = {**ASK_NAME, "params": {"message": "Another question"}}
    with pytest.raises(InputRequired) as ended:
        await channel.ask({"name": changed, "other": ASK_NAME})
    assert ended.value.questions == {"name": changed, "other": ASK_NAME}


async def test_the_id_of_a_url_question_may_differ_in_every_run() -> None:
    def question(name: str) -> dict[str, Any]:
        return {"method": "elicitation/create", "params": {"mode": "url", "url": "https://a", "elicitationId": name}}

    digest = stored_questions({"page": question("first")})["page"].digest
    channel = TaskChannel({"page": (digest, {"action": "accept"})}, print, NO_RESULTS)
    assert await channel.ask({"page": question("second")}) == {"page": {"action": "accept"}}


async def test_only_progress_is_reported() -> None:
    reported: list[str] = []
    channel = TaskChannel({}, reported.append, NO_RESULTS)
    await channel.notify("notifications/message", {"level": "info", "data": "x"})
    await channel.notify("notifications/progress", {"progress": 1})
    assert reported == ["1"]


def test_there_is_no_stream_to_close() -> None:
    CHANNEL.close_stream()


async def test_a_part_of_a_task_runs_once_for_each_key_also_if_it_is_asked_for_twice_at_once() -> None:
    notes: list[tuple[str, Any]] = []

    async def note(key: str, result: Any) -> object:
        notes.append((key, result))
        return result

    async def charge() -> Any:
        await asyncio.sleep(0)
        return {"amounts": (1, 2)}

    results = StoredResults({"old": None}, note)
    found = await asyncio.gather(*(results.once(key, charge) for key in ("new", "old", "new")))
    assert found == [{"amounts": [1, 2]}, None, {"amounts": [1, 2]}]
    assert notes == [("new", {"amounts": [1, 2]})]


async def test_the_result_of_a_part_waits_for_a_store_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_call, "_AWAY_PAUSE", 0)
    failures: list[Exception] = [StoreUnavailableError(), StoreUnavailableError()]

    async def note(_key: str, result: Any) -> object:
        if failures:
            raise failures.pop()
        return {"stored": result}

    assert await StoredResults({}, note).once("key", returning(1)) == 1
    assert failures == []


def returning(value: object) -> Callable[[], Awaitable[object]]:
    async def run() -> object:
        return value

    return run


async def full(_key: str, _result: Any) -> object:
    raise TasksFullError(1, of_bytes=True)


@pytest.mark.parametrize(
    ("note", "message"),
    [
        (note_nothing, "The task has ended, or runs elsewhere."),
        (full, "There is no room for the result of 'key'. The arguments and results of all tasks have too many bytes."),
    ],
)
async def test_a_result_that_can_not_be_stored_ends_the_run(
    note: Callable[[str, Any], Awaitable[object]], message: str
) -> None:
    with pytest.raises(MCPError, match=re.escape(message)):
        await StoredResults({}, note).once("key", returning(1))


async def test_a_result_that_is_not_json_is_an_error_of_the_author() -> None:
    with pytest.raises(ValueError, match="serialize"):
        await StoredResults({}, full).once("key", returning(object()))


async def test_results_of_the_call_are_those_of_the_first_run() -> None:
    routed = RoutedRequest(Request(1, "tools/call", {"name": "job"}))
    detachable = DetachableContext(routed, ConnectedClient(REVISIONS[PER_REQUEST], {}, {}), ClosedChannel())
    detachable.results["upstream task"] = {"taskId": "7"}

    async def run() -> dict[str, str]:
        raise AssertionError("It has run before the call became a task.")

    channel = TaskChannel({}, print, StoredResults({}, note_nothing))
    run_context = decode_call(encode_call(detachable), TOOL, task_id="t", channel=channel)
    assert run_context is not None
    assert await run_context.once("upstream task", run) == {"taskId": "7"}


async def test_a_run_reports_a_status_message() -> None:
    reported: list[str] = []
    channel = TaskChannel({}, reported.append, NO_RESULTS)
    await channel.notify(STATUS, {"statusMessage": "x" * 2000})
    assert reported == ["x" * 1000]
