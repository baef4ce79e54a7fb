"""Tables and forms at a terminal: what a hostile server sends does not steer it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from funcmcp_cli.console import SafeConsole, ask, confirm, styled

if TYPE_CHECKING:
    import pytest

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
