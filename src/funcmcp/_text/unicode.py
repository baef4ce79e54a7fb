"""Whether a text can be written as UTF-8."""

from __future__ import annotations


def is_unicode(text: str) -> bool:
    """Return whether a text has no lone surrogates.

    JSON can hold them, and Python has them for bytes of the command line and of names of files that are not UTF-8.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
