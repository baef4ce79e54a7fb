"""What the report says about the code of a server: methods, options, overridden methods, and functions of tools."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from funcmcp_cli.migrate import sentences
from funcmcp_cli.migrate.compat_names import (
    can_be_set,
    import_verdict,
    member_verdict,
    option_verdict,
    original_names,
    override_verdict,
    tree_has,
    uri_verdict,
)
from funcmcp_cli.migrate.notes import Note
from funcmcp_cli.migrate.python_values import ProjectClass, ProjectFunction, Value, children_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from funcmcp_cli.migrate.compat_names import Verdict
    from funcmcp_cli.migrate.notes import Level
    from funcmcp_cli.migrate.python_values import ProjectModule, Scope

_SERVERS = {"FastMCP", "MCPServer"}
_COMPAT = "funcmcp.compat"
_COMPONENTS = {"tool", "resource", "prompt"}
_FORMER_OBJECT = {"fn", "run", "name", "description", "parameters", "enable", "disable", "key", "render", "read"}
"""Attributes of what a decorator of FastMCP 2 returned."""
_OF_ALL_MODULES = {"__doc__", "__file__", "__name__", "__path__"}
_MAX_LINES = 20
"""Lines that a note lists beside its own."""


def server_notes(module: ProjectModule, file: str) -> list[Note]:
    """Return the lines of the report about the uses of FastMCP and the official SDK in a module.

    Code that was rewritten before is imported from `funcmcp.compat`. Of it, only what is missing is reported.

    Args:
        module: The module.
        file: Its path from the project's folder.
    """
    reader = _Reader()
    reader.read(module.tree, module.scope, None)
    return list(reader.notes(file))


class _Reader:
    """Reads a syntax tree.

    Attributes:
        lines: By level, sentence and whether all lines have one note, the lines and the code in them.
    """

    def __init__(self) -> None:
        self.lines: dict[tuple[Level, str, str], list[tuple[int, str]]] = {}

    def add(self, node: ast.AST, level: Level, subject: str, text: str, *, package: str, group: bool = False) -> None:
        """Add a line of the report.

        Args:
            node: The code.
            level: The level. Lines about differences of code that was rewritten before are left out.
            subject: The code in short.
            text: What becomes of it.
            package: The package of the code's object.
            group: Whether notes with other subjects and the same text become one.
        """
        if level == "differs" and package == _COMPAT:
            return
        line = getattr(node, "lineno", 0)
        self.lines.setdefault((level, text, "" if group else subject), []).append((line, subject))

    def notes(self, file: str) -> Iterator[Note]:
        """Return the lines of the report. Differences with one text are one line."""
        for (level, text, _), listed in self.lines.items():
            places = sorted(set(listed))
            if level == "missing":
                for line, subject in places:
                    yield Note(file, line, level, f"{subject}: {text}")
                continue
            (line, subject), *others = places
            yield Note(file, line, level, f"{subject}: {text}{_also([number for number, _ in others])}")

    def read(self, node: ast.AST, scope: Scope, owner: ProjectClass | None) -> None:
        """Read a node and those in it.

        Args:
            node: The node.
            scope: The names around it.
            owner: The class, if it is the class of a method.
        """
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self.read_function(node, scope, owner)
            return
        if isinstance(node, ast.ClassDef):
            self.read_class(node, scope)
            return
        if isinstance(node, ast.Call):
            self.check_call(node, scope)
        elif isinstance(node, ast.Attribute):
            self.check_attribute(node, scope)
        for child in children_of(node):
            self.read(child, scope, None)

    def read_function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope, owner: ProjectClass | None
    ) -> None:
        for decorator in node.decorator_list:
            self.read(decorator, scope, None)
            self.check_component(node, decorator, scope, node)
        annotations = [item.annotation for item in _arguments(node)]
        for part in filter(None, [*node.args.defaults, *node.args.kw_defaults, *annotations]):
            self.read(part, scope, None)
        inner = scope.of_function(node, owner)
        for statement in node.body:
            self.read(statement, inner, None)

    def read_class(self, node: ast.ClassDef, scope: Scope) -> None:
        for part in [*node.decorator_list, *node.bases, *[item.value for item in node.keywords]]:
            self.read(part, scope, None)
        definition = scope.of_class(node)
        self.check_overrides(definition)
        for statement in node.body:
            self.read(statement, scope, definition)

    # Methods and attributes

    def check_attribute(self, node: ast.Attribute, scope: Scope) -> None:
        owner = scope.value_of(node.value)
        if owner is None:
            return
        subject = _short(node)
        if owner.kind == "function" and isinstance(owner.definition, ProjectFunction):
            self.check_former_object(node, owner.definition)
        elif owner.kind == "module" and owner.name == "fastmcp" and node.attr not in _OF_ALL_MODULES:
            verdict = import_verdict("fastmcp", node.attr)
            if verdict.level == "missing" and not tree_has("fastmcp", node.attr):
                self.add(node, "missing", subject, verdict.text, package=owner.package)
        elif owner.kind in {"object", "class"} and owner.name and not _defines(owner, node.attr):
            is_stored = isinstance(node.ctx, ast.Store) and owner.kind == "object"
            known = can_be_set(owner.name, node.attr) if is_stored else member_verdict(owner.name, node.attr)
            self.add_verdict(node, subject, known, owner.package)

    def check_former_object(self, node: ast.Attribute, function: ProjectFunction) -> None:
        """Report attributes of a decorated function, which is an object in FastMCP 2."""
        if node.attr not in _FORMER_OBJECT:
            return
        for decorator in function.node.decorator_list:
            component = _component(decorator, function.scope)
            if component is not None:
                name = function.node.name
                text = f"{name} is the function itself: write {name}(...), or await mcp.get_tool({name!r})"
                self.add(node, "missing", _short(node), text, package=component.package)

    def add_verdict(self, node: ast.AST, subject: str, verdict: Verdict | None, package: str) -> None:
        if verdict is not None and verdict.level != "same":
            self.add(node, verdict.level, subject, verdict.text, package=package)

    def check_overrides(self, definition: ProjectClass) -> None:
        for base in definition.bases():
            if base.name not in original_names()["classes"]:
                continue
            for method in definition.methods():
                if not method.name.startswith("__"):
                    verdict = override_verdict(base.name, method.name)
                    self.add_verdict(method, f"{definition.node.name}.{method.name}", verdict, base.package)

    # Calls and their options

    def check_call(self, node: ast.Call, scope: Scope) -> None:
        self.check_registration(node, scope)
        value = _called(node, scope)
        if value is None or not value.name:
            return
        subject = f"{_short(node.func)}(...)"
        is_server = value.kind == "class" and value.name in _SERVERS
        if is_server and isinstance(node.func, ast.Name | ast.Attribute):
            text = sentences.SERVERS.get(value.package, sentences.SERVERS["fastmcp"])
            self.add(node, "differs", subject, text, package=value.package, group=True)
        if _defines(value, "__init__"):
            return
        if value.kind in {"class", "function"} and value.name in sentences.DIFFERENCES:
            self.add(node, "differs", value.name, sentences.DIFFERENCES[value.name], package=value.package)
        for keyword in node.keywords:
            self.check_option(keyword, value, subject)

    def check_registration(self, node: ast.Call, scope: Scope) -> None:
        """Report about the function in ``mcp.tool(name=...)(function)`` and ``mcp.tool(function)``, at this line."""
        for argument in node.args[:1]:
            value = scope.value_of(argument)
            if value is not None and value.kind == "function" and isinstance(value.definition, ProjectFunction):
                function = value.definition
                self.check_component(function.node, node.func, scope, node)

    def check_option(self, keyword: ast.keyword, value: Value, subject: str) -> None:
        if keyword.arg is None or (isinstance(keyword.value, ast.Constant) and keyword.value.value in {None, False}):
            return
        _, _, method = value.name.partition(".")
        if method and member_verdict(*value.name.split(".", 1)) is None:
            return
        if method and (verdict := member_verdict(*value.name.split(".", 1))) is not None and verdict.level == "missing":
            return
        verdict = option_verdict(value.name, keyword.arg)
        self.add_verdict(keyword.value, f"{subject[:-5]}({keyword.arg}=)", verdict, value.package)

    # Functions of tools, resources and prompts

    def check_component(
        self,
        function: ast.FunctionDef | ast.AsyncFunctionDef,
        decorator: ast.expr,
        scope: Scope,
        node: ast.AST,
    ) -> None:
        """Report about a function if it becomes a tool, a resource or a prompt.

        Args:
            function: The function.
            decorator: What the function is passed to.
            scope: The names around the decorator.
            node: The code that is reported.
        """
        value = _component(decorator, scope)
        if value is None:
            return
        kind = value.name.rpartition(".")[2]
        call = decorator if isinstance(decorator, ast.Call) else None
        for key in _differences(kind, function, value.package):
            self.add(node, "differs", function.name, sentences.FUNCTIONS[key], package=value.package, group=True)
        uri = call.args[0] if kind == "resource" and call is not None and call.args else None
        if isinstance(uri, ast.Constant) and isinstance(uri.value, str):
            self.add_verdict(node, function.name, uri_verdict(uri.value), value.package)


def _also(lines: list[int]) -> str:
    if not lines:
        return ""
    listed = [str(line) for line in dict.fromkeys(lines)]
    if len(listed) > _MAX_LINES + 1:
        listed[_MAX_LINES:] = [f"{len(listed) - _MAX_LINES} more"]
    text = ", ".join(listed[:-1])
    return f"; also lines {text} and {listed[-1]}" if text else f"; also line {listed[0]}"


def _short(node: ast.expr) -> str:
    """Return the code of a name with its attributes; "..." for what is longer."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_short(node.value)}.{node.attr}"
    if isinstance(node, ast.Subscript | ast.Await):
        return _short(node.value)
    if isinstance(node, ast.Call):
        return f"{_short(node.func)}()"
    return "..."


