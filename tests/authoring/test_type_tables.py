"""The tables of the first design of the tool API: names, types, bindings and results, a test for each line."""

from __future__ import annotations

import json
import logging
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any
from uuid import UUID

import pytest
from pydantic import BaseModel, Field

from funcmcp._authoring.calling.feature_context import CancellationToken, Context
from funcmcp._authoring.calling.services import Services
from funcmcp._authoring.features.decorators import features_of
from funcmcp._authoring.features.tools import tool
from funcmcp._authoring.signatures.signature import JSONRPCRequest, JSONRPCResponse
from funcmcp._protocol.errors import ToolError
from funcmcp._server.catalog.features import RawResponse
from funcmcp._server.catalog.registry import RegistrationError
from tests.authoring.tool_calls import call, schema_of, tool_of

pytestmark = [
    pytest.mark.every_python("Python's modules read signatures, annotations and docstrings."),
    pytest.mark.lowest("pydantic reads values, writes JSON and makes schemas."),
]


class Status(Enum):
    OPEN = "open"
    SHUT = "shut"


class User(BaseModel):
    name: str


class Repository:
    def get(self, user_id: int) -> User:
        return User(name=f"user {user_id}")


def add_tool(number1: float, number2: float) -> float:
    """Adds two numbers and return result. Example: 5 + 3 = 8"""
    return number1 + number2


def AddNumbersTool(number1: float, number2: float) -> float:  # noqa: N802 - the point of the test
    """Adds two numbers and return result. Example: 5 + 3 = 8"""
    return number1 + number2


def definition(function: Any, **options: Any) -> dict[str, Any]:
    return dict(tool_of(function, **options).describe())


# "Proposed (Magic)"


def test_everything_is_made_from_the_function() -> None:
    made = definition(AddNumbersTool)
    assert made["name"] == "add_numbers_tool"
    assert made["title"] == "Add Numbers Tool"
    assert made["description"] == "Adds two numbers and return result. Example: 5 + 3 = 8"
    assert json.dumps(made["inputSchema"]) == json.dumps(
        {
            "type": "object",
            "properties": {"number1": {"type": "number"}, "number2": {"type": "number"}},
            "required": ["number1", "number2"],
        }
    )


# 1. Tool name resolution


def test_name_1_explicit_by_position() -> None:
    class Tools:
        @tool("add_numbers")
        def add_tool(self) -> None: ...

    assert [made.name for made in features_of(Tools, Services())] == ["add_numbers"]


def test_name_2_explicit_by_keyword() -> None:
    assert tool_of(add_tool, name="add_numbers").name == "add_numbers"


def test_name_3_inferred_in_snake_case() -> None:
    assert tool_of(AddNumbersTool).name == "add_numbers_tool"


def test_name_4_as_it_is() -> None:
    def add_numbers() -> None: ...

    assert tool_of(add_numbers).name == "add_numbers"


def test_a_name_must_match_the_pattern() -> None:
    with pytest.raises(RegistrationError, match="name"):
        tool_of(add_tool, name="add numbers")


# 2. Title and description resolution


def test_title_1_explicit() -> None:
    assert definition(add_tool, title="Add Numbers")["title"] == "Add Numbers"


def test_title_2_humanised_name_of_the_function() -> None:
    def Add() -> None: ...  # noqa: N802 - the point of the test

    assert definition(Add, name="add", description="Adds two numbers")["title"] == "Add"


def test_title_3_the_tool_s_name() -> None:
    assert definition(lambda: None, name="---")["title"] == "---"


def test_description_1_explicit() -> None:
    assert definition(add_tool, description="Adds")["description"] == "Adds"


def test_description_2_the_docstring_s_summary() -> None:
    assert definition(add_tool)["description"] == "Adds two numbers and return result. Example: 5 + 3 = 8"


def test_description_3_empty() -> None:
    def bare() -> None: ...

    assert "description" not in definition(bare)  # an empty one is refused by Amazon Bedrock


# 3. Input schema: type mapping (JSON type, required)


