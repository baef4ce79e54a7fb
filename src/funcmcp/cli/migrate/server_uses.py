"""What the files of a project use of FastMCP or the official SDK.

How it works: a project is written with funcmcp's own API or with `funcmcp.compat`, as a whole, because its files share
the server object. `read_uses` collects the imports, and an *obstacle* for each use whose translation into the own API
is not sure. Without obstacles, the own API is the target.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import libcst as cst
from libcst.metadata import MetadataWrapper, ParentNodeProvider, PositionProvider

from funcmcp.cli.migrate import names
from funcmcp.cli.migrate.notes import Level, Note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from funcmcp.cli.migrate.project import SourceFile


@dataclass(slots=True)
class Uses:
    """What a project uses.

    Attributes:
        files: The names of the files that import FastMCP or the official SDK's server.
        servers: The names of the variables with servers.
        classes: By file, the names of the imported classes of servers.
        obstacles: Uses that only `funcmcp.compat` has.
        notes: Other lines of the report.
    """

    files: set[str] = field(default_factory=set)
    servers: set[str] = field(default_factory=set)
    classes: dict[str, set[str]] = field(default_factory=dict)
    obstacles: list[Note] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)


def read_uses(sources: Sequence[SourceFile]) -> Uses:
    """Return what the files of a project use of FastMCP or the official SDK."""
    uses = Uses()
    for source in sources:
        _visit(source, _Imports(uses, source.name))
    for source in sources:
        _visit(source, _Features(uses, source.name))
    return uses


def _visit(source: SourceFile, visitor: _Visitor) -> None:
    MetadataWrapper(source.module, unsafe_skip_copy=True).visit(visitor)


def dotted(node: cst.BaseExpression | None) -> str:
    """Return a name such as ``a.b``. Return "" for another expression."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        head = dotted(node.value)
        return f"{head}.{node.attr.value}" if head else ""
    return ""


def server_call(node: cst.CSTNode | None, classes: set[str]) -> cst.Call | None:
    """Return a node if it is a call such as ``FastMCP(...)``."""
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value in classes:
        return node
    return None


class _Visitor(cst.CSTVisitor):
    METADATA_DEPENDENCIES = (PositionProvider, ParentNodeProvider)

    def __init__(self, uses: Uses, file: str) -> None:
        super().__init__()
        self.uses = uses
        self.file = file

    def line(self, node: cst.CSTNode) -> int:
        return int(self.get_metadata(PositionProvider, node).start.line)

    def parent(self, node: cst.CSTNode) -> cst.CSTNode:
        parent: cst.CSTNode = self.get_metadata(ParentNodeProvider, node)
        return parent

    def obstacle(self, node: cst.CSTNode, text: str) -> None:
        self.uses.obstacles.append(Note(self.file, self.line(node), "differs", text))

    def note(self, node: cst.CSTNode, level: Level, text: str) -> None:
        self.uses.notes.append(Note(self.file, self.line(node), level, text))


