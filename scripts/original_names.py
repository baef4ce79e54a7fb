"""Write src/funcmcp_cli/migrate/original_names.json: the public names of FastMCP and of the official SDK.

    .venv/bin/python scripts/original_names.py PYTHON ...

Each PYTHON is that of an environment in which `fastmcp` or `mcp` is installed, the newest one last. The file has the
names of all of them, so that servers for old versions are known, too. `tests/cli/migrate/test_compat_names.py`
compares the file with the packages that are installed. Only the standard library is used, because the other
environments run this file as well.
"""

from __future__ import annotations

import contextlib
import dis
import importlib
import inspect
import io
import json
import pkgutil
import subprocess
import sys
import warnings
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any

FILE = Path(__file__).parents[1] / "src" / "funcmcp_cli" / "migrate" / "original_names.json"
PACKAGES = ("fastmcp", "mcp", "mcp_types")
LEFT_OUT = {
    "fastmcp.cli",
    "fastmcp.client",
    "mcp.cli",
    "mcp.client",
    "mcp.os",
    "mcp.types.methods",
    "mcp_types.methods",
}
"""Modules that no server imports names from."""
CLASSES = {
    "FastMCP": ["fastmcp:FastMCP", "mcp.server.fastmcp:FastMCP"],
    "MCPServer": ["mcp.server:MCPServer"],
    "Context": ["fastmcp:Context", "mcp.server.fastmcp:Context", "mcp.server.mcpserver:Context"],
    "ServerSession": ["mcp.server.session:ServerSession"],
    "Middleware": ["fastmcp.server.middleware:Middleware"],
    "MiddlewareContext": ["fastmcp.server.middleware:MiddlewareContext"],
    "Tool": ["fastmcp.tools:Tool", "mcp.server.fastmcp.tools:Tool"],
    "Prompt": ["fastmcp.prompts:Prompt", "mcp.server.fastmcp.prompts:Prompt"],
    "Resource": ["fastmcp.resources:Resource", "mcp.server.fastmcp.resources:Resource"],
    "ResourceTemplate": ["fastmcp.resources:ResourceTemplate", "mcp.server.fastmcp.resources:ResourceTemplate"],
    "Message": ["fastmcp.prompts:Message", "fastmcp.prompts.prompt:Message"],
    "ToolResult": ["fastmcp.tools:ToolResult", "fastmcp.tools.tool:ToolResult"],
    "PromptResult": ["fastmcp.prompts:PromptResult"],
    "ResourceResult": ["fastmcp.resources:ResourceResult"],
}
"""Classes whose members are listed, with the places where they are."""
WITH_PRIVATE_PARTS = {"Context", "FastMCP", "MCPServer"}
"""Classes whose private members are listed, too, because authors use them."""


def names_of_environment() -> dict[str, Any]:
    """Return the names of the packages that this Python has."""
    warnings.simplefilter("ignore")
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        modules = {name: names for package in PACKAGES for name, names in _modules_of(package).items()}
        classes = {name: _members(name, places) for name, places in CLASSES.items()}
    versions = {}
    for package in ("fastmcp", "mcp"):
        with contextlib.suppress(PackageNotFoundError):
            versions[package] = [version(package)]
    return {"versions": versions, "modules": modules, "classes": classes}


def _modules_of(package: str) -> dict[str, dict[str, str]]:
    """Return the public names of each public module, and the module that defines each; "" for the module itself."""
    module = _imported(package)
    if module is None:
        return {}
    listed = {package: _names_of(module)}
    for item in pkgutil.iter_modules(getattr(module, "__path__", ()), f"{package}."):
        if not item.name.rpartition(".")[2].startswith("_") and item.name not in LEFT_OUT:
            listed |= _modules_of(item.name)
    return listed


def _imported(name: str) -> ModuleType | None:
    """Return a module, or None if it needs packages that are not installed."""
    try:
        return importlib.import_module(name)
    except BaseException:  # noqa: BLE001 - some modules end the process, or raise what their packages raise
        return None


