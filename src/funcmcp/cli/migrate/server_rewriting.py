"""The rewriting of servers for FastMCP and the official SDK, with funcmcp's own API or with `funcmcp.compat`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from funcmcp.cli.migrate import names
from funcmcp.cli.migrate.notes import Level, Note
from funcmcp.cli.migrate.server_uses import dotted, hints_of, server_call

if TYPE_CHECKING:
    from collections.abc import Sequence

    from funcmcp.cli.migrate.project import SourceFile
    from funcmcp.cli.migrate.server_uses import Uses

_NATIVE_DIFFERENCES = (
    "a result that is a text has no output schema and no structured content beside its text",
    "tools get a title, which is made of their name; sections about arguments go from descriptions to schemas",
    "the schema of an argument of type T | None is that of T, and schemas have no titles",
    "plain functions run in worker threads; two tools of one name are an error",
)


def rewritten(source: SourceFile, uses: Uses, *, native: bool) -> tuple[bytes, list[Note]]:
    """Return the new text of a file, and a line of the report for each change."""
    if not native:
        compat = _Compat(source.name)
        return MetadataWrapper(source.module).visit(compat).bytes, compat.notes
    first = _Native(source.name, uses, {"ToolContext"})
    MetadataWrapper(source.module).visit(first)  # it shows which classes of contexts the file needs
    second = _Native(source.name, uses, first.used_contexts or {"ToolContext"})
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

    def __init__(self, file: str, uses: Uses, context_classes: set[str]) -> None:
        super().__init__(file)
        self.servers = uses.servers
        self.classes = uses.classes.get(file, set())
        self.is_server_file = file in uses.files
        self.context_classes = context_classes
        self.used_contexts: set[str] = set()
        self.kinds: list[str] = []
        self.contexts: list[set[str]] = []

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        kinds = [kind for kind in map(self.kind_of, node.decorators) if kind]
        self.kinds.append(kinds[0] if kinds else "tool")
        parameters = [*node.params.posonly_params, *node.params.params, *node.params.kwonly_params]
        self.contexts.append({item.name.value for item in parameters if self.is_context(item)})

    def kind_of(self, decorator: cst.Decorator) -> str:
        node = decorator.decorator
        function = node.func if isinstance(node, cst.Call) else node
        if isinstance(function, cst.Attribute) and dotted(function.value) in self.servers:
            return function.attr.value if function.attr.value in names.FEATURE_OPTIONS else ""
        return ""

    def is_context(self, parameter: cst.Param) -> bool:
        if not self.is_server_file or parameter.annotation is None:
            return False
        return dotted(parameter.annotation.annotation) == "Context"

    def leave_Param(self, original_node: cst.Param, updated_node: cst.Param) -> cst.Param:
        if not self.is_context(original_node) or updated_node.annotation is None:
            return updated_node
        name = names.CONTEXT_CLASSES[self.kinds[-1] if self.kinds else "tool"]
        self.used_contexts.add(name)
        return updated_node.with_changes(annotation=updated_node.annotation.with_changes(annotation=cst.Name(name)))

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
        if any(_keyword(argument) == "name" for argument in node.args) or (positional and kind != "resource"):
            return after
        return after.with_changes(decorator=_with_argument(node, "name", cst.SimpleString(f'"{function}"')))

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        if server_call(original_node, self.classes):
            return self.server(original_node, updated_node)
        if not isinstance(updated_node.func, cst.Attribute):
            return updated_node
        head, member = dotted(updated_node.func.value), updated_node.func.attr.value
        if any(head in contexts for contexts in self.contexts):  # also in functions within a function
            return self.context_call(original_node, updated_node, member)
        if head not in self.servers:
            return updated_node
        if member == "tool":
            return self.tool(original_node, updated_node)
        if member in ("run", "run_async"):
            return _without_arguments(updated_node, {"show_banner"})
        return updated_node

    def server(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        self.note(original_node, f"{dotted(original_node.func)}(...): MCPServer(..., show_errors=True), lax arguments")
        for text in _NATIVE_DIFFERENCES:
            self.note(original_node, text, "differs")
        arguments = list(updated_node.args)
        if len(arguments) > 1 and arguments[1].keyword is None:
            keyword = arguments[1].with_changes(keyword=cst.Name("instructions"), equal=_EQUAL)
            arguments[1] = keyword
        call = updated_node.with_changes(func=cst.Name("MCPServer"), args=arguments)
        return _with_argument(call, "show_errors", cst.Name("True"))

    def context_call(self, original_node: cst.Call, updated_node: cst.Call, member: str) -> cst.Call:
        function = cst.ensure_type(updated_node.func, cst.Attribute)
        if member == "report_progress":
            self.note(original_node, "report_progress(...): progress(...)")
            return updated_node.with_changes(func=function.with_changes(attr=cst.Name("progress")))
        if member not in names.CONTEXT_LOGS:
            return updated_node
        self.note(original_node, f'{member}(...): log("{names.CONTEXT_LOGS[member]}", ...)')
        level = cst.Arg(cst.SimpleString(f'"{names.CONTEXT_LOGS[member]}"'), comma=_COMMA)
        arguments = []
        for argument in updated_node.args:
            renamed = {"message": "data", "logger_name": "logger"}.get(_keyword(argument))
            arguments.append(argument.with_changes(keyword=cst.Name(renamed)) if renamed else argument)
        renamed_function = function.with_changes(attr=cst.Name("log"))
        return updated_node.with_changes(func=renamed_function, args=[level, *arguments])

    def tool(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        """Return a decorator whose annotations are options."""
        values = [argument.value for argument in updated_node.args if _keyword(argument) == "annotations"]
        hints = hints_of(values[0]) if values else None
        if hints is None:
            return updated_node
        self.note(original_node, "annotations=: options of @mcp.tool")
        present = {_keyword(argument) for argument in updated_node.args}
        call = _without_arguments(updated_node, {"annotations"})
        for name, value in hints.items():
            if name not in present:
                call = _with_argument(call, name, value)
        return call

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement] | cst.RemovalSentinel:
        statement = original_node.body[0]
        if isinstance(statement, cst.Assign) and server_call(statement.value, self.classes):
            name = dotted(statement.targets[0].target)
            lax = cst.parse_statement(f"{name}.lax = True  # arguments are converted, as in FastMCP")
            return cst.FlattenSentinel([updated_node, lax])
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
            return ["MCPServer"]
        if name == "Context":
            return sorted(self.context_classes)
        return ["ToolError"] if name == "ToolError" else []


_COMMA = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
_EQUAL = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))


def _keyword(argument: cst.Arg) -> str:
    return "" if argument.keyword is None else argument.keyword.value


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
    arguments = [argument for argument in call.args if _keyword(argument) not in removed]
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
