"""A folder with servers in it, as a person would have written them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

FILES = {
    "server.py": """
from funcmcp import MCPServer
from greeting import greet

mcp = MCPServer("Greeter", version="2.1.0", instructions="Be polite.")
mcp.tool(greet)
""",
    "greeting.py": '''
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Hello, {name}!"
''',
    "kinds.py": '''
import asyncio
import os
from typing import Any, Literal

from pydantic import BaseModel, Field

from funcmcp import MCPServer, Context, ToolError
from funcmcp._authoring.results.content import EmbeddedResource, Image, ResourceLink, Text, ToolResult

mcp = MCPServer("Kinds")


class Choice(BaseModel):
    size: Literal["small", "large"]
    guests: int = Field(2, description="How many?")
    note: str | None = None
    sure: bool


@mcp.tool
def kinds(
    text: str,
    number: float = 0,
    whole: int = 0,
    yes: bool = False,
    many: list[int] = [],
    one: dict[str, int] = {},
    either: int | str = "",
    anything: Any = None,
    maybe: int | None = None,
) -> dict[str, Any]:
    """Return what came in."""
    return {"text": text, "number": number, "whole": whole, "yes": yes, "many": many, "one": one, "either": either,
            "anything": anything, "maybe": maybe}


@mcp.tool
def fail() -> str:
    """Fail."""
    raise ToolError("That did not work.")


@mcp.tool
def only_structured() -> ToolResult:
    """Return no text."""
    return ToolResult(Image(b"123", mime_type="image/png"), structured_content={"a": ["ü", 1]})


@mcp.tool
def blocks() -> list[Text | Image | ResourceLink | EmbeddedResource]:
    """Return blocks of all kinds."""
    return [Text("first"), Image(b"123", mime_type="image/png"), ResourceLink("orders://17", "order-17"),
            EmbeddedResource("note://1", text="a note", mime_type="text/plain"),
            EmbeddedResource("data://1", blob=b"123", mime_type="application/octet-stream")]


@mcp.tool
async def choose(context: Context) -> str:
    """Ask with a form."""
    answer = await context.elicit("What will it be?", Choice)
    return f"{answer.action}: {answer.content}"


@mcp.tool
async def count(context: Context) -> str:
    """Tell progress and log."""
    for number in range(3):
        await context.report_progress(number + 1, total=3, message=f"step {number + 1}")
    await context.warning("all counted")
    return "counted"


@mcp.tool
def pid() -> int:
    """Return the process's number."""
    return os.getpid()
''',
    "hanging.py": '''
import asyncio
import re
import threading

from funcmcp import MCPServer, Context

mcp = MCPServer("Hanging")


@mcp.tool
async def work() -> str:
    """Take a moment."""
    print("begun", flush=True)
    await asyncio.sleep(1.5)
    return "finished"


@mcp.tool(timeout=None)
def thread() -> None:
    """Never let the thread go."""
    print("begun", flush=True)
    threading.Event().wait()


@mcp.tool(timeout=None)
async def executor() -> None:
    """Never let asyncio's own thread go."""
    print("begun", flush=True)
    await asyncio.to_thread(threading.Event().wait)


@mcp.tool
async def block() -> None:
    """Never let the event loop go."""
    print("begun", flush=True)
    threading.Event().wait()


@mcp.tool
async def spin() -> None:
    """Keep the event loop busy for ever."""
    print("begun", flush=True)
    while True:
        pass


@mcp.tool
async def backtrack() -> None:
    """Keep the event loop in a C function for ever."""
    print("begun", flush=True)
    re.match("(a+)+$", "a" * 60 + "b")


@mcp.tool
def backtrack_in_a_thread() -> None:
    """Keep the interpreter's lock in a C function for ever."""
    print("begun", flush=True)
    re.match("(a+)+$", "a" * 60 + "b")


@mcp.tool(timeout=None)
async def stream(context: Context) -> None:
    """Keep an event stream open for ever."""
    await context.report_progress(1)
    print("begun", flush=True)
    await asyncio.Event().wait()
''',
    "hanging_without_alarm.py": """
from hanging import mcp

from funcmcp._transports import exit_deadline

# On a loaded machine the alarm, which comes a moment after the thread that ends the process, may be first.
exit_deadline._ALARM_SECONDS = 1000.0
""",
    "faulty.py": '''
from funcmcp import MCPServer

mcp = MCPServer("Faulty")


@mcp.tool
def bad(x: "Foo") -> str:
    """Take what is not there."""
    return "x"


@mcp.tool
def fine(a: int) -> int:
    """Return the same."""
    return a
''',
    "menu.py": r'''
from typing import Literal

from pydantic import BaseModel

