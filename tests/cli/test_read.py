"""``funcmcp read`` and ``funcmcp prompt``, on a target and on a URL."""

from __future__ import annotations

import os
import pty
import subprocess
from typing import TYPE_CHECKING

import pytest

from funcmcp_cli.show import print_messages, print_result
from tests.cli.forking import funcmcp, running
from tests.cli.processes import FUNCMCP, environment
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ON_BOTH = pytest.mark.parametrize("where", ["target", "url"])


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with running([*FUNCMCP, "run", "menu.py", "--port", "0"], folder=folder) as process:
        yield process.endpoint()


def output(folder: Path, *arguments: str) -> bytes:
    """Return what a command writes into a pipe, byte by byte."""
    ended = subprocess.run(
        [*FUNCMCP, *arguments], cwd=folder, env=environment(), capture_output=True, timeout=PATIENCE, check=True
    )
    return ended.stdout


def shown_in_a_terminal(folder: Path, *arguments: str) -> str:
    ours, theirs = pty.openpty()
    try:
        subprocess.run(
            [*FUNCMCP, *arguments], cwd=folder, env=environment(), stdout=theirs, timeout=PATIENCE, check=True
        )
        return os.read(ours, 65536).decode()
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
@ON_BOTH
@pytest.mark.parametrize(
    ("uri", "printed"),
    [
        ("menu://today", b"Soup\nTart\n"),
        ("menu://dishes/tart", b'{"name":"tart"}\n'),
        ("menu://logo", bytes(range(256))),
        ("menu://both", b"Soup\n\x00\xff"),
        ("menu://odd", b"\x1b[2Jgone\n"),
    ],
)
def test_what_a_resource_holds_goes_to_stdout_as_it_is(
    folder: Path, url: str, where: str, uri: str, printed: bytes
) -> None:
    assert output(folder, "read", "menu.py" if where == "target" else url, uri) == printed


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
def test_a_terminal_gets_no_bytes_and_nothing_that_steers_it(folder: Path) -> None:
    assert shown_in_a_terminal(folder, "read", "menu.py", "menu://both") == (
        "Soup\r\n[resource menu://both, 4 base64 characters]\r\n"
    )
    assert shown_in_a_terminal(folder, "read", "menu.py", "menu://odd") == "\\x1b[2Jgone\r\n"


@ON_BOTH
def test_the_messages_of_a_prompt_are_printed_with_their_roles(folder: Path, url: str, where: str) -> None:
    shown = funcmcp("prompt", "menu.py" if where == "target" else url, "suggest", "guests=3", folder=folder)
    assert (shown.returncode, shown.stdout, shown.stderr) == (
        0,
        "user: A hearty meal for 3.\nassistant: Soup?\n",
        "",
    )


def test_what_looks_like_json_is_text_in_a_prompts_argument(folder: Path) -> None:
    shown = funcmcp("prompt", "menu.py", "suggest", "guests=3", "taste=[1]", folder=folder)
    assert shown.stdout.splitlines()[0] == "user: A [1] meal for 3."


@ON_BOTH
def test_a_question_of_a_prompt_is_declined_where_nobody_is_at_a_terminal(folder: Path, url: str, where: str) -> None:
    shown = funcmcp("prompt", "menu.py" if where == "target" else url, "ask", folder=folder)
    assert shown.stdout == "user: decline\nuser: [image image/png, 4 base64 characters]\n"
    assert shown.stderr == "Declined, because stdin is not a terminal: Which word?\n"


@ON_BOTH
@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["read", "other:none"], "The server answered with error -32602: Resource not found"),
        (
            ["read", "menu://dishs/tart"],
            (
                "The server answered with error -32602: Resource not found. Did you mean "
                "menu://dishes/soup or menu://dishes/{dish} or menu://today?"
            ),
        ),
        (["prompt", "sugest"], "The server has no prompt 'sugest'. Did you mean suggest?"),
        (["prompt", "xyzzy"], "The server has no prompt 'xyzzy'. It has suggest, ask."),
        (["prompt", "suggest", "guests"], "'guests' is not an argument. Write it like key=value."),
        (
            ["prompt", "suggest", "guests=1", "guests=2"],
            "guests is passed twice. Write a list as JSON: guests='[1, 2]'.",
        ),
        (["prompt", "suggest"], "The server answered with error -32602: guests: is required (an integer)"),
        (
            ["prompt", "suggest", "guests=10"],
            r"The server answered with error -32603: So many guests\x1b[2J can't be seated.",
        ),
    ],
)
def test_what_can_not_be_read_is_one_clear_line(
    folder: Path, url: str, where: str, arguments: list[str], line: str
) -> None:
    command, *options = arguments
    ended = funcmcp(command, "menu.py" if where == "target" else url, *options, folder=folder)
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", f"{line}\n")


@pytest.mark.parametrize(
    ("command", "line"),
    [("read", "same has no resources."), ("prompt", "The server has no prompt 'x:y'. It has no prompts.")],
)
def test_a_server_that_has_none_says_so_in_one_line(folder: Path, command: str, line: str) -> None:
    ended = funcmcp(command, "same.py", "x:y", folder=folder)
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", f"{line}\n")


def test_what_is_said_about_a_block_stays_in_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    link = {"type": "resource_link", "uri": "a\nb", "name": "n"}
    print_messages({"messages": [{"role": "user\nx", "content": link}]}, as_json=False)
    print_result({"content": [link, {"type": "text", "text": "one\ntwo"}]}, None, as_json=False)
    assert capsys.readouterr().out == "user\\nx: [link a\\nb]\n[link a\\nb]\none\ntwo\n"
