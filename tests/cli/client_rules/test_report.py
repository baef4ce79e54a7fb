from __future__ import annotations

import json
from typing import Any

import pytest

from funcmcp_cli.client_rules.problems import problems_of
from funcmcp_cli.client_rules.report import clients_named, report_problems, short_texts
from funcmcp_cli.client_rules.rules import CLIENTS, MEMBERS
from funcmcp_cli.connect import Source
from tests.cli.client_rules.test_rules import STRING, prompt, taking, tool

NAMED = {"type": "object", "properties": {"b": STRING}}
OPEN = {"type": "object", "additionalProperties": STRING}
SOURCE = Source("http://127.0.0.1:8000/mcp", None)


def facts_of(*tools: dict[str, Any], **lists: Any) -> dict[str, Any]:
    return {"server": {"name": "Kitchen"}, "tools": list(tools), "resources": [], "prompts": [], **lists}


def reported(facts: dict[str, Any], capsys: pytest.CaptureFixture[str], **options: Any) -> list[str]:
    """Return the lines of a report."""
    report_problems(SOURCE, facts, [], as_json=False, **options)
    return capsys.readouterr().out.splitlines()


def test_a_server_without_problems_is_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    facts = facts_of(tool("a"), tool("b"), prompts=[prompt("ask")])
    assert report_problems(SOURCE, facts, [], as_json=False)
    [line] = capsys.readouterr().out.splitlines()
    assert line == f"No problems by the rules for {len(CLIENTS)} clients and APIs: 2 tools, 1 prompt."


def test_a_server_without_features_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert report_problems(SOURCE, facts_of(), [], as_json=False)
    assert capsys.readouterr().out == "The server has no tools, resources or prompts.\n"


def test_a_rule_is_one_entry_with_the_features_that_break_it(capsys: pytest.CaptureFixture[str]) -> None:
    nameless = [tool(name, description="") for name in ("one", "two", "three")]
    lines = reported(facts_of(*nameless, tool("a.b")), capsys)
    assert lines[0] == "no-description (all tools, or the whole list, are lost)"
    assert lines[3:5] == ["  3 tools: one, two, three", "    - no description"]
    assert lines[5] == "name-characters (all tools, or the whole list, are lost)"
    assert lines[8:10] == ["  tool a.b", "    - the characters ."]
    assert lines[-1] == "2 rules are broken. Lost by no client: 0 of 4 tools. Without a problem: 0 of 4 tools."


def test_an_entry_has_five_places(capsys: pytest.CaptureFixture[str]) -> None:
    lines = reported(facts_of(taking({"type": "array", "anyOf": [{"type": "array"}] * 7}), tool("c")), capsys)
    assert "    - inputSchema/properties/a/anyOf/3" in lines
    assert "    - and 3 more; --json prints them" in lines


