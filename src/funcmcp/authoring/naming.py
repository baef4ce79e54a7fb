"""Names and titles that a tool takes from its function's name."""

from __future__ import annotations

import re

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def is_name(name: str) -> bool:
    """Tell whether a name is one that the specification allows ("server/tools, Tool Names")."""
    return _NAME.fullmatch(name) is not None


def snake_case(name: str) -> str:
    """Return ``AddNumbers`` as ``add_numbers`` and ``HTTPServer`` as ``http_server``."""
    return _HUMP.sub("_", name).lower()


def humanised(name: str) -> str:
    """Return ``AddNumbers`` and ``add_numbers`` as ``Add Numbers``; a word in capitals stays as it is."""
    words = re.split(r"[\s_.-]+", _HUMP.sub("_", name))
    return " ".join(word[0].upper() + word[1:] for word in words if word)
