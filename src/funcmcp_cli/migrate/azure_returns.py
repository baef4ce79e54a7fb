"""What the functions of Azure's MCP triggers return, as far as their code shows it.

Azure's host reads a returned text: JSON with messages is the result of a prompt, and JSON with ``content`` is the
contents of a resource. funcmcp sends each text as it is. So a function moves only if its text is not such JSON.

How it works: `ReturnReader` follows literals, variables that are assigned in the function or at the top level of the
file, and functions of the file. Everything else is ``UNCLEAR``.
"""

from __future__ import annotations

import json
from enum import Enum, auto
from typing import TYPE_CHECKING

import libcst as cst

from funcmcp._objects.mappings import without
from funcmcp_cli.migrate.azure_values import UnknownValueError, dotted, value_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_MAX_DEPTH = 20
_TEXT_METHODS = {"capitalize", "format", "lower", "lstrip", "replace", "rstrip", "strip", "title", "upper"}
"""Methods of a text that return a text with the same kind of beginning."""


class Returned(Enum):
    """What a function may return.

    Attributes:
        TEXT: A text that is not a JSON object.
        JSON: A text with a JSON object that has neither messages nor content.
        RESULT: A text with a JSON object that Azure's host reads as a result or an envelope, or may read as one.
        VALUE: A value that is neither a text nor bytes, such as a dict.
        BYTES: Bytes.
        NONE: None, or nothing.
        UNCLEAR: Something that the code does not show.
    """

    TEXT = auto()
    JSON = auto()
    RESULT = auto()
    VALUE = auto()
    BYTES = auto()
    NONE = auto()
    UNCLEAR = auto()


_READ_BY_THE_HOST = {"content", "messages"}
"""Members, in lower case, that make a JSON object an envelope or a result for Azure's host."""


class ReturnReader:
    """Reads what the functions of a file may return.

    Args:
        module: The file.
    """

    def __init__(self, module: cst.Module) -> None:
        self.functions: dict[str, cst.FunctionDef] = {}
        for statement in module.body:
            if isinstance(statement, cst.FunctionDef):
                self.functions[statement.name.value] = statement
        self.top_level = _Assigned.of(module.body)

    def returned(self, function: cst.FunctionDef) -> set[Returned]:
        """Return what a function of the file may return."""
        return self.of_function(function, 0)

    def of_function(self, function: cst.FunctionDef, depth: int) -> set[Returned]:
        """Return what a function can return, with the functions that it calls down to a depth."""
        if depth > _MAX_DEPTH:
            return {Returned.UNCLEAR}
        returns = _Returns()
        function.body.visit(returns)
        if returns.is_generator:
            return {Returned.VALUE}
        local = {**self.top_level, **{name: [] for name in _names_of(function.params)}, **_Assigned.of([function.body])}
        result = set[Returned]()
        for value in returns.values:
            result |= {Returned.NONE} if value is None else self.of(value, local, depth + 1)
        if not _always_leaves(function.body):
            result.add(Returned.NONE)
        return result

    def of(
        self, node: cst.BaseExpression, variables: Mapping[str, list[cst.BaseExpression]], depth: int
    ) -> set[Returned]:
        """Return what an expression may be. A variable without values is a parameter."""
        if depth > _MAX_DEPTH:
            return {Returned.UNCLEAR}
        if isinstance(node, cst.IfExp):
            return self.of(node.body, variables, depth + 1) | self.of(node.orelse, variables, depth + 1)
        if isinstance(node, cst.BooleanOperation | cst.BinaryOperation):
            return self._of_operation(node, variables, depth)
        if isinstance(node, cst.Name) and node.value not in ("None", "True", "False"):
            values = variables.get(node.value) or []
            scope = without(variables, node.value)  # `text = text + "."`
            return set[Returned]().union(*(self.of(value, scope, depth + 1) for value in values)) or {Returned.UNCLEAR}
        if isinstance(node, cst.Await):
            return self.of(node.expression, variables, depth + 1)
        if isinstance(node, cst.Call):
            return self._of_call(node, variables, depth)
        return {_of_literal(node)}

    def _of_operation(
        self,
        node: cst.BooleanOperation | cst.BinaryOperation,
        variables: Mapping[str, list[cst.BaseExpression]],
        depth: int,
    ) -> set[Returned]:
        left = self.of(node.left, variables, depth + 1)
        if isinstance(node, cst.BooleanOperation):
            return left | self.of(node.right, variables, depth + 1)
        is_text = isinstance(node.operator, cst.Add | cst.Modulo) and left <= {Returned.TEXT, Returned.BYTES}
        if is_text:
            return left
        return {Returned.UNCLEAR}

    def _of_call(self, node: cst.Call, variables: Mapping[str, list[cst.BaseExpression]], depth: int) -> set[Returned]:
        name = dotted(node.func)
        if name in ("json.dumps", "dumps") and node.args:
            return {self._of_json(node.args[0].value, variables)}
        if isinstance(node.func, cst.Name) and name in self.functions:
            return self.of_function(self.functions[name], depth + 1)
        if isinstance(node.func, cst.Attribute) and node.func.attr.value in _TEXT_METHODS:
            text = self.of(node.func.value, variables, depth + 1)
            if text <= {Returned.TEXT}:
                return text
            return {Returned.UNCLEAR}
        return {Returned.UNCLEAR}

    def _of_json(self, node: cst.BaseExpression, variables: Mapping[str, list[cst.BaseExpression]]) -> Returned:
        """Return what the JSON of an expression is. The names of its members must be written out."""
        if isinstance(node, cst.Name):
            values = variables.get(node.value) or []
            if len(values) != 1:
                return Returned.RESULT
            node = values[0]
        if isinstance(node, cst.List | cst.Tuple | cst.ListComp):
            return Returned.TEXT
        if not isinstance(node, cst.Dict):
            return Returned.RESULT
        try:
            members = {value_of(element.key, {}) for element in node.elements if isinstance(element, cst.DictElement)}
        except UnknownValueError:
            return Returned.RESULT
        if len(members) == len(node.elements):
            return _of_members(members)
        return Returned.RESULT


