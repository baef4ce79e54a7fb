"""FastMCP's `FileSystemProvider`, and the decorators of its files: `tool`, `resource` and `prompt`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from funcmcp.compat import FastMCP, FileSystemProvider, prompt, resource, tool
from funcmcp.testing import Client

if TYPE_CHECKING:
    from pathlib import Path

GREET = """
from funcmcp.compat import tool

@tool
def greet() -> str:
    return "{text}"
"""


async def tools(server: FastMCP) -> list[str]:
    async with Client(server) as client:
        return [item.name for item in await client.list_tools()]


async def text_of_call(server: FastMCP, name: str) -> str:
    async with Client(server) as client:
        text: str = (await client.call_tool(name, {})).content[0]["text"]
        return text


async def test_components_of_files_are_served(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "greet.py").write_text(GREET.format(text="hello"))
    (tmp_path / "more.py").write_text(
        """
from funcmcp.compat import Tool, prompt, resource

add = Tool(lambda a, b: a + b, "add")
_hidden = Tool(lambda: 1, "hidden")

@resource("text://{name}", tags={"t"})
def text(name: str) -> str:
    return name

@prompt("ask", description="Ask.")
def question() -> str:
    return "?"
"""
    )
    mcp = FastMCP("Server", providers=[FileSystemProvider(tmp_path)])
    assert await tools(mcp) == ["greet", "add"]
    assert await text_of_call(mcp, "greet") == "hello"
    async with Client(mcp) as client:
        assert (await client.read_resource("text://a")).contents[0].text == "a"
        assert [(item.name, item.description) for item in await client.list_prompts()] == [("ask", "Ask.")]


async def test_files_of_a_package_import_each_other(tmp_path: Path) -> None:
    for name in ("first", "second"):
        package = tmp_path / name / "shop"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        (package / "_texts.py").write_text(f'TEXT = "{name}"')
        (package / "tools.py").write_text(
            f"from funcmcp.compat import tool\nfrom ._texts import TEXT\n\n"
            f"@tool\ndef of_{name}() -> str:\n    return TEXT\n"
        )
    path = list(sys.path)
    providers = [FileSystemProvider(tmp_path / name) for name in ("first", "second")]
    assert sys.path == path
    mcp = FastMCP("Server", providers=providers)
    assert await text_of_call(mcp, "of_first") == "first"
    assert await text_of_call(mcp, "of_second") == "second"


async def test_a_file_does_not_replace_a_module_of_its_name(tmp_path: Path) -> None:
    import json

    (tmp_path / "json.py").write_text(GREET.format(text="hello"))
    assert await tools(FastMCP("Server", providers=[FileSystemProvider(tmp_path)])) == ["greet"]
    assert sys.modules["json"] is json


async def test_a_file_that_fails_costs_no_other(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "broken.py").write_text("import missing_module_of_a_test")
    (tmp_path / "greeting.py").write_text(GREET.format(text="hello"))
    provider = FileSystemProvider(tmp_path)
    assert await tools(FastMCP("Server", providers=[provider])) == ["greet"]
    assert [path.name for path in provider.failed_files] == ["broken.py"]
    assert "missing_module_of_a_test" in caplog.text


@pytest.mark.parametrize(("reload", "text"), [(True, "changed"), (False, "hello")])
async def test_files_that_change_are_imported_again(tmp_path: Path, reload: bool, text: str) -> None:
    file = tmp_path / "greeting_of_reload.py"
    file.write_text(GREET.format(text="hello"))
    mcp = FastMCP("Server", providers=[FileSystemProvider(tmp_path, reload=reload)])
    assert await text_of_call(mcp, "greet") == "hello"
    file.write_text(GREET.format(text="changed"))
    assert await text_of_call(mcp, "greet") == text


async def test_marked_functions_stay_functions_and_can_be_added() -> None:
    @tool("double", description="Double.")
    def twice(number: int) -> int:
        return 2 * number

    @resource("text://today")
    def today() -> str:
        return "today"

    @prompt
    def ask() -> str:
        return "?"

    assert (twice(2), today(), ask()) == (4, "today", "?")
    mcp = FastMCP("Server")
    mcp.add_tool(twice)
    mcp.add_resource(today)
    mcp.add_prompt(ask)
    async with Client(mcp) as client:
        assert [(item.name, item.description) for item in await client.list_tools()] == [("double", "Double.")]
        assert (await client.call_tool("double", {"number": 2})).content[0]["text"] == "4"
        assert (await client.read_resource("text://today")).contents[0].text == "today"
        assert [item.name for item in await client.list_prompts()] == ["ask"]


def test_decorators_refuse_what_they_can_not_mark() -> None:
    with pytest.raises(TypeError, match="requires a URI"):
        resource(len)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="@classmethod above @tool"):
        tool(classmethod(print))  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="Cannot specify name both"):
        tool("a", name="b")
