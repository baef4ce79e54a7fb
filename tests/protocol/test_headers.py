"""Headers that repeat parts of a message."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funcmcp._protocol import headers
from funcmcp._protocol.headers import (
    MirroredParameter,
    decode_value,
    encode_mirrored,
    encode_value,
    mirrored_mismatch,
    mirrored_parameters,
    mismatch,
)

STRING = {"type": "string"}
REGION = (MirroredParameter("mcp-param-region", ("region",)),)


def marked(schema: dict[str, Any], name: object = "Region") -> dict[str, Any]:
    return {**schema, "x-mcp-header": name}


@settings(deadline=None)
@given(st.text())
def test_an_encoded_value_decodes_to_the_same_text(text: str) -> None:
    assert decode_value(encode_value(text)) == text


@settings(deadline=None)
@given(st.text())
def test_an_encoded_value_is_fit_for_a_header(text: str) -> None:
    value = encode_value(text)
    assert value.isascii()
    assert value.isprintable()
    assert value == value.strip()
    assert value


@settings(deadline=None)
@given(
    st.text(alphabet=st.characters(min_codepoint=0, max_codepoint=255))
    | st.text(alphabet="=?base64SGVsbG8", max_size=20)
)
def test_a_value_that_decodes_means_what_its_encoding_means(value: str) -> None:
    decoded = decode_value(value)
    assert decoded is None or decode_value(encode_value(decoded)) == decoded


@pytest.mark.parametrize(
    ("value", "meaning"),
    [
        ("foo", "foo"),
        ("  foo \t", "foo"),
        ("two words", "two words"),
        ("a\tb", "a\tb"),
        ("", ""),
        ("=?base64?SGVsbG8=?=", "Hello"),
        (" =?base64?SGVsbG8=?= ", "Hello"),
        ("=?base64?R3LDvMOfZQ==?=", "Grüße"),
        ("=?base64??=", ""),
        ("=?base64?=", "=?base64?="),
        ("=?BASE64?SGVsbG8=?=", "=?BASE64?SGVsbG8=?="),
        ("=?base64?SGVsbG8=", "=?base64?SGVsbG8="),
        ("SGVsbG8=?=", "SGVsbG8=?="),
    ],
)
def test_a_value_means(value: str, meaning: str) -> None:
    assert decode_value(value) == meaning


@pytest.mark.parametrize(
    "value",
    [
        "=?base64?SGVsbG8?=",
        "=?base64?SGVs!!!bG8=?=",
        "=?base64?SGVsbG8==?=",
        "=?base64?SGVsbG9=?=",
        "=?base64?SGVs bG8=?=",
        "=?base64?_w==?=",
        "=?base64?/w==?=",
        "caf\xe9",
        "a\x00b",
        "a\x7fb",
    ],
)
def test_a_malformed_value_means_nothing(value: str) -> None:
    assert decode_value(value) is None


@pytest.mark.parametrize("value", ["add", "  add  ", "=?base64?YWRk?="])
def test_a_header_that_says_what_the_message_says_matches(value: str) -> None:
    assert mismatch({"mcp-name": value}, {headers.NAME: "add"}) is None


@pytest.mark.parametrize("value", ["Add", "", "sub", "=?base64?YWRk=?=", "=?base64?c3Vi?="])
def test_a_header_that_says_something_else_is_named(value: str) -> None:
    fault = mismatch({"mcp-name": value}, {headers.NAME: "add"})
    assert fault is not None
    assert "mcp-name" in fault


def test_a_missing_header_is_named() -> None:
    fault = mismatch({"mcp-method": "tools/call"}, {headers.METHOD: "tools/call", headers.NAME: "add"})
    assert fault == "The header mcp-name is missing."


@pytest.mark.parametrize("text", ["=?base64?YWRk?=", "caf\xe9", "menu://caf\xe9"])
def test_a_text_that_no_header_may_say_literally_only_matches_its_encoding(text: str) -> None:
    assert mismatch({"mcp-name": text}, {headers.NAME: text}) is not None
    assert mismatch({"mcp-name": encode_value(text)}, {headers.NAME: text}) is None


def test_marked_arguments_are_found_through_nested_properties() -> None:
    schema = {
        "type": "object",
        "properties": {
            "region": marked(STRING),
            "plain": STRING,
            "anything": True,
            "options": {
                "type": "object",
                "properties": {"count": marked({"type": "integer"}, "Item-Count"), "x-mcp-header": {"type": "boolean"}},
            },
            "loud": marked({"type": "boolean"}, "Loud"),
        },
    }
    assert mirrored_parameters(schema) == (
        MirroredParameter("mcp-param-region", ("region",)),
        MirroredParameter("mcp-param-item-count", ("options", "count")),
        MirroredParameter("mcp-param-loud", ("loud",)),
    )


@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"properties": []}, {"properties": {"a": STRING}}])
def test_a_schema_without_marks_mirrors_nothing(schema: dict[str, Any]) -> None:
    assert mirrored_parameters(schema) == ()


def test_values_that_only_look_like_marks_are_no_marks() -> None:
    schema = {
        "properties": {
            "a": {"enum": [{"x-mcp-header": "A"}], "default": {"x-mcp-header": "B"}},
            "b": {"const": {"x-mcp-header": "C"}, "examples": [{"x-mcp-header": "D"}]},
        }
    }
    assert mirrored_parameters(schema) == ()


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"properties": {"a": marked(STRING, "")}}, "token"),
        ({"properties": {"a": marked(STRING, "two words")}}, "token"),
        ({"properties": {"a": marked(STRING, "Gr\xfc\xdfe")}}, "token"),
        ({"properties": {"a": marked(STRING, "a:b")}}, "token"),
        ({"properties": {"a": marked(STRING, "a\n")}}, "token"),
        ({"properties": {"a": marked(STRING, 5)}}, "token"),
        ({"properties": {"a": marked({"type": "number"})}}, "type"),
        ({"properties": {"a": marked({"type": "object"})}}, "type"),
        ({"properties": {"a": marked({"type": ["string", "null"]})}}, "type"),
        ({"properties": {"a": marked({"anyOf": [STRING, {"type": "null"}]})}}, "type"),
        ({"properties": {"a": marked(STRING, "Region"), "b": marked(STRING, "REGION")}}, "twice"),
        ({"properties": {"a": {"type": "array", "items": marked(STRING)}}}, "nested"),
        ({"properties": {"a": {"anyOf": [marked(STRING), {"type": "null"}]}}}, "nested"),
        ({"$defs": {"A": {"properties": {"a": marked(STRING)}}}}, "nested"),
        ({"patternProperties": {"^a": marked(STRING)}}, "nested"),
        ({"allOf": [{"properties": {"a": marked(STRING)}}]}, "nested"),
        (marked({"type": "object"}), "nested"),
    ],
)
def test_a_mark_that_breaks_a_rule_is_refused(schema: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        mirrored_parameters(schema)


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("westeurope", "westeurope"),
        (" westeurope ", "westeurope"),
        ("=?base64?R3LDvMOfZQ==?=", "Grüße"),
        ("42", 42),
        ("42.0", 42),
        ("4.2e1", 42),
        ("-7", -7),
        ("42", 42.0),
        ("true", True),
        ("false", False),
        ("9" * 30, int("9" * 30)),
    ],
)
def test_an_argument_that_its_header_repeats_matches(header: str, value: object) -> None:
    assert mirrored_mismatch({"mcp-param-region": header}, {"region": value}, REGION) is None


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("eastus", "westeurope"),
        ("Westeurope", "westeurope"),
        ("=?base64?bad?=", "westeurope"),
        ("caf\xe9", "caf\xe9"),
        ("43", 42),
        ("forty-two", 42),
        ("0x2a", 42),
        ("\uff14\uff12", 42),
        ("", 42),
        ("1", True),
        ("True", True),
        ("true", False),
        ("1", "true"),
        ("[1]", [1]),
    ],
)
def test_an_argument_that_its_header_does_not_repeat_is_named(header: str, value: object) -> None:
    fault = mirrored_mismatch({"mcp-param-region": header}, {"region": value}, REGION)
    assert fault is not None
    assert "mcp-param-region" in fault


def test_an_argument_without_its_header_is_named() -> None:
    assert mirrored_mismatch({}, {"region": "eu"}, REGION) == "The header mcp-param-region is missing."


@pytest.mark.parametrize("arguments", [{}, {"region": None}])
def test_an_absent_argument_needs_no_header(arguments: dict[str, Any]) -> None:
    assert mirrored_mismatch({}, arguments, REGION) is None


def test_an_argument_below_something_that_is_no_object_counts_as_absent() -> None:
    nested = (MirroredParameter("mcp-param-count", ("options", "count")),)
    assert mirrored_mismatch({}, {"options": "none"}, nested) is None
    assert mirrored_mismatch({"mcp-param-count": "3"}, {"options": {"count": 3}}, nested) is None


@settings(deadline=None)
@given(st.none() | st.text() | st.integers() | st.booleans())
def test_the_headers_that_a_client_encodes_match_the_arguments(value: object) -> None:
    arguments = {"region": value}
    assert mirrored_mismatch(encode_mirrored(arguments, REGION), arguments, REGION) is None


def test_encoded_headers_leave_out_what_is_absent() -> None:
    parameters = (*REGION, MirroredParameter("mcp-param-loud", ("loud",)), MirroredParameter("mcp-param-n", ("n",)))
    assert encode_mirrored({"loud": True, "n": None}, parameters) == {"mcp-param-loud": "true"}
    assert encode_mirrored({"loud": False, "n": 3}, parameters) == {"mcp-param-loud": "false", "mcp-param-n": "3"}


@pytest.mark.parametrize(
    ("changed", "name", "agrees"),
    [
        ({}, None, True),
        ({"mcp-protocol-version": None}, None, False),
        ({"mcp-protocol-version": "2025-11-25"}, None, False),
        ({"mcp-method": None}, None, False),
        ({"mcp-method": "Tools/call"}, None, False),
        ({"mcp-name": "add"}, "add", True),
        ({"mcp-name": "Add"}, "add", False),
        ({"mcp-name": None}, "add", False),
        ({"mcp-name": "=?base64?YWRk?="}, "=?base64?YWRk?=", False),
        ({"mcp-name": "é"}, "é", False),
        ({"mcp-name": "a\0"}, "a\0", False),
        ({"mcp-name": " add"}, " add", False),
    ],
)
def test_headers_agree_only_where_they_say_it_literally(
    changed: dict[str, str | None], name: str | None, agrees: bool
) -> None:
    values = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", **changed}
    fields = {header.encode(): value.encode() for header, value in values.items() if value is not None}
    repeated = {} if name is None else {b"mcp-name": name}
    assert headers.agree(fields, "2026-07-28", "tools/call", repeated) is agrees
