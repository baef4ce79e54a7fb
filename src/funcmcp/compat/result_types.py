"""Return annotations of the official SDK's tools that funcmcp reads in another way."""

from __future__ import annotations

import sys
import typing
from types import UnionType
from typing import Annotated, Any, NotRequired, Required, Union, get_args, get_origin, get_type_hints

from funcmcp.authoring.values.content import ToolResult
from funcmcp.authoring.values.sdk_results import is_sdk_type


def schema_of_annotated_result(hint: Any) -> dict[str, Any] | None:
    """Return the output schema of ``Annotated[CallToolResult, Forecast]``: that of the second type; None otherwise."""
    if get_origin(hint) is not Annotated:
        return None
    result, model = get_args(hint)[:2]
    is_result = isinstance(result, type) and (is_sdk_type(result) or issubclass(result, ToolResult))
    if not is_result or not isinstance(model, type):
        return None
    from pydantic import TypeAdapter  # noqa: PLC0415 - few tools have such a result

    return TypeAdapter(model).json_schema()


def readable(hint: Any) -> Any:
    """Return a type with TypedDicts that pydantic can read: before Python 3.12 those of typing_extensions.

    A type without a TypedDict of `typing` is returned unchanged.
    """
    if sys.version_info >= (3, 12):
        return hint
    if typing.is_typeddict(hint) and type(hint).__module__ == "typing":
        return _copied(hint)
    arguments = get_args(hint)
    changed = tuple(map(readable, arguments))
    if all(new is old for new, old in zip(changed, arguments, strict=True)):
        return hint
    origin: Any = get_origin(hint)
    return Union[changed] if origin is UnionType else origin[changed]  # noqa: UP007 - the members are in a tuple


def _copied(hint: Any) -> Any:
    """Return the TypedDict of typing_extensions with the members of one of `typing`."""
    from typing_extensions import TypedDict  # noqa: PLC0415 - pydantic requires it on Python 3.11

    members: dict[str, Any] = {}
    for name, member in get_type_hints(hint, include_extras=True).items():
        mark = get_origin(member)
        if mark is Required or mark is NotRequired:
            members[name] = mark[readable(get_args(member)[0])]
        elif name in hint.__required_keys__:
            members[name] = Required[readable(member)]
        else:
            members[name] = NotRequired[readable(member)]
    copied: Any = TypedDict(hint.__name__, members)  # type: ignore[misc] # the name is that of the original
    copied.__doc__ = hint.__doc__
    return copied