def test_differences_are_shown_and_are_no_loss(capsys: pytest.CaptureFixture[str]) -> None:
    assert report_problems(SOURCE, facts_of(taking(OPEN)), [], as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "open-object (the feature works, but differs)"
    assert lines[-1] == "1 rule is broken. Lost by no client: 1 of 1 tools. Without a problem: 0 of 1 tools."


def test_each_client_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    union = taking({"anyOf": [NAMED, NAMED]})
    lines = reported(facts_of(tool("a.b"), {**union, "name": "pets"}, tool("c")), capsys)
    assert "OpenAI API: 1 of 3 tools not accepted (name-characters)" in lines
    assert "LangChain.js: 1 of 3 tools not accepted (object-union)" in lines
    assert "LlamaIndex: 1 of 3 tools with differences (nested-object)" in lines
    [others] = [line for line in lines if line.startswith("No problem: ")]
    assert "Zed" in others
    assert "LlamaIndex" not in others
    named = {line.partition(":")[0] for line in lines} | set(others.partition(": ")[2].split(", "))
    assert named >= set(CLIENTS)


def test_a_rule_about_the_list_counts_for_all_tools(capsys: pytest.CaptureFixture[str]) -> None:
    facts = facts_of(*(tool(f"t{number}") for number in range(129)))
    lines = reported(facts, capsys, clients=["OpenAI API"])
    assert lines[-3] == "OpenAI API: all tools not accepted (many-tools)"
    assert lines[-1] == "1 rule is broken. Lost by no client: 0 of 129 tools. Without a problem: 0 of 129 tools."


def test_only_the_clients_that_count_are_in_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    facts = facts_of(tool("a.b", description=""), resources=[{"uri": "a://b", "name": "b c"}])
    claude = clients_named("Claude, zed")
    assert claude == ("Claude API", "Claude Desktop", "Claude Code", "Zed")
    lines = reported(facts, capsys, clients=claude)
    assert [line for line in lines if line.endswith("lost)")] == [
        "name-characters (all tools, or the whole list, are lost)",
        "resource-words (the feature is lost)",
    ]
    assert lines[1].startswith("  Claude API, Claude Desktop: A tool's name")
    assert "No problem: Zed" in lines
    assert report_problems(SOURCE, facts, [], as_json=False, clients=clients_named("zed"))


@pytest.mark.parametrize(
    ("names", "client"), [("anthropic", "Claude API"), ("vscode", "Visual Studio Code"), ("ChatGPT", "OpenAI API")]
)
def test_clients_have_other_names(names: str, client: str) -> None:
    assert client in clients_named(names)


@pytest.mark.parametrize("names", ["claude,winamp", "winamp"])
def test_a_name_of_no_client_is_refused(names: str) -> None:
    with pytest.raises(ValueError, match=r"^Unknown client 'winamp'\. Clients: Amazon Bedrock, "):
        clients_named(names)


@pytest.mark.parametrize("names", ["", ",", "claude,", "claude, ,zed"])
def test_an_empty_name_is_refused(names: str) -> None:
    with pytest.raises(ValueError, match=r"^'[^']*' has an empty name\. Clients: Amazon Bedrock, "):
        clients_named(names)


def test_the_members_of_groups_are_clients_of_the_rules() -> None:
    assert set(MEMBERS) <= set(CLIENTS)
    assert {member for members in MEMBERS.values() for member in members} <= set(CLIENTS)


def test_a_rule_about_a_group_counts_for_its_members(capsys: pytest.CaptureFixture[str]) -> None:
    facts = facts_of(taking({"type": "integer"}, name="order_id"))
    lines = reported(facts, capsys, clients=clients_named("claude,zed"))
    assert lines[1].startswith("  clients in JavaScript: Integers are from")
    assert "Claude Code: 1 of 1 tools with differences (large-integer)" in lines
    assert "No problem: Claude API, Zed" in lines


def test_json_has_the_problems_beside_the_lists(capsys: pytest.CaptureFixture[str]) -> None:
    facts = facts_of(tool("a.b"))
    assert not report_problems(SOURCE, facts, [], as_json=True)
    document = json.loads(capsys.readouterr().out)
    [problem] = document.pop("problems")
    assert document == facts
    assert list(problem) == [
        *("kind", "key", "rule", "loss", "places", "clients", "seen", "accepts", "effect", "advice", "sources"),
    ]
    assert (problem["key"], problem["rule"], problem["loss"]) == ("a.b", "name-characters", "server")


def test_texts_of_a_server_cannot_control_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    report_problems(SOURCE, facts_of(tool("\x1b[2J[red]x\n", description="\x07")), [], as_json=False)
    assert "\x1b" not in capsys.readouterr().out


def test_the_short_form_has_a_text_for_each_rule() -> None:
    names = ["a.b", "c.d", "e.f", "g.h"]
    facts = facts_of(*(tool(name) for name in names), taking(OPEN), prompts=[prompt("ask", "a", "b")])
    assert short_texts(problems_of(facts, {})) == [
        (
            "a.b, c.d, e.f and 1 more",
            (
                "are not accepted by OpenAI API, Claude API, Amazon Bedrock and 5 more. "
                "A tool's name has only letters, digits, _ and -. Write _ instead of other characters."
            ),
        ),
        (
            "ask",
            (
                "is not accepted by Zed. A prompt has one argument, or none. "
                "Take one text with everything, or offer a tool as well."
            ),
        ),
    ]
    assert short_texts(problems_of(facts_of(taking(STRING)), {})) == []
