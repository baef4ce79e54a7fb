"""Official client SDKs call the tools of the sample that offers everything: what the orders sample does not show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.clients.plan import Call, Played, Step, Target
from tests.clients.players import PLAYERS, Player
from tests.serving import REPOSITORY, serve

if TYPE_CHECKING:
    from collections.abc import Iterator

ANSWER = {"action": "accept", "content": {"name": "Ada"}}
PLAN = [
    Step("test_simple_text", {}),
    Step("test_x_mcp_header", {"region": "Åland "}),
    Step("test_multiple_content_types", {}),
    Step("test_error_handling", {}),
    Step("test_input_required_result_elicitation", {}, ANSWER),
    Step("test_elicitation_sep1330_enums", {}, {"action": "cancel"}),
]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serve(REPOSITORY / "samples/everything/server.py") as served:
        yield served.url


@pytest.fixture(scope="module", params=PLAYERS, ids=lambda player: player.name)
def played(request: pytest.FixtureRequest, url: str) -> Played:
    player: Player = request.param
    return player.play(Target("http", url), PLAN)


@pytest.fixture(scope="module")
def calls(played: Played) -> dict[str, Call]:
    return {step.tool: call for step, call in zip(PLAN, played.calls, strict=True)}


def texts(call: Call) -> list[str]:
    assert call.result is not None, call.error
    return [block["text"] for block in call.result["content"] if block["type"] == "text"]


def test_a_tool_without_arguments_answers(calls: dict[str, Call]) -> None:
    assert texts(calls["test_simple_text"]) == ["This is a simple text response for testing."]


def test_an_argument_that_clients_repeat_in_a_header_arrives_whatever_its_letters(calls: dict[str, Call]) -> None:
    assert texts(calls["test_x_mcp_header"]) == ["Region: Åland "]


def test_every_kind_of_content_arrives_in_order(calls: dict[str, Call]) -> None:
    result = calls["test_multiple_content_types"].result
    assert result is not None
    assert [block["type"] for block in result["content"]] == ["text", "image", "resource"]


def test_a_tool_that_fails_tells_why_in_its_result(calls: dict[str, Call]) -> None:
    call = calls["test_error_handling"]
    assert texts(call) == ["This tool intentionally returns an error for testing"]
    assert call.result is not None
    assert call.result["isError"] is True


def test_an_answer_of_the_user_reaches_the_tool(calls: dict[str, Call]) -> None:
    call = calls["test_input_required_result_elicitation"]
    assert [question["message"] for question in call.questions] == ["What is your name?"]
    assert texts(call) == ["Hello, Ada!"]


def test_the_form_arrives_as_the_tool_wrote_it_and_a_cancelled_one_says_so(calls: dict[str, Call]) -> None:
    call = calls["test_elicitation_sep1330_enums"]
    properties = call.questions[0]["requestedSchema"]["properties"]
    assert list(properties) == ["untitledSingle", "titledSingle", "legacyEnum", "untitledMulti", "titledMulti"]
    assert texts(call) == ["Elicitation completed: action=cancel, content=None"]
