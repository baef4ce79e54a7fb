from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from funcmcp._cli.client_rules.problems import problems_of
from funcmcp._cli.client_rules.report import report_problems, short_texts
from funcmcp._cli.connect import Source
from tests.cli.client_rules.test_rules import STRING, prompt, taking, tool

if TYPE_CHECKING:
    import pytest

OPEN = {"type": "object", "additionalProperties": STRING}
SOURCE = Source("http://127.0.0.1:8000/mcp", None)


def facts_of(*tools: dict[str, Any], **lists: Any) -> dict[str, Any]:
    return {"server": {"name": "Kitchen"}, "tools": list(tools), "resources": [], "prompts": [], **lists}


def test_a_server_without_problems_is_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    facts = facts_of(tool("a"), tool("b"), prompts=[prompt("ask")])
    assert report_problems(SOURCE, facts, [], as_json=False)
    assert capsys.readouterr().out == "no problems; all known clients accept 2 tools, 1 prompt\n"


def test_a_server_without_features_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert report_problems(SOURCE, facts_of(), [], as_json=False)
    assert capsys.readouterr().out == "The server has no tools, resources or prompts.\n"


def test_problems_are_grouped_by_feature(capsys: pytest.CaptureFixture[str]) -> None:
    array = {"type": "array"}
    items = {**taking({"anyOf": [array] * 7}), "name": "a.b"}
    assert not report_problems(SOURCE, facts_of(items, tool("c")), [], as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "tool a.b"
    assert [line for line in lines if line.endswith("(all tools, or the whole list, are lost)")] == [
        "  name-characters (all tools, or the whole list, are lost)",
        "  no-items (all tools, or the whole list, are lost)",
    ]
    assert lines[-4:] == [
        "    - inputSchema/properties/a/anyOf/3",
        "    - inputSchema/properties/a/anyOf/4",
        "    - and 2 more; --json prints them",
        "2 problems; all known clients accept 1 of 2 tools",
    ]


def test_differences_are_shown_and_are_no_loss(capsys: pytest.CaptureFixture[str]) -> None:
    assert report_problems(SOURCE, facts_of(taking(OPEN)), [], as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "  open-object (the feature works, but differs)"
    assert lines[-1] == "1 problem; all known clients accept 1 of 1 tools"


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
