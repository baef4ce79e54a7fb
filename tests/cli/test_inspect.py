"""``funcmcp inspect``: the same facts of a target and of a URL, for people and for programs."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from funcmcp_cli.client_rules.rules import CLIENTS
from tests.cli.forking import funcmcp, running
from tests.cli.processes import FUNCMCP, environment
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


MANY_TOOLS = """
from funcmcp import MCPServer

mcp = MCPServer("Many")
for number in range(300):

    @mcp.tool(name=f"tool_{number}", description=f"Return {number}.\\nIt is always the same.")
    def tool(size: int) -> int:
        return size
"""


def shown_in_a_terminal(folder: Path, *arguments: str) -> str:
    """Return what ``funcmcp inspect`` shows in a terminal."""
    ours, theirs = pty.openpty()
    parts: list[bytes] = []

    def read() -> None:
        with contextlib.suppress(OSError):  # the terminal is closed
            while part := os.read(ours, 65536):
                parts.append(part)

    reading = threading.Thread(target=read)
    reading.start()
    try:
        subprocess.run(
            [*FUNCMCP, "inspect", *arguments],
            cwd=folder,
            env=environment({"TERM": "xterm-256color", "COLUMNS": "100"}),
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            timeout=PATIENCE,
            check=True,
        )
    finally:
        os.close(theirs)
        reading.join(PATIENCE)
        os.close(ours)
    return b"".join(parts).decode()


def plain(text: str) -> str:
    """Return a text without the codes for colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with running([*FUNCMCP, "run", "server.py", "--port", "0"], folder=folder) as process:
        yield process.endpoint()


