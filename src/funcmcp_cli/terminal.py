"""The display of a running request, and the forms that it asks for, on a terminal."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING, Any, Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from funcmcp._text.visible import visible, visible_line
from funcmcp_cli.arguments import read_value
from funcmcp_cli.console import SafeConsole, ask, confirm
from funcmcp_cli.failure import Failure
from funcmcp_cli.json_values import as_list, as_object
from funcmcp_cli.output import write_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.progress import TaskID

    from funcmcp.client import LogMessage, ProgressUpdate, Task

_MAX_AMOUNT = 2**53
"""The largest amount that a bar shows: beyond it, floats are not exact."""


class ProgressDisplay:
    """Shows the progress, the task and the log messages of a running request on stderr.

    Args:
        verbose: Show progress and the states of a task as lines. By default progress is a bar, a task is one line with
            its status message, and neither is shown if stderr is not a terminal.

    Attributes:
        shows_progress: Whether progress is shown at all.
    """

    def __init__(self, *, verbose: bool = False) -> None:
        console = SafeConsole(error=True)
        self.shows_progress = verbose or console.is_terminal
        self._verbose = verbose
        description = TextColumn("{task.description}", markup=False)
        columns = (SpinnerColumn(), BarColumn(), MofNCompleteColumn(), description)
        self._bar = Progress(*columns, console=console, transient=True)
        self._bar_id: TaskID | None = None
        self._task_line = Progress(SpinnerColumn(), TimeElapsedColumn(), description, console=console, transient=True)
        self._task_line_id: TaskID | None = None
        self._follows_task = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.hide()

    def hide(self) -> None:
        """Remove the bar or the line from the terminal until there is something new to show."""
        if self._bar_id is not None:  # rich would print an empty line for a bar that was never shown
            self._bar.stop()
        if self._task_line_id is not None:
            self._task_line.stop()

    def show_progress(self, update: ProgressUpdate) -> None:
        """Show how far the request is."""
        message = update.message or ""
        if self._verbose:
            total = "" if update.total is None else f"/{update.total}"
            _write_note(f"progress: {update.progress}{total} {message}")
            return
        if self._bar_id is None:
            self._bar_id = self._bar.add_task("")
        self._bar.start()
        self._bar.update(
            self._bar_id,
            completed=_amount(update.progress) or 0,
            total=_amount(update.total),
            description=visible(message),
        )

    def show_task(self, state: Task) -> None:
        """Show the state of the task that the request has become."""
        self._follows_task = not state.has_ended
        text = state.status_message or state.status.replace("_", " ")
        if self._verbose:
            message = "" if _is_in_outcome(state) else state.status_message or ""
            _write_note(f"task: {state.status} {message}")
        elif self.shows_progress and self._follows_task:
            if self._task_line_id is None:
                self._task_line_id = self._task_line.add_task("")
            self._task_line.start()
            self._task_line.update(self._task_line_id, description=visible(text))

    def interrupt(self) -> None:
        """Show that Ctrl+C cancels the task, if there is one."""
        self.hide()
        if self._follows_task:
            write_line("Cancelling the task. Ctrl+C again ends the command at once.", error=True)
            self._follows_task = False

    async def answer(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result of ``elicitation/create``; see `answer`. Nothing else is shown in the meantime."""
        self.hide()
        return await answer(params)

    def show_log(self, message: LogMessage) -> None:
        """Show a log message as a line."""
        _write_note(f"{message.level}: {message.data}")


def _write_note(text: str) -> None:
    """Write a note of the server. Further lines of its text are indented, so that none of them looks like a note."""
    write_line(text.rstrip().replace("\n", "\n    "), error=True)


def _is_in_outcome(state: Task) -> bool:
    """Return whether the status message is also the text of the result or of the error, which is shown afterwards."""
    content = as_list(as_object(state.get("result")).get("content"))
    texts = [as_object(block).get("text") for block in content]
    return state.status_message in [*texts, as_object(state.get("error")).get("message")]


def _amount(value: float | None) -> float | None:
    """Return an amount that a bar can show. Return None for one that is too large."""
    if value is None or abs(value) > _MAX_AMOUNT:
        return None
    return value


async def answer(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of ``elicitation/create``: ask on the terminal, field by field.

    Without a terminal the result declines.
    """
    message = params.get("message")
    if not sys.stdin.isatty():
        write_line(f"Declined, because stdin is not a terminal: {message}", error=True)
        return {"action": "decline"}
    write_line(message, error=True)
    # asyncio handles Ctrl+C at the next await. A person who reads a question should not have to wait for that.
    previous_handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return _ask_for_result(params)
    except EOFError:  # Ctrl+D
        return {"action": "cancel"}
    finally:
        signal.signal(signal.SIGINT, previous_handler)


def _ask_for_result(params: Mapping[str, Any]) -> dict[str, Any]:
    if params.get("mode") == "url":
        write_line(visible_line(str(params.get("url"))), error=True)
        if confirm("Have you opened it?"):
            return {"action": "accept"}
        return {"action": "decline"}
    if not confirm("Answer?", default=True):
        return {"action": "decline"}
    return {"action": "accept", "content": _ask_for_fields(as_object(params.get("requestedSchema")))}


def _ask_for_fields(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Ask for the fields of a form. A field that stays empty is left out."""
    required = as_list(schema.get("required"))
    content = {}
    for name, field in as_object(schema.get("properties")).items():
        value = _ask_for_field(name, as_object(field), required=name in required)
        if value is not None:
            content[name] = value
    return content


def _ask_for_field(name: str, field: Mapping[str, Any], *, required: bool) -> Any:
    """Ask for one field until its value is valid. Return None for an optional one that stays empty."""
    label = str(field.get("title") or name)
    if "description" in field:
        label += f" ({field['description']})"
    label = visible_line(label)
    if field.get("type") == "boolean":
        default = field.get("default")
        return confirm(label, default=default if isinstance(default, bool) else None)
    choices = [str(choice) for choice in as_list(field.get("enum"))]
    default_text = str(field["default"]) if "default" in field else None
    while True:
        text = ask(label, choices=choices, default=default_text, required=required)
        if text == "" and not required:
            return None
        try:
            return read_value(name, text, field)
        except Failure as failure:
            write_line(failure, error=True)
