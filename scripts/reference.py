"""Write docs/reference/api: every public name with its signature and docstring. Run it with ``make reference``.

There is one page for each public module. The names come from ``__all__`` of the modules, the text from their
docstrings. A name that two public modules export is described in the more specific one. `tests/docs/test_reference.py`
compares the pages with what this writes.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import itertools
import re
import sys
import textwrap
import typing
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "reference" / "api"
MODULES = [
    "funcmcp",
    "funcmcp.auth",
    "funcmcp.azure",
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
    "funcmcp.testing",
    "funcmcp.transforms",
    "funcmcp.upstreams",
]
"""The public modules."""

OPTIONS = {
    "tool": "funcmcp._authoring.features.tools.ToolOptions",
    "prompt": "funcmcp._authoring.features.prompts.PromptOptions",
    "resource": "funcmcp._authoring.features.resources.ResourceOptions",
    "custom_route": "funcmcp._authoring.features.permissions.AccessOptions",
    "resource_lister": "funcmcp._authoring.features.permissions.AccessOptions",
    "tools_from_asgi": "funcmcp._adapters.asgi.openapi_tools.ASGIToolsOptions",
    "tool_from_http_function": "funcmcp._adapters.azure.http_function_tools.HTTPFunctionOptions",
}
"""Methods and functions with keyword options, and the classes that document the options."""

PROPERTIES = {"services": "funcmcp._authoring.calling.services.Services"}
"""Properties whose value has methods for users, and the private class of the value."""

HEAD = """\
# Public names

The names below are the public API. Every other module, and every name that begins with an underscore, is private: it
may change in any release. Public modules load a name when it is first used.

