"""Annotations: the marks on a type, the type below them, and its parts."""

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
_AWAITABLES = frozenset({"Awaitable", "Coroutine"})


def marks_of(annotation: Any) -> tuple[Any, ...]:
    """Return the marks in ``Annotated[type, mark, ...]``; none for other annotations."""
    if get_origin(annotation) is Annotated:
        return get_args(annotation)[1:]
    return ()


def description_mark(annotation: Any) -> str | None:
    """Return the description in ``Annotated[type, Field(description=...)]`` or ``Annotated[type, "text"]``, if any."""
    for mark in marks_of(annotation):
        text = mark.description if _is_field(mark) else mark
        if isinstance(text, str):
            return text
    return None


def _is_field(mark: Any) -> bool:
    """Return whether a mark is pydantic's ``Field(...)``, without an import of pydantic."""
    return any(cls.__module__ == "pydantic.fields" and cls.__name__ == "FieldInfo" for cls in type(mark).__mro__)


def without_marks(annotation: Any) -> Any:
    """Return the type inside ``Annotated``, and T for ``T | None``."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in _UNIONS:
        members = [member for member in get_args(annotation) if member is not type(None)]
        if len(members) == 1:
            return without_marks(members[0])
    return annotation


def union_members(annotation: Any) -> tuple[Any, ...]:
    """Return the members of a union, or the type alone."""
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in _UNIONS:
        return get_args(annotation)
    return (annotation,)


def awaited(annotation: Any) -> Any:
    """Return T for ``Awaitable[T]`` and ``Coroutine[..., T]``; other annotations are returned as they are."""
    origin = getattr(annotation, "__origin__", None)
    if getattr(origin, "__name__", "") in _AWAITABLES and annotation.__args__:
        return annotation.__args__[-1]
    return annotation


def parts_of_type(annotation: Any) -> Iterator[Any]:
    """Yield an annotation, and all types and marks inside it. Fields of models and dataclasses count as inside."""
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


def unsupported_type(annotation: Any) -> str | None:
    """Return a phrase that names a type in an annotation that JSON can't carry; None if no such type is found.

    Marks and fields are not searched, because they may change what a type means. pydantic finds the rest later.
    """
    origin = get_origin(annotation) or annotation
    if origin is Annotated or origin is Literal:
        return None
    for kind in _NEVER_JSON:
        if origin is kind:
            return f"{getattr(origin, '__name__', origin)}, which JSON can't carry"
    if sys.version_info < (3, 12) and is_typeddict(annotation) and type(annotation).__module__ == "typing":
        return (
            "a TypedDict of typing, which can't be read before Python 3.12. "
            "Import TypedDict from typing_extensions instead"
        )
    for part in get_args(annotation):
        phrase = unsupported_type(part)
        if phrase is not None:
            return phrase
    return None


def _inside(part: Any) -> list[Any]:
    """Return the types and marks directly inside a type."""
    inside = list(get_args(part))
    if not isinstance(part, type):
        return inside
    for field in getattr(part, "__pydantic_fields__", {}).values():
        inside += [field.annotation, *field.metadata]
    if hasattr(part, "__dataclass_fields__") or hasattr(part, "__total__"):
        inside += [hint for hint in getattr(part, "__annotations__", {}).values() if not isinstance(hint, str)]
    return inside
