"""What a running call shows and asks: progress, log messages and forms, where a terminal is there."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING, Any, Self

from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn
from rich.progress import Progress as Bar

from funcmcp.cli.arguments import read_value
from funcmcp.cli.console import SafeConsole, ask, confirm
from funcmcp.cli.failure import Failure
from funcmcp.cli.output import visible, write_line
from funcmcp.protocol import envelope

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.progress import TaskID


_MOST_PROGRESS = 2**53


class Progress:
    """Shows what a running call reports on stderr.

    Progress is asked for, and shown as a bar, only if stderr is a terminal. With *verbose* progress and log messages
    of every level are asked for and shown as lines.
    """

    def __init__(self, *, verbose: bool = False) -> None:
        console = SafeConsole(error=True)
        self.verbose = verbose
        self.meta: dict[str, Any] = {}
        """Members for the `_meta` of the request."""
        if verbose or console.is_terminal:
            self.meta["progressToken"] = 1
        if verbose:
            self.meta[envelope.LOG_LEVEL] = "debug"
        columns = (SpinnerColumn(), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}", markup=False))
        self._bar = Bar(*columns, console=console, transient=True)
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._task is not None:  # otherwise rich would print an empty line
            self._bar.stop()

    def show(self, notification: Mapping[str, Any]) -> None:
        """Show a notification: progress as a bar or a line, a log message as a line."""
        params = notification.get("params", {})
        if notification["method"] == "notifications/message":
            write_line(f"{params.get('level')}: {params.get('data')}", error=True)
        elif notification["method"] == "notifications/progress" and self.verbose:
            of_total = f"/{params['total']}" if "total" in params else ""
            message = params.get("message") or ""
            write_line(f"progress: {params.get('progress')}{of_total} {message}".rstrip(), error=True)
        elif notification["method"] == "notifications/progress":
            if self._task is None:
                self._task = self._bar.add_task("")
                self._bar.start()
            described = visible(params.get("message") or "")
            completed, total = _number(params.get("progress")), _number(params.get("total"))
            self._bar.update(self._task, completed=completed or 0, total=total, description=described)


def _number(value: object) -> float | None:
    """Return a number that a bar can show; a server may send anything in its place."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) <= _MOST_PROGRESS else None


async def answer(params: Mapping[str, Any]) -> dict[str, Any]:
    """Answer ``elicitation/create``: ask at the terminal, field by field; decline where there is none."""
    if not sys.stdin.isatty():
        write_line(f"Declined, because stdin is not a terminal: {params['message']}", error=True)
        return {"action": "decline"}
    write_line(params["message"], error=True)
    # asyncio would wait for the next await before it heeds Ctrl+C, and a person who is asked has time.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return _answered(params)
    except EOFError:  # Ctrl+D
        return {"action": "cancel"}
    finally:
        signal.signal(signal.SIGINT, before)


def _answered(params: Mapping[str, Any]) -> dict[str, Any]:
    if params.get("mode") == "url":
        write_line(params["url"], error=True)
        return {"action": "accept" if confirm("Have you opened it?") else "decline"}
    if not confirm("Answer?", default=True):
        return {"action": "decline"}
    return {"action": "accept", "content": _fill_in(params.get("requestedSchema", {}))}


def _fill_in(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Ask for the fields of a form; those that are left empty are left out."""
    required = schema.get("required", [])
    content = {}
    for name, field in schema.get("properties", {}).items():
        value = _ask(name, field, required=name in required)
        if value is not None:
            content[name] = value
    return content


def _ask(name: str, field: Mapping[str, Any], *, required: bool) -> Any:
    """Ask for one field until the text can be read; None for an optional one that is left empty."""
    label = str(field.get("title") or name)
    if "description" in field:
        label += f" ({field['description']})"
    if field.get("type") == "boolean":
        return confirm(label, default=field.get("default"))
    choices = [str(choice) for choice in field.get("enum", [])]
    default = str(field["default"]) if "default" in field else None
    while True:
        text = ask(label, choices=choices, default=default, required=required)
        if text == "" and not required:
            return None
        try:
            return read_value(name, text, field)
        except Failure as failure:
            write_line(failure, error=True)
