"""Routes of Azure's HTTP triggers: their variables as types, and paths from values.

Source: "Azure Functions HTTP trigger, Customize the HTTP endpoint"; ASP.NET "Route constraints".
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple
from uuid import UUID

from funcmcp._authoring.openapi.http_requests import path_text, text_of, written_path
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Mapping

ROUTE_VARIABLE = re.compile(r"\{(\*{0,2})([A-Za-z_]\w*)((?:[^{}]|\{\{|\}\})*)\}")
"""A variable of an HTTP route: its stars, its name, and the constraints and the default behind it."""

_CONSTRAINT = re.compile(r"([A-Za-z]+)(?:\((.*)\))?")
_DEFAULT = re.compile(r"=([^:?()]*)\??$")
_TYPES: dict[str, Any] = {
    "bool": bool,
    "datetime": datetime,
    "decimal": float,
    "double": float,
    "float": float,
    "guid": UUID,
    "int": int,
    "long": int,
}
_LIMITS: dict[str, tuple[str, ...]] = {
    "min": ("ge",),
    "max": ("le",),
    "range": ("ge", "le"),
    "minlength": ("min_length",),
    "maxlength": ("max_length",),
    "length": ("min_length", "max_length"),
}


class Variable(NamedTuple):
    """A variable of a route.

    Attributes:
        name: The name.
        annotation: The type of the values, with the limits of the route.
        optional: Whether a URL may lack the variable.
        default: The value in that case; None without a default.
        catch_all: Whether the value is all remaining segments of the path.
        is_constrained: Whether it has a constraint, even one that is not checked here.
    """

    name: str
    annotation: Any
    optional: bool
    default: str | None
    catch_all: bool
    is_constrained: bool

    @property
    def may_be_missing(self) -> bool:
        """Whether it is marked with ``?``, so that it may have no value at all."""
        return self.optional and self.default is None and not self.catch_all


def variables_of(route: str) -> list[Variable]:
    """Return the variables of a route such as ``orders/{id:int}/{*rest}``.

    Raises:
        RegistrationError: A constraint can't be read.
    """
    return [_variable(*match.groups()) for match in ROUTE_VARIABLE.finditer(route)]


def path_of(route: str, values: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """Return the percent-encoded path of a route with *values*, and the variables as the host would read them from it.

    Raises:
        ToolError: A value would change the route.
    """
    values_by_name: dict[str, str] = {}

    def put(match: re.Match[str]) -> str:
        variable = _variable(*match.groups())
        value = values.get(variable.name)
        if value is None:
            value = variable.default
        if value is None:
            return ""
        written = path_text(variable.name, value, many_segments=variable.catch_all)
        values_by_name[variable.name] = text_of(value)
        return written

    return written_path(ROUTE_VARIABLE.sub(put, route).strip("/")), values_by_name


def _variable(stars: str, name: str, suffix: str) -> Variable:
    default = _DEFAULT.search(suffix)
    if default is not None:
        suffix = suffix[: default.start()]
    optional = suffix.endswith("?")
    suffix = suffix.removesuffix("?").replace("{{", "{").replace("}}", "}")
    annotation: Any = str
    limits: dict[str, Any] = {}
    for constraint in _constraints(suffix):
        match = _CONSTRAINT.fullmatch(constraint)
        if match is None:
            raise RegistrationError(f"The route's variable {name!r} has a constraint that can't be read: {suffix!r}.")
        annotation = _TYPES.get(match[1].lower(), annotation)
        limits |= _limits(match[1].lower(), match[2] or "")
    if limits:
        from pydantic import Field  # noqa: PLC0415 - few routes have limits

        annotation = Annotated[annotation, Field(**limits)]
    has_default = default is not None
    is_optional = optional or has_default or bool(stars)
    return Variable(name, annotation, is_optional, default[1] if default else None, bool(stars), bool(suffix))


def _constraints(text: str) -> list[str]:
    """Split ``:int:min(1)`` at its colons; one in parentheses belongs to an expression."""
    constraints: list[str] = []
    depth = 0
    for character in text:
        if character == ":" and depth == 0:
            constraints.append("")
            continue
        depth += {"(": 1, ")": -1}.get(character, 0)
        if constraints:
            constraints[-1] += character
        else:
            constraints.append(character)
    return constraints


def _limits(constraint: str, arguments: str) -> dict[str, Any]:
    """Return a constraint as limits; one that says nothing of values, or is the app's own, has none."""
    if constraint == "alpha":
        return {"pattern": "^[A-Za-z]*$"}
    if constraint == "regex":
        return {"pattern": arguments}
    names = _LIMITS.get(constraint, ())
    try:
        numbers = [int(argument) for argument in arguments.split(",")] if names else []
        if constraint == "length" and len(numbers) == 1:
            numbers *= 2
        return dict(zip(names, numbers, strict=True))
    except ValueError:
        raise RegistrationError(f"The route's constraint {constraint}({arguments}) can't be read.") from None
