"""JSON-RPC messages, in both eras."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from tests import rules
from tests.wire.peer import (
    ALL,
    BATCHES,
    ERAS,
    HANDSHAKE,
    HANDSHAKES,
    META,
    PER_REQUEST,
    Answer,
    check,
    connect,
    initialize,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.wire.offering import Offering

pytestmark = pytest.mark.every_python("On Python 3.13 these tests send POSTs to the way without ASGI.")

IDS = [0, 1, -1, 2**31, 2**53 + 1, 2**63, 10**30, "", "1", "a b", 'é\u2028\\"', "x" * 5000]


@rules.verifies(rules.J1, rules.THREAT_8)
@pytest.mark.parametrize("revision", ERAS)
async def test_an_answer_has_the_very_id_of_its_request(offering: Offering, revision: str) -> None:
    """Strings and integers of any size keep their type, in results and in errors."""
    peer = await connect(offering.app, revision)
    for request_id in IDS:
        for method in ("tools/list", "unheard/of"):
            received = (await peer.request(method, id=request_id)).message["id"]
            assert (type(received), received) == (type(request_id), request_id)


@rules.verifies(rules.J1, rules.J2, rules.TRAP_6)
@pytest.mark.parametrize("request_id", [None, 1.5, True, False, {}, [], [1], {"id": 1}])
@pytest.mark.parametrize("revision", ERAS)
async def test_any_other_id_is_400_invalid_request(offering: Offering, revision: str, request_id: object) -> None:
    """The error has no id."""
    peer = await connect(offering.app, revision)
    answer = await peer.request("tools/list", id=request_id)
    assert answer.outcome == (400, -32600)
    assert "id" not in answer.message
    await peer.works()


@rules.verifies(rules.J2, rules.TRAP_6)
@pytest.mark.parametrize("revision", ALL)
@pytest.mark.parametrize("body", [b"{", b"[]", b'{"jsonrpc":"2.0","id":null,"method":"ping"}', b"7"])
async def test_an_error_without_a_readable_id_leaves_it_out(offering: Offering, revision: str, body: bytes) -> None:
    answer = await (await connect(offering.app, revision)).post(body)
    assert answer.status == 400
    assert "id" not in answer.message


@rules.verifies(rules.J3, rules.TRAP_8)
async def test_a_batch_gets_an_array_of_answers(offering: Offering) -> None:
    """Only the requests of the batch are answered, in their order."""
    peer = await connect(offering.app, BATCHES)
    batch = [
        peer.message("ping", id="first"),
        {"jsonrpc": "2.0", "method": "notifications/unheard_of"},
        peer.message("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}, id=1),
        peer.message("unheard/of", id="1"),
    ]
    answer = await peer.post(batch)
    assert answer.status == 200
    assert [message["id"] for message in answer.message] == ["first", 1, "1"]
    assert answer.message[2]["error"]["code"] == -32601


@rules.verifies(rules.J3, rules.THREAT_8)
async def test_requests_of_a_batch_with_the_same_id_are_all_answered(offering: Offering) -> None:
    """The responses are in the order of the requests."""
    peer = await connect(offering.app, BATCHES)
    batch = [
        peer.message("tools/call", {"name": "add", "arguments": {"a": number, "b": 0}}, id=1) for number in range(3)
    ]
    answers = (await peer.post(batch)).message
    assert sorted(answer["result"]["content"][0]["text"] for answer in answers) == ["0", "1", "2"]


@rules.verifies(rules.J3, rules.H6)
async def test_a_batch_of_notifications_is_202(offering: Offering) -> None:
    batch = [{"jsonrpc": "2.0", "method": "notifications/initialized"}]
    answer = await (await connect(offering.app, BATCHES)).post(batch)
    assert (answer.status, answer.body) == (202, b"")


@rules.verifies(rules.J3, rules.H6)
async def test_a_batch_of_responses_to_no_open_question_is_400(offering: Offering) -> None:
    """The same holds for a single response."""
    batch: list[Any] = [{"jsonrpc": "2.0", "id": number, "result": {}} for number in (1, 2)]
    answer = await (await connect(offering.app, BATCHES)).post(batch)
    assert answer.outcome == (400, -32600)


@rules.verifies(rules.J3)
@pytest.mark.parametrize(
    "batch", [[], [initialize(BATCHES)], [[]], [1], [{}], [{"jsonrpc": "2.0", "id": None, "method": "ping"}]]
)
async def test_a_bad_batch_is_400(offering: Offering, batch: list[Any]) -> None:
    """The batch is empty, has `initialize`, or has a value that is not a message."""
    peer = await connect(offering.app, BATCHES)
    assert (await peer.post(batch)).outcome == (400, -32600)
    assert (await peer.post([peer.message("ping"), *batch])).status == (400 if batch else 200)
    await peer.works()


@pytest.mark.slow("Many calls take half a second or longer.")
@rules.verifies(rules.J3, rules.THREAT_22)
async def test_a_batch_is_bounded(offering: Offering) -> None:
    """One body must not start an unlimited number of calls."""
    peer = await connect(offering.app, BATCHES)
    assert (await peer.post([peer.message("ping", id=number) for number in range(10_000)])).outcome == (400, -32600)


@rules.verifies(rules.J3, rules.TRAP_8)
@pytest.mark.parametrize("revision", [revision for revision in ALL if revision != BATCHES])
async def test_a_batch_is_refused_by_every_other_revision(offering: Offering, revision: str) -> None:
    """No message of the batch is executed."""
    peer = await connect(offering.app, revision)
    message = peer.message("tools/call", {"name": "wait", "arguments": {"key": "batch"}})
    for batch in ([message], [message, message], []):
        assert (await peer.post(batch, like=message)).outcome == (400, -32600)
    assert not offering.gates.was("arrived", "batch")


@rules.verifies(rules.J4, rules.THREAT_37)
@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize(
    "method", ["tools/call", "tools/list", "ping", "initialize", "unheard/of", "notifications/unheard_of"]
)
async def test_a_notification_runs_nothing_and_is_not_answered(offering: Offering, revision: str, method: str) -> None:
    """A request without id is a notification."""
    peer = await connect(offering.app, revision)
    answer = await peer.notify(method, {"name": "wait", "arguments": {"key": "notified"}})
    assert (answer.status, answer.body) == (202, b"")
    assert not offering.gates.was("arrived", "notified")


@rules.verifies(rules.J5, rules.TRAP_2)
@pytest.mark.parametrize("revision", ALL)
async def test_no_error_has_a_code_that_the_revision_does_not_define(offering: Offering, revision: str) -> None:
    """-32000 to -32019 are never used, and -32002 and -32042 only by earlier revisions than 2026-07-28."""
    peer = await connect(offering.app, revision)
    answers = [
        await peer.request("unheard/of"),
        await peer.call("unheard_of"),
        await peer.request("resources/read", {"uri": "unheard://of"}),
        await peer.request("tools/list", {"cursor": "unheard of"}),
        await peer.post(b"{", like=peer.message("tools/list")),
        await peer.post(b"7", like=peer.message("tools/list")),
        await peer.request("tools/list", headers={"origin": "null"}),
        await peer.request("tools/list", headers={"content-type": "text/plain"}),
        await peer.request("tools/list", headers={"accept": "text/html"}),
        await peer.request("tools/list", headers={"mcp-protocol-version": "unheard of"}),
        await peer.request("tools/list", headers={"mcp-session-id": "unheard-of", "mcp-method": "unheard/of"}),
    ]
    not_found = -32602 if peer.per_request else -32002
    assert [answer.error["code"] for answer in answers[:6]] == [-32601, -32602, not_found, -32602, -32700, -32600]
    for answer in answers:
        assert answer.error["code"] in {-32700, -32600, -32601, -32602, -32603, -32020, -32022, not_found}


@rules.verifies(rules.J6, rules.TRAP_15, rules.TRAP_18)
@pytest.mark.parametrize("method", ["server/discover", "tools/list", "tools/call"])
async def test_every_result_says_its_type_and_its_server_in_the_per_request_era(
    offering: Offering, method: str
) -> None:
    result = (await (await connect(offering.app, PER_REQUEST)).request(method, {"name": "nothing"})).result
    assert result["resultType"] == "complete"
    assert result["_meta"][META + "serverInfo"] == {"name": "wire", "version": "1.0"}
    assert "serverInfo" not in result


@rules.verifies(rules.J6, rules.TRAP_15, rules.TRAP_16)
@pytest.mark.parametrize("revision", HANDSHAKES)
@pytest.mark.parametrize("method", ["tools/list", "tools/call", "ping"])
async def test_no_result_of_the_handshake_era_has_what_belongs_to_the_other(
    offering: Offering, revision: str, method: str
) -> None:
    """There is no `resultType`, no caching field and no server info."""
    result = (await (await connect(offering.app, revision)).request(method, {"name": "nothing"})).result
    assert not {"resultType", "ttlMs", "cacheScope", "_meta"} & set(result)


_META_KEY = re.compile(
    r"(?:[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*/)?(?:[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)?"
)


def meta_keys(value: object) -> Iterator[str]:
    """Give every key of every `_meta` in a message."""
    if isinstance(value, dict):
        for name, member in value.items():
            if name == "_meta":
                yield from member
            yield from meta_keys(member)
    elif isinstance(value, list):
        for member in value:
            yield from meta_keys(member)


@rules.verifies(rules.J7)
@pytest.mark.parametrize("revision", ERAS)
async def test_meta_names_keep_the_rules_and_foreign_ones_are_let_be(offering: Offering, revision: str) -> None:
    """Names from the server match the grammar. Names from a client have no effect."""
    peer = await connect(offering.app, revision)
    foreign = {"com.example/key": {"a": [1]}, "traceparent": "00-0-0-01", "plain": None, META + "unheardOf": 1, "": 0}
    for method in ("tools/list", "tools/call"):
        answer = await peer.request(method, {"name": "nothing", "_meta": foreign})
        assert answer.status == 200
        assert all(_META_KEY.fullmatch(key) for key in meta_keys(answer.message))


@rules.verifies(rules.J7)
@pytest.mark.parametrize("meta", [None, [], "meta", 1])
async def test_meta_of_the_wrong_shape_breaks_nothing_in_the_handshake_era(offering: Offering, meta: object) -> None:
    """The request is rejected or the member is ignored, but there is no internal error."""
    peer = await connect(offering.app, HANDSHAKE)
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
    assert (await peer.post(message)).outcome in {(200, None), (200, -32602), (400, -32600)}
    await peer.works()


@rules.verifies(rules.TRAP_21)
@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize("method", ["tools/list", "unheard/of", "tools/call"])
async def test_an_answer_is_one_line_of_json(offering: Offering, revision: str, method: str) -> None:
    """Events have one line of JSON too."""
    peer = await connect(offering.app, revision)
    answer = await peer.request(method, {"name": "echo", "arguments": {"text": "two\nlines\r\nand \u2028 \u2029 \x85"}})
    assert len(answer.body.splitlines()) == 1
    stream = await peer.call("talk")
    for line in stream.body.split(b"\n"):
        assert line.startswith((b"event: ", b"data: ")) or not line


def test_a_peer_is_judged_by_the_official_schema() -> None:
    """The net itself: an answer that breaks the schema does not pass unseen."""
    body = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}'
    with pytest.raises(AssertionError, match="not a"):
        check(Answer(400, [("content-type", "application/json")], body), HANDSHAKE)
    leak = b'{"jsonrpc":"2.0","error":{"code":-32600,"message":"ValueError in server.py"}}'
    with pytest.raises(AssertionError, match="the answer tells"):
        check(Answer(400, [("content-type", "application/json")], leak), HANDSHAKE)
