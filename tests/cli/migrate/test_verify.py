"""``funcmcp migrate --verify`` serves an app and its rewritten copy, and compares them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
import venv
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.forking import funcmcp
from tests.cli.processes import PYTHON, running
from tests.patience import PATIENCE
from tests.requirements import require

if TYPE_CHECKING:
    from pathlib import Path

    from funcmcp_cli.connect import Source


pytest.importorskip("libcst")

from funcmcp_cli.migrate.verify import example_calls, verify

_SLOW = pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")

APP = """import json

import azure.functions as func

from texts import load

app = func.FunctionApp()
PROPERTIES = json.dumps([{"propertyName": "name", "propertyType": "string", "isRequired": True}])


@app.mcp_resource_trigger(arg_name="context", uri="menu://today", resource_name="menu", mime_type="text/plain")
def menu(context) -> str:
    return load("menu.txt")


@app.mcp_prompt_trigger(
    arg_name="context", prompt_name="suggest", prompt_arguments=[func.PromptArgument("taste", "The taste.", True)]
)
def suggest(context: func.PromptInvocationContext) -> str:
    return f"Suggest a {context.arguments['taste']} dish."


@app.mcp_tool_trigger(arg_name="context", tool_name="order", tool_properties=PROPERTIES)
def order(context: str) -> str:
    name = json.loads(context)["arguments"]["name"]
    with open("orders.txt", "a") as file:
        file.write(name)
    return f"Ordered {name}."
"""
TEXTS = """from pathlib import Path


def load(name):
    return Path(__file__).with_name(name).read_text()
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    require("azure.functions", find_spec("azure"))
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "host.json").write_text('{"version": "2.0"}')
    (folder / "function_app.py").write_text(APP)
    (folder / "texts.py").write_text(TEXTS)
    (folder / "menu.txt").write_text("Soup")
    return folder


def test_an_app_that_answers_as_before_is_written(shop: Path) -> None:
    shown = funcmcp("migrate", "shop", "--verify", "--write", folder=shop.parent)
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert "Compared the server with its rewritten copy: the lists, and 2 calls." in lines
    assert "The server lists 1 tool, 1 resource, 1 prompt." in lines
    assert "Not called, because they may have effects: order. Use --calls FILE, or --call-tools for all." in lines
    assert not [line for line in lines if line.startswith("breaking")]
    assert lines[-1].startswith("Rewrote 1 file.")
    assert "@mcp.prompt" in (shop / "function_app.py").read_text()
    assert not (shop / "orders.txt").exists()


@_SLOW
def test_an_app_that_answers_otherwise_is_not_written(shop: Path) -> None:
    """The text of the file is an envelope for Azure's host, which the code does not show."""
    (shop / "menu.txt").write_text(json.dumps({"content": json.dumps({"text": "Soup"})}))
    shown = funcmcp("migrate", "shop", "--verify", "--write", folder=shop.parent)
    assert shown.returncode == 1
    breaking = [line for line in shown.stdout.splitlines() if line.startswith("breaking")]
    assert len(breaking) == 1
    assert "call menu://today {}: contents changed from" in breaking[0]
    assert "No file was written: clients can fail with the rewritten server." in shown.stderr
    assert (shop / "function_app.py").read_text() == APP


@_SLOW
def test_tools_are_called_on_request(shop: Path) -> None:
    shown = funcmcp("migrate", "shop", "--verify", "--call-tools", "--json", folder=shop.parent)
    assert shown.returncode == 0, shown.stderr
    verification = json.loads(shown.stdout)["verification"]
    assert (verification["calls"], verification["not_called"]) == (3, [])
    assert {difference["level"] for difference in verification["differences"]} <= {"wording", "compatible"}
    (shop.parent / "calls.json").write_text('[{"tool": "order", "arguments": {"name": "Tea"}}]')
    shown = funcmcp("migrate", "shop/function_app.py", "--verify", "--calls", "calls.json", folder=shop.parent)
    assert "the lists, and 3 calls." in shown.stdout
    assert "Not called" not in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (["--verify"], 1, "has no host.json: it is not a function app"),
        (["--call-tools"], 2, "--calls, --call-tools and --command are options of --verify."),
        (["--verify", "--diff"], 2, "--diff prints the patch alone: leave out --verify."),
    ],
)
def test_what_cannot_be_verified_says_why(tmp_path: Path, arguments: list[str], code: int, reason: str) -> None:
    (tmp_path / "function_app.py").write_text(APP)
    shown = funcmcp("migrate", ".", *arguments, folder=tmp_path)
    assert shown.returncode == code
    assert reason in " ".join(shown.stderr.replace("│", "").split())


