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

from funcmcp._cli.migrate import names
from funcmcp._cli.migrate.notes import Level, Note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from funcmcp._cli.migrate.project import SourceFile


@dataclass(slots=True)
class Uses:
    """What a project uses.

    Attributes:
        files: The names of the files that import FastMCP or the official SDK's server.
        servers: The names of the variables with servers.
        classes: By file, the names of the imported classes of servers.
        functions: The names of all functions of the project.
        server_functions: The names of the functions that have a server as a parameter.
        context_functions: The names of the functions that have a context as a parameter.
        factories: The names of the functions that return a server.
        hints: The names of the variables with annotations of tools, and the options that they stand for.
        applications: The names of the variables with ASGI applications of servers.
        obstacles: Uses that only `funcmcp.compat` has.
        notes: Other lines of the report.
    """

    files: set[str] = field(default_factory=set)
    servers: set[str] = field(default_factory=set)
    classes: dict[str, set[str]] = field(default_factory=dict)
    functions: set[str] = field(default_factory=set)
    server_functions: set[str] = field(default_factory=set)
    context_functions: set[str] = field(default_factory=set)
    factories: set[str] = field(default_factory=set)
    hints: dict[str, set[str]] = field(default_factory=dict)
    applications: set[str] = field(default_factory=set)
    obstacles: list[Note] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)


def read_uses(sources: Sequence[SourceFile]) -> Uses:
    """Return what the files of a project use of FastMCP or the official SDK."""
    uses = Uses()
    for source in sources:
        _visit(source, _Imports(uses, source.name))
    for source in sources:
        _visit(source, _Signatures(uses, source.name))
    for source in sources:
        _visit(source, _Variables(uses, source.name))
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


class _Signatures(_Visitor):
    """Reads the functions of a file: which of them have a server or a context as a parameter, or return a server."""

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        name = node.name.value
        self.uses.functions.add(name)
        classes = self.uses.classes.get(self.file, set())
        for parameter in parameters_of(node):
            if is_class(parameter.annotation, classes):
                self.uses.server_functions.add(name)
                self.uses.servers.add(parameter.name.value)
            elif self.file in self.uses.files and is_context(parameter):
                self.uses.context_functions.add(name)
        if is_class(node.returns, classes):
            self.uses.factories.add(name)


