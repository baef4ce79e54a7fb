"""The rewriting of Azure's MCP triggers: functions of a function app become tools, resources and prompts of a server.

How it works: a function is rewritten if all options of its trigger are written out, and if it uses its context only in
ways that the contexts of funcmcp have. `funcmcp.azure.trigger_app(mcp, app)` at the end of the file registers the
features as triggers again. Other functions stay as they are, and the report names them with the reason.
"""

from __future__ import annotations

import json
import keyword
import re
from typing import TYPE_CHECKING, Any, cast

import libcst as cst
from libcst.metadata import MetadataWrapper, ParentNodeProvider, PositionProvider

from funcmcp._adapters.azure.triggers.binding_json import URI_VARIABLE
from funcmcp._objects.mappings import without_none
from funcmcp_cli.migrate.azure_returns import Returned, ReturnReader
from funcmcp_cli.migrate.azure_values import UnknownValueError, assignments, dotted, json_value, schema_of, value_of
from funcmcp_cli.migrate.notes import Level, Note

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from funcmcp_cli.migrate.project import SourceFile

_KINDS = {
    "mcptooltrigger": "tool",
    "mcp_tool_trigger": "tool",
    "mcpresourcetrigger": "resource",
    "mcp_resource_trigger": "resource",
    "mcpprompttrigger": "prompt",
    "mcp_prompt_trigger": "prompt",
}
"""By decorator, and by type of a generic trigger in lower case, the kind of feature."""

_VALIDATED = "arguments are validated before the function runs"
_TITLED = "its title is made from its name"
_COMMON_OPTIONS = {"arg_name": "", "type": "", "title": "title", "description": "description", "metadata": "meta"}
_OPTIONS = {
    "tool": {
        **_COMMON_OPTIONS,
        "toolName": "name",
        "tool_name": "name",
        "toolProperties": "properties",
        "tool_properties": "properties",
    },
    "resource": {
        **_COMMON_OPTIONS,
        "uri": "uri",
        "resourceName": "name",
        "resource_name": "name",
        "mimeType": "mime_type",
        "mime_type": "mime_type",
        "size": "size",
    },
    "prompt": {
        **_COMMON_OPTIONS,
        "promptName": "name",
        "prompt_name": "name",
        "promptArguments": "arguments",
        "prompt_arguments": "arguments",
        "icons": "icons",
    },
}
"""By kind of feature, the options of its trigger, and their names here."""

_NAME_OPTIONS = {name for options in _OPTIONS.values() for name, new in options.items() if new == "name"}

_SNAKE_CASE = re.compile(r"(?!.*__)[a-z][a-z0-9_]*(?<!_)")
"""Names of functions that funcmcp does not change."""

_TIME_LIMIT = "a call may take 600 s, and not as long as functionTimeout; write timeout= for functions that take longer"
_LINE = 100
"""A decorator that is longer than this has one argument on a line."""

_PROMPT_OBSTACLES = {
    Returned.RESULT: "it returns messages as JSON; return a list of funcmcp.content.Message instead",
    Returned.UNCLEAR: "what it returns may be messages as JSON; return a text or a list of funcmcp.content.Message",
    Returned.VALUE: "it returns a value that is not a text; return a text or a list of funcmcp.content.Message",
    Returned.BYTES: "it returns bytes; return a text or a list of funcmcp.content.Message",
    Returned.NONE: "it may return None, which has no messages; return an empty list instead",
}
"""Why a prompt is not rewritten, by what it may return. The first one that applies is reported."""

_RESOURCE_OBSTACLES = {
    Returned.RESULT: "it may return contents as JSON; return a funcmcp.content.Contents, or a text without `content`",
    Returned.VALUE: "it returns a value that is neither a text nor bytes, which Azure refuses",
    Returned.NONE: "it may return None, for which Azure sends no contents; funcmcp answers that there is no resource",
}
"""The same for resources."""

_PROPERTY_OPTIONS = {"arg_name", "description", "property_type", "is_required", "as_array"}
_PROPERTY_TYPES = {
    "str": "string",
    "datetime.datetime": "string",
    "datetime": "string",
    "int": "integer",
    "float": "float",
    "bool": "boolean",
    "dict": "object",
    "list": "array",
    "List": "array",
}
"""The property type of azure-functions, by the type of the parameter."""

