"""The rewriting of Azure's MCP triggers: functions of a function app become tools of an MCPServer.

How it works: a tool's function is rewritten if all of its trigger is written out: its name, its description and its
properties. `funcmcp.azure.trigger_app(mcp, app)` at the end of the file registers the tools as triggers again. Other
functions stay as they are, beside the tools, and the report names them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from funcmcp.cli.migrate import names
from funcmcp.cli.migrate.notes import Level, Note
from funcmcp.cli.migrate.server_uses import dotted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from funcmcp.cli.migrate.project import SourceFile

_TRIGGERS = {"mcp_tool", "mcp_tool_trigger", "mcp_resource_trigger", "mcp_prompt_trigger"}
_GENERIC = {"mcptooltrigger", "mcpresourcetrigger", "mcpprompttrigger"}
_TYPES = {"array", "boolean", "integer", "number", "object", "string"}
_PROPERTY_FIELDS = ("propertyName", "propertyType", "description")
_TRIGGER_OPTIONS = {"arg_name", "type", "toolName", "tool_name", "description", "toolProperties", "tool_properties"}


class _UnknownValueError(Exception):
    """A value is not written out in the file."""


def rewritten_app(source: SourceFile, data: bytes) -> tuple[bytes, list[Note]]:
    """Return the new text of a file with Azure's MCP triggers, and its lines of the report.

    Args:
        source: The file.
        data: Its text, in which servers may have been rewritten already.
    """
    if b"azure" not in data:
        return data, []
    module = source.module if data == source.data else cst.parse_module(data)
    apps = [name for name, call in _assignments(module).items() if _is_function_app(call)]
    rewriter = _Rewriter(source.name, module, apps[0] if len(apps) == 1 else "")
    new = MetadataWrapper(module).visit(rewriter)
    if not rewriter.tools:
        return data, rewriter.notes
    return _with_server(new, apps[0], rewriter).bytes, rewriter.notes


def _assignments(module: cst.Module) -> dict[str, cst.BaseExpression]:
    """Return the values of the variables at the top level of a module."""
    values = {}
    for line in module.body:
        if isinstance(line, cst.SimpleStatementLine):
            for statement in line.body:
                if isinstance(statement, cst.Assign) and isinstance(statement.targets[0].target, cst.Name):
                    values[statement.targets[0].target.value] = statement.value
    return values


def _is_function_app(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Call) and dotted(node.func).rpartition(".")[2] == "FunctionApp"


def _value(node: cst.BaseExpression, variables: Mapping[str, cst.BaseExpression]) -> Any:
    """Return the value of an expression. Raise _UnknownValueError if it is not written out."""
    if isinstance(node, cst.SimpleString | cst.ConcatenatedString):
        return node.evaluated_value
    if isinstance(node, cst.Name):
        if node.value in ("True", "False"):
            return node.value == "True"
        if node.value in variables:
            return _value(variables[node.value], variables)
    if isinstance(node, cst.List | cst.Tuple):
        return [_value(element.value, variables) for element in node.elements]
    if isinstance(node, cst.Dict):
        return _dict_value(node, variables)
    if isinstance(node, cst.ListComp):  # [item.to_dict() for item in PROPERTIES]
        return _value(node.for_in.iter, variables)
    if isinstance(node, cst.Call):
        return _call_value(node, variables)
    raise _UnknownValueError


def _dict_value(node: cst.Dict, variables: Mapping[str, cst.BaseExpression]) -> dict[Any, Any]:
    members = {}
    for element in node.elements:
        if not isinstance(element, cst.DictElement):
            raise _UnknownValueError
        members[_value(element.key, variables)] = _value(element.value, variables)
    return members


def _call_value(node: cst.Call, variables: Mapping[str, cst.BaseExpression]) -> Any:
    """Return the value of ``json.dumps(...)``, or of a class for properties such as that in Azure's samples."""
    function = dotted(node.func).rpartition(".")[2]
    if function == "dumps" and len(node.args) == 1:
        return json.dumps(_value(node.args[0].value, variables))
    if function[:1].isupper() and len(node.args) >= len(_PROPERTY_FIELDS):
        arguments = node.args[: len(_PROPERTY_FIELDS)]
        if all(argument.keyword is None for argument in arguments) and len(node.args) == len(arguments):
            values = [_value(argument.value, variables) for argument in arguments]
            return dict(zip(_PROPERTY_FIELDS, values, strict=True))
    raise _UnknownValueError


def _schema(properties: Any) -> dict[str, Any]:
    """Return the schema for tool properties. Raise _UnknownValueError if they have another form."""
    items = json.loads(properties) if isinstance(properties, str) else properties
    members: dict[str, Any] = {}
    required = []
    for item in items:
        kind, name = item.get("propertyType", "string"), item.get("propertyName")
        if not isinstance(name, str) or kind not in _TYPES:
            raise _UnknownValueError
        member = {"type": kind}
        if item.get("isArray"):
            member = {"type": "array", "items": {"type": kind}}  # type: ignore[dict-item]
        if item.get("description"):
            member["description"] = item["description"]
        members[name] = member
        if item.get("isRequired"):
            required.append(name)
    schema: dict[str, Any] = {"type": "object", "properties": members}
    return {**schema, "required": required} if required else schema


