"""Tools, resources and prompts that run outside of their server."""

from __future__ import annotations

import asyncio
import re
import sys
import threading
from typing import TYPE_CHECKING, Any

import mcp.types
import pytest
from pydantic import BaseModel

from funcmcp import MCPError
from funcmcp._compat.annotations import plain
from funcmcp._compat.content import ResultBlock
from funcmcp.compat import (
    Context,
    Depends,
    FastMCP,
    FileResource,
    MCPServer,
    Message,
    Prompt,
    PromptResult,
    Resource,
    ResourceError,
    ResourceTemplate,
    TextResource,
    Tool,
    ToolResult,
    ValidationError,
    get_context,
)
from funcmcp.testing import Client

if TYPE_CHECKING:
    from pathlib import Path


class Item(BaseModel):
    name: str
    price: float


async def test_a_tool_runs_without_a_server() -> None:
    def price(item: str, count: int = 1) -> Item:
        """Return the price."""
        return Item(name=item, price=2.5 * count)

    tool = Tool.from_function(price)
    assert (tool.name, tool.description) == ("price", "Return the price.")
    assert tool.parameters["required"] == ["item"]
    assert tool.output_schema is not None
    result = await tool.run({"item": "pen", "count": "2"})
    assert result.structured_content == {"name": "pen", "price": 5.0}
    assert result.content[0].text == '{"name":"pen","price":5.0}'
    with pytest.raises(ValidationError, match="item"):
        await tool.run({"count": 2})
    with pytest.raises(ValidationError):
        await tool.run({"item": "pen", "cost": 2})


async def test_a_run_raises_what_the_function_raised() -> None:
    def fail() -> str:
        raise KeyError("lost")

    with pytest.raises(KeyError, match="lost"):
        await Tool.from_function(fail).run({})


async def test_a_run_resolves_dependencies_and_has_the_context_of_the_caller() -> None:
    def stock() -> int:
        return 7

    def count(ctx: Context, number: int = Depends(stock)) -> dict[str, Any]:
        return {"number": number, "same": ctx is get_context(), "thread": threading.get_ident()}

    server = FastMCP("shop")
    mine = Context(fastmcp=server)
    async with mine:
        assert get_context() is mine
        result = await Tool.from_function(count).run({})
        assert get_context() is mine
    assert result.structured_content is not None
    assert result.structured_content | {"thread": 0} == {"number": 7, "same": True, "thread": 0}
    assert result.structured_content["thread"] != threading.get_ident()


async def test_listed_tools_run() -> None:
    server, child = FastMCP("shop"), FastMCP("child")

    @server.tool
    def add(a: int, b: int) -> int:
        return a + b

    child.tool(lambda: "far", name="far")
    server.mount(child, prefix="child")
    tool = await server.get_tool("add")
    assert tool.fn is add  # type: ignore[union-attr] # it exists
    assert (await tool.run({"a": 1, "b": 2})).structured_content == {"result": 3}  # type: ignore[union-attr] # it exists
    mounted = await server.get_tool("child_far")
    assert [plain(block) for block in (await mounted.run({})).content] == [{"type": "text", "text": "far"}]  # type: ignore[union-attr] # it exists
    with pytest.raises(AttributeError, match="another server"):
        _ = mounted.fn  # type: ignore[union-attr] # it exists


class Echo(Tool):
    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        return ToolResult(f"heard {arguments['text']}")


async def test_a_subclass_of_tool_is_served() -> None:
    server = FastMCP("shop")
    server.add_tool(Echo(name="echo", parameters={"type": "object", "properties": {"text": {"type": "string"}}}))
    assert (await server.call_tool("echo", {"text": "hi"}))["content"] == [{"type": "text", "text": "heard hi"}]


@pytest.mark.parametrize("kind", [Tool, Prompt, ResourceTemplate])
def test_a_lambda_needs_a_name(kind: Any) -> None:
    arguments = {"uri": "a://{x}"} if kind is ResourceTemplate else {}
    with pytest.raises(ValueError, match="name for lambda"):
        kind.from_function(lambda x: x, **arguments)


