"""Official client SDKs use all that the protocol has, over every transport that they have, in both eras."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from samples.everything.server import PNG, WAV
from tests.clients.plan import Call, Step, hear, tool
from tests.clients.players import PER_REQUEST, WAYS, Player

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.clients.plan import Target, Transport

pytestmark = pytest.mark.slow("Clients of others start, some of them on Node.")

ADA = {"action": "accept", "content": {"name": "Ada"}}
ADA_AND_BLUE = {"action": "accept", "content": {"name": "Ada", "color": "blue"}}
YES = {"action": "accept", "content": {"confirm": True}}
SAMPLED = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"}}
ROOTS = {"roots": [{"uri": "file:///srv/ada", "name": "home"}]}
WATCHED = "test://watched-resource"
CANCELLED = "test://cancelled-calls"
TRIGGERS = ("prompt_change", "tool_change", "resource_change", "resource_update")
WISH = {"toolsListChanged": True, "resourcesListChanged": True, "resourceSubscriptions": [WATCHED, CANCELLED]}


def read(uri: str) -> Step:
    return Step("resources/read", {"uri": uri})


def prompt(name: str, arguments: dict[str, str] | None = None, **answers: dict[str, Any]) -> Step:
    return Step("prompts/get", {"name": name, "arguments": arguments or {}}, answers)


def complete(ref: dict[str, str], name: str, value: str, **known: str) -> Step:
    context = {"context": {"arguments": known}} if known else {}
    return Step("completion/complete", {"ref": ref, "argument": {"name": name, "value": value}, **context})


TEMPLATE = {"type": "ref/resource", "uri": "test://template/{id}/data"}
PROMPT = {"type": "ref/prompt", "name": "test_prompt_with_arguments"}
QUESTION = {"elicitation/create": {"action": "accept", "content": {"context": "a wedding"}}}


def plan(label: str, player: Player) -> dict[str, Step]:
    """Return the steps by name; the label is one that no other client takes."""
    cancelled = {"name": "test_cancellation", "arguments": {"label": label}}
    return {
        "level": Step("logging/setLevel", {"level": "debug"}),
        "watch": Step("watch", WISH),
        "simple": tool("test_simple_text"),
        "header": tool("test_x_mcp_header", {"region": "Åland "}),
        "contents": tool("test_multiple_content_types"),
        "sound": tool("test_audio_content"),
        "failing": tool("test_error_handling"),
        "greeted": tool("test_input_required_result_elicitation", elicited=ADA),
        "form": tool("test_elicitation_sep1330_enums", elicited={"action": "cancel"}),
        "sampled": Step(
            "tools/call",
            {"name": "test_sampling", "arguments": {"prompt": "Where?"}},
            {"sampling/createMessage": SAMPLED},
        ),
        "at once": Step(
            "tools/call",
            {"name": "test_input_required_result_multiple_inputs", "arguments": {}},
            {"elicitation/create": ADA, "sampling/createMessage": SAMPLED, "roots/list": ROOTS},
        ),
        "one by one": tool("test_input_required_result_multi_round", elicited=ADA_AND_BLUE),
        "confirmed": tool("test_confirmation", {"name": "order 7"}, elicited=YES),
        "declined": tool("test_confirmation", {"name": "order 7"}, elicited={"action": "decline"}),
        "progress": tool("test_tool_with_progress"),
        "generator": tool("test_generator"),
        "logging": tool("test_tool_with_logging"),
        "logged": hear(*(("message", {"data": text}) for text in LOGGED)),
        "reconnection": tool("test_reconnection"),
        "resources": Step("resources/list"),
        "templates": Step("resources/templates/list"),
        "text": read("test://static-text"),
        "blob": read("test://static-binary"),
        "several": read("test://several-contents"),
        "template": read("test://template/a%20b/data"),
        "nowhere": read("test://nowhere"),
        "prompts": Step("prompts/list"),
        "arguments": prompt("test_prompt_with_arguments", {"arg1": "one", "arg2": "zwei"}),
        "argument missing": prompt("test_prompt_with_arguments", {"arg1": "one"}),
        "all content": prompt("test_prompt_with_all_content"),
        "asking prompt": Step("prompts/get", {"name": "test_input_required_result_prompt"}, QUESTION),
        "complete id": complete(TEMPLATE, "id", "12"),
        "complete city": complete(PROMPT, "arg2", "p", arg1="Italy"),
        "complete nothing": complete(PROMPT, "arg3", ""),
        "cancelled": Step("tools/call", cancelled, cancel=True),
        "cancellation told": hear(("resources/updated", {"uri": CANCELLED})),
        "cancelled calls": read(CANCELLED),
        "changes": hear(
            *(() if player.revision == PER_REQUEST else (("prompts/list_changed", {}),)),  # WISH leaves it out
            ("tools/list_changed", {}),
            ("resources/list_changed", {}),
            ("resources/updated", {"uri": WATCHED}),
            again=[f"test_trigger_{trigger}" for trigger in TRIGGERS],
        ),
        "unsubscribed": Step("resources/unsubscribe", {"uri": WATCHED}),
    }


LOGGED = ["Tool execution started", "Tool processing data", "Tool execution completed"]


@dataclass(frozen=True)
class Session:
    """What one client did."""

    player: Player
    revision: str
    label: str
    calls: dict[str, Call]

    @property
    def per_request(self) -> bool:
        return self.player.revision == PER_REQUEST

    def result(self, name: str) -> Any:
        """Return the result of a step."""
        call = self.calls[name]
        assert call.error is None
        assert call.result is not None
        return call.result

    def texts(self, name: str) -> list[str]:
        """Return the texts of a tool's result."""
        return [block["text"] for block in self.result(name)["content"] if block["type"] == "text"]


