"""Reading annotations: the marks on a type, the type below them, and everything that a type is made of."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

if TYPE_CHECKING:
    from collections.abc import Iterator

_SCALARS = frozenset({bool, bytes, float, int, str, type(None), Any})
_UNIONS = (Union, types.UnionType)


def marks_of(annotation: Any) -> tuple[Any, ...]:
    """Return what stands beside the type in ``Annotated[type, ...]``."""
    return get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()


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


def _inside(part: Any) -> list[Any]:
    inside = list(get_args(part))
    if not isinstance(part, type):
        return inside
    for field in getattr(part, "__pydantic_fields__", {}).values():
        inside += [field.annotation, *field.metadata]
    if hasattr(part, "__dataclass_fields__") or hasattr(part, "__total__"):
        inside += [hint for hint in getattr(part, "__annotations__", {}).values() if not isinstance(hint, str)]
    return inside