These pages are generated from docstrings by `make reference`.
"""

WIDTH = 100
_HEADING = re.compile(r"(Args|Attributes|Returns|Raises|Example):")


def write_reference() -> dict[str, str]:
    """Return the text of each page by the name of its file."""
    homes = _documented_in()
    pages = {"index.md": "\n\n".join([HEAD.strip(), _contents(), _toctree()]) + "\n"}
    for name in MODULES:
        module = importlib.import_module(name)
        parts = [f"# {name}\n\n{_text(module.__doc__)}"]
        parts += [
            _entry(name, public, getattr(module, public), homes[_identity(module, public)])
            for public in sorted(module.__all__, key=str.lower)
        ]
        pages[_page(name)] = "\n\n".join(part.strip() for part in parts) + "\n"
    return pages


def _contents() -> str:
    rows = []
    for name in MODULES:
        names = sorted(importlib.import_module(name).__all__, key=str.lower)
        links = ", ".join(f"[`{public}`]({_link(name, public)})" for public in names)
        rows.append(f"- [`{name}`]({_page(name)}): {links}")
    return "\n".join(rows)


def _toctree() -> str:
    """Return the entries for the navigation of the documentation site."""
    return "\n".join(["```{toctree}", ":hidden:", "", *MODULES, "```"])


def _page(module: str) -> str:
    return f"{module}.md"


def _link(module: str, name: str) -> str:
    """Return the page of a name, with the anchor that GitHub makes of its heading."""
    anchor = f"{module}.{name}".replace(".", "").lower()
    return f"{_page(module)}#{anchor}"


def _identity(module: ModuleType, name: str) -> tuple[int, str]:
    return id(getattr(module, name)), name


def _documented_in() -> dict[tuple[int, str], str]:
    """Return the module that describes each name: the last one, but for names that `funcmcp.testing` repeats."""
    homes: dict[tuple[int, str], str] = {}
    for name in MODULES:
        module = importlib.import_module(name)
        for public in module.__all__:
            key = _identity(module, public)
            if name != "funcmcp.testing" or key not in homes:
                homes[key] = name
    return homes


def _entry(module: str, name: str, value: Any, home: str) -> str:
    heading = f"## {module}.{name}"
    if isinstance(value, ModuleType):
        return f"{heading}\n\nThe module [`{value.__name__}`]({_page(value.__name__)})."
    if home != module:
        return f"{heading}\n\nSee [`{home}.{name}`]({_link(home, name)})."
    if inspect.isclass(value):
        return "\n\n".join([heading, *_class(name, value)])
    if inspect.isfunction(value):
        return "\n\n".join([heading, *_function(name, value)])
    return f"{heading}\n\n{_text(_comment_behind(module, name))}"


def _class(name: str, value: type) -> list[str]:
    return [_fence([_class_signature(name, value)]), _text(value.__doc__), *_member_entries(name, value)]


class _Owner(NamedTuple):
    """The class whose entry describes a method or a property, which other public classes have, too."""

    module: str
    name: str
    value: type


@functools.cache
def _owners() -> dict[tuple[str, int], _Owner]:
    """Return the owner of each member, by its name and the id of its function: of several classes the most general."""
    homes = _documented_in()
    classes = [
        _Owner(home, name, getattr(importlib.import_module(home), name))
        for (_, name), home in homes.items()
        if inspect.isclass(getattr(importlib.import_module(home), name))
    ]
    owners: dict[tuple[str, int], _Owner] = {}
    for owner in sorted(classes, key=lambda owner: len(owner.value.__mro__)):
        for member, function in _members(owner.value).items():
            owners.setdefault((member, id(function)), owner)
    return owners


def _inherited(value: type) -> dict[_Owner, list[str]]:
    """Return the members of a class that the entries of others describe, by these."""
    inherited: dict[_Owner, list[str]] = {}
    for member, function in _members(value).items():
        owner = _owners().get((member, id(function)))
        if owner is not None and owner.value is not value:
            inherited.setdefault(owner, []).append(member)
    return inherited


def _member_entries(name: str, value: type) -> list[str]:
    inherited = _inherited(value)
    parts = [
        f"It also has, from [`{owner.module}.{owner.name}`]({_link(owner.module, owner.name)}): "
        + ", ".join(f"`{member}`" for member in members)
        + "."
        for owner, members in inherited.items()
    ]
    elsewhere = {member for members in inherited.values() for member in members}
    for member, function in _members(value).items():
        if member in elsewhere:
            continue
        if isinstance(function, property):
            returned = typing.cast("Any", function.fget).__annotations__.get("return", "")
            parts.append(f"### {name}.{member}\n\n{_fence([f'{member}: {returned}'])}\n\n{_text(function.__doc__)}")
            if member in PROPERTIES:
                module, _, kind = PROPERTIES[member].rpartition(".")
                parts += _member_entries(f"{name}.{member}", getattr(importlib.import_module(module), kind))
        else:
            parts.append("\n\n".join([f"### {name}.{member}()", *_function(member, function)]))
    return parts


def _class_signature(name: str, value: type) -> str:
    """Return how a class is called; its bare name if it has no constructor of its own."""
    own = [base for base in value.__mro__ if base.__module__.startswith("funcmcp")]
    has_constructor = any("__init__" in vars(base) or "__new__" in vars(base) for base in own)
    if typing.is_typeddict(value):
        fields = [f"    {field}: {_annotation(kind)}" for field, kind in value.__annotations__.items()]
        return "\n".join([f"class {name}(TypedDict):", *fields])
    if getattr(value, "_is_protocol", False) or not has_constructor:
        return f"class {name}"
    return _signature(name, inspect.signature(value), returns=False)


def _members(value: type) -> dict[str, Any]:
    """Return the public methods and properties of a class, inherited ones of this package included."""
    members: dict[str, Any] = {}
    for base in reversed(value.__mro__):
        if not base.__module__.startswith("funcmcp"):
            continue
        for name, member in vars(base).items():
            function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            is_public = not name.startswith("_") and function.__doc__
            if is_public and (isinstance(function, property) or inspect.isfunction(function)):
                members[name] = function
    return members


def _function(name: str, function: Any) -> list[str]:
    signatures = [inspect.signature(overload) for overload in typing.get_overloads(inspect.unwrap(function))]
    lines = [_signature(name, signature) for signature in signatures or [inspect.signature(function)]]
    prefix = "async def " if inspect.iscoroutinefunction(function) else "def "
    parts = [_fence([prefix + line for line in lines]), _text(function.__doc__)]
    if name in OPTIONS:
        module, _, options = OPTIONS[name].rpartition(".")
        parts.append(_option_list(getattr(importlib.import_module(module), options)))
    return parts


def _option_list(options: Any) -> str:
    """Return the documented options of a TypedDict and of those that it extends."""
    items: dict[str, str] = {}
    classes = [options]
    for extended in classes:
        classes += _bases(extended)
        for item in _items(_sections(extended.__doc__).get("Attributes", "")):
            items.setdefault(item.name, _list_item(item))
    return "\n".join(["**Options**", "", *items.values()])


def _bases(typed_dict: Any) -> list[Any]:
    """Return the classes of this package that a TypedDict extends, which Python 3.11 only has in the source."""
    module = importlib.import_module(typed_dict.__module__)
    for statement in ast.parse(inspect.getsource(module)).body:
        if isinstance(statement, ast.ClassDef) and statement.name == typed_dict.__name__:
            names = [base.id for base in statement.bases if isinstance(base, ast.Name) and base.id != "TypedDict"]
            return [getattr(module, name) for name in names]
    return []


def _signature(name: str, signature: inspect.Signature, *, returns: bool = True) -> str:
    parameters: list[str] = []
    kinds = [parameter.kind for parameter in signature.parameters.values()]
    for place, parameter in enumerate(signature.parameters.values()):
        if parameter.name == "self":
            continue
        is_first_keyword = parameter.kind is parameter.KEYWORD_ONLY and parameter.kind not in kinds[:place]
        if is_first_keyword and parameter.VAR_POSITIONAL not in kinds:
            parameters.append("*")
        parameters.append(_parameter(parameter))
        following = kinds[place + 1 : place + 2]
        if parameter.kind is parameter.POSITIONAL_ONLY and following != [parameter.POSITIONAL_ONLY]:
            parameters.append("/")
    end = ""
    if returns and signature.return_annotation is not signature.empty:
        end = f" -> {_annotation(signature.return_annotation)}"
    line = f"{name}({', '.join(parameters)}){end}"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"{name}(", *(f"    {parameter}," for parameter in parameters), f"){end}"])


def _parameter(parameter: inspect.Parameter) -> str:
    stars: dict[Any, str] = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}
    text = stars.get(parameter.kind, "") + parameter.name
    has_annotation = parameter.annotation is not parameter.empty
    if has_annotation:
        text += f": {_annotation(parameter.annotation)}"
    if parameter.default is not parameter.empty:
        default = repr(parameter.default)
        if "<" in default:  # a factory, or an object that can't be written down
            default = "..."
        text += f" = {default}" if has_annotation else f"={default}"
    return text


def _annotation(annotation: Any) -> str:
    if isinstance(annotation, typing.ForwardRef):
        return str(annotation.__forward_arg__)
    if isinstance(annotation, str):
        return annotation.replace("'", '"') if annotation.count("'") > 1 else annotation
    return str(getattr(annotation, "__name__", annotation))


def _fence(lines: list[str]) -> str:
    return "\n".join(["```py", *lines, "```"])  # not "python": these blocks are not programs that a test can run


class _Item(NamedTuple):
    """One entry of a section, such as an argument."""

    name: str
    text: str


def _sections(docstring: str | None) -> dict[str, str]:
    """Return the parts of a docstring by their headings; the part before the first heading has an empty one."""
    parts: dict[str, list[str]] = {"": []}
    heading = ""
    for line in inspect.cleandoc(docstring or "").splitlines():
        match = _HEADING.fullmatch(line)
        if match is not None:
            heading = match[1]
            parts[heading] = []
        elif heading and line and not line.startswith(" "):
            heading = ""
            parts[""] += ["", line]
        else:
            parts[heading].append(line)
    return {heading: textwrap.dedent("\n".join(lines)).strip("\n") for heading, lines in parts.items()}


def _items(section: str) -> list[_Item]:
    """Return the entries of a section. Lines that are indented more belong to the entry above."""
    items: list[_Item] = []
    for line in section.splitlines():
        if line.startswith(" ") and items:
            items[-1] = _Item(items[-1].name, f"{items[-1].text} {line.strip()}")
        elif line:
            name, _, text = line.partition(":")
            items.append(_Item(name.strip(), text.strip()))
    return items


def _text(docstring: str | None) -> str:
    """Return a docstring as Markdown, its sections as lists."""
    sections = _sections(docstring)
    parts = [sections[""]]
    for heading, title in (("Args", "Arguments"), ("Attributes", "Attributes")):
        if heading in sections:
            parts.append(_list(title, sections[heading]))
    if "Returns" in sections:
        parts.append(f"**Returns**: {' '.join(sections['Returns'].split())}")
    if "Raises" in sections:
        parts.append(_list("Raises", sections["Raises"]))
    if "Example" in sections:
        parts.append(f"**Example**\n\n{sections['Example'].replace('```python', '```py')}")
    return "\n\n".join(part for part in parts if part)


def _list(title: str, section: str) -> str:
    return "\n".join([f"**{title}**", "", *map(_list_item, _items(section))])


def _list_item(item: _Item) -> str:
    return f"- `{item.name}`: {item.text}"


def _comment_behind(module: str, name: str) -> str | None:
    """Return the string that stands behind the assignment of a name in the module that defines it."""
    homes: dict[str, list[str]] = getattr(importlib.import_module(module), "_HOMES", {})
    home = next((f"funcmcp.{home}" for home, names in homes.items() if name in names), module)
    body = ast.parse(inspect.getsource(importlib.import_module(home))).body
    for statement, following in itertools.pairwise(body):
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        is_assigned = any(isinstance(target, ast.Name) and target.id == name for target in targets)
        if is_assigned and isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
            return str(following.value.value)
    return None


def main() -> None:
    """Write the pages, and remove pages of modules that are not public any more."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    pages = write_reference()
    for path in FOLDER.glob("*.md"):
        if path.name not in pages:
            path.unlink()
    for name, text in pages.items():
        path = FOLDER / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    sys.stdout.write(f"{FOLDER.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
