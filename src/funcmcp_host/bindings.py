"""The bindings of a function, read from their JSON as the Functions host reads them.

Source: the binding contract of the MCP extension (McpToolTriggerAttribute and its siblings, release 1.6.0). Keys are
compared without case; values may be JSON texts or decoded; unknown keys are ignored.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from funcmcp._objects.mappings import lower_names
from funcmcp_host.json_texts import loads

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from funcmcp_host.workers.worker import FunctionInfo


class BindingError(ValueError):
    """A function's bindings can't be served; the text says which and why."""


@dataclass(frozen=True, slots=True)
class ToolTrigger:
    """The binding ``mcpToolTrigger``."""

    parameter: str
    name: str
    description: str | None
    properties: list[dict[str, Any]]
    metadata: dict[str, Any]
    uses_result_schema: bool
    input_schema: dict[str, Any] | None
    output_schema: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class ResourceTrigger:
    """The binding ``mcpResourceTrigger``. A URI with variables makes it a template."""

    parameter: str
    uri: str
    name: str
    title: str | None
    description: str | None
    mime_type: str | None
    size: int | None
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class PromptTrigger:
    """The binding ``mcpPromptTrigger``."""

    parameter: str
    name: str
    title: str | None
    description: str | None
    arguments: list[dict[str, Any]]
    icons: list[dict[str, Any]]
    metadata: dict[str, Any]
    uses_result_schema: bool = False


@dataclass(frozen=True, slots=True)
class HTTPTrigger:
    """The binding ``httpTrigger``.

    Attributes:
        route: The route below the app's prefix.
        methods: The methods in upper case; empty for all.
        level: "anonymous", "function" or "admin".
    """

    parameter: str
    route: str
    methods: tuple[str, ...]
    level: str


@dataclass(frozen=True, slots=True)
class DurableTrigger:
    """The binding ``orchestrationTrigger``, ``activityTrigger`` or ``entityTrigger``.

    Attributes:
        kind: "orchestration", "activity" or "entity".
        name: The name by which orchestrations call the function; empty for the function's own.
    """

    parameter: str
    kind: str
    name: str


Trigger: TypeAlias = ToolTrigger | ResourceTrigger | PromptTrigger | HTTPTrigger | DurableTrigger


@dataclass(frozen=True, slots=True)
class ExtraBinding:
    """A binding beside the trigger.

    Attributes:
        parameter: The name of the function's parameter, or "$return".
        kind: The binding's type in lower case.
        is_output: Whether the function sets it.
        values: The other keys, in lower case.
    """

    parameter: str
    kind: str
    is_output: bool
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Function:
    """A function whose trigger the host serves.

    Attributes:
        name: The function's name in the app.
        trigger: What calls it.
        extras: Its other bindings, without an HTTP trigger's response.
    """

    name: str
    trigger: Trigger
    extras: tuple[ExtraBinding, ...] = ()


def read_function(function_info: FunctionInfo) -> Function:
    """Return a function with its bindings.

    Raises:
        BindingError: The worker can't run it, its trigger is one that the host does not serve, or a binding is
            malformed.
    """
    if function_info.error is not None:
        raise BindingError(function_info.error)
    bindings = [_keys(text) for text in function_info.bindings]
    triggers = [values for values in bindings if str(values.get("type", "")).lower().endswith("trigger")]
    if len(triggers) != 1:
        raise BindingError(f"It has {len(triggers) or 'no'} triggers; a function has one.")
    values = triggers[0]
    kind = str(values["type"]).lower()
    read = _TRIGGERS.get(kind)
    if read is None:
        raise BindingError(f"Its trigger {values['type']} is not supported by funcmcp host.")
    extras = [_extra(other, index) for index, other in enumerate(bindings) if other is not values]
    if kind == "httptrigger":
        extras = [extra for extra in extras if extra.kind != "http"]
    trigger = read(values)
    if isinstance(trigger, DurableTrigger) and not trigger.name:
        trigger = replace(trigger, name=function_info.name)
    return Function(function_info.name, trigger, tuple(extras))


def _keys(text: str) -> dict[str, Any]:
    try:
        values = loads(text)
    except ValueError:
        values = None
    if not isinstance(values, dict):
        raise BindingError("A binding is not a JSON object.")
    return lower_names(values)


def _extra(values: dict[str, Any], index: int) -> ExtraBinding:
    parameter = str(values.get("name") or f"binding{index}")
    return ExtraBinding(parameter, str(values.get("type", "")).lower(), _is_output(values), values)


def _is_output(values: dict[str, Any]) -> bool:
    return str(values.get("direction", "in")).lower() in {"out", "1"}


def _tool_trigger(values: dict[str, Any]) -> ToolTrigger:
    has_schema = _flag(values, "useWorkerInputSchema")
    # Azure reads one of the two members, and the other may be anything.
    items = [] if has_schema else _items(values, "toolProperties", ("isRequired", "isArray"))
    properties = [tool_property for tool_property in items if _is_named(tool_property.get("propertyname"))]
    input_schema = _object(values, "inputSchema") if has_schema else None
    if input_schema is None and has_schema:
        raise BindingError("useWorkerInputSchema is set, but inputSchema is missing.")
    return ToolTrigger(
        parameter=_parameter(values),
        name=_required_text(values, "toolName"),
        description=_text(values, "description"),
        properties=properties,
        metadata=_object(values, "metadata") or {},
        uses_result_schema=_flag(values, "useResultSchema"),
        input_schema=_checked_schema("inputSchema", input_schema),
        output_schema=_checked_schema("outputSchema", _object(values, "outputSchema")),
    )


def _is_named(name: Any) -> bool:
    return isinstance(name, str) and bool(name.strip())


_SIZE = re.compile("[0-9]{1,18}")


def _resource_trigger(values: dict[str, Any]) -> ResourceTrigger:
    size = values.get("size")
    if isinstance(size, str) and _SIZE.fullmatch(size.strip()):
        size = int(size)
    if size is not None and (type(size) is not int or size < 0):
        raise BindingError(f"size is {size!r}, which is not a number of bytes.")
    return ResourceTrigger(
        parameter=_parameter(values),
        uri=_required_text(values, "uri"),
        name=_required_text(values, "resourceName"),
        title=_text(values, "title"),
        description=_text(values, "description"),
        mime_type=_text(values, "mimeType") or None,
        size=size,
        metadata=_object(values, "metadata") or {},
    )


def _prompt_trigger(values: dict[str, Any]) -> PromptTrigger:
    arguments = _items(values, "promptArguments", ("required",))
    if any(not isinstance(argument.get("name"), str) for argument in arguments):
        raise BindingError("An item of promptArguments has no name.")
    return PromptTrigger(
        parameter=_parameter(values),
        name=_required_text(values, "promptName"),
        title=_text(values, "title"),
        description=_text(values, "description"),
        arguments=arguments,
        icons=_list(values, "icons"),
        metadata=_object(values, "metadata") or {},
        uses_result_schema=_flag(values, "useResultSchema"),
    )


def _http_trigger(values: dict[str, Any]) -> HTTPTrigger:
    methods = values.get("methods") or ()
    return HTTPTrigger(
        parameter=_parameter(values),
        route=str(values.get("route") or "").strip("/"),
        methods=tuple(str(method).upper() for method in methods),
        level=str(values.get("authlevel") or "function").lower(),
    )


def _durable_trigger(values: dict[str, Any]) -> DurableTrigger:
    kind = str(values["type"]).lower().removesuffix("trigger")
    name = _text(values, "entityName" if kind == "entity" else kind)
    return DurableTrigger(_parameter(values), kind, name or "")


_TRIGGERS: dict[str, Callable[[dict[str, Any]], Trigger]] = {
    "mcptooltrigger": _tool_trigger,
    "mcpresourcetrigger": _resource_trigger,
    "mcpprompttrigger": _prompt_trigger,
    "httptrigger": _http_trigger,
    "orchestrationtrigger": _durable_trigger,
    "activitytrigger": _durable_trigger,
    "entitytrigger": _durable_trigger,
}


def _parameter(values: dict[str, Any]) -> str:
    return _required_text(values, "name")


def _text(values: dict[str, Any], key: str) -> str | None:
    value = values.get(key.lower())
    if value is not None and not isinstance(value, str):
        raise BindingError(f"{key} is not a string.")
    return value


def _required_text(values: dict[str, Any], key: str) -> str:
    value = _text(values, key)
    if not value or not value.strip():
        raise BindingError(f"{key} is missing.")
    return value


def _flag(values: dict[str, Any], key: str) -> bool:
    value = values.get(key.lower(), False)
    return value is True or (isinstance(value, str) and value.lower() == "true")


def _decoded(values: dict[str, Any], key: str) -> Any:
    """Return a member that is JSON, decoded where it is a text; None if it is absent or blank."""
    value = values.get(key.lower())
    if not isinstance(value, str):
        return value
    if not value.strip():
        return None
    try:
        return loads(value, parse_constant=_refuse_constant)
    except ValueError as error:
        raise BindingError(f"{key} is not valid JSON: {str(error).removesuffix('.')}.") from error


def _refuse_constant(text: str) -> None:
    """Refuse what Python reads and JSON does not have, such as NaN."""
    raise ValueError(f"{text} is not a value of JSON")


def _object(values: dict[str, Any], key: str) -> dict[str, Any] | None:
    value = _decoded(values, key)
    if value is not None and not isinstance(value, dict):
        raise BindingError(f"{key} must be a JSON object.")
    return value


def _list(values: dict[str, Any], key: str) -> list[dict[str, Any]]:
    value = _decoded(values, key)
    if value is None:
        return []
    if not isinstance(value, list) or any(not isinstance(element, dict) for element in value):
        raise BindingError(f"{key} must be a JSON array of objects.")
    return value


def _items(values: dict[str, Any], key: str, flags: Sequence[str]) -> list[dict[str, Any]]:
    """Return the items of a list with their names in lower case.

    Args:
        values: The members of the binding.
        key: The name of the list.
        flags: The members that are booleans.

    Raises:
        BindingError: A flag is not a boolean, for which Azure refuses the function.
    """
    items = []
    for number, item in enumerate(_list(values, key), 1):
        lowered = lower_names(item)
        for flag in flags:
            value = lowered.get(flag.lower())
            if value is not None and not isinstance(value, bool):
                raise BindingError(f"{flag} of item {number} of {key} is {json.dumps(value)}. Write true or false.")
        items.append(lowered)
    return items


def _checked_schema(key: str, schema: dict[str, Any] | None) -> dict[str, Any] | None:
    if schema is None:
        return None
    valid = schema.get("type") == "object" and isinstance(schema.get("properties", {}), dict)
    if not valid or not isinstance(schema.get("required", []), list):
        raise BindingError(f'{key} must be a JSON Schema whose type is "object".')
    return schema