@_SLOW
def test_a_custom_handler_is_compared_in_another_way(shop: Path) -> None:
    (shop / "host.json").write_text('{"version": "2.0", "customHandler": {"description": {}}}')
    shown = funcmcp("migrate", "shop", "--verify", folder=shop.parent)
    assert (shown.returncode, shown.stderr) == (
        1,
        f"Not compared. {shop} has a custom handler. Compare its server with: funcmcp diff OLD NEW\n",
    )


HTTP = """import azure.functions as func

app = func.FunctionApp()


@app.route(route="mcp", methods=["POST"])
def endpoint(req: func.HttpRequest) -> func.HttpResponse:
    return func.HttpResponse("{}")
"""
TIMER = """

@app.timer_trigger(arg_name="timer", schedule="0 * * * * *")
def tick(timer: func.TimerRequest) -> None:
    pass
"""


@_SLOW
def test_an_app_whose_server_is_behind_an_http_trigger_is_not_compared(shop: Path) -> None:
    """Its lists are empty, so equal lists would say nothing about its server."""
    environment(shop, ".venv", "3, 9, 0")  # needs no funcmcp, because no copy is served
    (shop / "function_app.py").write_text(HTTP + TIMER)
    shown = funcmcp("migrate", "shop", "--verify", folder=shop.parent)
    assert shown.returncode == 1
    assert shown.stdout == "0 moves, 0 differs, 0 missing; 0 files change\n"
    text = f"Not compared. {shop} has no MCP triggers, and its HTTP triggers are not compared: /api/mcp (POST). "
    assert shown.stderr.splitlines()[-1] == f"{text}migrate changes no file, so clients see no difference."


@_SLOW
def test_some_of_many_http_triggers_are_named(shop: Path) -> None:
    app, _, function = HTTP.partition("@")
    functions = (f"@{function}".replace("endpoint", f"f{i}").replace('"mcp"', f'"r{i}"') for i in range(12))
    (shop / "function_app.py").write_text(app + "\n\n".join(functions))
    shown = funcmcp("migrate", "shop", "--verify", folder=shop.parent)
    assert shown.stderr.count(" (POST)") == 10
    assert " (POST), and 2 more. migrate changes no file" in shown.stderr


@_SLOW
def test_a_rewritten_server_behind_an_http_trigger_is_compared_in_another_way(shop: Path) -> None:
    require("mcp", find_spec("mcp"))
    server = 'from mcp.server import MCPServer\n\nmcp = MCPServer("Shop")\n\n\n@mcp.tool()\ndef f() -> str: ...\n'
    (shop / "server.py").write_text(server)
    (shop / "function_app.py").write_text(HTTP.replace(', methods=["POST"]', ""))
    shown = funcmcp("migrate", "shop", "--verify", "--write", folder=shop.parent)
    assert shown.returncode == 1
    assert "1 file changes" in shown.stdout
    assert "are not compared: /api/mcp (all methods). Serve the app before and after the changes" in shown.stderr
    assert "and run: funcmcp diff OLD_URL NEW_URL" in shown.stderr
    assert (shop / "server.py").read_text() == server


