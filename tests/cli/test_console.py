"""Tables and forms at a terminal: what a hostile server sends does not steer it."""

from __future__ import annotations

import pytest
from rich.table import Table

from funcmcp_cli.console import SafeConsole, ask, confirm, progress_bar, styled

HOSTILE = "\x1b[2J\x9b31m[red]\u202e:smile:"
SPELLED_OUT = r"\x1b[2J\x9b31m[red]\u202e:smile:"


def answers(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    coming = iter(lines)
    monkeypatch.setattr("builtins.input", lambda *_: next(coming))


def test_strings_and_styled_text_and_cells_are_spelled_out(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table(HOSTILE)
    table.add_row(HOSTILE)
    table.add_row(styled(HOSTILE, "bold"))
    for renderable in (HOSTILE, styled(HOSTILE, "bold"), table):
        SafeConsole().print(renderable)
    written = capsys.readouterr().out
    assert written.count(SPELLED_OUT) == 5
    assert not {"\x1b", "\x9b", "\u202e"} & set(written)


def test_choices_and_defaults_are_spelled_out_and_returned_as_they_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(monkeypatch, SPELLED_OUT)
    assert ask(HOSTILE, choices=["plain", HOSTILE]) == HOSTILE
    answers(monkeypatch, "")
    assert ask(HOSTILE, choices=["plain", HOSTILE], default=HOSTILE) == HOSTILE
    answers(monkeypatch, "none of them", "plain")
    assert ask(HOSTILE, choices=["plain", HOSTILE]) == "plain"
    answers(monkeypatch, "yes?", "y")
    assert confirm(HOSTILE) is True
    written = " ".join("".join(capsys.readouterr()).split())  # lines are wrapped
    assert not {"\x1b", "\x9b", "\u202e"} & set(written)
    assert f"{SPELLED_OUT} [plain/{SPELLED_OUT}] ({SPELLED_OUT}):" in written
    assert "[prompt." not in written  # rich's own messages are markup


def test_an_optional_answer_may_be_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, "")
    assert ask("note", required=False) == ""


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_progress_bar_is_for_terminals(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *, is_terminal: bool
) -> None:
    monkeypatch.setattr("funcmcp_cli.console.SafeConsole.is_terminal", is_terminal)
    with progress_bar(HOSTILE) as progress:
        progress(1, 2)
    written = capsys.readouterr()
    assert written.out == ""
    assert ("1/2" in written.err) is is_terminal
    assert "\u202e" not in written.err
