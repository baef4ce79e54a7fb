"""Arguments that a tool or a prompt does not have: they are refused with the closest name, or dropped.

The JSON schema says nothing about them, because clients and the APIs of models reject a boolean
``additionalProperties``.

How it works: `known_arguments` returns the names of a call's arguments, as pydantic reads them: aliases, and the fields
of a type that is marked with `Arguments`. If that type itself says what happens to other names, or reads the arguments
with a function of its author, it decides alone, and no name is checked here. A reader asks `known_in` only if a call
has another name.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

from funcmcp._protocol.errors import ToolError, WrongArguments
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from funcmcp._authoring.calling.arguments import Part

    Reader: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]

UnknownArguments: TypeAlias = Literal["refuse", "ignore", "drop"]
"""``"refuse"``: a call with unknown arguments is an error. ``"ignore"``: they are dropped, but a name that is close to
that of an argument that the call does not have is an error. ``"drop"``: all are dropped."""

NOT_AN_ARGUMENT = "is not an argument"

_MAX_NAMES = 1000
"""Unknown arguments that errors count."""

_MAX_COMPARED = 20
"""Unknown arguments that are compared with the names of arguments, which takes microseconds for each pair."""

_MAX_NAME_LENGTH = 64
_MIN_SIMILARITY = 0.75
_OBJECTS = frozenset({"dataclass-args", "model-fields", "named-tuple", "typed-dict"})
_AUTHORS = frozenset({"function-before", "function-plain", "function-wrap"})
"""Kinds of core schemas with a function that gets the arguments before they are validated."""


class ArgumentRules(NamedTuple):
    """How arguments are read.

    Attributes:
        lax: Whether values are converted, such as ``"5"`` to 5.
        unknown: What happens to unknown arguments.
    """

    lax: bool = False
    unknown: UnknownArguments = "refuse"

    def with_options(self, feature: str, options: Mapping[str, Any]) -> ArgumentRules:
        """Return the rules of a feature whose options may differ from those of the server.

        Raises:
            RegistrationError: An option is not valid.
        """
        lax, unknown = options.get("lax"), options.get("unknown_arguments")
        return ArgumentRules(
            self.lax if lax is None else lax, self.unknown if unknown is None else checked_policy(unknown, feature)
        )


DEFAULT_RULES = ArgumentRules()


class KnownArguments(NamedTuple):
    """The arguments of a call, and what happens to others.

    Attributes:
        names: Their names.
        policy: What happens to others.
    """

    names: frozenset[str]
    policy: UnknownArguments = "refuse"

    def known_in(self, arguments: dict[str, Any], read: Reader) -> dict[str, Any]:
        """Return the known ones of the arguments; raise ToolError if the others are refused.

        Args:
            arguments: The arguments of a call.
            read: The reader of the known arguments, whose errors are added. It raises ToolError for invalid ones.
        """
        names = self.names
        present = {name: value for name, value in arguments.items() if name in names}
        if self.policy == "drop":
            return present
        unknown = [name for name in arguments if name not in names]
        missing = names - present.keys()
        if self.policy == "ignore":
            unknown = [name for name in unknown[:_MAX_COMPARED] if _closest(name, missing) is not None]
        if unknown:
            raise _with_other_errors(unknown_arguments(unknown, missing), read, present)
        return present


def checked_policy(policy: Any, owner: str) -> UnknownArguments:
    """Return the value of an option ``unknown_arguments``; raise RegistrationError if it is not valid."""
    if policy not in get_args(UnknownArguments):
        raise RegistrationError(f"unknown_arguments of {owner} must be 'refuse', 'ignore' or 'drop'; got {policy!r}.")
    return policy  # type: ignore[no-any-return] # one of the literals


def known_arguments(parts: Sequence[Part], policy: UnknownArguments) -> KnownArguments | None:
    """Return the arguments of a function; None if a type of its author decides about other names.

    Args:
        parts: The parts of the arguments.
        policy: What happens to others, unless a type forbids them.
    """
    names: set[str] = set()
    for part in parts:
        known = _known_to(part.schema, policy)
        if known is None:
            return None
        names |= known.names
        policy = known.policy
    return KnownArguments(frozenset(names), policy)


def unknown_arguments(unknown: Iterable[str], missing: Collection[str]) -> WrongArguments:
    """Return the error for unknown arguments.

    Args:
        unknown: Their names.
        missing: The names of arguments that the call does not have. One of them may be meant.
    """
    from funcmcp._authoring.schemas.argument_errors import path_text, wrong_arguments  # noqa: PLC0415 - only for errors

    lines = []
    for index, name in enumerate(islice(unknown, _MAX_NAMES)):
        phrase = not_an_argument(name, missing if index < _MAX_COMPARED else ())
        lines.append((path_text([name]), phrase))
    return wrong_arguments(lines)


def not_an_argument(name: str, missing: Collection[str]) -> str:
    """Return what the error says about an unknown argument; *missing* is as for `unknown_arguments`."""
    from funcmcp._authoring.schemas.argument_errors import path_text  # noqa: PLC0415 - only for errors

    closest = _closest(name, missing) if missing else None
    return NOT_AN_ARGUMENT if closest is None else f"{NOT_AN_ARGUMENT}. Did you mean {path_text([closest])}?"


def _with_other_errors(error: WrongArguments, read: Reader, arguments: dict[str, Any]) -> ToolError:
    """Return an error with those of the other arguments, so that the client can correct all of them at once."""
    try:
        read(arguments)
    except WrongArguments as other:
        return WrongArguments([*error.lines, *other.lines])
    except ToolError as other:
        return ToolError(f"{error}\n{other}")
    return error


def _closest(name: str, names: Collection[str]) -> str | None:
    """Return the name that another one resembles most, such as ``user_id`` for ``userId``; None if none is close."""
    if len(name) > _MAX_NAME_LENGTH:
        return None
    from difflib import get_close_matches  # noqa: PLC0415 - only for errors

    by_letters = {_letters(candidate): candidate for candidate in sorted(names) if len(candidate) <= _MAX_NAME_LENGTH}
    similar = get_close_matches(_letters(name), by_letters, 1, _MIN_SIMILARITY)
    if similar:
        return by_letters[similar[0]]
    return None


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))


def _known_to(schema: Mapping[str, Any], policy: UnknownArguments) -> KnownArguments | None:
    """Return the fields of the core schema of an object; None if the object decides about other names."""
    definitions: dict[str, Any] = {}
    config: dict[str, Any] = {}
    while schema["type"] not in _OBJECTS:
        config.update(schema.get("config", {}))
        definitions.update({definition["ref"]: definition for definition in schema.get("definitions", ())})
        inner = definitions[schema["schema_ref"]] if schema["type"] == "definition-ref" else schema.get("schema")
        if inner is None or _reads_arguments(schema):
            return None
        schema = inner
    config.update(schema.get("config", {}))
    behavior = config.get("extra_fields_behavior")
    if (
        behavior is None and schema.get("extra_behavior") != "ignore"
    ):  # pydantic writes "ignore" where nothing is chosen
        behavior = schema.get("extra_behavior")
    if behavior in {"allow", "ignore"}:
        return None
    by_name, by_alias = config.get("validate_by_name", False), config.get("validate_by_alias", True)
    names: set[str] = set()
    for name, field in _fields(schema):
        aliases = _aliases(field)
        if by_name or not aliases:
            names.add(name)
        if by_alias:
            names.update(aliases)
    return KnownArguments(frozenset(names), "refuse" if behavior == "forbid" else policy)


def _reads_arguments(schema: Mapping[str, Any]) -> bool:
    """Return whether a function of an author gets the arguments before they are validated."""
    if schema.get("custom_init"):
        return True
    if schema["type"] not in _AUTHORS:
        return False
    function = schema["function"]["function"]
    return str(getattr(function, "__module__", "")).partition(".")[0] != "funcmcp"


def _fields(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    fields = schema["fields"]
    if isinstance(fields, dict):
        yield from fields.items()
        return
    for field in fields:
        if field.get("init", True):
            yield field["name"], field


def _aliases(field: Mapping[str, Any]) -> list[str]:
    """Return the aliases of a field: one, or the beginning of each path."""
    alias = field.get("validation_alias", [])
    if isinstance(alias, str):
        return [alias]
    if alias and not isinstance(alias[0], list):
        alias = [alias]
    return [path[0] for path in alias]
