"""The display of a running request, and answers to questions without a terminal."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._client.notifications import LogMessage, ProgressUpdate, progress_of
from funcmcp_cli.terminal import ProgressDisplay, answer

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize("member", ["progress", "total"])
@pytest.mark.parametrize("value", [None, "x", [], {}, True, 10**400, 1e308, -1])
def test_progress_of_any_type_is_shown(member: str, value: object) -> None:
    params = {"progressToken": 1, "progress": 1, "total": 2, "message": "half", member: value}
    with ProgressDisplay() as display:
        for update in (progress_of(params), ProgressUpdate(1, 2)):
            if update is not None:
                display.show_progress(update)


def test_progress_and_log_messages_are_lines_if_verbose(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressDisplay(verbose=True) as display:
        assert display.shows_progress
        display.show_progress(ProgressUpdate(1, 3, "one"))
        display.show_progress(ProgressUpdate(2.5))
        display.show_log(LogMessage("info", "hello\x1b[2J\ninfo: two\n"))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "progress: 1/3 one\nprogress: 2.5\ninfo: hello\\x1b[2J\n    info: two\n"


def test_progress_is_not_asked_for_without_a_terminal() -> None:
    assert not ProgressDisplay().shows_progress


@pytest.mark.parametrize("params", [{}, {"message": 5}, {"message": "Who?", "requestedSchema": 5}])
async def test_a_question_without_a_terminal_is_declined(
    params: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert await answer(params) == {"action": "decline"}


FORMS: list[Any] = [
    None,
    5,
    {"properties": 5},
    {"properties": {"a": 5}, "required": "a"},
    {"properties": {"a": {"enum": 5, "type": {}}}},
    {"properties": {"a": {"type": "boolean", "default": "x"}}},
]


@pytest.mark.parametrize("schema", FORMS)
async def test_a_form_of_any_type_can_be_answered(schema: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def yes(*_: object, **__: object) -> bool:
        return True

    def text(*_: object, **__: object) -> str:
        return "x"

    answers: dict[str, Callable[..., object]] = {"confirm": yes, "ask": text}
    for name, function in answers.items():
        monkeypatch.setattr(f"funcmcp_cli.terminal.{name}", function)
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", terminal)
    assert (await answer({"message": "Who?", "requestedSchema": schema}))["action"] == "accept"
