"""Exceptions that tests of the log write there."""

from __future__ import annotations

import json

import pytest


def parse_failure(text: str) -> BaseException:
    """Return an exception with a cause that a library raised in a function of an author."""
    with pytest.raises(RuntimeError) as caught:
        parse(text)
    return caught.value


def parse(text: str) -> None:
    """Fail to parse a text."""
    try:
        json.loads("{" + text)
    except ValueError as cause:
        raise RuntimeError(f"bad input: {text}") from cause