def several(*values: int) -> int:
    return sum(values)


def named(**values: int) -> int:
    return sum(values.values())


def positional(value: int, /) -> int:
    return value


@pytest.mark.parametrize("function", [several, named, positional])
@pytest.mark.parametrize("kind", [Tool, Prompt])
def test_functions_whose_parameters_have_no_names(kind: Any, function: Any) -> None:
    with pytest.raises(ValueError, match="are not supported as"):
        kind.from_function(function)


def test_paths_are_absolute() -> None:
    with pytest.raises(ValueError, match="absolute"):
        FileResource("a://b", "a.txt")


def test_a_tool_needs_a_function_or_a_method_run() -> None:
    with pytest.raises(TypeError, match="needs a function"):
        Tool(name="nothing")


async def test_a_prompt_is_rendered() -> None:
    def ask(topic: str, count: int = 2) -> list[Any]:
        return [f"{count} facts about {topic}", Message("Gladly", role="assistant")]

    prompt = Prompt.from_function(ask, description="Asks")
    assert [(argument.name, argument.required) for argument in prompt.arguments] == [("topic", True), ("count", False)]
    result = await prompt.render({"topic": "tea", "count": "3"})
    assert isinstance(result, PromptResult)
    assert result.messages == [Message("3 facts about tea"), Message("Gladly", role="assistant")]
    assert result.description == "Asks"
    with pytest.raises(ValidationError, match="Missing required arguments"):
        await prompt.render({})
    with pytest.raises(TypeError, match="must be Message or str"):
        await Prompt.from_function(lambda: 3, name="number").render()


async def test_a_server_renders_prompts_and_reads_resources() -> None:
    server = FastMCP("shop")
    server.prompt(lambda: "Hello", name="greet")
    server.resource("note://one")(lambda: "1")
    rendered = await server.render_prompt("greet")
    assert (rendered.messages[0].role, rendered.messages[0].content.text) == ("user", "Hello")
    contents = (await server.read_resource("note://one")).contents
    assert (contents[0].content, contents[0].mime_type) == ("1", "text/plain")


async def test_resources_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("text")
    assert await Resource.from_function(lambda: "now", uri="time://now").read() == "now"
    assert (await TextResource("note://one", "1").read()).contents[0].content == "1"
    assert (await FileResource(path.as_uri(), path).read()).contents[0].content == "text"
    path.unlink()
    with pytest.raises(ResourceError, match="Error reading file"):
        await FileResource(path.as_uri(), path).read()
    with pytest.raises(NotImplementedError):
        await Resource(uri="note://two").read()


async def test_a_template_makes_resources() -> None:
    def page(number: int, part: str) -> str:
        return f"{part} {number}"

    template = ResourceTemplate.from_function(page, uri_template="book://{number}/{part*}", mime_type="text/html")
    assert template.uri_template == "book://{number}/{part*}"
    assert sorted(template.parameters["properties"]) == ["number", "part"]
    values = template.matches("book://3/a/b")
    assert values == {"number": "3", "part": "a/b"}
    resource = await template.create_resource("book://3/a/b", values)
    assert (resource.uri, resource.mime_type, await resource.read()) == ("book://3/a/b", "text/html", "a/b 3")
    assert template.matches("shelf://3") is None


def test_a_context_by_hand_has_no_request() -> None:
    context = Context()
    for attribute in ("request_id", "request_context", "fastmcp", "session_id"):
        with pytest.raises(ValueError, match="outside of a request"):
            getattr(context, attribute)


def test_blocks_have_the_sdks_classes_if_a_program_has_loaded_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(Message("a").content, mcp.types.TextContent)
    monkeypatch.delitem(sys.modules, "mcp.types")
    monkeypatch.delitem(sys.modules, "mcp_types", raising=False)
    block = Message("a").content
    assert isinstance(block, ResultBlock)
    assert (block.text, block["type"]) == ("a", "text")
    assert block == ResultBlock({"type": "text", "text": "a"}) == {"type": "text", "text": "a"}


