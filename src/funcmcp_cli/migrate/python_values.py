"""What names and expressions of a project mean: objects of FastMCP and the official SDK, as far as the code says so.

How it works: a `Scope` has what is bound to each name of a module, a function or a class. `Scope.value_of` follows
names, attributes, calls, annotations and imports, also into other modules of the project. It returns None for
everything else, and for names that are bound to different things, so that a method of another library's object is never
taken for one of a server.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from funcmcp import compat
from funcmcp_cli.migrate.compat_names import home_of, import_verdict, is_original, is_types, original_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_COMPAT = "funcmcp.compat"
_PACKAGES = ("mcp.server.fastmcp", "mcp.server.mcpserver", "fastmcp", _COMPAT)
_MAX_DEPTH = 50
"""Attributes, calls and bases that are followed from one expression."""

_LISTED_TOOL = "FastMCP.get_tool"
"""The class of the tools that a server lists; see `compat_names.class_of`."""

_RESULTS = {
    "create_proxy": "FastMCP",
    "get_context": "Context",
    "get_server": "FastMCP",
    "CurrentContext": "Context",
    "CurrentFastMCP": "FastMCP",
    "FastMCP.as_proxy": "FastMCP",
    "FastMCP.from_fastapi": "FastMCP",
    "FastMCP.from_openapi": "FastMCP",
    "FastMCP.get_context": "Context",
    "FastMCP.get_tool": _LISTED_TOOL,
    "MCPServer.get_tool": _LISTED_TOOL,
    "Context.fastmcp": "FastMCP",
    "Context.mcp_server": "FastMCP",
    "Context.session": "ServerSession",
    "MiddlewareContext.fastmcp_context": "Context",
}
"""The class of what functions and methods return, and of attributes, by their names."""


@dataclass(frozen=True)
class Value:
    """What an expression is.

    Attributes:
        kind: An object of a class, a class, a function, a method, or a module.
        name: The name of the class or function in `funcmcp.compat`, such as ``"FastMCP"``; that of a method with its
            class; that of a module. "" for classes, functions and modules of the project.
        package: The package that the class comes from, such as ``"mcp.server.fastmcp"``.
        definition: The class, function or module of the project.
    """

    kind: Literal["object", "class", "function", "method", "module"]
    name: str
    package: str = ""
    definition: ProjectClass | ProjectFunction | Scope | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Imported:
    """A name that an import binds.

    Attributes:
        module: The module, absolute.
        name: The name in the module; "" for the module itself.
    """

    module: str
    name: str = ""


@dataclass(frozen=True)
class Annotated:
    """A name with an annotation."""

    annotation: ast.expr


@dataclass(frozen=True)
class Own:
    """The first parameter of a method: the object or the class."""

    definition: ProjectClass
    is_class: bool


@dataclass(frozen=True)
class Element:
    """The variable of a loop."""

    iterable: ast.expr


Binding: TypeAlias = (
    "ast.expr | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | Imported | Annotated | Own | Element | None"
)
"""What is bound to a name. None is anything that has no value here, such as the variable of a ``with`` statement."""


@dataclass(eq=False)
class ProjectClass:
    """A class of the project.

    Attributes:
        node: Its definition.
        scope: The scope that the class is in.
    """

    node: ast.ClassDef
    scope: Scope

    def bases(self) -> list[Value]:
        """Return the values of the bases that are classes."""
        values = [self.scope.value_of(base) for base in self.node.bases]
        return [value for value in values if value is not None and value.kind == "class"]

    def methods(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Return the methods."""
        return (node for node in self.node.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))

    def attribute(self, name: str, *, depth: int = 0) -> tuple[bool, Value | None]:
        """Return whether the class or a base in the project has an attribute, and its value."""
        bindings = [(binding, scope) for binding, scope in self._attributes().get(name, ())]
        if bindings:
            values = [scope.value_of_binding(binding) for binding, scope in bindings if not _is_none(binding)]
            return True, _single(values)
        if depth < _MAX_DEPTH:
            for base in self.bases():
                if isinstance(base.definition, ProjectClass) and base.definition is not self:
                    has_it, value = base.definition.attribute(name, depth=depth + 1)
                    if has_it:
                        return True, value
        return False, None

    def _attributes(self) -> dict[str, list[tuple[Binding, Scope]]]:
        if self not in self.scope.attributes:
            self.scope.attributes[self] = {}
            self.scope.attributes[self] = self._read_attributes()
        return self.scope.attributes[self]

    def _read_attributes(self) -> dict[str, list[tuple[Binding, Scope]]]:
        attributes: dict[str, list[tuple[Binding, Scope]]] = {}
        inner = Scope(self.scope.module, self.scope, bindings_of(self.node.body, self.scope.module))
        for name, bindings in inner.bindings.items():
            attributes.setdefault(name, []).extend((binding, inner) for binding in bindings)
        for method in self.methods():
            scope = self.scope.of_function(method, self)
            for statement in _statements(method.body):
                for name, binding in _attributes_of_self(statement):
                    attributes.setdefault(name, []).append((binding, scope))
        return attributes


