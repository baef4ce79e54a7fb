"""What depends on the system is in docs/development/platforms.md, with what happens on Windows and macOS.

How it works: the stubs of Python's library, which are part of mypy, say which names each system has. A module that uses
one that not all have, or asks which system it runs on, has a row in the page with the names.
"""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import mypy
import pytest

from tests.architecture.trees import SOURCE, is_written_by_a_script, trees

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "development" / "platforms.md").read_text(encoding="utf-8")
STUBS = Path(mypy.__file__).parent / "typeshed" / "stdlib"
PLATFORMS = ("linux", "darwin", "win32")
PATH = re.compile(r"/(proc|dev|sys|run)/.*|/proc")
OPTIONS = {"add_signal_handler", "pass_fds", "preexec_fn", "process_group", "start_new_session", "chmod"}
"""Methods and arguments that have no effect, or no implementation, on Windows."""

PACKAGES = {"uvloop"}
"""Packages of others that not all systems have."""


def is_true(test: ast.expr, platform: str) -> bool | None:
    """Return the value of a condition about the system; None if it is about something else."""
    match test:
        case ast.Compare(ast.Attribute(ast.Name("sys"), "platform"), [operator], [ast.Constant(str(name))]):
            return (platform == name) == isinstance(operator, ast.Eq)
        case ast.BoolOp(ast.And() | ast.Or() as operator, values):
            parts = [is_true(value, platform) for value in values]
            decides = isinstance(operator, ast.Or)
            return decides if decides in parts else None if None in parts else not decides
    return None


def defined(body: list[ast.stmt], platform: str) -> set[str]:
    """Return the names that a stub defines for a system, in any version of Python."""
    names: set[str] = set()
    for node in body:
        match node:
            case ast.If():
                value = is_true(node.test, platform)
                names |= set() if value is False else defined(node.body, platform)
                names |= set() if value is True else defined(node.orelse, platform)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                names.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names |= {alias.asname or alias.name for alias in aliases}
    return names


@functools.cache
def names_of_some_systems(module: str) -> frozenset[str]:
    """Return the names of a module of Python that not all systems have; "" is the module itself."""
    file = STUBS / f"{module}.pyi"
    if not file.exists():
        file = STUBS / module / "__init__.pyi"
    if not file.exists():
        return frozenset()
    body = ast.parse(file.read_text(encoding="utf-8")).body
    sets = [
        defined([node for node in body if not isinstance(node, ast.Import | ast.ImportFrom)], platform)
        for platform in PLATFORMS
    ]
    if not all(sets) and any(sets):
        return frozenset({""})
    sets = [defined(body, platform) for platform in PLATFORMS]
    return frozenset(name for name in sets[0].union(*sets) if not all(name in names for names in sets))


def uses(tree: ast.Module) -> set[str]:
    """Return what depends on the system in a module: names with their module, options, and paths."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                modules = [alias.name for alias in aliases]
                found |= {name for name in modules if "" in names_of_some_systems(name) or name in PACKAGES}
            case ast.ImportFrom(module=str(name), names=aliases, level=0):
                some = names_of_some_systems(name)
                found |= {f"{name}.{alias.name}" for alias in aliases if alias.name in some}
                found |= {name} if "" in some or name in PACKAGES else set()
            case ast.Attribute(ast.Name("sys"), "platform"):
                found.add("sys.platform")
            case ast.Attribute(ast.Name("os"), "name"):
                found.add("os.name")
            case ast.Attribute(ast.Name(module), name) if name in names_of_some_systems(module):
                found.add(f"{module}.{name}")
            case ast.Call(ast.Name("getattr" | "hasattr"), [ast.Name(module), ast.Constant(str(name)), *_]) if (
                name in names_of_some_systems(module)
            ):
                found.add(f"{module}.{name}")
            case ast.Attribute(attr=name) | ast.keyword(arg=str(name)) if name in OPTIONS:
                found.add(name)
            case ast.Constant(str(text)) if PATH.fullmatch(text):
                found.add(text)
    return found


def listed() -> dict[str, set[str]]:
    """Return the names in the second column of the page's table, by module."""
    rows = re.findall(r"^\| `(\w[\w/]*\.py)` \| ([^|]*) \|", PAGE, re.MULTILINE)
    return {module: set(re.findall(r"`([^`]+)`", names)) for module, names in rows}


def test_each_module_that_depends_on_the_system_is_in_the_page_with_what_it_uses() -> None:
    modules = {path: uses(tree) for path, tree in trees().items() if not is_written_by_a_script(path)}
    assert {path.relative_to(SOURCE).as_posix(): names for path, names in modules.items() if names} == listed()


def test_each_row_names_a_test_that_exists() -> None:
    rows = [line.rsplit("|", 2)[1] for line in PAGE.splitlines() if re.match(r"\| `\w[\w/]*\.py` \|", line)]
    named = [name for row in rows for name in re.findall(r"`(tests/[\w/]+\.py)`", row)]
    assert named
    assert not [name for name in named if not (ROOT / name).is_file()]


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("import fcntl", {"fcntl"}),
        ("import msvcrt", {"msvcrt"}),
        ("from pwd import getpwnam", {"pwd"}),
        ("import os\nos.fork()", {"os.fork"}),
        ("from os import getuid", {"os.getuid"}),
        ("import signal\nsignal.SIGKILL", {"signal.SIGKILL"}),
        ("import socket\nsocket.AF_UNIX", {"socket.AF_UNIX"}),
        ("import os\nhasattr(os, 'getuid')", {"os.getuid"}),
        ("subprocess.run([], start_new_session=True)", {"start_new_session"}),
        ("open('/proc/self/stat')", {"/proc/self/stat"}),
        ("import uvloop", {"uvloop"}),
        ("import os, signal, socket\nos.kill, os.path, signal.SIGTERM, socket.AF_INET", set()),
    ],
)
def test_names_that_not_all_systems_have_are_noticed(code: str, names: set[str]) -> None:
    assert uses(ast.parse(code)) == names
