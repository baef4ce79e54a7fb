"""Choices: the members of enums and the options of literals, as JSON and as texts.

One rule holds for arguments, results, schemas, prompts and completions: a choice is its JSON value, and a member of an
enum is the JSON of its value. Bytes are base64, tuples are arrays, and dates are ISO 8601. Prompts and URIs have texts
instead of JSON. There a string stands for itself, and another value is its JSON, such as ``true`` or ``[1,2]``.
"""

from __future__ import annotations

import json
from base64 import b64encode
from decimal import Decimal
from enum import Enum, Flag, FlagBoundary
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from funcmcp._authoring.signatures.annotations import without_marks

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

_MAX_SHOWN = 50
_PLAIN = frozenset({bool, int, str, type(None)})


def json_value(choice: Any) -> Any:
    """Return the JSON value of a choice.

    Raises:
        ValueError: JSON can't carry the choice.
    """
    if isinstance(choice, Enum):
        return json_value(choice.value)
    if type(choice) in _PLAIN:
        return choice
    if isinstance(choice, bytes):
        return b64encode(choice).decode("ascii")
    if isinstance(choice, list | tuple):
        return [json_value(element) for element in choice]
    if isinstance(choice, dict) and all(isinstance(name, str) for name in choice):
        return {name: json_value(member) for name, member in choice.items()}
    if isinstance(choice, float | Decimal):
        return _number(choice)
    if isinstance(choice, str):
        return str(choice)
    if isinstance(choice, int):
        return int(choice)
    return _scalar(choice)


def _number(choice: float | Decimal) -> float:
    """Return a number as JSON: a Decimal without a fraction is an int."""
    if not isfinite(choice):
        raise ValueError(f"{choice!r} has no JSON value")
    is_whole = isinstance(choice, Decimal) and choice == choice.to_integral_value()
    if is_whole:
        return int(choice)
    return float(choice)


def _scalar(choice: Any) -> Any:
    """Return the text of a date, a UUID or a similar value."""
    from pydantic_core import PydanticSerializationError, to_jsonable_python  # noqa: PLC0415 - for few choices

    try:
        value = to_jsonable_python(choice)
    except PydanticSerializationError:
        value = None
    if not isinstance(value, str):
        raise ValueError(f"{choice!r} has no JSON value")  # noqa: TRY004 - for all choices without one
    return value


def json_key(value: Any) -> Hashable:
    """Return a key that is equal for equal JSON values. In JSON, true is not 1, and 1.0 is 1."""
    if isinstance(value, list):
        return ("array", *map(json_key, value))
    if isinstance(value, dict):
        return ("object", *((name, json_key(value[name])) for name in sorted(value)))
    return (isinstance(value, bool), value)


def distinct_json(choices: Iterable[Any]) -> list[Any]:
    """Return the JSON values of choices, each once. Raise ValueError if JSON can't carry one."""
    distinct: dict[Hashable, Any] = {}
    for choice in choices:
        value = json_value(choice)
        distinct.setdefault(json_key(value), value)
    return list(distinct.values())


def choice_text(choice: Any) -> str:
    """Return a choice as users write it in a prompt's argument or a URI. Raise ValueError if JSON can't carry it."""
    value = json_value(choice)
    if isinstance(value, str):
        return value
    return json_text(value)


def json_text(value: Any) -> str:
    """Return a JSON value as text."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def joined_json(choices: Iterable[Any]) -> str:
    """Return the JSON of choices as a list in words, such as ``"red", "blue" or null``."""
    texts = [json_text(value) for value in distinct_json(choices)]
    if len(texts) > _MAX_SHOWN:
        texts[_MAX_SHOWN:] = [f"{len(texts) - _MAX_SHOWN} more"]
    if len(texts) == 1:
        return texts[0]
    return f"{', '.join(texts[:-1])} or {texts[-1]}"


def expected_json(choices: Sequence[Any]) -> str:
    """Return the JSON of choices for the phrase "must be ...", such as ``one of "red" or "blue"``."""
    if len(choices) == 1:
        return joined_json(choices)
    return f"one of {joined_json(choices)}"


def choices_of(annotation: Any) -> list[str]:
    """Return the texts of the values of an enum, a literal or a boolean; none for other types."""
    bare = without_marks(annotation)
    if bare is bool:
        return ["true", "false"]
    choices: Iterable[Any] = ()
    if get_origin(bare) is Literal:
        choices = get_args(bare)
    elif isinstance(bare, type) and issubclass(bare, Enum):
        choices = bare
    try:
        return list(dict.fromkeys(map(choice_text, choices)))
    except ValueError:
        return []  # the type's schema can't be created, which says why


def sum_of(kind: type[Flag]) -> int:
    """Return the sum of all members of a flag."""
    total = 0
    for member in kind.__members__.values():
        total |= member.value
    return total


def has_unnamed_bits(kind: type[Flag]) -> bool:
    """Return whether values of a flag may have bits without names, as those of each IntFlag may."""
    return vars(kind)["_boundary_"] is FlagBoundary.KEEP  # where Python keeps it, without a public name
