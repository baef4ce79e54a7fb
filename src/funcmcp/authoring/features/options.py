"""Checks of what an author says of a feature: a wrong type in one would break every client that reads the list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from funcmcp.authoring.values.content import Icon
from funcmcp.server.catalog.registry import RegistrationError

_TYPES: dict[str, type] = {
    "title": str,
    "description": str,
    "read_only": bool,
    "destructive": bool,
    "idempotent": bool,
    "open_world": bool,
    "lax": bool,
}
_WORDS: dict[type, str] = {str: "a text", bool: "True or False"}


class Options:
    """Options of a feature, as a frozen dataclass."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __new__(cls, **given: Any) -> Self:
        """Refuse options that do not exist, in words for authors, before Python does."""
        unknown = given.keys() - cls.__dataclass_fields__.keys()
        if unknown:
            feature = f" of {given['name']!r}" if "name" in given else ""
            names = ", ".join(map(repr, sorted(unknown)))
            valid = ", ".join(cls.__dataclass_fields__)
            raise RegistrationError(f"Unknown option {names}{feature}. Valid options: {valid}.")
        return object.__new__(cls)


def check_option_types(name: str, options: object) -> None:
    """Check the texts, the yes-or-no options and the icons that a feature's options have.

    Args:
        name: the feature's name.
        options: an object whose attributes they are; it need not have all.

    Raises:
        RegistrationError: one is of the wrong type; the text names the option and the feature.
    """
    for option, wanted in _TYPES.items():
        value = getattr(options, option, None)
        if value is not None and not isinstance(value, wanted):
            raise RegistrationError(f"{option} of {name} must be {_WORDS[wanted]}, not {type(value).__name__}.")
        if isinstance(value, str) and not _is_unicode(value):
            raise RegistrationError(f"{option} of {name} has a lone surrogate, which is no Unicode text.")
    icons = getattr(options, "icons", ())
    if not isinstance(icons, list | tuple) or not all(map(_is_icon, icons)):
        raise RegistrationError(f'icons of {name} must be a list of Icon objects, or of dicts with a text as "src".')


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_icon(icon: Any) -> bool:
    wire = icon.wire if isinstance(icon, Icon) else icon
    return isinstance(wire, Mapping) and isinstance(wire.get("src"), str)
