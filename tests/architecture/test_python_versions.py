"""What Python 3.14 and its free-threaded build change: docs/development/python-versions.md."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.architecture.trees import SOURCE, is_written_by_a_script, trees

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "development" / "python-versions.md").read_text(encoding="utf-8")
MUTABLE = {"Counter", "Lock", "OrderedDict", "RLock", "WeakKeyDictionary", "WeakSet", "WeakValueDictionary"}
MUTABLE |= {"count", "defaultdict", "deque", "dict", "list", "set"}
UNCHANGED = {"ContextVar", "DescriptorPool", "TypeVar", "Typer"}
"""Classes whose objects do not change after the import."""

READS = {"getattr", "hasattr", "setattr"}
"""Functions with which a name may be read from a function or a class, in any version of Python."""


def called(value: ast.expr) -> str:
    """Return the name of what an expression calls; "" if it calls nothing."""
    match value:
        case ast.Call(ast.Name(name)) | ast.Call(ast.Attribute(attr=name)):
            return name
    return ""


def is_mutable(name: str, value: ast.expr | None) -> bool:
    """Return whether a name of a module has an empty container, a lock, or an object with the name of a variable."""
    match value:
        case ast.List(elts=[]) | ast.Dict(keys=[]):
            return True
        case ast.Call(args=arguments):
            function = called(value)
            if function in MUTABLE:
                return not arguments or function == "count"
            return name.islower() and function.strip("_")[:1].isupper() and function not in UNCHANGED
    return False


def mutable_names(tree: ast.Module) -> set[str]:
    """Return the names of a module whose values change, or may."""
    names = {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.AnnAssign(ast.Name(id=name), value=value):
                names |= {name} if is_mutable(name, value) else set()
    return names


def namespace_reads(tree: ast.Module) -> list[int]:
    """Return the lines that look for ``__annotations__`` in the namespace of a class, where Python 3.14 has none."""
    allowed = {
        id(argument)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and called(node) in READS
        for argument in node.args
    }
    constants = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in allowed]
    return [node.lineno for node in constants if node.value == "__annotations__"]


def test_what_modules_keep_for_the_process_is_in_the_page() -> None:
    found = {
        (path.relative_to(SOURCE).as_posix(), name)
        for path, tree in trees().items()
        if not is_written_by_a_script(path)
        for name in mutable_names(tree)
    }
    assert found == set(re.findall(r"^\| `(\w[\w/]*\.py)` \| `(\w+)` \|", PAGE, re.MULTILINE))


def test_no_module_looks_for_annotations_in_the_namespace_of_a_class() -> None:
    places = {f"{path.relative_to(SOURCE)}:{line}" for path, tree in trees().items() for line in namespace_reads(tree)}
    assert not places


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("_running = set()", {"_running"}),
        ("def f():\n    global _count\n    _count = 1", {"_count"}),
        ("_states: WeakKeyDictionary[Any, int] = WeakKeyDictionary()", {"_states"}),
        ("guard = OrphanGuard()", {"guard"}),
        ("LIMITS = {'a': 1}\n_run = ContextVar('run')\nlog = logging.getLogger('a')", set()),
    ],
)
def test_values_that_change_are_noticed(code: str, names: set[str]) -> None:
    assert mutable_names(ast.parse(code)) == names


def test_a_look_into_a_namespace_is_noticed() -> None:
    assert namespace_reads(ast.parse("vars(cls).get('__annotations__', {})")) == [1]
    assert namespace_reads(ast.parse("getattr(function, '__annotations__', {})")) == []
