"""Reading annotations: the marks on a type, the type below them, and everything that a type is made of."""

from __future__ import annotations

import sys
import types
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    Never,
    NoReturn,
    Union,
    get_args,
    get_origin,
    is_typeddict,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_SCALARS = frozenset({bool, bytes, float, int, str, type(None), Any})
_UNIONS = (Union, types.UnionType)
_NEVER_JSON = (AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Never, NoReturn, range, type)


def marks_of(annotation: Any) -> tuple[Any, ...]:
    """Return what stands beside the type in ``Annotated[type, ...]``."""
    return get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()


def description_mark(annotation: Any) -> str | None:
    """Return the description in ``Annotated[type, Field(description=...)]`` or ``Annotated[type, "text"]``, if any."""
    marks = marks_of(annotation)
    texts = [mark if isinstance(mark, str) else getattr(mark, "description", None) for mark in marks]
    return next((text for text in texts if isinstance(text, str)), None)


def without_marks(annotation: Any) -> Any:
    """Return the type inside ``Annotated``, and of ``T | None`` the T."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in _UNIONS:
        members = [member for member in get_args(annotation) if member is not type(None)]
        if len(members) == 1:
            return without_marks(members[0])
    return annotation


def union_members(annotation: Any) -> tuple[Any, ...]:
    """Return the members of a union, or the type alone."""
    annotation = annotation if get_origin(annotation) is not Annotated else get_args(annotation)[0]
    return get_args(annotation) if get_origin(annotation) in _UNIONS else (annotation,)


def parts_of_type(annotation: Any) -> Iterator[Any]:
    """Yield every type and every mark that an annotation is made of, fields of models and dataclasses included."""
    seen: set[int] = set()
    waiting = [annotation]
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        if not (isinstance(part, type) and part in _SCALARS):
            waiting += _inside(part)


def never_json(annotation: Any) -> str | None:
    """Return words for a part of an annotation that can't be JSON, if one can be told without pydantic.

    Marks and fields are not looked into: they may make something else of a type.
    """
    origin = get_origin(annotation) or annotation
    if origin is Annotated or origin is Literal:
        return None
    if any(origin is kind for kind in _NEVER_JSON):
        return f"{getattr(origin, '__name__', origin)}, which JSON can't carry"
    if sys.version_info < (3, 12) and is_typeddict(annotation) and type(annotation).__module__ == "typing":
        return "a TypedDict of typing, which can't be read before Python 3.12: take the one of typing_extensions"
    return next((words for part in get_args(annotation) if (words := never_json(part))), None)


def _inside(part: Any) -> list[Any]:
    inside = list(get_args(part))
    if not isinstance(part, type):
        return inside
    for field in getattr(part, "__pydantic_fields__", {}).values():
        inside += [field.annotation, *field.metadata]
    if hasattr(part, "__dataclass_fields__") or hasattr(part, "__total__"):
        inside += [hint for hint in getattr(part, "__annotations__", {}).values() if not isinstance(hint, str)]
    return inside
