"""Write the public names and their parameters, and compare them with those of an earlier version.

``python -m scripts.public_api tests/data/public_api/VERSION.txt`` in the checkout of a release writes its file. The
names come from ``__all__`` of the public modules; a class also has its public methods and properties. A line is a name
with its parameters: ``...`` stands for a default, ``{}`` has the keyword options of a decorator. Types are left out.

griffe 2.4, which compares versions from their sources, does not see the constructors of the options: their dataclasses
have decorators of funcmcp.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from pathlib import Path
from typing import Any, NamedTuple

from scripts.reference import MODULES, OPTIONS


class Break(NamedTuple):
    """A change after which code for an earlier version fails.

    Attributes:
        name: The public name.
        change: What changed, such as "removed" or "parameter x: removed".
    """

    name: str
    change: str


def public_api() -> list[str]:
    """Return the lines for the public names of this checkout, in the order of the names."""
    lines: list[str] = []
    for module in MODULES:
        loaded = importlib.import_module(module)
        for name in loaded.__all__:
            value = getattr(loaded, name)
            lines.append(f"{module}.{name}{_parameters(name, value)}")
            if inspect.isclass(value):
                lines += [f"{module}.{name}.{member}{text}" for member, text in _members(value).items()]
    return sorted(lines)


def breaks(before: list[str], after: list[str]) -> list[Break]:
    """Return the breaks between two lists of `public_api`."""
    present = dict(map(_split, after))
    found: list[Break] = []
    for line in before:
        name, text = _split(line)
        if name not in present:
            owner = name.rpartition(".")[0]
            if not any(_split(other)[0] == owner and owner not in present for other in before):
                found.append(Break(name, "removed"))
        elif text and not present[name]:
            found.append(Break(name, "can't be called"))
        elif text:
            found += [Break(name, change) for change in _changes(text, present[name])]
    return found


def _members(value: type) -> dict[str, str]:
    """Return the public methods and properties of a class, with the parameters of the methods."""
    members: dict[str, str] = {}
    for base in reversed(value.__mro__):
        if not base.__module__.startswith("funcmcp"):
            continue
        for name, member in vars(base).items():
            function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            if not name.startswith("_") and (isinstance(function, property) or inspect.isfunction(function)):
                members[name] = _parameters(name, function)
    return members


def _parameters(name: str, value: Any) -> str:
    """Return the parameters of a class or function in parentheses; "" for what can't be called."""
    if not callable(value):
        return ""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):  # a class without a constructor of its own, such as one of Python's exceptions
        return ""
    parameters = [_without_details(parameter) for parameter in signature.parameters.values()]
    text = str(inspect.Signature(parameters)).replace("=Ellipsis", "=...")
    if name in OPTIONS and inspect.isfunction(value):
        module, _, options = OPTIONS[name].rpartition(".")
        text += "{" + ", ".join(sorted(getattr(importlib.import_module(module), options).__annotations__)) + "}"
    return text


def _without_details(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return a parameter without its type, and with ``...`` for its default."""
    default = parameter.empty if parameter.default is parameter.empty else ...
    return parameter.replace(annotation=parameter.empty, default=default)


def _split(line: str) -> tuple[str, str]:
    name, parenthesis, text = line.partition("(")
    return name, parenthesis + text


def _changes(before: str, after: str) -> list[str]:
    """Return what code may notice of a change of parameters."""
    old, old_options = _parsed(before)
    new, new_options = _parsed(after)
    kinds = {parameter.kind for parameter in new.values()}
    takes_any_name = inspect.Parameter.VAR_KEYWORD in kinds and not new_options
    changes = [f"option {name}: removed" for name in sorted(old_options - new_options - new.keys())]
    places = {name: place for place, name in enumerate(_by_position(new))}
    for place, name in enumerate(_by_position(old)):
        if places.get(name) != place and not (name not in places and inspect.Parameter.VAR_POSITIONAL in kinds):
            changes.append(f"parameter {name}: has another place, or none")
    for name, parameter in old.items():
        if parameter.kind in _VARIADIC:
            is_gone = parameter.kind not in kinds and not name.startswith("_")
        else:
            is_gone = name not in new and not takes_any_name
        if is_gone:
            changes.append(f"parameter {name}: removed")
        elif name in new:
            changes += _changes_of_one(parameter, new[name])
    for name, parameter in new.items():
        if name not in old and parameter.default is parameter.empty and parameter.kind not in _VARIADIC:
            changes.append(f"parameter {name}: is new and has no default")
    return changes


def _changes_of_one(before: inspect.Parameter, after: inspect.Parameter) -> list[str]:
    changes = []
    if before.default is not before.empty and after.default is after.empty:
        changes.append(f"parameter {before.name}: has no default")
    if before.kind is not before.POSITIONAL_ONLY and after.kind is after.POSITIONAL_ONLY:
        changes.append(f"parameter {before.name}: has no name")
    return changes


_VARIADIC = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


def _by_position(parameters: dict[str, inspect.Parameter]) -> list[str]:
    """Return the names of the parameters that are passed by position."""
    return [name for name, parameter in parameters.items() if parameter.kind <= parameter.POSITIONAL_OR_KEYWORD]


def _parsed(text: str) -> tuple[dict[str, inspect.Parameter], set[str]]:
    """Return the parameters and the keyword options of a line, without ``self`` and private parameters."""
    signature, _, options = text.partition("{")
    function = ast.parse(f"def function{signature}: pass").body[0]
    namespace: dict[str, Any] = {}
    exec(compile(ast.Module([function], []), "public_api", "exec"), namespace)  # noqa: S102 - from a file of the tests
    parameters = {
        name: parameter
        for name, parameter in inspect.signature(namespace["function"]).parameters.items()
        if name != "self" and (parameter.kind in _VARIADIC or not name.startswith("_"))
    }
    return parameters, {*options.rstrip("}").split(", ")} - {""}


if __name__ == "__main__":
    Path(sys.argv[1]).write_text("\n".join(public_api()) + "\n", encoding="utf-8")