@pytest.mark.parametrize(
    ("annotation", "schema", "required"),
    [
        (int, {"type": "integer"}, True),
        (float, {"type": "number"}, True),
        (Decimal, {"type": "number"}, True),
        (str, {"type": "string"}, True),
        (bool, {"type": "boolean"}, True),
        (int | None, {"type": "integer"}, False),
        (float | None, {"type": "number"}, False),
        (str | None, {"type": "string"}, False),
        (datetime, {"type": "string", "format": "date-time"}, True),
        (UUID, {"type": "string", "format": "uuid"}, True),
        (Status, {"type": "string", "enum": ["open", "shut"]}, True),
        (list[int], {"type": "array", "items": {"type": "integer"}}, True),
        (tuple[str, ...], {"type": "array", "items": {"type": "string"}}, True),
        (dict[str, Any], {"type": "object"}, True),
        (User, {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}, True),
    ],
)
def test_type(annotation: Any, schema: dict[str, Any], required: bool) -> None:
    def function(it: Any) -> Any: ...

    function.__annotations__ = {"it": annotation}
    made = schema_of(function)
    assert made["properties"] == {"it": schema}
    assert ("it" in made.get("required", [])) is required


# 3. Parameter attributes


@pytest.mark.parametrize(
    ("annotation", "keywords", "wrong"),
    [
        (Annotated[float, Field(description="Numerator")], {"description": "Numerator"}, "x"),
        (Annotated[int, Field(ge=1, le=100)], {"minimum": 1, "maximum": 100}, 101),
        (Annotated[str, Field(min_length=3)], {"minLength": 3}, "ab"),
        (Annotated[str, Field(max_length=50)], {"maxLength": 50}, "a" * 51),
        (Annotated[str, Field(pattern="^[A-Z]+$")], {"pattern": "^[A-Z]+$"}, "abc"),
    ],
    ids=["Description", "Range", "MinLength", "MaxLength", "Pattern"],
)
async def test_attribute(annotation: Any, keywords: dict[str, Any], wrong: Any) -> None:
    def function(it: Any) -> Any: ...

    function.__annotations__ = {"it": annotation}
    made = schema_of(function)["properties"]["it"]
    assert {name: made[name] for name in keywords} == keywords
    with pytest.raises(ToolError, match=r"^it: must"):
        await call(function, {"it": wrong})


def test_divide_has_the_seed_s_schema() -> None:
    def divide(
        numerator: Annotated[float, Field(description="Numerator")],
        denominator: Annotated[
            float, Field(description="Denominator (cannot be zero)", ge=0.001, le=1.7976931348623157e308)
        ],
    ) -> float:
        return numerator / denominator

    assert json.dumps(schema_of(divide)) == json.dumps(
        {
            "type": "object",
            "properties": {
                "numerator": {"type": "number", "description": "Numerator"},
                "denominator": {
                    "type": "number",
                    "description": "Denominator (cannot be zero)",
                    "minimum": 0.001,
                    "maximum": 1.7976931348623157e308,
                },
            },
            "required": ["numerator", "denominator"],
        }
    )


# 4. Return type handling

RESPONSE = {"jsonrpc": "2.0", "id": 7, "result": {"content": []}}


async def test_return_a_response_as_it_is() -> None:
    def function() -> JSONRPCResponse:
        return {"jsonrpc": "2.0", "id": 7, "result": {"content": []}}

    assert await call(function) == RawResponse(RESPONSE)


async def test_return_a_response_from_an_async_function() -> None:
    async def function() -> JSONRPCResponse:
        return {"jsonrpc": "2.0", "id": 7, "result": {"content": []}}

    assert await call(function) == RawResponse(RESPONSE)


async def test_return_any_other_type_is_wrapped() -> None:
    assert (await call(add_tool, {"number1": 1, "number2": 2.5}))["structuredContent"] == {"result": 3.5}


async def test_return_any_other_type_from_an_async_function_is_wrapped() -> None:
    async def function() -> User:
        return User(name="Ada")

    assert (await call(function))["structuredContent"] == {"name": "Ada"}


async def test_return_nothing_is_success() -> None:
    def function() -> None: ...

    assert await call(function) == {"content": []}


