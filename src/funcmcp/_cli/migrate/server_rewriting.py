"""The rewriting of servers for FastMCP and the official SDK, with funcmcp's own API or with `funcmcp.compat`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from funcmcp._cli.migrate import names
from funcmcp._cli.migrate.notes import Level, Note
from funcmcp._cli.migrate.server_uses import dotted, hints_of, is_context, keyword_of, parameters_of, server_call

if TYPE_CHECKING:
    from collections.abc import Sequence

    from funcmcp._cli.migrate.project import SourceFile
    from funcmcp._cli.migrate.server_uses import Uses

_NATIVE_DIFFERENCES = (
    "a result that is a text has no output schema and no structured content beside its text",
    "tools get a title, which is made of their name; sections about arguments go from descriptions to schemas",
    "the schema of an argument of type T | None is that of T, and schemas have no titles",
    "plain functions run in worker threads; two tools of one name are an error",
    "a call ends after 60 seconds, unless timeout= of the tool says otherwise",
    "unknown arguments are refused: the official SDK drops those of tools, and FastMCP those of prompts",
)


def rewritten(source: SourceFile, uses: Uses, *, native: bool) -> tuple[bytes, list[Note]]:
    """Return the new text of a file, and a line of the report for each change."""
    if not native:
        compat = _Compat(source.name)
        return MetadataWrapper(source.module).visit(compat).bytes, compat.notes
    first = _Native(source.name, uses, {"ToolContext"}, set())
    MetadataWrapper(source.module).visit(first)  # it shows which names the file needs
    second = _Native(source.name, uses, first.used_contexts or {"ToolContext"}, first.used_names)
    return MetadataWrapper(source.module).visit(second).bytes, second.notes


class _Rewriter(cst.CSTTransformer):
    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, file: str) -> None:
        super().__init__()
        self.file = file
        self.notes: list[Note] = []

    def note(self, node: cst.CSTNode, text: str, level: Level = "moves") -> None:
        line = int(self.get_metadata(PositionProvider, node).start.line)
        self.notes.append(Note(self.file, line, level, text))


class _Compat(_Rewriter):
    """Changes the imports only."""

    def leave_ImportAlias(self, original_node: cst.ImportAlias, updated_node: cst.ImportAlias) -> cst.ImportAlias:
        if dotted(original_node.name) != "fastmcp":
            return updated_node
        self.note(original_node, "import fastmcp: the module is funcmcp.compat")
        name = cst.AsName(cst.Name("fastmcp")) if updated_node.asname is None else updated_node.asname
        return updated_node.with_changes(name=_module("funcmcp.compat"), asname=name)

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]:
        statement = updated_node.body[0]
        aliases = _framework_aliases(statement)
        if len(updated_node.body) != 1 or not isinstance(statement, cst.ImportFrom) or not aliases:
            return updated_node
        is_sdk = dotted(statement.module) == "mcp.server"
        available = names.SERVER_CLASSES if is_sdk else names.COMPAT_NAMES
        moving = [alias for alias in aliases if dotted(alias.name) in available]
        staying = [alias for alias in aliases if dotted(alias.name) not in available]
        if not moving:
            return updated_node
        self.note(original_node, f"{_listed(moving)} of {dotted(statement.module)}: the names are in funcmcp.compat")
        if not staying:
            return updated_node.with_changes(body=[statement.with_changes(module=_module("funcmcp.compat"))])
        new_line = cst.SimpleStatementLine([_import("funcmcp.compat", [_bare(alias) for alias in moving])])
        old_line = cst.SimpleStatementLine([_import(dotted(statement.module), [_bare(alias) for alias in staying])])
        leading = new_line.with_changes(leading_lines=updated_node.leading_lines)
        return cst.FlattenSentinel(
            [leading, old_line.with_changes(trailing_whitespace=updated_node.trailing_whitespace)]
        )


class _Native(_Rewriter):
    """Writes the server with funcmcp's own API. `server_uses` has found no obstacle in the project."""

    def __init__(self, file: str, uses: Uses, context_classes: set[str], names_to_import: set[str]) -> None:
        super().__init__(file)
        self.uses = uses
        self.servers = uses.servers
        self.classes = uses.classes.get(file, set())
        self.is_server_file = file in uses.files
        self.context_classes = context_classes
        self.names_to_import = names_to_import
        self.used_contexts: set[str] = set()
        self.used_names: set[str] = set()
        self.kinds: list[str] = []
        self.contexts: list[set[str]] = []
        self.decorators: set[cst.CSTNode] = set()

    def visit_Decorator(self, node: cst.Decorator) -> None:
        self.decorators.add(node.decorator)

    def visit_Call(self, node: cst.Call) -> None:
        if isinstance(node.func, cst.Call):  # mcp.tool(...)(function)
            self.decorators.add(node.func)

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        kinds = [kind for kind in map(self.kind_of, node.decorators) if kind]
        self.kinds.append(kinds[0] if kinds else "tool")
        self.contexts.append({item.name.value for item in parameters_of(node) if self.is_context(item)})

    def kind_of(self, decorator: cst.Decorator) -> str:
        node = decorator.decorator
        function = node.func if isinstance(node, cst.Call) else node
        if isinstance(function, cst.Attribute) and dotted(function.value) in self.servers:
            return function.attr.value if function.attr.value in names.FEATURE_OPTIONS else ""
        return ""

    def is_context(self, parameter: cst.Param) -> bool:
        return self.is_server_file and is_context(parameter)

    def leave_Param(self, original_node: cst.Param, updated_node: cst.Param) -> cst.Param:
        if not self.is_context(original_node) or updated_node.annotation is None:
            return updated_node
        name = names.CONTEXT_CLASSES[self.kinds[-1] if self.kinds else "tool"]
        self.used_contexts.add(name)
        annotation = updated_node.annotation.annotation.visit(_ContextName(name))
        return updated_node.with_changes(annotation=updated_node.annotation.with_changes(annotation=annotation))

    def leave_Annotation(self, original_node: cst.Annotation, updated_node: cst.Annotation) -> cst.Annotation:
        if dotted(original_node.annotation) not in self.classes:
            return updated_node
        return updated_node.with_changes(annotation=cst.Name("MCPServer"))

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        inner = updated_node.value
        if not isinstance(inner, cst.Attribute) or inner.attr.value != "request_context":
            return updated_node
        if updated_node.attr.value != "lifespan_context" or not self.is_context_name(dotted(inner.value)):
            return updated_node
        self.note(original_node, "request_context.lifespan_context: lifespan_context")
        return updated_node.with_changes(value=inner.value)

    def is_context_name(self, name: str) -> bool:
        """Return whether a variable is the context of the function or of one around it."""
        return any(name in contexts for contexts in self.contexts)

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        self.kinds.pop()
        self.contexts.pop()
        if names.SNAKE_CASE.fullmatch(original_node.name.value):
            return updated_node
        decorators = [
            self.named(before, after, original_node.name.value)
            for before, after in zip(original_node.decorators, updated_node.decorators, strict=True)
        ]
        return updated_node.with_changes(decorators=decorators)

    def named(self, before: cst.Decorator, after: cst.Decorator, function: str) -> cst.Decorator:
        """Return a decorator with the function's name: funcmcp writes names in snake_case otherwise."""
        kind = self.kind_of(before)
        if not kind:
            return after
        node = after.decorator if isinstance(after.decorator, cst.Call) else cst.Call(after.decorator)
        positional = [argument for argument in node.args if argument.keyword is None]
        if any(keyword_of(argument) == "name" for argument in node.args) or (positional and kind != "resource"):
            return after
        return after.with_changes(decorator=_with_argument(node, "name", cst.SimpleString(f'"{function}"')))

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        if server_call(original_node, self.classes):
            return self.server(original_node, updated_node)
        if isinstance(updated_node.func, cst.Call):
            return self.registered_by_name(updated_node)
        if not isinstance(updated_node.func, cst.Attribute):
            return updated_node
        head, member = dotted(updated_node.func.value), updated_node.func.attr.value
        if self.is_context_name(head):
            return self.context_call(original_node, updated_node, member)
        if head not in self.servers:
            return updated_node
        return self.member_call(original_node, updated_node, head, member)

    def member_call(
        self, original_node: cst.Call, updated_node: cst.Call, head: str, member: str
    ) -> cst.BaseExpression:
        if member in ("tool", "add_tool"):
            call = self.tool(original_node, updated_node)
            return call if original_node in self.decorators else self.registered(call, head, member)
        if member in ("run", "run_async"):
            return _without_arguments(updated_node, names.DROPPED_RUN_OPTIONS)
        if member in names.ASYNC_RUNS:
            self.note(original_node, f'{member}(...): run_async("{names.ASYNC_RUNS[member]}", ...)')
            call = _without_arguments(updated_node, names.DROPPED_RUN_OPTIONS)
            transport = cst.Arg(cst.SimpleString(f'"{names.ASYNC_RUNS[member]}"'))
            if call.args:
                transport = transport.with_changes(comma=_COMMA)
            return call.with_changes(func=_method(head, "run_async"), args=[transport, *call.args])
        if member in names.APPLICATIONS:
            self.note(original_node, f"{member}(): the server itself, which is an ASGI application")
            text = "an HTTP request needs a host name that HTTPOptions(allowed_hosts=...) lists, or one of this machine"
            self.note(original_node, text, "differs")
            return cst.ensure_type(updated_node.func, cst.Attribute).value
        if member in names.MOUNTS:
            return self.mounted(original_node, updated_node, head)
        return updated_node

    def mounted(self, original_node: cst.Call, updated_node: cst.Call, head: str) -> cst.Call:
        """Return a call of ``mount`` with the server first, and then the prefix."""
        self.note(original_node, "the mounted server is live, and its prefix is prefix=")
        server, prefix = None, None
        for argument in updated_node.args:
            if dotted(argument.value).rpartition(".")[2] in self.servers:
                server = argument.value
            else:
                prefix = argument.value
        arguments = [cst.Arg(server or cst.Name("None"))]
        if prefix is not None and dotted(prefix) != "None":
            arguments = [
                arguments[0].with_changes(comma=_COMMA),
                cst.Arg(prefix, keyword=cst.Name("prefix"), equal=_EQUAL),
            ]
        return updated_node.with_changes(func=_method(head, "mount"), args=arguments)

    def leave_Await(self, original_node: cst.Await, updated_node: cst.Await) -> cst.BaseExpression:
        call = original_node.expression
        if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
            return updated_node
        is_import = call.func.attr.value == "import_server" and dotted(call.func.value) in self.servers
        return updated_node.expression if is_import else updated_node

    def registered(self, call: cst.Call, head: str, member: str) -> cst.Call:
        """Return ``mcp.tool(function)`` or ``mcp.add_tool(function, ...)`` with the name that the function has."""
        functions = [argument for argument in call.args if not keyword_of(argument)]
        if not functions:
            return call
        function = functions[0].value
        options = [argument for argument in call.args if keyword_of(argument)]
        name = dotted(function).rpartition(".")[2]
        is_same = name in self.uses.functions and names.SNAKE_CASE.fullmatch(name)
        if member == "tool" and not options and is_same:
            return call
        decorator = call.with_changes(func=_method(head, "tool"), args=options)
        if not is_same and not any(keyword_of(argument) == "name" for argument in options):
            decorator = _with_argument(decorator, "name", cst.parse_expression(f"{dotted(function)}.__name__"))
        if not decorator.args:
            return call.with_changes(func=_method(head, "tool"))
        return cst.Call(decorator, [cst.Arg(function)])

    def registered_by_name(self, node: cst.Call) -> cst.Call:
        """Return ``mcp.tool(...)(function)`` with the name that the function has."""
        decorator = cst.ensure_type(node.func, cst.Call)
        function = decorator.func
        is_tool = isinstance(function, cst.Attribute) and function.attr.value == "tool"
        if not is_tool or not isinstance(function, cst.Attribute) or dotted(function.value) not in self.servers:
            return node
        name = dotted(node.args[0].value).rpartition(".")[2] if node.args else ""
        has_name = any(keyword_of(argument) in ("", "name") for argument in decorator.args)
        if has_name or not name or (name in self.uses.functions and names.SNAKE_CASE.fullmatch(name)):
            return node
        value = cst.parse_expression(f"{dotted(node.args[0].value)}.__name__")
        return node.with_changes(func=_with_argument(decorator, "name", value))

    def server(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        self.note(original_node, f"{dotted(original_node.func)}(...): MCPServer(..., show_errors=True), lax arguments")
        for text in _NATIVE_DIFFERENCES:
            self.note(original_node, text, "differs")
        arguments = list(updated_node.args)
        if len(arguments) > 1 and arguments[1].keyword is None:
            keyword = arguments[1].with_changes(keyword=cst.Name("instructions"), equal=_EQUAL)
            arguments[1] = keyword
        values = {keyword_of(argument): argument.value for argument in arguments}
        call = updated_node.with_changes(func=cst.Name("MCPServer"), args=arguments)
        call = _without_arguments(call, set(values) - {"", "name", "instructions", "version"})
        info = sorted(names.INFO_OPTIONS & values.keys())
        if info:
            self.used_names.add("ServerInfo")
            fields = [cst.Arg(values[name], keyword=cst.Name(name), equal=_EQUAL) for name in info]
            call = _with_argument(call, "info", cst.Call(cst.Name("ServerInfo"), _separated(fields)))
        if dotted(values.get("stateless_http")) == "True":
            call = _with_argument(call, "sessions", cst.Name("None"))
        if dotted(values.get("mask_error_details")) != "True":
            call = _with_argument(call, "show_errors", cst.Name("True"))
        if dotted(values.get("strict_input_validation")) != "True":
            call = _with_argument(call, "lax", cst.Name("True"))
        return call

    def lines_after(self, name: str, call: cst.Call) -> list[str]:
        """Return the lines after ``mcp = MCPServer(...)``."""
        values = {keyword_of(argument): argument.value for argument in call.args}
        lines = []
        code = cst.Module([]).code_for_node
        for option, method in names.TAG_OPTIONS.items():
            if option in values and dotted(values[option]) != "None":
                only = ", only=True" if method == "enable" else ""
                lines.append(f"{name}.{method}(tags={code(values[option])}{only})")
        if dotted(values.get("lifespan")) not in ("", "None"):
            lines.append(f"{name}.add_lifespan({code(values['lifespan'])})")
        return lines

    def context_call(self, original_node: cst.Call, updated_node: cst.Call, member: str) -> cst.Call:
        function = cst.ensure_type(updated_node.func, cst.Attribute)
        if member == "report_progress":
            self.note(original_node, "report_progress(...): progress(...)")
            return updated_node.with_changes(func=function.with_changes(attr=cst.Name("progress")))
        if member not in names.CONTEXT_LOGS:
            return updated_node
        arguments = []
        for argument in updated_node.args:
            renamed = {"message": "data", "logger_name": "logger"}.get(keyword_of(argument))
            arguments.append(argument.with_changes(keyword=cst.Name(renamed)) if renamed else argument)
        return updated_node.with_changes(args=arguments)

    def tool(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        """Return a decorator whose annotations are options."""
        values = [argument.value for argument in updated_node.args if keyword_of(argument) == "annotations"]
        updated_node = self.without_output_options(updated_node)
        if not values:
            return updated_node
        self.note(original_node, "annotations=: options of @mcp.tool")
        present = {keyword_of(argument) for argument in updated_node.args}
        call = _without_arguments(updated_node, {"annotations"})
        if dotted(values[0]) in self.uses.hints:
            arguments = list(call.args)
            if arguments and not isinstance(arguments[-1].comma, cst.Comma):
                arguments[-1] = arguments[-1].with_changes(comma=_COMMA)
            return call.with_changes(args=[*arguments, cst.Arg(values[0], star="**")])
        hints = hints_of(values[0]) or {}
        for name, value in hints.items():
            if name not in present:
                call = _with_argument(call, name, value)
        return call

    def without_output_options(self, call: cst.Call) -> cst.Call:
        removed = set()
        for argument in call.args:
            is_constant = dotted(argument.value) in ("False", "None")
            if keyword_of(argument) in ("structured_output", "output_schema") and is_constant:
                removed.add(keyword_of(argument))
        return _without_arguments(call, removed)

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        """Make ``READ_ONLY = ToolAnnotations(...)`` a dict of options of ``@mcp.tool``."""
        is_variable = dotted(original_node.targets[0].target) in self.uses.hints
        hints = hints_of(updated_node.value) if is_variable else None
        if hints is None or not isinstance(updated_node.value, cst.Call):
            return updated_node
        self.note(original_node, "ToolAnnotations(...): a dict of options of @mcp.tool")
        call = updated_node.value.with_changes(func=cst.Name("dict"))
        arguments = [
            argument.with_changes(keyword=cst.Name(names.HINTS[keyword_of(argument)])) for argument in call.args
        ]
        return updated_node.with_changes(value=call.with_changes(args=arguments))

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement] | cst.RemovalSentinel:
        statement = original_node.body[0]
        if isinstance(statement, cst.Assign | cst.AnnAssign):
            call = server_call(statement.value, self.classes)
            if call is not None:
                target = statement.target if isinstance(statement, cst.AnnAssign) else statement.targets[0].target
                lines = [cst.parse_statement(line) for line in self.lines_after(dotted(target), call)]
                return cst.FlattenSentinel([updated_node, *lines])
        aliases = _framework_aliases(statement) or _annotations_alias(statement)
        if not aliases or len(original_node.body) != 1 or not isinstance(statement, cst.ImportFrom):
            return updated_node
        imported = sorted({new for alias in aliases for new in self.new_names(dotted(alias.name))})
        self.note(
            original_node, f"{_listed(aliases)} of {dotted(statement.module)}: {', '.join(imported) or 'options'}"
        )
        if not imported:
            return cst.RemoveFromParent()
        new = _import("funcmcp", [cst.ImportAlias(cst.Name(name)) for name in imported])
        return updated_node.with_changes(body=[new])

    def new_names(self, name: str) -> list[str]:
        if name in names.SERVER_CLASSES:
            return ["MCPServer", *self.names_to_import]
        if name == "Context":
            return sorted(self.context_classes)
        return ["ToolError"] if name == "ToolError" else []


_COMMA = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
_EQUAL = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))


