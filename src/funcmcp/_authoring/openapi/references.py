"""References inside an OpenAPI document. References to other documents are never followed.

Source: OpenAPI 3.0.4 "Reference Object"; RFC 6901 (JSON Pointer).
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_MAX_STEPS = 50


@contextmanager
def reading(subject: str) -> Iterator[None]:
    """Convert errors about an invalid document to RegistrationError. The document is not validated before.

    Args:
        subject: The beginning of the message, up to "is".

    Raises:
        RegistrationError: A part of the document has a wrong type, is missing, or is nested too deeply.
    """
    try:
        yield
    except (AttributeError, KeyError, TypeError, RecursionError) as error:
        raise RegistrationError(f"{subject} not valid OpenAPI ({type(error).__name__}: {error}).") from error


def resolved(document: Mapping[str, Any], node: Any) -> dict[str, Any]:
    """Return an object of a document, or the one that it refers to.

    Raises:
        RegistrationError: A reference leads out of the document, does not exist, or is part of a circle.
    """
    for _ in range(_MAX_STEPS):
        reference = node.get("$ref") if isinstance(node, dict) else None
        if reference is None:
            break
        node = target_of(document, reference)
    else:
        raise RegistrationError("The OpenAPI document has a circle of references.")
    if not isinstance(node, dict):
        raise RegistrationError(f"The OpenAPI document has a {type(node).__name__} in the place of an object.")
    return node


def target_of(document: Mapping[str, Any], reference: Any) -> Any:
    """Return what a reference leads to. Raise RegistrationError if that is not in the document."""
    node: Any = document
    try:
        start, *parts = reference.split("/")
        if start != "#":
            raise KeyError(reference)
        for part in parts:
            name = unquote(part).replace("~1", "/").replace("~0", "~")
            node = node[int(name) if isinstance(node, list) else name]
    except (AttributeError, KeyError, IndexError, TypeError, ValueError):
        raise RegistrationError(f"The OpenAPI document refers to {reference!r}, which is not in it.") from None
    return node


def has_mark(schema: Any, mark: str) -> bool:
    """Return whether a schema has a mark such as ``readOnly``."""
    return isinstance(schema, dict) and schema.get(mark) is True
