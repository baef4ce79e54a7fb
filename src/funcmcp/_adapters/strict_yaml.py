"""YAML of OpenAPI documents and of skills, read with the rules of YAML 1.2's JSON schema, which OpenAPI requires.

PyYAML reads YAML 1.1, where ``no`` is False, ``2020-01-01`` is a date, and ``010`` is 8. So only the types of JSON are
recognized here. Keys become strings, such as the ``200`` of a response. The values are made from PyYAML's events, which
is quicker than its constructors, and an alias is the same object as its anchor, so nothing is multiplied.

The frontmatter of a skill becomes JSON, which would multiply aliases, and other programs read the same text. So it has
none of the parts of YAML that parsers understand differently: aliases, tags, two equal keys, keys that are collections.

Source: YAML 1.2.2 "10.2. JSON Schema", "10.3. Core Schema"; OpenAPI 3.1.1 "Format".
"""

from __future__ import annotations

import re
from datetime import date
from math import isfinite
from typing import TYPE_CHECKING, Any

from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Iterator

_NUMBER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FRACTION = re.compile(r"[-+]?(?:(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)")
_CONSTANTS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_MAX_NUMBER_LENGTH = 300
_MAX_DEPTH = 500
_MAX_PLAIN_DEPTH = 32


def value_of_yaml(text: bytes, source: str) -> Any:
    """Return the value of a YAML text.

    Args:
        text: The text.
        source: Where it is from, for errors.

    Raises:
        RegistrationError: The text is not valid YAML, or PyYAML is not installed.
    """
    try:
        import yaml  # noqa: PLC0415 - an extra
    except ImportError:
        raise RegistrationError(
            f"{source} is not JSON. To read YAML, install the extra: pip install 'funcmcp[openapi]'."
        ) from None
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _Values(yaml).of(yaml.parse(text, loader))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RegistrationError(f"{source} is neither JSON nor YAML: {' '.join(str(error).split())}") from None
    except ValueError as error:
        raise RegistrationError(f"{source} is not valid YAML: {error}") from None


def plain_value_of_yaml(text: str, first_line: int = 1) -> Any:
    """Return the value of a YAML text without the parts that parsers understand differently.

    Args:
        text: The text.
        first_line: The number of its first line, for errors.

    Raises:
        ValueError: The text is not valid YAML, or has such a part.
        ModuleNotFoundError: PyYAML is not installed.
    """
    yaml = _yaml_of_skills()
    try:
        events = yaml.parse(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        return _Values(yaml, max_depth=_MAX_PLAIN_DEPTH).of(_plain(yaml, events))
    except yaml.YAMLError as error:
        raise ValueError(f"it is not valid YAML{_place_and_problem(error, first_line)}") from None


def _place_and_problem(error: Any, first_line: int) -> str:
    """Return where a YAML text is wrong, why, and what helps against the most frequent fault."""
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    if mark is None or problem is None:
        return f": {' '.join(str(error).split())}"
    advice = ". Put a text with a colon in quotes" if problem.startswith("mapping values are not allowed") else ""
    return f" in line {first_line + mark.line}: {problem}{advice}"


def yaml_1_1_value(text: str) -> Any:
    """Return the value that PyYAML has for a text of `plain_value_of_yaml`; None if it has none.

    It is the value for programs that read YAML 1.1, in which ``no`` is False and ``2020-01-01`` is a date.
    """
    yaml = _yaml_of_skills()
    try:
        return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, ValueError, ArithmeticError):  # the last one for numbers and times out of range
        return None


def _yaml_of_skills() -> Any:
    try:
        import yaml  # noqa: PLC0415 - an extra
    except ImportError:
        message = "PyYAML is not installed. Skills need: pip install 'funcmcp[skills]'"
        raise ModuleNotFoundError(message, name="yaml") from None
    return yaml


def with_texts(value: Any) -> Any:
    """Return a value of YAML with texts for its dates and times."""
    if isinstance(value, dict):
        return {str(key): with_texts(member) for key, member in value.items()}
    if isinstance(value, list):
        return [with_texts(item) for item in value]
    return value.isoformat() if isinstance(value, date) else value


