"""Routes of HTTP triggers, which match canonical paths as in ASP.NET Core.

How it works: a route is read once into segments (`funcmcp._adapters.azure.route_templates`), and the constraints of its
variables become functions. A constraint that ASP.NET Core does not have is rejected: on Azure the app would not start.
Matching goes through the segments of a path from the left. Within a segment of several parts it goes from the right.

The functions of an app are tried in the order of their names, as on Azure, and not in that of ASP.NET Core's endpoints.
`shadowing` finds a function that another one keeps requests from.

Source: dotnet/aspnetcore, RoutePatternMatcher, RoutePrecedence and Routing/src/Constraints;
azure-webjobs-sdk-extensions, WebJobsRouteBuilder and WebJobsRouter; azure-functions-host, FunctionMetadataManager (the
order), ScriptHost.ValidateHttpFunction (reserved and equal routes) and HostController.
"""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, NamedTuple

from funcmcp._adapters.azure.route_templates import (
    RouteError,
    Segment,
    Variable,
    folded,
    segments_of,
    variables_in,
)
from funcmcp_host.bindings import BindingError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from funcmcp._adapters.azure.route_templates import Constraint

_EXCLUDING = re.compile(r"\^\(\?!((?:[^()\\]|\\.)*)\)([^|]*)", re.DOTALL)
_RESERVED = ("admin", "runtime")
_OF_THE_HOST = ("/admin/", "/runtime/webhooks/")

_SPACES = "\t\n\v\f\r "
_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,19})")
_FLOAT = re.compile(
    r"[+-]?(?:(?:[0-9][0-9,]*(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?|infinity|nan)",
    re.IGNORECASE,
)
_DECIMAL = re.compile(
    r"[+-]?[\t-\r ]*([0-9][0-9,]*(?:\.[0-9]*)?|\.[0-9]+)|([0-9][0-9,]*(?:\.[0-9]*)?|\.[0-9]+)[\t-\r ]*[+-]"
)
_LARGEST_DECIMAL = 2**96 - 1
_DIGITS = re.compile(r"[0-9a-f]{32}", re.IGNORECASE)
_HYPHENATED = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_DATES = (
    *("%Y-%m-%d", "%Y-%m", "%m-%d-%Y", "%Y.%m.%d", "%m.%d.%Y", "%Y/%m/%d", "%m/%d/%Y"),
    *("%d %b %Y", "%d %B %Y", "%b %d %Y", "%B %d %Y", "%b %d, %Y", "%B %d, %Y", "%a, %d %b %Y", "%b %Y", "%B %Y"),
)
_TIMES = ("%H:%M", "%H:%M:%S", "%I:%M %p", "%I:%M:%S %p")
_TIME = re.compile(
    r"(?:^|(?<=\d)T|(?<=\w) )(\d\d?:\d\d(?::\d\d)?)(?:[.,]\d+)?(?: ?([AP]M))?(?: ?(?:Z|GMT|[+-]\d\d(?::?\d\d)?))?$",
    re.IGNORECASE,
)


def _integer(value: str, bits: int) -> int | None:
    """Return the number in a text, or None if it is not one of this size; the text may have any length."""
    match = _INTEGER.fullmatch(value.strip(_SPACES))
    number = None if match is None else int(match[1] + match[2])
    return number if number is not None and -(2 ** (bits - 1)) <= number < 2 ** (bits - 1) else None


def _is_integer(value: str, bits: int) -> bool:
    return _integer(value, bits) is not None


def _is_float(value: str) -> bool:
    return _FLOAT.fullmatch(value.strip(_SPACES)) is not None


def _is_decimal(value: str) -> bool:
    match = _DECIMAL.fullmatch(value.strip(_SPACES))
    return match is not None and Decimal((match[1] or match[2]).replace(",", "")) <= _LARGEST_DECIMAL


def _is_guid(value: str) -> bool:
    text = value.strip()
    if text[:1] + text[-1:] in {"{}", "()"}:
        text = text[1:-1]
    elif _DIGITS.fullmatch(text) is not None:
        return True
    return _HYPHENATED.fullmatch(text) is not None


def _is_date(value: str) -> bool:
    """Return whether a text is a date, a time or both, in a usual format of .NET's invariant culture."""
    text = " ".join(value.split())
    time = _TIME.search(text)
    if time is not None:
        clock = f"{time[1]} {time[2]}" if time[2] else time[1]
        text = text[: time.start()].rstrip()
        if not _has_format(clock, _TIMES):
            return False
    return (not text and time is not None) or _has_format(text, _DATES)


def _has_format(text: str, formats: Iterable[str]) -> bool:
    for pattern in formats:
        try:
            datetime.strptime(text, pattern)  # noqa: DTZ007 - only whether it can be read
        except ValueError:
            continue
        return True
    return False


def _is_file(value: str) -> bool:
    _, dot, extension = value.rpartition("/")[2].partition(".")
    return bool(dot and extension.strip("."))


def _length(value: str) -> int:
    """Return the number of UTF-16 code units, which .NET counts."""
    return len(value.encode("utf-16-le")) // 2


