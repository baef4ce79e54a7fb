"""Routes of Azure's HTTP triggers as segments of texts and variables, as ASP.NET Core reads them.

What ASP.NET Core rejects is an error: on Azure the app would not start. What a constraint means is left to the callers:
`http_function_tools` makes types of constraints, and `funcmcp host` checks values with them.

Source: "Azure Functions HTTP trigger, Customize the HTTP endpoint"; dotnet/aspnetcore, RoutePatternParser and
RouteParameterParser.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_TOKEN = re.compile(r"(/)|((?:[^/{}]|\{\{|\}\})+)|\{((?:[^{}]|\{\{|\}\})+)\}")
_VARIABLE = re.compile(r"(\*{0,2})([^/{}?*][^/{}?*:=]*)(.*)", re.DOTALL)
_CONSTRAINT = re.compile(r":([^:=()]+)(?:\((.*?)\)(?=[:=]|$))?", re.DOTALL)


class RouteError(ValueError):
    """ASP.NET Core rejects a route; the text says why."""


class Constraint(NamedTuple):
    """A constraint of a variable.

    Attributes:
        name: The name, in lower case.
        argument: The text in parentheses; None without parentheses.
    """

    name: str
    argument: str | None

    def __str__(self) -> str:
        """Return the constraint as a route has it."""
        return self.name if self.argument is None else f"{self.name}({self.argument})"


class Variable(NamedTuple):
    """A variable of a route.

    Attributes:
        name: The name.
        optional: Whether it is marked with ``?``, so that it may have no value at all.
        default: The value if a path lacks it; None without a default.
        catch_all: Whether the value is all remaining segments of the path.
        constraints: What a value has to be.
    """

    name: str
    optional: bool
    default: str | None
    catch_all: bool
    constraints: tuple[Constraint, ...]


class Segment(NamedTuple):
    """What is between two slashes of a route.

    Attributes:
        parts: Texts and variables, of which no two of a kind follow each other.
    """

    parts: tuple[str | Variable, ...]

    @property
    def variable(self) -> Variable | None:
        """The variable that is the whole segment, or None."""
        part = self.parts[0]
        return None if len(self.parts) > 1 or isinstance(part, str) else part


def segments_of(route: str) -> list[Segment]:
    """Return the segments of a route such as ``orders/{id:int}/{*rest}`` or ``files/{name}.{ext}``.

    Raises:
        RouteError: ASP.NET Core rejects the route.
    """
    segments = list(_read_segments(route.strip("/")))
    variables = variables_in(segments)
    names = [folded(variable.name) for variable in variables]
    if len(names) != len(set(names)):
        raise RouteError(f"The route {route!r} has two variables of the same name.")
    if any(variable.catch_all for variable in variables[:-1]) or (
        variables and variables[-1].catch_all and segments[-1].variable is None
    ):
        raise RouteError(f"The route {route!r} goes on behind the variable for the rest of the path.")
    return segments


def variables_in(segments: Sequence[Segment]) -> list[Variable]:
    """Return the variables of a route."""
    return [part for segment in segments for part in segment.parts if isinstance(part, Variable)]


def _read_segments(text: str) -> Iterator[Segment]:
    parts: list[str | Variable] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise RouteError(f"The route {text!r} has a brace without its counterpart.")
        separator, literal, declaration = match.groups()
        position = match.end()
        if literal:
            parts.append(_unescaped(literal))
        elif declaration:
            parts.append(_read_variable(_unescaped(declaration)))
        if separator and not parts:
            raise RouteError(f"The route {text!r} has an empty segment.")
        if separator or position == len(text):
            _check_parts(parts)
            yield Segment(tuple(parts))
            parts = []


def _unescaped(text: str) -> str:
    return text.replace("{{", "{").replace("}}", "}")


def _read_variable(text: str) -> Variable:
    """Return what the text between two braces declares."""
    is_optional = text.endswith("?")
    match = _VARIABLE.fullmatch(text.removesuffix("?"))
    if match is None:
        raise RouteError(f"The route's variable {text!r} can't be read.")
    stars, name, remaining = match.groups()
    constraints = []
    while (constraint := _CONSTRAINT.match(remaining)) is not None:
        constraints.append(Constraint(constraint[1].lower(), constraint[2]))
        remaining = remaining[constraint.end() :]
    if remaining and not remaining.startswith("="):
        raise RouteError(f"The route's variable {name!r} has a constraint that can't be read: {remaining!r}.")
    default = remaining[1:] if remaining else None
    if is_optional and (stars or default is not None):
        raise RouteError(f"The route's variable {name!r} has a default or stars, so it can't be optional as well.")
    return Variable(name, is_optional, default, bool(stars), tuple(constraints))


def _check_parts(parts: Sequence[str | Variable]) -> None:
    """Raise RouteError if the parts of a segment can't follow each other."""
    for index, part in enumerate(parts):
        if isinstance(part, str):
            if "?" in part:
                raise RouteError("The route has a question mark outside of its variables.")
            continue
        if len(parts) == 1:
            continue
        if part.catch_all:
            raise RouteError(f"The route has more than {{*{part.name}}} in one segment.")
        if index and not isinstance(parts[index - 1], str):
            raise RouteError(f"The route has no text between {part.name!r} and the variable before it.")
        is_behind_dot = index == len(parts) - 1 and parts[index - 1] == "."
        if part.optional and not is_behind_dot:
            raise RouteError(f"The route's variable {part.name!r} is optional, but not at the end behind a dot.")


def folded(text: str) -> str:
    """Return a text as .NET's OrdinalIgnoreCase compares it: no other character is equal to one of ASCII."""
    if text.isascii():
        return text.upper()
    return "".join(_folded_character(character) for character in text)


def _folded_character(character: str) -> str:
    upper = character.upper()
    is_another = len(upper) > 1 or (upper.isascii() and not character.isascii())
    return character if is_another else upper
