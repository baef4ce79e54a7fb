"""What the commands write: characters that steer a terminal are spelled out, and one module does all of it."""

from __future__ import annotations

import ast
import errno
import json
from pathlib import Path

import pytest

from funcmcp_cli import output

COMMAND_LINE = Path(output.__file__).parent
WRITERS = {"output.py", "console.py"}
PROBE = "probe.py"  # a process of its own, whose stdout is a pipe to the doctor
STEERING = [
    "\x1b[2J", "\x07", "\x00", "\x7f", "\x9b31m", "\x85", "\r", "\x08",
    "\u202e", "\u2066", "\u200f", "\u061c", "\u2028", "\ud800",
]  # fmt: skip


@pytest.mark.parametrize("text", STEERING, ids=ascii)
def test_a_character_that_steers_a_terminal_is_spelled_out(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    output.write_line(f"before{text}after")
    output.write_line(f"before{text}after", error=True)
    captured = capsys.readouterr()
    assert captured.out == captured.err
    assert text[0] not in captured.out
    assert captured.out.isprintable() is False  # the line feed
    assert captured.out.rstrip("\n").isprintable()
    assert captured.out.startswith("before\\")


@pytest.mark.parametrize("text", ["Grüße ☃ 東京 🙂", "two\nlines", "a\ttab"])
def test_other_text_is_written_as_it_is(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    output.write_line(text)
    assert capsys.readouterr().out == f"{text}\n"


@pytest.mark.parametrize("text", STEERING, ids=ascii)
def test_json_has_no_such_character_and_means_the_same(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    output.write_json({"text": text, text: ["ü"]})
    written = capsys.readouterr().out
    assert not set(text) & set(written) - set(map(chr, range(32, 127)))
    assert json.loads(written) == {"text": text, text: ["ü"]}
    assert "ü" in written


NAMES = {
    "print", "typer.echo", "typer.secho", "rich.print", "Console", "Prompt", "Confirm",
    "sys.stdout.write", "sys.stderr.write", "sys.stdout.buffer", "sys.stderr.buffer",
}  # fmt: skip


def writes(path: Path) -> set[str]:
    """Return the names in a module that write to a terminal, or lead to what does."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return NAMES & {ast.unparse(node) for node in nodes if isinstance(node, ast.Name | ast.Attribute)}


def test_no_other_module_of_the_command_line_writes_to_a_terminal() -> None:
    modules = [path for path in COMMAND_LINE.glob("*.py") if path.name not in {*WRITERS, PROBE}]
    assert len(modules) > 10
    assert {path.name: writes(path) for path in modules} == {path.name: set() for path in modules}
    assert writes(COMMAND_LINE / "output.py") == {"typer.echo", "sys.stdout.buffer"}


def test_a_path_is_shown_as_it_is_written_in_this_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    paths = [tmp_path / "a" / "b.py", Path("c.py"), tmp_path.parent / "d.py"]
    assert list(map(output.below_here, paths)) == ["a/b.py", "c.py", str(tmp_path.parent / "d.py")]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), BrokenPipeError(), ValueError()])
def test_a_note_that_can_not_be_written_is_left_out(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*_arguments: object, **_options: object) -> None:
        raise error

    monkeypatch.setattr("typer.echo", fail)
    output.write_note("served")
    with pytest.raises(type(error)):
        output.write_line("served")
