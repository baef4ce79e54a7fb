"""All output of the commands except tables, forms and progress bars, which are in `console.py`.

No other module of the command line writes to stdout or stderr.

A server can send control characters that move the cursor, rewrite the screen or reverse the order of the text, and
characters that are hidden. On a terminal, and always on stderr, they are escaped. A program that reads stdout through a
pipe receives the server's text unchanged, except for JSON documents, which escape the characters as JSON does.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from funcmcp._server.log_output import log_if_json
from funcmcp._text.visible import UNSAFE, visible

if TYPE_CHECKING:
    import re


def below_here(path: Path) -> str:
    """Return a path as it is written in this folder: a relative one, unless it is outside."""
    here, path = Path.cwd(), path.absolute()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def write_line(text: object, *, error: bool = False, colour: str | None = None) -> None:
    """Write an escaped line to stdout, or to stderr if *error* is set. A colour shows on a terminal only."""
    line = visible(text)
    if colour is not None and not os.environ.get("NO_COLOR"):
        line = typer.style(line, fg=colour)
    typer.echo(line, err=error)


def write_if_possible(text: object, *, error: bool = False, colour: str | None = None) -> None:
    """Write a line, and go on if nobody can read it: the disk is full, or the pipe is closed."""
    with contextlib.suppress(OSError, ValueError):  # ValueError: the file is closed
        write_line(text, error=error, colour=colour)


def write_note(text: object, *, error: bool = False, level: int | None = None, colour: str | None = None) -> None:
    """Write a line about a server that goes on even if nobody can read it. If the log is JSON, it is a record.

    Args:
        text: The line.
        error: Whether it belongs on stderr.
        level: The level of the record. By default it is that of a warning if the line belongs on stderr.
        colour: The colour of the line. It shows on a terminal only.
    """
    if level is None:
        level = logging.WARNING if error else logging.INFO
    if not log_if_json(text, level):
        write_if_possible(text, error=error, colour=colour)


def write_server_failure(failure: Exception) -> None:
    """Write why a server can't start, in a line on stderr. If the log is JSON, it is a record."""
    if not log_if_json(failure, logging.ERROR):
        write_line(failure, error=True)


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
    typer.echo(json_text(value))


def json_text(value: object) -> str:
    """Return a JSON document whose control characters are escaped."""
    return UNSAFE.sub(_escape_in_json, json.dumps(value, indent=2, ensure_ascii=False))


def _escape_in_json(match: re.Match[str]) -> str:
    if match[0] == "\n":
        return "\n"
    units = match[0].encode("utf-16-be", "surrogatepass").hex(" ", 2)
    return "".join(f"\\u{unit}" for unit in units.split())