class _Rewriter(cst.CSTTransformer):
    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, file: str, module: cst.Module, app: str) -> None:
        super().__init__()
        self.file = file
        self.app = app
        self.variables = _assignments(module)
        self.server = "mcp" if b"mcp =" not in module.bytes else "mcp_server"
        self.imports: set[str] = set()
        self.tools = 0
        self.notes: list[Note] = []

    def note(self, node: cst.CSTNode, level: Level, text: str) -> None:
        line = int(self.get_metadata(PositionProvider, node).start.line)
        self.notes.append(Note(self.file, line, level, text))

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        calls = [decorator.decorator for decorator in updated_node.decorators]
        triggers = [call for call in calls if isinstance(call, cst.Call) and _is_trigger(call)]
        if len(triggers) != 1:
            return updated_node
        name = original_node.name.value
        kind = dotted(triggers[0].func).rpartition(".")[2]
        try:
            if not self.app or dotted(triggers[0].func).rpartition(".")[0] != self.app:
                raise _UnknownValueError("its app is not a FunctionApp of this file")
            if kind == "mcp_tool":
                new = self.typed_tool(updated_node, calls)
            else:
                new = self.triggered_tool(updated_node, triggers[0], calls)
        except _UnknownValueError as error:
            reason = str(error) or "a value of its trigger is not written out"
            self.note(original_node, "missing", f"{name} stays a function of Azure's: {reason}")
            return updated_node
        except (ValueError, AttributeError, TypeError):
            self.note(original_node, "missing", f"{name} stays a function of Azure's: its properties are not valid")
            return updated_node
        self.tools += 1
        self.note(original_node, "moves", f"{name}: @{self.server}.tool")
        self.note(original_node, "differs", f"{name}: arguments are validated before the function runs")
        return new

    def typed_tool(self, node: cst.FunctionDef, calls: Sequence[cst.BaseExpression]) -> cst.FunctionDef:
        """Return the function for ``@app.mcp_tool()``, whose parameters are the arguments."""
        descriptions: dict[str, str] = {}
        for call in calls:
            function = dotted(call.func).rpartition(".")[2] if isinstance(call, cst.Call) else ""
            if function == "mcp_tool" and isinstance(call, cst.Call) and not call.args:
                continue
            if function != "mcp_tool_property" or not isinstance(call, cst.Call):
                raise _UnknownValueError("it has other bindings; see bindings= of trigger_app")
            options = self.options(call)
            if not {"arg_name", "description"} >= options.keys() or "arg_name" not in options:
                raise _UnknownValueError("a property has options beside its description")
            descriptions[options["arg_name"]] = options.get("description", "")
        parameters = node.params.params
        if any(parameter.annotation is None for parameter in parameters):
            raise _UnknownValueError("a parameter has no type")
        if any(
            "Context" in dotted(parameter.annotation.annotation) for parameter in parameters if parameter.annotation
        ):
            raise _UnknownValueError("it takes Azure's context; use ToolContext")
        if not descriptions.keys() <= {parameter.name.value for parameter in parameters}:
            raise _UnknownValueError("a property belongs to no parameter")
        changed = [self.described(parameter, descriptions.get(parameter.name.value, "")) for parameter in parameters]
        decorator = f"{self.server}.tool"
        if not names.SNAKE_CASE.fullmatch(node.name.value):
            decorator += f'(name="{node.name.value}")'
        return node.with_changes(
            params=node.params.with_changes(params=changed), decorators=[_decorator(node, decorator)]
        )

    def described(self, parameter: cst.Param, text: str) -> cst.Param:
        if not text or parameter.annotation is None:
            return parameter
        self.imports.add("Annotated")
        old = parameter.annotation.annotation
        new = cst.Subscript(
            cst.Name("Annotated"),
            [
                cst.SubscriptElement(cst.Index(old), comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))),
                cst.SubscriptElement(cst.Index(cst.SimpleString(json.dumps(text, ensure_ascii=False)))),
            ],
        )
        return parameter.with_changes(annotation=parameter.annotation.with_changes(annotation=new))

    def triggered_tool(
        self, node: cst.FunctionDef, trigger: cst.Call, calls: Sequence[cst.BaseExpression]
    ) -> cst.FunctionDef:
        """Return the function for a tool trigger, which takes its context as a text of JSON."""
        options = self.options(trigger)
        if options.get("type", "mcpToolTrigger").lower() != "mcptooltrigger" or "mcp_resource" in dotted(trigger.func):
            raise _UnknownValueError("it is not a tool; write it with @mcp.resource or @mcp.prompt")
        if len(calls) > 1:
            raise _UnknownValueError("it has other bindings; see bindings= of trigger_app")
        if not options.keys() <= _TRIGGER_OPTIONS or "arg_name" not in options:
            raise _UnknownValueError("the trigger has options that funcmcp does not have")
        tool = options.get("tool_name", options.get("toolName"))
        schema = _schema(options.get("tool_properties", options.get("toolProperties", "[]")))
        parameter = options["arg_name"]
        if [item.name.value for item in node.params.params] != [parameter] or not isinstance(tool, str):
            raise _UnknownValueError("it has other parameters than the trigger's")
        body = _ContextReader(parameter, tool)
        new = cast("cst.BaseSuite", node.body.visit(body))
        if body.is_used_otherwise:
            raise _UnknownValueError(f"it uses {parameter} other than by json.loads({parameter})")
        self.imports.add("Any")
        text = json.dumps(schema, indent=4, ensure_ascii=False).replace("\n", "\n    ")
        description = json.dumps(options.get("description", ""), ensure_ascii=False)
        decorator = f'{self.server}.tool(\n    "{tool}",\n    description={description},\n    input_schema={text},\n)'
        arguments = cst.Param(cst.Name("arguments"), cst.Annotation(cst.parse_expression("dict[str, Any]")))
        return node.with_changes(body=new, params=cst.Parameters([arguments]), decorators=[_decorator(node, decorator)])

    def options(self, call: cst.Call) -> dict[str, Any]:
        if any(argument.keyword is None for argument in call.args):
            raise _UnknownValueError("the trigger has positional options")
        return {
            argument.keyword.value: _value(argument.value, self.variables) for argument in call.args if argument.keyword
        }


