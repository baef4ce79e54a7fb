"""What a running call shows and asks: progress, log messages and forms, where a terminal is there."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Self

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn
from rich.progress import Progress as Bar

from funcmcp.cli.arguments import read_value
from funcmcp.cli.failure import Failure

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
        self._bar.stop()

    def show(self, notification: Mapping[str, Any]) -> None:
        """Show a notification: progress as a bar, a log message as a line."""
        params = notification.get("params", {})
        if notification["method"] == "notifications/message":
            typer.echo(f"{params.get('level')}: {params.get('data')}", err=True)
        elif notification["method"] == "notifications/progress":
            if self._task is None:
                self._task = self._bar.add_task("")
                self._bar.start()
            described = params.get("message") or ""
            self._bar.update(
                self._task, completed=params.get("progress", 0), total=params.get("total"), description=described
            )


async def answer(params: Mapping[str, Any]) -> dict[str, Any]:
    """Answer ``elicitation/create``: ask at the terminal, field by field; decline where there is none."""
    if not sys.stdin.isatty():
        typer.echo(f"Declined, because nobody is at a terminal: {params['message']}", err=True)
        return {"action": "decline"}
    typer.echo(params["message"], err=True)
    if params.get("mode") == "url":
        typer.echo(params["url"], err=True)
        return {"action": "accept" if typer.confirm("Open it?", err=True) else "decline"}
    schema = params.get("requestedSchema", {})
    if not typer.confirm("Answer?", default=True, err=True):
        return {"action": "decline"}
    required = schema.get("required", [])
    content = {name: _ask(name, field, name in required) for name, field in schema.get("properties", {}).items()}
    return {"action": "accept", "content": {name: value for name, value in content.items() if value is not None}}


def _ask(name: str, field: Mapping[str, Any], required: bool) -> Any:  # noqa: FBT001 - a private helper
    """Ask for one field until the text can be read; None for an optional one that is left empty."""
    label = field.get("title") or name
    described = f"{label} ({field['description']})" if "description" in field else label
    choices = f" [{'/'.join(map(str, field['enum']))}]" if "enum" in field else ""
    default = field.get("default", None if required else "")
    if field.get("type") == "boolean":
        return typer.confirm(described, default=default if isinstance(default, bool) else None, err=True)
    while True:
        text = typer.prompt(described + choices, default=default, show_default=default != "", err=True)
        if text == "" and not required:
            return None
        try:
            return read_value(name, str(text), field)
        except Failure as failure:
            typer.echo(str(failure), err=True)
