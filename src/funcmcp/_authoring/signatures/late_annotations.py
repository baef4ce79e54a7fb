"""Annotations with a name that is not defined yet, or is imported for type checkers only.

How it works: Python 3.14 evaluates the annotations of a function when they are read. Where a name is unknown then, they
are read as strings, as of a module with ``from __future__ import annotations``, and are resolved at the first call.
"""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def read_signature(function: Any, *, follow_wrapped: bool = True) -> inspect.Signature:
    """Return the signature of a callable as `inspect.signature` does."""
    try:
        return inspect.signature(function, follow_wrapped=follow_wrapped)
    except NameError:
        if sys.version_info >= (3, 14):
            from annotationlib import Format  # noqa: PLC0415 - Python 3.14 has it

            return inspect.signature(function, follow_wrapped=follow_wrapped, annotation_format=Format.STRING)
        raise


def annotations_of(function: Any) -> Mapping[str, Any]:
    """Return the annotations of a callable; none if it has no such attribute."""
    try:
        annotations: Mapping[str, Any] = getattr(function, "__annotations__", {})
    except NameError:
        if sys.version_info >= (3, 14):
            from annotationlib import Format, get_annotations  # noqa: PLC0415 - Python 3.14 has it

            return get_annotations(function, format=Format.STRING)
        raise
    return annotations
