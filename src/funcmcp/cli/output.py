"""All output of the commands except tables, forms and progress bars, which are in `console.py`.

No other module of the command line writes to stdout or stderr.

A server can send control characters that move the cursor, rewrite the screen or reverse the order of the text. On a
terminal, and always on stderr, such characters are escaped. A program that reads stdout through a pipe receives the
server's text unchanged, except for JSON documents, which escape the characters as JSON does.
"""

from __future__ import annotations

import json
import re
import sys

import typer

_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and line feed, DEL, C1
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"  # direction marks, line separators
    "\ud800-\udfff]"  # lone surrogates, which no terminal's encoding has
)
_CONTROL_IN_JSON = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: object) -> str:
    r"""Return a text with each character that could control a terminal escaped, such as ``\x1b``."""
    return _CONTROL.sub(_escape, str(text).replace("\r\n", "\n"))


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"  # noqa: PLR2004 - the last code of two digits


def write_line(text: object, *, error: bool = False) -> None:
    """Write an escaped line to stdout, or to stderr if *error* is set."""
    typer.echo(visible(text), err=error)


def write_text(text: str, *, error: bool = False) -> None:
    """Write a server's text and end it with a line feed. It is escaped on a terminal and on stderr."""
    if error or sys.stdout.isatty():
        text = visible(text)
    typer.echo(text, nl=not text.endswith("\n"), err=error, color=True)


def write_bytes(data: bytes) -> None:
    """Write bytes to stdout. The caller checks first that stdout is not a terminal."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)


def write_json(value: object) -> None:
    """Write a JSON document to stdout."""
    document = json.dumps(value, indent=2, ensure_ascii=False)
    typer.echo(_CONTROL_IN_JSON.sub(_escape_in_json, document))


def _escape_in_json(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
