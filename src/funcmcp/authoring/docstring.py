"""Descriptions out of docstrings: the summary, and what an Args section says of each parameter."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def summary(function: Callable[..., Any]) -> str | None:
    """Return the first paragraph of a docstring on one line, or None if there is none."""
    text = _text(function)
    return " ".join(text.split("\n\n", 1)[0].split()) or None


def parameter_descriptions(function: Callable[..., Any]) -> dict[str, str]:
    """Return descriptions by parameter name, from a Google, NumPy or reST docstring."""
    text = _text(function)
    if "\n" not in text:
        return {}
    from docstring_parser import parse  # noqa: PLC0415 - loaded only when there is something to parse

    return {
        parameter.arg_name: " ".join(parameter.description.split())
        for parameter in parse(text).params
        if parameter.description
    }


def _text(function: Any) -> str:
    """Return a function's own docstring; that of a class is no description of its instances' calls."""
    text = getattr(function, "__doc__", None)
    if not isinstance(text, str) or (not inspect.isroutine(function) and text == type(function).__doc__):
        return ""
    return inspect.cleandoc(text)