def _of_members(names: Iterable[object]) -> Returned:
    is_read = any(str(name).lower() in _READ_BY_THE_HOST for name in names)
    if is_read:
        return Returned.RESULT
    return Returned.JSON


def _of_literal(node: cst.BaseExpression) -> Returned:
    if isinstance(node, cst.SimpleString | cst.ConcatenatedString):
        value = node.evaluated_value
        if isinstance(value, bytes):
            return Returned.BYTES
        return Returned.UNCLEAR if value is None else _of_text(value)
    if isinstance(node, cst.FormattedString):
        first = node.parts[0] if node.parts else None
        beginning = first.value.lstrip() if isinstance(first, cst.FormattedStringText) else ""
        if beginning and not beginning.startswith("{"):
            return Returned.TEXT
        return Returned.UNCLEAR
    if isinstance(node, cst.Name):
        if node.value == "None":
            return Returned.NONE
        return Returned.VALUE
    if isinstance(node, cst.BaseDict | cst.BaseList | cst.BaseSet | cst.Tuple | cst.BaseNumber | cst.GeneratorExp):
        return Returned.VALUE
    return Returned.UNCLEAR


def _of_text(text: str) -> Returned:
    try:
        value = json.loads(text)
    except ValueError:  # what begins with a brace may become JSON when it is formatted
        if text.lstrip().startswith("{"):
            return Returned.UNCLEAR
        return Returned.TEXT
    if isinstance(value, dict):
        return _of_members(value)
    return Returned.TEXT


class _SameFunction(cst.CSTVisitor):
    """Visits a function's body without the functions, lambdas and classes in it."""

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:  # noqa: ARG002
        return False

    def visit_Lambda(self, node: cst.Lambda) -> bool:  # noqa: ARG002
        return False

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:  # noqa: ARG002
        return False


class _Returns(_SameFunction):
    def __init__(self) -> None:
        super().__init__()
        self.values: list[cst.BaseExpression | None] = []
        self.is_generator = False

    def visit_Return(self, node: cst.Return) -> None:
        self.values.append(node.value)

    def visit_Yield(self, node: cst.Yield) -> None:  # noqa: ARG002
        self.is_generator = True


class _Assigned(_SameFunction):
    """The values of variables. A variable that also gets values in other ways has one that is not clear."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, list[cst.BaseExpression]] = {}

    @classmethod
    def of(cls, body: Iterable[cst.CSTNode]) -> dict[str, list[cst.BaseExpression]]:
        assigned = cls()
        for node in body:
            node.visit(assigned)
        return assigned.values

    def add(self, target: cst.BaseExpression, value: cst.BaseExpression) -> None:
        for name in _names_in(target):
            self.values.setdefault(name, []).append(value if isinstance(target, cst.Name) else cst.Ellipsis())

    def visit_Assign(self, node: cst.Assign) -> None:
        for target in node.targets:
            self.add(target.target, node.value)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        if node.value is not None:
            self.add(node.target, node.value)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        if not isinstance(node.operator, cst.AddAssign):  # what is added does not change the beginning
            self.add(node.target, cst.Ellipsis())

    def visit_NamedExpr(self, node: cst.NamedExpr) -> None:
        self.add(node.target, node.value)

    def visit_For(self, node: cst.For) -> None:
        self.add(node.target, cst.Ellipsis())

    def visit_AsName(self, node: cst.AsName) -> None:
        self.add(node.name, cst.Ellipsis())


def _names_in(target: cst.BaseExpression) -> Iterator[str]:
    if isinstance(target, cst.Name):
        yield target.value
    elif isinstance(target, cst.Tuple | cst.List):
        for element in target.elements:
            yield from _names_in(element.value)


def _names_of(parameters: cst.Parameters) -> Iterator[str]:
    for parameter in (*parameters.posonly_params, *parameters.params, *parameters.kwonly_params):
        yield parameter.name.value


def _always_leaves(body: cst.BaseSuite) -> bool:
    """Return whether the code after a block is never reached, so that a function does not return None there."""
    last = body.body[-1] if body.body else None
    if isinstance(last, cst.SimpleStatementLine):
        last = last.body[-1]
    if isinstance(last, cst.Return | cst.Raise):
        return True
    if isinstance(last, cst.If):
        branch: cst.If | cst.Else | None = last
        while isinstance(branch, cst.If):
            if not _always_leaves(branch.body):
                return False
            branch = branch.orelse
        return branch is not None and _always_leaves(branch.body)
    if isinstance(last, cst.Try):
        return _leaves_try(last)
    if isinstance(last, cst.With):
        return _always_leaves(last.body)
    if isinstance(last, cst.While):  # `while True` without a break
        return dotted(last.test) == "True" and not _Breaks.are_in(last.body)
    return False


def _leaves_try(node: cst.Try) -> bool:
    if node.finalbody is not None and _always_leaves(node.finalbody.body):
        return True
    end = node.body if node.orelse is None else node.orelse.body
    return _always_leaves(end) and all(_always_leaves(handler.body) for handler in node.handlers)


class _Breaks(_SameFunction):
    def __init__(self) -> None:
        super().__init__()
        self.is_one = False

    @classmethod
    def are_in(cls, body: cst.BaseSuite) -> bool:
        breaks = cls()
        body.visit(breaks)
        return breaks.is_one

    def visit_Break(self, node: cst.Break) -> None:  # noqa: ARG002
        self.is_one = True