@dataclass(eq=False)
class ProjectFunction:
    """A function of the project.

    Attributes:
        node: Its definition.
        scope: The scope that the function is in.
        owner: Its class, if it is a method.
    """

    node: ast.FunctionDef | ast.AsyncFunctionDef
    scope: Scope
    owner: ProjectClass | None = None

    def returned(self) -> Value | None:
        """Return what a call returns: by its annotation, or by the variables that it returns."""
        if self.node.returns is not None:
            return self.scope.value_of_annotation(self.node.returns)
        asked = self.scope.module.returning
        if self.node in asked:  # it calls itself, maybe through others
            return None
        asked.add(self.node)
        try:
            inner = self.scope.of_function(self.node, self.owner)
            returns = [node.value for node in _statements(self.node.body) if isinstance(node, ast.Return)]
            return _single([inner.value_of(value) for value in returns if value is not None and not _is_none(value)])
        finally:
            asked.discard(self.node)


class Modules:
    """The modules of a project, by the names that imports have for them."""

    def __init__(self) -> None:
        self._by_name: dict[str, list[ProjectModule]] = {}

    def add(self, module: ProjectModule) -> None:
        """Add a module by its path and the ends of it: ``src.shop.server`` is also ``shop.server`` and ``server``."""
        parts = module.parts
        for start in range(len(parts)):
            self._by_name.setdefault(".".join(parts[start:]), []).append(module)

    def find(self, name: str, importer: ProjectModule) -> ProjectModule | None:
        """Return the module for a name in an import: of several, the one that is nearest to the importer."""
        candidates = [module for module in self._by_name.get(name, ()) if module is not importer]
        return max(candidates, key=lambda module: _common_parts(module.parts, importer.parts), default=None)


def _common_parts(first: Sequence[str], second: Sequence[str]) -> int:
    return next(
        (index for index, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]), len(first)
    )


class ProjectModule:
    """A module of the project.

    Attributes:
        parts: The parts of its path, such as ``("src", "shop", "server")``; that of its folder for an ``__init__.py``.
        is_package: Whether it is an ``__init__.py``.
        tree: Its syntax tree.
        modules: The modules of the project.
        scope: Its names.
        returning: The functions whose returned value is being found.
    """

    def __init__(self, file: str, tree: ast.Module, modules: Modules) -> None:
        self.returning: set[ast.AST] = set()
        path = tuple(file.removesuffix(".py").replace("\\", "/").split("/"))
        self.is_package = path[-1] == "__init__"
        self.parts = path[:-1] if self.is_package else path
        self.tree = tree
        self.modules = modules
        self.scope = Scope(self, None, bindings_of(tree.body, self))
        modules.add(self)

    def absolute(self, module: str | None, level: int) -> str:
        """Return the absolute name of the module of an import."""
        if level == 0:
            return module or ""
        kept = len(self.parts) - level + self.is_package
        return ".".join([*self.parts[: max(kept, 0)], *([module] if module else ())])

    def imported(self, imported: Imported) -> Value | None:
        """Return the value of an import."""
        if is_original(imported.module):
            return _original(imported)
        if imported.module == _COMPAT or imported.module.startswith(f"{_COMPAT}."):
            is_whole = imported.module in {_COMPAT, f"{_COMPAT}.fastmcp"}
            module_value = Value("module", "fastmcp", _COMPAT) if is_whole else None
            return _compat_value(imported.name, _COMPAT) if imported.name else module_value
        module = self.modules.find(imported.module, self)
        if not imported.name:
            return None if module is None else Value("module", "", definition=module.scope)
        value = None if module is None else module.scope.value_of_name(imported.name)
        if value is None:
            submodule = self.modules.find(f"{imported.module}.{imported.name}", self)
            value = None if submodule is None else Value("module", "", definition=submodule.scope)
        return value


