"""The frontmatter of a SKILL.md: read on a server, and compared with the entry of a skill on a client."""

from __future__ import annotations

from typing import Any

from funcmcp._adapters.strict_yaml import plain_value_of_yaml, with_texts, yaml_1_1_value
from funcmcp._protocol.skills import MAX_FRONTMATTER_BYTES, frontmatter_error, frontmatter_in

_BEGINNING = MAX_FRONTMATTER_BYTES + 1024
"""Characters of a SKILL.md in which its frontmatter is, with the two lines around it."""


def frontmatter_of(data: bytes) -> dict[str, Any]:
    """Return the frontmatter of a SKILL.md as JSON.

    Raises:
        ValueError: There is none, or it is not valid. The text says what is wrong with the skill.
        ModuleNotFoundError: PyYAML is not installed.
    """
    text = _yaml_in(data)
    try:
        frontmatter = plain_value_of_yaml(text, first_line=2)  # after the line ---
    except ValueError as error:
        raise ValueError(f"its frontmatter can't be used: {error}") from None
    error_text = frontmatter_error(frontmatter)
    if error_text is not None:
        raise ValueError(error_text)
    checked: dict[str, Any] = frontmatter
    return checked


def ambiguous_names(data: bytes) -> list[str]:
    """Return the members of a valid frontmatter that have another value in YAML 1.1, such as ``no`` and dates."""
    text = _yaml_in(data)
    other = yaml_1_1_value(text)
    if not isinstance(other, dict):
        return []
    return [name for name, value in plain_value_of_yaml(text).items() if not _equal(value, other.get(name))]


def fits(data: bytes, frontmatter: dict[str, Any]) -> bool:
    """Return whether a SKILL.md has the frontmatter of an entry, as YAML 1.2 or YAML 1.1 has it.

    Raises:
        ValueError: The SKILL.md has no frontmatter that can be used.
        ModuleNotFoundError: PyYAML is not installed.
    """
    text = _yaml_in(data)
    return _equal(plain_value_of_yaml(text), frontmatter) or _equal(with_texts(yaml_1_1_value(text)), frontmatter)


def _yaml_in(data: bytes) -> str:
    """Return the YAML of the frontmatter. The rest of the file may be large, and is not searched for its end."""
    try:
        beginning = data.decode()[:_BEGINNING]
    except UnicodeDecodeError:
        raise ValueError("it is not a text in UTF-8") from None
    text = frontmatter_in(beginning)
    is_cut = text is None and len(beginning) == _BEGINNING and beginning.startswith(("---", "\ufeff---"))
    if is_cut or (text is not None and len(text) > MAX_FRONTMATTER_BYTES):
        raise ValueError(f"its frontmatter has more than {MAX_FRONTMATTER_BYTES:,} characters")
    if text is None:
        raise ValueError("it does not begin with frontmatter between two lines '---'")
    return text


def _equal(value: Any, other: Any) -> bool:
    """Return whether two values are the same JSON. In Python, True is 1."""
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() == other.keys() and all(_equal(value[key], other[key]) for key in value)
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(_equal, value, other))
    if isinstance(value, bool) or isinstance(other, bool):
        return value is other
    is_equal: bool = value == other
    return is_equal