@_SLOW
def test_an_app_without_triggers_that_clients_can_use_is_compared(shop: Path) -> None:
    (shop / "function_app.py").write_text(HTTP.partition("@")[0] + TIMER.strip())
    shown = funcmcp("migrate", "shop", "--verify", folder=shop.parent)
    assert (shown.returncode, shown.stdout.splitlines()[-2:]) == (0, ["The server lists nothing.", "no differences"])


@_SLOW
def test_a_loop_that_makes_tools_is_reported_beside_their_number(shop: Path) -> None:
    loop = (
        "import azure.functions as func\n\napp = func.FunctionApp()\n\n\ndef make(name):\n"
        "    def tool() -> str:\n        return name\n\n    tool.__name__ = name\n    return tool\n\n\n"
        'for name in ("one", "two"):\n    app.mcp_tool()(make(name))\n'
    )
    (shop / "function_app.py").write_text(loop)
    shown = funcmcp("migrate", "shop", "--verify", folder=shop.parent)
    assert shown.returncode == 0, shown.stderr
    text = "a function stays a function of Azure's: its trigger is called in a loop or in a function"
    assert f"function_app.py:15: {text}" in shown.stdout
    assert "The server lists 2 tools." in shown.stdout.splitlines()


@_SLOW
def test_an_app_that_cannot_start_says_why(shop: Path) -> None:
    (shop / "texts.py").unlink()
    shown = funcmcp("migrate", "shop", "--verify", folder=shop.parent)
    assert shown.returncode == 1
    assert "Not compared. The function app can't be loaded. function_app.py, line 5:" in shown.stderr
    assert "No module named 'texts'" in shown.stderr
    assert "Traceback" not in shown.stderr
    assert "3 moves, 7 differs, 0 missing; 1 file changes" in shown.stdout


def environment(folder: Path, name: str, version: str = "") -> Path:
    """Return an environment of an app that has azure-functions and its requirements, and nothing else.

    Args:
        folder: The app.
        name: The folder of the environment.
        version: The version of Python that its interpreter claims to be; "" for its own.
    """
    place = folder / name
    venv.create(place, symlinks=True)
    (packages,) = place.glob("lib/*/site-packages")
    for package in ("azure", "werkzeug", "markupsafe"):
        spec = find_spec(package)
        for source in [] if spec is None else spec.submodule_search_locations or []:
            (packages / package).symlink_to(source)
    if version:
        (packages / "other_version.py").write_text(f"import sys\nsys.version_info = ({version})\n")
        (packages / "other_version.pth").write_text("import other_version\n")
    return place


@_SLOW
@pytest.mark.parametrize("name", [".venv", "venv", "env"])
def test_the_environment_of_an_app_need_not_have_funcmcp(shop: Path, name: str) -> None:
    """Microsoft's layout: the environment is in the folder, and has what requirements.txt names."""
    place = environment(shop, name)
    command = [str(place / "bin" / "python"), "-c", "import azure.functions, funcmcp"]
    failed = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert "No module named 'funcmcp'" in failed.stderr
    shown = funcmcp("migrate", "shop", "--verify", "--call-tools", folder=shop.parent)
    assert shown.returncode == 0, shown.stderr
    assert "Compared the server with its rewritten copy: the lists, and 3 calls." in shown.stdout


@_SLOW
def test_an_environment_of_another_python_needs_funcmcp(shop: Path) -> None:
    environment(shop, ".venv", "3, 9, 0")
    shown = funcmcp("migrate", "shop", "--verify", "--write", folder=shop.parent)
    assert shown.returncode == 1
    assert "Not compared. shop/.venv/bin/python is Python 3.9, and funcmcp is installed for Python" in shown.stderr
    assert 'Run shop/.venv/bin/python -m pip install "funcmcp[azure]" first.' in shown.stderr
    assert "3 moves, 7 differs, 0 missing; 1 file changes" in shown.stdout
    assert (shop / "function_app.py").read_text() == APP