def _original(imported: Imported) -> Value | None:
    """Return the value of an import from FastMCP or the official SDK."""
    full = f"{imported.module}.{imported.name}" if imported.name else imported.module
    modules = original_names()["modules"]
    if not imported.name or (full in modules and imported.name not in modules.get(imported.module, ())):
        return Value("module", full, full)
    home = home_of(imported.module, imported.name)
    if is_types(home) or import_verdict(imported.module, imported.name).level != "same":
        return None
    package = next((name for name in _PACKAGES if home == name or home.startswith(f"{name}.")), imported.module)
    return _compat_value(imported.name, package)


def _compat_value(name: str, package: str) -> Value | None:
    if name not in compat.__all__:
        return None
    return Value("class" if isinstance(getattr(compat, name), type) else "function", name, package)


class Scope:
    """The names of a module, a function or a class.

    Attributes:
        module: The module.
        parent: The scope around it.
        bindings: What is bound to each name.
        attributes: Attributes of classes in this scope, which are read once.
    """

    def __init__(self, module: ProjectModule, parent: Scope | None, bindings: Mapping[str, Sequence[Binding]]) -> None:
        self.module = module
        self.parent = parent
        self.bindings = bindings
        self.attributes: dict[ProjectClass, dict[str, list[tuple[Binding, Scope]]]] = {}
        self._values: dict[str, Value | None] = {}
        self._functions: dict[ast.AST, Scope] = {}
        self._definitions: dict[ast.AST, ProjectClass | ProjectFunction] = {}

    def of_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, owner: ProjectClass | None) -> Scope:
        """Return the scope of a function in this scope.

        Args:
            node: The function.
            owner: The class if it is a method.
        """
        if node not in self._functions:
            bindings: dict[str, list[Binding]] = dict(bindings_of(node.body, self.module))
            for name, binding in _parameters(node, owner):
                bindings.setdefault(name, []).append(binding)
            self._functions[node] = Scope(self.module, self, bindings)
        return self._functions[node]

    def of_class(self, node: ast.ClassDef) -> ProjectClass:
        """Return a class in this scope."""
        if node not in self._definitions:
            self._definitions[node] = ProjectClass(node, self)
        definition = self._definitions[node]
        assert isinstance(definition, ProjectClass)  # noqa: S101 - by the type of the node
        return definition

    def value_of_name(self, name: str) -> Value | None:
        """Return the value of a name in this scope or in those around it."""
        if name not in self.bindings:
            return None if self.parent is None else self.parent.value_of_name(name)
        if name not in self._values:
            self._values[name] = None  # for circles
            bindings = [binding for binding in self.bindings[name] if not _is_none(binding)]
            self._values[name] = _single([self.value_of_binding(binding) for binding in bindings])
        return self._values[name]

    def import_of(self, name: str) -> Imported | None:
        """Return the import that binds a name."""
        if name not in self.bindings:
            return None if self.parent is None else self.parent.import_of(name)
        return next((item for item in self.bindings[name] if isinstance(item, Imported)), None)

    def value_of_binding(self, binding: Binding) -> Value | None:
        """Return the value of what is bound to a name of this scope."""
        if isinstance(binding, Imported):
            return self.module.imported(binding)
        if isinstance(binding, Annotated):
            return self.value_of_annotation(binding.annotation)
        if isinstance(binding, Element):
            return self.value_of_element(binding.iterable)
        if isinstance(binding, Own):
            return _value_of_class(binding.definition, "class" if binding.is_class else "object")
        if isinstance(binding, ast.ClassDef):
            return _value_of_class(self.of_class(binding), "class")
        if isinstance(binding, ast.FunctionDef | ast.AsyncFunctionDef):
            return Value("function", "", definition=ProjectFunction(binding, self))
        return None if binding is None else self.value_of(binding)

    def value_of(self, node: ast.expr, depth: int = 0) -> Value | None:
        """Return the value of an expression, or None.

        Args:
            node: The expression.
            depth: How many expressions it is inside of.
        """
        if depth > _MAX_DEPTH:
            return None
        if isinstance(node, ast.Name):
            return self.value_of_name(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.value_of(node.value, depth + 1)
            return None if owner is None else attribute_of(owner, node.attr)
        if isinstance(node, ast.Call):
            return self._value_of_call(node, depth)
        if isinstance(node, ast.Await | ast.Subscript | ast.NamedExpr):
            return self.value_of(node.value, depth + 1)
        choices: list[ast.expr] = []
        if isinstance(node, ast.BoolOp):
            choices = node.values
        elif isinstance(node, ast.IfExp):
            choices = [node.body, node.orelse]
        values = (self.value_of(choice, depth + 1) for choice in choices)
        return next((value for value in values if value is not None), None)

    def _value_of_call(self, node: ast.Call, depth: int) -> Value | None:
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            return self._value_of_super()
        value = self.value_of(node.func, depth + 1)
        if value is None:
            return None
        if value.kind == "class":
            return Value("object", value.name, value.package, value.definition)
        if isinstance(value.definition, ProjectFunction):
            return value.definition.returned()
        return _result(value.name, value.package)

    def value_of_element(self, node: ast.expr, depth: int = 0) -> Value | None:
        """Return the value of the elements of what a loop runs over: tools of a server, or by an annotation.

        Args:
            node: What the loop runs over.
            depth: How many variables lead to it.
        """
        if isinstance(node, ast.Name):
            return self._value_of_named_elements(node.id, depth)
        if not isinstance(node, ast.Await) or not isinstance(node.value, ast.Call):
            return None
        method = self.value_of(node.value.func)
        if method is None or method.name not in {"FastMCP.list_tools", "MCPServer.list_tools"}:
            return None
        return Value("object", _LISTED_TOOL, method.package)

    def _value_of_named_elements(self, name: str, depth: int) -> Value | None:
        if name not in self.bindings:
            return None if self.parent is None else self.parent.value_of_element(ast.Name(name), depth)
        bindings = self.bindings[name]
        if len(bindings) != 1 or depth > _MAX_DEPTH:
            return None
        binding = bindings[0]
        if isinstance(binding, Annotated):
            annotation = binding.annotation
            return self.value_of_annotation(annotation.slice) if isinstance(annotation, ast.Subscript) else None
        return self.value_of_element(binding, depth + 1) if isinstance(binding, ast.expr) else None

    def _value_of_super(self) -> Value | None:
        """Return an object of the base of the class whose method this scope is."""
        scope: Scope | None = self
        while scope is not None:
            for bindings in scope.bindings.values():
                for binding in bindings:
                    if isinstance(binding, Own):
                        bases = binding.definition.bases()
                        return Value("object", bases[0].name, bases[0].package, bases[0].definition) if bases else None
            scope = scope.parent
        return None

    def value_of_annotation(self, node: ast.expr | None) -> Value | None:
        """Return the object that an annotation stands for, also if it may be None."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                node = ast.parse(node.value, mode="eval").body
            except (SyntaxError, ValueError):
                return None
        if isinstance(node, ast.BinOp):
            return self.value_of_annotation(node.left) or self.value_of_annotation(node.right)
        if isinstance(node, ast.Subscript):
            name = ast.unparse(node.value).rpartition(".")[2]
            if name in {"Optional", "Union", "Annotated"}:
                members = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                values = map(self.value_of_annotation, members)
                return next((value for value in values if value is not None), None)
            node = node.value
        value = self.value_of(node) if isinstance(node, ast.Name | ast.Attribute) else None
        if value is None or value.kind != "class":
            return None
        return Value("object", value.name, value.package, value.definition)


def attribute_of(owner: Value, name: str) -> Value | None:
    """Return the value of an attribute."""
    if isinstance(owner.definition, Scope):
        return owner.definition.value_of_name(name)
    if owner.kind == "module":
        return _compat_value(name, _COMPAT) if owner.package == _COMPAT else _original(Imported(owner.name, name))
    if isinstance(owner.definition, ProjectClass):
        has_it, value = owner.definition.attribute(name)
        if has_it:
            return value
    if not owner.name or owner.kind not in {"object", "class"}:
        return None
    return _result(f"{owner.name}.{name}", owner.package, calls=False) or Value(
        "method", f"{owner.name}.{name}", owner.package
    )


def _result(name: str, package: str, *, calls: bool = True) -> Value | None:
    """Return the object that a function returns, or that an attribute is."""
    cls = _RESULTS.get(name)
    is_attribute = name.startswith(("Context.", "MiddlewareContext."))
    return Value("object", cls, package) if cls is not None and is_attribute is not calls else None


def _value_of_class(definition: ProjectClass, kind: Literal["class", "object"]) -> Value:
    base = next((base for base in definition.bases() if base.name), None)
    if base is None:
        return Value(kind, "", definition=definition)
    return Value(kind, base.name, base.package, definition)


def _single(values: Sequence[Value | None]) -> Value | None:
    """Return the one value of several bindings, or None if they differ."""
    if not values or values[0] is None:
        return None
    first = values[0]
    same = all(value is not None and (value.kind, value.name) == (first.kind, first.name) for value in values)
    is_one = len(values) == 1 or bool(first.name)
    return first if same and is_one else None


def _is_none(binding: object) -> bool:
    return isinstance(binding, ast.Constant) and binding.value is None


# Bindings


def bindings_of(body: Sequence[ast.stmt], module: ProjectModule) -> dict[str, list[Binding]]:
    """Return what statements bind to names, without those in functions and classes."""
    bindings: dict[str, list[Binding]] = {}
    for statement in _statements(body):
        for name, binding in _bound_by(statement, module):
            bindings.setdefault(name, []).append(binding)
    return bindings


def children_of(node: ast.AST) -> list[ast.AST]:
    """Return the nodes in a node, but those without anything in them, such as constants and operators."""
    children: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, list):
            children += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST) and not isinstance(value, _LEAVES):
            children.append(value)
    return children


_LEAVES = (ast.Constant, ast.Name, ast.expr_context, ast.operator, ast.boolop, ast.unaryop)


def all_statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Return statements and those inside of them, also in functions and classes."""
    for statement in _statements(body):
        yield statement
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from all_statements(statement.body)


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Return statements and those inside of them, in order, but not those in functions and classes."""
    for statement in body:
        yield statement
        if not isinstance(statement, _BLOCKS):
            continue
        for name in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(statement, name, ()))
        for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            yield from _statements(part.body)


_BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)
"""Statements with statements in them, but functions and classes."""


def _bound_by(node: ast.stmt, module: ProjectModule) -> Iterator[tuple[str, Binding]]:
    """Return the names that a statement itself binds."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name, node
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from _bound_by_import(node, module)
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id, Annotated(node.annotation)
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _bound_to(target, node.value)
    elif isinstance(node, ast.For | ast.AsyncFor):
        if isinstance(node.target, ast.Name):
            yield node.target.id, Element(node.iter)
        else:
            yield from _bound_to(node.target, None)
    elif isinstance(node, ast.With | ast.AsyncWith):
        for variables in filter(None, [item.optional_vars for item in node.items]):
            yield from _bound_to(variables, None)


def _bound_by_import(node: ast.Import | ast.ImportFrom, module: ProjectModule) -> Iterator[tuple[str, Binding]]:
    if isinstance(node, ast.ImportFrom):
        source = module.absolute(node.module, node.level)
        for alias in node.names:
            yield alias.asname or alias.name, Imported(source, alias.name)
        return
    for alias in node.names:
        root = alias.name.partition(".")[0]
        yield (alias.asname, Imported(alias.name)) if alias.asname else (root, Imported(root))


def _bound_to(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, Binding]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple | ast.List):
        for element in target.elts:
            yield from _bound_to(element, None)


def _attributes_of_self(node: ast.stmt) -> Iterator[tuple[str, Binding]]:
    """Return the attributes that a statement of a method sets."""
    targets: list[ast.expr] = []
    binding: Binding = None
    if isinstance(node, ast.AnnAssign):
        targets, binding = [node.target], Annotated(node.annotation)
    elif isinstance(node, ast.Assign):
        targets, binding = node.targets, node.value
    for target in targets:
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
            yield target.attr, binding


def _parameters(
    node: ast.FunctionDef | ast.AsyncFunctionDef, owner: ProjectClass | None
) -> Iterator[tuple[str, Binding]]:
    arguments = node.args
    parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    decorators = {item.id for item in node.decorator_list if isinstance(item, ast.Name)}
    if owner is not None and parameters and "staticmethod" not in decorators:
        yield parameters.pop(0).arg, Own(owner, "classmethod" in decorators)
    for parameter in parameters:
        yield parameter.arg, None if parameter.annotation is None else Annotated(parameter.annotation)
    for rest in (arguments.vararg, arguments.kwarg):
        if rest is not None:
            yield rest.arg, None
