"""No test asserts that something was fast: such a test fails on a machine that is busy."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.patience import PATIENCE

TESTS = Path(__file__).parents[1]
CLOCKS = {"monotonic", "perf_counter", "process_time", "time", "perf_counter_ns", "monotonic_ns"}

_CLOCK_CALL = re.compile(rf"\b({'|'.join(CLOCKS)})\(\)")
"""What the text of a module contains that calls a clock. Others are not parsed."""


def reads_clock(node: ast.AST) -> bool:
    """Return whether an expression calls a clock."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute | ast.Name):
            name = part.func.attr if isinstance(part.func, ast.Attribute) else part.func.id
            if name in CLOCKS and not part.args:
                return True
    return False


class Durations(ast.NodeVisitor):
    """Find the assertions of one function that a duration is below a number.

    A duration is a difference of times, a variable that one was assigned or appended to, or an expression with one of
    these in it.
    """

    def __init__(self, function: ast.AST) -> None:
        self.names: set[str] = set()
        self.moments: set[str] = set()
        self.lines: list[int] = []
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and reads_clock(node.value) and not self.is_duration(node.value):
                self.moments |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and self.is_duration(node.value):
                self.names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
            elif isinstance(node, ast.Call) and any(map(self.is_duration, node.args)):
                match node.func:
                    case ast.Attribute(value=ast.Name(id=name), attr="append"):
                        self.names.add(name)
        for node in ast.walk(function):
            if isinstance(node, ast.Assert):
                self.visit(node.test)

    def is_duration(self, node: ast.AST) -> bool:
        """Return whether an expression is, or contains, a difference of times or the name of one."""
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and part.id in self.names:
                return True
            if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Sub) and self.is_moment(part.left):
                return True
        return False

    def is_moment(self, node: ast.AST) -> bool:
        """Return whether an expression is a time of a clock, or the name of one."""
        return reads_clock(node) or (isinstance(node, ast.Name) and node.id in self.moments)

    def visit_Compare(self, node: ast.Compare) -> None:
        """Note a comparison with a larger number."""
        sides = [node.left, *node.comparators]
        for operator, left, right in zip(node.ops, sides, sides[1:], strict=False):
            smaller = left if isinstance(operator, ast.Lt | ast.LtE) else right
            larger = right if isinstance(operator, ast.Lt | ast.LtE) else left
            is_order = isinstance(operator, ast.Lt | ast.LtE | ast.Gt | ast.GtE)
            if is_order and self.is_duration(smaller) and isinstance(larger, ast.Constant):
                self.lines.append(node.lineno)
        self.generic_visit(node)


def fast_lines(source: str) -> list[int]:
    """Return the lines of a module that assert that something was fast."""
    if not _CLOCK_CALL.search(source):
        return []
    functions = [x for x in ast.walk(ast.parse(source)) if isinstance(x, ast.FunctionDef | ast.AsyncFunctionDef)]
    return sorted({line for function in functions for line in Durations(function).lines})


def expects_timeout(node: ast.AST) -> bool:
    """Return whether a statement expects that a time limit passes in its block."""
    match node:
        case ast.With(items=items) | ast.AsyncWith(items=items):
            calls = [item.context_expr for item in items if isinstance(item.context_expr, ast.Call)]
            expected = [
                x for call in calls if ast.unparse(call.func) in {"pytest.raises", "suppress"} for x in call.args
            ]
        case ast.Try(handlers=handlers):
            expected = [handler.type for handler in handlers if handler.type is not None]
        case _:
            return False
    return any("TimeoutError" in ast.unparse(error) for error in expected)


def short_limits(source: str) -> list[int]:
    """Return the lines with a time limit of less than `PATIENCE` around code that must not reach it."""
    if "asyncio.timeout(" not in source:
        return []
    tree = ast.parse(source)
    expecting = [node for node in ast.walk(tree) if expects_timeout(node)]
    expected = {id(part) for node in expecting for part in ast.walk(node)}
    lines = []
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="timeout", value=ast.Name(id="asyncio")), args=[ast.Constant(value=limit)]
            ):
                if id(node) not in expected and isinstance(limit, int | float) and 0 < limit < PATIENCE:
                    lines.append(node.lineno)
    return lines


@pytest.mark.parametrize(
    "body",
    [
        "assert monotonic() - begin < 5",
        "assert 5 > time.monotonic() - begin",
        "assert (claim, monotonic() - created < 0.15) == (task, True)",
        "taken = loop.time() - begin\n    assert taken <= 0.8",
        "begin = monotonic()\n    end = monotonic()\n    assert end - begin < 1",
        "waits.append(perf_counter() - begin)\n    assert min(waits) < 0.5",
    ],
)
def test_an_assertion_that_something_was_fast_is_noticed(body: str) -> None:
    assert fast_lines(f"def test() -> None:\n    {body}\n")


@pytest.mark.parametrize(
    "body",
    [
        "while monotonic() < end:\n        pass",
        "assert monotonic() - begin >= 0.1",
        "assert monotonic() < deadline",
        "assert len(rows) < 5",
    ],
)
def test_a_deadline_and_a_least_duration_are_no_such_assertions(body: str) -> None:
    assert not fast_lines(f"def test() -> None:\n    {body}\n")


def test_no_test_asserts_that_something_was_fast() -> None:
    modules = [path for path in TESTS.rglob("*.py") if "node_modules" not in path.parts]
    assert modules
    found = {f"{path.relative_to(TESTS)}:{line}" for path in modules for line in fast_lines(path.read_text("utf-8"))}
    assert not found


def test_a_short_time_limit_is_noticed_where_none_should_pass() -> None:
    limit = "async with asyncio.timeout(0.5):\n    await stop()\n"
    nested = limit.replace("\n    ", "\n        ")
    assert short_limits(limit) == [1]
    assert short_limits(f"with pytest.raises(TimeoutError):\n    {nested}") == []
    assert short_limits(f"try:\n    {nested}except TimeoutError:\n    pass\n") == []
    assert short_limits(limit.replace("0.5", "PATIENCE")) == []


def test_no_test_has_a_short_time_limit_that_a_busy_machine_exceeds() -> None:
    modules = [path for path in TESTS.rglob("*.py") if "node_modules" not in path.parts]
    found = {f"{path.relative_to(TESTS)}:{x}" for path in modules for x in short_limits(path.read_text("utf-8"))}
    assert not found
