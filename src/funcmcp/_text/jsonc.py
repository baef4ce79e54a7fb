"""JSON with comments and trailing commas, as people write it in the files of editors, MCP clients and Azure Functions.

This is the one reader of such files. `parse` returns nodes with positions, for edits that keep all else in a text.

Source: "JSON with Comments" of Visual Studio Code; Newtonsoft.Json, with which the Functions host and Core Tools read
host.json, local.settings.json and function.json: ``//`` and ``/* */`` anywhere, and a comma before the end of an object
or array.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

_SPACE = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"[^\s,\[\]{}:\"/]+")
_MAX_DEPTH = 200
_MISSING = {"": "the text ends too early", '"': "a string does not end in its line"}
"""By the character with which a value begins, what is wrong if there is no value."""


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
            raise self.fail(_MISSING.get(first, "a value is missing"))
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
                element = self.parse_value(depth + 1)
                node.value.append(element.value)
                node.last_end = element.end
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
