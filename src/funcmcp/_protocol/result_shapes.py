"""The members of results, one row for each method whose result has required ones.

A result that a feature makes has its shape by construction. The shapes are for results that authors write as dicts.

Source: every revision's schema, for results, ContentBlock, ResourceContents, PromptMessage and definitions; 2026-07-28
"server/utilities/caching".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from funcmcp._protocol.content_blocks import BLOCK_TYPES, type_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Check: TypeAlias = Callable[[Any], str | None]
    """Returns why a value is wrong, as the end of a sentence that begins with its place; None for a right value."""

_ROLES = ("user", "assistant")
_MAX_COMPLETIONS = 100
_KINDS = {bool: "a boolean", dict: "an object", list: "a list", str: "a string", int: "a number", float: "a number"}


class ResultShape(NamedTuple):
    """The shape of a method's result.

    Attributes:
        required: The checks of the required members, by name.
        optional: The checks of other members.
        cached_as: Which option of the server says how long clients may cache the result (2026-07-28). None: the result
            has no such members.
    """

    required: Mapping[str, Check]
    optional: Mapping[str, Check]
    cached_as: Literal["list", "read"] | None = None


def shape_error(method: str, result: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the members of a method's result, as a sentence without its full stop; None if nothing.

    The result of a method without a shape, such as a custom one, may have any members.
    """
    shape = RESULT_SHAPES.get(method)
    if shape is None:
        return _error_of_members(result, {}, _META)
    return _error_of_members(result, shape.required, {**_META, **shape.optional})


def _error_of_members(
    value: Mapping[str, Any], required: Mapping[str, Check], optional: Mapping[str, Check]
) -> str | None:
    for name, check in required.items():
        if name not in value:
            return f"{name} is missing"
        error = check(value[name])
        if error is not None:
            return f"{name}{error}"
    for name, check in optional.items():
        error = check(value[name]) if name in value else None
        if error is not None:
            return f"{name}{error}"
    return None


def _is(kind: type) -> Check:
    def check(value: Any) -> str | None:
        return None if type(value) is kind else f" must be {_KINDS[kind]}, not {_kind_of(value)}"

    return check


def _kind_of(value: Any) -> str:
    return "null" if value is None else _KINDS.get(type(value), f"an object of the class {type(value).__name__}")


def _list_of(check_item: Check) -> Check:
    def check(value: Any) -> str | None:
        if not isinstance(value, list):
            return f" must be a list, not {_kind_of(value)}"
        for number, element in enumerate(value):
            error = check_item(element)
            if error is not None:
                return f"[{number}]{error}"
        return None

    return check


def _object(required: Mapping[str, Check]) -> Check:
    def check(value: Any) -> str | None:
        if not isinstance(value, dict):
            return f" must be an object, not {_kind_of(value)}"
        error = _error_of_members(value, required, {})
        return None if error is None else f".{error}"

    return check


def _check_block(value: Any) -> str | None:
    if not isinstance(value, dict):
        return f" must be a content block as an object, not {_kind_of(value)}"
    row = type_of(value)
    if row is None:
        return f".type must be one of {', '.join(BLOCK_TYPES)}, not {value.get('type')!r:.40}"
    required: dict[str, Check] = dict.fromkeys(row.strings, _STRING)
    if row.name == "resource":
        required["resource"] = _check_contents
    error = _error_of_members(value, required, {"annotations": _OBJECT, **_META})
    return None if error is None else f".{error}"


def _check_contents(value: Any) -> str | None:
    if not isinstance(value, dict):
        return f" must be the contents of a resource as an object, not {_kind_of(value)}"
    if ("text" in value) == ("blob" in value):
        return " must have either text or blob"
    error = _error_of_members(value, {"uri": _STRING}, {"text": _STRING, "blob": _STRING, "mimeType": _STRING, **_META})
    return None if error is None else f".{error}"


def _check_role(value: Any) -> str | None:
    return None if value in _ROLES else f" must be {' or '.join(_ROLES)}, not {value!r:.40}"


def _check_values(value: Any) -> str | None:
    error = _list_of(_STRING)(value)
    if error is None and len(value) > _MAX_COMPLETIONS:
        return f" must have at most {_MAX_COMPLETIONS} items, not {len(value)}"
    return error


_STRING, _OBJECT, _BOOLEAN = _is(str), _is(dict), _is(bool)
_META: Mapping[str, Check] = {"_meta": _OBJECT}
_PAGE: Mapping[str, Check] = {"nextCursor": _STRING}


def _page_of(member: str, **members: Check) -> ResultShape:
    """Return the shape of a list of features, whose definitions have required members."""
    return ResultShape({member: _list_of(_object(members))}, _PAGE, "list")


RESULT_SHAPES: dict[str, ResultShape] = {
    "initialize": ResultShape(
        {"protocolVersion": _STRING, "capabilities": _OBJECT, "serverInfo": _OBJECT}, {"instructions": _STRING}
    ),
    "server/discover": ResultShape(
        {"supportedVersions": _list_of(_STRING), "capabilities": _OBJECT}, {"instructions": _STRING}, "list"
    ),
    "tools/list": _page_of("tools", name=_STRING, inputSchema=_OBJECT),
    "tools/call": ResultShape({"content": _list_of(_check_block)}, {"isError": _BOOLEAN}),
    "resources/list": _page_of("resources", uri=_STRING, name=_STRING),
    "resources/templates/list": _page_of("resourceTemplates", uriTemplate=_STRING, name=_STRING),
    "resources/read": ResultShape({"contents": _list_of(_check_contents)}, {}, "read"),
    "prompts/list": _page_of("prompts", name=_STRING),
    "prompts/get": ResultShape(
        {"messages": _list_of(_object({"role": _check_role, "content": _check_block}))}, {"description": _STRING}
    ),
    "completion/complete": ResultShape({"completion": _object({"values": _check_values})}, {}),
}
