"""Types that funcmcp can read, in the place of those that only the originals take: TypedDicts of `typing`, classes."""

from __future__ import annotations

import sys
import typing
from types import UnionType
from typing import Annotated, Any, NotRequired, Required, Union, get_args, get_origin, get_type_hints

from pydantic import WithJsonSchema


def readable(hint: Any) -> Any:
    """Return a type with TypedDicts that pydantic can read: before Python 3.12 those of typing_extensions.

    ``type[Model]``, which no client can send, has an empty schema, as in the originals: an optional argument of this
    type is one for callers in Python. Other types are returned unchanged.
    """
    if sys.version_info < (3, 12) and typing.is_typeddict(hint) and type(hint).__module__ == "typing":
        return _copied(hint)
    arguments = get_args(hint)
    if get_origin(hint) is type:
        return Annotated[hint, WithJsonSchema({})]
    changed = tuple(map(readable, arguments))
    if all(new is old for new, old in zip(changed, arguments, strict=True)):
        return hint
    origin: Any = get_origin(hint)
    return Union[changed] if origin is UnionType else origin[changed]  # noqa: UP007 - the members are in a tuple


def _copied(hint: Any) -> Any:
    """Return the TypedDict of typing_extensions with the members of one of `typing`."""
    members: dict[str, Any] = {}
    for name, member in get_type_hints(hint, include_extras=True).items():
        mark = get_origin(member)
        if mark is Required or mark is NotRequired:
            members[name] = mark[readable(get_args(member)[0])]
        elif name in hint.__required_keys__:
            members[name] = Required[readable(member)]
        else:
            members[name] = NotRequired[readable(member)]
    return typed_dict(hint.__name__, members, hint.__doc__)


def typed_dict(name: str, members: dict[str, Any], doc: str | None) -> Any:
    from typing_extensions import TypedDict  # noqa: PLC0415 - pydantic requires it on Python 3.11

    created: Any = TypedDict(name, members)  # type: ignore[misc] # the name is that of another class
    created.__doc__ = doc
    return created
