"""Files with environment variables, such as ``.env``."""

from __future__ import annotations

import re

_ASSIGNMENT = re.compile(
    r"""\s*(?:export\s+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*=\s*"""
    r"""(?:'(?P<literal>[^']*)'|"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[^'"#\s](?:.*?\S)??)?)\s*(?:(?<=\s)#.*)?"""
)
"""A line of a file with environment variables, as docker and python-dotenv read it."""

_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def variables_in(text: str) -> dict[str, str]:
    """Return the environment variables in the text of a file.

    Raises:
        ValueError: A line is not a variable, a comment or empty. The error does not contain the line, which may have a
            secret.
    """
    variables = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _ASSIGNMENT.fullmatch(line)
        if match is None:
            raise ValueError(f"line {number}: write NAME=VALUE, with quotes that end on the same line.")
        value = match["literal"] or match["plain"] or ""
        if match["quoted"] is not None:
            value = re.sub(r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[1]), match["quoted"])
        variables[match["name"]] = value
    return variables