class _Imports(_Visitor):
    """Reads the imports of a file, and the names of its servers."""

    def visit_Import(self, node: cst.Import) -> None:
        for alias in node.names:
            module = dotted(alias.name)
            if module == "fastmcp":
                self.uses.files.add(self.file)
                self.obstacle(node, "the module fastmcp is imported as a whole")
            elif names.is_framework(module):
                self.uses.files.add(self.file)
                self.note(node, "missing", f"import {module}: import the names from funcmcp.compat")

    def visit_ImportFrom(self, node: cst.ImportFrom) -> None:
        module = dotted(node.module)
        if node.relative or not module:
            return
        if names.is_types(module):
            self.read_types(node, module)
            return
        if module.startswith(("mcp.client", "mcp.shared", "mcp.server")) and not names.is_framework(module):
            self.note(node, "missing", f"{module}: funcmcp has no such names; see docs/guides/tools.md and client.md")
            return
        if not names.is_framework(module):
            return
        if isinstance(node.names, cst.ImportStar):
            self.note(node, "missing", f"from {module} import *: import the names that are used")
            return
        for alias in node.names:
            self.read_name(node, module, alias)

    def read_types(self, node: cst.ImportFrom, module: str) -> None:
        imported = {dotted(alias.name) for alias in node.names} if not isinstance(node.names, cst.ImportStar) else {"*"}
        for name in sorted(imported - {"ToolAnnotations"}):
            self.obstacle(node, f"{name} of {module}: keep the package mcp installed")

    def read_name(self, node: cst.ImportFrom, module: str, alias: cst.ImportAlias) -> None:
        name = dotted(alias.name)
        if name not in names.COMPAT_NAMES or (module == "mcp.server" and name not in names.SERVER_CLASSES):
            hint = "use funcmcp.client.Client" if name == "Client" else "rewrite its uses by hand"
            if name == "Server":
                hint = "a low-level server; register each tool with @mcp.tool(input_schema=...)"
            self.note(node, "missing", f"{name} of {module}: {hint}")
            self.obstacle(node, f"{name} of {module} stays")
            return
        self.uses.files.add(self.file)
        if name in names.SERVER_CLASSES:
            local = name if alias.asname is None else dotted(alias.asname.name)  # type: ignore[arg-type]
            self.uses.classes.setdefault(self.file, set()).add(local)
        if name not in names.NATIVE_NAMES:
            self.obstacle(node, f"{name} is only in funcmcp.compat")
        elif alias.asname is not None:
            self.obstacle(node, f"{name} has another name here")

    def visit_Assign(self, node: cst.Assign) -> None:
        if server_call(node.value, self.uses.classes.get(self.file, set())) and len(node.targets) == 1:
            target = node.targets[0].target
            if isinstance(target, cst.Name):
                self.uses.servers.add(target.value)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        if server_call(node.value, self.uses.classes.get(self.file, set())):
            self.obstacle(node, "the variable of the server has an annotation")


