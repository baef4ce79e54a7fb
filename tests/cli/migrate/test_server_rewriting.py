"""Servers of FastMCP and of the official SDK are rewritten with their comments and formatting."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from tests.requirements import require

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("libcst")

from funcmcp._cli.migrate.names import COMPAT_NAMES
from funcmcp._cli.migrate.plan import plan_migration, write_changes

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
AFTER = """# My shop.
from funcmcp import MCPServer, ResourceContext, ToolContext  # the framework
from funcmcp import ToolError

mcp = MCPServer(
    "Shop",
    instructions="Be kind.",
    show_errors=True,
    lax=True,
)


@mcp.tool(
    description="Add it.",
    read_only=True,
    title="Adder",
)
async def add(a: int, b: int, ctx: ToolContext) -> int:
    await ctx.info(f"adding {a}")  # note
    async def report() -> None:
        await ctx.progress(1, total=2)
    return a   +   b


@mcp.tool(name="getPrice")
def getPrice(name: str) -> str:
    raise ToolError("no")


@mcp.tool(name="x", destructive=False)
def other() -> str: return "x"


@mcp.resource("menu://{day}")
async def menu(day: str, *, context: ResourceContext) -> str:
    await context.warning("late", logger="kitchen")
    return day


@mcp.prompt
def ask(topic: str) -> str:
    return topic


if __name__ == "__main__":
    mcp.run(transport="streamable-http", host="127.0.0.1")
"""


def migrated(folder: Path, text: str, target: str = "auto") -> str:
    file = folder / "server.py"
    file.write_text(text)
    write_changes(plan_migration(folder, target).changes)
    return file.read_text()


def test_a_server_is_written_with_the_own_api_and_stays_so(tmp_path: Path) -> None:
    assert migrated(tmp_path, BEFORE) == AFTER
    plan = plan_migration(tmp_path)
    assert (plan.target, plan.notes, plan.changes) == ("", [], [])


def test_the_rewritten_server_offers_its_features(tmp_path: Path) -> None:
    from funcmcp._cli.targets import load
    from funcmcp._serving import serving_of

    text = migrated(tmp_path, BEFORE)
    (tmp_path / "migrated_shop.py").write_text(text)
    server = load(str(tmp_path / "migrated_shop.py"))
    assert [tool.key for tool in serving_of(server).server.catalog.tools] == ["add", "getPrice", "x"]
    assert server.lax is True


def test_only_the_imports_change_with_compat(tmp_path: Path) -> None:
    expected = BEFORE.replace("from fastmcp import", "from funcmcp.compat import")
    expected = expected.replace("from fastmcp.exceptions import", "from funcmcp.compat import")
    assert migrated(tmp_path, BEFORE, "compat") == expected
    plan = plan_migration(tmp_path, "compat")
    assert plan.changes == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import fastmcp\n", "import funcmcp.compat as fastmcp\n"),
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
    assert migrated(tmp_path, before, "compat") == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('FastMCP("a")', 'MCPServer("a", show_errors=True, lax=True)'),
        ('FastMCP("a", "text")', 'MCPServer("a", instructions="text", show_errors=True, lax=True)'),
        ('FastMCP(name="a", version="2")', 'MCPServer(name="a", version="2", show_errors=True, lax=True)'),
        ('FastMCP(\n    "a",\n)', 'MCPServer(\n    "a",\n    show_errors=True,\n    lax=True,\n)'),
    ],
)
def test_servers_of_all_forms(tmp_path: Path, before: str, after: str) -> None:
    text = migrated(tmp_path, f"from fastmcp import FastMCP\n\napp = {before}\n")
    assert text == f"from funcmcp import MCPServer\n\napp = {after}\n"


SHOP_BEFORE = """from contextlib import asynccontextmanager
from typing import Optional

from fastmcp import Context, FastMCP
from mcp.types import ToolAnnotations

READ_ONLY = ToolAnnotations(readOnlyHint=True, openWorldHint=False)


@asynccontextmanager
async def lifespan(server: FastMCP):
    yield {"store": ["bread"]}


async def note(ctx: Context, text: str) -> None:
    await ctx.info(text)


mcp: FastMCP = FastMCP(
    name="Shop",
    lifespan=lifespan,
    mask_error_details=True,
    strict_input_validation=True,
    website_url="https://example.com",
    exclude_tags={"internal"},
    debug=True,
)
billing = FastMCP("Billing", stateless_http=True)
mcp.mount(billing, "billing")


@mcp.tool(tags={"stock"}, annotations=READ_ONLY, timeout=5)
async def stock(ctx: Context | None = None) -> list[str]:
    await note(ctx, "reading")
    return ctx.request_context.lifespan_context["store"]


@mcp.tool(tags={"internal"}, structured_output=False)
async def clear(ctx: Optional[Context] = None) -> str:
    return "cleared"


def countOrders(customer: str) -> int:
    return 3


def total(prices: list[int]) -> int:
    return sum(prices)