@pytest.fixture(scope="module", params=WAYS, ids=lambda way: f"{way[0]}-{way[1].name}")
def session(request: pytest.FixtureRequest, everything: Callable[[Transport], Target]) -> Session:
    transport, player = request.param
    label = f"{transport}-{player.name}"
    steps = plan(label, player)
    played = player.play(everything(transport), list(steps.values()))
    return Session(player, played.revision, label, dict(zip(steps, played.calls, strict=True)))


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_the_client_speaks_the_revision_that_it_is_asked_to(session: Session) -> None:
    assert session.revision == session.player.revision


def test_a_tool_without_arguments_answers(session: Session) -> None:
    assert session.texts("simple") == ["This is a simple text response for testing."]


def test_an_argument_that_clients_repeat_in_a_header_arrives_whatever_its_letters(session: Session) -> None:
    assert session.texts("header") == ["Region: Åland "]


def test_every_kind_of_content_of_a_tool_arrives_in_order(session: Session) -> None:
    assert [block["type"] for block in session.result("contents")["content"]] == ["text", "image", "resource"]
    (sound,) = session.result("sound")["content"]
    assert (sound["type"], sound["mimeType"], sound["data"]) == ("audio", "audio/wav", encoded(WAV))


def test_a_tool_that_fails_tells_why_in_its_result(session: Session) -> None:
    assert session.texts("failing") == ["This tool intentionally returns an error for testing"]
    assert session.result("failing")["isError"] is True


def test_an_answer_of_the_user_reaches_the_tool(session: Session) -> None:
    assert [question["message"] for question in session.calls["greeted"].questions] == ["What is your name?"]
    assert session.texts("greeted") == ["Hello, Ada!"]


def test_the_form_arrives_as_the_tool_wrote_it_and_a_cancelled_one_says_so(session: Session) -> None:
    properties = session.calls["form"].questions[0]["requestedSchema"]["properties"]
    assert list(properties) == ["untitledSingle", "titledSingle", "legacyEnum", "untitledMulti", "titledMulti"]
    assert session.texts("form") == ["Elicitation completed: action=cancel, content=None"]


def test_the_clients_model_answers_a_tool(session: Session) -> None:
    (question,) = session.calls["sampled"].questions
    assert question["maxTokens"] == 100
    assert session.texts("sampled") == ["LLM response: Paris"]


def test_a_tool_gets_the_answers_to_several_questions_at_once(session: Session) -> None:
    assert len(session.calls["at once"].questions) == 3
    assert session.texts("at once") == ["Received 3 answers"]


def test_a_tool_asks_again_after_an_answer(session: Session) -> None:
    asked = [question["message"] for question in session.calls["one by one"].questions]
    assert asked == ["Step 1: What is your name?", "Step 2: What is your favorite color?"]
    assert session.texts("one by one") == ["First: accept, second: accept"]


def test_a_person_confirms_a_call_or_declines_it(session: Session) -> None:
    assert [question["message"] for question in session.calls["confirmed"].questions] == ["Delete order 7?"]
    assert session.texts("confirmed") == ["Deleted order 7"]
    assert len(session.calls["declined"].questions) == 1
    assert session.result("declined")["isError"] is True


def test_the_items_of_a_generator_are_progress_and_the_result(session: Session) -> None:
    told = [(report["progress"], report["message"]) for report in session.calls["generator"].progress]
    assert told == [(1, "one"), (2, "two")]
    assert session.result("generator")["structuredContent"] == {"result": ["one", "two"]}


def test_progress_is_told_before_the_answer(session: Session) -> None:
    told = [(report["progress"], report["total"]) for report in session.calls["progress"].progress]
    assert told == [(0, 100), (50, 100), (100, 100)]


def test_log_messages_are_told_in_order(session: Session) -> None:
    assert session.texts("logging") == ["Tool with logging executed successfully"]
    heard = session.result("logged")["heard"]
    told = [message["params"] for message in heard if message["method"] == "notifications/message"]
    assert [(message["level"], message["data"]) for message in told] == [("info", text) for text in LOGGED]


def test_the_answer_behind_a_connection_that_the_server_ended_arrives(session: Session) -> None:
    assert session.texts("reconnection") == ["Reconnection test completed successfully"]