@_SLOW
def test_a_copy_that_cannot_start_names_the_folder_of_the_app(shop: Path) -> None:
    (shop / "funcmcp").mkdir()  # another module of this name
    (shop / "funcmcp" / "__init__.py").write_text("import nothing_here\n")
    shown = funcmcp("migrate", "shop", "--verify", folder=shop.parent)
    assert shown.returncode == 1
    assert "Not compared. In the rewritten copy: The function app can't be loaded." in shown.stderr
    assert f"Run pip install -r requirements.txt into {shop.parent}" not in shown.stderr
    assert "into shop/.venv" in shown.stderr
    assert tempfile.gettempdir() + "/funcmcp-migrate-" not in shown.stderr


@_SLOW
def test_the_root_of_a_repository_stands_for_the_app_that_azure_yaml_deploys(shop: Path) -> None:
    root = shop.parent
    (root / "azure.yaml").write_text("services:\n  api:\n    project: ./shop\n    host: function\n")
    (shop / "env").mkdir()  # has the name of an environment, and is a module of the app
    (shop / "env" / "names.py").write_text("MENU = 'menu.txt'\n")
    app = APP.replace('load("menu.txt")', "load(MENU)").replace("from texts", "from env.names import MENU\nfrom texts")
    (shop / "function_app.py").write_text(app)
    shown = funcmcp("migrate", ".", "--verify", folder=root)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert "Compared the server with its rewritten copy: the lists, and 2 calls." in shown.stdout.splitlines()


@_SLOW
def test_the_root_of_a_repository_with_several_apps_names_them(shop: Path) -> None:
    root = shop.parent
    (root / "bar").mkdir()
    (root / "bar" / "host.json").write_text('{"version": "2.0"}')
    shown = funcmcp("migrate", ".", "--verify", folder=root)
    assert shown.returncode == 1
    assert "Its function apps are in bar, shop. Name the folder of the app." in shown.stdout + shown.stderr


async def test_a_function_app_and_its_copy_are_compared_in_one_revision(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    revisions: list[str | None] = []

    async def inspected(source: Source, *_: Any, **__: Any) -> tuple[dict[str, Any], list[Any]]:
        revisions.append(source.revision)
        lists: dict[str, Any] = {"tools": [], "resources": [], "resourceTemplates": [], "prompts": [], "calls": []}
        facts: dict[str, Any] = {
            "server": {},
            "revision": source.revision or "2025-11-25",
            "capabilities": {},
            "instructions": None,
        }
        return {**facts, **lists}, []

    monkeypatch.setattr("funcmcp_cli.migrate.verify.inspect_server", inspected)
    verification = await verify(shop, [], [], call_tools=False)
    assert revisions == [None, "2025-11-25", "2025-11-25"]
    assert not verification.differences


@_SLOW
def test_links_lead_where_they_led(shop: Path) -> None:
    (shop / "texts.py").rename(shop.parent / "shared.py")
    (shop / "texts.py").symlink_to("../shared.py")
    (shop / "data").mkdir()
    (shop / "data" / "missing").symlink_to("nowhere")
    (shop / "data" / "round").symlink_to("..")
    assert funcmcp("migrate", "shop", "--verify", folder=shop.parent).returncode == 0


def test_calls_are_made_from_what_a_server_lists() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "required": ["a", "b", "c", "d", "e", "f", "g"],
        "properties": {
            "a": {"type": "integer"},
            "b": {"type": ["string", "null"]},
            "c": {"enum": ["x", "y"]},
            "d": {"type": "array", "items": {"type": "number"}},
            "e": {"type": "object", "required": ["n"], "properties": {"n": {"type": "boolean"}}},
            "f": {"default": 5},
            "g": {},
            "h": {"type": "string"},
        },
    }
    listed = {
        "resources": [{"uri": "a://b"}],
        "resourceTemplates": [{"uriTemplate": "a://{x}/{y}"}],
        "prompts": [{"name": "p", "arguments": [{"name": "one", "required": True}, {"name": "two"}]}, {"name": "q"}],
        "tools": [
            {"name": "read", "annotations": {"readOnlyHint": True}, "inputSchema": schema},
            {"name": "write", "inputSchema": {"type": "object"}},
        ],
    }
    arguments = {"a": 1, "b": "example", "c": "x", "d": [1.5], "e": {"n": True}, "f": 5, "g": "example"}
    expected = [
        {"resource": "a://b"},
        {"resource": "a://example/example"},
        {"prompt": "p", "arguments": {"one": "example", "two": "example"}},
        {"prompt": "p", "arguments": {"one": "example"}},
        {"prompt": "q", "arguments": {}},
        {"tool": "read", "arguments": arguments},
    ]
    assert example_calls(listed, call_tools=False) == expected
    assert example_calls(listed, call_tools=True) == [*expected, {"tool": "write", "arguments": {}}]


