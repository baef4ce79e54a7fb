"""The binding JSON of Azure's MCP triggers: the definition of a feature in the keys that the functions host reads.

The host takes a binding only if every key of its constructor is there, and reads schemas, metadata, arguments and icons
from texts of JSON. Nothing here knows the azure-functions library.

Source: Azure Functions MCP extension 1.6.0: McpToolTrigger, McpResourceTrigger, McpPromptTrigger, ResourceUriHelper,
MetadataParser.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from funcmcp._protocol.codec import encode
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Mapping

TOOL = "mcpToolTrigger"
RESOURCE = "mcpResourceTrigger"
PROMPT = "mcpPromptTrigger"

_TYPES = frozenset({"string", "number", "integer", "boolean", "object"})
_DEEPEST = 32
URI_VARIABLE = re.compile(r"\{([^{}]*)\}")
"""A variable in the URI of a resource trigger, which may be any text."""

_OTHER_OPERATORS = re.compile(r"[^A-Za-z0-9_]")


def tool_binding(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `mcpToolTrigger` of a tool.

    Args:
        definition: the newest revision's ``Tool``.

    Raises:
        RegistrationError: the host can't carry its schemas or its ``_meta``.
    """
    name, schema, output = definition["name"], definition["inputSchema"], definition.get("outputSchema")
    _check_schema(f"input schema of {name}", schema)
    binding = {
        "toolName": name,
        "description": definition.get("description") or "",
        "toolProperties": _text(tool_properties(schema)),
        "useResultSchema": True,
        "useWorkerInputSchema": True,
        "inputSchema": _text(schema),
    }
    if output is not None:
        _check_schema(f"output schema of {name}", output)
        binding["outputSchema"] = _text(output)
    return {**binding, **_metadata(name, definition)}


def resource_binding(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `mcpResourceTrigger` of a ``Resource`` or a ``ResourceTemplate``.

    Raises:
        RegistrationError: the host can't match its URI, or can't carry its ``_meta``.
    """
    uri = definition.get("uriTemplate")
    if uri is not None:
        _check_template(uri)
    binding = {"uri": uri or definition["uri"], "resourceName": definition["name"]}
    binding |= {key: definition[key] for key in ("title", "description", "mimeType", "size") if key in definition}
    return {**binding, **_metadata(definition["name"], definition)}


def prompt_binding(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `mcpPromptTrigger` of a ``Prompt``.

    Raises:
        RegistrationError: the host can't carry its ``_meta``.
    """
    binding = {
        "promptName": definition["name"],
        "promptArguments": _text(definition.get("arguments", [])),
        "useResultSchema": True,
    }
    binding |= {key: definition[key] for key in ("title", "description") if key in definition}
    if "icons" in definition:
        binding["icons"] = _text(definition["icons"])
    return {**binding, **_metadata(definition["name"], definition)}


def tool_properties(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return an input schema as tool properties, which say less: for extension bundles that know no other schema."""
    required = schema.get("required", ())
    properties = schema.get("properties", {})
    return [_property(name, member, required=name in required) for name, member in properties.items()]


def equivalent(uri: str) -> str:
    """Return a URI or template as the host compares it: without case and without the names of variables."""
    return URI_VARIABLE.sub("{}", uri).casefold()


def _property(name: str, member: Any, *, required: bool) -> dict[str, Any]:
    schema = _non_null(member)
    is_array = schema.get("type") == "array"
    value_schema = _non_null(schema.get("items", {})) if is_array else schema
    description = schema.get("description")
    if not description and isinstance(member, dict):
        description = member.get("description")
    return {
        "propertyName": name,
        "propertyType": _type_of(value_schema),
        "description": description or "",
        "isRequired": required,
        "isArray": is_array,
        "enumValues": [value for value in _choices(value_schema) if isinstance(value, str)],
    }


def _non_null(schema: Any) -> Mapping[str, Any]:
    """Return the first alternative of a schema that is not null, or the schema itself if it has no alternatives."""
    if not isinstance(schema, dict):
        return {}
    members = schema.get("anyOf") or schema.get("oneOf") or ()
    for alternative in members:
        if isinstance(alternative, dict) and alternative.get("type") != "null":
            return _non_null(alternative)
    return schema


def _type_of(schema: Mapping[str, Any]) -> str:
    types = schema.get("type")
    for name in types if isinstance(types, list) else [types]:
        if name in _TYPES:
            return str(name)
    return "object" if "$ref" in schema or "properties" in schema else "string"


def _choices(schema: Mapping[str, Any]) -> list[Any]:
    if "const" in schema:
        return [schema["const"]]
    choices = schema.get("enum", [])
    return choices if isinstance(choices, list) else []


def _text(value: Any) -> str:
    return encode(value).decode()


def _check_schema(label: str, schema: Mapping[str, Any]) -> None:
    """Refuse schemas that the host refuses when it starts."""
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if schema.get("type") != "object" or not isinstance(properties, dict) or not isinstance(required, list):
        raise RegistrationError(
            f'Azure\'s MCP triggers take only schemas of objects, so the {label} needs "type": "object"; '
            "or serve it with funcmcp.azure.http_app."
        )


def _check_template(uri: str) -> None:
    """Refuse the templates that the host can't match; it knows `{name}` and nothing else of RFC 6570."""
    names: set[str] = set()
    for name in URI_VARIABLE.findall(uri):
        if _OTHER_OPERATORS.search(name):
            raise RegistrationError(
                f"Azure's MCP triggers know only {{name}} in a URI template, not {{{name}}} of {uri!r}; "
                "write another template, or serve it with funcmcp.azure.http_app."
            )
        if name.casefold() in names:
            raise RegistrationError(
                f"Azure's MCP triggers take {name!r} in {uri!r} for another variable of it: "
                "give them names that differ by more than case."
            )
        names.add(name.casefold())


def _metadata(name: str, definition: Mapping[str, Any]) -> dict[str, str]:
    meta = definition.get("_meta")
    if not meta:
        return {}
    _check_metadata(name, meta, _DEEPEST)
    return {"metadata": _text(meta)}


def _check_metadata(name: str, value: Any, levels: int) -> None:
    """Refuse metadata that the host would change: it knows no case in names, and 32 levels."""
    if not isinstance(value, dict | list):
        return
    if not levels:
        raise RegistrationError(f"Azure's MCP triggers take {_DEEPEST} levels of metadata; meta of {name} has more.")
    if isinstance(value, dict) and len({key.casefold() for key in value}) < len(value):
        raise RegistrationError(
            f"Azure's MCP triggers don't tell upper and lower case in names of metadata apart; meta of {name} does."
        )
    for member in value.values() if isinstance(value, dict) else value:
        _check_metadata(name, member, levels - 1)