def test_resources_and_templates_are_listed_with_what_is_known_of_them(session: Session) -> None:
    resources = {resource["uri"]: resource for resource in session.result("resources")["resources"]}
    binary = resources["test://static-binary"]
    assert (binary["name"], binary["title"]) == ("static_binary", "Static Binary")
    assert (binary["mimeType"], binary["size"]) == ("image/png", len(PNG))
    (template,) = session.result("templates")["resourceTemplates"]
    assert (template["uriTemplate"], template["mimeType"]) == (TEMPLATE["uri"], "application/json")


def test_a_text_is_read(session: Session) -> None:
    text = "This is the content of the static text resource."
    assert session.result("text")["contents"] == [{"uri": "test://static-text", "mimeType": "text/plain", "text": text}]


def test_bytes_are_read(session: Session) -> None:
    contents = session.result("blob")["contents"]
    assert contents == [{"uri": "test://static-binary", "mimeType": "image/png", "blob": encoded(PNG)}]


def test_a_resource_with_several_parts_is_read(session: Session) -> None:
    parts = session.result("several")["contents"]
    assert [(part["uri"], part["mimeType"]) for part in parts] == [
        ("test://several-contents/1", "text/markdown"),
        ("test://several-contents/2", "image/png"),
    ]


def test_a_template_gets_the_value_out_of_the_uri(session: Session) -> None:
    (contents,) = session.result("template")["contents"]
    assert contents["uri"] == "test://template/a%20b/data"
    assert json.loads(contents["text"])["id"] == "a b"


def test_a_resource_that_is_not_there_is_an_error_of_the_era(session: Session) -> None:
    error = session.calls["nowhere"].error
    assert error is not None
    translates = session.player.name.startswith("typescript-v2")  # it shows -32602 in both eras
    assert error["code"] == (-32602 if session.per_request or translates else -32002)


def test_prompts_are_listed_with_their_arguments(session: Session) -> None:
    prompts = {prompt["name"]: prompt for prompt in session.result("prompts")["prompts"]}
    arguments = prompts["test_prompt_with_arguments"]["arguments"]
    assert [(argument["name"], argument["required"]) for argument in arguments] == [("arg1", True), ("arg2", True)]


def test_a_prompt_gets_its_arguments(session: Session) -> None:
    (message,) = session.result("arguments")["messages"]
    text = "Prompt with arguments: arg1='one', arg2='zwei'"
    assert message == {"role": "user", "content": {"type": "text", "text": text}}


def test_a_missing_argument_of_a_prompt_is_named(session: Session) -> None:
    error = session.calls["argument missing"].error
    assert error is not None
    assert error["code"] == -32602
    assert "arg2" in error["message"]


def test_every_kind_of_content_of_a_prompt_arrives_in_order(session: Session) -> None:
    result = session.result("all content")
    assert result["description"] == "One message of every kind"
    assert [message["role"] for message in result["messages"]] == ["user"] * 5 + ["assistant"]
    text, image, audio, resource, link, _ = (message["content"] for message in result["messages"])
    assert text["annotations"] == {"audience": ["assistant"], "priority": 1}
    assert (image["type"], image["data"]) == ("image", encoded(PNG))
    assert (audio["type"], audio["data"]) == ("audio", encoded(WAV))
    assert (resource["type"], resource["resource"]["blob"]) == ("resource", encoded(PNG))
    assert (link["type"], link["uri"]) == ("resource_link", "test://static-text")


def test_a_prompt_asks_the_user(session: Session) -> None:
    (message,) = session.result("asking prompt")["messages"]
    assert message["content"]["text"] == "Please proceed in this context: a wedding"


def test_what_the_user_writes_is_completed(session: Session) -> None:
    assert session.result("complete id")["completion"]["values"] == ["123", "124"]
    assert session.result("complete city")["completion"]["values"] == ["Palermo", "Parma"]
    error = session.calls["complete nothing"].error
    assert error is not None
    assert error["code"] == -32602


def test_a_cancelled_call_is_cancelled_in_the_server(session: Session) -> None:
    call = session.calls["cancelled"]
    assert (call.result, call.error) == (None, None)
    (contents,) = session.result("cancelled calls")["contents"]
    assert session.label in json.loads(contents["text"])


def test_changes_are_told_to_those_who_asked_for_them_and_of_lists_to_all_in_the_handshake_era(
    session: Session,
) -> None:
    heard = {(message["method"], message["params"].get("uri")) for message in session.result("changes")["heard"]}
    wanted = {
        ("notifications/tools/list_changed", None),
        ("notifications/resources/list_changed", None),
        ("notifications/resources/updated", WATCHED),
    }
    assert heard == wanted | (set() if session.per_request else {("notifications/prompts/list_changed", None)})


def test_a_subscription_of_the_handshake_era_is_taken_back(session: Session) -> None:
    call = session.calls["unsubscribed"]
    assert (call.result, call.error) == (None if session.per_request else {}, None)
