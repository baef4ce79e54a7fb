"""Uses that funcmcp's own API does not have keep a project on funcmcp.compat, and the report names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("libcst")

from funcmcp._cli.failure import Failure
from funcmcp._cli.migrate.plan import plan_migration

SERVER = "from fastmcp import FastMCP, Context\nmcp = FastMCP('a')\n"


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("mcp.mount(x)", "the mounted server is not one of this project"),
        ("mcp.mount(mcp, as_proxy=True)", "the option as_proxy of mount is only in funcmcp.compat"),
        ("mcp.import_server(mcp)", "import_server is not awaited here"),
        ("app = mcp.http_app(path='/')", "the option path of http_app is only in funcmcp.compat"),
        ("app = mcp.http_app()\napp.add_middleware(x)", "add_middleware of the application is only in funcmcp.compat"),
        ("make = mcp.http_app", "http_app is not called here"),
        ("mcp.call_tool('f', {})", "call_tool of the server is only in funcmcp.compat"),
        ("@mcp.custom_route('/a')\nasync def f(r): ...", "custom_route of the server is only in funcmcp.compat"),
        ("register(mcp)", "the server is passed to other code"),
        ("x = mcp.tool(f)", "tool is not a decorator here"),
        ("mcp.prompt(f)", "prompt is not a decorator here"),
        ("@mcp.tool(exclude_args=['a'])\ndef f(a=1): ...", "the option exclude_args of tool is only in funcmcp.compat"),
        ("@mcp.tool(structured_output=False)\ndef f() -> dict: ...", "the option structured_output of tool is only in"),
        ("@mcp.tool(output_schema=None)\ndef f() -> dict: ...", "the option output_schema of tool is only in"),
        ("@mcp.resource('a://b', annotations=X)\ndef f(): ...", "the annotations are not written as"),
        (
            "H = ToolAnnotations(title='A')\n@mcp.tool(title='B', annotations=H)\ndef f(): ...",
            "the annotations are not written as ToolAnnotations",
        ),
        ("H = ToolAnnotations(title='A')\nprint(H)", "H is used in other ways than as annotations of a tool"),
        ("def f() -> ToolAnnotations: ...", "ToolAnnotations is used in other ways than as annotations of a tool"),
        ("@mcp.tool(**options)\ndef f(): ...", "options of tool are not written one by one"),
        ("@mcp.tool(annotations=HINTS)\ndef f(): ...", "the annotations are not written as ToolAnnotations"),
        ("@mcp.resource('menu')\ndef f(): ...", "the URI is not a string with a scheme"),
        ("@mcp.tool\nasync def f(c: Context): await c.sample('x')", "sample of the context is only in funcmcp.compat"),
        ("@mcp.tool\nasync def f(c: Context | int): ...", "Context is used in other ways"),
        ("@mcp.tool\nasync def f(c: list[Context]): ...", "Context is used in other ways"),
        ("@mcp.tool\nasync def f(c: Context): c.request_context.request", "request_context of the context is only in"),
        ("@mcp.tool\nasync def f(c: 'Context'): ...", "Context is used in other ways"),
        ("@mcp.tool\nasync def f(c: Context): await g(c)", "the context is passed to other code"),
        ("@mcp.tool\nasync def f(c: Context): await c.info('x', extra={})", "info of the context has options"),
        ("@mcp.tool('a', 'b')\ndef f(): ...", "options of tool are not written one by one"),
        ("mcp.run(path='/x')", "the option path of run is only in funcmcp.compat"),
        ("other = FastMCP('b', lifespan=make())", "the lifespan is not the name of a function"),
        ("other = FastMCP('b', auth=x)", "the option auth of the server is only in funcmcp.compat"),
        ("other = FastMCP('b', mask_error_details=x)", "the option mask_error_details is not written as True or False"),
        ("def make():\n    return mcp", "the server is passed to other code"),
        ("other = FastMCP()", "the server has no name"),
        ("serve(FastMCP('b'))", "the server is not assigned to a variable"),
        ("class Own(FastMCP): ...", "FastMCP is used in other ways than to make a server"),
        ("from fastmcp.utilities.types import Image", "Image is only in funcmcp.compat"),
        ("from mcp.types import TextContent", "TextContent of mcp.types: keep the package mcp installed"),
        ("import fastmcp", "the module fastmcp is imported as a whole"),
    ],
)
def test_an_obstacle_is_named_with_its_line(tmp_path: Path, code: str, text: str) -> None:
    (tmp_path / "server.py").write_text(SERVER + code + "\n")
    plan = plan_migration(tmp_path)
    assert plan.target == "funcmcp.compat"
    (note,) = [note for note in plan.notes if text in note.text]
    assert (note.file, note.level) == ("server.py", "differs")
    assert note.line >= 3
    with pytest.raises(Failure, match=r"server.py:\d: .*leave out --to native"):
        plan_migration(tmp_path, "native")


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("from fastmcp import Client", "Client of fastmcp: use funcmcp.client.Client"),
        ("from mcp.server import Server", "Server of mcp.server: a low-level server"),
        ("from mcp.server.stdio import stdio_server", "mcp.server.stdio: funcmcp has no such names"),
        ("from mcp.client.session import ClientSession", "mcp.client.session: funcmcp has no such names"),
        ("from fastmcp import *", "from fastmcp import *: import the names that are used"),
        ("from fastmcp.server.proxy import ProxyClient", "ProxyClient of fastmcp.server.proxy: rewrite its uses"),
    ],
)
def test_missing_names_are_reported(tmp_path: Path, code: str, text: str) -> None:
    (tmp_path / "server.py").write_text(code + "\n")
    (note,) = [note for note in plan_migration(tmp_path).notes if note.level == "missing"]
    assert note.place == "server.py:1"
    assert text in note.text


def test_one_file_with_an_obstacle_decides_for_all(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(SERVER)
    (tmp_path / "extra.py").write_text("from app import mcp\nmcp.mount(1)\n")
    plan = plan_migration(tmp_path)
    assert plan.target == "funcmcp.compat"
    assert [change.name for change in plan.changes] == ["app.py"]


def test_a_file_that_shares_the_server_is_rewritten_too(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(SERVER)
    tools = "from app import mcp\n\n\n@mcp.tool(annotations={'readOnlyHint': True})\ndef ask(): ...\n"
    (tmp_path / "tools.py").write_text(tools)
    plan = plan_migration(tmp_path)
    changes = {change.name: change.after.decode() for change in plan.changes}
    assert plan.target == "funcmcp"
    assert changes["tools.py"] == "from app import mcp\n\n\n@mcp.tool(read_only=True)\ndef ask(): ...\n"
