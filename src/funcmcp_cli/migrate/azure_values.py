"""Values that are written out in a file: the options of Azure's MCP triggers.

How it works: options are literals, variables at the top level of the file with literals, ``json.dumps`` of these, or
classes for properties as in Azure's samples. Every other expression raises `UnknownValueError`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import libcst as cst

from funcmcp._objects.mappings import without

if TYPE_CHECKING:
    from collections.abc import Mapping

_TYPES = {"array", "boolean", "integer", "number", "object", "string"}
_PROPERTY_FIELDS = ("propertyName", "propertyType", "description")
_ARGUMENT_FIELDS = ("name", "description", "required")


_MEMBER_VALUES = {"DATETIME": "string"}
"""Members of McpPropertyType that do not have their name in lower case as value."""


class UnknownValueError(Exception):
    """A value is not written out in the file."""


def assignments(module: cst.Module) -> dict[str, cst.BaseExpression]:
    """Return the values of the variables at the top level of a module."""
    values = {}
    for line in module.body:
        if isinstance(line, cst.SimpleStatementLine):
            for statement in line.body:
                if isinstance(statement, cst.Assign) and isinstance(statement.targets[0].target, cst.Name):
                    values[statement.targets[0].target.value] = statement.value
    return values


def value_of(node: cst.BaseExpression, variables: Mapping[str, cst.BaseExpression]) -> Any:
    """Return the value of an expression. Raise UnknownValueError if it is not written out."""
    if isinstance(node, cst.SimpleString | cst.ConcatenatedString | cst.Integer):
        return node.evaluated_value
    if isinstance(node, cst.Name):
        return _named_value(node.value, variables)
    if isinstance(node, cst.List | cst.Tuple):
        return [value_of(element.value, variables) for element in node.elements]
    if isinstance(node, cst.Dict):
        return _dict_value(node, variables)
    if isinstance(node, cst.ListComp):  # [item.to_dict() for item in PROPERTIES]
        return value_of(node.for_in.iter, variables)
    if isinstance(node, cst.Call):
        return _call_value(node, variables)
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
        return _sum(value_of(node.left, variables), value_of(node.right, variables))
    if isinstance(node, cst.FormattedString):
        return "".join(_part(part, variables) for part in node.parts)
    if isinstance(node, cst.Attribute) and dotted(node.value).rpartition(".")[2] == "McpPropertyType":
        return _MEMBER_VALUES.get(node.attr.value, node.attr.value.lower())
    raise UnknownValueError


def _sum(first: Any, second: Any) -> str:
    if not isinstance(first, str) or not isinstance(second, str):
        raise UnknownValueError
    return first + second


def _part(node: cst.BaseFormattedStringContent, variables: Mapping[str, cst.BaseExpression]) -> str:
    """Return the text of a part of an f-string, whose expressions must be texts without a format."""
    if isinstance(node, cst.FormattedStringText):
        return node.value.replace("{{", "{").replace("}}", "}")
    if isinstance(node, cst.FormattedStringExpression) and node.format_spec is None and node.conversion is None:
        return _sum(value_of(node.expression, variables), "")
    raise UnknownValueError


def _named_value(name: str, variables: Mapping[str, cst.BaseExpression]) -> Any:
    constants = {"True": True, "False": False, "None": None}
    if name in constants:
        return constants[name]
    if name not in variables:
        raise UnknownValueError
    remaining = without(variables, name)  # a variable may name itself
    return value_of(variables[name], remaining)


def _dict_value(node: cst.Dict, variables: Mapping[str, cst.BaseExpression]) -> dict[Any, Any]:
    members = {}
    for element in node.elements:
        if not isinstance(element, cst.DictElement):
            raise UnknownValueError
        members[value_of(element.key, variables)] = value_of(element.value, variables)
    return members


def _call_value(node: cst.Call, variables: Mapping[str, cst.BaseExpression]) -> Any:
    """Return the value of ``json.dumps(...)``, or the members of an object of a class for properties or arguments."""
    function = dotted(node.func).rpartition(".")[2]
    if function == "dumps" and node.args:
        return json.dumps(value_of(node.args[0].value, variables))
    if function == "PromptArgument":
        return _members(node, _ARGUMENT_FIELDS, variables)
    is_positional = all(argument.keyword is None for argument in node.args)
    if function[:1].isupper() and is_positional and len(node.args) == len(_PROPERTY_FIELDS):
        return _members(node, _PROPERTY_FIELDS, variables)
    raise UnknownValueError


def _members(node: cst.Call, fields: tuple[str, ...], variables: Mapping[str, cst.BaseExpression]) -> dict[str, Any]:
    if len(node.args) > len(fields):
        raise UnknownValueError
    members = {}
    for field, argument in zip(fields, node.args, strict=False):
        name = field if argument.keyword is None else argument.keyword.value
        if argument.star or name not in fields:
            raise UnknownValueError
        members[name] = value_of(argument.value, variables)
    return members


def schema_of(properties: Any) -> dict[str, Any]:
    """Return the schema for tool properties. Raise UnknownValueError if they have another form."""
    members: dict[str, Any] = {}
    required = []
    for tool_property in json_value(properties):
        kind, name = tool_property.get("propertyType", "string"), tool_property.get("propertyName")
        if not isinstance(name, str) or kind not in _TYPES:
            raise UnknownValueError
        member: dict[str, Any] = {"type": kind}
        if tool_property.get("isArray"):
            member = {"type": "array", "items": {"type": kind}}
        if tool_property.get("description"):
            member["description"] = tool_property["description"]
        members[name] = member
        if tool_property.get("isRequired"):
            required.append(name)
    schema: dict[str, Any] = {"type": "object", "properties": members}
    if required:
        schema["required"] = required
    return schema


def json_value(value: Any) -> Any:
    """Return the value of a text with JSON, or a value that is no text unchanged."""
    return json.loads(value) if isinstance(value, str) else value


def dotted(node: cst.BaseExpression | None) -> str:
    """Return a name such as ``a.b``. Return "" for another expression."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        head = dotted(node.value)
        return f"{head}.{node.attr.value}" if head else ""
    return ""