class _ContextReader(cst.CSTTransformer):
    """Replaces ``json.loads(context)`` by an object with the tool's name and arguments."""

    def __init__(self, parameter: str, tool: str) -> None:
        super().__init__()
        self.parameter = parameter
        self.tool = tool
        self.is_used_otherwise = False

    def visit_Call(self, node: cst.Call) -> bool:
        return not self.is_loads(node)

    def visit_Name(self, node: cst.Name) -> None:
        if node.value == self.parameter:
            self.is_used_otherwise = True

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        if not self.is_loads(original_node):
            return updated_node
        return cst.parse_expression(f'{{"name": "{self.tool}", "arguments": arguments}}')

    def is_loads(self, node: cst.Call) -> bool:
        is_json = dotted(node.func) in ("json.loads", "loads")
        return is_json and len(node.args) == 1 and dotted(node.args[0].value) == self.parameter


def _is_trigger(call: cst.Call) -> bool:
    function = dotted(call.func).rpartition(".")[2]
    if function != "generic_trigger":
        return function in _TRIGGERS
    for argument in call.args:
        if argument.keyword is not None and argument.keyword.value == "type":
            value = argument.value
            return isinstance(value, cst.SimpleString) and str(value.evaluated_value).lower() in _GENERIC
    return False


def _decorator(node: cst.FunctionDef, text: str) -> cst.Decorator:
    """Return a decorator with the comments before the function's first one."""
    return cst.Decorator(cst.parse_expression(text), leading_lines=node.decorators[0].leading_lines)


def _with_server(module: cst.Module, app: str, rewriter: _Rewriter) -> cst.Module:
    """Return the module with imports, the server after the function app, and the registration at the end."""
    server = rewriter.server
    body: list[Any] = []
    has_imports = False
    for line in module.body:
        body.append(line)
        if not has_imports and _imports_azure(line):
            has_imports = True
            body += _lines(["import funcmcp.azure", "from funcmcp import MCPServer"])
            if rewriter.imports:
                body += _lines([f"from typing import {', '.join(sorted(rewriter.imports))}"])
        if isinstance(line, cst.SimpleStatementLine) and any(_assigns(item, app) for item in line.body):
            body += _lines(
                [f'{server} = MCPServer("{rewriter.file.rpartition("/")[0].rpartition("/")[2] or "Tools"}")']
            )
    end = cst.SimpleStatementLine(
        [cst.Expr(cst.parse_expression(f"funcmcp.azure.trigger_app({server}, {app})"))],
        leading_lines=[cst.EmptyLine(indent=False), cst.EmptyLine(indent=False)],
    )
    return module.with_changes(body=[*body, end])


def _lines(texts: Iterable[str]) -> list[cst.BaseStatement]:
    return [cst.ensure_type(cst.parse_statement(text), cst.SimpleStatementLine) for text in texts]


def _imports_azure(line: cst.CSTNode) -> bool:
    if not isinstance(line, cst.SimpleStatementLine):
        return False
    for statement in line.body:
        if isinstance(statement, cst.Import) and any(
            dotted(alias.name).startswith("azure") for alias in statement.names
        ):
            return True
        if isinstance(statement, cst.ImportFrom) and dotted(statement.module).startswith("azure"):
            return True
    return False


def _assigns(statement: cst.CSTNode, name: str) -> bool:
    return isinstance(statement, cst.Assign) and dotted(statement.targets[0].target) == name