@pytest.mark.parametrize("where", ["target", "url"])
def test_json_is_one_document_with_all_facts(folder: Path, url: str, where: str) -> None:
    shown = funcmcp("inspect", "server.py" if where == "target" else url, "--json", folder=folder)
    assert (shown.returncode, shown.stderr) == (0, "")
    facts = json.loads(shown.stdout)
    assert list(facts) == [
        "server",
        "revision",
        "capabilities",
        "instructions",
        "tools",
        "resources",
        "resourceTemplates",
        "prompts",
    ]
    assert facts["server"] == {"name": "Greeter", "version": "2.1.0"}
    assert (facts["revision"], facts["instructions"]) == ("2026-07-28", "Be polite.")
    assert "tools" in facts["capabilities"]
    assert facts["tools"] == [
        {
            "name": "greet",
            "title": "Greet",
            "description": "Greet somebody.",
            "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        }
    ]


@pytest.mark.parametrize("where", ["target", "url"])
def test_programs_get_a_line_for_each_feature(folder: Path, url: str, where: str) -> None:
    shown = funcmcp("inspect", "server.py" if where == "target" else url, folder=folder)
    assert (shown.returncode, shown.stderr) == (0, "")
    lines = shown.stdout.splitlines()
    assert lines[0] == "Greeter 2.1.0 (MCP 2026-07-28)"
    assert lines[1] == "Be polite."
    assert lines[-1] == "tool\tgreet\tname: string\tGreet somebody."


def test_people_get_a_table_with_colours(folder: Path) -> None:
    shown = shown_in_a_terminal(folder, "server.py")
    assert "\x1b[" in shown
    rows = [[cell.strip() for cell in row.split("│")[1:-1]] for row in plain(shown).splitlines()]
    assert ["greet", "name: string", "Greet somebody."] in rows


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
def test_a_long_list_has_a_line_for_each_tool_and_a_name_shows_one(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(MANY_TOOLS)
    shown = plain(shown_in_a_terminal(tmp_path, "server.py"))
    assert "Tool (300)" in shown
    lines = [line.split() for line in shown.splitlines()]
    assert ["tool_299", "Return", "299."] in lines
    assert "size: integer" not in shown
    chosen = plain(shown_in_a_terminal(tmp_path, "server.py", "tool_29*"))
    assert "size: integer" in chosen
    assert sum("Return" in line for line in chosen.splitlines()) == 11
    ended = funcmcp("inspect", "server.py", "tol_1", folder=tmp_path)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("The server has no tool, resource or prompt 'tol_1'. Did you mean tool_1")


RECURSIVE = """
from dataclasses import dataclass

from funcmcp import MCPServer

mcp = MCPServer("Trees")


@dataclass
class Node:
    name: str
    children: list["Node"]


@mcp.tool
def plant(root: Node, seeds: bytes, weights: dict[str, float], more: list[Node], tags: dict[str, list[str]]) -> int:
    return 1
"""


def test_the_list_shows_types_that_contain_themselves_bytes_and_dicts(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(RECURSIVE)
    shown = funcmcp("inspect", "server.py", folder=tmp_path).stdout
    for argument in (
        "root: object of name, children",
        "seeds: string (base64)",
        "weights: map of number",
        "more: array of object of name, children",
        "tags: map of array of string",
    ):
        assert argument in shown


def test_the_list_shows_arguments_with_their_types(folder: Path) -> None:
    shown = funcmcp("inspect", "kinds.py", folder=folder).stdout
    for argument in (
        "text: string",
        "number?: number",
        "yes?: boolean",
        "many?: array of integer",
        "one?: map of integer",
        "either?: integer | string",
        "anything?: any",
        "maybe?: integer",
    ):
        assert argument in shown


@pytest.fixture(scope="module")
def menu_url(folder: Path) -> Iterator[str]:
    with running([*FUNCMCP, "run", "menu.py", "--port", "0"], folder=folder) as process:
        yield process.endpoint()


@pytest.mark.parametrize("where", ["target", "url"])
def test_json_has_resources_templates_and_prompts(folder: Path, menu_url: str, where: str) -> None:
    shown = funcmcp("inspect", "menu.py" if where == "target" else menu_url, "--json", folder=folder)
    assert (shown.returncode, shown.stderr) == (0, "")
    facts = json.loads(shown.stdout)
    assert facts["tools"] == []
    assert [resource["uri"] for resource in facts["resources"]] == [
        "menu://today",
        "menu://logo",
        "menu://both",
        "menu://odd",
        "menu://dishes/soup",
    ]
    assert [template["uriTemplate"] for template in facts["resourceTemplates"]] == ["menu://dishes/{dish}"]
    assert facts["prompts"] == [
        {
            "name": "suggest",
            "title": "Suggest",
            "description": "Suggest a meal.",
            "arguments": [{"name": "guests", "required": True}, {"name": "taste", "required": False}],
        },
        {"name": "ask", "title": "Ask"},
    ]


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
@pytest.mark.parametrize("where", ["target", "url"])
def test_each_kind_has_a_table_of_its_own(folder: Path, menu_url: str, where: str) -> None:
    shown = plain(shown_in_a_terminal(folder, "menu.py" if where == "target" else menu_url))
    rows = [[cell.strip() for cell in re.split("[│┃]", line)[1:-1]] for line in shown.splitlines()]
    assert [row for row in rows if row][:2] == [
        ["Resource", "Media type", "Description"],
        ["menu://today", "text/plain", "What we cook."],
    ]
    assert ["menu://dishes/soup", "", ""] in rows
    assert rows[rows.index(["Resource template", "Media type", "Description"]) + 2] == [
        "menu://dishes/{dish}",
        "application/json",
        "One dish.",
    ]
    begin = rows.index(["Prompt", "Arguments", "Description"]) + 2
    assert rows[begin : begin + 2] == [["suggest", "guests", "Suggest a meal."], ["", "taste?", ""]]
    assert "Tool" not in shown


def test_what_could_steer_a_terminal_is_spelled_out(folder: Path) -> None:
    shown = funcmcp("inspect", "steering.py", folder=folder)
    assert shown.returncode == 0
    assert r"Look: \x1b[2J[red]gone\x07" in shown.stdout


LINES = """
import json, sys

NAME = "one\\ntwo"
SERVER = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": NAME, "version": NAME}}
RESULTS = {"initialize": SERVER, "tools/list": {"tools": [{"name": NAME, "inputSchema": {"type": "object"}}]}}
for line in sys.stdin:
    message = json.loads(line)
    answer = {"result": RESULTS[message["method"]]} if message.get("method") in RESULTS else {
        "error": {"code": -32601, "message": "Unknown"}
    }
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""
"""A server whose names have line breaks."""


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
def test_names_of_a_server_do_not_begin_a_line(tmp_path: Path) -> None:
    (tmp_path / "lines.py").write_text(LINES)
    command = f"{sys.executable} lines.py"
    shown = funcmcp("inspect", command, folder=tmp_path)
    assert shown.stdout.startswith("one\\ntwo one\\ntwo (MCP 2025-06-18)\n")
    called = funcmcp("call", command, "add", folder=tmp_path)
    assert called.stderr == "The server has no tool 'add'. It has one\\ntwo.\n"
    called = funcmcp("call", command, "one two", folder=tmp_path)
    assert called.stderr == "The server has no tool 'one two'. Did you mean one\\ntwo?\n"


def test_a_server_without_features_says_so(folder: Path) -> None:
    shown = funcmcp("inspect", "same.py", folder=folder)
    assert shown.stdout.splitlines()[-1] == "The server has no tools, resources or prompts."


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_tool_that_can_not_be_listed_is_named_and_the_others_are_shown(folder: Path, options: list[str]) -> None:
    shown = funcmcp("inspect", "faulty.py", *options, folder=folder)
    assert shown.returncode == 1
    assert "fine" in shown.stdout
    assert shown.stderr == (
        "The tool bad is left out of the list. Correct it: An annotation of bad uses the unknown name 'Foo'. "
        "Import it at run time, not only under TYPE_CHECKING.\n"
    )


NO_PROBLEMS = f"No problems by the rules for {len(CLIENTS)} clients and APIs: 1 tool.\n"
UNACCEPTED = '''
from typing import Annotated

from pydantic import Field

from funcmcp import MCPServer

mcp = MCPServer("Kitchen")


@mcp.tool("dishes.rate")
def rate(code: Annotated[str, Field(pattern="(?x)a b")]) -> str:
    """Rate a dish."""
    return code
'''
BY_HAND = {
    "additionalProperties": '{"type": "object", "properties": {}, "additionalProperties": False}',
    "no properties": '{"type": "object"}',
    "pattern": '{"type": "object", "properties": {"a": {"type": "string", "pattern": "(?i)a"}}}',
    "union": '{"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": [{"required": ["a"]}]}',
    "oneOf": '{"type": "object", "properties": {"a": {"oneOf": [{"type": "string"}, {"type": "integer"}]}}}',
}


@pytest.fixture(scope="module")
def unaccepted_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("unaccepted")
    (folder / "server.py").write_text(UNACCEPTED)
    with running([*FUNCMCP, "run", "server.py", "--port", "0"], folder=folder) as process:
        yield process.endpoint()


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
@pytest.mark.parametrize("where", ["target", "url"])
def test_what_clients_do_not_accept_is_shown_for_targets_and_urls(
    tmp_path: Path, unaccepted_url: str, where: str
) -> None:
    (tmp_path / "server.py").write_text(UNACCEPTED)
    target = "server.py" if where == "target" else unaccepted_url
    shown = funcmcp("inspect", target, "--clients", folder=tmp_path)
    assert (shown.returncode, shown.stderr) == (1, "")
    rules = re.findall(r"^([a-z-]+) \(", shown.stdout, re.MULTILINE)
    assert rules == ["name-characters", *(["left-out"] if where == "target" else [])]
    document = json.loads(funcmcp("inspect", target, "--clients", "--json", folder=tmp_path).stdout)
    assert [problem["rule"] for problem in document["problems"]] == rules
    assert [tool["name"] for tool in document["tools"]] == ["dishes.rate"]


@pytest.mark.parametrize("schema", BY_HAND.values(), ids=BY_HAND)
def test_hand_written_schemas_are_sent_unchanged_and_warned_of(tmp_path: Path, schema: str) -> None:
    (tmp_path / "server.py").write_text(
        "from funcmcp import MCPServer\n\nmcp = MCPServer('Kitchen')\n\n\n"
        f"@mcp.tool(input_schema={schema})\ndef rate() -> str:\n    'Rate.'\n    return ''\n"
    )
    shown = funcmcp("inspect", "server.py", "--clients", folder=tmp_path)
    assert (shown.returncode, shown.stderr) == (1, "")
    assert shown.stdout.splitlines()[-1].startswith("1 rule is broken. Lost by no client: 0 of 1 tools.")


def test_a_server_that_all_clients_accept_has_exit_code_0(folder: Path) -> None:
    shown = funcmcp("inspect", "server.py", "--clients", folder=folder)
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, NO_PROBLEMS, "")


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
def test_only_the_clients_that_count_decide_about_the_exit_code(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(UNACCEPTED)
    assert funcmcp("inspect", "server.py", "--for", "zed", folder=tmp_path).returncode == 0
    assert funcmcp("inspect", "server.py", "--for", "openai,zed", folder=tmp_path).returncode == 1
    wrong = funcmcp("inspect", "server.py", "--for", "winamp", folder=tmp_path)
    assert wrong.returncode == 2
    assert "Unknown client 'winamp'." in " ".join(wrong.stderr.replace("│", " ").split())


def test_features_that_cannot_be_listed_are_named_beside_the_problems(folder: Path) -> None:
    shown = funcmcp("inspect", "faulty.py", "--clients", folder=folder)
    assert (shown.returncode, shown.stdout) == (1, NO_PROBLEMS)
    assert shown.stderr.startswith("The tool bad is left out of the list.")
