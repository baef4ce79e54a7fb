"""Bindings: keys in any case, values as texts or decoded, and what makes a function unusable."""

from __future__ import annotations

import json
from typing import Any

import pytest

from funcmcp_host.bindings import (
    BindingError,
    HTTPTrigger,
    PromptTrigger,
    ResourceTrigger,
    ToolTrigger,
    read_function,
)
from funcmcp_host.workers.worker import FunctionInfo


def info(*bindings: Any, error: str | None = None) -> FunctionInfo:
    return FunctionInfo("f", tuple(json.dumps(binding) for binding in bindings), error)


TOOL = {"type": "mcpToolTrigger", "direction": "in", "name": "context", "toolName": "t", "description": "d"}


def test_the_example_of_the_contract_is_read() -> None:
    function = read_function(
        info(
            {
                "type": "mcpToolTrigger",
                "direction": "in",
                "name": "context",
                "toolName": "GetServerTime",
                "description": "Returns the current server time",
                "toolProperties": '[{"propertyName":"format","propertyType":"string","description":"Date format",'
                '"isRequired":false,"isArray":false,"enumValues":[]}]',
                "metadata": '{"author":"John Doe","version":1.0}',
            }
        )
    )
    trigger = function.trigger
    assert isinstance(trigger, ToolTrigger)
    assert (trigger.parameter, trigger.name, trigger.description) == (
        "context",
        "GetServerTime",
        "Returns the current server time",
    )
    assert trigger.properties[0]["propertyname"] == "format"
    assert trigger.metadata == {"author": "John Doe", "version": 1.0}
    assert not trigger.uses_result_schema


def test_keys_have_any_case_and_values_may_be_decoded() -> None:
    function = read_function(
        info(
            {
                "TYPE": "McpToolTrigger",
                "Direction": "IN",
                "Name": "c",
                "TOOLNAME": "t",
                "ToolProperties": [{"PropertyName": "a", "ISREQUIRED": True}],
                "METADATA": {"k": 1},
                "UseResultSchema": "true",
                "unknown": [1],
            }
        )
    )
    trigger = function.trigger
    assert isinstance(trigger, ToolTrigger)
    assert trigger.properties == [{"propertyname": "a", "isrequired": True}]
    assert (trigger.description, trigger.metadata, trigger.uses_result_schema) == (None, {"k": 1}, True)


def test_schemas_of_a_tool() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {}}}
    trigger = read_function(
        info({**TOOL, "useWorkerInputSchema": True, "inputSchema": json.dumps(schema), "outputSchema": schema})
    ).trigger
    assert isinstance(trigger, ToolTrigger)
    assert (trigger.input_schema, trigger.output_schema) == (schema, schema)
    unused = read_function(info({**TOOL, "inputSchema": json.dumps(schema)})).trigger
    assert isinstance(unused, ToolTrigger)
    assert unused.input_schema is None


def test_a_resource_and_a_prompt_and_an_http_trigger() -> None:
    resource = read_function(
        info({"type": "mcpResourceTrigger", "name": "c", "uri": "a:b", "resourceName": "n", "size": "7"})
    ).trigger
    assert isinstance(resource, ResourceTrigger)
    assert (resource.uri, resource.name, resource.size, resource.mime_type) == ("a:b", "n", 7, None)
    prompt = read_function(
        info({"type": "mcpPromptTrigger", "name": "c", "promptName": "p", "promptArguments": '[{"Name": "a"}]'})
    ).trigger
    assert isinstance(prompt, PromptTrigger)
    assert prompt.arguments == [{"name": "a"}]
    http = read_function(
        info(
            {"type": "httpTrigger", "name": "req", "route": "/a/{b}", "methods": ["get"], "authLevel": "ANONYMOUS"},
            {"type": "http", "direction": "out", "name": "$return"},
        )
    )
    assert http.trigger == HTTPTrigger("req", "a/{b}", ("GET",), "anonymous")
    assert http.extras == ()


def test_other_bindings_are_kept_with_their_direction() -> None:
    function = read_function(
        info(TOOL, {"type": "blob", "name": "b", "path": "p"}, {"type": "queue", "name": "q", "direction": "OUT"})
    )
    assert [(extra.parameter, extra.kind, extra.is_output) for extra in function.extras] == [
        ("b", "blob", False),
        ("q", "queue", True),
    ]


