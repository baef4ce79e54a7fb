"""Everything that the commands write, but for tables, forms and bars of progress, which are in `console.py`.

No other module of the command line writes to stdout or stderr.

What a server sends may hold control characters that move the cursor, rewrite the screen or reverse the order of the
text. On a terminal, and on stderr always, they are spelled out. A program that reads stdout through a pipe gets the
server's text as it is, except in JSON documents, where such characters are escaped the way JSON escapes them.
"""

from __future__ import annotations

import json
import re
import sys

import typer

_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but for tab and line feed, DEL, C1
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"  # marks of direction, separators of lines
    "\ud800-\udfff]"  # lone surrogates, which no terminal's encoding has
)
_STEERING_IN_JSON = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: object) -> str:
    r"""Return a text with each character that could steer a terminal spelled out, such as ``\x1b``."""
    return _STEERING.sub(_spelled_out, str(text).replace("\r\n", "\n"))


def _spelled_out(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"  # noqa: PLR2004 - the last code of two digits


def write_line(text: object, *, error: bool = False) -> None:
    """Write a line for people to stdout, or to stderr."""
    typer.echo(visible(text), err=error)


def write_text(text: str, *, error: bool = False) -> None:
    """Write a server's text and end it with a line feed: as it is if a program reads stdout, else for people."""
    for_people = error or sys.stdout.isatty()
    typer.echo(visible(text) if for_people else text, nl=not text.endswith("\n"), err=error, color=True)


def write_bytes(data: bytes) -> None:
    """Write bytes to stdout as they are; the caller has made sure that it is not a terminal."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)


def write_json(value: object) -> None:
    """Write a JSON document to stdout."""
    document = json.dumps(value, indent=2, ensure_ascii=False)
    typer.echo(_STEERING_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", document))