_DURABLE_CLIENT = (
    'it uses Durable functions; write the orchestration as a tool with @mcp.tool(task="optional"), which starts, polls '
    "and cancels it for every client; see docs/guides/tasks.md"
)
_ORCHESTRATION = (
    'an orchestration of Durable functions; it can be an async tool with @mcp.tool(task="optional") that awaits '
    "context.once(NAME, FUNCTION) for each activity; see docs/guides/tasks.md"
)

_CONTEXT_ONLY = {"clientinfo", "sessionid", "transport"}
"""Members of Azure's contexts that a rewritten function no longer gets."""


def rewritten_app(source: SourceFile, code: bytes) -> tuple[bytes, list[Note]]:
    """Return the new text of a file with Azure's MCP triggers, and its lines of the report.

    Args:
        source: The file.
        code: Its text, in which servers may have been rewritten already.
    """
    if not source.may_have_triggers:
        return code, []
    module = source.module if code == source.data else cst.parse_module(code)
    apps = [name for name, call in assignments(module).items() if _is_function_app(call)]
    rewriter = _Rewriter(source.name, module, apps[0] if len(apps) == 1 else "")
    new = MetadataWrapper(module).visit(rewriter)
    if not rewriter.features:
        return code, rewriter.notes
    rewriter.notes.append(Note(source.name, 0, "differs", _TIME_LIMIT))
    return _with_server(new, apps[0], rewriter).bytes, rewriter.notes


def _has_option(node: cst.FunctionDef, name: str) -> bool:
    """Return whether a decorator of a function has an option."""
    return any(name in _keywords(call) for call in _decorator_calls(node))


def _decorator_calls(node: cst.FunctionDef) -> list[cst.Call]:
    """Return the decorators of a function that have parentheses."""
    return [item.decorator for item in node.decorators if isinstance(item.decorator, cst.Call)]


def _keywords(call: cst.Call) -> dict[str, cst.BaseExpression]:
    """Return the values that a call passes by name."""
    return {argument.keyword.value: argument.value for argument in call.args if argument.keyword is not None}


def _parameter_names(node: cst.FunctionDef) -> list[str]:
    return [parameter.name.value for parameter in node.params.params]


def _is_function_app(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Call) and dotted(node.func).rpartition(".")[2] in ("FunctionApp", "DFApp")


