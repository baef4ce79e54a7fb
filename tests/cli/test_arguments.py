"""Arguments of `funcmcp call`, from the command line to JSON."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._protocol.media_types import FILE_HINT
from funcmcp_cli.arguments import read_json, read_pairs, read_value, warnings_of
from funcmcp_cli.failure import Failure

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = {
    "properties": {
        "text": {"type": "string"},
        "number": {"type": "number"},
        "count": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "tags": {"type": "array"},
        "either": {"type": ["string", "integer"]},
        "free": {},
    }
}


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("text=5", "5"),
        ("text=", ""),
        ("text=a=b", "a=b"),
        ("number=1.5", 1.5),
        ("count=3", 3),
        ("count=null", None),
        ('tags=["a"]', ["a"]),
        ("either=5", 5),
        ("either=five", "five"),
        ('either="five"', '"five"'),
        ("free=5", 5),
        ("free=five", "five"),
        ("unknown=true", True),
    ],
)
def test_a_value_has_the_type_of_its_schema(pair: str, value: Any) -> None:
    assert read_pairs([pair], SCHEMA) == {pair.partition("=")[0]: value}


@pytest.mark.parametrize(
    ("pairs", "text"),
    [
        (["text"], "'text' is not an argument"),
        (["=5"], "'=5' is not an argument"),
        (["text=a", "text=b"], "text is passed twice"),
        (["text=\udcff"], "is not UTF-8"),
        (["count=three"], "count must be an integer or null, not 'three'"),
        (["number=NaN"], "number must be a number, not 'NaN'"),
    ],
)
def test_another_text_is_a_failure_that_names_it(pairs: list[str], text: str) -> None:
    with pytest.raises(Failure, match=text):
        read_pairs(pairs, SCHEMA)


@pytest.mark.parametrize(
    "schema", [[], None, {"properties": []}, {"properties": {"a": 1}}, {"properties": {"a": {"anyOf": 1}}}]
)
def test_a_schema_of_a_hostile_server_has_no_types(schema: Any) -> None:
    assert read_pairs(["a=1"], schema if isinstance(schema, dict) else {}) == {"a": 1}


def test_json_is_one_object(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_json('{"a": [1]}') == {"a": [1]}
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"a": 2}')))
    assert read_json("-") == {"a": 2}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[1]", "must be an object"),
        ('{"a": NaN}', "is not JSON"),
        ('{"a": "\\ud800"}', "Unicode"),
    ],
)
def test_other_json_is_a_failure(text: str, message: str) -> None:
    with pytest.raises(Failure, match=message):
        read_json(text)


def test_a_single_value_is_read_by_its_own_schema() -> None:
    assert read_value("number", "2", {"type": "integer"}) == 2


def test_unknown_arguments_cause_a_warning_unless_the_schema_accepts_them() -> None:
    assert warnings_of({"a": 1, "text": "b"}, SCHEMA) == [
        "The tool's schema has no argument 'a'. Its arguments: text, number, count, tags, either, free."
    ]
    assert warnings_of({"a": 1}, {"additionalProperties": True}) == []
    assert warnings_of({"a": 1}, {"patternProperties": {".*": {}}}) == []
    assert warnings_of({"a": 1}, {}) == ["The tool's schema has no argument 'a'. Its arguments: none."]


def test_a_file_is_a_data_uri_for_a_tool_that_takes_files(tmp_path: Path) -> None:
    photo = tmp_path / "my photo.png"
    photo.write_bytes(b"\x89PNG")
    argument = {"type": "string", "description": f"The photo. {FILE_HINT}"}
    for schema in (argument, {"anyOf": [argument, {"type": "null"}]}):
        arguments = read_pairs([f"photo=@{photo}"], {"properties": {"photo": schema}})
        assert arguments == {"photo": "data:image/png;name=my%20photo.png;base64,iVBORw=="}
