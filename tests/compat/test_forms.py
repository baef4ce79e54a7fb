"""Forms of `Context.elicit` as FastMCP's clients get them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from funcmcp import MCPError
from funcmcp.compat import Context, FastMCP, McpError
from funcmcp.testing import Client, cancel


class Size(Enum):
    SMALL = "s"
    LARGE = "l"


@dataclass
class Person:
    name: str
    size: Size = Size.SMALL


class Order(BaseModel):
    number: float = Field(gt=0, title="How many")


class Nested(BaseModel):
    order: Order


def asking(response_type: Any, seen: list[Any], **options: Any) -> FastMCP:
    mcp = FastMCP("forms")

    @mcp.tool
    async def ask(ctx: Context) -> str:
        answer = await ctx.elicit("Which?", response_type, **options)
        seen.append(answer.data)
        return str(answer.action)

    return mcp


async def asked(mcp: FastMCP, content: Any) -> tuple[dict[str, Any], Any]:
    """Return the schema of the form, and the result of the call that is answered with the content."""
    schemas: list[dict[str, Any]] = []

    async def answer(params: Any) -> dict[str, Any]:
        schemas.append(params["requestedSchema"])
        return {"action": "accept", "content": content}

    async with Client(mcp, elicit=answer) as client:
        result = await client.call_tool("ask", raise_on_error=False)
    return schemas[0], result


ONE = {"type": "string", "oneOf": [{"const": "a", "title": "First"}, {"const": "b", "title": "b"}]}
SEVERAL = {"type": "array", "items": {"anyOf": ONE["oneOf"]}}


@pytest.mark.parametrize(
    ("response_type", "field", "content", "value"),
    [
        (str, {"title": "Value", "type": "string"}, "a", "a"),
        (bool, {"title": "Value", "type": "boolean"}, True, True),
        (Literal["a", "b"], {"title": "Value", "type": "string", "enum": ["a", "b"]}, "b", "b"),
        (Size, {"title": "Size", "type": "string", "enum": ["s", "l"]}, "l", Size.LARGE),
        (["a", "b"], {"title": "Value", "type": "string", "enum": ["a", "b"]}, "b", "b"),
        ([["a", "b"]], {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}, ["b"], ["b"]),
        ({"a": {"title": "First"}, "b": {}}, ONE, "a", "a"),
        ([{"a": {"title": "First"}, "b": {}}], SEVERAL, ["a", "b"], ["a", "b"]),
    ],
)
async def test_a_type_without_fields_is_a_form_with_a_value(
    response_type: Any, field: dict[str, Any], content: Any, value: Any
) -> None:
    seen: list[Any] = []
    schema, result = await asked(asking(response_type, seen), {"value": content})
    assert schema == {"type": "object", "properties": {"value": field}, "required": ["value"]}
    assert (result.text, seen) == ("accept", [value])


async def test_the_field_has_the_title_and_the_description_of_the_question() -> None:
    options = {"response_title": "Your name", "response_description": "As in your passport"}
    schema, _ = await asked(asking(str, [], **options), {"value": "Ann"})
    assert schema["properties"]["value"] == {
        "title": "Your name",
        "description": "As in your passport",
        "type": "string",
    }


async def test_a_class_is_a_form_with_its_fields() -> None:
    seen: list[Any] = []
    schema, _ = await asked(asking(Person, seen), {"name": "Ann", "size": "l"})
    assert list(schema["properties"]) == ["name", "size"]
    assert schema["properties"]["size"]["enum"] == ["s", "l"]
    schema, _ = await asked(asking(Order, seen), {"number": 2})
    assert schema["properties"]["number"] == {"title": "How many", "type": "number", "exclusiveMinimum": 0}
    assert seen == [Person("Ann", Size.LARGE), Order(number=2)]


@pytest.mark.parametrize(
    ("response_type", "content"), [(Order, {"number": -1}), (str, {"value": 1}), (["a"], {"value": "b"}), (bool, {})]
)
async def test_an_answer_that_does_not_fit_is_an_error_without_text_of_pydantic(
    response_type: Any, content: Any
) -> None:
    _, result = await asked(asking(response_type, []), content)
    assert result.is_error
    assert "validation error" not in result.text
    assert "pydantic" not in result.text


@pytest.mark.parametrize(
    ("response_type", "options", "problem"),
    [
        (Order, {"response_title": "Title"}, "response_title and response_description are only supported"),
        (Nested, {}, "nested objects are not allowed"),
        (list[int], {}, "arrays are only allowed when items are enums"),
        ({}, {}, "cannot be empty"),
        ([1], {}, "Invalid list response_type"),
    ],
)
async def test_what_a_form_cannot_show_is_an_error(response_type: Any, options: dict[str, Any], problem: str) -> None:
    async with Client(asking(response_type, [], **options), elicit=cancel) as client:
        result = await client.call_tool("ask", raise_on_error=False)
    assert problem in result.text


@pytest.mark.parametrize("answers", [False, True])
async def test_a_client_that_cannot_be_asked_and_one_that_fails_raise_mcp_errors(*, answers: bool) -> None:
    mcp = FastMCP("forms")

    @mcp.tool
    async def ask(ctx: Context) -> str:
        try:
            await ctx.elicit("Which?", str)
        except McpError as error:
            return f"{error.error.code} {error.error.message}"
        return "asked"

    async def fail(params: Any) -> dict[str, Any]:
        raise MCPError(-32001, "The window is closed.")

    async with Client(mcp, elicit=fail if answers else None, revision="2025-11-25") as client:
        result = await client.call_tool("ask")
    unsupported = "-32600 Elicitation not supported. This needs a client that supports: elicitation."
    assert result.text == ("-32001 The window is closed." if answers else unsupported)