class _Rewriter(cst.CSTTransformer):
    METADATA_DEPENDENCIES = (ParentNodeProvider, PositionProvider)

    def __init__(self, file: str, module: cst.Module, app: str) -> None:
        super().__init__()
        self.file = file
        self.module = module
        self.reader = ReturnReader(module)
        self.app = app
        self.variables = assignments(module)
        self.server = "mcp" if b"mcp =" not in module.bytes else "mcp_server"
        self.imports: set[str] = set()
        self.names = {"MCPServer"}
        self.features = 0
        self.notes: list[Note] = []

    def note(self, node: cst.CSTNode, level: Level, text: str) -> None:
        line = int(self.get_metadata(PositionProvider, node).start.line)
        self.notes.append(Note(self.file, line, level, text))

    def visit_Call(self, node: cst.Call) -> None:
        if isinstance(node.func, cst.Call) and _is_trigger(node.func):
            name = (dotted(node.args[0].value) if node.args else "") or "a function"
            text = "its trigger is called, and is not a decorator; write it with @ above the function"
            if self.may_run_again(node):
                text = (
                    "its trigger is called in a loop or in a function, so this line may make several tools; "
                    "write a function with a decorator for each of them"
                )
            self.note(node, "missing", f"{name} stays a function of Azure's: {text}")

    def may_run_again(self, node: cst.CSTNode) -> bool:
        """Return whether code is in a loop, a comprehension or a function."""
        while not isinstance(node, cst.Module):
            node = self.get_metadata(ParentNodeProvider, node)
            if isinstance(node, cst.For | cst.While | cst.BaseComp | cst.FunctionDef | cst.Lambda):
                return True
        return False

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        calls = [decorator.decorator for decorator in updated_node.decorators]
        triggers = list(filter(_is_trigger, _decorator_calls(updated_node)))
        name = original_node.name.value
        if len(triggers) != 1:
            if any(_is_orchestration(call) for call in _decorator_calls(updated_node)):
                self.note(original_node, "missing", f"{name}: {_ORCHESTRATION}")
            return updated_node
        decorator = dotted(triggers[0].func).rpartition(".")[2]
        try:
            self.check_app(dotted(triggers[0].func).rpartition(".")[0])
            if decorator == "mcp_tool":
                kind, new = "tool", self.typed_tool(updated_node, calls)
            else:
                kind, new = self.triggered(updated_node, triggers[0], calls)
        except UnknownValueError as error:
            reason = str(error) or "a value of its trigger is not written out"
            self.note(original_node, "missing", f"{name} stays a function of Azure's: {reason}")
            return updated_node
        except (ValueError, LookupError, AttributeError, TypeError):
            text = f"{name} stays a function of Azure's: its properties or arguments are not valid"
            self.note(original_node, "missing", text)
            return updated_node
        self.features += 1
        self.note(original_node, "moves", f"{name}: @{self.server}.{kind}")
        for text in self.differences(kind, original_node):
            self.note(original_node, "differs", f"{name}: {text}")
        return new

    def differences(self, kind: str, node: cst.FunctionDef) -> list[str]:
        """Return what is not the same on the wire after a function has been rewritten."""
        differences = {
            "tool": self.differences_of_tool,
            "prompt": self.differences_of_prompt,
            "resource": self.differences_of_resource,
        }
        return differences[kind](node) + self.optional_arguments(node)

    def differences_of_tool(self, node: cst.FunctionDef) -> list[str]:
        """Return what is not the same on the wire after a tool has been rewritten."""
        texts = [_VALIDATED]
        if any(parameter.default is not None for parameter in node.params.params):
            texts.append("the schema has the defaults of its arguments")
        values = self.reader.returned(node)
        is_text = self.returns_text(node)
        if Returned.VALUE in values or (Returned.UNCLEAR in values and not is_text):
            texts.append("a result that is not a text is structured content, with its JSON as a text")
        if node.returns is not None and not is_text:
            texts.append("its results are validated against the return annotation")
        if Returned.BYTES in values:
            texts.append("bytes are an embedded resource; Azure sends the name of a type of .NET")
        return texts

    def differences_of_prompt(self, node: cst.FunctionDef) -> list[str]:
        """Return what is not the same on the wire after a prompt has been rewritten."""
        texts = [_VALIDATED, "the result has the prompt's description"]
        return texts if _has_option(node, "title") else [*texts, _TITLED]

    def differences_of_resource(self, node: cst.FunctionDef) -> list[str]:
        """Return what is not the same on the wire after a resource has been rewritten."""
        texts = [] if _has_option(node, "title") else [_TITLED]
        if not (_has_option(node, "mime_type") or _has_option(node, "mimeType")):
            texts.append("its media type is made from what it returns")
        if Returned.UNCLEAR in self.reader.returned(node):
            texts.append("JSON with `content` that it returns is a text; Azure sends the contents in it")
        return texts

    def optional_arguments(self, node: cst.FunctionDef) -> list[str]:
        """Return a line for each argument that Azure requires although its parameter has a default."""
        defaults = {parameter.name.value for parameter in node.params.params if parameter.default is not None}
        texts = []
        for call in _decorator_calls(node):
            if not dotted(call.func).endswith("mcp_tool_property"):
                continue
            options = self.options(call)
            name = options["arg_name"]
            if name in defaults and options.get("is_required", True):
                texts.append(f"the argument {name} is optional, because it has a default")
        return texts

    def returns_text(self, node: cst.FunctionDef) -> bool:
        """Return whether a function's annotation says that it returns a text. None is that of Azure's templates."""
        return node.returns is not None and dotted(node.returns.annotation) in ("str", "None")

    def check_annotation(self, node: cst.FunctionDef) -> None:
        """Raise UnknownValueError if a tool returns a text and its annotation is another type: calls would fail."""
        if node.returns is None or self.returns_text(node):
            return
        annotation = self.module.code_for_node(node.returns.annotation)
        union = re.fullmatch(r"(?:typing\.)?(?:Optional|Union)\[(.*)\]", annotation)
        members = re.split(r"[|,]", annotation if union is None else union[1])
        accepts_text = not {"str", "Any", "typing.Any", "object"}.isdisjoint(map(str.strip, members))
        if not accepts_text and self.reader.returned(node) & {Returned.TEXT, Returned.JSON, Returned.RESULT}:
            raise UnknownValueError(f"it returns a text, but its annotation is {annotation}; correct the annotation")

    def check_returned(self, node: cst.FunctionDef, obstacles: Mapping[Returned, str]) -> None:
        """Raise UnknownValueError if a function may return what it cannot return afterwards."""
        values = self.reader.returned(node)
        for value, reason in obstacles.items():
            if value in values:
                raise UnknownValueError(reason)

    def check_app(self, name: str) -> None:
        """Raise UnknownValueError if a decorator does not belong to the FunctionApp of the file."""
        if self.app and name == self.app:
            return
        value = self.variables.get(name)
        if value is None:
            raise UnknownValueError(
                "its app is not a FunctionApp of this file; move it to the file that creates the app"
            )
        maker = dotted(value.func).rpartition(".")[2] if isinstance(value, cst.Call) else ""
        if maker == "Blueprint":
            raise UnknownValueError(
                "its app is a Blueprint; write it with a MCPServer of this file, and mount that in the file of the app"
            )
        if _is_function_app(value):
            raise UnknownValueError("this file creates several function apps; move its app to a file of its own")
        made = f"{maker}(...)" if maker else "another expression"
        raise UnknownValueError(
            f"its app is made by {made}, which migrate does not know; "
            "make it a FunctionApp, or write the function with a MCPServer of this file"
        )

    def typed_tool(self, node: cst.FunctionDef, calls: Sequence[cst.BaseExpression]) -> cst.FunctionDef:
        """Return the function for ``@app.mcp_tool()``, whose parameters are the arguments."""
        descriptions: dict[str, str] = {}
        tool_options: dict[str, Any] = {}
        for call in calls:
            function = dotted(call.func).rpartition(".")[2] if isinstance(call, cst.Call) else ""
            if function == "mcp_tool" and isinstance(call, cst.Call):
                tool_options = self.options(call)
                continue
            if function != "mcp_tool_property" or not isinstance(call, cst.Call):
                raise UnknownValueError(self.bindings_reason(node.name.value, [call]))
            options = self.options(call)
            check_property(node, options)
            descriptions[options["arg_name"]] = options.get("description", "")
        if tool_options.keys() - {"metadata"}:
            raise UnknownValueError("the trigger has options that funcmcp does not have")
        self.check_annotation(node)
        changed = []
        for parameter in node.params.params:
            if parameter.annotation is None:
                raise UnknownValueError("a parameter has no type")
            if "Context" in dotted(parameter.annotation.annotation):
                raise UnknownValueError(
                    "it takes Azure's context; write context: funcmcp.Context, and context.arguments, "
                    "context.session_id, context.client_info in place of its members"
                )
            changed.append(self.described(parameter, descriptions.pop(parameter.name.value, "")))
        if descriptions:
            raise UnknownValueError("a property belongs to no parameter")
        name = node.name.value
        written = {"meta": json_value(tool_options.get("metadata"))}
        if not _SNAKE_CASE.fullmatch(name):
            written = {"name": name, **written}
        decorator = _call_text(f"{self.server}.tool", None, written)
        return node.with_changes(
            params=node.params.with_changes(params=changed), decorators=[_decorator(node, decorator)]
        )

    def bindings_reason(self, feature: str, calls: Sequence[cst.BaseExpression]) -> str:
        """Return the reason for a function with other bindings, with the code of the first."""
        call = calls[0]
        if not isinstance(call, cst.Call):
            return "it has other decorators"
        options = {}
        for name, node in _keywords(call).items():
            if isinstance(node, cst.SimpleString):
                options[name] = value_of(node, {})
        decorator = dotted(call.func).rpartition(".")[2]
        if decorator == "durable_client_input" or options.get("type", "").lower() == "durableclient":
            return _DURABLE_CLIENT
        if "arg_name" not in options:
            return f"it has the binding {decorator}, which funcmcp does not have"
        kind = options.get("type") or decorator.partition("_")[0]
        direction = "Output" if "output" in decorator else "Input"
        binding = f'{direction}("{options["arg_name"]}", "{kind}", ...)'
        example = f'trigger_app(mcp, app, bindings={{"{feature}": [{binding}]}})'
        return f"it has other bindings; write {example} and a parameter bindings: funcmcp.azure.Bindings"

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

    def triggered(
        self, node: cst.FunctionDef, trigger: cst.Call, calls: Sequence[cst.BaseExpression]
    ) -> tuple[str, cst.FunctionDef]:
        """Return the kind of feature and the function for a trigger, which takes its context as a text of JSON."""
        values = self.options(trigger)
        kind = _kind_of(trigger, values)
        if len(calls) > 1:
            feature = node.name.value
            for name in _NAME_OPTIONS & values.keys():
                feature = str(values[name])
            raise UnknownValueError(self.bindings_reason(feature, [call for call in calls if call is not trigger]))
        if not values.keys() <= _OPTIONS[kind].keys() or "arg_name" not in values:
            raise UnknownValueError("the trigger has options that funcmcp does not have")
        options = {_OPTIONS[kind][name]: value for name, value in without_none(values).items()}
        parameter = values["arg_name"]
        if _parameter_names(node) != [parameter] or not isinstance(options.get("name"), str):
            raise UnknownValueError("it has other parameters than the trigger's")
        rewrite = {"tool": self.triggered_tool, "resource": self.triggered_resource, "prompt": self.triggered_prompt}
        return kind, rewrite[kind](node, parameter, options)

    def triggered_tool(self, node: cst.FunctionDef, parameter: str, options: dict[str, Any]) -> cst.FunctionDef:
        self.check_annotation(node)
        name = json.dumps(options["name"])
        node = _with_context(node, parameter, "arguments", f'{{"name": {name}, "arguments": arguments}}', set())[0]
        self.imports.add("Any")
        written = {
            "title": options.get("title"),
            "description": options.get("description", ""),
            "input_schema": schema_of(options.get("properties", "[]")),
            "meta": json_value(options.get("meta")),
        }
        decorator = _call_text(f"{self.server}.tool", options["name"], written)
        arguments = cst.Param(cst.Name("arguments"), cst.Annotation(cst.parse_expression("dict[str, Any]")))
        return node.with_changes(params=cst.Parameters([arguments]), decorators=[_decorator(node, decorator)])

    def triggered_resource(self, node: cst.FunctionDef, parameter: str, options: dict[str, Any]) -> cst.FunctionDef:
        uri = options.get("uri")
        if not isinstance(uri, str):
            raise UnknownValueError("a value of its trigger is not written out")
        variables = URI_VARIABLE.findall(uri)
        self.check_parameters([*variables, parameter])
        node, uses_context = _with_context(node, parameter, parameter, f'{{"uri": {parameter}.uri}}', {"uri"})
        written = {
            "name": options["name"],
            "title": options.get("title"),
            "description": options.get("description"),
            "mime_type": options.get("mime_type"),
            "size": options.get("size"),
            "meta": json_value(options.get("meta")),
        }
        self.check_returned(node, _RESOURCE_OBSTACLES)
        parameters = [f"{name}: str" for name in variables]
        if uses_context:
            self.names.add("Context")
            parameters.append(f"{parameter}: Context")
        decorator = _call_text(f"{self.server}.resource", uri, written)
        return node.with_changes(params=_parameters(parameters), decorators=[_decorator(node, decorator)])

    def triggered_prompt(self, node: cst.FunctionDef, parameter: str, options: dict[str, Any]) -> cst.FunctionDef:
        arguments = json_value(options.get("arguments", []))
        arguments.sort(key=lambda argument: not argument.get("required"))  # parameters without a default come first
        self.check_parameters([*(argument["name"] for argument in arguments), parameter])
        data = f'{{"name": {parameter}.name, "arguments": {parameter}.arguments}}'
        node, uses_context = _with_context(node, parameter, parameter, data, {"arguments"})
        written = {
            "title": options.get("title"),
            "description": options.get("description"),
            "icons": json_value(options.get("icons")),
            "meta": json_value(options.get("meta")),
        }
        self.check_returned(node, _PROMPT_OBSTACLES)
        required, optional = [], []
        for argument in arguments:
            if argument.get("required"):
                required.append(self.argument(argument))
            else:
                optional.append(f"{self.argument(argument)} = None")
        if uses_context:
            self.names.add("Context")
            required.append(f"{parameter}: Context")
        decorator = _call_text(f"{self.server}.prompt", options["name"], written)
        return node.with_changes(params=_parameters(required + optional), decorators=[_decorator(node, decorator)])

    def argument(self, argument: dict[str, Any]) -> str:
        """Return the parameter for an argument of a prompt."""
        kind = "str" if argument.get("required") else "str | None"
        if not argument.get("description"):
            return f"{argument['name']}: {kind}"
        self.imports.add("Annotated")
        return f"{argument['name']}: Annotated[{kind}, {json.dumps(argument['description'], ensure_ascii=False)}]"

    def check_parameters(self, parameters: Sequence[str]) -> None:
        """Raise UnknownValueError if names cannot be those of the parameters of one function."""
        for name in parameters:
            if not name.isidentifier() or keyword.iskeyword(name):
                raise UnknownValueError(f"{name!r} cannot be the name of a parameter")
        if len(set(parameters)) != len(parameters):
            raise UnknownValueError("two of its parameters would have one name")

    def options(self, call: cst.Call) -> dict[str, Any]:
        keywords = _keywords(call)
        if len(keywords) < len(call.args):
            raise UnknownValueError("the trigger has positional options")
        return {name: value_of(value, self.variables) for name, value in keywords.items()}


