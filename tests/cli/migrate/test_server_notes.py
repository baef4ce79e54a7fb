"""The report names methods, options and functions at their lines, and says nothing about objects of other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from funcmcp_cli.migrate.plan import plan_migration

if TYPE_CHECKING:
    from pathlib import Path

    from funcmcp_cli.migrate.notes import Note

HEAD = "from fastmcp import Context, FastMCP\nmcp = FastMCP('Shop')\n"


def notes_of(folder: Path, code: str, *, head: str = HEAD) -> list[Note]:
    """Return the notes about code below the head, of which the first line is number 1."""
    (folder / "server.py").write_text(head + code)
    first = head.count("\n")
    return [note for note in plan_migration(folder).notes if note.line > first]


def described(notes: list[Note], first: int = 2) -> list[tuple[str, int, str]]:
    return [(note.level, note.line - first, note.text.partition(":")[0]) for note in notes]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("mcp.wrap_transform('ask')", ("missing", 1, "mcp.wrap_transform")),
        ("api = FastMCP.from_openapi({}, json_response=True)", ("differs", 1, "FastMCP.from_openapi(json_response=)")),
        ("proxy = FastMCP.as_proxy('http://x/mcp')", ("differs", 1, "FastMCP.as_proxy")),
        ("api = FastMCP.from_openapi({}, colour='red')", ("missing", 1, "FastMCP.from_openapi(colour=)")),
        ("mcp.transforms", ("missing", 1, "mcp.transforms")),
        ("mcp._mcp_server", ("differs", 1, "mcp._mcp_server")),
        ("mcp.auth = None", ("missing", 1, "mcp.auth")),
        ("async def f(ctx: Context):\n    await ctx.sample_step()", ("missing", 2, "ctx.sample_step")),
        ("async def f(ctx: 'Context | None' = None):\n    ctx.sample_step", ("missing", 2, "ctx.sample_step")),
        ("async def f(ctx: Context):\n    await ctx.session.send_ping()", ("missing", 2, "ctx.session.send_ping")),
        ("class A:\n    ctx: Context\n    def f(self):\n        self.ctx.sample_step",
         ("missing", 4, "self.ctx.sample_step")),
        ("class A:\n    def __init__(self):\n        self.mcp = FastMCP\n    def f(self):\n        self.mcp().docket",
         ("missing", 5, "self.mcp().docket")),
        ("@mcp.tool(colour='red')\ndef f() -> int: ...", ("missing", 1, "mcp.tool(colour=)")),
        ("@mcp.tool(serializer=str)\ndef f() -> int: ...", ("differs", 1, "mcp.tool(serializer=)")),
        ("mcp.run(uvicorn_config={})", ("differs", 1, "mcp.run(uvicorn_config=)")),
        ("class Mine(FastMCP):\n    async def get_resource(self, uri): ...", ("missing", 2, "Mine.get_resource")),
        ("class Mine(FastMCP[int]):\n    def add_tool(self, tool): ...", ("differs", 2, "Mine.add_tool")),
        ("class Mine(FastMCP):\n    def f(self):\n        super().get_app_tool('a')",
         ("missing", 3, "super().get_app_tool")),
        ("class Mine(FastMCP):\n    def __init__(self):\n        super().__init__(colour=1)",
         ("missing", 3, "super().__init__(colour=)")),
        ("from fastmcp.server.dependencies import Depends\nasync def f(db=Depends(connect)): ...",
         ("differs", 2, "Depends")),
        ("async def f():\n    tool = await mcp.get_tool('a')\n    tool.serializer", ("missing", 3, "tool.serializer")),
        ("async def f():\n    for tool in await mcp.list_tools():\n        tool.serializer",
         ("missing", 3, "tool.serializer")),
        ("from fastmcp.tools import Tool\ndef f(tools: list[Tool]):\n    for tool in tools:\n        tool.serializer",
         ("missing", 4, "tool.serializer")),
        ("class Mine(FastMCP):\n    def f(self):\n        self._mcp_server", ("differs", 3, "self._mcp_server")),
        ("@mcp.tool\nasync def add(a: int) -> int: ...\nadd.fn(1)", ("missing", 3, "add.fn")),
        ("@mcp.tool\nasync def add(a: bytes) -> int: ...", ("differs", 2, "add")),
        ("@mcp.resource('menu')\nasync def menu() -> str: ...", ("missing", 2, "menu")),
        ("@mcp.resource('data://x{/path*}')\nasync def menu(path: str) -> str: ...", ("missing", 2, "menu")),
        ("async def add(a: bytes) -> str: ...\nmcp.tool(name='x')(add)", ("differs", 2, "add")),
        ("@mcp.custom_route('/health', methods=['GET'])\nasync def health(request): ...",
         ("differs", 1, "mcp.custom_route")),
        ("import fastmcp\nfastmcp.no_such_name", ("missing", 2, "fastmcp.no_such_name")),
    ],
)  # fmt: skip
def test_a_difference_is_named_at_its_line(tmp_path: Path, code: str, expected: tuple[str, int, str]) -> None:
    assert expected in described(notes_of(tmp_path, f"{code}\n"))


@pytest.mark.parametrize(
    "code",
    [
        "mcp.run('http', port=8000)\nmcp.add_transform(transform)\nmcp.add_provider(provider)",
        "mcp.get_context()",
        "mcp.enable(names={'a'})\nmcp.disable(tags={'b'})",
        "api = FastMCP.from_openapi({}, mcp_component_fn=f)\nmcp.local_provider",
        "@mcp.tool(auth=check, version='2')\nasync def f() -> int: ...",
        "class Mine(FastMCP):\n    def __init__(self):\n        super().__init__(providers=[1])",
        "async def f(ctx: Context):\n    await ctx.session.send_log_message('info', 'a')\n    ctx.input_responses",
        "other = Flask()\nother.disable_components()\nother.wrap_transform()",
        "def f(mcp): mcp.wrap_transform()",
        "def f():\n    mcp = Other()\n    mcp.wrap_transform()",
        "for mcp in things:\n    mcp.wrap_transform()",
        "class Mine(FastMCP):\n    def open_shop(self): ...\n    def f(self):\n        self.open_shop()",
        "class Mine(FastMCP):\n    def f(self):\n        self._shop = 1\n        self.shop",
        "@mcp.tool(version=None, auth=None)\nasync def add(a: int) -> int: ...",
        "@other.tool\nasync def add() -> str: ...",
        "@mcp.resource('data://x')\nasync def menu(): ...",
        "@mcp.tool\nasync def add(a: int | None = None) -> dict[str, str]: ...",
        "@mcp.tool\nasync def add(a: Decimal) -> str: ...",
        "import pandas as pd\n@mcp.tool\nasync def add() -> pd.DataFrame: ...",
        "client.get_state()",
        "class Shop:\n    @mcp_tool()\n    async def add(self) -> int: ...",
        "import fastmcp\nfastmcp.__file__",
        "import fastmcp\nfastmcp.settings.port\nfastmcp.server.dependencies",
        "a = a.b.c.d(a)[a]",
        "def connect(n):\n    return connect(n - 1) if n else open()\nconnect(3).docket",
        "def ping():\n    return pong()\ndef pong():\n    return ping()\nping().docket",
    ],
)
def test_what_stays_the_same_or_is_of_others_is_not_named(tmp_path: Path, code: str) -> None:
    notes = notes_of(tmp_path, f"{code}\n")
    assert [note for note in notes if note.level != "moves"] == []


def test_a_difference_of_many_functions_is_one_line(tmp_path: Path) -> None:
    code = "".join(f"@mcp.tool\nasync def f{number}(a: bytes) -> str: ...\n" for number in range(4))
    (note,) = notes_of(tmp_path, code)
    assert note.text.startswith("f0: bytes are base64 in arguments")
    assert note.text.endswith("; also lines 6, 8 and 10")
    (note,) = notes_of(tmp_path, code * 6)
    assert note.text.endswith("44 and 3 more")


def test_servers_are_followed_through_modules_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "other").mkdir()
    files = {
        "shop/__init__.py": "from .app import create\n",
        "shop/app.py": "from fastmcp import FastMCP\nmcp = FastMCP('Shop')\ndef create():\n    return mcp\n",
        "shop/base.py": "from fastmcp import FastMCP\nclass Base(FastMCP): ...\n",
        "shop/tools.py": "from shop.app import mcp\nmcp.docket\n",
        "shop/more.py": "from . import app\napp.mcp.docket\n",
        "shop/again.py": "from shop import create\ncreate().docket\n",
        "shop/mine.py": "from shop.base import Base\nclass Mine(Base):\n    async def get_resource(self): ...\n",
        "other/app.py": "mcp = Other()\n",
        "other/tools.py": "from other.app import mcp\nmcp.docket\n",
    }
    for name, code in files.items():
        (tmp_path / name).write_text(code)
    notes = [note for note in plan_migration(tmp_path).notes if note.level == "missing"]
    assert [note.place for note in notes] == ["shop/again.py:2", "shop/mine.py:3", "shop/more.py:2", "shop/tools.py:2"]


def test_of_rewritten_code_only_what_is_missing_is_named(tmp_path: Path) -> None:
    head = "from funcmcp.compat import Context, FastMCP\nmcp = FastMCP('Shop')\n"
    code = "FastMCP.as_proxy('http://x/mcp')\nasync def f(ctx: Context):\n    ctx.sample_step()\n"
    assert described(notes_of(tmp_path, code, head=head)) == [("missing", 3, "ctx.sample_step")]


@pytest.mark.parametrize(
    ("head", "texts"),
    [
        (
            "from mcp.server.fastmcp import FastMCP\n",
            ["refuses unknown arguments", "runs in a worker thread", "a dict"],
        ),
        ("from mcp.server import MCPServer as FastMCP\n", ["sessions are signed ids"]),
        ("from fastmcp import FastMCP\n", ["sessions are signed ids"]),
    ],
)
def test_differences_depend_on_the_package(tmp_path: Path, head: str, texts: list[str]) -> None:
    code = "mcp = FastMCP('Shop')\n@mcp.tool()\ndef add() -> dict: ...\n"
    notes = notes_of(tmp_path, code, head=head)
    assert len(notes) == len(texts)
    assert all(any(text in note.text for note in notes) for text in texts)


@pytest.mark.parametrize("returns", ["Dict", "Dict[str, int]", "typing.Dict[str, Any]"])
def test_a_dict_of_typing_is_named(tmp_path: Path, returns: str) -> None:
    code = f"mcp = FastMCP('Shop')\n@mcp.tool()\nasync def add() -> {returns}: ...\n"
    notes = notes_of(tmp_path, code, head="from mcp.server.fastmcp import FastMCP\n")
    assert any("a Dict of typing is the structured content" in note.text for note in notes)
    assert len(notes_of(tmp_path, code, head="from mcp.server import MCPServer as FastMCP\n")) == 1
