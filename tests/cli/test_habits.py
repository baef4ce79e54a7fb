"""Sixty commands that users write wrong, or that other libraries have: one right line each, and no traceback."""

from __future__ import annotations

import json
import os
import socket
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
import typer

import funcmcp_cli.client_commands
import funcmcp_cli.install.command
import funcmcp_cli.install.discover  # noqa: F401 - they add their commands
from funcmcp_cli.commands import app
from funcmcp_cli.habits import correction_of
from tests.cli.forking import funcmcp, running
from tests.cli.processes import FUNCMCP

if TYPE_CHECKING:
    from collections.abc import Iterator

_TABLE: dict[str, Any] = json.loads(
    Path(__file__).parents[1].joinpath("data", "command_line_mistakes.json").read_text(encoding="utf-8")
)
_KITCHEN = "\n".join(_TABLE["kitchen"]) + "\n"


AS_A_SCRIPT = {"PYTHONSAFEPATH": "1"}
"""The folder is not in ``sys.path``, as for the console script and unlike ``python -m``."""


@pytest.fixture(scope="module")
def web_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a server for files, which has no MCP."""
    handler = partial(SimpleHTTPRequestHandler, directory=tmp_path_factory.mktemp("files"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def server_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int | None]:
    """The port of an MCP server without TLS."""
    folder = tmp_path_factory.mktemp("kitchen")
    (folder / "server.py").write_text(_KITCHEN, encoding="utf-8")
    with running([*FUNCMCP, "run", "server.py", "--port", "0"], folder=folder) as process:
        yield urlsplit(process.endpoint()).port


@pytest.fixture
def free_port() -> Iterator[int]:
    """A port that belongs to this test, and where nothing listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def folder_of(mistake: dict[str, Any], folder: Path) -> Path:
    for name, text in mistake["files"].items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_KITCHEN if text == "kitchen" else text, encoding="utf-8")
    return folder


def cases(*, serving: bool) -> list[Any]:
    return [
        pytest.param(mistake, id=f"{number}-{'-'.join(mistake['arguments'][:2])}")
        for number, mistake in enumerate(_TABLE["mistakes"], 1)
        if mistake.get("serves", False) is serving
    ]


@pytest.mark.parametrize("mistake", cases(serving=False))
def test_a_mistake_is_answered_by_the_right_line(
    mistake: dict[str, Any], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if mistake.get("posix") and os.name != "posix":
        pytest.skip("The quotes and paths are those of POSIX.")
    arguments = [_with_port(argument, request) for argument in mistake["arguments"]]
    ended = funcmcp(*arguments, folder=folder_of(mistake, tmp_path), env=AS_A_SCRIPT)
    lines = [line for line in ended.stderr.splitlines() if not line.startswith(("Usage: ", "Try ", "    "))]
    assert "Traceback" not in ended.stderr
    assert ended.returncode == mistake["exit_code"], ended.stderr
    assert mistake["line"] in (ended.stdout if ended.returncode == 0 else ended.stderr)
    assert len([line for line in lines if line]) <= 2


def _with_port(argument: str, request: pytest.FixtureRequest) -> str:
    for name in ("web_port", "server_port", "free_port"):
        if f"{{{name}}}" in argument:
            return argument.replace(f"{{{name}}}", str(request.getfixturevalue(name)))
    return argument


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
@pytest.mark.parametrize("mistake", cases(serving=True))
def test_a_habit_that_serves(mistake: dict[str, Any], tmp_path: Path) -> None:
    with running([*FUNCMCP, *mistake["arguments"]], folder=folder_of(mistake, tmp_path)) as process:
        assert process.endpoint().endswith("/mcp")


ORIGINAL = {
    "run": "--transport -t --host --port -p --path --log-level -l --no-banner --python --with --project --reload "
    "--with-requirements --skip-source --skip-env --reload-dir --stateless --module -m --server-spec",
    "inspect": "--server-spec --format -f --output -o --python --with --project --with-requirements --skip-env",
    "discover": "--source --json",
    "call": "--server-spec --target --command --transport -t --prompt --input-json --json --timeout --auth",
    "install": "--server-spec --name -n --with-editable --with --env -e --env-file --python --with-requirements "
    "--project --config-path --workspace --copy --env-var -v -f",
}
"""By command, the options of FastMCP 4.2.3 and of the official SDK 2.3.0. Ours has the same name."""

ORIGINAL_COMMANDS = "auth call dev discover generate-cli inspect install list login logout project run version whoami"


def test_each_command_and_option_of_the_originals_is_taken_or_answered() -> None:
    command = typer.main.get_command(app)
    ours: dict[str, Any] = command.commands  # type: ignore[attr-defined] # a group of commands
    unanswered = [name for name in ORIGINAL_COMMANDS.split() if name not in ours and correction_of([name]) is None]
    for name, text in ORIGINAL.items():
        taken = {option for parameter in ours[name].params for option in parameter.opts}
        for option in text.split():
            answer = correction_of([name, "server.py", option])
            if (option in taken) == (answer is not None):
                unanswered.append(f"{name} {option}")
    assert not unanswered


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["serve", "server.py"], "No such command 'serve'. Did you mean funcmcp run?"),
        (
            ["run", "server.py", "--transport=http"],
            "No such option: --transport. run serves HTTP, and --stdio serves stdin and stdout.",
        ),
        (["run", "server.py", "--no-banner"], "No such option: --no-banner. There is no banner."),
        (
            ["run", "server.py", "--with", "pandas"],
            "No such option: --with. Start the command with uv: uv run --with PACKAGE funcmcp run server.py.",
        ),
        (["run", "server.py", "--", "--transport=http"], None),
        (["inspect", "server.py", "--calls", "a.json"], None),
        (["--version"], None),
        ([], None),
    ],
)
def test_a_word_of_another_library_is_named_as_it_is_here(arguments: list[str], line: str | None) -> None:
    assert correction_of(arguments) == line
