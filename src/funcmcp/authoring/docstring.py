"""What a docstring says about a tool and its arguments."""

from __future__ import annotations

import functools
import inspect
import re
from typing import Any

_SECTION = re.compile(r"^\s*(?:(?:Args|Arguments|Parameters|Params):?\s*$|[:@]param\b)", re.MULTILINE)


def summary(function: Any) -> str:
    """Return the docstring's first paragraph on one line, or an empty string."""
    paragraph = _docstring(function).partition("\n\n")[0]
    section = _SECTION.search(paragraph)
    return " ".join(paragraph[: section.start() if section else None].split())


def parameter_descriptions(function: Any) -> dict[str, str]:
    """Return what the docstring says of each parameter: Google, NumPy and reST styles."""
    docstring = _docstring(function)
    if not _SECTION.search(docstring):
        return {}
    from docstring_parser import parse  # noqa: PLC0415 - loaded only when there is something to parse

    parsed = parse(docstring).params
    return {item.arg_name: " ".join(item.description.split()) for item in parsed if item.description}


def _docstring(function: Any) -> str:
    """Return a callable's own docstring, not the one that it has from `functools.partial`."""
    while isinstance(function, functools.partial):
        function = function.func
    docstring = getattr(function, "__doc__", None)
    if not docstring and not inspect.isroutine(function):
        docstring = type(function).__call__.__doc__
    return inspect.cleandoc(docstring or "")
