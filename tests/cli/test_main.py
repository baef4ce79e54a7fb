"""The command itself: its version, its help, and what it says where its libraries are missing."""

from __future__ import annotations

import subprocess
from importlib import import_module
from pathlib import Path

import pytest

from funcmcp import __version__
from funcmcp_cli import main
from funcmcp_cli.commands import app
from tests.cli.processes import FUNCMCP, PYTHON, funcmcp
from tests.patience import PATIENCE

_SLOW = pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.every_python("Processes, signals and sockets are those of Python and asyncio.")


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=False)


def test_the_console_script_prints_the_version() -> None:
    script = Path(PYTHON).with_name("funcmcp")
    shown = subprocess.run([script, "--version"], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert shown.stdout == f"funcmcp {__version__}\n"


@_SLOW
def test_the_version_loads_nothing_heavy() -> None:
    code = (
        "import sys; from funcmcp_cli.main import main\n"
        "sys.argv[1:] = ['--version']\n"
        "try: main()\n"
        "finally: print(*sys.modules)"
    )
    loaded = set(python(code).stdout.split())
    assert "typer" in loaded
    assert not loaded & {"uvicorn", "httpx2", "pydantic", "watchfiles", "rich", "funcmcp._app.mcp_server"}


def test_each_command_is_in_the_module_that_is_imported_for_it() -> None:
    for module in main._MODULES.values():
        import_module(module)
    modules = {
        main._name_of(command): getattr(command.callback, "__module__", "") for command in app.registered_commands
    }
    modules |= {group.name: "funcmcp_cli.tasks" for group in app.registered_groups}
    assert modules == main._MODULES


@_SLOW
def test_a_command_loads_no_other_command() -> None:
    code = (
        "import sys; from funcmcp_cli.main import main\n"
        "sys.argv[1:] = ['pin', '--help']\n"
        "try: main()\n"
        "finally: print(*(name for name in sys.modules if name.startswith('funcmcp_cli')))"
    )
    loaded = set(python(code).stdout.split()) & set(main._MODULES.values())
    assert loaded == {"funcmcp_cli.commands", "funcmcp_cli.pin"}


@pytest.mark.parametrize("command", ["run", "inspect", "call"])
def test_help_names_every_command_and_its_arguments(command: str) -> None:
    assert command in funcmcp("--help").stdout
    shown = funcmcp(command, "--help")
    assert shown.returncode == 0
    assert "TARGET" in shown.stdout


SERVER = """
from funcmcp import MCPServer

mcp = MCPServer("Shop")


@mcp.tool
async def hello() -> str:
    return "\u65e5\u672c"
"""


@_SLOW
def test_characters_that_the_encoding_of_stdout_lacks_are_escapes(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER, encoding="utf-8")
    called = funcmcp("call", "server.py", "hello", folder=tmp_path, env={"PYTHONIOENCODING": "cp1252"})
    assert (called.returncode, called.stdout.strip()) == (0, r"\u65e5\u672c")


@_SLOW
@pytest.mark.parametrize("library", ["typer", "rich", "httpx2", "uvicorn"])
def test_a_missing_library_is_one_line_with_the_command_that_installs_it(library: str) -> None:
    arguments = {"uvicorn": ["run", "x.py"]}.get(library, ["inspect", "http://127.0.0.1:1/mcp"])
    ended = python(
        f"import sys; sys.modules[{library!r}] = None; sys.argv[1:] = {arguments!r}\n"
        "from funcmcp_cli.main import main; main()"
    )
    assert ended.returncode == 1
    assert ended.stderr == f"{library} is not installed. The command line needs: pip install funcmcp\n"


@_SLOW
@pytest.mark.parametrize(
    ("library", "imported", "extra"),
    [
        ("joserfc", "funcmcp._auth.entra_id", "auth"),
        ("redis", "funcmcp._adapters.redis.sessions", "redis"),
        ("azure", "funcmcp.azure", "azure"),
    ],
)
def test_an_extra_that_the_server_needs_is_named_with_the_line_that_needs_it(
    tmp_path: Path, library: str, imported: str, extra: str
) -> None:
    server = tmp_path / "server.py"
    needs = {"azure": "funcmcp.azure.http_app(funcmcp.MCPServer('m'))"}.get(library, "")
    server.write_text(f"import funcmcp\nimport {imported}\n{needs}\n")
    ended = python(
        f"import sys; sys.modules[{library!r}] = None; sys.argv[1:] = ['run', {str(server)!r}]\n"
        "from funcmcp_cli.main import main; main()"
    )
    assert ended.returncode == 1
    [line] = ended.stderr.splitlines()
    assert line.startswith(f"{server}, line ")
    assert line.endswith(f': pip install "funcmcp[{extra}]"')
    assert line.count("pip install") == 1


def test_the_library_alone_says_how_to_install_the_command(tmp_path: Path) -> None:
    (tmp_path / "funcmcp").symlink_to(ROOT / "src" / "funcmcp")
    shown = subprocess.run(
        [
            PYTHON,
            "-I",
            "-S",
            "-c",
            f"import runpy, sys; sys.path.insert(0, {str(tmp_path)!r}); runpy.run_module('funcmcp')",
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (shown.returncode, shown.stderr) == (1, "The command line is not installed. Run: pip install funcmcp\n")


@_SLOW
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is of Linux")
@pytest.mark.parametrize("arguments", [["new", "--help"], ["discover", "--json"]])
def test_output_to_a_full_disk_is_an_error_in_one_line(arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [*FUNCMCP, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False
        )
    assert (ended.returncode, ended.stderr) == (1, "The output cannot be written: No space left on device.\n")
