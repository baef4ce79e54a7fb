from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, EmailStr, Field
from typing_extensions import TypedDict

from funcmcp._authoring.calling.questions import (
    Accepted,
    Elicit,
    ElicitURL,
    ListRoots,
    Root,
    Sample,
    Sampled,
)
from funcmcp._authoring.results.content import Image
from funcmcp._protocol.errors import ToolError
from funcmcp._server.catalog.registry import RegistrationError
from tests.authoring.models import Colour, Level, Size

pytestmark = pytest.mark.every_python("Python's modules read signatures, annotations and docstrings.")


class Guest(BaseModel):
    name: str = Field(title="Your name", min_length=1, pattern="^[A-Z]")
    age: Annotated[int, Field(ge=0, lt=200)] = 30
    mail: EmailStr | None = None
    id: Annotated[str | None, Field(json_schema_extra={"format": "uuid"})] = None
    born: date | None = None
    score: float = 1.5
    member: bool = False
    colour: Colour = Colour.RED
    only: Literal["this"] = "this"
    many: list[Literal["a", "b"]] = Field(default=["a"], min_length=1)


@dataclass
class Seat:
    table: int


class Menu(TypedDict):
    dish: str


def test_a_form_has_what_forms_may_have() -> None:
    request = Elicit("Who are you?", Guest).request()
    assert request["method"] == "elicitation/create"
    assert request["params"]["message"] == "Who are you?"
    assert request["params"]["requestedSchema"] == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "title": "Your name", "minLength": 1},
            "age": {"type": "integer", "minimum": 0, "default": 30},
            "mail": {"type": "string", "format": "email"},
            "id": {"type": "string"},
            "born": {"type": "string", "format": "date"},
            "score": {"type": "number", "default": 1.5},
            "member": {"type": "boolean", "default": False},
            "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
            "only": {"type": "string", "enum": ["this"], "default": "this"},
            "many": {
                "type": "array",
                "items": {"type": "string", "enum": ["a", "b"]},
                "minItems": 1,
                "default": ["a"],
            },
        },
        "required": ["name"],
    }


def test_an_accepted_form_is_an_object_of_its_type() -> None:
    answer = {"action": "accept", "content": {"name": "Ada", "age": 36.0, "born": "1815-12-10"}}
    assert Elicit("?", Guest).read(answer) == Accepted("accept", Guest(name="Ada", age=36, born=date(1815, 12, 10)))
    assert Elicit("?", Seat).read({"action": "accept", "content": {"table": 4}}).content == Seat(4)
    assert Elicit("?", Menu).read({"action": "accept", "content": {"dish": "soup"}}).content == {"dish": "soup"}
    assert Elicit("?", {"type": "object"}).read({"action": "accept", "content": {"a": 1}}).content == {"a": 1}


def test_a_form_that_is_all_optional_requires_nothing() -> None:
    class Note(BaseModel):
        text: str = ""

    assert "required" not in Elicit("?", Note).request()["params"]["requestedSchema"]


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_form_that_was_not_accepted_has_no_content(action: str) -> None:
    assert Elicit("?", Guest).read({"action": action, "content": {}}) == (action, None)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"action": "accept", "content": {"name": "ada", "age": "x"}}, "name: must match.*\nage: must be an integer"),
        ({"action": "accept"}, "name is missing|name.*required"),
        ({"action": "accept", "content": [1]}, "not an object"),
        ({"action": "perhaps"}, "unknown action"),
        ({"action": ["accept"]}, "unknown action"),
    ],
)
def test_an_answer_that_does_not_fit_is_told(answer: dict[str, Any], words: str) -> None:
    with pytest.raises(ToolError, match=words):
        Elicit("?", Guest).read(answer)


class Nested(BaseModel):
    size: Size


class Numbers(BaseModel):
    many: list[int]


class Either(BaseModel):
    either: int | str


class Levels(BaseModel):
    level: Level


@pytest.mark.parametrize("form", [Nested, Numbers, Either, Levels])
def test_a_field_that_a_form_can_not_show_is_named(form: Any) -> None:
    with pytest.raises(RegistrationError, match=rf"{form.__name__}\.\w+ can't be shown"):
        Elicit("?", form)


def test_a_form_has_named_fields() -> None:
    with pytest.raises(RegistrationError, match="named fields"):
        Elicit("?", dict[str, int])


class Pace(Enum):
    SLOW = "slow"
    FAST = "fast"


@pytest.mark.parametrize(
    ("form", "field", "sent", "value"),
    [
        (["a", "b"], {"type": "string", "enum": ["a", "b"]}, "b", "b"),
        (("a", "b"), {"type": "string", "enum": ["a", "b"]}, "b", "b"),
        (["a"], {"type": "string", "enum": ["a"]}, "a", "a"),
        ([["a", "b"]], {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}, ["a"], ["a"]),
        ([["a"]], {"type": "array", "items": {"type": "string", "enum": ["a"]}}, ["a"], ["a"]),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}, "b", "b"),
        (Pace, {"type": "string", "enum": ["slow", "fast"]}, "fast", Pace.FAST),
        (str, {"type": "string"}, "x", "x"),
        (int, {"type": "integer"}, 3, 3),
        (float, {"type": "number"}, 1.5, 1.5),
        (bool, {"type": "boolean"}, True, True),
    ],
)
def test_a_form_may_be_a_single_field(form: Any, field: dict[str, Any], sent: Any, value: Any) -> None:
    question = Elicit("?", form)
    schema = question.request()["params"]["requestedSchema"]
    assert (list(schema["properties"]), schema["required"]) == (["value"], ["value"])
    shown = {name: part for name, part in schema["properties"]["value"].items() if name != "title"}
    assert shown == field
    assert question.read({"action": "accept", "content": {"value": sent}}) == Accepted("accept", value)
    with pytest.raises(ToolError, match="value"):
        question.read({"action": "accept", "content": {"value": {}}})
    with pytest.raises(ToolError, match="value"):
        question.read({"action": "accept"})


