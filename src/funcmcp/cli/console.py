"""Tables, colours and forms at a terminal, by rich; control characters are spelled out as in `output.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.prompt import Confirm, Prompt
from rich.text import Text

from funcmcp.cli.output import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.style import Style

_PIPE_WIDTH = 160


def styled(text: object, style: str | Style = "") -> Text:
    """Return a text for a rich console: nothing in it steers the terminal, and nothing is read as markup."""
    return Text(visible(text), style)


class SafeConsole(Console):
    """A rich console that spells out control characters of plain strings and reads no markup in them.

    A string that is printed, or stands in a table, becomes a `Text` by `render_str`. Styled text is made by `styled`.
    """

    def __init__(self, *, error: bool = False) -> None:
        super().__init__(stderr=error, emoji=False, highlight=False, markup=False)
        if not self.is_terminal:
            self.width = _PIPE_WIDTH

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a string as rich's text."""
        return super().render_str(visible(text), **options)


def ask(label: str, *, choices: Sequence[str] = (), default: str | None = None, required: bool = True) -> str:
    """Ask at the terminal for a text, and return it.

    Args:
        label: What is asked for.
        choices: The texts that can be chosen from; any text if empty.
        default: The answer if the person enters nothing.
        required: Ask again if the person enters nothing and a default is missing; if false, the answer is "".
    """
    shown_choices = {visible(choice): choice for choice in choices}
    shown_default: Any = ... if required else ""  # rich: ... means that a default is missing
    if default is not None:
        shown_default = visible(default)
    answer: Any = Prompt.ask(
        styled(label),
        console=_prompt_console(),
        choices=list(shown_choices) or None,
        default=shown_default,
        show_default=default is not None,
    )
    if default is not None and answer == shown_default:
        return default
    return shown_choices.get(answer, str(answer))


def confirm(label: str, *, default: bool | None = None) -> bool:
    """Ask at the terminal for yes or no."""
    answer: Any = Confirm.ask(styled(label), console=_prompt_console(), default=... if default is None else default)
    return bool(answer)


def _prompt_console() -> Console:
    return Console(stderr=True)  # rich's own messages about a bad answer are markup