class _ContextName(cst.CSTTransformer):
    """Replaces ``Context`` and ``Context[...]`` in a type."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        return cst.Name(self.name) if original_node.value == "Context" else updated_node

    def leave_Subscript(self, original_node: cst.Subscript, updated_node: cst.Subscript) -> cst.BaseExpression:
        return updated_node.value if dotted(original_node.value) == "Context" else updated_node


def _method(head: str, name: str) -> cst.Attribute:
    return cst.Attribute(_module(head), cst.Name(name))


def _separated(arguments: list[cst.Arg]) -> list[cst.Arg]:
    """Return arguments with commas between them."""
    return [argument.with_changes(comma=_COMMA) for argument in arguments[:-1]] + arguments[-1:]


def _with_argument(call: cst.Call, name: str, value: cst.BaseExpression) -> cst.Call:
    """Return a call with one more argument, on a line of its own if the others are."""
    arguments = list(call.args)
    new = cst.Arg(value.deep_clone(), keyword=cst.Name(name), equal=_EQUAL)
    if arguments:
        trailing = arguments[-1].comma
        separator: cst.Comma = _COMMA
        if isinstance(trailing, cst.Comma):
            new = new.with_changes(comma=trailing)
            separator = cst.Comma(whitespace_after=call.whitespace_before_args)
        first = arguments[0].comma
        if len(arguments) > 1 and isinstance(first, cst.Comma):
            separator = first
        arguments[-1] = arguments[-1].with_changes(comma=separator)
    return call.with_changes(args=[*arguments, new])


def _without_arguments(call: cst.Call, removed: set[str]) -> cst.Call:
    arguments = [argument for argument in call.args if keyword_of(argument) not in removed]
    if arguments and call.args and arguments[-1] is not call.args[-1]:
        arguments[-1] = arguments[-1].with_changes(comma=call.args[-1].comma)
    return call.with_changes(args=arguments)


def _module(name: str) -> cst.Attribute | cst.Name:
    head, _, tail = name.rpartition(".")
    return cst.Attribute(_module(head), cst.Name(tail)) if head else cst.Name(tail)


def _import(module: str, aliases: Sequence[cst.ImportAlias]) -> cst.ImportFrom:
    return cst.ImportFrom(_module(module), aliases)


def _bare(alias: cst.ImportAlias) -> cst.ImportAlias:
    return alias.with_changes(comma=cst.MaybeSentinel.DEFAULT)


def _framework_aliases(statement: cst.CSTNode) -> list[cst.ImportAlias]:
    """Return the names that a statement imports from FastMCP or from the official SDK's server."""
    if not isinstance(statement, cst.ImportFrom) or statement.relative or isinstance(statement.names, cst.ImportStar):
        return []
    return list(statement.names) if names.is_framework(dotted(statement.module)) else []


def _annotations_alias(statement: cst.CSTNode) -> list[cst.ImportAlias]:
    """Return ToolAnnotations if a statement imports it from the official SDK's types."""
    if not isinstance(statement, cst.ImportFrom) or statement.relative or isinstance(statement.names, cst.ImportStar):
        return []
    return list(statement.names) if names.is_types(dotted(statement.module)) else []


def _listed(aliases: Sequence[cst.ImportAlias]) -> str:
    return ", ".join(dotted(alias.name) for alias in aliases)