def _defines(owner: Value, name: str) -> bool:
    """Return whether a class of the project defines an attribute itself."""
    return isinstance(owner.definition, ProjectClass) and owner.definition.attribute(name)[0]


def _called(node: ast.Call, scope: Scope) -> Value | None:
    """Return what a call calls: a class, a function or a method; the class for ``super().__init__(...)``."""
    function = node.func
    if isinstance(function, ast.Attribute) and function.attr == "__init__":
        owner = scope.value_of(function.value)
        is_class = owner is not None and owner.kind == "object" and not isinstance(owner.definition, ProjectClass)
        return Value("class", owner.name, owner.package) if owner is not None and is_class else None
    value = scope.value_of(function)
    if isinstance(function, ast.Attribute) and value is not None and value.kind == "object":
        return None
    return value


def _component(decorator: ast.expr, scope: Scope) -> Value | None:
    """Return the method of a server that a decorator is, if it registers a tool, a resource or a prompt."""
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    if not isinstance(function, ast.Attribute) or function.attr not in _COMPONENTS:
        return None
    owner = scope.value_of(function.value)
    if owner is None or owner.kind != "object" or owner.name not in _SERVERS:
        return None
    return Value("method", f"{owner.name}.{function.attr}", owner.package)  # also if a class of the project changes it


def _differences(kind: str, node: ast.FunctionDef | ast.AsyncFunctionDef, package: str) -> Iterator[str]:
    """Return the keys of the sentences that hold for a function."""
    if package == "mcp.server.fastmcp":
        if isinstance(node, ast.FunctionDef):
            yield "thread"
        returns = "" if kind != "tool" or node.returns is None else ast.unparse(node.returns)
        if returns == "dict":
            yield "dict"
        elif returns.partition("[")[0] in {"Dict", "typing.Dict"}:
            yield "Dict"
    if kind == "tool" and package != "mcp.server.mcpserver" and "bytes" in _names_in_parameters(node):
        yield "bytes"


def _names_in_parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    annotations = filter(None, [item.annotation for item in _arguments(node)])
    return {name.id for item in annotations for name in ast.walk(item) if isinstance(name, ast.Name)}


def _arguments(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
