"""Tables, colours and forms on a terminal, by rich. Control characters are escaped as in `output.py`."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.highlighter import JSONHighlighter
from rich.prompt import Confirm, Prompt
from rich.text import Text

from funcmcp._text.visible import visible
from funcmcp_cli.output import json_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.style import Style

_MAX_COLOURED = 200_000
"""Characters of a JSON text with colours: rich takes a second for a million."""

_PIPE_WIDTH = 160
"""Columns of a table that is not on a terminal."""


def styled(text: object, style: str | Style = "") -> Text:
    """Return a text for a rich console. Its control characters are escaped, and markup in it has no effect."""
    return Text(visible(text), style)


class SafeConsole(Console):
    """A rich console that escapes control characters in plain strings and ignores markup in them.

    `render_str` turns a string that is printed, or is in a table, into a `Text`. Use `styled` for text with a style.
    """

    def __init__(self, *, error: bool = False) -> None:
        super().__init__(stderr=error, emoji=False, highlight=False, markup=False)
        if not self.is_terminal:
            self.width = _PIPE_WIDTH

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a string as rich's text, escaped."""
        return super().render_str(visible(text), **options)


def print_if_json(text: str) -> bool:
    """Print a JSON object or array on a terminal: a line for each member, and colours. Return whether it was printed.

    Other texts are not printed, nor is any text without a terminal or a text that takes long to colour.
    """
    if not sys.stdout.isatty() or not text.startswith(("{", "[")) or len(text) > _MAX_COLOURED:
        return False
    try:
        document = Text(json_text(json.loads(text)))
    except (ValueError, RecursionError):
        return False
    JSONHighlighter().highlight(document)
    SafeConsole().print(document, soft_wrap=True)
    return True


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """Return a function that shows how many of how many parts are done. Without a terminal it does nothing.

    Args:
        label: What is done, before the bar.
    """
    console = SafeConsole(error=True)
    if not console.is_terminal:
        yield lambda _, __: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn  # noqa: PLC0415 - takes 30 ms

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(visible(label), total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def ask(label: str, *, choices: Sequence[str] = (), default: str | None = None, required: bool = True) -> str:
    """Ask for a text on the terminal, and return it.

    Args:
        label: The question.
        choices: The valid answers. Any text is valid if there are none.
        default: The answer for an empty input.
        required: Ask again after an empty input without a default. If false, the answer is then "".
    """
    choice_of = {visible(choice): choice for choice in choices}
    visible_default: Any = ""
    if default is not None:
        visible_default = visible(default)
    elif required:
        visible_default = ...  # rich's mark of a missing default
    answer: Any = Prompt.ask(
        styled(label),
        console=_prompt_console(),
        choices=list(choice_of) or None,
        default=visible_default,
        show_default=default is not None,
    )
    if default is not None and answer == visible_default:
        return default
    return choice_of.get(answer, str(answer))


def confirm(label: str, *, default: bool | None = None) -> bool:
    """Ask a yes-or-no question on the terminal, and return whether the answer is yes."""
    answer: Any = Confirm.ask(styled(label), console=_prompt_console(), default=... if default is None else default)
    return bool(answer)


def _prompt_console() -> Console:
    return Console(stderr=True)  # rich's own messages about an invalid answer are markup