@pytest.mark.parametrize(
    ("bindings", "reason"),
    [
        ([], "no triggers"),
        ([TOOL, TOOL], "2 triggers"),
        (["x"], "not a JSON object"),
        ([{"type": "timerTrigger", "name": "t"}], "Its trigger timerTrigger is not supported by funcmcp host"),
        ([{**TOOL, "toolName": ""}], "toolName is missing"),
        ([{**TOOL, "toolName": 3}], "toolName is not a string"),
        ([{**TOOL, "name": None}], "name is missing"),
        ([{**TOOL, "description": []}], "description is not a string"),
        ([{**TOOL, "toolProperties": "[{"}], "toolProperties is not valid JSON"),
        ([{**TOOL, "toolProperties": "[" * 100_000}], "toolProperties is not valid JSON: The JSON is nested more than"),
        ([{**TOOL, "toolProperties": "{}"}], "toolProperties must be a JSON array of objects"),
        ([{**TOOL, "toolProperties": "[1]"}], "toolProperties must be a JSON array of objects"),
        ([{**TOOL, "metadata": "[]"}], "metadata must be a JSON object"),
        ([{**TOOL, "useWorkerInputSchema": True}], "inputSchema is missing"),
        ([{**TOOL, "outputSchema": '{"type": "array"}'}], "outputSchema must be a JSON Schema"),
        ([{**TOOL, "outputSchema": '{"type": "object", "required": 3}'}], "outputSchema must be a JSON Schema"),
        ([{"type": "mcpResourceTrigger", "name": "c", "uri": "a:b"}], "resourceName is missing"),
        (
            [{"type": "mcpResourceTrigger", "name": "c", "uri": "a:b", "resourceName": "n", "size": "9" * 5000}],
            "size is '9999",
        ),
        (
            [{"type": "mcpResourceTrigger", "name": "c", "uri": "a:b", "resourceName": "n", "size": -1}],
            "size is -1",
        ),
        (
            [{"type": "mcpPromptTrigger", "name": "c", "promptName": "p", "promptArguments": "[{}]"}],
            "An item of promptArguments has no name.",
        ),
        (
            [
                {
                    "type": "mcpPromptTrigger",
                    "name": "c",
                    "promptName": "p",
                    "promptArguments": '[{"name": "a", "required": "yes"}]',
                }
            ],
            'required of item 1 of promptArguments is "yes". Write true or false.',
        ),
        (
            [{**TOOL, "toolProperties": '[{"propertyName": "a"}, {"propertyName": "b", "isRequired": "true"}]'}],
            'isRequired of item 2 of toolProperties is "true". Write true or false.',
        ),
        (
            [{**TOOL, "toolProperties": '[{"propertyName": "a", "isArray": 1}]'}],
            "isArray of item 1 of toolProperties is 1. Write true or false.",
        ),
    ],
)
def test_a_malformed_binding_is_an_error_in_words(bindings: list[Any], reason: str) -> None:
    with pytest.raises(BindingError, match=reason):
        read_function(info(*bindings))


def test_a_function_that_the_worker_cannot_run_says_why() -> None:
    with pytest.raises(BindingError, match="It is broken"):
        read_function(info(TOOL, error="It is broken"))


def test_a_binding_that_is_not_json_is_an_error() -> None:
    with pytest.raises(BindingError, match="not a JSON object"):
        read_function(FunctionInfo("f", ("{",)))


@pytest.mark.parametrize(
    ("properties", "names"),
    [
        ('[{"propertyName": "a"}, {"propertyType": "string"}]', ["a"]),
        ('[{"name": "a"}, {"propertyName": " "}]', []),
        ('[{"PropertyName": "a", "unknown_member": 1}]', ["a"]),
        ('[{"property_name": "a", "propertyName": "b", "is_required": true}]', ["b"]),
    ],
)
def test_items_without_a_name_and_unknown_members_are_left_out(properties: str, names: Any) -> None:
    trigger = read_function(info({**TOOL, "toolProperties": properties})).trigger
    assert isinstance(trigger, ToolTrigger)
    assert [item["propertyname"] for item in trigger.properties] == names


@pytest.mark.parametrize("properties", ["", "[", [{"propertyName": "a", "isRequired": "true"}]])
def test_tool_properties_beside_an_input_schema_are_not_read(properties: object) -> None:
    schema = {"type": "object"}
    binding = {"type": "mcpToolTrigger", "name": "c", "toolName": "t", "useWorkerInputSchema": True}
    text = json.dumps({**binding, "inputSchema": json.dumps(schema), "toolProperties": properties})
    trigger = read_function(FunctionInfo("f", (text,))).trigger
    assert isinstance(trigger, ToolTrigger)
    assert (trigger.input_schema, trigger.properties) == (schema, [])


def test_a_constant_that_json_does_not_have_is_refused() -> None:
    binding = {"type": "mcpToolTrigger", "name": "c", "toolName": "t", "metadata": '{"a": NaN}'}
    with pytest.raises(BindingError, match="metadata is not valid JSON: NaN is not a value of JSON"):
        read_function(FunctionInfo("f", (json.dumps(binding),)))
