"""The public modules: their names are listed alike everywhere, and load nothing before they are used."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE

pytestmark = pytest.mark.every_python("Each version of Python loads other modules.")

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "funcmcp"
LAZY_MODULES = [
    "funcmcp",
    "funcmcp.auth",
    "funcmcp.client",
    "funcmcp.compat",
    "funcmcp.compat.mcp",
    "funcmcp.content",
    "funcmcp.extensions",
    "funcmcp.http",
    "funcmcp.middleware",
    "funcmcp.postgres",
    "funcmcp.providers",
    "funcmcp.redis",
    "funcmcp.state",
    "funcmcp.tasks",
    "funcmcp.transforms",
    "funcmcp.upstreams",
]
MAX_TOP_LEVEL_NAMES = 28
MAX_CONSTRUCTOR_PARAMETERS = 16
HEAVY = {
    "asyncio",
    "azure",
    "httpx2",
    "joserfc",
    "jsonschema_rs",
    "psycopg",
    "pydantic",
    "pydantic_core",
    "redis",
    "uvicorn",
}


def source_of(module: str) -> ast.Module:
    path = SOURCE.parent / module.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text())


def names_for_type_checkers(module: str) -> dict[str, str]:
    """Return the names that a module imports under ``if TYPE_CHECKING``, with the modules that they come from."""
    names = {}
    for block in source_of(module).body:
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
            for statement in block.body:
                assert isinstance(statement, ast.ImportFrom)
                for alias in statement.names:
                    names[alias.name] = str(statement.module)
    return names


def names_at_run_time(module: str) -> dict[str, str]:
    homes: dict[str, list[str]] = importlib.import_module(module)._HOMES
    names = {}
    for home, group in homes.items():
        for name in group:
            names[name] = "funcmcp" if name == home else f"funcmcp.{home}"
    return names


@pytest.mark.parametrize("module", LAZY_MODULES)
def test_a_public_module_lists_the_same_names_for_type_checkers_readers_and_run_time(module: str) -> None:
    public = importlib.import_module(module)
    assert names_for_type_checkers(module) == names_at_run_time(module)
    assert sorted(public.__all__) == sorted(names_at_run_time(module))
    assert public.__doc__


@pytest.mark.parametrize("module", LAZY_MODULES)
def test_each_public_name_can_be_imported(module: str) -> None:
    public = importlib.import_module(module)
    for name, home in names_at_run_time(module).items():
        assert getattr(public, name) is getattr(importlib.import_module(home), name)
        assert name in dir(public)
    with pytest.raises(AttributeError, match=f"module '{module}' has no attribute 'no_such_name'"):
        _ = public.no_such_name


def public_homes() -> dict[tuple[str, str], str]:
    """Return the public module of each class and function, by the module that defines it. Of several, the shorter.

    A name for a type of another name (`JSONRPCRequest`) is not among them.
    """
    homes: dict[tuple[str, str], str] = {}
    for module in sorted(PUBLIC_MODULES, key=lambda name: name.count(".")):
        for name, home in names_at_run_time(module).items() if module in LAZY_MODULES else ():
            value = getattr(importlib.import_module(home), name)
            if (inspect.isclass(value) or inspect.isfunction(value)) and value.__name__ == name:
                homes.setdefault((home, name), module)
    return homes


def test_a_public_class_or_function_reports_its_public_module() -> None:
    reported = {key: getattr(importlib.import_module(key[0]), key[1]).__module__ for key in public_homes()}
    assert reported == public_homes()


def test_tracebacks_and_pickles_of_public_classes_name_public_modules() -> None:
    """The class is pickled in a process that has imported the private module alone."""
    code = (
        "import pickle, traceback\n"
        "from funcmcp._protocol.errors import ToolError\n"
        "error = ToolError('full')\n"
        "print(traceback.format_exception_only(error), pickle.dumps(error), type(pickle.loads(pickle.dumps(error))))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert "funcmcp.ToolError: full" in run.stdout
    assert "_protocol" not in run.stdout


@pytest.mark.parametrize("module", LAZY_MODULES)
def test_no_public_name_is_also_a_private_submodule(module: str) -> None:
    """Importing a submodule sets an attribute of its package, which would hide the public name."""
    submodules = {path.stem for path in (SOURCE.parent / module.replace(".", "/")).glob("*")}
    assert {name for name in names_at_run_time(module) if name in submodules} <= {"content"}


def test_there_are_at_most_28_names_at_the_top_level() -> None:
    assert len(importlib.import_module("funcmcp").__all__) <= MAX_TOP_LEVEL_NAMES


def loaded(code: str) -> set[str]:
    """Return the modules that a fresh interpreter has loaded after running code."""
    script = f"{code}\nimport sys; print(*sys.modules, sep='\\n')"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=PATIENCE)
    return set(run.stdout.split())


def test_importing_the_public_modules_loads_no_library() -> None:
    modules = loaded(f"import {', '.join(LAZY_MODULES)}")
    assert not modules & HEAVY
    private = {module for module in modules if module.startswith("funcmcp.")}
    assert private == {*LAZY_MODULES, "funcmcp._objects", "funcmcp._objects.public_names"} - {"funcmcp"}


PUBLIC_MODULES = {*LAZY_MODULES, "funcmcp.azure", "funcmcp.testing"}
"""Those of LAZY_MODULES and two that import what they have at once."""
IMPORT = re.compile(r"^[ \t>]*(?:from (funcmcp[\w.]*) import|import (funcmcp[\w.]*))", re.MULTILINE)
SHOWN = [
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "samples").rglob("*.py"),
    *(ROOT / "src").rglob("*.template"),
    ROOT / "README.md",
    ROOT / "SECURITY.md",
]
"""Files with code for users."""


def imports_in(text: str) -> set[str]:
    return {match[1] or match[2] for match in IMPORT.finditer(text)}


def test_code_for_users_imports_public_modules_only() -> None:
    private = {str(path.relative_to(ROOT)): imports_in(path.read_text()) - PUBLIC_MODULES for path in SHOWN}
    assert not {path: names for path, names in private.items() if names}


def test_imports_in_text_are_recognized() -> None:
    lines = [
        "from funcmcp.app import MCPServer",
        "    import funcmcp.azure",
        "> from funcmcp import (",
        "not from funcmcp.x import",
    ]
    assert imports_in("\n".join(lines)) == {"funcmcp.app", "funcmcp.azure", "funcmcp"}


def test_code_in_docstrings_imports_public_modules_only() -> None:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            docstring = ast.get_docstring(node) if isinstance(node, documented) else None
            assert imports_in(docstring or "") <= PUBLIC_MODULES, path


def test_the_constructor_of_a_server_has_at_most_15_parameters() -> None:
    from funcmcp import MCPServer

    parameters = inspect.signature(MCPServer).parameters.values()
    assert len(parameters) <= MAX_CONSTRUCTOR_PARAMETERS
    assert {parameter.kind for parameter in parameters} == {
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.KEYWORD_ONLY,
    }


METHODS_FOR_AUTHORS = {
    "add",
    "add_files",
    "add_lifespan",
    "add_middleware",
    "add_provider",
    "add_skills",
    "add_transform",
    "call_tool",
    "custom_route",
    "disable",
    "enable",
    "get_prompt",
    "lax",
    "lifespan",
    "list_prompts",
    "list_resource_templates",
    "list_resources",
    "list_tools",
    "measure",
    "method",
    "mount",
    "name",
    "prompt",
    "read_resource",
    "remove_prompt",
    "remove_resource",
    "remove_tool",
    "resource",
    "resource_lister",
    "notify_resources_changed",
    "notify_resource_updated",
    "paths",
    "run",
    "run_async",
    "serve_metrics",
    "services",
    "stop",
    "task_tools",
    "tool",
    "tool_search",
    "from_openapi",
    "tools_from_asgi",
    "tools_from_openapi",
    "unknown_arguments",
    "trace",
}


def test_the_public_names_of_a_server_are_for_authors() -> None:
    from funcmcp import MCPServer

    assert {name for name in dir(MCPServer("m")) if not name.startswith("_")} == METHODS_FOR_AUTHORS
