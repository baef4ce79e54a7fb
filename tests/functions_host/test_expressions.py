"""Binding expressions and app settings in the paths of bindings."""

from __future__ import annotations

import re
import uuid

import pytest

from funcmcp.functions_host.expressions import ExpressionError, resolve, with_settings
from funcmcp.functions_host.invocation import Trigger


@pytest.fixture
def trigger() -> Trigger:
    trigger = Trigger({"name": "t", "sessionid": "s"}, "mcptoolcontext", "context")
    trigger.add_group("mcptoolargs", {"SnippetName": "a b", "n": "3"})
    trigger.add_text("user-id", "7%2F8")
    return trigger


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("snippets/{mcptoolargs.snippetname}.json", "snippets/a b.json"),
        ("{MCPToolArgs.N}", "3"),
        ("{name}-{mcpsessionid}-{sessionid}", "t-s-s"),
        ("{user-id}", "7%2F8"),
        ("plain", "plain"),
    ],
)
def test_expressions_have_the_values_of_the_call(text: str, value: str, trigger: Trigger) -> None:
    assert resolve(text, trigger) == value


def test_a_value_with_braces_is_not_an_expression(trigger: Trigger) -> None:
    trigger.add_text("evil", "{mcpsessionid}")
    assert resolve("{evil}", trigger) == "{mcpsessionid}"


def test_random_ids_and_the_time(trigger: Trigger) -> None:
    first, second = resolve("{rand-guid} {rand-guid}", trigger).split()
    assert uuid.UUID(first) != uuid.UUID(second)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ", resolve("{DateTime}", trigger))


@pytest.mark.parametrize("text", ["{mcptoolargs.missing}", "{missing}", "{missing.member}"])
def test_an_expression_without_a_value_is_an_error(text: str, trigger: Trigger) -> None:
    with pytest.raises(ExpressionError, match=re.escape(text)):
        resolve(text, trigger)


def test_settings() -> None:
    assert with_settings("%A%/x/%B%", {"A": "1", "B": "%A%"}) == "1/x/%A%"
    with pytest.raises(ExpressionError, match=r"'C' is not set\. Put it into local\.settings\.json"):
        with_settings("%C%", {})
