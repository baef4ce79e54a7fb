"""Definitions: the input schema of tool properties, and what lists say of resources and prompts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from funcmcp_host.bindings import BindingError, PromptTrigger, ResourceTrigger, ToolTrigger, read_function
from funcmcp_host.schemas import prompt_definition, required_of, resource_definition, tool_definition
from funcmcp_host.workers.worker import FunctionInfo


def tool(properties: Any, **more: Any) -> ToolTrigger:
    binding = {"type": "mcpToolTrigger", "name": "c", "toolName": "t", "toolProperties": properties, **more}
    trigger = read_function(FunctionInfo("f", (json.dumps(binding),))).trigger
    assert isinstance(trigger, ToolTrigger)
    return trigger


def resource(**more: Any) -> ResourceTrigger:
    binding = {"type": "mcpResourceTrigger", "name": "c", "uri": "a:b", "resourceName": "n", **more}
    trigger = read_function(FunctionInfo("f", (json.dumps(binding),))).trigger
    assert isinstance(trigger, ResourceTrigger)
    return trigger


def prompt(**more: Any) -> PromptTrigger:
    binding = {"type": "mcpPromptTrigger", "name": "c", "promptName": "p", **more}
    trigger = read_function(FunctionInfo("f", (json.dumps(binding),))).trigger
    assert isinstance(trigger, PromptTrigger)
    return trigger


def test_the_schema_of_the_contract() -> None:
    trigger = tool(
        [
            {"propertyName": "name", "propertyType": "string", "description": "The name parameter", "isRequired": True},
            {"propertyName": "count", "propertyType": "integer", "isRequired": True, "description": "The count"},
            {"propertyName": "tags", "propertyType": "string", "isArray": True, "description": "Tags for the item"},
            {"propertyName": "status", "propertyType": "string", "enumValues": ["Active", "Inactive"]},
            {"propertyName": " ", "propertyType": "string"},
        ],
        description="d",
        metadata='{"author": "John Doe", "tags": ["a"]}',
    )
    assert tool_definition(trigger) == {
        "name": "t",
        "description": "d",
        "inputSchema": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "The name parameter"},
                "count": {"type": "integer", "description": "The count"},
                "tags": {"type": "array", "items": {"type": "string"}, "description": "Tags for the item"},
                "status": {"type": "string", "enum": ["Active", "Inactive"], "description": ""},
            },
            "required": ["name", "count"],
        },
        "_meta": {"author": "John Doe", "tags": ["a"]},
    }
    assert required_of(trigger) == ("name", "count")


def test_a_tool_without_anything() -> None:
    assert tool_definition(tool(None)) == {
        "name": "t",
        "inputSchema": {"type": "object", "properties": {}, "required": []},
    }


def test_an_array_has_its_choices_in_the_items() -> None:
    trigger = tool([{"propertyName": "a", "propertyType": "string", "isArray": True, "enumValues": ["x"]}])
    assert tool_definition(trigger)["inputSchema"]["properties"]["a"] == {
        "type": "array",
        "items": {"type": "string", "enum": ["x"]},
        "description": "",
    }


@pytest.mark.parametrize(
    ("written", "valid"),
    [
        ("float", "number"),
        ("int", "integer"),
        ("BOOLEAN", "boolean"),
        (None, "string"),
        ("date", "string"),
        ("file", "string"),
        ("colour", "string"),
    ],
)
def test_types_are_those_of_json_schema(written: str | None, valid: str) -> None:
    trigger = tool([{"propertyName": "a", "propertyType": written}])
    assert tool_definition(trigger)["inputSchema"]["properties"]["a"]["type"] == valid


@pytest.mark.parametrize(("written", "item"), [("string[]", "string"), ("float[]", "number"), ("date[]", "string")])
def test_a_type_with_brackets_is_an_array(written: str, item: str) -> None:
    trigger = tool([{"propertyName": "a", "propertyType": written}])
    schema = tool_definition(trigger)["inputSchema"]["properties"]["a"]
    assert schema == {"type": "array", "items": {"type": item}, "description": ""}


def test_a_worker_schema_is_sent_as_it_is() -> None:
    schema = {"type": "object", "required": ["a", 3], "properties": {"a": {"anyOf": [{"type": "string"}]}}}
    trigger = tool([{"propertyName": "b"}], useWorkerInputSchema=True, inputSchema=schema, outputSchema=schema)
    definition = tool_definition(trigger)
    assert (definition["inputSchema"], definition["outputSchema"]) == (schema, schema)
    assert required_of(trigger) == ("a",)


def test_resources_and_templates() -> None:
    trigger = resource(title="T", description="d", mimeType="text/plain", size=1024, metadata='{"author": "Jane Doe"}')
    expected = {
        "name": "n",
        "title": "T",
        "description": "d",
        "mimeType": "text/plain",
        "_meta": {"author": "Jane Doe"},
    }
    assert resource_definition(trigger, is_template=False) == {"uri": "a:b", "size": 1024, **expected}
    assert resource_definition(trigger, is_template=True) == {"uriTemplate": "a:b", **expected}
    assert resource_definition(resource(), is_template=False) == {"uri": "a:b", "name": "n"}


def test_prompts() -> None:
    trigger = prompt(
        title="T",
        description="d",
        promptArguments=json.dumps(
            [{"name": "code", "description": "The code", "required": True}, {"name": "style", "description": None}]
        ),
        icons=json.dumps([{"src": "https://a/i.png", "sizes": ["48x48"], "theme": None, "other": 1}]),
        metadata='{"k": 1}',
    )
    assert prompt_definition(trigger) == {
        "name": "p",
        "title": "T",
        "description": "d",
        "arguments": [
            {"name": "code", "description": "The code", "required": True},
            {"name": "style", "required": False},
        ],
        "icons": [{"src": "https://a/i.png", "sizes": ["48x48"]}],
        "_meta": {"k": 1},
    }
    assert prompt_definition(prompt()) == {"name": "p"}
    with pytest.raises(BindingError, match="no src"):
        prompt_definition(prompt(icons="[{}]"))
