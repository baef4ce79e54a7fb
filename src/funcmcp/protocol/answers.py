"""What a client may answer to the questions of a server.

Source: "client/elicitation", "client/sampling", "client/roots" of the revisions that have them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_JSON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
}


def read_answer(question: Mapping[str, Any], answer: object) -> dict[str, Any] | None:
    """Return an answer without what nobody asked for, or None if it does not have the shape that is wanted."""
    if not isinstance(answer, dict) or not is_answer(question, answer):
        return None
    schema = question.get("params", {}).get("requestedSchema")
    if schema is None or answer.get("action") != "accept":
        return answer
    properties = schema.get("properties", {})
    return {**answer, "content": {name: value for name, value in answer["content"].items() if name in properties}}


def is_answer(question: Mapping[str, Any], answer: object) -> bool:
    """Tell whether an answer has the shape that a question's method wants."""
    return isinstance(answer, dict) and _CHECKS[question["method"]](question.get("params", {}), answer)


def _is_elicited(params: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
    action = answer.get("action")
    if action in ("decline", "cancel"):
        return True
    if action != "accept":
        return False
    schema = params.get("requestedSchema")
    return schema is None or _fits(answer.get("content"), schema)


def _fits(content: object, schema: Mapping[str, Any]) -> bool:
    """Check a form's content against its flat schema: names, types and choices."""
    if not isinstance(content, dict) or not all(name in content for name in schema.get("required", ())):
        return False
    properties = schema.get("properties", {})
    return all(_is_value(value, properties[name]) for name, value in content.items() if name in properties)


def _is_value(value: object, schema: Mapping[str, Any]) -> bool:
    wanted = schema.get("type")
    if isinstance(wanted, str) and wanted in _JSON_TYPES:
        if isinstance(value, bool) and wanted != "boolean":
            return False
        whole = wanted == "integer" and isinstance(value, float) and value.is_integer()
        if not isinstance(value, _JSON_TYPES[wanted]) and not whole:
            return False
    choices = schema.get("enum") or [choice.get("const") for choice in schema.get("oneOf", ())]
    return not choices or value in choices


def _is_sampled(_params: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
    content = answer.get("content")
    return (
        isinstance(answer.get("model"), str)
        and answer.get("role") in ("assistant", "user")
        and isinstance(content, dict | list)
    )


def _is_roots(_params: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
    roots = answer.get("roots")
    return isinstance(roots, list) and all(
        isinstance(root, dict) and isinstance(root.get("uri"), str) for root in roots
    )


_CHECKS: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any]], bool]] = {
    "elicitation/create": _is_elicited,
    "sampling/createMessage": _is_sampled,
    "roots/list": _is_roots,
}
