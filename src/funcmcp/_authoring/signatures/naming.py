"""Names of features, and titles from names."""

from __future__ import annotations

import re

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def is_name(name: str) -> bool:
    """Return whether the specification allows a name for a tool ("server/tools, Tool Names")."""
    return _NAME.fullmatch(name) is not None


def is_text(name: str) -> bool:
    """Return whether a name is one line of text, as the names of prompts and resources must be."""
    return bool(name.strip()) and name.isprintable()


def snake_case(name: str) -> str:
    """Return ``AddNumbers`` as ``add_numbers`` and ``HTTPServer`` as ``http_server``."""
    return _HUMP.sub("_", name).lower()


def humanised(name: str) -> str:
    """Return ``AddNumbers`` and ``add_numbers`` as ``Add Numbers``. A word in capitals does not change."""
    parts = re.split(r"[\s_.-]+", _HUMP.sub("_", name))
    return " ".join(part[0].upper() + part[1:] for part in parts if part)


def title_of(name: str | None, function: str) -> str | None:
    """Return the title of a feature, or None if its name has no words.

    Args:
        name: The name that the author chose, if any. A name with other characters than the names of tools is a text
            for people, and is returned unchanged.
        function: The function's name, which is used if the author chose no name.
    """
    if name is not None and not is_name(name):
        return name
    return humanised(function if name is None else name) or None
