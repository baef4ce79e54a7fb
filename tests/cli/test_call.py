"""``funcmcp call``: arguments in, results out, on a target and on a URL."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.forking import funcmcp, running
from tests.cli.processes import FUNCMCP, environment
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SLOW = pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")

NOT_JSON = (
    "--input-json is not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1). "
    "Write it like --input-json '{\"a\": 1}'."
)
COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
DEFAULTS = {
    "text": "",
    "number": 0,
    "whole": 0,
    "yes": False,
    "many": [],
    "one": {},
    "either": "",
    "anything": None,
    "maybe": None,
}


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with running([*FUNCMCP, "run", "kinds.py", "--port", "0"], folder=folder) as process:
        yield process.endpoint()


@pytest.mark.parametrize("where", ["target", "url"])
def test_values_are_read_as_the_tools_schema_wants_them(folder: Path, url: str, where: str) -> None:
    pairs = [
        "text=5",
        "number=1.5",
        "whole=7",
        "yes=true",
        "many=[1, 2]",
        'one={"a": 1}',
        "either=3",
        "anything=[null]",
    ]
    shown = funcmcp("call", "kinds.py" if where == "target" else url, "kinds", *pairs, "maybe=null", folder=folder)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert json.loads(shown.stdout) == {
        **DEFAULTS,
        "text": "5",
        "number": 1.5,
        "whole": 7,
        "yes": True,
        "many": [1, 2],
        "one": {"a": 1},
        "either": 3,
        "anything": [None],
    }


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("text=a=b", {"text": "a=b"}),
        ("text=", {"text": ""}),
        ("text=true", {"text": "true"}),
        ('text="x"', {"text": '"x"'}),
        ("text=Grüße ☃", {"text": "Grüße ☃"}),
        ("either=three", {"either": "three"}),
        ("either=1.5", {"either": "1.5"}),
        ("anything=word", {"anything": "word"}),
        ("anything=12", {"anything": 12}),
    ],
)
def test_text_stays_text_where_text_is_wanted(folder: Path, pair: str, value: dict[str, Any]) -> None:
    text = [] if pair.startswith("text=") else ["text="]
    shown = funcmcp("call", "kinds.py", "kinds", *text, pair, folder=folder)
    assert json.loads(shown.stdout) == {**DEFAULTS, **value}


def test_all_arguments_can_be_one_json_object(folder: Path, url: str) -> None:
    shown = funcmcp("call", url, "kinds", "--input-json", '{"text": "ü", "many": [3]}', folder=folder)
    assert json.loads(shown.stdout) == {**DEFAULTS, "text": "ü", "many": [3]}


@_SLOW
@pytest.mark.parametrize("where", ["target", "url"])
def test_values_can_come_from_files_and_from_stdin(folder: Path, url: str, where: str, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("Grüße\n")
    (tmp_path / "numbers.json").write_text("[1, 2]")
    server = "kinds.py" if where == "target" else url
    pairs = [f"text=@{tmp_path}/note.txt", f"many=@{tmp_path}/numbers.json"]
    shown = funcmcp("call", server, "kinds", *pairs, folder=folder)
    assert json.loads(shown.stdout) == {**DEFAULTS, "text": "Grüße\n", "many": [1, 2]}
    shown = funcmcp("call", server, "kinds", "text=@@you", folder=folder)
    assert json.loads(shown.stdout) == {**DEFAULTS, "text": "@you"}
    for arguments, stdin in ((["text=@-"], b"typed"), (["--input-json", "@-"], b'{"text": "typed"}')):
        ended = subprocess.run(
            [*FUNCMCP, "call", server, "kinds", *arguments],
            cwd=folder,
            env=environment(),
            input=stdin,
            capture_output=True,
            timeout=PATIENCE,
            check=True,
        )
        assert json.loads(ended.stdout) == {**DEFAULTS, "text": "typed"}


@_SLOW
def test_json_is_the_whole_result(folder: Path) -> None:
    shown = funcmcp("call", "kinds.py", "only_structured", "--json", folder=folder)
    result = json.loads(shown.stdout)
    assert result["structuredContent"] == {"a": ["ü", 1]}
    assert result["content"][0]["type"] == "image"
    ended = funcmcp("call", "kinds.py", "fail", "--json", folder=folder)
    assert (ended.returncode, json.loads(ended.stdout)["isError"], ended.stderr) == (1, True, "")


def test_images_and_files_of_a_result_are_saved(folder: Path, tmp_path: Path) -> None:
    pictures = tmp_path / "pictures"
    for _ in range(2):
        shown = funcmcp("call", "kinds.py", "blocks", "--save", str(pictures), folder=folder)
        assert shown.returncode == 0
        assert "first" in shown.stdout
    assert sorted(file.name for file in pictures.iterdir()) == [
        "1-2.bin", "1-2.txt", "1.bin", "1.txt", "image-2.png", "image.png",
    ]  # fmt: skip
    assert (pictures / "image.png").read_bytes() == b"123"
    assert (pictures / "1.txt").read_text() == "a note"
    assert shown.stderr.splitlines()[0] == f"Saved {pictures}/image-2.png (3 bytes)"


@_SLOW
def test_json_on_a_terminal_has_lines_and_colours(folder: Path) -> None:
    ours, theirs = pty.openpty()
    try:
        subprocess.run(
            [*FUNCMCP, "call", "kinds.py", "kinds", "text=\x1b[2J"],
            cwd=folder,
            env=environment({"TERM": "xterm-256color"}),
            stdout=theirs,
            timeout=PATIENCE,
            check=True,
        )
        shown = os.read(ours, 65536).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    assert "\x1b[2J" not in shown
    assert len(COLOUR.findall(shown)) > 10
    assert json.loads(COLOUR.sub("", shown)) == {**DEFAULTS, "text": "\x1b[2J"}


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["kinds", '{"text": "a"}'],
            '\'{"text": "a"}\' is not an argument. Write it like key=value. Pass a JSON object with --input-json.',
        ),
        (
            ["kinds", "text=@none.txt"],
            "text=@none.txt: none.txt does not exist. Write a text that begins with @ as @@.",
        ),
        (["kinds", "text=@."], "text=@.: . cannot be read: Is a directory."),
        (["blocks", "--save", "kinds.py/x"], "--save: kinds.py/x cannot be written: Not a directory."),
        (["kinds", "text"], "'text' is not an argument. Write it like key=value."),
        (
            ["kinds", "text=two", "words"],
            "'words' is not an argument. Write it like key=value. Quote a value with spaces: 'text=two words'",
        ),
        (["kinds", "=x"], "'=x' is not an argument. Write it like key=value."),
        (["kinds", "text=1", "text=2"], "text is passed twice. Write a list as JSON: text='[1, 2]'."),
        (["kinds", "whole=many"], "whole must be an integer, not 'many'."),
        (["kinds", "number=NaN"], "number must be a number, not 'NaN'."),
        (["kinds", "--input-json", "[]"], "--input-json must be an object, like --input-json '{\"a\": 1}'."),
        (
            ["kinds", "--input-json", "{"],
            NOT_JSON,
        ),
        (
            ["kinds", "text=1", "--input-json", "{}"],
            "Pass the arguments either as key=value or with --input-json, not both.",
        ),
        (["kind"], "The server has no tool 'kind'. Did you mean kinds?"),
        (
            ["xyzzy"],
            "The server has no tool 'xyzzy'. It has kinds, fail, only_structured, blocks, choose, count, pid.",
        ),
        (["kinds", b"text=\xff"], "The value of 'text' is not UTF-8 text. Pass bytes as base64."),
        (
            ["kinds", "--input-json", r'{"text": "\ud800"}'],
            "--input-json has text that is not Unicode, such as a lone surrogate.",
        ),
    ],
)
def test_what_can_not_be_called_is_one_clear_line(folder: Path, arguments: list[str], line: str) -> None:
    ended = funcmcp("call", "kinds.py", *arguments, folder=folder)
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", f"{line}\n")


def test_arguments_that_the_tool_refuses_are_told_on_stderr_with_exit_code_1(folder: Path, url: str) -> None:
    ended = funcmcp("call", url, "kinds", "whole=1.5", folder=folder)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "text" in ended.stderr
    assert "whole" in ended.stderr


@pytest.mark.parametrize("where", ["target", "url"])
def test_a_tools_error_goes_to_stderr_with_exit_code_1(folder: Path, url: str, where: str) -> None:
    ended = funcmcp("call", "kinds.py" if where == "target" else url, "fail", folder=folder)
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", "That did not work.\n")


def test_structured_content_is_printed_where_there_is_no_text(folder: Path) -> None:
    shown = funcmcp("call", "kinds.py", "only_structured", folder=folder)
    assert shown.stdout == '{\n  "a": [\n    "ü",\n    1\n  ]\n}\n[image image/png, 4 base64 characters]\n'


def test_blocks_that_are_no_text_are_named(folder: Path) -> None:
    shown = funcmcp("call", "kinds.py", "blocks", folder=folder)
    assert shown.stdout.splitlines() == [
        "first",
        "[image image/png, 4 base64 characters]",
        "[link orders://17]",
        "a note",
        "[resource data://1, 4 base64 characters]",
    ]


@pytest.mark.parametrize("where", ["target", "url"])
def test_a_question_is_declined_where_nobody_is_at_a_terminal(folder: Path, url: str, where: str) -> None:
    shown = funcmcp("call", "kinds.py" if where == "target" else url, "choose", folder=folder)
    assert (shown.returncode, shown.stdout) == (0, "decline: None\n")
    assert shown.stderr == "Declined, because stdin is not a terminal: What will it be?\n"


class Terminal:
    """The command with a terminal for stdin and stderr; stdout is a pipe."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [*FUNCMCP, *arguments],
            cwd=folder,
            env=environment({"TERM": "xterm-256color"}),
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=theirs,
            text=True,
        )
        os.close(theirs)
        self.shown = ""

    def read_until(self, text: str) -> None:
        """Wait for a text on the terminal, after those that were waited for before."""
        seen = ""
        while text not in seen:
            assert select.select([self._ours], [], [], PATIENCE)[0], f"{text!r} never came: {self.shown!r}"
            part = COLOUR.sub("", os.read(self._ours, 65536).decode())
            seen += part
            self.shown += part

    def type(self, text: str) -> None:
        """Type a line."""
        os.write(self._ours, f"{text}\n".encode())

    def close(self) -> None:
        """End it all."""
        self.process.kill()
        self.process.communicate()
        os.close(self._ours)