@pytest.mark.parametrize("form", [[], [[]], [1, 2], ["a", 1], [["a"], ["b"]], {}, {"low": {"title": "Low"}}, [None]])
def test_a_list_of_choices_has_texts_and_a_schema_is_an_object(form: Any) -> None:
    with pytest.raises(RegistrationError, match="form"):
        Elicit("?", form)


class Defaults(BaseModel):
    name: str = "Ada"
    age: int = 30


@pytest.mark.parametrize("answer", [{}, {"content": None}, {"content": {}}])
def test_a_form_that_was_accepted_without_content_has_its_defaults(answer: dict[str, Any]) -> None:
    assert Elicit("?", Defaults).read({"action": "accept", **answer}) == Accepted("accept", Defaults())
    schema = {"type": "object", "properties": {"a": {"type": "string", "default": "b"}}}
    assert Elicit("?", schema).read({"action": "accept", **answer}) == Accepted("accept", {})


def test_a_schema_with_required_fields_needs_content() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    with pytest.raises(ToolError, match="no content"):
        Elicit("?", schema).read({"action": "accept"})


def test_a_page_to_visit_is_a_question_of_its_own_mode() -> None:
    params = {"mode": "url", "message": "Sign in", "url": "https://example.com"}
    assert ElicitURL("Sign in", "https://example.com").request() == {"method": "elicitation/create", "params": params}
    named = ElicitURL("Sign in", "https://example.com", elicitation_id="1").request()
    assert named["params"] == {**params, "elicitationId": "1"}
    assert ElicitURL("a", "b").read({"action": "accept"}) == Accepted("accept", None)
    wrong: Any
    for wrong in ("perhaps", {}):
        with pytest.raises(ToolError, match="unknown action"):
            ElicitURL("a", "b").read({"action": wrong})


def test_a_prompt_is_a_message_of_the_user() -> None:
    image, raw = Image(b"a"), {"role": "assistant", "content": {"type": "text", "text": "b"}}
    said = {"role": "user", "content": {"type": "text", "text": "a"}}
    assert Sample("a", max_tokens=5).request() == {
        "method": "sampling/createMessage",
        "params": {"messages": [said], "maxTokens": 5},
    }
    assert Sample(image, max_tokens=5).request()["params"]["messages"] == [{"role": "user", "content": image.block}]
    params = Sample(["a", raw], max_tokens=5, system_prompt="Be brief", stop_sequences=["."]).request()["params"]
    assert params == {"messages": [said, raw], "maxTokens": 5, "systemPrompt": "Be brief", "stopSequences": ["."]}
    with pytest.raises(TypeError, match="warmth"):
        Sample("a", max_tokens=5, warmth=1)  # type: ignore[call-arg]


def test_a_model_gets_tools() -> None:
    add = {"name": "add", "inputSchema": {"type": "object"}}
    params = Sample("a", max_tokens=5, tools=[add], tool_choice="required").request()["params"]
    assert (params["tools"], params["toolChoice"]) == ([add], {"mode": "required"})
    params = Sample("a", max_tokens=5, tools=(), tool_choice={"mode": "none"}).request()["params"]
    assert (params["tools"], params["toolChoice"]) == ([], {"mode": "none"})
    with pytest.raises(ValueError, match=r"tool_choice must be one of auto, required, none, not 'any'\."):
        Sample("a", max_tokens=5, tool_choice="any")  # type: ignore[arg-type]


def test_what_the_model_said_is_read() -> None:
    block = {"type": "text", "text": "Paris"}
    answer = {"role": "assistant", "model": "m", "content": block, "stopReason": "endTurn"}
    assert Sample("?", max_tokens=1).read(answer) == Sampled("Paris", [block], "m", "assistant", "endTurn")
    several = {"model": "m", "content": [block, {"type": "image"}, block, "noise"]}
    assert Sample("?", max_tokens=1).read(several).text == "ParisParis"


def test_roots_are_read() -> None:
    assert ListRoots().request() == {"method": "roots/list", "params": {}}
    answer = {"roots": [{"uri": "file:///a", "name": "A"}, {"uri": "file:///b"}]}
    assert ListRoots().read(answer) == [Root("file:///a", "A"), Root("file:///b", None)]
    wrong: Any
    for wrong in ({}, {"roots": {}}, {"roots": ["a"]}, {"roots": [{}]}):
        with pytest.raises(ToolError, match="list of roots"):
            ListRoots().read(wrong)
