"""Edits of JSON texts that keep all else: comments, order, indentation and trailing commas.

How it works: `parse` reads the text into nodes with their positions. `set_member` and `append_items` return the text
with one value replaced or inserted at these positions; no other character changes.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

_SPACE = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"[^\s,\[\]{}:\"/]+")
_MAX_DEPTH = 200


class JSONTextError(ValueError):
    """A text is not JSON.

    Args:
        text: The text.
        position: The index of the character where the fault is.
        problem: What is wrong there.
    """

    def __init__(self, text: str, position: int, problem: str) -> None:
        line = text.count("\n", 0, position) + 1
        column = position - text.rfind("\n", 0, position)
        super().__init__(f"line {line}, column {column}: {problem}")


@dataclass(slots=True)
class Node:
    """A value in a text.

    Attributes:
        start: The index of its first character.
        end: The index after its last character.
        value: The value.
        members: The members of an object, by name. Of equal names it has the last one.
        last_end: The end of the last member or item. None if the node has none.
        comma_end: The end of a trailing comma. None without one.
    """

    start: int
    end: int = 0
    value: Any = None
    members: dict[str, Node] = field(default_factory=dict)
    last_end: int | None = None
    comma_end: int | None = None


class _Parser:
    def __init__(self, text: str, *, comments: bool) -> None:
        self.text = text
        self.position = 0
        self.comments = comments

    def fail(self, problem: str) -> JSONTextError:
        return JSONTextError(self.text, self.position, problem)

    def skip(self) -> None:
        """Move behind white space and comments."""
        while True:
            match = _SPACE.match(self.text, self.position)
            self.position = self.position if match is None else match.end()
            comment = _COMMENT.match(self.text, self.position)
            if comment is None:
                return
            if not self.comments:
                raise self.fail("JSON has no comments")
            self.position = comment.end()

    def peek(self) -> str:
        self.skip()
        return self.text[self.position : self.position + 1]

    def parse_value(self, depth: int) -> Node:
        if depth > _MAX_DEPTH:
            raise self.fail("the values are nested too deeply")
        first = self.peek()
        if first in ("{", "["):
            return self.parse_container(depth, "}" if first == "{" else "]")
        pattern = _STRING if first == '"' else _SCALAR
        match = pattern.match(self.text, self.position)
        if match is None:
            raise self.fail("a value is missing" if first else "the text ends too early")
        try:
            value = json.loads(match[0])
        except ValueError:
            raise self.fail(f"{match[0][:20]} is not a value") from None
        node = Node(self.position, match.end(), value)
        self.position = match.end()
        return node

    def parse_container(self, depth: int, closing: str) -> Node:
        node = Node(self.position, value={} if closing == "}" else [])
        self.position += 1
        while self.peek() != closing:
            if node.last_end is not None and node.comma_end is None:
                raise self.fail("a comma is missing")
            if closing == "}":
                self.parse_member(node, depth)
            else:
                item = self.parse_value(depth + 1)
                node.value.append(item.value)
                node.last_end = item.end
            node.comma_end = None
            if self.peek() == ",":
                self.position += 1
                node.comma_end = self.position
        if node.comma_end is not None and not self.comments:
            raise self.fail("a comma must not be before the end of an object or array")
        self.position += 1
        node.end = self.position
        return node

    def parse_member(self, node: Node, depth: int) -> None:
        match = _STRING.match(self.text, self.position)
        if match is None:
            raise self.fail("the name of a member is missing" if self.peek() else "the text ends too early")
        name = json.loads(match[0])
        self.position = match.end()
        if self.peek() != ":":
            raise self.fail("a colon is missing")
        self.position += 1
        member = self.parse_value(depth + 1)
        node.members[name] = member
        node.value[name] = member.value
        node.last_end = member.end


def parse(text: str, *, comments: bool) -> Node:
    """Return the value of a text, with positions.

    Args:
        text: The text.
        comments: Accept comments and trailing commas.

    Raises:
        JSONTextError: The text is not JSON.
    """
    parser = _Parser(text, comments=comments)
    node = parser.parse_value(0)
    if parser.peek():
        raise parser.fail("the text goes on after its value")
    return node


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