@_SLOW
def test_a_question_is_asked_at_the_terminal_field_by_field(folder: Path) -> None:
    terminal = Terminal(folder, "call", "kinds.py", "choose")
    try:
        for question, text in (
            ("Answer? [y/n] (y): ", "y"),
            ("size [small/large]: ", "large"),
            ("guests (How many?) (2): ", "many"),
            ("guests (How many?) (2): ", "3"),
            ("note: ", ""),
            ("sure [y/n]: ", "y"),
        ):
            terminal.read_until(question)
            terminal.type(text)
        output = terminal.process.communicate(timeout=PATIENCE)[0]
    finally:
        terminal.close()
    assert output == "accept: size='large' guests=3 note=None sure=True\n"
    assert "What will it be?" in terminal.shown
    assert "guests must be an integer" in terminal.shown


@_SLOW
def test_a_question_can_be_declined_at_the_terminal(folder: Path, url: str) -> None:
    terminal = Terminal(folder, "call", url, "choose")
    try:
        terminal.read_until("Answer? [y/n] (y): ")
        terminal.type("n")
        assert terminal.process.communicate(timeout=PATIENCE)[0] == "decline: None\n"
    finally:
        terminal.close()


@_SLOW
def test_ctrl_c_at_a_question_ends_the_command_without_a_traceback(folder: Path) -> None:
    terminal = Terminal(folder, "call", "kinds.py", "choose")
    try:
        terminal.read_until("Answer? [y/n] (y): ")
        # A signal just before input() begins to read is noticed only with the next key or signal: CPython's own race.
        while terminal.process.poll() is None:
            terminal.process.send_signal(2)
            time.sleep(0.5)
        assert terminal.process.returncode != 0
    finally:
        terminal.close()
    assert "Traceback" not in terminal.shown