class _Features(_Visitor):
    """Reads the uses of servers and contexts in a file."""

    def __init__(self, uses: Uses, file: str) -> None:
        super().__init__(uses, file)
        self.contexts: list[set[str]] = []
        self.in_import = False

    def visit_Import(self, node: cst.Import) -> bool:  # noqa: ARG002 - the signature is libcst's
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:  # noqa: ARG002 - as above
        return False

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        parameters = [*node.params.posonly_params, *node.params.params, *node.params.kwonly_params]
        contexts = set()
        for parameter in parameters:
            annotation = None if parameter.annotation is None else parameter.annotation.annotation
            if isinstance(annotation, cst.Name) and annotation.value == "Context" and self.file in self.uses.files:
                contexts.add(parameter.name.value)
                if parameter.default is not None:
                    self.obstacle(parameter, "the context has a default")
        self.contexts.append(contexts)

    def leave_FunctionDef(self, original_node: cst.FunctionDef) -> None:  # noqa: ARG002 - as above
        self.contexts.pop()

    def is_context(self, name: str) -> bool:
        """Return whether a variable is the context of the function or of one around it."""
        return any(name in contexts for contexts in self.contexts)

    def visit_Annotation(self, node: cst.Annotation) -> None:
        text = node.annotation
        if self.file in self.uses.files and isinstance(text, cst.SimpleString) and "Context" in text.value:
            self.obstacle(node, "Context is used in other ways than as the type of a parameter")

    def visit_Call(self, node: cst.Call) -> None:
        classes = self.uses.classes.get(self.file, set())
        if server_call(node, classes):
            self.read_server(node)
        if not isinstance(node.func, cst.Attribute):
            return
        head, member = dotted(node.func.value), node.func.attr.value
        if head in self.uses.servers:
            self.read_member(node, member)
        elif self.is_context(head) and member in names.CONTEXT_LOGS:
            keywords = {argument.keyword.value for argument in node.args if argument.keyword is not None}
            if keywords - {"message", "logger_name"} or any(argument.star for argument in node.args):
                self.obstacle(node, f"{member} of the context has options that are only in funcmcp.compat")

    def read_server(self, node: cst.Call) -> None:
        parent = self.parent(node)
        if not (isinstance(parent, cst.Assign) and isinstance(parent.targets[0].target, cst.Name)):
            self.obstacle(node, "the server is not assigned to a variable")
        positional = [argument for argument in node.args if argument.keyword is None]
        keywords = {argument.keyword.value for argument in node.args if argument.keyword is not None}
        if any(argument.star for argument in node.args) or len(positional) > 2:  # noqa: PLR2004 - name, instructions
            self.obstacle(node, "options of the server are not written one by one")
        if not positional and "name" not in keywords:
            self.obstacle(node, "the server has no name")
        for name in sorted(keywords - names.SERVER_OPTIONS):
            self.obstacle(node, f"the option {name} of the server is only in funcmcp.compat")

    def read_member(self, node: cst.Call, member: str) -> None:
        keywords = {argument.keyword.value for argument in node.args if argument.keyword is not None}
        positional = [argument for argument in node.args if argument.keyword is None]
        if any(argument.star for argument in node.args) or len(positional) > 1:
            self.obstacle(node, f"options of {member} are not written one by one")
        if member in names.FEATURE_OPTIONS:
            for name in sorted(keywords - names.FEATURE_OPTIONS[member]):
                self.obstacle(node, f"the option {name} of {member} is only in funcmcp.compat")
            self.read_feature(node, member)
        elif member in ("run", "run_async"):
            for name in sorted(keywords - names.RUN_OPTIONS - {"show_banner"}):
                self.obstacle(node, f"the option {name} of {member} is only in funcmcp.compat")

    def read_feature(self, node: cst.Call, member: str) -> None:
        if not isinstance(self.parent(node), cst.Decorator):
            self.obstacle(node, f"{member} is not a decorator here")
        for argument in node.args:
            keyword = "" if argument.keyword is None else argument.keyword.value
            if keyword == "annotations" and hints_of(argument.value) is None:
                self.obstacle(argument, "the annotations are not written as ToolAnnotations(...) or as a dict")
            is_uri = member == "resource" and keyword in ("", "uri")
            if is_uri and not (isinstance(argument.value, cst.SimpleString) and "://" in argument.value.value):
                self.obstacle(argument, "the URI is not a string with a scheme")

    def visit_Attribute(self, node: cst.Attribute) -> None:
        head, member = dotted(node.value), node.attr.value
        if head in self.uses.servers:
            if member not in names.FEATURE_OPTIONS and member not in ("run", "run_async"):
                self.obstacle(node, f"{member} of the server is only in funcmcp.compat")
        elif self.is_context(head) and member not in names.CONTEXT_MEMBERS:
            self.obstacle(node, f"{member} of the context is only in funcmcp.compat")

    def visit_Name(self, node: cst.Name) -> None:
        parent = self.parent(node)
        if node.value in self.uses.servers:
            is_target = (
                isinstance(parent, cst.AssignTarget | cst.Arg | cst.Param) and getattr(parent, "keyword", None) is node
            )
            is_member = isinstance(parent, cst.Attribute)
            if not (is_target or is_member or isinstance(parent, cst.AssignTarget)):
                self.obstacle(node, "the server is passed to other code")
        elif self.is_context(node.value) and isinstance(parent, cst.Arg) and parent.value is node:
            self.obstacle(node, "the context is passed to other code")
        elif node.value == "Context" and self.file in self.uses.files and not isinstance(parent, cst.Attribute):
            is_parameter = isinstance(parent, cst.Annotation) and isinstance(self.parent(parent), cst.Param)
            if not is_parameter:
                self.obstacle(node, "Context is used in other ways than as the type of a parameter")
        elif node.value in self.uses.classes.get(self.file, set()) and not isinstance(parent, cst.Call | cst.Attribute):
            self.obstacle(node, f"{node.value} is used in other ways than to make a server")


def hints_of(value: cst.BaseExpression) -> dict[str, cst.BaseExpression] | None:
    """Return the options of ``@mcp.tool`` for annotations. Return None if they are not written out."""
    members: dict[str, cst.BaseExpression] = {}
    if isinstance(value, cst.Call) and dotted(value.func).rpartition(".")[2] == "ToolAnnotations":
        for argument in value.args:
            if argument.keyword is None:
                return None
            members[argument.keyword.value] = argument.value
    elif isinstance(value, cst.Dict):
        for element in value.elements:
            if not isinstance(element, cst.DictElement) or not isinstance(element.key, cst.SimpleString):
                return None
            members[str(element.key.evaluated_value)] = element.value
    else:
        return None
    if not members.keys() <= names.HINTS.keys():
        return None
    return {names.HINTS[name]: member for name, member in members.items()}