def _plain(yaml: Any, events: Any) -> Iterator[Any]:
    """Yield the events of a parser; raise ValueError for one that parsers understand differently."""
    keys: list[set[str] | None] = []  # of the mappings that are open; None for a list
    is_key: list[bool] = []  # whether a key comes next
    documents = 0
    for event in events:
        kind = type(event)
        documents += kind is yaml.DocumentStartEvent
        if documents > 1:
            raise ValueError("it has several documents.")
        if kind is yaml.AliasEvent or getattr(event, "anchor", None) is not None:
            raise ValueError("it has an anchor or an alias.")
        if getattr(event, "tag", None) is not None:
            raise ValueError(f"it has a tag, {event.tag!r:.80}.")
        if kind in (yaml.MappingEndEvent, yaml.SequenceEndEvent):
            keys.pop()
            is_key.pop()
        elif isinstance(event, yaml.NodeEvent):
            if keys and keys[-1] is not None:
                if is_key[-1]:
                    _add_key(keys[-1], event)
                is_key[-1] = not is_key[-1]
            if kind is not yaml.ScalarEvent:
                keys.append(set() if kind is yaml.MappingStartEvent else None)
                is_key.append(True)
        yield event


def _add_key(keys: set[str], event: Any) -> None:
    key = getattr(event, "value", None)
    if key is None or key == "<<":
        raise ValueError("a key is a collection, or '<<'.")
    if key in keys:
        raise ValueError(f"it has the key {key!r:.80} twice.")
    keys.add(key)


class _Values:
    """Makes values from the events of a YAML parser.

    Args:
        yaml: The module of PyYAML.
        max_depth: Levels that a value may have.
    """

    def __init__(self, yaml: Any, *, max_depth: int = _MAX_DEPTH) -> None:
        self._yaml = yaml
        self._max_depth = max_depth
        self._anchors: dict[str, Any] = {}

    def of(self, events: Any) -> Any:
        """Return the value of the only document among events."""
        yaml = self._yaml
        starts = {yaml.MappingStartEvent, yaml.SequenceStartEvent}
        ends = {yaml.MappingEndEvent, yaml.SequenceEndEvent}
        values = {yaml.ScalarEvent, yaml.AliasEvent, *starts}
        value: Any = None
        stack: list[list[Any]] = []  # open collections, each with the key that waits for its value
        for event in events:
            kind = type(event)
            if kind in values:
                item = self._item(event)
                if stack:
                    _put(stack[-1], item, event)
                else:
                    value = item
                if kind in starts:
                    stack.append([item, None])
                    if len(stack) > self._max_depth:
                        raise ValueError(f"it has more than {self._max_depth} levels.")
            elif kind in ends:
                stack.pop()
        return value

    def _item(self, event: Any) -> Any:
        """Return the value of an event. That of a collection is still empty."""
        yaml = self._yaml
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                raise ValueError(f"its alias {event.anchor!r} has no anchor.")
            return self._anchors[event.anchor]
        if isinstance(event, yaml.ScalarEvent):
            item = _scalar(event)
        else:
            item = {} if isinstance(event, yaml.MappingStartEvent) else []
        if event.anchor is not None:
            self._anchors[event.anchor] = item
        return item


def _put(opened: list[Any], item: Any, event: Any) -> None:
    """Add an item to the innermost collection that is open: a list, or a mapping as a key or a value."""
    collection, key = opened
    if isinstance(collection, list):
        collection.append(item)
    elif key is None:
        text = getattr(event, "value", None)
        opened[1] = text if isinstance(text, str) else str(item)
    else:
        opened[1] = None
        if key == "<<" and isinstance(item, dict):
            for name, member in item.items():
                collection.setdefault(name, member)
        else:
            collection[key] = item


def _scalar(event: Any) -> Any:
    text: str = event.value
    if not event.implicit[0]:
        return text  # quoted, a block, or with a tag
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if len(text) > _MAX_NUMBER_LENGTH or text[0] not in "+-.0123456789":
        return text
    if _NUMBER.fullmatch(text):
        return int(text)
    if _FRACTION.fullmatch(text) and isfinite(float(text)):
        return float(text)
    return text