def register(server: FastMCP, functions) -> None:
    server.tool(total)
    server.add_tool(countOrders, description="Count them.")
    for function in functions:
        server.tool(function)
    server.tool(meta={"a": 1})(total_twice)


def total_twice() -> int:
    return 2


def build() -> FastMCP:
    register(billing, [])
    return billing


app = mcp.http_app()
server = build()

if __name__ == "__main__":
    import asyncio

    asyncio.run(server.run_http_async(host="127.0.0.1", log_level="info"))
    mcp.run(transport="http", log_level="info")
"""
SHOP_AFTER = """from contextlib import asynccontextmanager
from typing import Optional

from funcmcp import MCPServer, ServerInfo, ToolContext

READ_ONLY = dict(read_only=True, open_world=False)


@asynccontextmanager
async def lifespan(server: MCPServer):
    yield {"store": ["bread"]}


async def note(ctx: ToolContext, text: str) -> None:
    await ctx.info(text)


mcp: MCPServer = MCPServer(
    name="Shop",
    info=ServerInfo(website_url="https://example.com"),
)
mcp.disable(tags={"internal"})
mcp.add_lifespan(lifespan)
billing = MCPServer("Billing", sessions=None, show_errors=True, lax=True)
mcp.mount(billing, prefix="billing")


@mcp.tool(tags={"stock"}, timeout=5, **READ_ONLY)
async def stock(ctx: ToolContext | None = None) -> list[str]:
    await note(ctx, "reading")
    return ctx.lifespan_context["store"]


@mcp.tool(tags={"internal"})
async def clear(ctx: Optional[ToolContext] = None) -> str:
    return "cleared"


def countOrders(customer: str) -> int:
    return 3


def total(prices: list[int]) -> int:
    return sum(prices)


def register(server: MCPServer, functions) -> None:
    server.tool(total)
    server.tool(description="Count them.", name=countOrders.__name__)(countOrders)
    for function in functions:
        server.tool(name=function.__name__)(function)
    server.tool(meta={"a": 1})(total_twice)


def total_twice() -> int:
    return 2


def build() -> MCPServer:
    register(billing, [])
    return billing


app = mcp
server = build()

if __name__ == "__main__":
    import asyncio

    asyncio.run(server.run_async("http", host="127.0.0.1"))
    mcp.run(transport="http")
"""


def test_features_of_whole_servers_are_written_with_the_own_api(tmp_path: Path) -> None:
    assert migrated(tmp_path, SHOP_BEFORE) == SHOP_AFTER
    assert plan_migration(tmp_path).changes == []


async def test_the_rewritten_shop_works(tmp_path: Path) -> None:
    from funcmcp._cli.targets import load
    from funcmcp.testing import Client

    (tmp_path / "rewritten_shop.py").write_text(SHOP_AFTER)
    mcp = load(f"{tmp_path / 'rewritten_shop.py'}:mcp")
    async with Client(mcp) as client:
        names = sorted(str(tool["name"]) for tool in await client.list_tools())
        assert names == ["billing_countOrders", "billing_total", "billing_total_twice", "stock"]
        assert (await client.call_tool("stock")).structured_content == {"result": ["bread"]}
        assert (await client.call_tool("billing_total", {"prices": ["1", 2]})).structured_content == {"result": 3}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("mcp.mount(shop)", "mcp.mount(shop)"),
        ('mcp.mount("a", shop)', 'mcp.mount(shop, prefix="a")'),
        ('mcp.mount(shop, namespace="a")', 'mcp.mount(shop, prefix="a")'),
        ("mcp.mount(prefix=None, server=shop)", "mcp.mount(shop)"),
        ("async def f():\n    await mcp.import_server(shop, prefix='a')",
         "async def f():\n    mcp.mount(shop, prefix='a')"),
        ("async def f():\n    await mcp.run_stdio_async()", 'async def f():\n    await mcp.run_async("stdio")'),
        ("uvicorn.run(mcp.streamable_http_app(), port=1)", "uvicorn.run(mcp, port=1)"),
    ],
)  # fmt: skip
def test_methods_of_servers_are_written_with_the_own_api(tmp_path: Path, before: str, after: str) -> None:
    head = "from fastmcp import FastMCP\nmcp = FastMCP('a')\nshop = FastMCP('b')\n"
    assert migrated(tmp_path, f"{head}{before}\n").endswith(f"\n{after}\n")


def test_line_ends_and_a_declared_encoding_remain(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_bytes(b"# -*- coding: latin-1 -*-\r\nfrom fastmcp import FastMCP\r\n\r\nmcp = FastMCP('\xe9')\r\n")
    write_changes(plan_migration(tmp_path, "compat").changes)
    assert file.read_bytes() == (
        b"# -*- coding: latin-1 -*-\r\nfrom funcmcp.compat import FastMCP\r\n\r\nmcp = FastMCP('\xe9')\r\n"
    )


def test_the_names_of_compat_exist() -> None:
    require("funcmcp.compat", find_spec("funcmcp.compat"))
    from importlib import import_module

    compat = import_module("funcmcp.compat")
    assert sorted(COMPAT_NAMES - set(compat.__all__)) == []
