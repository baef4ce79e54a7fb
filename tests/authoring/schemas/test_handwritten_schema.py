# ruff: noqa: TC001 - tools are made of these hints at run time

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from funcmcp._authoring.schemas.argument_errors import wrong_arguments
from funcmcp._authoring.schemas.handwritten_schema import schema_checker
from funcmcp._authoring.signatures.signature import JSONRPCRequest
from funcmcp._protocol.errors import ToolError
from funcmcp._server.catalog.registry import RegistrationError
from tests.authoring.tool_calls import call, schema_of, tool_of
from tests.patience import PATIENCE

pytestmark = pytest.mark.lowest("jsonschema-rs checks the values.")

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"a": {"type": "integer", "minimum": 1}, "b": {"type": "string"}},
    "required": ["a"],
    "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
}


def test_a_hand_written_schema_is_listed_as_it_stands() -> None:
    def tool(arguments: dict[str, Any]) -> None: ...

    assert schema_of(tool, input_schema=SCHEMA) == SCHEMA
    assert list(schema_of(tool, input_schema=SCHEMA)) == list(SCHEMA)


async def test_its_function_may_take_all_arguments_as_a_dict() -> None:
    def annotated(anything: dict[str, Any]) -> dict[str, Any]:
        return anything

    def named(arguments):  # type: ignore[no-untyped-def] # the point of the test
        return arguments

    for function in (annotated, named):
        result = await call(function, {"a": 1, "c": 2}, input_schema=SCHEMA)
        assert result["structuredContent"] == {"a": 1, "c": 2}


async def test_its_function_may_take_them_by_name_or_not_at_all() -> None:
    def by_name(a: int, b: str = "x") -> str:
        return f"{a}{b}"

    def raw(request: JSONRPCRequest) -> str:
        return str(request.id)

    def its_own_name(a: dict[str, Any]) -> dict[str, Any]:
        return a

    assert (await call(by_name, {"a": 1}, input_schema=SCHEMA))["content"][0]["text"] == "1x"
    assert (await call(raw, {"a": 1}, input_schema=SCHEMA))["content"][0]["text"] == "7"
    schema = {"type": "object", "properties": {"a": {"type": "object"}}}
    assert (await call(its_own_name, {"a": {"b": 1}}, input_schema=schema))["structuredContent"] == {"b": 1}


async def test_arguments_are_checked_by_it() -> None:
    def tool(arguments: dict[str, Any]) -> None: ...

    with pytest.raises(ToolError) as refused:
        await call(tool, {"a": "secret"}, input_schema=SCHEMA)
    assert str(refused.value) == "a: must be an integer, not a string"


@pytest.mark.parametrize(
    ("schema", "value", "words"),
    [
        ({"required": ["a"]}, {}, "a: is required"),
        (
            {"properties": {"a": {"type": ["integer", "null"]}}},
            {"a": ""},
            "a: must be an integer or null, not a string",
        ),
        ({"properties": {"b": {}}, "additionalProperties": False}, {"a": 1}, "a: is not expected"),
        ({"properties": {"a": {"additionalProperties": False}}}, {"a": {"b": 1}}, "a: must have no members"),
        ({"properties": {"a": False}}, {"a": 1}, "a: is not expected"),
        ({"unevaluatedProperties": False}, {"a": 1}, "a: is not expected"),
        ({"enum": [1, "a"]}, 2, 'must be one of 1 or "a"'),
        ({"const": 1}, 2, "must be 1"),
        ({"minimum": 1}, 0, "must be at least 1"),
        ({"maximum": 1}, 2, "must be at most 1"),
        ({"exclusiveMinimum": 1}, 1, "must be greater than 1"),
        ({"exclusiveMaximum": 1}, 1, "must be less than 1"),
        ({"multipleOf": 2}, 1, "must be a multiple of 2"),
        ({"minLength": 2}, "a", "must have at least 2 characters"),
        ({"maxLength": 1}, "ab", "must have at most 1 character"),
        ({"minItems": 1}, [], "must have at least 1 item"),
        ({"maxItems": 0}, [1], "must have at most 0 items"),
        ({"minProperties": 1}, {}, "must have at least 1 member"),
        ({"maxProperties": 0}, {"a": 1}, "must have at most 0 members"),
        ({"uniqueItems": True}, [1, 1], "must not have the same item twice"),
        ({"pattern": "^a$"}, "b", "must match the pattern ^a$"),
        ({"format": "email"}, "b", "must be an email address"),
        ({"format": "json-pointer"}, "b", "must be json-pointer"),
        ({"not": {"type": "string"}}, "b", "does not fit the schema (not)"),
        ({"items": {"minimum": 1}}, [1, 0], "[1]: must be at least 1"),
    ],
)
def test_every_keyword_has_plain_words(schema: dict[str, Any], value: Any, words: str) -> None:
    errors = schema_checker(schema, "it")(value)
    assert str(wrong_arguments(errors)) == words