async def test_return_nothing_from_an_async_function_is_success() -> None:
    async def function() -> None: ...

    assert await call(function) == {"content": []}


# 5. Dependency injection, special parameters


def with_services() -> Services:
    services = Services()
    services.register_value(logging.Logger, logging.getLogger("tools"))
    services.register_factory(Repository, Repository)
    return services


async def test_parameters_alone() -> None:
    assert (await call(add_tool, {"number1": 1, "number2": 2}, with_services()))["structuredContent"] == {"result": 3}


async def test_parameters_and_services() -> None:
    async def get_user(user_id: int, repo: Repository, logger: logging.Logger) -> User:
        logger.debug("Fetching user %s", user_id)
        return repo.get(user_id)

    services = with_services()
    assert list(tool_of(get_user, services).describe()["inputSchema"]["properties"]) == ["user_id"]
    assert (await call(get_user, {"user_id": 5}, services))["structuredContent"] == {"name": "user 5"}


async def test_services_alone_beside_the_request() -> None:
    def ping(request: JSONRPCRequest, logger: logging.Logger) -> JSONRPCResponse:
        return {"jsonrpc": "2.0", "id": request.id, "result": {"content": [], "_meta": {"logger": logger.name}}}

    result = await call(ping, {}, with_services())
    assert result.message["result"]["_meta"] == {"logger": "tools"}


@pytest.mark.parametrize("special", [JSONRPCRequest, Context, CancellationToken, Repository])
async def test_special_parameter(special: Any) -> None:
    got: list[Any] = []

    def function(it: Any) -> Any:
        got.append(it)

    function.__annotations__ = {"it": special}
    services = with_services()
    assert tool_of(function, services).describe()["inputSchema"] == {"type": "object", "properties": {}}
    await call(function, {}, services)
    assert isinstance(got[0], special)


# Examples


def test_example_1_simple() -> None:
    def Add(a: float, b: float) -> float:  # noqa: N802 - the point of the test
        """Adds two numbers"""
        return a + b

    made = definition(Add)
    assert (made["name"], made["title"], made["description"]) == ("add", "Add", "Adds two numbers")
    assert made["inputSchema"]["required"] == ["a", "b"]


async def test_example_2_optional_parameters() -> None:
    def greet(name: str, prefix: str | None = None) -> str:
        return f"Hello, {name}!" if prefix is None else f"{prefix} {name}!"

    assert schema_of(greet)["required"] == ["name"]
    assert (await call(greet, {"name": "Ada"}))["content"][0]["text"] == "Hello, Ada!"
    assert (await call(greet, {"name": "Ada", "prefix": "Dr"}))["content"][0]["text"] == "Dr Ada!"


async def test_example_4_hybrid() -> None:
    schema = {"type": "object", "properties": {"filters": {"type": "array"}, "options": {"type": "object"}}}

    async def complex_query(request: JSONRPCRequest, repo: Repository) -> User:
        return repo.get(len(request.params))

    assert schema_of(complex_query, input_schema=schema) == schema
    result = await call(complex_query, {"filters": []}, with_services(), input_schema=schema)
    assert result["structuredContent"] == {"name": "user 0"}


async def test_example_5_everything_explicit() -> None:
    schema = {
        "type": "object",
        "properties": {
            "number1": {"type": "number", "description": "First number"},
            "number2": {"type": "number", "description": "Second number"},
        },
        "required": ["number1", "number2"],
    }

    def raw(request: JSONRPCRequest) -> JSONRPCResponse:
        return {"jsonrpc": "2.0", "id": request.id, "result": {"content": []}}

    options: dict[str, Any] = {
        "name": "add_numbers",
        "title": "Add Numbers",
        "description": "Adds",
        "input_schema": schema,
    }
    made = definition(raw, **options)
    assert (made["name"], made["title"], made["description"]) == ("add_numbers", "Add Numbers", "Adds")
    assert made["inputSchema"] == schema
    assert await call(raw, {"number1": 1, "number2": 2}, **options) == RawResponse(RESPONSE)
    with pytest.raises(ToolError, match=r"^number2: is required \(a number\): Second number$"):
        await call(raw, {"number1": 1}, **options)
