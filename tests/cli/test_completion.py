"""What a shell offers at the Tab key."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.forking import funcmcp
from tests.cli.processes import environment
from tests.patience import PATIENCE

SERVER = '''
import sys
from typing import Literal

from funcmcp import MCPServer

print("printed while imported")
print("and on stderr", file=sys.stderr)
mcp = MCPServer("Kitchen")


@mcp.tool
def order(dish: Literal["soup", "tart"], warm: bool = True, portions: int = 1) -> str:
    """Order a dish.

    It takes a while."""
    return dish


@mcp.tool
def clean() -> str:
    return "clean"


@mcp.resource("menu://today")
def today() -> str:
    return "Soup"


@mcp.prompt
def suggest(taste: str) -> str:
    return taste
'''


def offered(folder: Path, *words: str) -> list[str]:
    """Return what is offered for the last word, as the script for bash asks for it."""
    variables = {
        "_FUNCMCP_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(["funcmcp", *words]),
        "COMP_CWORD": str(len(words)),
    }
    ended = funcmcp(folder=folder, env=variables)
    assert ended.stderr == ""
    return ended.stdout.split()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "broken.py").write_text("import nothing_like_this\n")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["ins"], ["inspect", "install"]),
        (["call", "server.py", "o"], ["order"]),
        (["call", "server.py", ""], ["order", "clean"]),
        (["call", "server.py", "order", ""], ["dish=", "warm=", "portions="]),
        (["call", "server.py", "order", "d"], ["dish="]),
        (["call", "server.py", "order", "dish=t"], ["dish=tart"]),
        (["call", "server.py", "order", "warm="], ["warm=true", "warm=false"]),
        (["call", "server.py", "order", "portions="], []),
        (["call", "server.py", "nothing", ""], []),
        (["read", "server.py", "menu"], ["menu://today"]),
        (["prompt", "server.py", ""], ["suggest"]),
        (["prompt", "server.py", "suggest", ""], ["taste="]),
        (["call", "broken.py", ""], []),
        (["call", "http://127.0.0.1:1/mcp", ""], []),
        (["call", "missing.py", ""], []),
    ],
)
def test_commands_tools_and_arguments_are_offered(folder: Path, words: list[str], expected: list[str]) -> None:
    assert sorted(offered(folder, *words)) == sorted(expected)


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_the_script_for_bash_completes_a_tool(folder: Path) -> None:
    command = Path(sys.executable).with_name("funcmcp")
    script = (
        'eval "$(funcmcp --show-completion bash)"\n'
        "COMP_WORDS=(funcmcp call server.py o) COMP_CWORD=3\n"
        "_funcmcp_completion funcmcp\n"
        'echo "${COMPREPLY[@]}"\n'
    )
    ended = subprocess.run(
        ["bash", "--norc", "-c", script],
        cwd=folder,
        env=environment(
            {"PATH": f"{command.parent}:/usr/bin:/bin", "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
        ),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (ended.stdout, ended.stderr) == ("order\n", "")
