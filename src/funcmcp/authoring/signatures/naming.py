"""Names of features, and titles from names."""

from __future__ import annotations

import re

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def is_name(name: str) -> bool:
    """Tell whether a name is one that the specification allows ("server/tools, Tool Names")."""
    return _NAME.fullmatch(name) is not None


def is_text(name: str) -> bool:
    """Return whether a name is one line of text, which is what prompts and resources may be called."""
    return bool(name.strip()) and name.isprintable()


def snake_case(name: str) -> str:
    """Return ``AddNumbers`` as ``add_numbers`` and ``HTTPServer`` as ``http_server``."""
    return _HUMP.sub("_", name).lower()


def humanised(name: str) -> str:
    """Return ``AddNumbers`` and ``add_numbers`` as ``Add Numbers``; a word in capitals stays as it is."""
    words = re.split(r"[\s_.-]+", _HUMP.sub("_", name))
    return " ".join(word[0].upper() + word[1:] for word in words if word)


def title_of(name: str | None, function: str) -> str | None:
    """Return the title of a feature, or None if its name has no words.

    Args:
        name: The name that the author gave. One that is more than the specification's characters for tools is a text
            already and stays as it is.
        function: The function's name, from which the title comes if the author gave none.
    """
    if name is not None and not is_name(name):
        return name
    return humanised(function if name is None else name) or None
