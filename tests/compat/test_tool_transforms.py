"""`Tool.from_tool`: tools that change how clients see other tools."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp.compat import ArgTransform, FastMCP, Tool, ToolResult, TransformedTool, forward, forward_raw


def add(x: int, y: int = 10) -> int:
    """Add two numbers."""
    return x + y


async def test_arguments_are_renamed_hidden_and_described() -> None:
    tool = Tool.from_tool(
        add,
        "plus",
        transform_args={
            "x": ArgTransform(name="first", description="The first number", examples=[1]),
            "y": ArgTransform(hide=True, default_factory=lambda: 5),
        },
    )
    assert isinstance(tool, TransformedTool)
    assert (tool.name, tool.description, tool.parent_tool.name) == ("plus", "Add two numbers.", "add")
    assert list(tool.parameters["properties"]) == tool.parameters["required"] == ["first"]
    assert tool.parameters["properties"]["first"]["description"] == "The first number"
    assert (await tool.run({"first": 1})).structured_content == {"result": 6}
    with pytest.raises(TypeError, match="unexpected"):
        await tool.run({"first": 1, "y": 2})
    with pytest.raises(TypeError, match="Missing"):
        await tool.run({})


async def test_a_changed_tool_is_served() -> None:
    mcp = FastMCP("shop")
    mcp.add_tool(Tool.from_tool(add, "plus", transform_args={"x": ArgTransform(name="first", default=2)}))
    assert (await mcp.call_tool("plus", {"y": 3}))["structuredContent"] == {"result": 5}
    assert (await mcp.call_tool("plus", {"z": 3}, raise_on_error=False)).is_error


@pytest.mark.parametrize("call", [forward, forward_raw])
async def test_a_function_calls_the_other_tool(call: Any) -> None:
    name = "first" if call is forward else "x"

    async def doubled(first: int, y: int) -> ToolResult:
        result: ToolResult = await call(**{name: first * 2, "y": y})
        return result

    tool = Tool.from_tool(add, transform_fn=doubled, transform_args={"x": ArgTransform(name="first")})
    assert tool.output_schema is None
    assert (await tool.run({"first": 1, "y": 1})).structured_content == {"result": 3}
    with pytest.raises(RuntimeError, match="within a transformed tool"):
        await call(x=1)


async def test_a_function_takes_all_arguments() -> None:
    async def described(**arguments: Any) -> str:
        result = await forward(**arguments)
        return f"{arguments} {result.structured_content}"

    tool = Tool.from_tool(Tool.from_function(add), transform_fn=described, output_schema=None)
    assert (await tool.run({"x": 1})).content[0].text == "{'y': 10, 'x': 1} {'result': 11}"


async def test_types_of_changes_and_of_functions() -> None:
    def text(x: str, y: int = 3) -> str:
        return f"{x!r} {y}"

    tool = Tool.from_tool(add, transform_fn=text)
    assert tool.parameters["properties"]["x"] == {"type": "string"}
    tool = Tool.from_tool(add, transform_args={"x": ArgTransform(type=float, description=None, required=True)})
    assert tool.parameters["properties"]["x"] == {"type": "number"}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"default": 1, "default_factory": int}, "both 'default' and"),
        ({"default_factory": int}, "hide=True"),
        ({"required": True, "default": 1}, "required=True"),
        ({"required": True, "hide": True}, "hide=True"),
        ({"required": False}, "required=False"),
    ],
)
def test_changes_that_contradict_themselves(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        ArgTransform(**options)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"z": ArgTransform()}, "Unknown arguments"),
        ({"x": ArgTransform(name="y")}, "same names"),
        ({"x": ArgTransform(hide=True)}, "no default value"),
    ],
)
def test_changes_that_do_not_fit(changes: dict[str, ArgTransform], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Tool.from_tool(add, transform_args=changes)


def test_a_function_without_an_argument() -> None:
    with pytest.raises(ValueError, match="Function missing parameters"):
        Tool.from_tool(add, transform_fn=lambda x: x)


@pytest.mark.parametrize("structured", [None, [1], "a"])
def test_results_that_are_refused(structured: Any) -> None:
    with pytest.raises(ValueError, match="must be"):
        ToolResult(structured_content=structured)