SERVER = """from mcp.server.fastmcp import FastMCP

mcp = FastMCP("Shop")


@mcp.tool(annotations={"readOnlyHint": True})
def find(name: str | None = None) -> str:
    return f"Found {name}."


@mcp.tool()
def order(name: str) -> int:
    return len(name)


if __name__ == "__main__":
    mcp.run()
"""


@_SLOW
@pytest.mark.parametrize("arguments", [["server.py"], [".", "--command", "python server.py"]])
def test_a_server_of_the_sdk_is_compared_with_its_rewritten_copy(tmp_path: Path, arguments: list[str]) -> None:
    require("mcp", find_spec("mcp"))
    text = SERVER.replace("mcp.server.fastmcp import FastMCP", "mcp.server import MCPServer as FastMCP")
    (tmp_path / "server.py").write_text(text)
    arguments = [argument.replace("python ", f"{PYTHON} ") for argument in arguments]
    shown = funcmcp("migrate", *arguments, "--verify", "--write", folder=tmp_path)
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert "Compared the server with its rewritten copy: the lists, and 1 call." in lines
    assert "Not called, because they may have effects: order. Use --calls FILE, or --call-tools for all." in lines
    assert "The server lists 2 tools." in lines
    assert "0 breaking, 1 compatible, 0 wording" in lines
    assert (tmp_path / "server.py").read_text().startswith("from funcmcp.compat import MCPServer as FastMCP")


@_SLOW
def test_a_folder_needs_a_command(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    shown = funcmcp("migrate", ".", "--verify", folder=tmp_path)
    assert shown.returncode == 1
    assert 'such as --command "python server.py".' in shown.stderr


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("", '--command is empty. Name what serves the server on stdio, such as --command "python server.py".'),
        ("python 'server.py", """--command "python 'server.py" is not a command: No closing quotation."""),
    ],
)
def test_a_malformed_command_is_one_line(tmp_path: Path, command: str, line: str) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    shown = funcmcp("migrate", ".", "--verify", "--command", command, folder=tmp_path)
    assert (shown.returncode, shown.stderr) == (1, f"Not compared. {line}\n")


@_SLOW
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM that a process can handle.")
def test_a_signal_ends_the_server_and_deletes_the_copy(tmp_path: Path) -> None:
    folder, temporary = tmp_path / "shop", tmp_path / "temporary"
    folder.mkdir()
    temporary.mkdir()
    (folder / "server.py").write_text(SERVER)
    (folder / "silent.py").write_text(
        "import pathlib, sys\npathlib.Path('serving').touch()\nsys.stdin.read()\npathlib.Path('ended').touch()\n"
    )
    command = [PYTHON, "-m", "funcmcp_cli.main", "migrate", ".", "--verify", "--command", f"{PYTHON} silent.py"]
    with running(command, folder=folder, env={"TMPDIR": str(temporary)}) as process:
        deadline = time.monotonic() + PATIENCE
        while not (folder / "serving").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert list(temporary.glob("funcmcp-migrate-*"))
        process.process.terminate()
        assert process.ended() == 128 + signal.SIGTERM
    assert list(temporary.iterdir()) == []
    assert (folder / "ended").exists()
    assert "Traceback" not in process.output
