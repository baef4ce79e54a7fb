"""Servers of FastMCP and of the official SDK are rewritten with their comments and formatting."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from tests.requirements import require

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("libcst")

from funcmcp_cli.migrate.names import COMPAT_NAMES
from funcmcp_cli.migrate.plan import plan_migration, write_changes

BEFORE = """# My shop.
from fastmcp import FastMCP, Context  # the framework
from fastmcp.exceptions import ToolError
from mcp.types import ToolAnnotations

mcp = FastMCP(
    "Shop",
    instructions="Be kind.",
)


@mcp.tool(
    annotations=ToolAnnotations(readOnlyHint=True, title="Adder"),
    description="Add it.",
)
async def add(a: int, b: int, ctx: Context) -> int:
    await ctx.info(f"adding {a}")  # note
    async def report() -> None:
        await ctx.report_progress(1, total=2)
    return a   +   b


@mcp.tool()
def getPrice(name: str) -> str:
    raise ToolError("no")


@mcp.tool(annotations={"destructiveHint": False}, name="x")
def other() -> str: return "x"


@mcp.resource("menu://{day}")
async def menu(day: str, *, context: Context) -> str:
    await context.warning("late", logger_name="kitchen")
    return day


@mcp.prompt
def ask(topic: str) -> str:
    return topic


if __name__ == "__main__":
    mcp.run(transport="streamable-http", host="127.0.0.1", show_banner=False)
"""


def migrated(folder: Path, text: str) -> str:
    file = folder / "server.py"
    file.write_text(text)
    write_changes(plan_migration(folder).changes)
    return file.read_text()


def test_only_the_imports_change(tmp_path: Path) -> None:
    expected = BEFORE.replace("from fastmcp import", "from funcmcp.compat import")
    expected = expected.replace("from fastmcp.exceptions import", "from funcmcp.compat import")
    expected = expected.replace("from mcp.types import", "from funcmcp.compat import")
    assert migrated(tmp_path, BEFORE) == expected
    plan = plan_migration(tmp_path)
    assert (plan.notes, plan.changes) == ([], [])


def test_the_rewritten_server_offers_its_features(tmp_path: Path) -> None:
    from funcmcp._serving.composition import runtime_of
    from funcmcp_cli.targets import load

    (tmp_path / "migrated_shop.py").write_text(migrated(tmp_path, BEFORE))
    server = load(str(tmp_path / "migrated_shop.py"))
    assert [tool.key for tool in runtime_of(server).server.catalog.tools] == ["add", "getPrice", "x"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import fastmcp\n", "import funcmcp.compat as fastmcp\n"),
        ("from mcp.types import Icon, TextContent\n",
         "from funcmcp.compat import Icon\nfrom mcp.types import TextContent\n"),
        ("import os, fastmcp as f\n", "import os, funcmcp.compat as f\n"),
        ("from mcp.server.fastmcp import FastMCP, Image\n", "from funcmcp.compat import FastMCP, Image\n"),
        ("from mcp.server import MCPServer\n", "from funcmcp.compat import MCPServer\n"),
        ("from mcp.server.mcpserver import (\n    Context,  # c\n    Image,\n)\n",
         "from funcmcp.compat import (\n    Context,  # c\n    Image,\n)\n"),
        ("# a\nfrom fastmcp import Client, FastMCP as F  # b\n",
         "# a\nfrom funcmcp.compat import FastMCP as F\nfrom fastmcp import Client  # b\n"),
        ("if True:\n    from fastmcp import FastMCP\n", "if True:\n    from funcmcp.compat import FastMCP\n"),
    ],
)  # fmt: skip
def test_imports_of_all_forms(tmp_path: Path, before: str, after: str) -> None:
    assert migrated(tmp_path, before) == after


@pytest.mark.parametrize(
    ("code", "level", "text"),
    [
        ("from fastmcp import Client", "missing", "Client of fastmcp: use funcmcp.client.Client"),
        ("from mcp.server import Server", "missing", "Server of mcp.server: a low-level server"),
        ("from mcp.server.stdio import stdio_server", "missing", "mcp.server.stdio: funcmcp has no such names"),
        ("from mcp.client.session import ClientSession", "missing", "mcp.client.session: funcmcp has no such names"),
        ("from fastmcp import *", "missing", "from fastmcp import *: import the names that are used"),
        ("from fastmcp.server.proxy import ProxyClient", "missing", "ProxyClient of fastmcp.server.proxy: rewrite its"),
        ("import fastmcp.server.proxy", "missing", "import fastmcp.server.proxy: import the names from funcmcp.compat"),
        ("from mcp.types import TextContent", "differs", "TextContent of mcp.types: keep the package mcp installed"),
    ],
)
def test_names_that_stay_are_reported(tmp_path: Path, code: str, level: str, text: str) -> None:
    assert migrated(tmp_path, f"{code}\n") == f"{code}\n"
    (note,) = plan_migration(tmp_path).notes
    assert (note.place, note.level) == ("server.py:1", level)
    assert text in note.text


@pytest.mark.parametrize("method", ["disable_components", "enable_components", "reset_visibility"])
def test_visibility_in_a_session_is_reported_as_missing(tmp_path: Path, method: str) -> None:
    migrated(tmp_path, f"from fastmcp import Context\n\nasync def hide(ctx: Context):\n    await ctx.{method}()\n")
    notes = [note for note in plan_migration(tmp_path).notes if note.level == "missing"]
    assert [note.place for note in notes] == ["server.py:4"]
    assert notes[0].text.startswith(f"{method} hides or shows features in one session, which funcmcp can't do yet")


@pytest.mark.parametrize("code", ["import mcpx", "from . import mcp", "from mcp_shop.server import x", "import mcp"])
def test_other_modules_are_left_alone(tmp_path: Path, code: str) -> None:
    assert migrated(tmp_path, f"{code}\n") == f"{code}\n"
    assert plan_migration(tmp_path).notes == []


def test_line_ends_and_a_declared_encoding_remain(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_bytes(b"# -*- coding: latin-1 -*-\r\nfrom fastmcp import FastMCP\r\n\r\nmcp = FastMCP('\xe9')\r\n")
    write_changes(plan_migration(tmp_path).changes)
    assert file.read_bytes() == (
        b"# -*- coding: latin-1 -*-\r\nfrom funcmcp.compat import FastMCP\r\n\r\nmcp = FastMCP('\xe9')\r\n"
    )


def test_the_names_of_compat_exist() -> None:
    require("funcmcp.compat", find_spec("funcmcp.compat"))
    from importlib import import_module

    compat = import_module("funcmcp.compat")
    assert sorted(COMPAT_NAMES - set(compat.__all__)) == []
