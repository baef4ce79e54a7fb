"""The definitions of tools, resources, templates and prompts, in the newest revision's shape.

Source: the MCP extension's PropertyBasedToolInputSchema and its list handlers (release 1.6.0). The ``description`` of
a property and ``required`` are always written, as there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._objects.mappings import without_none
from funcmcp_host.bindings import BindingError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from funcmcp_host.bindings import PromptTrigger, ResourceTrigger, ToolTrigger

_TYPES = {
    "string": "string",
    "str": "string",
    "datetime": "string",
    "guid": "string",
    "integer": "integer",
    "int": "integer",
    "long": "integer",
    "number": "number",
    "float": "number",
    "double": "number",
    "decimal": "number",
    "boolean": "boolean",
    "bool": "boolean",
    "object": "object",
    "dict": "object",
    "array": "array",
    "list": "array",
    "null": "null",
}
"""JSON Schema's types by what apps write as propertyType; azure-functions itself writes "float"."""

JSON_TYPES = frozenset(_TYPES.values())
"""The types that JSON Schema has."""

_ARRAY = "[]"


def tool_definition(trigger: ToolTrigger) -> dict[str, Any]:
    """Return the definition of a tool."""
    definition: dict[str, Any] = {"name": trigger.name}
    if trigger.description is not None:
        definition["description"] = trigger.description
    definition["inputSchema"] = trigger.input_schema or _input_schema(trigger.properties)
    if trigger.output_schema is not None:
        definition["outputSchema"] = trigger.output_schema
    return _with_metadata(definition, trigger.metadata)


def required_of(trigger: ToolTrigger) -> tuple[str, ...]:
    """Return the names of the arguments that a tool's caller must send."""
    required = tool_definition(trigger)["inputSchema"].get("required", [])
    return tuple(name for name in required if isinstance(name, str))


def resource_definition(trigger: ResourceTrigger, *, is_template: bool) -> dict[str, Any]:
    """Return the definition of a resource or a template."""
    definition: dict[str, Any] = {"uriTemplate" if is_template else "uri": trigger.uri, "name": trigger.name}
    optional = {"title": trigger.title, "description": trigger.description, "mimeType": trigger.mime_type}
    if not is_template:
        optional["size"] = trigger.size  # type: ignore[assignment] # the one number among texts
    definition |= without_none(optional)
    return _with_metadata(definition, trigger.metadata)


def prompt_definition(trigger: PromptTrigger) -> dict[str, Any]:
    """Return the definition of a prompt."""
    definition: dict[str, Any] = {"name": trigger.name}
    optional = {"title": trigger.title, "description": trigger.description}
    definition |= without_none(optional)
    if trigger.arguments:
        definition["arguments"] = [_argument(argument) for argument in trigger.arguments]
    icons = [_icon(icon) for icon in trigger.icons]
    if icons:
        definition["icons"] = icons
    return _with_metadata(definition, trigger.metadata)


def _with_metadata(definition: dict[str, Any], metadata: dict[str, Any]) -> dict[str, Any]:
    if metadata:
        definition["_meta"] = metadata
    return definition


def _input_schema(properties: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    schemas: dict[str, Any] = {}
    required = []
    for tool_property in properties:
        name = tool_property["propertyname"]
        schemas[name] = _property(tool_property)
        if tool_property.get("isrequired") is True:
            required.append(name)
    return {"type": "object", "properties": schemas, "required": required}


def _property(tool_property: Mapping[str, Any]) -> dict[str, Any]:
    kind, is_array = json_type(tool_property.get("propertytype"))
    schema: dict[str, Any] = {"type": kind}
    choices = tool_property.get("enumvalues")
    if isinstance(choices, list) and choices:
        schema["enum"] = choices
    if is_array or tool_property.get("isarray") is True:
        schema = {"type": "array", "items": schema}
    description = tool_property.get("description")
    schema["description"] = "" if description is None else str(description)
    return schema


def json_type(property_type: object) -> tuple[str, bool]:
    """Return JSON Schema's type for a propertyType, and whether the property is an array of it.

    Azure lists any text as the type, and clients refuse a schema with a type that JSON Schema does not have. Here an
    unknown type, such as ``date``, is a text, and ``string[]`` is an array of texts.
    """
    name = property_type.strip().lower() if isinstance(property_type, str) else ""
    item = name.removesuffix(_ARRAY)
    return _TYPES.get(item, "string"), item != name


def _argument(argument: Mapping[str, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {"name": argument["name"]}
    if isinstance(argument.get("title"), str):
        described["title"] = argument["title"]
    if isinstance(argument.get("description"), str):
        described["description"] = argument["description"]
    described["required"] = argument.get("required") is True
    return described


def _icon(icon: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(icon.get("src"), str):
        raise BindingError("An icon has no src.")
    return {name: icon[name] for name in ("src", "mimeType", "sizes", "theme") if icon.get(name) is not None}
