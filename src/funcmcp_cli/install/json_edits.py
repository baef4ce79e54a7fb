"""Edits of JSON texts that keep all else: comments, order, indentation and trailing commas.

How it works: `parse` reads the text into nodes with their positions. `set_member` and `append_items` return the text
with one value replaced or inserted at these positions; no other character changes.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from funcmcp._text.jsonc import JSONTextError, parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from funcmcp._text.jsonc import Node


def set_member(text: str, path: Sequence[str], value: object, *, comments: bool) -> str:
    """Return a text in which the member at a path of names has a value. Missing objects on the path are added.

    Raises:
        JSONTextError: The text is not JSON, or a value on the path is not an object.
    """
    node = parse(text, comments=comments)
    for depth, name in enumerate(path):
        if not isinstance(node.value, dict):
            place = ".".join(path[:depth]) or "the text"
            raise JSONTextError(text, node.start, f"{place} is not an object")
        if name not in node.members:
            for missing in reversed(path[depth + 1 :]):
                value = {missing: value}
            return _with_items(text, node, [value], prefix=f"{json.dumps(name, ensure_ascii=False)}: ")
        node = node.members[name]
    return text[: node.start] + _written(text, value, _indent_at(text, node.start)) + text[node.end :]


def append_items(text: str, name: str, items: Sequence[object], *, comments: bool) -> str:
    """Return a text in which the array that is the member *name* of the outermost object has more items.

    Raises:
        JSONTextError: The text is not JSON, or the member is not an array.
    """
    node = parse(text, comments=comments).members.get(name)
    if node is None:
        return set_member(text, [name], list(items), comments=comments)
    if not isinstance(node.value, list):
        raise JSONTextError(text, node.start, f"{name} is not an array")
    return _with_items(text, node, items)


def _with_items(text: str, node: Node, values: Sequence[object], prefix: str = "") -> str:
    """Return the text with values added at the end of an object or array, each after a prefix such as its name."""
    newline = _newline(text)
    outer_indent = _indent_at(text, node.start)
    indent = outer_indent + _unit(text)
    additions = [prefix + _written(text, value, indent) for value in values]
    closing = node.end - 1
    end = closing
    while text[end - 1] in " \t\r\n":
        end -= 1
    added = f",{newline}{indent}".join(additions)
    tail = text[end:closing] if "\n" in text[end:closing] else newline + outer_indent
    if node.last_end is None or node.comma_end is not None:
        before = text[:end]
    else:
        before = text[: node.last_end] + "," + text[node.last_end : end]
    return f"{before}{newline}{indent}{added}{tail}{text[closing:]}"


def _written(text: str, value: object, indent: str) -> str:
    """Return a value as JSON in the style of a text. All lines but the first are indented."""
    lines = json.dumps(value, indent=_unit(text), ensure_ascii=False).split("\n")
    return f"{_newline(text)}{indent}".join(lines)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _unit(text: str) -> str:
    """Return the white space of the first indented line, which is one level of indentation."""
    match = re.search(r'^([ \t]+)"', text, re.MULTILINE)
    return "  " if match is None else match[1]


def _indent_at(text: str, position: int) -> str:
    """Return the white space at the beginning of a line."""
    start = text.rfind("\n", 0, position) + 1
    match = re.compile(r"[ \t]*").match(text, start)
    return "" if match is None else match[0]
