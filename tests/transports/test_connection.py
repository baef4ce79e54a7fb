"""A stream of messages with one client: both eras, and whatever a client sends."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.patience import PATIENCE
from tests.transports.talk import Talk, accept, cancelled, talk, text
from tests.wire.peer import BATCHES, ERAS, HANDSHAKE, HANDSHAKES, PER_REQUEST, initialize, to_bytes

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")

ONE_WITHOUT_HANDSHAKE = (PER_REQUEST,)


def code(message: dict[str, Any]) -> int:
    found: int = message["error"]["code"]
    return found


async def settled() -> None:
    """Let everything that can go on go on."""
    for _ in range(20):
        await asyncio.sleep(0)


class TestTheHandshakeEra:
    @pytest.mark.parametrize("revision", HANDSHAKES)
    async def test_a_client_initializes_and_calls(self, revision: str) -> None:
        await (await talk(revision)).works()

    async def test_messages_that_come_without_waiting_for_answers_are_answered_in_order(self) -> None:
        client = Talk()
        await client.say(initialize(HANDSHAKE, id="first"))
        await client.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        await client.say(client.request("tools/list", id="second"))
        assert [(await client.hear())["id"] for _ in range(2)] == ["first", "second"]

    @pytest.mark.parametrize("method", ["tools/list", "tools/call", "server/discover", "no/such"])
    async def test_a_request_before_initialize_is_refused_with_what_to_do(self, method: str) -> None:
        client = Talk()
        await client.say(client.request(method, id=7))
        refusal = await client.hear()
        assert (refusal["id"], code(refusal)) == (7, -32600)
        assert "Initialize first" in refusal["error"]["message"]
        await client.begin()
        await client.works()

    async def test_a_ping_is_answered_even_before_initialize(self) -> None:
        client = Talk()
        await client.say(client.request("ping"))
        assert (await client.hear("ping"))["result"] == {}

    async def test_a_refused_initialize_can_be_followed_by_a_good_one(self) -> None:
        client = Talk()
        await client.say({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 3}})
        assert code(await client.hear()) == -32602
        await client.begin()
        await client.works()

    async def test_a_second_initialize_is_refused_and_changes_nothing(self) -> None:
        client = await talk()
        await client.say(initialize("2024-11-05"))
        refusal = await client.hear()
        assert code(refusal) == -32600
        assert "already" in refusal["error"]["message"]
        await client.say(client.call("ask"))
        question = await client.hear()  # 2024-11-05 has no such question
        await client.say(accept(question, "Ada"))
        assert text(await client.hear("tools/call")) == "Hello Ada"

    async def test_a_question_is_a_request_and_the_response_its_answer(self) -> None:
        client = await talk()
        await client.say(client.call("ask", {"greeting": "Hi"}))
        question = await client.hear()
        assert question["method"] == "elicitation/create"
        await client.say(accept(question, "Ada"))
        assert text(await client.hear("tools/call")) == "Hi Ada"

    async def test_answers_find_their_questions_in_any_order(self) -> None:
        client = await talk()
        await client.say(client.call("ask_both"))
        name, colour = await client.hear(), await client.hear()
        await client.say(accept(colour, "red"))
        await client.say(accept(name, "Ada"))
        assert text(await client.hear("tools/call")) == "Ada likes red"

    @pytest.mark.parametrize(
        "response", [{"error": {"code": -32600, "message": "no"}}, {"result": {}}, {"result": {"action": "perhaps"}}]
    )
    async def test_a_response_that_is_no_answer_is_an_error_of_the_tool(self, response: dict[str, Any]) -> None:
        client = await talk()
        await client.say(client.call("ask"))
        question = await client.hear()
        await client.say({"jsonrpc": "2.0", "id": question["id"], **response})
        answer = await client.hear("tools/call")
        assert answer["result"]["isError"] is True
        assert "elicitation/create" in text(answer)

    @pytest.mark.parametrize("request_id", ["ask-0000000000000000", "another", 1, 2])
    async def test_a_response_to_nothing_is_dropped(self, request_id: str | int) -> None:
        client = await talk()
        await client.say(client.call("ask"))
        question = await client.hear()
        await client.say({"jsonrpc": "2.0", "id": request_id, "result": {"action": "decline"}})
        await client.say(accept(question, "Ada"))
        assert text(await client.hear("tools/call")) == "Hello Ada"

    async def test_the_client_hears_log_messages_from_the_level_that_it_sets_on(self) -> None:
        client = await talk()
        await client.say(client.call("log"))
        message = await client.hear()
        assert (message["method"], message["params"]["level"]) == ("notifications/message", "warning")
        assert text(await client.hear()) == "logged"
        await client.say(client.request("logging/setLevel", {"level": "error"}))
        await client.say(client.call("log"))
        assert (await client.hear("logging/setLevel"))["result"] == {}
        assert text(await client.hear()) == "logged"

    async def test_calls_that_wait_for_answers_leave_their_places_to_others(self) -> None:
        client = await talk(at_once=1)
        questions = []
        for number in range(3):
            await client.say(client.call("ask", id=number))
            questions.append(await client.hear())
        await client.works()
        for name, question in zip("abc", questions, strict=True):
            await client.say(accept(question, name))
            assert text(await client.hear("tools/call")) == f"Hello {name}"
        await client.works()

    async def test_a_call_that_is_cancelled_while_it_asks_leaves_its_place_too(self) -> None:
        client = await talk(at_once=1)
        await client.say(client.call("ask", id=1))
        question = await client.hear()
        await client.say(cancelled(1))
        await client.say(accept(question, "late"))
        await client.works()
        await client.works()


class TestThePerRequestEra:
    async def test_a_request_with_its_facts_needs_no_handshake(self) -> None:
        await (await talk(PER_REQUEST)).works()

    async def test_the_probe_tells_the_revisions(self) -> None:
        client = Talk(PER_REQUEST)
        await client.say(client.request("server/discover"))
        answer = await client.hear("server/discover")
        assert {HANDSHAKE, PER_REQUEST} <= set(answer["result"]["supportedVersions"])

    async def test_a_probe_for_a_revision_that_is_not_here_names_those_that_are(self) -> None:
        client = Talk(PER_REQUEST)
        probe = client.request("server/discover")
        probe["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2099-01-01"
        await client.say(probe)
        refusal = await client.hear()
        assert code(refusal) == -32022
        assert refusal["error"]["data"]["requested"] == "2099-01-01"
        assert PER_REQUEST in refusal["error"]["data"]["supported"]

    async def test_a_client_whose_probe_is_refused_can_fall_back_to_initialize(self) -> None:
        client = Talk(HANDSHAKE, revisions=(HANDSHAKE,))
        probing = Talk(PER_REQUEST).request("server/discover")
        await client.say(probing)
        assert code(await client.hear()) == -32022
        await client.begin()
        await client.works()

    async def test_a_handshake_revision_can_not_be_named_in_a_request(self) -> None:
        client = Talk(PER_REQUEST)
        call = client.call("add", {"a": 1, "b": 2})
        call["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = HANDSHAKE
        await client.say(call)
        assert code(await client.hear()) == -32022

    @pytest.mark.parametrize("method", ["no/such", "ping", "logging/setLevel", "initialize", "resources/subscribe"])
    async def test_a_method_that_the_revision_does_not_have_is_not_found(self, method: str) -> None:
        client = Talk(PER_REQUEST)
        await client.say(client.request(method, {"level": "info"}))
        assert code(await client.hear()) == -32601

    @pytest.mark.parametrize(
        "meta", [{}, {"io.modelcontextprotocol/protocolVersion": 5}, {"io.modelcontextprotocol/clientCapabilities": 5}]
    )
    async def test_missing_or_wrong_facts_are_wrong_parameters(self, meta: dict[str, Any]) -> None:
        client = Talk(PER_REQUEST, revisions=ONE_WITHOUT_HANDSHAKE)
        request = client.request("tools/list")
        request["params"]["_meta"] = {**request["params"]["_meta"], **meta} if meta else {}
        await client.say(request)
        assert code(await client.hear()) == -32602

    async def test_a_server_without_handshake_names_its_revisions_to_those_who_try_one(self) -> None:
        client = Talk(HANDSHAKE, revisions=ONE_WITHOUT_HANDSHAKE)
        await client.say(initialize(HANDSHAKE))
        refusal = await client.hear()
        assert code(refusal) == -32602
        assert refusal["error"]["data"]["supported"] == [PER_REQUEST]

    async def test_a_question_ends_the_request_and_the_next_one_brings_the_answer(self) -> None:
        client = Talk(PER_REQUEST)
        await client.say(client.call("ask"))
        result = (await client.hear("tools/call"))["result"]
        assert result["resultType"] == "input_required"
        again = client.call("ask", id=2)
        again["params"]["requestState"] = result["requestState"]
        again["params"]["inputResponses"] = {"name": {"action": "accept", "content": {"name": "Ada"}}}
        await client.say(again)
        assert text(await client.hear("tools/call")) == "Hello Ada"

    async def test_both_eras_are_served_on_one_connection(self) -> None:
        client = await talk(HANDSHAKE)
        modern = Talk(PER_REQUEST)
        await client.say(modern.call("add", {"a": 1, "b": 2}, id="modern"))
        answer = json.loads(await asyncio.wait_for(client._news.get(), PATIENCE))
        assert (answer["id"], answer["result"]["resultType"]) == ("modern", "complete")
        await client.works()


@pytest.mark.parametrize("revision", ERAS)
class TestInBothEras:
    async def test_progress_comes_before_the_answer(self, revision: str) -> None:
        client = await talk(revision)
        await client.say(client.call("talk"))
        told = [await client.hear() for _ in range(2)]
        assert [message["params"]["progress"] for message in told] == [1, 2]
        assert text(await client.hear("tools/call")) == "talked"

    async def test_a_slow_call_does_not_hold_up_a_fast_one(self, revision: str) -> None:
        client = await talk(revision)
        await client.say(client.call("wait", {"key": "slow"}, id="slow"))
        await client.reached("slow")
        await client.works()
        client.offering.gates.open("slow")
        assert (await client.hear())["id"] == "slow"

    async def test_a_cancelled_request_stops_and_gets_no_answer(self, revision: str) -> None:
        client = await talk(revision)
        await client.say(client.call("wait", {"key": "it"}, id=9))
        await client.reached("it")
        await client.say(cancelled(9))
        await client.offering.gates.seen("cancelled", "it")
        await client.works()

    async def test_a_request_that_is_cancelled_before_it_has_begun_never_begins(self, revision: str) -> None:
        client = await talk(revision)
        for message in (client.call("wait", {"key": "it"}, id=9), cancelled(9)):
            await client.connection.receive(to_bytes(message))  # which lets nothing else run in between
        await client.works()
        assert not client.offering.gates.was("arrived", "it")

    @pytest.mark.parametrize("request_id", ["9", 8, None, [9], {"id": 9}, True, 9.0])
    async def test_cancelling_anything_else_leaves_a_request_alone(self, revision: str, request_id: object) -> None:
        client = await talk(revision)
        await client.say(client.call("wait", {"key": "it"}, id=9))
        await client.reached("it")
        await client.say(cancelled(request_id))
        client.offering.gates.open("it")
        assert (await client.hear())["id"] == 9

    async def test_a_request_that_is_over_can_be_cancelled_without_harm(self, revision: str) -> None:
        client = await talk(revision)
        await client.works()
        await client.say(cancelled("still alive"))
        await client.works()

    async def test_the_reader_waits_while_as_many_requests_run_as_may(self, revision: str) -> None:
        client = await talk(revision, at_once=2)
        for key in ("a", "b"):
            await client.say(client.call("wait", {"key": key}, id=key))
            await client.reached(key)
        third = asyncio.create_task(client.say(client.call("wait", {"key": "c"}, id="c")))
        await settled()
        assert not third.done()
        client.offering.gates.open("a")
        await asyncio.wait_for(third, PATIENCE)
        assert (await client.hear())["id"] == "a"
        await client.reached("c")

    async def test_answers_that_the_client_does_not_read_stop_the_reader_too(self, revision: str) -> None:
        client = await talk(revision, at_once=2)
        client.reading.clear()
        for number in range(2):
            await client.say(client.call("add", {"a": 1, "b": 1}, id=number))
        third = asyncio.create_task(client.say(client.call("add", {"a": 1, "b": 1}, id=2)))
        await settled()
        assert not third.done()
        client.reading.set()
        await asyncio.wait_for(third, PATIENCE)
        assert [(await client.hear())["id"] for _ in range(3)] == [0, 1, 2]

    async def test_more_requests_than_anybody_needs_are_refused(
        self, revision: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("funcmcp._transports.connection._MAX_UNANSWERED", 2)
        client = await talk(revision)
        for key in ("a", "b"):
            await client.say(client.call("wait", {"key": key}, id=key))
        await client.say(client.call("nothing", id="c"))
        refusal = await client.hear()
        assert (refusal["id"], code(refusal)) == ("c", -32603)
        await client.reached("b")
        client.offering.gates.open("b")
        await client.hear()
        await client.works()

    async def test_a_message_is_sent_whole_even_if_its_request_is_cancelled_meanwhile(self, revision: str) -> None:
        client = await talk(revision)
        client.reading.clear()
        await client.say(client.call("talk", {"key": "it"}, id=9))  # its first message is being sent now
        await settled()
        await client.say(cancelled(9))
        await client.say(client.call("add", {"a": 1, "b": 1}, id="next"))
        await settled()
        client.reading.set()
        assert (await client.hear())["params"]["progress"] == 1
        assert (await client.hear())["id"] == "next"

    async def test_nothing_is_sent_for_a_request_after_it_was_cancelled(self, revision: str) -> None:
        client = await talk(revision)
        await client.say(client.call("talk", {"key": "it"}, id=9))
        await client.hear()
        await client.reached("it")
        client.offering.gates.open("it")
        await client.say(cancelled(9))
        await client.works()

    async def test_a_notification_can_be_pushed_outside_of_any_request(self, revision: str) -> None:
        client = await talk(revision)
        await client.connection.push("notifications/tools/list_changed", {})
        assert (await client.hear())["method"] == "notifications/tools/list_changed"

    async def test_an_unknown_notification_gets_no_answer(self, revision: str) -> None:
        client = await talk(revision)
        await client.say({"jsonrpc": "2.0", "method": "notifications/no/such", "params": {}})
        await client.works()


class TestBatches:
    async def test_the_answers_of_a_batch_come_in_one_array(self) -> None:
        client = await talk(BATCHES)
        note = {"jsonrpc": "2.0", "method": "notifications/no/such"}
        await client.say([client.call("add", {"a": 1, "b": 2}, id=1), note, client.request("ping", id=2)])
        assert sorted(one["id"] for one in await client.hear()) == [1, 2]

    async def test_a_batch_without_requests_gets_no_answer(self) -> None:
        client = await talk(BATCHES)
        await client.say([{"jsonrpc": "2.0", "method": "notifications/no/such"}])
        await client.works()

    async def test_what_is_wrong_in_a_batch_gets_an_error_of_its_own(self) -> None:
        client = await talk(BATCHES)
        bad = {"jsonrpc": "2.0", "id": 3, "method": 5}
        await client.say([client.request("ping", id=1), 7, bad, initialize(BATCHES, id=4)])
        answers = {one.get("id"): one for one in await client.hear()}
        assert answers[1]["result"] == {}
        assert [code(answers[key]) for key in (None, 3, 4)] == [-32600, -32600, -32600]

    async def test_a_cancelled_request_of_a_batch_leaves_the_others_alone(self) -> None:
        client = await talk(BATCHES)
        await client.say([client.call("wait", {"key": key}, id=key) for key in ("a", "b")])
        await client.reached("b")
        await client.say([cancelled("a")])
        await client.offering.gates.seen("cancelled", "a")
        client.offering.gates.open("b")
        assert [one["id"] for one in await client.hear()] == ["b"]

    async def test_a_batch_may_have_more_requests_than_run_at_once(self) -> None:
        client = await talk(BATCHES, at_once=2)
        await client.say([client.request("ping", id=number) for number in range(100)])
        assert sorted(one["id"] for one in await client.hear()) == list(range(100))

    @pytest.mark.parametrize("size", [0, 101])
    async def test_an_empty_or_a_huge_batch_is_refused(self, size: int) -> None:
        client = await talk(BATCHES)
        await client.say([client.request("ping")] * size)
        assert code(await client.hear()) == -32600
        await client.works()

    @pytest.mark.parametrize("revision", [date for date in (*HANDSHAKES, PER_REQUEST) if date != BATCHES])
    async def test_other_revisions_have_none(self, revision: str) -> None:
        client = await talk(revision)
        await client.say([client.request("tools/list")])
        refusal = await client.hear()
        assert (code(refusal), "id" in refusal) == (-32600, False)
        await client.works()

    async def test_there_is_none_before_initialize(self) -> None:
        client = Talk(BATCHES)
        await client.say([initialize(BATCHES)])
        assert code(await client.hear()) == -32600


@pytest.mark.parametrize("revision", ERAS)
class TestWhatIsNoMessage:
    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"x",
            b"{",
            b'{"jsonrpc":"2.0","id":1,"method":"ping"',
            b"\xff\xfe",
            b"\xef\xbb\xbf{}",
            b'{"jsonrpc":"2.0","id":null,"method":"ping","params":{"a":NaN}}',
            b'{"a":' * 65 + b"1" + b"}" * 65,
            b"[" * 100_000,
            b'"\\ud800"',
        ],
    )
    async def test_what_is_no_json_is_a_parse_error_and_never_the_end(self, revision: str, data: bytes) -> None:
        client = await talk(revision)
        await client.say(data)
        refusal = await client.hear()
        assert (code(refusal), "id" in refusal) == (-32700, False)
        await client.works()

    @pytest.mark.parametrize(
        ("params", "expected"),
        [
            (b'{"name":"\\ud800"}', -32700),
            (b'{"a":NaN}', -32700),
            (b'{"a":1e999}', -32700),
            (b'{"a":' * 70 + b"1" + b"}" * 70, -32700),
            (b'{"name":"a","name":"b"}', -32600),
        ],
    )
    async def test_a_refused_request_is_answered_under_its_id(
        self, revision: str, params: bytes, expected: int
    ) -> None:
        client = await talk(revision)
        await client.say(b'{"jsonrpc":"2.0","id":"mine","method":"tools/call","params":%b}' % params)
        refusal = await client.hear()
        assert (code(refusal), refusal["id"]) == (expected, "mine")
        await client.works()

    @pytest.mark.parametrize(
        "message",
        [
            1,
            None,
            "text",
            {},
            {"jsonrpc": "1.0", "id": None, "method": "ping"},
            {"jsonrpc": "2.0", "id": None, "method": "ping"},
            {"jsonrpc": "2.0", "id": 1.5, "method": "ping"},
            {"jsonrpc": "2.0", "id": 5},
            {"jsonrpc": "2.0", "id": 5, "result": 1},
            b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}',
        ],
    )
    async def test_what_is_no_request_is_refused_without_an_id(self, revision: str, message: object) -> None:
        client = await talk(revision)
        await client.say(message)
        refusal = await client.hear()
        assert (code(refusal), "id" in refusal) == (-32600, False)
        await client.works()

    @pytest.mark.parametrize("wrong", [{"method": 5}, {"method": "ping", "params": [1]}, {"method": "x", "jsonrpc": 2}])
    async def test_what_is_wrong_in_a_request_is_told_under_its_id(self, revision: str, wrong: dict[str, Any]) -> None:
        client = await talk(revision)
        await client.say({"jsonrpc": "2.0", "id": "mine", **wrong})
        refusal = await client.hear()
        assert (refusal["id"], code(refusal)) == ("mine", -32600)
        await client.works()


class TestTheEnd:
    async def test_closing_cancels_what_is_under_way_and_sends_nothing_more(self) -> None:
        client = await talk()
        await client.say(client.call("wait", {"key": "it"}))
        await client.reached("it")
        sent = len(client.heard)
        await asyncio.wait_for(client.connection.aclose(), PATIENCE)
        assert client.offering.gates.was("cancelled", "it")
        await client.connection.push("notifications/tools/list_changed", {})
        await client.say(client.request("ping"))
        assert len(client.heard) == sent

    async def test_closing_frees_those_who_wait_to_send(self) -> None:
        client = await talk()
        client.reading.clear()
        pushing = [asyncio.create_task(client.connection.push("notifications/x", {})) for _ in range(3)]
        await settled()
        await asyncio.wait_for(client.connection.aclose(), PATIENCE)
        await asyncio.wait_for(asyncio.gather(*pushing), PATIENCE)
        assert len(client.heard) == 1

    async def test_a_client_that_does_not_read_for_too_long_is_given_up_with_all_it_asked_for(self) -> None:
        client = await talk(patience=0.01)
        await client.say(client.call("wait", {"key": "it"}, id=1))
        await client.reached("it")
        client.reading.clear()
        sent = len(client.heard)
        await asyncio.wait_for(client.connection.push("notifications/x", {}), PATIENCE)
        await client.offering.gates.seen("cancelled", "it")
        assert client.connection.closed
        client.reading.set()
        await client.say(client.request("ping"))
        await settled()
        assert len(client.heard) == sent

    async def test_a_call_whose_answer_is_not_read_for_too_long_ends_too(self) -> None:
        client = await talk(patience=0.01)
        client.reading.clear()
        await client.say(client.call("add", {"a": 1, "b": 1}))
        _, pending = await asyncio.wait(client.connection._calls, timeout=PATIENCE)
        assert not pending
        assert client.connection.closed

    async def test_a_call_that_ignores_the_end_is_left_behind(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("funcmcp._transports.connection._CLOSING_SECONDS", 0.01)
        client, gate, begun = await talk(), asyncio.Event(), asyncio.Event()

        @client.offering.app.tool(timeout=None)
        async def stay() -> None:
            begun.set()
            while not gate.is_set():
                try:
                    await gate.wait()
                except asyncio.CancelledError:
                    continue

        await client.say(client.call("stay"))
        await asyncio.wait_for(begun.wait(), PATIENCE)
        await asyncio.wait_for(client.connection.aclose(), PATIENCE)
        gate.set()
        await settled()

    async def test_finishing_waits_for_calls_in_flight_and_refuses_further_ones(self) -> None:
        client = await talk()
        await client.say(client.call("wait", {"key": "it"}, id=1))
        await client.reached("it")
        finishing = asyncio.create_task(client.connection.finish(PATIENCE))
        await settled()
        await client.say(client.call("nothing", id=2))
        refusal = await client.hear()
        assert (refusal["id"], code(refusal)) == (2, -32603)
        assert not finishing.done()
        client.offering.gates.open("it")
        await asyncio.wait_for(finishing, PATIENCE)
        assert (await client.hear())["id"] == 1

    async def test_finishing_waits_no_longer_than_it_is_told(self) -> None:
        client = await talk()
        await client.say(client.call("wait", {"key": "it"}, id=1))
        await client.reached("it")
        await asyncio.wait_for(client.connection.finish(0.01), PATIENCE)
        assert not client.offering.gates.was("cancelled", "it")

    async def test_after_the_end_of_input_open_questions_and_new_ones_fail(self) -> None:
        client = await talk()
        await client.say(client.call("ask_twice", id=1))
        await client.hear()
        client.connection.end_of_input()
        assert (await client.hear("tools/call"))["result"]["isError"] is True
        await client.say(client.call("ask", id=2))
        answer = await client.hear("tools/call")
        assert (answer["id"], text(answer)) == (2, "The client can't be asked any more.")
