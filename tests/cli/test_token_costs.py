"""What tools cost a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import MCPServer
from funcmcp_cli.doctor.app_checks import check_tokens
from funcmcp_cli.doctor.project import ImportedCode, ImportedServer, Project
from funcmcp_cli.token_costs import MANY_TOKENS, Cost, costs_of, report_tokens, tokens_in, tokens_of_server

if TYPE_CHECKING:
    from funcmcp_cli.doctor.project import Finding

TOOLS = [
    {"name": "small", "inputSchema": {}, "title": "not counted", "outputSchema": {"type": "object"}},
    {"name": "large", "description": "ж" * 100, "inputSchema": {}},
]


def server(*, search: bool, tools: int = 30) -> MCPServer:
    mcp = MCPServer("many")
    for number in range(tools):
        mcp.tool(name=f"tool_{number}", description="word " * 20)(lambda: "done")
    if search:
        mcp.tool_search(always_visible={"tool_1"})
    return mcp


def test_the_most_expensive_tool_is_first() -> None:
    assert costs_of(TOOLS) == [Cost("large", 150, 102, 2, 0), Cost("small", 33, 0, 2, 17)]
    assert [cost.tokens for cost in costs_of(TOOLS)] == [38, 9]


@pytest.mark.parametrize(("characters", "tokens"), [(0, 0), (1, 1), (4, 1), (5, 2)])
def test_four_characters_are_a_token(characters: int, tokens: int) -> None:
    assert tokens_in(characters) == tokens


def test_a_list_of_tools_is_printed_with_its_sum(capsys: pytest.CaptureFixture[str]) -> None:
    assert report_tokens({"tools": TOOLS}, None, as_json=False, limit=None)
    assert capsys.readouterr().out == (
        "large\t150\t38\t26\t1\t0\nsmall\t33\t9\t0\t1\t5\n2 tools cost a model about 46 tokens (characters / 4).\n"
    )


def test_a_long_list_says_what_a_search_would_cost(capsys: pytest.CaptureFixture[str]) -> None:
    mcp = server(search=False)
    tools = [tool.describe() for tool in mcp._server.catalog.tools]
    report_tokens({"tools": tools}, mcp, as_json=False, limit=None)
    assert "With mcp.tool_search() the list would cost about 152 tokens." in capsys.readouterr().out


def test_a_server_with_a_search_says_what_it_saves(capsys: pytest.CaptureFixture[str]) -> None:
    mcp = server(search=True)
    report_tokens({"tools": TOOLS}, mcp, as_json=True, limit=None)
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert report["tools"][0] == {
        "name": "large",
        "characters": 150,
        "tokens": 38,
        "descriptionTokens": 26,
        "inputSchemaTokens": 1,
        "outputSchemaTokens": 0,
    }
    assert (report["instructionsTokens"], report["totalTokens"]) == (0, 46)
    assert (report["characters"], report["tokens"], report["tokensWithSearch"]) == (183, 46, 152)
    assert report["tokensWithoutSearch"] == tokens_of_server(server(search=False))
    report_tokens({"tools": TOOLS}, mcp, as_json=False, limit=None)
    assert "Without mcp.tool_search() all tools would cost" in capsys.readouterr().out


def test_a_list_above_the_limit_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert report_tokens({"tools": TOOLS}, None, as_json=True, limit=46)
    assert not report_tokens({"tools": TOOLS}, None, as_json=True, limit=45)
    assert capsys.readouterr().err == "The tools cost about 46 tokens, more than --max-tokens 45.\n"


def test_instructions_count(capsys: pytest.CaptureFixture[str]) -> None:
    assert report_tokens({"tools": TOOLS, "instructions": "word " * 8}, None, as_json=False, limit=56)
    assert "The instructions cost about 10 tokens more.\n" in capsys.readouterr().out
    assert not report_tokens({"tools": TOOLS, "instructions": "word " * 8}, None, as_json=True, limit=55)
    output = capsys.readouterr()
    assert json.loads(output.out)["totalTokens"] == 56
    assert output.err == "The tools and the instructions cost about 56 tokens, more than --max-tokens 55.\n"


def test_the_cost_of_a_server_is_that_of_its_list() -> None:
    assert tokens_of_server(server(search=True, tools=300)) < 250
    assert tokens_of_server(server(search=False, tools=300)) > MANY_TOKENS


def test_a_tool_without_a_definition_costs_nothing() -> None:
    mcp = MCPServer("broken")

    @mcp.tool
    def broken(value: "Missing") -> None:  # type: ignore[name-defined]  # noqa: F821, UP037
        """Break."""

    assert tokens_of_server(mcp) == 0


def findings(tokens: int) -> list[Finding]:
    code = ImportedCode(servers=[ImportedServer("Shop", "/mcp", has_auth=True, keeps_sessions=False, tokens=tokens)])
    return list(check_tokens(Project(Path(), {}, {}, None, Path("function_app.py"), code)))


def test_doctor_warns_of_a_list_with_many_tokens() -> None:
    assert findings(MANY_TOKENS) == []
    [finding] = findings(MANY_TOKENS + 1)
    assert finding.level == "warning"
    assert "about 10,001 tokens" in finding.text
