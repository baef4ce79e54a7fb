"""Components of the official SDK's classes, whose methods return plain values and take a context."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import MCPError
from funcmcp.compat import (
    Context,
    MCPServer,
    Message,
    ResourceError,
    ResourceSecurity,
    ToolError,
    UserMessage,
)
from funcmcp.compat.mcp import (
    BinaryResource,
    DirectoryResource,
    FileResource,
    FunctionResource,
    Prompt,
    Resource,
    ResourceSecurityError,
    ResourceTemplate,
    TextResource,
    Tool,
)

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_tool_returns_a_plain_value_and_gets_the_context() -> None:
    seen: list[Context] = []

    async def add(a: int, b: int, ctx: Context) -> int:
        seen.append(ctx)
        return a + b

    tool, context = Tool.from_function(add), Context()
    assert (tool.is_async, tool.context_kwarg, tool.description) == (True, "ctx", "")
    assert await tool.run({"a": "1", "b": 2}, context) == 3
    assert seen == [context]
    result = await tool.run({"a": 1, "b": 2}, context, convert_result=True)
    assert result["structuredContent"] == {"result": 3}


@pytest.mark.parametrize(
    ("error", "text"),
    [(ToolError("sold out"), "Error executing tool buy: sold out"), (KeyError("secret"), "Error executing tool buy")],
)
async def test_failures_of_a_tool(error: Exception, text: str) -> None:
    def buy() -> str:
        raise error

    with pytest.raises(ToolError) as caught:
        await Tool.from_function(buy).run({}, Context())
    assert str(caught.value) == text


async def test_a_protocol_error_of_a_tool_stays_one() -> None:
    def buy() -> str:
        raise MCPError(-32000, "later")

    with pytest.raises(MCPError, match="later"):
        await Tool.from_function(buy).run({})


async def test_a_prompt_returns_messages() -> None:
    async def ask(topic: str) -> Any:
        return ["About", {"role": "assistant", "content": {"type": "text", "text": topic}}]

    prompt = Prompt.from_function(ask)
    assert prompt.description == ""
    assert await prompt.render({"topic": "tea"}, Context()) == [UserMessage("About"), Message("tea", role="assistant")]
    with pytest.raises(ValueError, match="Missing required arguments"):
        await prompt.render(None)

    def fail() -> str:
        raise KeyError("secret")

    with pytest.raises(ValueError, match=r"^Error rendering prompt fail$"):
        await Prompt.from_function(fail).render({})


async def test_contents_of_resources(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("{}")
    assert await FunctionResource(lambda: {"a": 1}, "a://b").read() == '{\n  "a": 1\n}'
    assert await TextResource("a://b", "text").read() == "text"
    assert await BinaryResource("a://b", b"bytes").read() == b"bytes"
    assert await FileResource(path.as_uri(), path, mime_type="application/json").read() == "{}"
    assert await FileResource(path.as_uri(), path, encoding=None).read() == b"{}"
    assert json.loads(await DirectoryResource("a://b", tmp_path).read()) == {"files": ["a.json"]}


@pytest.mark.parametrize(
    ("mime_type", "encoding"),
    [
        ("text/html", "utf-8-sig"),
        ("image/svg+xml", "utf-8-sig"),
        ("image/png", None),
        ('text/plain; charset="latin-1"', "latin-1"),
    ],
)
def test_the_media_type_decides_the_encoding(tmp_path: Path, mime_type: str, encoding: str | None) -> None:
    assert FileResource("a://b", tmp_path / "a", mime_type=mime_type).encoding == encoding


def test_resources_that_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="absolute"):
        FileResource("a://b", "a.txt")
    with pytest.raises(ValueError, match="absolute"):
        DirectoryResource("a://b", "folder")
    with pytest.raises(ValueError, match="unknown encoding"):
        FileResource("a://b", tmp_path / "a", encoding="latin-99")
    with pytest.raises(TypeError, match="abstract"):
        Resource(uri="a://b")
    assert FileResource("a://b", tmp_path / "a", encoding="utf-16").encoding == "utf-16"


@pytest.mark.parametrize(
    ("uri", "text"),
    [
        ("a://b", "has no URI template variables"),
        ("a://{b}", "Mismatch between URI parameters"),
        ("a://b{?name}", "have no default value"),
    ],
)
def test_functions_whose_uri_does_not_fit(uri: str, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        MCPServer("shop").resource(uri)(lambda name: name)


def test_decorators_of_the_sdks_server_are_called() -> None:
    mcp = MCPServer("shop")
    for decorator in (mcp.tool, mcp.prompt):
        with pytest.raises(TypeError, match="Did you forget to call it"):
            decorator(print)


def test_what_describes_a_server() -> None:
    mcp = MCPServer(title="Shop", description="Sells", website_url="https://shop.example", dependencies=["a"])
    assert (mcp.name, mcp.title, mcp.description) == ("mcp-server", "Shop", "Sells")
    assert (mcp.website_url, mcp.icons, mcp.dependencies) == ("https://shop.example", None, ["a"])


async def test_a_template_checks_values_and_makes_resources() -> None:
    def page(name: str) -> dict[str, str]:
        return {"name": name}

    template = ResourceTemplate.from_function(page, uri_template="book://{name}")
    assert template.matches("book://a%2Fb") == {"name": "a/b"}
    with pytest.raises(ResourceSecurityError, match="'name'"):
        template.matches("book://..%2Fb")
    resource = await template.create_resource("book://a", {"name": "a"}, Context())
    assert isinstance(resource, FunctionResource)
    assert json.loads(await resource.read()) == {"name": "a"}

    def fail(name: str) -> str:
        raise KeyError(name)

    template = ResourceTemplate.from_function(fail, uri_template="book://{name}", security=ResourceSecurity())
    with pytest.raises(ResourceError, match="Error creating resource from template book://a"):
        await template.create_resource("book://a", {"name": "a"})