def check_property(node: cst.FunctionDef, options: Mapping[str, Any]) -> None:
    """Raise UnknownValueError if a property says something else about an argument than the function's parameter."""
    if not options.keys() <= _PROPERTY_OPTIONS or "arg_name" not in options:
        raise UnknownValueError("a property has options that funcmcp does not have")
    name = options["arg_name"]
    names = _parameter_names(node)
    if name not in names:
        return  # other checks name it
    parameter = node.params.params[names.index(name)]
    if parameter.annotation is None:
        return  # as above
    if not options.get("is_required", True) and parameter.default is None:
        raise UnknownValueError(f"the argument {name} is not required, but has no default; give it one")
    annotation = parameter.annotation.annotation
    if isinstance(annotation, cst.Subscript):
        annotation = annotation.value
    written = dotted(annotation)
    kind = _PROPERTY_TYPES.get(written)
    declared = "array" if options.get("as_array") else options.get("property_type")
    if declared is not None and declared != kind:
        raise UnknownValueError(f"the property_type of {name} is {declared}, its annotation {written}; write one type")


class _ContextReader(cst.CSTTransformer):
    """Replaces ``json.loads(context)`` by an object with the members that funcmcp's context has.

    Args:
        parameter: The name of the context.
        replacement: The name of the parameter in its place.
        data: The code of the object.
        attributes: Attributes of Azure's context that funcmcp's context has, too.
    """

    def __init__(self, parameter: str, replacement: str, data: str, attributes: set[str]) -> None:
        super().__init__()
        self.parameter = parameter
        self.replacement = replacement
        self.data = data
        self.attributes = attributes
        self.is_read = False
        self.is_deleted = False
        self.is_used_otherwise = False

    def visit_Call(self, node: cst.Call) -> bool:
        return not self.is_loads(node)

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        if dotted(node.value) == self.parameter and node.attr.value in self.attributes:
            self.is_read = True
            return False
        return True

    def visit_Del(self, node: cst.Del) -> bool:  # a mark that the parameter is not used
        return dotted(node.target) != self.parameter

    def leave_Del(self, original_node: cst.Del, updated_node: cst.Del) -> cst.Del:
        if dotted(original_node.target) != self.parameter:
            return updated_node
        self.is_deleted = True
        return updated_node.with_changes(target=cst.Name(self.replacement))

    def visit_Name(self, node: cst.Name) -> None:
        if node.value == self.parameter:
            self.is_used_otherwise = True

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        if not self.is_loads(original_node):
            return updated_node
        self.is_read = True
        return cst.parse_expression(self.data)

    def is_loads(self, node: cst.Call) -> bool:
        is_json = dotted(node.func) in ("json.loads", "loads")
        return is_json and len(node.args) == 1 and dotted(node.args[0].value) == self.parameter


