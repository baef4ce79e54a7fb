"""What counts as an answer to a server's question."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp._protocol.answers import is_answer, read_answer

FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "score": {"type": "number"},
        "agreed": {"type": "boolean"},
        "size": {"type": "string", "enum": ["S", "M"]},
        "colour": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "anything": {},
    },
    "required": ["name"],
}
ELICIT = {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": FORM}}
OPEN_LINK = {"method": "elicitation/create", "params": {"mode": "url", "url": "https://example.com", "message": "Go"}}
SAMPLE = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 10}}
ROOTS = {"method": "roots/list"}


def accept(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": {"name": "Ada", **content}}


@pytest.mark.parametrize("answer", [{"action": "decline"}, {"action": "cancel"}, {"action": "cancel", "content": 5}])
def test_a_person_may_decline_or_cancel(answer: dict[str, Any]) -> None:
    assert is_answer(ELICIT, answer)


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"age": 36},
        {"age": 36.0},
        {"score": 1},
        {"score": 1.5},
        {"agreed": False},
        {"size": "M"},
        {"colour": "b"},
        {"tags": ["a"]},
        {"anything": {"a": 1}},
    ],
)
def test_content_that_fits_the_form_is_an_answer(content: dict[str, Any]) -> None:
    assert is_answer(ELICIT, accept(**content))


@pytest.mark.parametrize(
    "content",
    [
        {"name": 12345},
        {"name": None},
        {"age": "36"},
        {"age": 36.5},
        {"age": True},
        {"score": False},
        {"score": "1"},
        {"agreed": 1},
        {"size": "XL"},
        {"colour": "Red"},
        {"tags": "a"},
    ],
)
def test_content_that_does_not_fit_the_form_is_no_answer(content: dict[str, Any]) -> None:
    assert not is_answer(ELICIT, accept(**content))


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "Ada",
        [],
        {},
        {"action": "Accept"},
        {"action": "yes", "content": {"name": "Ada"}},
        {"action": "accept"},
        {"action": "accept", "content": None},
        {"action": "accept", "content": ["name"]},
        {"action": "accept", "content": {}},
    ],
)
def test_anything_else_is_no_answer_to_a_form(answer: object) -> None:
    assert not is_answer(ELICIT, answer)


def test_following_a_link_needs_no_content() -> None:
    assert is_answer(OPEN_LINK, {"action": "accept"})
    assert not is_answer(OPEN_LINK, {"content": {}})


@pytest.mark.parametrize(
    ("answer", "valid"),
    [
        ({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"}}, True),
        ({"role": "assistant", "model": "m", "content": [{"type": "text", "text": "Paris"}]}, True),
        ({"role": "user", "model": "m", "content": {"type": "text", "text": "Paris"}}, True),
        ({"role": "system", "model": "m", "content": {}}, False),
        ({"role": "assistant", "content": {}}, False),
        ({"role": "assistant", "model": "m", "content": "Paris"}, False),
        ({"role": "assistant", "model": "m"}, False),
        ({}, False),
        ("Paris", False),
    ],
)
def test_a_sampled_message_has_a_role_a_model_and_content(answer: object, valid: bool) -> None:
    assert is_answer(SAMPLE, answer) is valid


@pytest.mark.parametrize(
    ("answer", "valid"),
    [
        ({"roots": []}, True),
        ({"roots": [{"uri": "file:///home", "name": "Home"}]}, True),
        ({"roots": [{"name": "Home"}]}, False),
        ({"roots": ["file:///home"]}, False),
        ({"roots": {}}, False),
        ({}, False),
        (None, False),
    ],
)
def test_roots_are_a_list_of_objects_with_a_uri(answer: object, valid: bool) -> None:
    assert is_answer(ROOTS, answer) is valid


@pytest.mark.parametrize("action", [["accept"], {}, None, 1])
def test_an_action_of_the_wrong_type_is_no_answer(action: object) -> None:
    assert not is_answer(ELICIT, {"action": action, "content": {"name": "Ada"}})


@pytest.mark.parametrize("role", [["user"], {}, None])
def test_a_role_of_the_wrong_type_is_no_answer(role: object) -> None:
    assert not is_answer(SAMPLE, {"role": role, "model": "m", "content": {}})


def test_what_nobody_asked_for_is_left_out_of_an_answer() -> None:
    question = {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": NAME_FORM}}
    answer = {"action": "accept", "content": {"name": "Ada", "admin": True}}
    assert read_answer(question, answer) == {"action": "accept", "content": {"name": "Ada"}}
    assert read_answer(question, {"action": "decline", "content": {"admin": True}}) == {
        "action": "decline",
        "content": {"admin": True},
    }
    assert read_answer(question, {"action": "accept", "content": {"name": 1}}) is None
    assert read_answer(question, "accept") is None


NAME_FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