@_SLOW
@pytest.mark.parametrize("where", ["target", "url"])
def test_progress_is_shown_in_a_terminal_and_the_result_stays_plain(folder: Path, url: str, where: str) -> None:
    terminal = Terminal(folder, "call", "kinds.py" if where == "target" else url, "count")
    try:
        terminal.read_until("3/3")
        assert terminal.process.communicate(timeout=PATIENCE)[0] == "counted\n"
    finally:
        terminal.close()


def test_there_is_no_progress_in_a_pipe(folder: Path, url: str) -> None:
    shown = funcmcp("call", url, "count", folder=folder)
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, "counted\n", "")


def test_a_tool_beside_one_that_can_not_be_listed_can_be_called(folder: Path) -> None:
    shown = funcmcp("call", "faulty.py", "fine", "a=1", folder=folder)
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, "1\n", "")


def test_a_tool_that_can_not_be_listed_is_not_called_and_the_reason_said(folder: Path) -> None:
    shown = funcmcp("call", "faulty.py", "bad", "x=1", folder=folder)
    assert (shown.returncode, shown.stdout) == (1, "")
    line = "The tool bad cannot be used. An annotation of bad uses the unknown name 'Foo'"
    assert shown.stderr.startswith(line)


@pytest.mark.parametrize("arguments", [["text=a", "nubmer=1"], ["--input-json", '{"text": "a", "nubmer": 1}']])
def test_an_error_about_an_argument_is_not_preceded_by_a_warning_of_it(folder: Path, arguments: list[str]) -> None:
    shown = funcmcp("call", "kinds.py", "kinds", *arguments, folder=folder)
    assert shown.returncode == 1
    assert shown.stderr == "nubmer: is not an argument. Did you mean number?\n"
    assert shown.stdout == ""