def _with_context(
    node: cst.FunctionDef, parameter: str, replacement: str, data: str, attributes: set[str]
) -> tuple[cst.FunctionDef, bool]:
    """Return the function with another context, and whether it uses it.

    Raises:
        UnknownValueError: The function uses the context in ways that funcmcp's context does not have.
    """
    reader = _ContextReader(parameter, replacement, data, attributes)
    body = cast("cst.BaseSuite", node.body.visit(reader))
    if reader.is_used_otherwise:
        ways = " or ".join([f"json.loads({parameter})", *(f"{parameter}.{name}" for name in sorted(attributes))])
        raise UnknownValueError(f"it uses {parameter} other than by {ways}")
    missing = _strings_in(node) & _CONTEXT_ONLY
    if reader.is_read and missing:
        raise UnknownValueError(
            f"it reads {', '.join(sorted(missing))} of Azure's context; see the contexts of funcmcp"
        )
    return _returning(node.with_changes(body=body)), reader.is_read or reader.is_deleted


class _Strings(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.values: set[str] = set()

    def visit_SimpleString(self, node: cst.SimpleString) -> None:
        if isinstance(node.evaluated_value, str):
            self.values.add(node.evaluated_value)


def _strings_in(node: cst.FunctionDef) -> set[str]:
    """Return the strings in the body of a function."""
    strings = _Strings()
    node.body.visit(strings)
    return strings.values


class _Returns(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.has_value = False

    def visit_Return(self, node: cst.Return) -> None:
        self.has_value |= node.value is not None and dotted(node.value) != "None"


def _returning(node: cst.FunctionDef) -> cst.FunctionDef:
    """Return a function without the type None of its results if it returns something, as in Azure's templates."""
    returns = _Returns()
    node.body.visit(returns)
    is_none = node.returns is not None and dotted(node.returns.annotation) == "None"
    if is_none and returns.has_value:
        return node.with_changes(returns=None)
    return node


def _kind_of(call: cst.Call, options: Mapping[str, Any]) -> str:
    """Return the kind of feature of a trigger: tool, resource or prompt."""
    function = dotted(call.func).rpartition(".")[2]
    if function == "generic_trigger":
        function = str(options.get("type")).lower()
    return _KINDS[function]


def _is_trigger(call: cst.Call) -> bool:
    function = dotted(call.func).rpartition(".")[2]
    if function == "mcp_tool":  # FastMCP's mixin has a decorator of this name, without an app before it
        return isinstance(call.func, cst.Attribute)
    if function != "generic_trigger":
        return function in _KINDS
    value = _keywords(call).get("type")
    return isinstance(value, cst.SimpleString) and str(value.evaluated_value).lower() in _KINDS


def _is_orchestration(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and call.func.attr.value == "orchestration_trigger"


def _call_text(function: str, first: str | None, options: Mapping[str, Any]) -> str:
    """Return the code of a decorator with an argument, unless it is None, and with the options that are not None."""
    arguments = []
    if first is not None:
        arguments.append(_literal(first, 1))
    for name, value in without_none(options).items():
        arguments.append(f"{name}={_literal(value, 1)}")
    if not arguments:
        return function
    text = f"{function}({', '.join(arguments)})"
    if "\n" not in text and len(text) < _LINE:
        return text
    return f"{function}(\n{_indented(arguments, 1)})"


def _literal(value: Any, level: int) -> str:
    """Return the code of a JSON value. Objects and arrays of objects have one member on a line."""
    indentation = "    " * level
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict) and value:
        members = [f"{_literal(name, level)}: {_literal(element, level + 1)}" for name, element in value.items()]
        return f"{{\n{_indented(members, level + 1)}{indentation}}}"
    if not isinstance(value, list):
        return repr(value)
    if dict in map(type, value):
        members = [_literal(element, level + 1) for element in value]
        return f"[\n{_indented(members, level + 1)}{indentation}]"
    return f"[{', '.join(_literal(element, level) for element in value)}]"


def _indented(members: Iterable[str], level: int) -> str:
    """Return lines of code with a member each."""
    return "".join(f"{'    ' * level}{member},\n" for member in members)


def _parameters(texts: Sequence[str]) -> cst.Parameters:
    """Return the parameters of a function."""
    statement = cst.ensure_type(cst.parse_statement(f"def function({', '.join(texts)}): ..."), cst.FunctionDef)
    return statement.params


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
            imported = ", ".join(sorted(rewriter.names))
            body += _lines(["import funcmcp.azure", f"from funcmcp import {imported}"])
            if rewriter.imports:
                body += _lines([f"from typing import {', '.join(sorted(rewriter.imports))}"])
        if isinstance(line, cst.SimpleStatementLine) and any(_assigns(statement, app) for statement in line.body):
            body += _lines([f"{server} = MCPServer({_name_of_server(rewriter.file)})"])
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


def _name_of_server(file: str) -> str:
    """Return the literal with the name of the folder: a folder may have any name, also one with quotes."""
    name = file.rpartition("/")[0].rpartition("/")[2] or "Tools"
    return json.dumps(name, ensure_ascii=not name.isprintable())


def _assigns(statement: cst.CSTNode, name: str) -> bool:
    return isinstance(statement, cst.Assign) and dotted(statement.targets[0].target) == name