class _Variables(_Visitor):
    """Reads the variables of a file: servers, and annotations of tools."""

    def visit_Assign(self, node: cst.Assign) -> None:
        if len(node.targets) == 1 and isinstance(node.targets[0].target, cst.Name):
            self.read(node.targets[0].target.value, node.value)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        if isinstance(node.target, cst.Name) and server_call(node.value, self.uses.classes.get(self.file, set())):
            self.uses.servers.add(node.target.value)

    def read(self, name: str, value: cst.BaseExpression) -> None:
        is_factory = isinstance(value, cst.Call) and dotted(value.func) in self.uses.factories
        if is_factory or server_call(value, self.uses.classes.get(self.file, set())):
            self.uses.servers.add(name)
        hints = hints_of(value)
        if hints and isinstance(value, cst.Call):
            self.uses.hints[name] = set(hints)


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
        is_server_file = self.file in self.uses.files
        self.contexts.append({item.name.value for item in parameters_of(node) if is_server_file and is_context(item)})

    def leave_FunctionDef(self, original_node: cst.FunctionDef) -> None:  # noqa: ARG002 - as above
        self.contexts.pop()

    def is_context_name(self, name: str) -> bool:
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
        elif self.is_context_name(head) and member in names.CONTEXT_LOGS:
            keywords = {argument.keyword.value for argument in node.args if argument.keyword is not None}
            if keywords - {"message", "logger_name"} or any(argument.star for argument in node.args):
                self.obstacle(node, f"{member} of the context has options that are only in funcmcp.compat")

    def read_server(self, node: cst.Call) -> None:
        parent = self.parent(node)
        is_variable = isinstance(parent, cst.Assign) and isinstance(parent.targets[0].target, cst.Name)
        if not is_variable and not isinstance(parent, cst.AnnAssign):
            self.obstacle(node, "the server is not assigned to a variable")
        positional = [argument for argument in node.args if argument.keyword is None]
        keywords = {argument.keyword.value for argument in node.args if argument.keyword is not None}
        if any(argument.star for argument in node.args) or len(positional) > 2:  # noqa: PLR2004 - name, instructions
            self.obstacle(node, "options of the server are not written one by one")
        if not positional and "name" not in keywords:
            self.obstacle(node, "the server has no name")
        for name in sorted(keywords - names.SERVER_OPTIONS):
            self.obstacle(node, f"the option {name} of the server is only in funcmcp.compat")
        for argument in node.args:
            is_constant = dotted(argument.value) in ("True", "False", "None")
            if keyword_of(argument) in names.SERVER_SWITCHES and not is_constant:
                self.obstacle(argument, f"the option {keyword_of(argument)} is not written as True or False")
            if keyword_of(argument) == "lifespan" and not isinstance(argument.value, cst.Name | cst.Attribute):
                self.obstacle(argument, "the lifespan is not the name of a function")

    def read_member(self, node: cst.Call, member: str) -> None:
        keywords = {argument.keyword.value for argument in node.args if argument.keyword is not None}
        positional = [argument for argument in node.args if argument.keyword is None]
        max_positional = 2 if member in names.MOUNTS else 1  # the server and the prefix
        if any(argument.star for argument in node.args) or len(positional) > max_positional:
            self.obstacle(node, f"options of {member} are not written one by one")
        valid = keywords
        if member in names.FEATURE_OPTIONS:
            valid = names.FEATURE_OPTIONS[member]
            self.read_feature(node, member)
        elif member == "add_tool":
            valid = names.FEATURE_OPTIONS["tool"]
            self.read_feature(node, "tool")
        elif member in ("run", "run_async", *names.ASYNC_RUNS):
            valid = names.RUN_OPTIONS | names.DROPPED_RUN_OPTIONS
        elif member in names.MOUNTS:
            valid = names.MOUNT_OPTIONS
        elif member in names.APPLICATIONS:
            valid = set()
        if member in names.MOUNTS:
            self.read_mounted(node)
        for name in sorted(keywords - valid):
            self.obstacle(node, f"the option {name} of {member} is only in funcmcp.compat")

    def read_mounted(self, node: cst.Call) -> None:
        servers = [argument for argument in node.args if dotted(argument.value).rpartition(".")[2] in self.uses.servers]
        if len(servers) != 1:
            self.obstacle(node, "the mounted server is not one of this project")

    def read_feature(self, node: cst.Call, member: str) -> None:
        parent = self.parent(node)
        is_decorator = isinstance(parent, cst.Decorator)
        is_call = isinstance(parent, cst.Expr) or (isinstance(parent, cst.Call) and parent.func is node)
        if not is_decorator and not (member == "tool" and is_call):
            self.obstacle(node, f"{member} is not a decorator here")
        for argument in node.args:
            keyword = keyword_of(argument)
            if keyword == "annotations" and not self.is_known_annotation(node, member, argument.value):
                self.obstacle(argument, "the annotations are not written as ToolAnnotations(...) or as a dict")
            is_uri = member == "resource" and keyword in ("", "uri")
            if is_uri and not (isinstance(argument.value, cst.SimpleString) and "://" in argument.value.value):
                self.obstacle(argument, "the URI is not a string with a scheme")
            if keyword in ("structured_output", "output_schema"):
                self.read_output(argument, parent)

    def is_known_annotation(self, node: cst.Call, member: str, value: cst.BaseExpression) -> bool:
        if member == "resource":
            return isinstance(value, cst.Dict)
        variable = self.uses.hints.get(dotted(value))
        if variable is not None:
            return variable.isdisjoint(keyword_of(argument) for argument in node.args)
        return hints_of(value) is not None

    def read_output(self, argument: cst.Arg, parent: cst.CSTNode) -> None:
        """Read ``structured_output=False`` or ``output_schema=None``. A tool that returns a text does not need them."""
        keyword = keyword_of(argument)
        if keyword == "output_schema" and isinstance(argument.value, cst.Dict):
            return
        function = self.parent(parent) if isinstance(parent, cst.Decorator) else None
        returns = function.returns if isinstance(function, cst.FunctionDef) else None
        is_text = isinstance(function, cst.FunctionDef) and (returns is None or dotted(returns.annotation) == "str")
        if not is_text or dotted(argument.value) not in ("False", "None"):
            self.obstacle(argument, f"the option {keyword} of tool is only in funcmcp.compat")

    def visit_Attribute(self, node: cst.Attribute) -> None:
        head, member = dotted(node.value), node.attr.value
        if head in self.uses.servers:
            if member not in names.SERVER_MEMBERS:
                self.obstacle(node, f"{member} of the server is only in funcmcp.compat")
            elif member in names.APPLICATIONS:
                self.read_application(node)
            elif member == "import_server" and not isinstance(self.parent(self.parent(node)), cst.Await):
                self.obstacle(node, "import_server is not awaited here")
        elif self.is_context_name(head) and member not in names.CONTEXT_MEMBERS:
            parent = self.parent(node)
            is_lifespan = isinstance(parent, cst.Attribute) and parent.attr.value == "lifespan_context"
            if member != "request_context" or not is_lifespan:
                self.obstacle(node, f"{member} of the context is only in funcmcp.compat")
        elif head in self.uses.applications and member != "lifespan":
            self.obstacle(node, f"{member} of the application is only in funcmcp.compat")

    def read_application(self, node: cst.Attribute) -> None:
        """Read ``app = mcp.http_app()`` or another use of the application."""
        call = self.parent(node)
        parent = self.parent(call)
        if not isinstance(call, cst.Call):
            self.obstacle(node, f"{node.attr.value} is not called here")
        elif isinstance(parent, cst.Assign) and isinstance(parent.targets[0].target, cst.Name):
            self.uses.applications.add(parent.targets[0].target.value)

    def visit_Name(self, node: cst.Name) -> None:
        parent = self.parent(node)
        if isinstance(parent, cst.Attribute) and parent.attr is node:
            return
        if isinstance(parent, cst.Arg | cst.Param) and getattr(parent, "keyword", None) is node:
            return
        if node.value in self.uses.servers:
            self.read_server_name(node, parent)
        elif node.value in self.uses.hints:
            self.read_hint_variable(node, parent)
        elif node.value == "ToolAnnotations":
            self.read_hint_class(node, parent)
        elif self.is_context_name(node.value):
            if isinstance(parent, cst.Arg) and not self.is_call_of(parent, self.uses.context_functions):
                self.obstacle(node, "the context is passed to other code")
        elif self.file in self.uses.files:
            self.read_class_name(node, parent)

    def read_class_name(self, node: cst.Name, parent: cst.CSTNode) -> None:
        is_server = node.value in self.uses.classes.get(self.file, set())
        if is_server and not isinstance(parent, cst.Call | cst.Attribute | cst.Annotation):
            self.obstacle(node, f"{node.value} is used in other ways than to make a server")
        is_other = node.value == "Context" and not isinstance(parent, cst.Attribute)
        if is_other and not self.is_in_parameter(node):
            self.obstacle(node, "Context is used in other ways than as the type of a parameter")

    def read_hint_variable(self, node: cst.Name, parent: cst.CSTNode) -> None:
        is_option = isinstance(parent, cst.Arg) and keyword_of(parent) == "annotations"
        if not is_option and not isinstance(parent, cst.AssignTarget):
            self.obstacle(node, f"{node.value} is used in other ways than as annotations of a tool")

    def read_server_name(self, node: cst.Name, parent: cst.CSTNode) -> None:
        is_mounted = self.is_call_of(parent, names.MOUNTS)
        is_passed_on = is_mounted or self.is_call_of(parent, self.uses.server_functions)
        is_returned = isinstance(parent, cst.Return) and bool(self.uses.factories)
        if isinstance(parent, cst.Arg | cst.Return | cst.Element | cst.DictElement | cst.Assign):
            if not is_passed_on and not is_returned:
                self.obstacle(node, "the server is passed to other code")
        elif not isinstance(parent, cst.AssignTarget | cst.AnnAssign | cst.Attribute | cst.Param):
            self.obstacle(node, "the server is passed to other code")

    def is_call_of(self, argument: cst.CSTNode, functions: set[str]) -> bool:
        """Return whether an argument is passed to one of some functions or methods."""
        call = self.parent(argument) if isinstance(argument, cst.Arg) else None
        return isinstance(call, cst.Call) and dotted(call.func).rpartition(".")[2] in functions

    def read_hint_class(self, node: cst.Name, parent: cst.CSTNode) -> None:
        call = self.parent(parent) if isinstance(parent, cst.Attribute) else parent
        place = self.parent(call)
        is_option = isinstance(place, cst.Arg) and keyword_of(place) == "annotations"
        is_variable = isinstance(place, cst.Assign) and dotted(place.targets[0].target) in self.uses.hints
        if not is_option and not is_variable:
            self.obstacle(node, "ToolAnnotations is used in other ways than as annotations of a tool")

    def is_in_parameter(self, node: cst.CSTNode) -> bool:
        """Return whether a name is in the annotation of a parameter that is a context."""
        while not isinstance(node, cst.Module):
            node = self.parent(node)
            if isinstance(node, cst.Param):
                return is_context(node)
        return False


def parameters_of(node: cst.FunctionDef) -> list[cst.Param]:
    """Return the parameters of a function, except for ``*args`` and ``**kwargs``."""
    return [*node.params.posonly_params, *node.params.params, *node.params.kwonly_params]


def keyword_of(argument: cst.Arg) -> str:
    """Return the name of an argument of a call. Return "" for a positional one."""
    return "" if argument.keyword is None else argument.keyword.value


def is_class(annotation: cst.Annotation | None, classes: set[str]) -> bool:
    """Return whether an annotation is one of some classes."""
    return annotation is not None and dotted(annotation.annotation) in classes


def is_context(parameter: cst.Param) -> bool:
    """Return whether a parameter is ``Context``, ``Context[...]``, ``Context | None`` or ``Optional[Context]``."""
    if parameter.annotation is None:
        return False
    node = parameter.annotation.annotation
    if isinstance(node, cst.BinaryOperation):
        node = node.left if dotted(node.right) == "None" else node
    if isinstance(node, cst.Subscript) and dotted(node.value).rpartition(".")[2] == "Optional":
        index = node.slice[0].slice
        node = index.value if isinstance(index, cst.Index) else node
    if isinstance(node, cst.Subscript):
        node = node.value
    return dotted(node) == "Context"


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
