"""Targets, right and wrong: a wrong one is one line that says what to do."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest

from funcmcp import __version__
from funcmcp_cli.failure import Failure
from funcmcp_cli.targets import load
from tests.cli import processes
from tests.cli.forking import funcmcp
from tests.patience import PATIENCE

ROOT = Path(__file__).parents[2]
NOT_INSTALLED = (
    "is neither in this folder nor installed. Pass a file, such as server.py, or a module that can be imported."
)
MISSING = (
    "missing.py, line 2: ModuleNotFoundError: No module named 'no_such_library'. "
    "Install it (pip install), or correct its name."
)


NO_ATTRIBUTE = "line 2: AttributeError: type object 'MCPServer' has no attribute"


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        (
            "from funcmcp import MCPServer\nmcp = MCPServer.from_fastapi(None)\n",
            f"{NO_ATTRIBUTE} 'from_fastapi'. Use mcp.tools_from_asgi(app)",
        ),
        (
            "from funcmcp import MCPServer\nmcp = MCPServer.no_such_name\n",
            f"{NO_ATTRIBUTE} 'no_such_name'",
        ),
        (
            "open('no-such-file.csv')\n",
            "line 1: FileNotFoundError: [Errno 2] No such file or directory: 'no-such-file.csv'",
        ),
    ],
    ids=["habit", "name", "file"],
)
def test_code_that_fails_at_its_import_is_one_line_with_the_next_step(tmp_path: Path, code: str, answer: str) -> None:
    (tmp_path / "server.py").write_text(code, encoding="utf-8")
    shown = funcmcp("inspect", "server.py", folder=tmp_path)
    assert (shown.returncode, shown.stderr) == (1, f"server.py, {answer}\n")


def test_a_file_beside_the_server_that_another_folder_lacks_gets_advice(tmp_path: Path) -> None:
    for name in ("shop", "elsewhere"):
        (tmp_path / name).mkdir()
    (tmp_path / "shop" / "sales.csv").write_text("pieces\n3\n", encoding="utf-8")
    (tmp_path / "shop" / "server.py").write_text("open('sales.csv')\n", encoding="utf-8")
    shown = funcmcp("inspect", str(tmp_path / "shop" / "server.py"), folder=tmp_path / "elsewhere")
    advice = ". Clients start the server in another folder: write Path(__file__).parent / 'sales.csv'.\n"
    assert (shown.returncode, shown.stderr.endswith(advice)) == (1, True), shown.stderr


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("server.py", "Greeter"),
        ("./server.py:mcp", "Greeter"),
        ("server", "Greeter"),
        ("server:mcp", "Greeter"),
        ("same.py", "same"),
        ("two.py:two", "two"),
        ("shop/server.py", "Shop"),
        ("shop.server", "Shop"),
        ("shop.server:mcp", "Shop"),
    ],
)
def test_a_target_is_a_file_or_a_module_with_or_without_a_name(folder: Path, target: str, name: str) -> None:
    shown = funcmcp("inspect", target, folder=folder)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith(name)


def test_a_target_may_be_in_any_folder_and_its_siblings_can_be_imported(folder: Path, tmp_path: Path) -> None:
    shown = funcmcp("call", str(folder / "server.py"), "greet", "name=Ada", folder=tmp_path)
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, "Hello, Ada!\n", "")


@pytest.mark.parametrize(
    ("target", "line"),
    [
        (
            "localhost:8000",
            "localhost:8000 looks like the endpoint of a running server. Write it as http://localhost:8000.",
        ),
        (
            "127.0.0.1:8000/mcp",
            "127.0.0.1:8000/mcp looks like the endpoint of a running server. Write it as http://127.0.0.1:8000/mcp.",
        ),
        ("nope.py", "nope.py does not exist. Did you mean none.py?"),
        ("serverr.py:mcp", "serverr.py does not exist. Did you mean server.py?"),
        ("xyz.py", "xyz.py does not exist. Pass a file, such as server.py, or a module, such as shop.server."),
        (
            "notes.txt/x",
            "notes.txt/x does not exist. Pass a file, such as server.py, or a module, such as shop.server.",
        ),
        ("odd", "odd is a folder without server.py. Did you mean odd/pathlib.py?"),
        (
            "nope",
            f"The module 'nope' {NOT_INSTALLED}",
        ),
        (
            "shop.nope:mcp",
            f"The module 'shop.nope' {NOT_INSTALLED}",
        ),
        (
            "server.py:1",
            "server.py:1: the part after the colon must be the server's name in the file, such as :mcp.",
        ),
        ("server.py:app", "server.py:app does not exist. Use server.py:mcp."),
        ("server.py:greet", "server.py:greet is not an MCPServer. Use server.py:mcp."),
        (
            "none.py:x",
            "none.py:x is not an MCPServer. Make a server at the top level: mcp = MCPServer('name').",
        ),
        ("bare.py", "mcp in bare.py is the class MCPServer. Write mcp = MCPServer('name')."),
        (
            "relative.py",
            (
                "relative.py, line 1: ImportError: attempted relative import with no known parent package. "
                "Import by the file's name, or add an __init__.py to the folder of relative.py."
            ),
        ),
        ("none.py", "none.py has no server. Make one at the top level: mcp = MCPServer('name')."),
        ("two.py", "two.py has more than one server. Use one of two.py:one, two.py:two, two.py:uno."),
        ("syntax.py", "syntax.py, line 2: SyntaxError: '(' was never closed. Correct it there."),
        (
            "missing.py",
            MISSING,
        ),
        (
            "missing",
            MISSING,
        ),
        (
            "foreign.py",
            (
                "foreign.py, line 1: ModuleNotFoundError: No module named 'fastmcp'. "
                "Install it, or move the server to funcmcp: funcmcp migrate foreign.py"
            ),
        ),
        (
            "of_another.py",
            (
                "of_another.py has no server. mcp is a server of the package fastmcp. Run it with the command of that "
                "package, or move it to funcmcp: funcmcp migrate of_another.py"
            ),
        ),
        ("deep.py", "failing.py, line 2: ValueError: the setting is missing"),
        ("leaving.py", "leaving.py, line 1: SystemExit: 3"),
        ("odd/pathlib.py", "odd/pathlib.py has the name of another module, pathlib. Rename the file."),
    ],
)
@pytest.mark.parametrize("command", ["run", "inspect"])
def test_a_wrong_target_is_one_clear_line_and_exit_code_1(folder: Path, command: str, target: str, line: str) -> None:
    ended = funcmcp(command, target, folder=folder)
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", f"{line}\n")


def test_a_tool_that_can_not_be_registered_is_one_line_with_its_place(folder: Path) -> None:
    ended = funcmcp("run", "repeated.py", folder=folder)
    assert ended.returncode == 1
    assert ended.stderr.startswith("repeated.py, line 10: RegistrationError: ")
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("options", [["--reload"], ["--workers", "2"]])
def test_a_wrong_target_is_one_line_with_worker_processes_too(folder: Path, options: list[str]) -> None:
    ended = funcmcp("run", "syntax.py", *options, folder=folder)
    assert ended.returncode == 1
    assert ended.stderr == "syntax.py, line 2: SyntaxError: '(' was never closed. Correct it there.\n"


def test_the_orders_sample_is_a_target_from_anywhere(tmp_path: Path) -> None:
    file = tmp_path / "orders.db"
    target = str(ROOT / "samples/orders/server.py")
    shown = funcmcp("call", target, "search_menu", "query=espresso", folder=tmp_path, env={"ORDERS_DB": str(file)})
    assert shown.stdout == '[{"itemId":"espresso","name":"Espresso","category":"drink","price":2.4}]\n'
    assert file.exists()


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
def test_two_changes_of_a_file_within_a_second_are_both_seen(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    moment = time.time() + PATIENCE  # so that the file is new however long the command takes
    for text in ("first", "later"):
        file.write_text(f"from funcmcp import MCPServer\nmcp = MCPServer('{text}')\n")
        os.utime(file, (moment, moment))
        shown = processes.funcmcp("inspect", "server.py", folder=tmp_path, env={"PYTHONDONTWRITEBYTECODE": ""})
        assert shown.stdout.startswith(text)


@pytest.mark.parametrize("file", ["server.py", "function_app.py"])
def test_a_folder_is_the_server_in_its_server_py_or_function_app_py(folder: Path, tmp_path: Path, file: str) -> None:
    (tmp_path / file).write_text((folder / "same.py").read_text())
    shown = [funcmcp("inspect", target, folder=tmp_path).stdout.splitlines()[:1] for target in (".", str(tmp_path))]
    assert shown == [[f"same {__version__} (MCP 2026-07-28)"]] * 2


def test_run_in_a_folder_without_a_server_says_what_to_name(tmp_path: Path) -> None:
    ended = funcmcp("run", folder=tmp_path)
    line = ". is a folder without server.py. Pass the file of the server, or make a project: funcmcp new NAME\n"
    assert (ended.returncode, ended.stderr) == (1, line)


@pytest.mark.parametrize("call", ["mcp.run()", "mcp.run('http')", "asyncio.run(mcp.run_async('http'))"])
def test_a_file_that_serves_when_it_is_imported_is_a_failure(tmp_path: Path, call: str) -> None:
    file = tmp_path / f"unguarded_{len(call)}.py"
    file.write_text(f"import asyncio\nfrom funcmcp import MCPServer\nmcp = MCPServer('a')\n{call}\n")
    method = "run_async" if "run_async" in call else "run"
    text = f"line 4: RuntimeError: mcp.{method}() is called while the file is imported. Write it under: if __name__"
    with pytest.raises(Failure, match=re.escape(text)):
        load(str(file))


def test_an_application_with_a_server_in_it_is_served_by_uvicorn(tmp_path: Path) -> None:
    file = tmp_path / "of_an_application.py"
    text = "from fastapi import FastAPI\nfrom funcmcp import MCPServer\nmcp, app = MCPServer('a'), FastAPI()\n"
    file.write_text(text)
    sentence = "is a FastAPI application, which uvicorn of_an_application:app serves. Its server is "
    with pytest.raises(Failure, match=re.escape(f"{file}:app {sentence}{file}:mcp.")):
        load(f"{file}:app")


MOUNTS = """
from funcmcp import MCPServer
from funcmcp.compat import FastMCP

stock, orders, shop = MCPServer("stock"), FastMCP("orders"), FastMCP("shop")
orders.mount(stock, "stock")
shop.mount(orders, "orders")
"""


def test_a_server_that_another_one_mounts_is_not_the_one_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(MOUNTS)
    shown = funcmcp("inspect", "shop.py", folder=tmp_path)
    assert (shown.returncode, shown.stdout[:4]) == (0, "shop")
    (tmp_path / "shops.py").write_text(f"{MOUNTS}\nother = MCPServer('other')\n")
    shown = funcmcp("inspect", "shops.py", folder=tmp_path)
    assert shown.stderr == "shops.py has more than one server. Use one of shops.py:shop, shops.py:other.\n"