@pytest.fixture(scope="module")
def closed_url(folder: Path) -> Iterator[str]:
    with running([*FUNCMCP, "run", "closed.py", "--port", "0"], folder=folder) as process:
        yield process.endpoint()


KEY = ["--header", "X-Api-Key: key-of-ann-123456"]


@pytest.mark.parametrize("where", ["target", "url"])
@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["call", "whose"], "ann"),
        (["read", "closed://note"], "a note"),
        (["prompt", "greet"], "user: hello"),
        (["inspect"], "whose"),
    ],
)
def test_a_protected_server_is_used_with_a_header_field(
    folder: Path, closed_url: str, where: str, arguments: list[str], printed: str
) -> None:
    server = "closed.py" if where == "target" else closed_url
    shown = funcmcp(arguments[0], server, *arguments[1:], *KEY, folder=folder)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert printed in shown.stdout


@pytest.mark.parametrize(
    ("where", "credentials"), [("url", []), ("url", ["--bearer", "wrong"]), ("target", ["--bearer", "wrong"])]
)
def test_a_protected_server_without_valid_credentials_is_one_clear_line(
    folder: Path, closed_url: str, where: str, credentials: list[str]
) -> None:
    server = "closed.py" if where == "target" else closed_url
    ended = funcmcp("call", server, "whose", *credentials, folder=folder)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == (
        f"{server} requires credentials (401). Pass valid ones with --bearer TOKEN or --header NAME:VALUE.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [(["read", "closed://note"], "a note"), (["prompt", "greet"], "user: hello"), (["inspect"], "tool\twhose")],
)
def test_a_protected_file_is_used_without_credentials(folder: Path, arguments: list[str], printed: str) -> None:
    """Who may start the file has access to everything, as on stdio."""
    shown = funcmcp(arguments[0], "closed.py", *arguments[1:], folder=folder)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert printed in shown.stdout


def test_a_bearer_token_comes_from_the_environment_too(folder: Path) -> None:
    shown = funcmcp("call", "bearer.py", "token", folder=folder, env={"FUNCMCP_BEARER": "abc.def"})
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, "Bearer abc.def\n", "")


@pytest.mark.parametrize("where", ["target", "url"])
def test_verbose_shows_log_messages_and_progress_as_lines(folder: Path, closed_url: str, where: str) -> None:
    server = "closed.py" if where == "target" else closed_url
    shown = funcmcp("call", server, "whose", "--verbose", *KEY, folder=folder)
    assert (shown.returncode, shown.stdout) == (0, "ann\n")
    assert shown.stderr.splitlines() == ["info: someone asks", "progress: 1/2 half done"]


@pytest.mark.parametrize("command", [["inspect"], ["call", "setting"]])
def test_a_target_is_imported_outside_of_an_event_loop(folder: Path, command: list[str]) -> None:
    shown = funcmcp(command[0], "looping.py", *command[1:], folder=folder)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout
