"""Features of Python files in a folder, and of installed packages."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import MCPServer, tool
from funcmcp._providers import python_files
from funcmcp.providers import EntryPointsProvider, FileSystemProvider

if TYPE_CHECKING:
    from pathlib import Path

GREET = """
from dataclasses import dataclass
from funcmcp import prompt, resource, tool

@dataclass
class Greeting:
    text: str

@tool
def greet(name: str) -> Greeting:
    return Greeting(f"Hello {name}.")

@resource("data://info")
def info() -> str:
    return "info"

@prompt
def welcome() -> str:
    return "Welcome."
"""
PLAIN = "from funcmcp import tool\n\n@tool\ndef {name}() -> str:\n    return {text!r}\n"


def server(folder: Path, *, reload: bool = True) -> MCPServer:
    mcp = MCPServer("shop")
    provider = FileSystemProvider(folder, reload=reload)
    if reload:
        provider.refresh = 0
    mcp.add_provider(provider)
    return mcp


async def names(mcp: MCPServer) -> list[str]:
    return [item.name for item in await mcp.list_tools()]


async def test_files_have_tools_resources_and_prompts(tmp_path: Path) -> None:
    (tmp_path / "greet.py").write_text(GREET)
    mcp = server(tmp_path)
    assert (await mcp.call_tool("greet", {"name": "Ada"})).structured_content == {"text": "Hello Ada."}
    assert (await mcp.read_resource("data://info")).text == "info"
    assert (await mcp.get_prompt("welcome")).messages[0].content.text == "Welcome."


async def test_files_are_imported_again_when_they_change(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "b.py").write_text(PLAIN.format(name="second", text="1"))
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "a.py").write_text(PLAIN.format(name="first", text="1"))
    for hidden in ("_private.py", ".hidden.py", "notes.txt"):
        (tmp_path / hidden).write_text("raise RuntimeError")
    mcp = server(tmp_path)
    assert await names(mcp) == ["second", "first"]
    (tmp_path / "b.py").write_text(PLAIN.format(name="second", text="2 "))
    assert (await mcp.call_tool("second")).text == "2 "
    (tmp_path / "b.py").write_text("raise RuntimeError('no\\nway')")
    assert (await names(mcp), (await mcp.call_tool("second")).text) == (["second", "first"], "2 ")
    assert "its last features remain. RuntimeError: no\\nway" in caplog.text
    (tmp_path / "b.py").unlink()
    (tmp_path / "c.py").write_text("import no_such_package")
    assert await names(mcp) == ["first"]


async def test_a_file_that_exits_does_not_affect_other_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.py").write_text(PLAIN.format(name="first", text="1"))
    (tmp_path / "b.py").write_text("import sys\nsys.exit('done')")
    assert await names(server(tmp_path)) == ["first"]
    assert "b.py can't be imported, and its last features remain. SystemExit: done" in caplog.text


async def test_features_remain_while_their_folder_is_away(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "tools"
    folder.mkdir()
    (folder / "a.py").write_text(PLAIN.format(name="first", text="1"))
    mcp = server(folder)
    assert await names(mcp) == ["first"]
    folder.rename(tmp_path / "elsewhere")
    assert (await names(mcp), (await mcp.call_tool("first")).text) == (["first"], "1")
    assert "the last list remains: FileNotFoundError" in caplog.text


async def test_files_are_read_once_without_reload(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(PLAIN.format(name="first", text="1"))
    mcp = server(tmp_path, reload=False)
    assert await names(mcp) == ["first"]
    (tmp_path / "b.py").write_text(PLAIN.format(name="second", text="1"))
    assert await names(mcp) == ["first"]


async def test_a_link_out_of_the_folder_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "outside.py").write_text(PLAIN.format(name="outside", text="1"))
    (tmp_path / "tools" / "link.py").symlink_to(tmp_path / "outside.py")
    (tmp_path / "tools" / "gone.py").symlink_to(tmp_path / "tools" / "nothing.py")
    assert await names(server(tmp_path / "tools")) == []


def test_a_folder_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not a folder"):
        FileSystemProvider(tmp_path / "none")


@tool
def refund() -> str:
    return "refund"


async def test_packages_declare_features_as_entry_points(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    module = ModuleType("shop_tools")
    exec("from funcmcp import tool\n@tool\ndef pay() -> str:\n    return 'paid'\n", vars(module))
    module.__dict__["greet"] = refund  # a function of another module, which it has imported
    made: dict[str, Any] = {"module": module, "function": list, "exit": sys.exit}

    class Entry(EntryPoint):
        def load(self) -> Any:
            return made[self.value]

    entries = [Entry(name=name, value=name, group="shop.tools") for name in ("exit", "none", "module", "function")]
    monkeypatch.setattr(python_files, "entry_points", lambda group: entries if group == "shop.tools" else [])
    mcp = MCPServer("shop")
    mcp.add_provider(EntryPointsProvider("shop.tools"))
    assert await names(mcp) == ["pay"]
    assert (await mcp.call_tool("pay")).text == "paid"
    assert "The entry point none of shop.tools is left out. KeyError" in caplog.text
    assert "The entry point exit of shop.tools is left out. SystemExit" in caplog.text


async def test_a_name_that_two_files_have_is_logged_once_with_both(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(PLAIN.format(name="report", text=name))
    mcp = server(tmp_path)
    assert await names(mcp) == ["report"]
    assert (await mcp.call_tool("report")).text == "one"
    [line] = [record.getMessage() for record in caplog.records]
    assert line == (
        f"report of {tmp_path / 'two.py'} is left out, because {tmp_path / 'one.py'} has it as well. "
        "Rename one of the two."
    )
