"""Operations of Swagger 2.0 in the form that they have in OpenAPI 3.0.

Schemas stay as they are: `Schemas` reads both dialects, and references such as ``#/definitions/Order`` lead to the same
places.

Source: Swagger 2.0 "Parameter Object", "Operation Object", "Security Scheme Object"; OpenAPI 3.0.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._authoring.openapi.references import resolved
from funcmcp._objects.mappings import only

if TYPE_CHECKING:
    from collections.abc import Mapping

_STYLES: dict[str, dict[str, Any]] = {
    "csv": {"explode": False},
    "ssv": {"style": "spaceDelimited", "explode": False},
    "tsv": {"style": "tabDelimited", "explode": False},
    "pipes": {"style": "pipeDelimited", "explode": False},
    "multi": {"explode": True},
}
"""How ``collectionFormat`` is written in OpenAPI 3, which has no tabs: `parameters` knows the style of this name."""

_SCHEMA = (
    *("type", "format", "items", "default", "enum", "pattern", "minimum", "maximum", "exclusiveMinimum"),
    *("exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "multipleOf", "x-nullable"),
)
"""The members of a parameter that OpenAPI 3 has in its schema."""

_FORM = "application/x-www-form-urlencoded"
_MULTIPART = "multipart/form-data"
_JSON = "application/json"


def operation_of_2_0(document: Mapping[str, Any], source: Mapping[str, Any], shared: list[Any]) -> dict[str, Any]:
    """Return an operation of Swagger 2.0, with the parameters of its path, as OpenAPI 3.0 has it."""
    parameters: dict[tuple[Any, Any], dict[str, Any]] = {}
    for node in [*shared, *source.get("parameters", [])]:
        parameter = resolved(document, node)
        parameters[parameter.get("in"), parameter.get("name")] = parameter
    consumes = _media_types(source, document, "consumes")
    operation: dict[str, Any] = {
        **source,
        "parameters": [_parameter(part) for part in parameters.values() if part.get("in") not in {"body", "formData"}],
    }
    fields = [part for part in parameters.values() if part.get("in") == "formData"]
    bodies = [part for part in parameters.values() if part.get("in") == "body"]
    if fields:
        operation["requestBody"] = _form(fields, consumes)
    elif bodies:
        content = {media_type: {"schema": bodies[0].get("schema", {})} for media_type in consumes or [_JSON]}
        operation["requestBody"] = {**only(bodies[0], ("description", "required")), "content": content}
    produces = _media_types(source, document, "produces") or [_JSON]
    operation["responses"] = {
        code: _response(resolved(document, node), produces) for code, node in source.get("responses", {}).items()
    }
    return operation


def _media_types(source: Mapping[str, Any], document: Mapping[str, Any], member: str) -> list[str]:
    media_types = source.get(member) or document.get(member) or []
    return [media for media in media_types if isinstance(media, str)]


def _parameter(parameter: Mapping[str, Any]) -> dict[str, Any]:
    converted = {
        **only(parameter, ("name", "in", "description", "required", "deprecated")),
        "schema": only(parameter, _SCHEMA),
    }
    if parameter.get("type") == "array":
        converted.update(_STYLES.get(parameter.get("collectionFormat", "csv"), {}))
        if parameter.get("in") != "query":
            converted.pop("style", None)
    return converted


def _form(fields: list[dict[str, Any]], consumes: list[str]) -> dict[str, Any]:
    """Return the body of a form, whose fields Swagger 2.0 has as parameters."""
    has_files = any(field.get("type") == "file" for field in fields)
    is_multipart = has_files or (_MULTIPART in consumes and _FORM not in consumes)
    properties, encoding = {}, {}
    for field in fields:
        name = field.get("name", "")
        properties[name] = {**only(field, _SCHEMA), **only(field, ("description",))}
        if field.get("type") == "array":
            encoding[name] = _STYLES.get(field.get("collectionFormat", "csv"), {})
    required = [field.get("name", "") for field in fields if field.get("required") is True]
    schema = {"type": "object", "properties": properties, "required": required}
    media_type = _MULTIPART if is_multipart else _FORM
    return {"required": bool(required), "content": {media_type: {"schema": schema, "encoding": encoding}}}


def _response(response: Mapping[str, Any], produces: list[str]) -> dict[str, Any]:
    content = {media: {"schema": response["schema"]} for media in produces} if "schema" in response else {}
    return {**only(response, ("description", "headers")), "content": content}


def security_schemes_of_2_0(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the security schemes of a document, of which OpenAPI 3 calls the type ``basic`` differently."""
    schemes = document.get("securityDefinitions")
    if not isinstance(schemes, dict):
        return {}
    basic = {"type": "http", "scheme": "basic"}
    return {
        name: basic if isinstance(scheme, dict) and scheme.get("type") == "basic" else scheme
        for name, scheme in schemes.items()
    }
