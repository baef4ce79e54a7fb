"""The rules about the bindings of Azure's MCP extension.

Source: the extension's code at release 1.6.0, and AttributeConverter of the WebJobs SDK, which makes its attributes
from the JSON of bindings.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from funcmcp._adapters.azure.triggers.binding_json import URI_VARIABLE
from funcmcp._objects.mappings import is_nested_deeper, lower_names
from funcmcp_host.app_rules.model import is_set, items_of, kind_of
from funcmcp_host.app_rules.rule import Rule
from funcmcp_host.bindings import BindingError, HTTPTrigger, read_function
from funcmcp_host.expressions import ExpressionError, Template, names_of
from funcmcp_host.json_texts import loads
from funcmcp_host.schemas import JSON_TYPES, json_type
from funcmcp_host.workers.worker import FunctionInfo

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from funcmcp_host.app_rules.model import App, AppFunction
    from funcmcp_host.app_rules.rule import Faults
    from funcmcp_host.bindings import ExtraBinding

_EXTENSION = (
    "https://github.com/Azure/azure-functions-mcp-extension/blob/cd0d1e8cd2221f9289f8ac1ed3aa400aa32422a9"
    "/src/Microsoft.Azure.Functions.Extensions.Mcp"
)
_CONVERTER = (
    "https://github.com/Azure/azure-webjobs-sdk/blob/f79ea0bff76c31048388fde784a9164b5d880c8a"
    "/src/Microsoft.Azure.WebJobs.Host/Bindings/AttributeConverter.cs"
)
_REQUIRED = {
    "mcptooltrigger": ("toolName", "description"),
    "mcpresourcetrigger": ("uri", "resourceName"),
    "mcpprompttrigger": ("promptName",),
    "mcptoolproperty": ("propertyName", "propertyType", "description", "isRequired"),
    "mcppromptargument": ("argumentName", "description", "isRequired"),
}
"""By binding, the parameters of the constructor of its attribute."""

_TEXTS = {
    "mcptooltrigger": ("toolProperties", "metadata", "inputSchema", "outputSchema"),
    "mcpresourcetrigger": ("metadata",),
    "mcpprompttrigger": ("promptArguments", "icons", "metadata"),
}
"""By binding, the members that are JSON in a text."""

_ITEMS = {
    "mcptooltrigger": (
        "toolProperties",
        ("propertyName", "propertyType", "description", "isRequired", "isArray", "enumValues"),
    ),
    "mcpprompttrigger": ("promptArguments", ("name", "title", "description", "required")),
}
"""By trigger, the member that is a list, and what an item of it has."""

_FLAGS = ("isRequired", "isArray")
"""The members of items of toolProperties that are booleans."""

_OTHER_MEMBERS = {*_FLAGS, "enumValues", "required"}
"""The members of items that are not texts."""

_NAMES = {"mcptooltrigger": "toolname", "mcpresourcetrigger": "uri", "mcpprompttrigger": "promptname"}
_URI_KINDS = {"resource", "template", "mcpresourcetrigger"}
_INVALID_VARIABLE = re.compile(r"[/#?& ]|%7b|%7d|^[0-9]", re.IGNORECASE)
_NOT_IN_GROUPS = re.compile("[^A-Za-z0-9_]")
_WITHOUT_HOST = re.compile("(https?|wss?|ftp)://(?:[/?#]|$)", re.IGNORECASE)
"""The schemes that need a host for the class Uri of .NET, each without one."""

_MAX_METADATA_DEPTH = 32
_NOT_LOADED = "Azure does not load it:"


def unreadable(app: App) -> Faults:
    """Yield the MCP functions that can be served neither on Azure nor here, and why, beside what the rules find."""
    unknown = dict(_unknown_kinds(app))
    for function in app.mcp_functions:
        try:
            _read(function)
        except BindingError as error:
            if function.name not in unknown:
                yield function.name, str(error)


def name_on_azure(kind: str, name: str) -> str:
    """Return what Azure compares of a name or URI: texts without case, and templates without names of variables."""
    return URI_VARIABLE.sub("{_}", name).lower() if kind in _URI_KINDS else name.lower()


def _unknown_kinds(app: App) -> Faults:
    for function, binding in _mcp_bindings(app):
        if kind_of(binding) not in _REQUIRED:
            yield (
                function.name,
                (
                    f"has the binding {binding.get('type')}, which Azure's MCP extension does not have. "
                    "Use mcpToolTrigger, mcpResourceTrigger (also for templates) or mcpPromptTrigger."
                ),
            )


def _missing_members(app: App) -> Faults:
    for function, binding in _mcp_bindings(app):
        missing = [key for key in _REQUIRED.get(kind_of(binding), ()) if key.lower() not in binding]
        if missing:
            names = " and ".join(missing)
            yield function.name, f"{_NOT_LOADED} {binding['type']} has no {names}. Write {names}."


def _decoded_members(app: App) -> Faults:
    for function, binding in _mcp_bindings(app):
        for key in _TEXTS.get(kind_of(binding), ()):
            value = binding.get(key.lower())
            if isinstance(value, list | dict):
                form = "a list" if isinstance(value, list) else "an object"
                yield function.name, f"{_NOT_LOADED} {key} is {form}. Write it as a text with the JSON in it."


def _invalid_texts(app: App) -> Faults:
    """Find texts that are read as JSON, and are none."""
    for function, binding in _mcp_bindings(app):
        value = binding.get("toolproperties")
        if isinstance(value, str) and not value.strip() and not is_set(binding, "useWorkerInputSchema"):
            yield function.name, f'{_NOT_LOADED} toolProperties is an empty text. Write "[]", or leave it out.'


def _choices(app: App) -> Faults:
    for function, item in _tool_properties(app):
        choices = item.get("enumvalues")
        if choices is None or (isinstance(choices, list) and all(isinstance(choice, str) for choice in choices)):
            continue
        text = json.dumps(choices)
        advice = "Write each value as a text." if isinstance(choices, list) else "Write a list of texts."
        yield function.name, f"{_NOT_LOADED} enumValues of {item.get('propertyname')} is {text}. {advice}"


def _item_texts(app: App) -> Faults:
    for function, binding in _mcp_bindings(app):
        key, members = _ITEMS.get(kind_of(binding), ("", ()))
        texts = [member for member in members if member not in _OTHER_MEMBERS]
        for number, item in _items(binding, key):
            lowered = lower_names(item)
            for member in texts:
                value = lowered.get(member.lower())
                if value is not None and not isinstance(value, str):
                    yield (
                        function.name,
                        f"{_NOT_LOADED} {member} of item {number} of {key} is {json.dumps(value)}. Write a text.",
                    )


def _null_flags(app: App) -> Faults:
    for function, binding in _mcp_bindings(app):
        for number, item in _items(binding, "toolProperties"):
            lowered = lower_names(item)
            for flag in _FLAGS:
                if lowered.get(flag.lower(), False) is None:
                    advice = "Write true or false, or leave it out."
                    yield function.name, f"{_NOT_LOADED} {flag} of item {number} of toolProperties is null. {advice}"


def _types(app: App) -> Faults:
    for function, item in _tool_properties(app):
        kind = item.get("propertytype")
        if kind is not None and (not isinstance(kind, str) or kind in JSON_TYPES):
            continue  # another rule is about what is not a text
        simple, is_array = json_type(kind)
        advice = f'Write "{simple}"' + (' and "isArray": true.' if is_array else ".")
        yield (
            function.name,
            (
                f"Azure lists the property {item.get('propertyname')} with the type {json.dumps(kind)}, which JSON "
                f"Schema does not have. {advice}"
            ),
        )


def _unused_schemas(app: App) -> Faults:
    for function, binding in _mcp_bindings(app):
        if binding.get("inputschema") and not is_set(binding, "useWorkerInputSchema"):
            yield (
                function.name,
                (
                    "Azure ignores inputSchema, so that the tool has other arguments. Set useWorkerInputSchema "
                    "(use_worker_input_schema=True in Python)."
                ),
            )


def _unknown_members(app: App) -> Faults:
    for function, binding in _mcp_bindings(app):
        key, members = _ITEMS.get(kind_of(binding), ("", ()))
        valid = {member.lower() for member in members}
        usual = {member.lower(): member for member in members}
        for number, item in _items(binding, key):
            for name in item:
                if name.lower() not in valid:
                    meant = usual.get(name.replace("_", "").lower())
                    advice = f"Write {meant}." if meant else f"An item has: {', '.join(members)}."
                    yield function.name, f"Azure ignores {name} in item {number} of {key}. {advice}"


def _nameless_properties(app: App) -> Faults:
    for function, binding in _mcp_bindings(app):
        for number, item in _items(binding, "toolProperties"):
            name = lower_names(item).get("propertyname")
            if not isinstance(name, str) or not name.strip():
                yield function.name, f"Azure leaves out item {number} of toolProperties. Write its propertyName."


def _invalid_uris(app: App) -> Faults:
    for function, binding in _mcp_bindings(app):
        uri = binding.get("uri")
        if kind_of(binding) != "mcpresourcetrigger" or not isinstance(uri, str):
            continue
        names = URI_VARIABLE.findall(uri)
        wrong = [name for name in names if _INVALID_VARIABLE.search(name)]
        folded = [_NOT_IN_GROUPS.sub("_", name).lower() for name in names]
        if wrong:
            advice = "Write a name of letters, digits and underscores that does not begin with a digit."
            yield function.name, f"{_NOT_LOADED} {uri} has the variable {wrong[0]!r}. {advice}"
        elif len(set(folded)) < len(folded):
            advice = "Azure ignores case, and reads other characters as underscores. Rename one."
            yield function.name, f"{_NOT_LOADED} {uri} has two variables with equal names. {advice}"


def _uris_without_hosts(app: App) -> Faults:
    for function, binding in _mcp_bindings(app):
        uri = binding.get("uri")
        if kind_of(binding) != "mcpresourcetrigger" or not isinstance(uri, str):
            continue
        match = _WITHOUT_HOST.match(uri)
        if match:
            advice = "Write one, or use a scheme of your own."
            yield function.name, f"{_NOT_LOADED} {uri} has no host after {match[1]}://. {advice}"


def _deep_metadata(app: App) -> Faults:
    for function, binding in _mcp_bindings(app):
        text = binding.get("metadata")
        try:
            value = loads(text) if isinstance(text, str) else None
        except ValueError:
            continue  # the function can't run here, and the host names the reason
        if is_nested_deeper(value, _MAX_METADATA_DEPTH):
            yield (
                function.name,
                f"{_NOT_LOADED} metadata is nested more than {_MAX_METADATA_DEPTH} levels deep. Write fewer levels.",
            )


def _equal_names(app: App) -> Faults:
    functions_of: dict[tuple[str, str], list[str]] = {}
    for function, binding in _mcp_bindings(app):
        kind = kind_of(binding)
        if kind in _NAMES:
            name = name_on_azure(kind, str(binding.get(_NAMES[kind])))
            functions_of.setdefault((kind, name), []).append(function.name)
    for (_, name), functions in functions_of.items():
        if len(functions) > 1:
            yield (
                name,
                (
                    f"is the name of {len(functions)} features ({', '.join(functions)}): Azure ignores its case. "
                    "Rename all but one."
                ),
            )


def tools_without_structure(app: App) -> Iterator[tuple[AppFunction, str]]:
    """Yield the tools with an output schema whose results never have structured content, each with its function."""
    for function, binding in _mcp_bindings(app):
        if binding.get("outputschema") and not is_set(binding, "useResultSchema"):
            yield function, str(binding.get("toolname"))


def _schemas_without_results(app: App) -> Faults:
    for function, _ in tools_without_structure(app):
        yield (
            function.name,
            (
                "has an outputSchema, but without useResultSchema its results have no structured content, so that "
                "official clients refuse each of them. Set useResultSchema, or leave outputSchema out."
            ),
        )


def _binary_contexts(app: App) -> Faults:
    for function, binding in _mcp_bindings(app):
        kind = str(binding.get("datatype") or "").lower()
        if kind in {"binary", "stream", "1", "2"} and kind_of(binding).endswith("trigger"):
            yield function.name, f"each call fails on Azure: dataType of its trigger is {kind}. Leave dataType out."


def _doubtful_expressions(app: App) -> Faults:
    for function in app.mcp_functions:
        try:
            read = _read(function)
        except BindingError:
            continue  # another finding says why
        trigger = read.trigger
        for extra in () if isinstance(trigger, HTTPTrigger) else read.extras:
            path = _path_of(extra)
            try:
                warnings = Template(path, function.name).check(names_of(trigger)) if path else []
            except ExpressionError:
                continue  # the function can't run here, and the host names the reason
            for warning in warnings:
                yield function.name, f"in its other bindings, {warning}"


def _path_of(extra: ExtraBinding) -> str:
    keys = ("path", "blobpath") if extra.kind == "blob" else ("queuename",)
    texts = [extra.values.get(key) for key in keys] if extra.kind in {"blob", "queue"} else []
    return next((text for text in texts if isinstance(text, str)), "")


def _read(function: AppFunction) -> Any:
    return read_function(FunctionInfo(function.name, tuple(json.dumps(dict(values)) for values in function.bindings)))


def _mcp_bindings(app: App) -> Iterator[tuple[AppFunction, Mapping[str, Any]]]:
    for function in app.functions:
        for binding in function.mcp_bindings:
            yield function, binding


def _items(binding: Mapping[str, Any], key: str) -> list[tuple[int, Mapping[str, Any]]]:
    """Return the items of a list of a binding that Azure reads: toolProperties only without an input schema."""
    is_read = bool(key) and not (key == "toolProperties" and is_set(binding, "useWorkerInputSchema"))
    return items_of(binding, key) if is_read else []


def _tool_properties(app: App) -> Iterator[tuple[AppFunction, Mapping[str, Any]]]:
    """Yield the items of toolProperties that Azure reads, with the names of their members in lower case."""
    for function, binding in _mcp_bindings(app):
        for _, item in _items(binding, "toolProperties"):
            yield function, lower_names(item)


RULES = (
    Rule(
        "binding-kind",
        "triggers",
        "error",
        "a binding whose type begins with `mcp`, and which is not one of the five of the extension",
        "The function has no trigger.",
        "`mcpToolTrigger`, `mcpResourceTrigger` (also for templates) or `mcpPromptTrigger`",
        f"{_EXTENSION}/McpExtensionConfigProvider.cs#L34-L46",
        _unknown_kinds,
    ),
    Rule(
        "required-members",
        "triggers",
        "warning",
        "a binding without a member that its attribute's constructor has, such as `description` of a tool",
        "The function is not loaded: Can't figure out which ctor to call.",
        "the member, if only with an empty text",
        f"{_CONVERTER}#L28-L67",
        _missing_members,
    ),
    Rule(
        "json-texts",
        "triggers",
        "warning",
        "a list or an object as `toolProperties`, `promptArguments`, `metadata`, `icons` or a schema",
        "The function is not loaded: the value can't be converted to a text.",
        "a text with the JSON in it",
        f"{_CONVERTER}#L88-L94",
        _decoded_members,
    ),
    Rule(
        "empty-texts",
        "triggers",
        "warning",
        "an empty text as `toolProperties`",
        "The function is not loaded: the text is not JSON.",
        "`[]`, or no `toolProperties`",
        f"{_EXTENSION}/Trigger/McpToolTriggerBinding.cs#L223-L227",
        _invalid_texts,
    ),
    Rule(
        "item-texts",
        "triggers",
        "warning",
        "a name, type, title or description in `toolProperties` or `promptArguments` that is not a text",
        "The function is not loaded: the list can't be read.",
        "a text",
        f"{_EXTENSION}/InputBinding/McpToolPropertyAttribute.cs#L14-L24",
        _item_texts,
    ),
    Rule(
        "enum-values",
        "triggers",
        "warning",
        "`enumValues` that is not a list, or a value in it that is not a text",
        "The function is not loaded: the list is one of texts.",
        "each value as a text",
        f"{_EXTENSION}/InputBinding/McpToolPropertyAttribute.cs#L24",
        _choices,
    ),
    Rule(
        "null-flags",
        "triggers",
        "warning",
        "`isRequired` or `isArray` of an item of `toolProperties` is null",
        "The function is not loaded: null is not a boolean.",
        "`true` or `false`, or leave it out",
        f"{_EXTENSION}/InputBinding/McpToolPropertyAttribute.cs#L20-L22",
        _null_flags,
    ),
    Rule(
        "property-types",
        "triggers",
        "warning",
        'a `propertyType` that JSON Schema does not have, such as `"float"`, `"date"` or `"string[]"`, or none',
        "The type is listed as it is, so that the input schema is not valid. `funcmcp host` lists a valid one.",
        "a type of JSON Schema; `isArray` for an array",
        f"{_EXTENSION}/ToolInputSchema/PropertyBasedToolInputSchema.cs#L115-L119",
        _types,
    ),
    Rule(
        "input-schema-flag",
        "triggers",
        "warning",
        "`inputSchema` without `useWorkerInputSchema`",
        "The schema is ignored, and the arguments are those of `toolProperties`, or none.",
        "`useWorkerInputSchema: true`",
        f"{_EXTENSION}/Trigger/McpToolTriggerBinding.cs#L139-L153",
        _unused_schemas,
    ),
    Rule(
        "item-members",
        "triggers",
        "warning",
        "a member of an item of `toolProperties` or `promptArguments` that is unknown, such as `is_required`",
        "The member is ignored.",
        "one of the members that the sentence names",
        f"{_EXTENSION}/InputBinding/McpToolPropertyAttribute.cs#L14-L24",
        _unknown_members,
    ),
    Rule(
        "property-names",
        "triggers",
        "warning",
        "an item of `toolProperties` without `propertyName`",
        "The property is left out of the input schema.",
        "`propertyName`",
        f"{_EXTENSION}/ToolInputSchema/PropertyBasedToolInputSchema.cs#L50-L52",
        _nameless_properties,
    ),
    Rule(
        "uri-variables",
        "triggers",
        "warning",
        "a URI with a variable whose name has one of `/#?& `, begins with a digit, or is that of another one",
        "The function is not loaded: the template is not valid.",
        "names of letters, digits and underscores",
        f"{_EXTENSION}/ResourceUriHelper.cs#L191-L231",
        _invalid_uris,
    ),
    Rule(
        "uri-hosts",
        "triggers",
        "warning",
        "a URI of the scheme `http`, `https`, `ws`, `wss` or `ftp` without a host, such as `http://`",
        "The function is not loaded: the URI is not valid.",
        "a host, or a scheme of the app",
        f"{_EXTENSION}/ResourceUriHelper.cs#L164-L167",
        _uris_without_hosts,
    ),
    Rule(
        "metadata-depth",
        "triggers",
        "warning",
        "`metadata` that is nested more than 32 levels deep",
        "The function is not loaded: the JSON is too deep.",
        "less nested metadata",
        f"{_EXTENSION}/MetadataParser.cs#L34-L41",
        _deep_metadata,
    ),
    Rule(
        "equal-names",
        "triggers",
        "error",
        "two tools, prompts or resources whose names or URIs differ in the case of letters, or not at all",
        "The second function is not loaded.",
        "another name",
        f"{_EXTENSION}/DefaultToolRegistry.cs#L12-L20",
        _equal_names,
    ),
    Rule(
        "output-schema-results",
        "triggers",
        "warning",
        "`outputSchema` without `useResultSchema`",
        "The results have no structured content. Clients on the official SDKs refuse each of them.",
        "`useResultSchema: true` and an envelope with `structuredContent`, or no `outputSchema`",
        "https://github.com/Azure/azure-functions-python-worker/issues/1826",
        _schemas_without_results,
    ),
    Rule(
        "binary-contexts",
        "triggers",
        "warning",
        "`dataType` of an MCP trigger is `binary` or `stream`",
        "Each call fails: the context is a text and can't be converted.",
        "no `dataType`",
        f"{_EXTENSION}/Trigger/ObjectValueProvider.cs#L17-L20",
        _binary_contexts,
    ),
    Rule(
        "path-expressions",
        "triggers",
        "warning",
        "the path of a blob or the name of a queue with an expression that is the same in each call, or has no value",
        "All calls use one blob, or each of them fails.",
        "`{mcptoolargs.NAME}`",
        "https://github.com/Azure/azure-functions-host/blob/89dc438d476542786f2fc4070f553423213a6223"
        "/src/WebJobs.Script/Utility.cs",
        _doubtful_expressions,
    ),
)
