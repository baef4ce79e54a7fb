"""The reader of JSON with comments: what it accepts, and where it says that a text is wrong."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from funcmcp._adapters.azure.settings import route_prefix
from funcmcp._text.jsonc import JSONTextError, parse
from funcmcp_cli.doctor.project import read_project
from funcmcp_cli.doctor.start_checks import is_plain_function_app
from funcmcp_host.folder import FolderError, read_folder

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.every_python("Python's own SQLite, dataclasses, JSON or character tables decide it.")

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
    max_leaves=10,
)


@given(JSON)
def test_a_text_has_the_value_that_json_reads(value: object) -> None:
    assert parse(json.dumps(value), comments=False).value == value
    assert parse(json.dumps(value, indent=1, ensure_ascii=False), comments=True).value == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "line 1, column 1: the text ends too early"),
        ("{", "line 1, column 2: the text ends too early"),
        ('{"a": 1', "a comma is missing"),
        ('{"a" 1}', "line 1, column 6: a colon is missing"),
        ('{"a": }', "a value is missing"),
        ('{"a": 1 "b": 2}', "a comma is missing"),
        ('{"a": 1,}', "a comma must not be before the end"),
        ('{"a": 1} x', "the text goes on"),
        ('{\n  // no\n  "a": 1}', "line 2, column 3: JSON has no comments"),
        ('{"a": nul}', "nul is not a value"),
        ('{"a": "x', "line 1, column 7: a string does not end in its line"),
        ('{\n"a": "x\n"}', "line 2, column 6: a string does not end in its line"),
        ("{x: 1}", "the name of a member is missing"),
        ('{"a": "\\x"}', "is not a value"),
        ('{,"a": 1}', "the name of a member is missing"),
        ("[" * 5_000, "nested too deeply"),
        ("{'a': 1}", "the name of a member is missing"),
    ],
)
def test_a_broken_text_is_refused_with_the_place(text: str, problem: str) -> None:
    with pytest.raises(JSONTextError, match=problem.replace("(", r"\(")):
        parse(text, comments=False)


COMMA_THEN_COMMENT = """{
  "version": "2.0", // the version of host.json
  "extensions": {
    "http": { "routePrefix": "v1" }, // "routePrefix": "v2"
    /* "mcp": {
    }, */
    "mcp": { "instructions": "See https://a.example/*x*/, // and ]", }, // the last one
    // "queues": {}
  }, /* end */
} // done
"""


def test_comments_and_trailing_commas_are_ignored() -> None:
    assert parse(COMMA_THEN_COMMENT, comments=True).value == {
        "version": "2.0",
        "extensions": {
            "http": {"routePrefix": "v1"},
            "mcp": {"instructions": "See https://a.example/*x*/, // and ]"},
        },
    }
    assert parse("[1, 2, /* three */ // and\n]", comments=True).value == [1, 2]
    assert parse("{ // with the line ends of old editors\r}", comments=True).value == {}


@pytest.mark.parametrize(
    "text", ["{,}", "[,]", "[1,,2]", '{"a": 1,,}', "[1 2]", "{} /* open", "[1] ]", "[1, /* open ]"]
)
def test_a_comma_more_or_less_is_an_error(text: str) -> None:
    with pytest.raises(JSONTextError):
        parse(text, comments=True)


def function_app(folder: Path, host: str) -> Path:
    (folder / "host.json").write_text(host, encoding="utf-8")
    (folder / "function_app.py").write_text("")
    return folder


def test_every_reader_of_host_json_accepts_the_same(tmp_path: Path) -> None:
    folder = function_app(tmp_path, COMMA_THEN_COMMENT)
    assert read_folder(folder, {}).options.route_prefix == "v1"
    assert route_prefix({"AzureWebJobsScriptRoot": str(folder)}) == "/v1"
    project = read_project(folder)
    assert (project.errors, project.host["version"]) == ({}, "2.0")
    assert is_plain_function_app(folder)
    assert is_plain_function_app(function_app(tmp_path, '{ // "customHandler": {}\n}'))
    assert not is_plain_function_app(function_app(tmp_path, '{ "customhandler": {}, }'))


def test_every_reader_of_host_json_names_the_line_of_an_error(tmp_path: Path) -> None:
    text = COMMA_THEN_COMMENT.replace('"queues": {}', '"queues": {}\n    "queues" {}')
    line = next(number for number, line in enumerate(text.split("\n"), 1) if '"queues" {}' in line and "//" not in line)
    folder = function_app(tmp_path, text)
    place = re.escape(f"line {line}, column 14: a colon is missing")
    with pytest.raises(FolderError, match=rf"^host\.json, {place}\. Correct the JSON there\.$"):
        read_folder(folder, {})
    with pytest.raises(ValueError, match=rf"host\.json is not JSON \({place}\)"):
        route_prefix({"AzureWebJobsScriptRoot": str(folder)})
    assert re.fullmatch(place, read_project(folder).errors["host.json"])
