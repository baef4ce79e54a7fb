"""The cause of a failure in one line, from the traceback that Python wrote about it."""

from __future__ import annotations

import re
from pathlib import Path

_FRAME = re.compile(r'\s*File "(?P<file>[^"]+)", line (?P<line>\d+)')
_TRACEBACK = "Traceback (most recent call last):"
_PACKAGE = Path(__file__).resolve().parents[1]
_FOREIGN = re.compile(r"[\\/](?:site-packages|dist-packages|lib[\\/]python\d[\d.]*)[\\/]|^<")
"""Files of Python and of libraries."""


def cause_of(text: str) -> str:
    """Return the last line of a text, after the author's file and line if the text has a traceback.

    It is empty if the text is.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    place = place_in(text)
    return f"{place}: {lines[-1].strip()}" if place else lines[-1].strip()


def place_in(text: str) -> str:
    """Return the author's innermost file and line in the last traceback of a text. It is empty if there is none."""
    place = ""
    for line in text.rpartition(_TRACEBACK)[2].splitlines():
        frame = _FRAME.match(line)
        if frame is None or _FOREIGN.search(frame["file"]):
            continue
        file = Path(frame["file"])
        if not file.is_relative_to(_PACKAGE):
            folder = Path.cwd()
            name = file.relative_to(folder) if file.is_relative_to(folder) else file
            place = f"{name}, line {frame['line']}"
    return place