def test_a_thousand_errors_are_not_all_looked_at() -> None:
    assert len(schema_checker({"items": {"type": "string"}}, "it")([1] * 1000)) == 100


@pytest.mark.parametrize(
    "reference", ["http://127.0.0.1:9/schema.json", "file:///etc/hostname", "#/$defs/nowhere", "other.json"]
)
def test_references_are_never_followed_out_of_the_schema(reference: str) -> None:
    with pytest.raises(RegistrationError, match="not a valid JSON schema"):
        schema_checker({"$ref": reference}, "it")


@pytest.mark.parametrize("schema", [{"type": 5}, {"pattern": "(?=a)"}, {"pattern": "("}])
def test_an_invalid_schema_is_told(schema: dict[str, Any]) -> None:
    with pytest.raises(RegistrationError, match=r"^it is not a valid JSON schema"):
        schema_checker(schema, "it")


@pytest.mark.timeout(20)
def test_a_catastrophic_pattern_is_matched_in_linear_time() -> None:
    assert schema_checker({"pattern": "^(a+)+$"}, "it")("a" * 50_000 + "b")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"input_schema": "{}"}, "dict"),
        ({"input_schema": {"type": "array"}}, '"type": "object"'),
        ({"input_schema": {}}, '"type": "object"'),
        ({"input_schema": {"type": "object", "x": object()}}, "JSON"),
        ({"input_schema": {"type": "object", "x": float("nan")}}, "JSON"),
        ({"input_schema": {"type": "object", "x": "\ud800"}}, "JSON"),
        ({"input_schema": {"type": "object", 1: 2}}, "keys must be strings"),
        ({"output_schema": []}, "dict"),
        (
            {"output_schema": {"type": "strin"}},
            "of tool has the unknown type 'strin'. Valid types: array, boolean",
        ),
        ({"input_schema": {"type": "object", "properties": {"a": {"type": "nope"}}}}, "has the unknown type 'nope'"),
        ({"input_schema": {"type": "object", "anyOf": [{"items": {"type": ["string", 5]}}]}}, "has the unknown type 5"),
    ],
)
def test_what_can_be_told_at_once_is_told_at_registration(options: dict[str, Any], words: str) -> None:
    def tool(arguments: dict[str, Any]) -> None: ...

    with pytest.raises(RegistrationError, match=words):
        tool_of(tool, **options)


@pytest.mark.parametrize("option", ["input_schema", "output_schema"])
def test_a_schema_that_only_the_library_finds_wrong_is_told_when_the_tool_is_listed(option: str) -> None:
    def tool(arguments: dict[str, Any]) -> None: ...

    options: dict[str, Any] = {option: {"type": "object", "properties": {"a": {"minimum": "x"}}}}
    made = tool_of(tool, **options)
    with pytest.raises(RegistrationError, match=f"{option} of tool is not a valid JSON schema"):
        made.describe()


