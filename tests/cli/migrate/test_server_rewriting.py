"""Servers of FastMCP and of the official SDK are rewritten with their comments and formatting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

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
    file.write_bytes(text.encode())
    write_changes(plan_migration(folder).changes)
    return file.read_bytes().decode()


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
        ("import fastmcp\n", "import funcmcp.compat.fastmcp as fastmcp\n"),
        ("import fastmcp.utilities.types as t\nt.Image\n",
         "import funcmcp.compat.fastmcp.utilities.types as t\nt.Image\n"),
        ("from mcp.server.fastmcp.prompts import base\nbase.UserMessage\n",
         "from funcmcp.compat.mcp.server.fastmcp.prompts import base\nbase.UserMessage\n"),
        ("from fastmcp.server import dependencies as d\nd.get_context()\n",
         "from funcmcp.compat.fastmcp.server import dependencies as d\nd.get_context()\n"),
        ("from mcp.server.auth.settings import AuthSettings\n",
         "from funcmcp.compat.mcp.server.auth.settings import AuthSettings\n"),
        ("from mcp.server.session import ServerSession\n",
         "from funcmcp.compat.mcp.server.session import ServerSession\n"),
        ("from mcp.server import MCPServer, ServerRequestContext\n",
         "from funcmcp.compat import MCPServer\nfrom funcmcp.compat.mcp.server import ServerRequestContext\n"),
        ("from mcp.server import CacheHint\n", "from funcmcp.compat.mcp.server import CacheHint\n"),
        ("from fastmcp.prompts.prompt import PromptMessage\n",
         "from funcmcp.compat.fastmcp.prompts.prompt import PromptMessage\n"),
        ("from mcp.types import Icon, TextContent\n",
         "from funcmcp.compat import Icon\nfrom mcp.types import TextContent\n"),
        ("import os, fastmcp as f\n", "import os, funcmcp.compat.fastmcp as f\n"),
        ("from mcp.server.fastmcp import FastMCP, Image\n", "from funcmcp.compat import FastMCP, Image\n"),
        ("from mcp.server import MCPServer\n", "from funcmcp.compat import MCPServer\n"),
        ("from mcp.server.mcpserver import (\n    Context,  # c\n    Image,\n)\n",
         "from funcmcp.compat import (\n    Context,  # c\n    Image,\n)\n"),
        ("# a\nfrom fastmcp import Client, FastMCP as F  # b\n",
         "# a\nfrom funcmcp.compat import FastMCP as F\nfrom funcmcp.compat.fastmcp import Client  # b\n"),
        ("if True:\n    from fastmcp import FastMCP\n", "if True:\n    from funcmcp.compat import FastMCP\n"),
        ("x = 'é'; from fastmcp import FastMCP; y = 1\n", "x = 'é'; from funcmcp.compat import FastMCP; y = 1\n"),
        ("x = 'é'; from fastmcp import FastMCP, Client\n",
         "x = 'é'; from funcmcp.compat import FastMCP; from funcmcp.compat.fastmcp import Client\n"),
        ("if True:\r\n\tfrom fastmcp import (FastMCP,\r\n\t\tClient)\r\n",
         "if True:\r\n\tfrom funcmcp.compat import FastMCP\r\n\tfrom funcmcp.compat.fastmcp import Client\r\n"),
        ("from \\\n    fastmcp.exceptions \\\n    import ToolError\n",
         "from \\\n    funcmcp.compat \\\n    import ToolError\n"),
        ("from mcp.shared.exceptions import McpError\n", "from funcmcp.compat import McpError\n"),
        ("from mcp import McpError\n", "from funcmcp.compat import McpError\n"),
        ("from mcp.server.elicitation import AcceptedElicitation\n",
         "from funcmcp.compat import AcceptedElicitation\n"),
        ("from mcp.server.auth.middleware.auth_context import get_access_token\n",
         "from funcmcp.compat import get_access_token\n"),
        ("from mcp.server.auth.provider import AccessToken, TokenVerifier\n",
         "from funcmcp.compat import AccessToken, TokenVerifier\n"),
        ("from fastmcp import Client\n", "from funcmcp.compat.fastmcp import Client\n"),
        ("from fastmcp.client.transports import FastMCPTransport, SSETransport\n",
         ("from funcmcp.compat.fastmcp.client.transports import FastMCPTransport\n"
          "from fastmcp.client.transports import SSETransport\n")),
        ("from mcp import Client, types\n", "from funcmcp.compat.mcp import Client\nfrom mcp import types\n"),
        ("from mcp.server.fastmcp import Icon\n", "from funcmcp.compat import Icon\n"),
    ],
)  # fmt: skip
def test_imports_of_all_forms(tmp_path: Path, before: str, after: str) -> None:
    assert migrated(tmp_path, before) == after


@pytest.mark.parametrize(
    ("code", "level", "text"),
    [
        (
            "from mcp.server import Server",
            "missing",
            "Server of mcp.server: funcmcp has no low-level server. Use @mcp.tool",
        ),
        ("from mcp.server.stdio import stdio_server", "missing", "stdio_server of mcp.server.stdio: use mcp.run()"),
        ("import mcp.server.stdio", "missing", "import mcp.server.stdio: use mcp.run()"),
        (
            "from mcp.client.session import ClientSession",
            "differs",
            "ClientSession of mcp.client.session: it is of the client of mcp: keep the package installed",
        ),
        (
            "from fastmcp.client.elicitation import ElicitResult",
            "differs",
            "ElicitResult of fastmcp.client.elicitation: it is of the client of fastmcp: keep the package installed",
        ),
        ("from fastmcp import *", "missing", "from fastmcp import *: import the names that are used"),
        ("import fastmcp.server.proxy", "missing", "import fastmcp.server.proxy: import the names from funcmcp.compat"),
        ("from mcp.types import Tool", "differs", "Tool of mcp.types: keep the package mcp installed"),
        ("from mcp import MCPError", "differs", "MCPError of mcp: keep the package mcp installed"),
        ("from mcp import types", "differs", "types of mcp: keep the package mcp installed"),
        (
            "from fastmcp.server.event_store import EventStore",
            "missing",
            "EventStore of fastmcp.server.event_store: use MCPServer(sessions=...)",
        ),
        ("from mcp.server.lowlevel.server import lifespan", "missing", "lifespan of mcp.server.lowlevel.server: "),
        ("from mcp.shared.progress import Progress", "missing", "Progress of mcp.shared.progress: "),
        (
            "from fastmcp.server import dependencies; dependencies.x",
            "missing",
            "dependencies of fastmcp.server: funcmcp.compat has no x of it",
        ),
        (
            "import fastmcp.server.dependencies as d; d.x",
            "missing",
            "import fastmcp.server.dependencies: funcmcp.compat has no x of it",
        ),
        (
            "from fastmcp.experimental.transforms.code_mode import CodeMode",
            "missing",
            "CodeMode of fastmcp.experimental.transforms.code_mode: funcmcp runs no programs of a model",
        ),
        ("from mcp.types import TextContent", "differs", "TextContent of mcp.types: keep the package mcp installed"),
    ],
)
def test_names_that_stay_are_reported(tmp_path: Path, code: str, level: str, text: str) -> None:
    assert migrated(tmp_path, f"{code}\n") == f"{code}\n"
    (note,) = plan_migration(tmp_path).notes
    assert (note.place, note.level) == ("server.py:1", level)
    assert text in note.text


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
