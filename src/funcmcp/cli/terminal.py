"""What a running call shows and asks: progress, log messages and forms, where a terminal is there."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING, Any, Self

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn
from rich.progress import Progress as Bar
from rich.prompt import Confirm, Prompt

from funcmcp.cli.arguments import read_value
from funcmcp.cli.failure import Failure
from funcmcp.cli.show import plain, visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.progress import TaskID


class Progress:
    """Shows a call's progress on stderr; asks the server for it only if stderr is a terminal."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        self.meta: dict[str, Any] = {"progressToken": 1} if console.is_terminal else {}
        columns = (SpinnerColumn(), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
        self._bar = Bar(*columns, console=console, transient=True)
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._task is not None:  # otherwise rich would print an empty line
            self._bar.stop()

    def show(self, notification: Mapping[str, Any]) -> None:
        """Show a notification: progress as a bar, a log message as a line."""
        params = notification.get("params", {})
        if notification["method"] == "notifications/message":
            typer.echo(visible(f"{params.get('level')}: {params.get('data')}"), err=True)
        elif notification["method"] == "notifications/progress":
            if self._task is None:
                self._task = self._bar.add_task("")
                self._bar.start()
            described = plain(params.get("message") or "")
            self._bar.update(
                self._task, completed=params.get("progress", 0), total=params.get("total"), description=described
            )


async def answer(params: Mapping[str, Any]) -> dict[str, Any]:
    """Answer ``elicitation/create``: ask at the terminal, field by field; decline where there is none."""
    if not sys.stdin.isatty():
        typer.echo(visible(f"Declined, because nobody is at a terminal: {params['message']}"), err=True)
        return {"action": "decline"}
    console = Console(stderr=True)
    console.print(plain(params["message"]))
    # asyncio would wait for the next await before it heeds Ctrl+C, and a person who is asked has time.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return _answered(params, console)
    except EOFError:  # Ctrl+D
        return {"action": "cancel"}
    finally:
        signal.signal(signal.SIGINT, before)


def _answered(params: Mapping[str, Any], console: Console) -> dict[str, Any]:
    if params.get("mode") == "url":
        console.print(plain(params["url"]))
        return {"action": "accept" if Confirm.ask("Have you opened it?", console=console) else "decline"}
    if not Confirm.ask("Answer?", console=console, default=True):
        return {"action": "decline"}
    return {"action": "accept", "content": _fill_in(params.get("requestedSchema", {}), console)}


def _fill_in(schema: Mapping[str, Any], console: Console) -> dict[str, Any]:
    """Ask for the fields of a form; those that are left empty are left out."""
    required = schema.get("required", [])
    content = {}
    for name, field in schema.get("properties", {}).items():
        value = _ask(name, field, console, required=name in required)
        if value is not None:
            content[name] = value
    return content


def _ask(name: str, field: Mapping[str, Any], console: Console, *, required: bool) -> Any:
    """Ask for one field until the text can be read; None for an optional one that is left empty."""
    label = plain(field.get("title") or name)
    if "description" in field:
        label += f" ({plain(field['description'])})"
    if field.get("type") == "boolean":
        known = {"default": field["default"]} if "default" in field else {}
        return Confirm.ask(label, console=console, **known)
    choices = [str(choice) for choice in field.get("enum", [])]
    default: Any = str(field["default"]) if "default" in field else (... if required else "")  # rich: ... is none
    while True:
        text = str(
            Prompt.ask(label, console=console, choices=choices or None, show_default=default != "", default=default)
        )
        if text == "" and not required:
            return None
        try:
            return read_value(name, text, field)
        except Failure as failure:
            console.print(plain(failure))