def test_the_library_is_not_loaded_when_a_tool_is_registered() -> None:
    code = (
        "import sys\nfrom funcmcp import MCPServer\nm = MCPServer('m')\n"
        "@m.tool(input_schema={'type': 'object'})\n"
        "def f(arguments): ...\n"
        "assert 'jsonschema_rs' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE)


BOUNDED = """
import json, sys
from funcmcp._authoring.schemas.handwritten_schema import schema_checker
schema, value = json.load(sys.stdin)
print(json.dumps(schema_checker(schema, "input_schema")(value)))
"""


def errors_in_a_process(schema: dict[str, Any], value: Any) -> list[list[str]]:
    """Return the errors of a value. The library can't be interrupted, so a process that takes too long is killed."""
    done = subprocess.run(
        [sys.executable, "-c", BOUNDED],
        input=json.dumps([schema, value]),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    lines: list[list[str]] = json.loads(done.stdout)
    return lines


def nested_in_x(depth: int, leaf: Any) -> Any:
    for _ in range(depth):
        leaf = {"x": leaf}
    return leaf


FILTER: dict[str, Any] = {
    "type": "object",
    "properties": {"filter": {"$ref": "#/$defs/filter"}},
    "$defs": {
        "filter": {
            "anyOf": [
                {"type": "integer"},
                {"type": "object", "properties": {"x": {"$ref": "#/$defs/filter"}}, "required": ["x"]},
                {"type": "object", "properties": {"x": {"$ref": "#/$defs/filter"}}},
            ]
        }
    },
}
TOO_LARGE = "The value does not fit the schema, and is too large or too deeply nested to list the errors"


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf", "allOf"])
def test_a_deep_value_for_a_schema_that_refers_to_itself_is_checked_in_bounded_time(keyword: str) -> None:
    schema = json.loads(json.dumps(FILTER).replace("anyOf", keyword))
    ((path, message),) = errors_in_a_process(schema, {"filter": nested_in_x(60, "wrong")})
    assert path == ""
    assert message.startswith(TOO_LARGE)


def test_such_a_schema_accepts_a_deep_value_that_fits() -> None:
    assert errors_in_a_process(FILTER, {"filter": nested_in_x(60, 1)}) == []


def test_errors_of_a_value_that_is_not_deep_are_listed_with_their_places() -> None:
    lines = errors_in_a_process(FILTER, {"filter": nested_in_x(3, "wrong")})
    assert lines
    assert all(path.startswith("filter") for path, _ in lines)


def test_unevaluated_members_of_a_schema_that_refers_to_itself_are_checked_in_bounded_time() -> None:
    schema: dict[str, Any] = {
        "unevaluatedItems": False,
        "allOf": [
            {
                "patternProperties": {
                    "x": {"unevaluatedProperties": False, "anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
                }
            },
            {"properties": {"x": {"$ref": "#"}}},
        ],
    }
    ((path, message),) = errors_in_a_process(schema, nested_in_x(60, {}))
    assert (path, message) == (
        "",
        (
            "The value is too large or too deeply nested to be checked against the schema. "
            "Send less, or nest it less deeply."
        ),
    )
    assert errors_in_a_process(schema, nested_in_x(2, {})) == []


@pytest.mark.slow("Many values or schemas take half a second or longer.")
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"type": "integer"}},
        {"anyOf": [{"items": {"type": "integer"}}, {"items": {"type": "boolean"}}]},
        {"items": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]}},
        {"items": {"enum": list(range(1000))}},
    ],
)
def test_the_errors_of_a_large_value_are_not_all_listed(schema: dict[str, Any]) -> None:
    ((path, message),) = errors_in_a_process(schema, ["wrong"] * 250_000)
    assert path == ""
    assert message.startswith(TOO_LARGE)
    assert errors_in_a_process(schema, ["wrong"])[0][0] == "[0]" or "anyOf" in schema
