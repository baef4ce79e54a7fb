"""The record of a task, its transitions and its JSON."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funcmcp._objects.mappings import without
from funcmcp._protocol.codec import decode, encode
from funcmcp._protocol.tasks import TERMINAL
from funcmcp._state.tasks import record as transitions
from funcmcp._state.tasks.record import NewTask, Outcome, Question, TaskKey, TaskRecord, from_json, new_record, to_json
from funcmcp._state.tasks.store import TasksFullError

KEY = TaskKey("a" * 32, "id")
QUESTION = Question("name", "digest", {"method": "roots/list", "params": {}})
RESULT = Outcome(b'{"content":[]}')
TOKEN = "0123456789abcdef"


def record_of(**changes: Any) -> TaskRecord:
    return replace(new_record(NewTask(KEY, "add", b"{}", ttl=100, keep=10), 1000.0), **changes)


def claimed() -> TaskRecord:
    record = transitions.claimed(record_of(), 1000.0, 30)
    assert record is not None
    return replace(record, token=TOKEN)


def asking() -> TaskRecord:
    record = transitions.asking(claimed(), TOKEN, 1001.0, {"name": QUESTION})
    assert record is not None
    return record


def answered() -> TaskRecord:
    record = transitions.answered(asking(), 1002.0, {"name.1": {"roots": []}})
    assert record is not None
    return record


def finished() -> TaskRecord:
    record = transitions.finished(claimed(), TOKEN, 1003.0, RESULT)
    assert record is not None
    return record


@pytest.mark.parametrize("record", [record_of(), claimed(), asking(), answered(), finished()])
def test_a_record_is_the_same_after_json(record: TaskRecord) -> None:
    outcome = None if record.outcome is None else record.outcome.text
    assert from_json(KEY, to_json(record), outcome) == record


@pytest.mark.parametrize("record", [record_of(), claimed(), replace(record_of(), extra={"later": {"v": 2}})])
def test_the_members_that_a_claim_changes_end_the_json(record: TaskRecord) -> None:
    names = list(decode(to_json(record)))
    assert names[-8:] == ["expires", "attempts", "attempt", "token", "starts", "claimed", "due", "v"]


@settings(max_examples=50)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda value: st.lists(value) | st.dictionaries(st.text(), value),
    )
)
def test_an_answer_is_the_same_after_json(value: Any) -> None:
    record = transitions.answered(asking(), 1002.0, {"name.1": {"content": value}})
    assert record is not None
    assert from_json(KEY, to_json(record), None) == record


@pytest.mark.parametrize(
    "state",
    [
        b"",
        b"x",
        b"[]",
        b"null",
        b'{"v":1}',
        b"\xff",
        pytest.param({"v": 2}, id="another version"),
        pytest.param({"status": "done"}, id="an unknown status"),
        pytest.param({"status": "completed"}, id="an end without an outcome"),
        pytest.param({"outcome": [False, False]}, id="an outcome without a text"),
        pytest.param({"created": "1"}, id="a text for a time"),
        pytest.param({"attempt": True}, id="a boolean for a number"),
        pytest.param({"questions": {"name.1": ["name"]}}, id="half a question"),
        pytest.param({"questions": {"name.1": ["name", "digest", {"params": {}}]}}, id="a question without a method"),
        pytest.param({"answers": {"name": {}}}, id="half an answer"),
    ],
)
def test_what_this_version_did_not_write_is_no_record(state: bytes | dict[str, Any]) -> None:
    if isinstance(state, dict):
        state = encode({**decode(to_json(record_of())), **state})
    assert from_json(KEY, state, None) is None


def test_an_outcome_that_does_not_belong_to_the_record_makes_it_unreadable() -> None:
    assert from_json(KEY, to_json(record_of()), b"{}") is None
    assert from_json(KEY, to_json(finished()), None) is None
    for flags in ([False], [False, 1], None):
        state = encode({**decode(to_json(finished())), "outcome": flags})
        assert from_json(KEY, state, b"{}") is None


def test_a_record_of_an_earlier_version_has_the_defaults_of_the_members_it_lacks() -> None:
    names = {"v", "tool", "created", "expires", "keep", "poll", "attempts"}
    record = record_of(attempts=3)
    state = encode({name: member for name, member in decode(to_json(record)).items() if name in names})
    assert from_json(KEY, state, None) == replace(record, updated=0.0, due=None, removed=0.0)
    assert from_json(KEY, encode({"v": 1, "tool": "add"}), None) is None


def test_members_of_a_later_version_are_kept_in_each_change() -> None:
    added = {"region": "north", "history": [{"at": 1}, None]}
    state = encode({**decode(to_json(asking())), **added})
    record = from_json(KEY, state, None)
    assert record is not None
    assert record == replace(asking(), extra=added)
    changed = transitions.answered(record, 1002.0, {"name.1": {"roots": []}})
    assert changed is not None
    members = decode(to_json(changed))
    assert {name: members[name] for name in added} == added
    assert from_json(KEY, to_json(changed), None) == changed


def test_a_version_without_failures_keeps_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    record = transitions.retrying(claimed(), TOKEN, 1001.0, 5.0, "failed")
    assert record is not None
    assert record.failures == 1
    state = to_json(record)
    with monkeypatch.context() as older:
        older.setattr(transitions, "_MEMBERS", without(transitions._MEMBERS, "failures"))
        read = from_json(KEY, state, None)
        assert read is not None
        assert read.failures == 0
        taken = transitions.claimed(read, 1006.0, 30)
        assert taken is not None
        state = to_json(taken)
    read = from_json(KEY, state, None)
    assert read is not None
    assert (read.failures, read.attempt, read.extra) == (1, 2, {})


def test_a_task_of_a_version_without_failures_can_run_again() -> None:
    members = decode(to_json(claimed()))
    del members["failures"]
    record = from_json(KEY, encode(members), None)
    assert record is not None
    again = transitions.retrying(record, TOKEN, 1001.0, 5.0, "failed")
    assert again is not None
    assert (again.failures, again.due) == (1, 1006.0)


def test_questions_answers_and_outcomes_of_a_later_version_may_have_more_parts() -> None:
    members = decode(to_json(asking()))
    members["questions"]["name.1"].append("more")
    members["answers"]["size"] = ["digest", {}, "more"]
    record = from_json(KEY, encode(members), None)
    assert record == replace(asking(), answers={"size": ("digest", {})})
    members = decode(to_json(finished()))
    members["outcome"].append("more")
    assert from_json(KEY, encode(members), RESULT.text) == finished()


def test_a_record_is_what_it_was_until_it_expires_then_failed_then_gone() -> None:
    record = claimed()
    assert transitions.current(record, 1099.9) is record
    failed = transitions.current(record, 1100.0)
    assert failed is not None
    assert (failed.status, failed.updated, failed.removed) == ("failed", 1100.0, 1110.0)
    assert transitions.current(record, 1110.0) is None
    ended = finished()
    assert transitions.current(ended, 1100.0) is None


def test_the_message_of_the_progress_ends_with_the_run() -> None:
    record = transitions.reported(claimed(), TOKEN, 1001.0, "half")
    assert record is not None
    ended = transitions.finished(record, TOKEN, 1002.0, RESULT)
    assert ended is not None
    assert ended.message is None
    ended = transitions.finished(record, TOKEN, 1002.0, replace(RESULT, message="done"))
    assert ended is not None
    assert ended.message == "done"


@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_nothing_happens_to_a_task_that_is_over(status: str) -> None:
    record = replace(finished(), status=status, claimed=True, attempt=1, due=0.0, questions={"name.1": QUESTION})
    assert transitions.claimed(record, 1001.0, 30) is None
    assert transitions.abandoned(record, 1001.0, 5) is None
    assert transitions.renewed(record, TOKEN, 1001.0, 30) is None
    assert transitions.reported(record, TOKEN, 1001.0, "x") is None
    assert transitions.asking(record, TOKEN, 1001.0, {"name": QUESTION}) is None
    assert transitions.answered(record, 1001.0, {"name.1": {}}) is None
    assert transitions.finished(record, TOKEN, 1001.0, RESULT) is None
    assert transitions.released(record, TOKEN, 1001.0, 0) is None
    assert transitions.cancelled(record, 1001.0) is None
    assert transitions.watched(record) is None


def test_a_question_does_not_count_as_a_start_that_failed() -> None:
    record = transitions.claimed(answered(), 1002.0, 30)
    assert record is not None
    assert (record.status, record.attempt, record.starts) == ("working", 2, 1)


def test_there_is_always_room_for_the_failures_of_the_server() -> None:
    full = TasksFullError(1, is_owner_limit=True, of_bytes=True)
    text = f"The tool ran. There is no room for its result of {10**12} bytes. {full}."
    assert len(transitions.failure(text).text) <= transitions.OUTCOME_BYTES
    assert len(transitions.interrupted().text) <= transitions.OUTCOME_BYTES


def test_a_task_counts_its_call_until_it_ends_and_its_outcome_afterwards() -> None:
    record = transitions.new_record(NewTask(KEY, "add", b"{}"), 1000.0)
    size = transitions.new_bytes(record, b"x" * 5000)
    assert size == 2048 + 5000
    begun = claimed()
    assert transitions.changed_bytes(size, record, begun) == size
    question = transitions.asking(begun, TOKEN, 1001.0, {"name": QUESTION})
    assert question is not None
    asked = transitions.changed_bytes(size, begun, question)
    assert asked > size
    answer = transitions.answered(question, 1001.0, {"name.1": {"content": {"names": [{}] * 1000}}})
    assert answer is not None
    assert transitions.changed_bytes(asked, question, answer) > size + 200_000
    for outcome, expected in ((RESULT, 2048), (transitions.Outcome(b"x" * 3000), 2048 + 3000 - 512)):
        ended = transitions.finished(begun, TOKEN, 1002.0, outcome)
        assert ended is not None
        assert transitions.changed_bytes(size, begun, ended) == expected


def test_only_a_task_that_is_due_is_abandoned() -> None:
    record = transitions.new_record(NewTask(KEY, "add", b"{}"), 1000.0)
    assert transitions.abandoned(record, 999.0, 5) is None
    assert transitions.abandoned(claimed(), 1001.0, 5) is None
    failed = transitions.abandoned(record, 1000.0, 5)
    assert failed is not None
    assert (failed.status, failed.due) == ("failed", None)
    assert failed.message == "The task was delivered to a worker 5 times, and no run of it ended."