def _names_of(module: ModuleType) -> dict[str, str]:
    """Return the names that a module defines or offers, with the module that defines each.

    What a module imports for its own use is left out, and so are submodules.
    """
    names = {}
    for name in dir(module):
        if name.startswith("_"):
            continue
        value = _attribute(module, name)
        home = str(getattr(value, "__module__", None) or "")
        is_listed = name in getattr(module, "__all__", ())
        if isinstance(value, ModuleType) or not (is_listed or home.partition(".")[0] in PACKAGES):
            continue
        if home == module.__name__:
            names[name] = ""
        elif is_listed or hasattr(module, "__path__"):
            names[name] = home
    return names


def _attribute(module: ModuleType, name: str) -> Any:
    """Return an attribute of a module, or None if it raises when it is used."""
    try:
        return getattr(module, name)
    except BaseException:  # noqa: BLE001 - as above
        return None


def _members(listed_name: str, places: list[str]) -> dict[str, list[str] | None]:
    """Return the members of a class: the parameters of methods, and None for attributes."""
    members: dict[str, list[str] | None] = {}
    has_private_parts = listed_name in WITH_PRIVATE_PARTS
    for place in places:
        module, _, name = place.partition(":")
        cls = getattr(_imported(module), name, None)
        if not isinstance(cls, type):
            continue
        for owner in reversed(cls.__mro__):
            if owner.__module__.partition(".")[0] not in PACKAGES:
                continue
            for member in [*vars(owner), *vars(owner).get("__annotations__", ()), *_set_by_methods(owner)]:
                is_private = member.startswith("_") and not member.startswith(("__", "_abc_", f"_{owner.__name__}__"))
                if not member.startswith("_") or member == "__init__" or (is_private and has_private_parts):
                    members[member] = _merged(members.get(member), _parameters(getattr(cls, member, None)))
    return members


def _set_by_methods(cls: type) -> set[str]:
    """Return the attributes that the methods of a class set."""
    names: set[str] = set()
    for method in filter(inspect.isfunction, vars(cls).values()):
        previous: Any = None
        for instruction in dis.get_instructions(method):
            if instruction.opname == "STORE_ATTR" and previous == "self":
                names.add(instruction.argval)
            previous = instruction.argval
    return names


def _parameters(member: Any) -> list[str] | None:
    if not inspect.isroutine(member):
        return None
    try:
        parameters = list(inspect.signature(member).parameters.values())
    except (TypeError, ValueError):
        return []
    any_number = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    return [item.name for item in parameters if item.name not in {"self", "cls"} and item.kind not in any_number]


def _merged(first: list[str] | None, second: list[str] | None) -> list[str] | None:
    if first is None or second is None:
        return second if first is None else first
    return list(dict.fromkeys([*first, *second]))


def merged(environments: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the names of several environments. Of a name that was moved, the home in the last one counts."""
    versions: dict[str, list[str]] = {}
    modules: dict[str, dict[str, str]] = {}
    classes: dict[str, dict[str, list[str] | None]] = {}
    for names in environments:
        for package, numbers in names["versions"].items():
            versions[package] = sorted({*versions.get(package, []), *numbers})
        for module, homes in names["modules"].items():
            modules.setdefault(module, {}).update(homes)
        for cls, members in names["classes"].items():
            known = classes.setdefault(cls, {})
            for member, parameters in members.items():
                known[member] = _merged(known.get(member), parameters)
    return {"versions": versions, "modules": modules, "classes": classes}


def text_of(names: dict[str, Any]) -> str:
    """Return the text of the file: a line for each module and for each class."""
    parts = []
    for title, value in names.items():
        lines = [f'    "{name}": {json.dumps(entry, sort_keys=True)}' for name, entry in sorted(value.items()) if entry]
        parts.append(f'  "{title}": {{\n' + ",\n".join(lines) + "\n  }")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> None:
    """Read the names with each Python of the command line, and write the file."""
    if sys.argv[1:] == ["--read"]:
        sys.stdout.write(json.dumps(names_of_environment()))
        return
    environments = []
    for python in sys.argv[1:]:
        read = subprocess.run([python, __file__, "--read"], stdout=subprocess.PIPE, check=True)  # noqa: S603 - of the caller
        environments.append(json.loads(read.stdout))
    FILE.write_text(text_of(merged(environments)), encoding="utf-8")


if __name__ == "__main__":
    main()