from funcmcp import MCPServer, Context, ToolError, content

mcp = MCPServer("Menu")


class Answer(BaseModel):
    word: str


@mcp.resource("menu://today")
def today() -> str:
    """What we cook."""
    return "Soup\nTart"


@mcp.resource("menu://logo", mime_type="image/png")
def logo() -> bytes:
    return bytes(range(256))


@mcp.resource("menu://both")
def both() -> list[content.Contents]:
    return [content.Contents("Soup"), content.Contents(blob=b"\x00\xff")]


@mcp.resource("menu://odd")
def odd() -> str:
    return "\x1b[2Jgone\n"


@mcp.resource("menu://dishes/{dish}", mime_type="application/json")
def dish(dish: Literal["soup", "tart"]) -> dict[str, str]:
    """One dish."""
    return {"name": dish}


@mcp.resource_lister("menu")
def dishes() -> list[content.ResourceInfo]:
    return [content.ResourceInfo("menu://dishes/soup", "soup")]


@mcp.prompt
def suggest(guests: int, taste: str = "hearty") -> list[str | content.Message]:
    """Suggest a meal."""
    if guests > 9:
        raise ToolError("So many guests\x1b[2J\ncan't be seated.")
    return [f"A {taste} meal for {guests}.", content.Message("Soup?", role="assistant")]


@mcp.prompt
async def ask(context: Context) -> list[str | content.Image]:
    answer = await context.elicit("Which word?", Answer)
    return [answer.action, content.Image(b"123", mime_type="image/png")]
''',
    "steering.py": r"""
from funcmcp import MCPServer

mcp = MCPServer("Steering")


@mcp.tool(description="Look: \x1b[2J[red]gone\x07")
def look() -> str:
    return "seen"
""",
    "closed.py": """
from funcmcp import MCPServer, Context
from funcmcp._auth.api_key import APIKeys

mcp = MCPServer("Closed", auth=APIKeys({"ann": "key-of-ann-123456"}))


@mcp.tool
async def whose(context: Context) -> str:
    await context.info("someone asks")
    await context.report_progress(1, total=2, message="half done")
    return context.principal.subject


@mcp.resource("closed://note")
def note() -> str:
    return "a note"


@mcp.prompt
def greet() -> str:
    return "hello"
""",
    "bearer.py": """
from funcmcp import MCPServer, Context

mcp = MCPServer("Bearer")


@mcp.tool
def token(context: Context) -> str:
    return context.http_request.headers["authorization"]
""",
    "looping.py": """
import asyncio

from funcmcp import MCPServer

mcp = MCPServer("Looping")
SETTING = asyncio.run(asyncio.sleep(0, "read before the loop of the server"))


@mcp.tool
def setting() -> str:
    return SETTING
""",
    "two.py": "from funcmcp import MCPServer\n\none, two = MCPServer('one'), MCPServer('two')\nuno = one\nthree = 3\n",
    "none.py": "x = 1\n",
    "bare.py": "from funcmcp import MCPServer\n\nmcp = MCPServer\n",
    "relative.py": "from .none import x\n",
    "same.py": "from funcmcp import MCPServer\n\nmcp = MCPServer('same')\napp = mcp\n",
    "syntax.py": "x = 1\ny = (\n",
    "missing.py": "import os\nimport no_such_library\n",
    "foreign.py": "from fastmcp import FastMCP\n",
    "of_another.py": "class FastMCP:\n    __module__ = 'fastmcp.server'\nmcp = FastMCP()\n",
    "deep.py": "import failing\n",
    "failing.py": "def check():\n    raise ValueError('the setting\\nis missing')\n\n\ncheck()\n",
    "leaving.py": "raise SystemExit(3)\n",
    "repeated.py": (
        "from funcmcp import MCPServer\n\nmcp = MCPServer('m')\n\n\ndef f() -> str: ...\n\n\nmcp.tool(f)\nmcp.tool(f)\n"
    ),
    "odd/pathlib.py": "from funcmcp import MCPServer\n\nmcp = MCPServer('m')\n",
    "notes.txt": "none\n",
    "shop/__init__.py": "",
    "shop/prices.py": "PRICE = 3\n",
    "shop/server.py": '''
from funcmcp import MCPServer

from .prices import PRICE

mcp = MCPServer("Shop")


@mcp.tool
def price() -> int:
    """Return the price."""
    return PRICE
''',
}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("servers")
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.lstrip("\n"), encoding="utf-8")
    return Path(root)


@pytest.fixture(autouse=True)
def arguments_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands that import a server set ``sys.argv`` during a test only."""
    monkeypatch.setattr(sys, "argv", sys.argv.copy())