_CHECKS: dict[str, Callable[[str], bool]] = {
    "alpha": lambda value: re.fullmatch("[A-Za-z]*", value) is not None,
    "bool": lambda value: value.strip().lower() in {"true", "false"},
    "datetime": _is_date,
    "decimal": _is_decimal,
    "double": _is_float,
    "file": _is_file,
    "float": _is_float,
    "guid": _is_guid,
    "int": lambda value: _is_integer(value, 32),
    "long": lambda value: _is_integer(value, 64),
    "nonfile": lambda value: not _is_file(value),
    "required": bool,
}
"""Constraints without arguments."""

_LIMITS: dict[str, tuple[int, bool]] = {
    "min": (1, False),
    "max": (1, False),
    "range": (2, False),
    "minlength": (1, True),
    "maxlength": (1, True),
    "length": (2, True),
}
"""Constraints with limits: how many, and whether they are about the length."""


def _limit_check(name: str, argument: str) -> Callable[[str], bool]:
    """Return the check of a constraint with limits; raise ValueError if these can't be read."""
    count, is_length = _LIMITS[name]
    numbers = [int(text) for text in argument.split(",")]
    if name == "length" and len(numbers) == 1:
        numbers *= 2
    if len(numbers) != count or numbers != sorted(numbers):
        raise ValueError
    low = None if name.startswith("max") else numbers[0]
    high = None if name.startswith("min") else numbers[-1]

    def check(value: str) -> bool:
        size = _length(value) if is_length else _integer(value, 64)
        return size is not None and (low is None or low <= size) and (high is None or size <= high)

    return check


def _expression_check(pattern: str) -> Callable[[str], bool]:
    r"""Return the check of a regular expression, which ignores case and need not match all; raise ValueError.

    The expressions of pydantic take a time that is linear in the value. They have no look-ahead. One at the beginning,
    as in ``^(?!api|docs).*$``, becomes a second expression.
    """
    match = _EXCLUDING.fullmatch(pattern)
    if match is None:
        return _linear_check(pattern)
    excluded, included = _linear_check(f"^(?:{match[1]})"), _expression_check(f"^{match[2]}")
    return lambda value: included(value) and not excluded(value)


def _linear_check(pattern: str) -> Callable[[str], bool]:
    from pydantic import Field, TypeAdapter, ValidationError  # noqa: PLC0415 - few routes have expressions
    from pydantic_core import SchemaError  # noqa: PLC0415 - as above

    try:
        adapter = TypeAdapter(Annotated[str, Field(pattern=f"(?i){pattern}")])
    except SchemaError as error:
        raise ValueError from error

    def check(value: str) -> bool:
        try:
            adapter.validate_python(value)
        except ValidationError:
            return False
        return True

    return check


def _check_of(variable: Variable, constraint: Constraint) -> Callable[[str], bool]:
    """Return the check of a constraint."""
    name, argument = constraint
    if name in _CHECKS and argument is None:
        return _CHECKS[name]
    try:
        if name in _LIMITS and argument is not None:
            return _limit_check(name, argument)
        if name == "regex" and argument is not None:
            return _expression_check(argument)
    except ValueError:
        pass
    raise BindingError(f"The route's variable {variable.name!r} has a constraint that can't be read: {constraint}.")


class RouteTemplate:
    """A route such as ``orders/{id:int}/{*rest}`` or ``files/{name}.{ext}``.

    Args:
        text: The route, with the app's prefix.

    Raises:
        BindingError: ASP.NET Core rejects the route.
    """

    def __init__(self, text: str) -> None:
        self.text = text.strip("/")
        try:
            segments = segments_of(self.text)
        except RouteError as error:
            raise BindingError(str(error)) from None
        self._segments = [_folded_segment(segment) for segment in segments]
        self._variables = variables_in(segments)
        self._checks = {
            variable.name: [_check_of(variable, constraint) for constraint in variable.constraints]
            for variable in self._variables
        }

    @property
    def order(self) -> tuple[int, ...]:
        """The sort key of how literal the route is: the ranks of its segments, of which lower ones are more literal."""
        return tuple(_rank(segment) for segment in self._segments)

    @property
    def sample(self) -> str:
        """A path of the route; constraints are not followed."""
        return "/" + "/".join(_sample(segment) for segment in self._segments)

    def match(self, path: str) -> dict[str, str] | None:
        """Return the values of the variables for a canonical path, or None if it does not match.

        A slash at the end is ignored. An empty segment matches nothing but the variable for the rest of a path.
        """
        values = self._values_in(path)
        if values is None:
            return None
        for variable in self._variables:
            if variable.default is not None:
                values.setdefault(variable.name, variable.default)
        return values if all(self._accepts(variable, values) for variable in self._variables) else None

    def _accepts(self, variable: Variable, values: Mapping[str, str]) -> bool:
        """Return whether the value of a variable, or that it has none, agrees with its constraints."""
        value = values.get(variable.name)
        if value is None:
            return variable.optional or all(constraint.name == "nonfile" for constraint in variable.constraints)
        return all(check(value) for check in self._checks[variable.name])

    def _values_in(self, path: str) -> dict[str, str] | None:
        """Return the values that a path has, without a look at constraints; None if it does not match."""
        values: dict[str, str] = {}
        remaining = path.removeprefix("/")
        for segment in self._segments:
            variable = segment.variable
            if variable is not None and variable.catch_all:
                if remaining.startswith("/"):
                    return None
                return {**values, variable.name: remaining} if remaining else values
            if remaining:
                text, _, remaining = remaining.partition("/")
                segment_values = _match_segment(segment, text)
                if segment_values is None:
                    return None
                values |= segment_values
            elif variable is None or not (variable.optional or variable.default is not None):
                return None
        return None if remaining else values


