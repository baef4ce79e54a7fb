"""Binding expressions and app settings in the paths of bindings."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest

from funcmcp_host.bindings import PromptTrigger, ResourceTrigger, ToolTrigger
from funcmcp_host.expressions import ExpressionError, Template, names_of, with_settings
from funcmcp_host.invocation import Trigger

CONTEXT: dict[str, Any] = {
    "name": "t",
    "sessionid": "s",
    "arguments": {"Name": "a b", "n": 3, "on": True, "empty": None, "list": [1], "big": 1e16, "whole": 2.0},
    "clientinfo": {"name": "client", "version": "1"},
    "transport": {"name": "http-streamable", "properties": {"headers": {"X-Team": "red"}}},
}


@pytest.fixture
def trigger() -> Trigger:
    trigger = Trigger(CONTEXT, "mcptoolcontext", "context")
    trigger.add_group("mcptoolargs", {"Name": "a b", "n": "3"})
    trigger.add_text("user_id", "7%2F8")
    return trigger


def tool(*names: str) -> ToolTrigger:
    properties = [{"propertyname": name} for name in names]
    return ToolTrigger("context", "t", None, properties, {}, False, None, None)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("snippets/{mcptoolargs.Name}.json", "snippets/a b.json"),
        ("{MCPToolArgs.n}", "3"),
        ("{name}-{mcpsessionid}-{SessionId}", "t-s-s"),
        ("{arguments.name}{arguments.n}{arguments.on}{arguments.empty}{arguments.list}", "a b3True"),
        ("{arguments.big} {arguments.whole}", "1E+16 2"),
        ("{clientinfo.Name} {transport.properties.headers.x-team}", "client red"),
        ("{mcptoolcontext.name}", "t"),
        ("{mcptoolargs}{mcptoolcontext}", ""),
        ("{user_id}", "7%2F8"),
        ("{{name}} {name}", "{name} t"),
        ("{sys.MethodName}", "save"),
        ("plain", "plain"),
    ],
)
def test_expressions_have_the_values_of_the_call(text: str, value: str, trigger: Trigger) -> None:
    assert Template(text, "save").value(trigger) == value


def test_the_whole_context_is_a_text(trigger: Trigger) -> None:
    assert Template("{context}").value(trigger) == trigger.value.data


def test_a_member_of_the_context_replaces_a_variable_of_the_same_name() -> None:
    trigger = Trigger({"uri": "a:b/7"}, "mcpresourcecontext", "context")
    trigger.add_text("uri", "7")
    assert Template("{uri}").value(trigger) == "a:b/7"


def test_a_value_with_braces_is_not_an_expression(trigger: Trigger) -> None:
    trigger.add_text("evil", "{mcpsessionid}")
    assert Template("{evil}").value(trigger) == "{mcpsessionid}"


def test_random_ids(trigger: Trigger) -> None:
    first, second = Template("{rand-guid} {RAND-GUID:D}").value(trigger).split()
    assert uuid.UUID(first) != uuid.UUID(second)
    assert re.fullmatch("[0-9a-f]{32}", Template("{rand-guid:N}").value(trigger))
    assert re.fullmatch(r"\{[0-9a-f-]{36}\}", Template("{rand-guid:B}").value(trigger))
    assert re.fullmatch("[0-9a-f-]{36}", Template("{sys.RandGuid}").value(trigger))


def test_the_time(trigger: Trigger) -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ", Template("{DateTime}").value(trigger))
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", Template("{datetime:yyyy-MM-dd}").value(trigger))
    assert re.fullmatch(r"\d{4}-\d\d", Template("{datetime:yyyy-MM.dd}").value(trigger))  # the dot ends the format
    assert re.fullmatch(r"\d{4}\.\d\d", Template("{sys.utcnow:yyyy.MM}").value(trigger))
    assert re.fullmatch(r"\d{8}", Template("{sys.utcnow:yyyyMMdd}").value(trigger))


@pytest.mark.parametrize(
    "text", ["{mcptoolargs.missing}", "{mcptoolargs.name}", "{missing}", "{missing.member}", "{name.member}"]
)
def test_an_expression_without_a_value_is_an_error(text: str, trigger: Trigger) -> None:
    with pytest.raises(ExpressionError, match=re.escape(f"The expression {text} has no value in this call.")):
        Template(text).value(trigger)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a/{name", "has a { without its other brace"),
        ("a/name}", "has a } without its other brace"),
        ("a/{}", "which is not a valid expression"),
        ("a/{a..b}", "which is not a valid expression"),
        ("a/{a b}", "which is not a valid expression"),
        ("a/{user-id}", "the name can't have a hyphen"),
        ("a/{rand-guid:Q}", "'Q' is not a format of a GUID"),
        ("a/{datetime:q}", "'q' is not a format of a date"),
        ("a/{sys.now}", "sys has MethodName, RandGuid and UtcNow"),
    ],
)
def test_an_invalid_expression_is_an_error_before_the_first_call(text: str, reason: str) -> None:
    with pytest.raises(ExpressionError, match=re.escape(reason)):
        Template(text).check(names_of(tool()))


@pytest.mark.parametrize(
    "text",
    [
        "a/{mcptoolargs.city}",
        "{context}{mcptoolcontext.name}{mcpsessionid}{sessionid}{arguments.city}{clientinfo.name}{transport.name}",
        "{rand-guid}{datetime:yyyy}{sys.utcnow}{sys.methodname}",
    ],
)
def test_the_names_of_a_tool(text: str) -> None:
    assert not Template(text).check(names_of(tool("city")))


def test_the_names_of_a_resource_and_a_prompt() -> None:
    resource = ResourceTrigger("context", "a:{id}", "r", None, None, None, None, {})
    assert not Template("{id}{uri}{mcpresourceuri}{mcpresourcecontext.uri}").check(names_of(resource))
    prompt = PromptTrigger("context", "p", None, None, [{"name": "topic"}], [], {})
    assert not Template("{mcppromptargs.topic}{mcppromptcontext.name}").check(names_of(prompt))
    for trigger in (resource, prompt):
        with pytest.raises(ExpressionError, match="mcptoolargs"):
            Template("{mcptoolargs.topic}").check(names_of(trigger))


def test_a_name_that_the_trigger_does_not_have_is_an_error_with_what_was_meant() -> None:
    with pytest.raises(ExpressionError) as raised:
        Template("notes/{city}.txt").check(names_of(tool("City")))
    expected = "'notes/{city}.txt' has {city}, which the trigger does not have. Did you mean {mcptoolargs.City}?"
    assert str(raised.value) == expected
    with pytest.raises(ExpressionError, match=r"It has: arguments, .*mcptoolargs\.<argument>, .*transport\.$"):
        Template("notes/{town}.txt").check(names_of(tool("city")))


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (
            "notes/{name}.txt",
            (
                "'notes/{name}.txt' is the same in each call: {name} is the name of what is called. "
                "For the argument, write {mcptoolargs.name}."
            ),
        ),
        (
            "{mcptoolargs.Name}",
            "'{mcptoolargs.Name}' has no value for 'Name': write 'name', in this case of letters.",
        ),
        (
            "{mcptoolargs.town}",
            (
                "'{mcptoolargs.town}' names the argument 'town', which the function does not declare. "
                "Add it to the properties of the trigger."
            ),
        ),
    ],
)
def test_what_is_probably_not_meant_is_a_warning(text: str, warning: str) -> None:
    assert Template(text).check(names_of(tool("name"))) == [warning]


def test_settings() -> None:
    assert with_settings("%A%/x/%B%", {"A": "1", "B": "%A%"}) == "1/x/%A%"
    with pytest.raises(ExpressionError, match=r"'C' is not set\. Put it into local\.settings\.json"):
        with_settings("%C%", {})
