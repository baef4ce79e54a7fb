"""The trees of modules `funcmcp.compat.fastmcp` and `funcmcp.compat.mcp`: other top names of imports are enough."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from funcmcp import compat
from funcmcp._compat import sdk_types
from funcmcp.compat import mcp as sdk
from funcmcp.compat.fastmcp.exceptions import ToolError
from funcmcp.compat.fastmcp.server.context import Context
from funcmcp.compat.mcp import types
from funcmcp.compat.mcp.server.mcpserver.tools import Tool as SDKTool
from funcmcp.testing import Client
from funcmcp_cli.migrate.compat_names import original_names, target_of
from tests.patience import PATIENCE

ROOT = Path(__file__).parents[2]
MODULES: dict[str, dict[str, str]] = original_names()["modules"]


def trees_as_written() -> dict[Path, str]:
    spec = importlib.util.spec_from_file_location("compat_trees", ROOT / "scripts" / "compat_trees.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    trees: dict[Path, str] = script.trees()
    return trees


def test_the_modules_are_up_to_date() -> None:
    folder = ROOT / "src" / "funcmcp" / "compat"
    written = {folder / path: text for path, text in trees_as_written().items()}
    by_hand = {folder / "__init__.py", folder / "mcp" / "__init__.py"}
    outdated = [path for path, text in written.items() if not path.is_file() or path.read_text("utf-8") != text]
    assert not outdated, "Run scripts/compat_trees.py."
    assert set(folder.rglob("*.py")) - written.keys() == by_hand


def test_each_module_loads_its_names() -> None:
    for module in sorted(MODULES):
        tree = importlib.import_module(f"funcmcp.compat.{module}")
        for name in set(getattr(tree, "__all__", ())) - {"Client"}:  # modules of clients have those of the package
            assert getattr(tree, name) is not None, (module, name)
            assert name in dir(tree)


def test_names_that_type_checkers_read_in_this_module_are_those_of_compat() -> None:
    assert (ToolError, Context, SDKTool) == (compat.ToolError, compat.Context, sdk.Tool)


OWN = {("fastmcp.skills.provider", "SkillsDirectoryProvider")}
"""Names of modules that mean something else in the module that `funcmcp.compat` follows."""


def test_a_name_that_servers_move_with_is_the_one_of_compat() -> None:
    for module, names in MODULES.items():
        for name in names:
            if target_of(module, name) != "funcmcp.compat" or module == "mcp":
                continue
            if (module, name) in OWN:
                continue
            value = getattr(importlib.import_module(f"funcmcp.compat.{module}"), name)
            others = [getattr(sdk, name, None), getattr(sdk_types, name, None)]
            assert any(value is other for other in [getattr(compat, name), *others]), (module, name)


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        (
            "from funcmcp.compat.fastmcp.server.event_store import EventStore",
            r"no EventStore of .*\. Use MCPServer\(",
        ),
        (
            "import funcmcp.compat.fastmcp.server.event_store as m; m.EventStore",
            r"no EventStore of .* Use MCPS",
        ),
        (
            "from funcmcp.compat.mcp.server.lowlevel import Server",
            "no Server of .*lowlevel. funcmcp has no low",
        ),
        ("from funcmcp.compat.mcp import stdio_server", r"no stdio_server of mcp. Use mcp.run\(\)."),
        ("from funcmcp.compat.fastmcp.client import transports; transports.SSETransport", "needs the package fastmcp"),
        ("from funcmcp.compat.fastmcp import Client", "Use funcmcp.client.Client, or funcmcp.testing.Client in tests"),
        ("from funcmcp.compat.mcp.shared.inbound import classify_inbound_request", "is a part of the SDK's own server"),
        ("from funcmcp.compat.mcp.types import JSONRPCMessage", "Keep the package mcp installed, and import the name"),
        ("from funcmcp.compat.mcp.server.mcpserver import InvalidRequestState", "Leave it out: funcmcp seals"),
        ("from funcmcp.compat.fastmcp import nothing", "cannot import name 'nothing'"),
        ("import funcmcp.compat.fastmcp.nothing", "No module named"),
    ],
)
def test_what_is_missing_is_an_import_error_that_says_what_to_use(statement: str, text: str) -> None:
    with pytest.raises(ImportError, match=text):
        exec(statement, {})


def test_a_module_has_no_attribute_that_nothing_is_known_about() -> None:
    tree = importlib.import_module("funcmcp.compat.fastmcp.exceptions")
    assert not hasattr(tree, "NoSuchError")
    assert not hasattr(tree, "__wrapped__")


async def test_a_server_runs_after_a_change_of_the_top_names() -> None:
    source = """
import funcmcp.compat.fastmcp as fastmcp
from funcmcp.compat.fastmcp.server.context import Context
from funcmcp.compat.fastmcp.utilities.types import Image
from funcmcp.compat.mcp.types import ImageContent, TextContent, ToolAnnotations

mcp = fastmcp.FastMCP("shop")

@mcp.tool(annotations=ToolAnnotations(readOnlyHint=True))
async def look(ctx: Context) -> list[TextContent | ImageContent]:
    return [TextContent(type="text", text="a"), ImageContent(type="image", data="AA==", mimeType="image/png")]

@mcp.tool
def fail() -> str:
    raise fastmcp.exceptions.ToolError("sold out")
"""
    names: dict[str, Any] = {}
    exec(source, names)
    async with Client(names["mcp"]) as client:
        look, _ = await client.list_tools()
        assert look["annotations"] == {"readOnlyHint": True}
        result = await client.call_tool("look", {})
        blocks = [{"type": "text", "text": "a"}, {"type": "image", "data": "AA==", "mimeType": "image/png"}]
        assert result["content"] == blocks
        failed = await client.call_tool("fail", {})
        assert (failed["isError"], failed["content"][0]["text"]) == (True, "sold out")


def test_the_types_of_both_trees_are_the_same() -> None:
    other = importlib.import_module("funcmcp.compat.mcp_types")
    assert other.TextContent is types.TextContent
    assert all(inspect.isclass(value) is inspect.isclass(getattr(other, name)) for name, value in vars(other).items())


def test_the_trees_need_the_library_alone() -> None:
    """The command line, which has the names of the originals, is another distribution."""
    code = (
        "import sys\n"
        "from funcmcp.compat.fastmcp.server.context import Context\n"
        "from funcmcp.compat.mcp.server.fastmcp import FastMCP\n"
        "print([name for name in sys.modules if name.partition('.')[0] in {'funcmcp_cli', 'fastmcp', 'mcp'}])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert run.stdout.strip() == "[]"


def test_importing_compat_loads_no_module_of_the_trees() -> None:
    code = "import sys, funcmcp.compat; print([name for name in sys.modules if name.startswith('funcmcp.compat.')])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert run.stdout.strip() == "[]"
