"""Responses of clients to the requests of servers, checked against the requests.

Source: "client/elicitation", "client/sampling", "client/roots" of the revisions that have them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._objects.mappings import only

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
    """Return an answer without form fields that the question does not have, or None for an invalid answer."""
    if not isinstance(answer, dict) or not is_answer(question, answer):
        return None
    schema = question.get("params", {}).get("requestedSchema")
    if schema is None or answer.get("action") != "accept":
        return answer
    properties = schema.get("properties", {})
    content = only(_content_of(answer), properties)
    return {**answer, "content": content}


def is_answer(question: Mapping[str, Any], answer: object) -> bool:
    """Return whether an answer is valid for the method and the parameters of a question."""
    return isinstance(answer, dict) and _CHECKS[question["method"]](question.get("params", {}), answer)


def _is_elicitation_result(params: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
    action = answer.get("action")
    if action in ("decline", "cancel"):
        return True
    if action != "accept":
        return False
    schema = params.get("requestedSchema")
    return schema is None or _is_form_content(_content_of(answer), schema)


def _content_of(answer: Mapping[str, Any]) -> Any:
    """Return the content of an accepted form. Clients leave it out where the user filled in nothing."""
    content = answer.get("content")
    return {} if content is None else content


def _is_form_content(content: object, schema: Mapping[str, Any]) -> bool:
    """Check the content of a form against its flat schema: names, types and choices."""
    if not isinstance(content, dict):
        return False
    if not all(name in content for name in schema.get("required", ())):
        return False
    properties = schema.get("properties", {})
    return all(_is_form_value(value, properties[name]) for name, value in content.items() if name in properties)


def _is_form_value(value: object, schema: Mapping[str, Any]) -> bool:
    json_type = schema.get("type")
    if isinstance(json_type, str) and json_type in _JSON_TYPES and not _has_type(value, json_type):
        return False
    choices = schema.get("enum") or [choice.get("const") for choice in schema.get("oneOf", ())]
    return not choices or value in choices


def _has_type(value: object, json_type: str) -> bool:
    if isinstance(value, bool):
        return json_type == "boolean"
    if json_type == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _JSON_TYPES[json_type])


def _is_sampling_result(_params: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
    content = answer.get("content")
    return (
        isinstance(answer.get("model"), str)
        and answer.get("role") in ("assistant", "user")
        and isinstance(content, dict | list)
    )


def _is_roots_result(_params: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
    roots = answer.get("roots")
    return isinstance(roots, list) and all(
        isinstance(root, dict) and isinstance(root.get("uri"), str) for root in roots
    )


_CHECKS: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any]], bool]] = {
    "elicitation/create": _is_elicitation_result,
    "sampling/createMessage": _is_sampling_result,
    "roots/list": _is_roots_result,
}