async def test_equal_messages() -> None:
    assert Message("a") == Message("a")
    assert Message("a") != Message("a", role="assistant")
    assert plain(Message("a").content) == {"type": "text", "text": "a"}
    assert "assistant" in repr(Message("a", role="assistant"))


async def test_functions_of_the_sdks_server_are_the_sdks_components() -> None:
    server = MCPServer("shop")
    server.tool()(asyncio.sleep)
    assert type(server._tool_manager.get_tool("sleep")).__module__ == "funcmcp.compat.mcp"


async def test_a_tool_is_dumped_converts_values_and_runs_without_a_server() -> None:
    def double(x: int) -> int:
        """Double it."""
        return 2 * x

    tool = Tool.from_function(double)
    dumped = tool.model_dump(exclude_none=True, exclude={"fn", "task_config"})
    assert dumped == {
        "name": "double",
        "description": "Double it.",
        "tags": set(),
        "parameters": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"x": {"type": "integer"}},
            "required": ["x"],
        },
        "output_schema": {
            "type": "object",
            "properties": {"result": {"type": "integer"}},
            "required": ["result"],
            "x-fastmcp-wrap-result": True,
        },
        "run_in_thread": True,
    }
    assert tool.convert_result(3).structured_content == {"result": 3}
    assert (await tool.run({"x": 2})).structured_content == {"result": 4}
    copied = ToolResult("a", {"b": 1}).model_copy(update={"meta": {"c": 2}})
    assert (copied.structured_content, copied.meta) == ({"b": 1}, {"c": 2})


def test_a_class_of_an_author_has_the_attributes_that_it_declares() -> None:
    class Multiplied(Tool):
        factor: int
        tries: list[int] = []  # noqa: RUF012 - as authors of FastMCP write it
        _private: int

        async def run(self, arguments: dict[str, Any]) -> ToolResult:
            return ToolResult(structured_content={"value": arguments["a"] * self.factor})

    tool = Multiplied(name="multiply", factor=3)
    assert (tool.factor, tool.tries) == (3, [])
    assert tool.tries is not Multiplied.tries
    with pytest.raises(TypeError, match="Multiplied needs factor="):
        Multiplied(name="multiply")


class Greeting(Prompt):
    """A prompt without a function."""

    async def render(self, arguments: dict[str, Any] | None = None) -> PromptResult:
        return PromptResult(f"Hello, {(arguments or {})['name']}!")


async def test_a_subclass_of_prompt_is_served() -> None:
    mcp = FastMCP("prompts")
    argument = {"name": "name", "required": True}
    mcp.add_prompt(Greeting(name="greet", description="Greets.", arguments=[argument]))
    async with Client(mcp) as client:
        (listed,) = await client.list_prompts()
        assert (listed.description, listed["arguments"]) == ("Greets.", [argument])
        (message,) = (await client.get_prompt("greet", {"name": "Ann"})).messages
        assert message.content.text == "Hello, Ann!"
        with pytest.raises(MCPError, match=re.escape("Missing required arguments: {'name'}")):
            await client.get_prompt("greet")


async def test_a_prompt_needs_a_function_or_a_name_and_a_method_render() -> None:
    with pytest.raises(TypeError, match="Prompt needs a function, or a name and a method render"):
        Prompt()
    with pytest.raises(NotImplementedError, match="must implement render"):
        await Prompt(name="empty").render()


@pytest.mark.parametrize(("kind", "key"), [(Tool, "tool:a"), (Prompt, "prompt:a"), (ResourceTemplate, "template:a")])
def test_keys_of_components(kind: Any, key: str) -> None:
    assert kind.make_key("a") == f"{kind.KEY_PREFIX}:a" == key