def _folded_segment(segment: Segment) -> Segment:
    return Segment(tuple(folded(part) if isinstance(part, str) else part for part in segment.parts))


def _rank(segment: Segment) -> int:
    """Return 1 for a text, 2 for several parts or a constraint, 3 for a variable, 4 and 5 for the rest of the path."""
    variable = segment.variable
    if variable is None:
        return 1 if len(segment.parts) == 1 else 2
    return (5 if variable.catch_all else 3) - bool(variable.constraints)


def _sample(segment: Segment) -> str:
    """Return a text that has the parts of a segment."""
    return "".join(part if isinstance(part, str) else "1" for part in segment.parts)


def _match_segment(segment: Segment, text: str) -> dict[str, str] | None:
    """Return the values of the variables in a segment of a path, or None if it does not match."""
    if not text:
        return None
    parts = segment.parts
    if len(parts) == 1:
        [part] = parts
        if isinstance(part, str):
            return {} if folded(text) == part else None
        return {part.name: text}
    values = _match_parts(parts, text)
    last = parts[-1]
    if values is None and isinstance(last, Variable) and last.optional and not text.endswith("."):
        without_optional = parts[:-2]  # and without the dot before it
        return _match_parts(without_optional, text)
    return values


def _match_parts(parts: Sequence[str | Variable], text: str) -> dict[str, str] | None:
    """Return the values of variables with texts between them, or None if *text* does not match.

    As in ASP.NET Core, each text is searched once, from the right; a match further left is not tried.
    """
    values: dict[str, str] = {}
    folded_text = folded(text)
    end = len(text)
    variable: Variable | None = None  # the one behind the part that is searched
    for index, part in reversed(list(enumerate(parts))):
        if isinstance(part, Variable):
            variable = part
            continue
        start = folded_text.rfind(part, 0, end if variable is None else max(end - 1, 0))
        is_last = index == len(parts) - 1
        if start < 0 or (is_last and start + len(part) < len(text)):
            return None
        if variable is not None:
            values[variable.name] = text[start + len(part) : end]
            variable = None
        end = start
    if variable is not None:
        values[variable.name] = text[:end]
        return values if end else None
    return None if end else values


class FunctionRoute(NamedTuple):
    """The route of a function.

    Attributes:
        function: The name of the function.
        template: The route.
        methods: The methods; empty for all.
    """

    function: str
    template: RouteTemplate
    methods: Collection[str]

    def shares_method(self, other: FunctionRoute) -> bool:
        """Return whether a request may have a method of both."""
        return not self.methods or not other.methods or not set(self.methods).isdisjoint(other.methods)


def function_template(prefix: str, route: str) -> RouteTemplate:
    """Return the route of a function below the app's prefix; raise BindingError if Azure rejects it."""
    route = route.strip("/")
    if route.lower().startswith(_RESERVED):
        raise BindingError(f"The route {route!r} begins with 'admin' or 'runtime', which the Functions host reserves.")
    return RouteTemplate("/".join(part for part in (prefix.strip("/"), route) if part))


def is_of_the_host(path: str) -> bool:
    """Return whether a path is one that no function gets, whatever its route."""
    return f"{path}/".lower().startswith(_OF_THE_HOST)


def check_route(route: FunctionRoute, earlier: Iterable[FunctionRoute]) -> None:
    """Raise BindingError if a function before it has the same route for one of the methods."""
    text = folded(route.template.text)
    for other in earlier:
        if folded(other.template.text) == text and route.shares_method(other):
            raise BindingError(f"The route {route.template.text!r} is that of the function {other.function} as well.")


def shadowing(routes: Sequence[FunctionRoute]) -> Iterator[str]:
    """Yield a sentence for each function that another one, before it in the order, keeps its requests from."""
    for index, route in enumerate(routes):
        for earlier in routes[:index]:
            is_more_literal = route.template.order < earlier.template.order
            if (
                is_more_literal
                and route.shares_method(earlier)
                and earlier.template.match(route.template.sample) is not None
            ):
                yield (
                    f"The function {earlier.function} ({earlier.template.text}) gets the requests of the function "
                    f"{route.function} ({route.template.text}): as on Azure, routes are tried in the order of the "
                    "names of their functions. Rename one of them, or add a constraint."
                )
                break
