"""From a call's JSON arguments to a function's keyword arguments.

A tool's validator is built when the tool is first called. Loading pydantic is left to that moment, too.
"""

from __future__ import annotations

import operator
from functools import cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NotRequired

from funcmcp.authoring.signatures.annotations import marks_of
from funcmcp.authoring.signatures.signature import EMPTY, Spread
from funcmcp.protocol.errors import ToolError
from funcmcp.server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from pydantic_core import ValidationError

    from funcmcp.authoring.signatures.signature import Parameter

    Problems: TypeAlias = list[tuple[str, str]]
    Reader: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]

NO_ARGUMENTS: dict[str, Any] = {"type": "object", "additionalProperties": False}
_FEW = 1000
"""Members of arguments that are read for all their errors."""


class Part(NamedTuple):
    """Some of a tool's arguments, read by one validator.

    Attributes:
        schema: the core schema, as `funcmcp.authoring.values.pydantic_schemas.for_arguments` made it.
        parameter: the parameter that gets the result; None if the result is a dict of several parameters.
        defaults: defaults of the function itself by parameter, for the JSON schema.
    """

    schema: dict[str, Any]
    parameter: str | None
    defaults: Mapping[str, Any]


def parts_of(parameters: Sequence[Parameter], tool: str, *, lax: bool) -> list[Part]:
    """Return how a function's arguments are read: at most one part for the plain ones, one for the spread one.

    Raises:
        RegistrationError: a type has no meaning as JSON, or two arguments have one name.
    """
    from funcmcp.authoring.values.pydantic_schemas import core_schema_of, for_arguments  # noqa: PLC0415 - pydantic, see above

    parts = []
    spread = [parameter for parameter in parameters if is_spread(parameter)]
    if len(spread) > 1:
        raise RegistrationError(f"{tool} has more than one Arguments[...] parameter; use one.")
    plain = [parameter for parameter in parameters if not is_spread(parameter)]
    if plain:
        what = _named([parameter.name for parameter in plain], tool)
        schema = for_arguments(core_schema_of(_typed_dict(plain), what), what, lax=lax)
        defaults = {p.name: p.default for p in plain if p.default is not EMPTY and not is_field(p.default)}
        parts.append(Part(schema, None, defaults))
    for parameter in spread:
        what = _named([parameter.name], tool)
        schema = for_arguments(core_schema_of(parameter.annotation, what), what, lax=lax)
        parts.append(Part(schema, parameter.name, {}))
    return parts


def text_parts_of(parameters: Sequence[Parameter], feature: str) -> list[Part]:
    """Return how the arguments of a prompt or the variables of a template are read: texts, each for one parameter.

    They go by the parameters' own names; an alias means nothing here.

    Raises:
        RegistrationError: a type has no meaning as JSON, or is marked with `Arguments`.
    """
    if any(is_spread(parameter) for parameter in parameters):
        raise RegistrationError(f"{feature} is no tool: its arguments are its own parameters, without Arguments[...].")
    from funcmcp.authoring.values.pydantic_schemas import for_texts  # noqa: PLC0415 - pydantic, see above

    parts = [part._replace(schema=for_texts(part.schema)) for part in parts_of(parameters, feature, lax=True)]
    for part in parts:
        for field in _fields(part.schema).values():
            field.pop("validation_alias", None)
    return parts


def optional_of(parts: Sequence[Part]) -> set[str]:
    """Return the parameters, of those that are read together, that may be left out."""
    fields = [_fields(part.schema) for part in parts if part.parameter is None]
    return {name for some in fields for name, field in some.items() if field.get("required") is False}


def _named(parameters: Sequence[str], tool: str) -> str:
    if len(parameters) == 1:
        return f"The parameter {parameters[0]!r} of {tool}"
    return f"One of {tool}'s parameters {', '.join(map(repr, parameters))}"


def is_spread(parameter: Parameter) -> bool:
    """Tell whether a parameter's type is marked with `Arguments`."""
    return any(isinstance(mark, Spread) for mark in marks_of(parameter.annotation))


def input_schema(parts: Sequence[Part], tool: str, descriptions: Mapping[str, str]) -> dict[str, Any]:
    """Return the input schema of a tool.

    Args:
        parts: what `parts_of` returned.
        tool: the tool's name, for errors.
        descriptions: what the docstring says of each parameter; a description in the annotation goes before.
    """
    if not parts:
        return dict(NO_ARGUMENTS)
    from funcmcp.authoring.values.json_schema import arranged, json_schema  # noqa: PLC0415 - pydantic, see above

    merged: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
    for part in parts:
        what = _named([part.parameter] if part.parameter else list(_fields(part.schema)), tool)
        schema = json_schema(part.schema, "validation", what)
        if schema.get("type") != "object" or "properties" not in schema:
            raise RegistrationError(f"{what} is marked with Arguments, so it must be a type with named fields.")
        if part.parameter is None:
            _describe(part, schema["properties"], descriptions)
        twice = merged["properties"].keys() & schema["properties"].keys()
        if twice:
            raise RegistrationError(f"{tool} has two arguments named {', '.join(sorted(twice))}; rename one.")
        merged["properties"].update(schema.pop("properties"))
        merged["required"] += schema.pop("required", [])
        merged.update({key: value for key, value in schema.items() if key in {"$defs", "additionalProperties"}})
    if not merged["required"]:
        del merged["required"]
    return arranged(merged)


def _describe(part: Part, properties: dict[str, Any], descriptions: Mapping[str, str]) -> None:
    """Add what the schema of the types can't know: docstrings, and the function's own defaults."""
    from funcmcp.authoring.values.json_schema import encoded_default  # noqa: PLC0415 - pydantic, see above

    for name, field in _fields(part.schema).items():
        argument = properties[_alias(field, name)]
        if name in descriptions:
            argument.setdefault("description", descriptions[name])
        default = part.defaults.get(name)
        if default is not None:
            try:
                argument["default"] = encoded_default(default)
            except ValueError:
                continue  # a default that JSON can't say is the function's own affair


def _fields(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    while "fields" not in schema:
        schema = schema["schema"]
    fields: Mapping[str, Any] = schema["fields"]
    return fields


def _alias(field: Mapping[str, Any], name: str) -> str:
    alias = field.get("validation_alias", name)
    while isinstance(alias, list):
        alias = alias[0]
    return str(alias)


def _typed_dict(parameters: Sequence[Parameter]) -> Any:
    """Return a type whose core schema reads several arguments into a dict of parameters."""
    from typing_extensions import TypedDict  # noqa: PLC0415 - the one that pydantic takes on Python 3.11

    hints: dict[str, Any] = {}
    for parameter in parameters:
        hint = Any if parameter.annotation is EMPTY else parameter.annotation
        has_default = parameter.default is not EMPTY
        if is_field(parameter.default):
            hint = Annotated[hint, parameter.default]
            has_default = False
        if has_default or any(is_field(mark) and not mark.is_required() for mark in marks_of(hint)):
            hint = NotRequired[hint]
        hints[parameter.name] = hint
    return TypedDict("Arguments", hints)  # type: ignore[operator]


def is_field(value: Any) -> bool:
    """Tell whether a default or a mark is pydantic's ``Field(...)``, without loading pydantic."""
    return hasattr(value, "is_required") and hasattr(value, "default_factory")


def reader_of(parts: Sequence[Part], *, lax: bool) -> Reader:
    """Return the function that turns a call's arguments into keyword arguments, or raises ToolError."""
    if not parts:
        return _no_arguments
    checks = [(part.parameter, _Check(part.schema, lax=lax)) for part in parts]
    if len(parts) == 1 and parts[0].parameter is None:
        return _reporting(checks[0][1])
    return _several(parts, checks)


def reader_of_type(annotation: Any, what: str) -> Callable[[Any], Any]:
    """Return a function that reads one JSON value as a type, or raises ToolError."""
    from funcmcp.authoring.values.pydantic_schemas import core_schema_of, for_arguments  # noqa: PLC0415 - pydantic, see above

    return _reporting(_Check(for_arguments(core_schema_of(annotation, what), what, lax=False), lax=False))


def _no_arguments(arguments: dict[str, Any]) -> dict[str, Any]:
    if arguments:
        from funcmcp.authoring.values.argument_errors import path_text, wrong_arguments  # noqa: PLC0415 - only for errors

        raise wrong_arguments((path_text([name]), "is not expected") for name in islice(arguments, _FEW))
    return {}


def _validating(schema: dict[str, Any], *, lax: bool) -> Callable[[Any], Any]:
    """Return a function that validates a JSON value and raises pydantic's ValidationError."""
    from pydantic_core import to_json  # noqa: PLC0415 - pydantic, see above

    from funcmcp.authoring.values.pydantic_schemas import is_plain, validator  # noqa: PLC0415 - pydantic, see above

    built = validator(schema)
    if lax:
        return built.validate_python
    if is_plain(schema):
        return partial(built.validate_python, strict=True)
    from_json = built.validate_json
    return lambda value: from_json(to_json(value), strict=True)


def _with_integers(value: Any) -> Any:
    """Return a value with integers for floats that are whole: JSON has one type of number.

    A value without such floats is returned itself.
    """
    if type(value) is float and value.is_integer():
        return int(value)
    if type(value) is dict:
        members = {name: _with_integers(member) for name, member in value.items()}
        return members if any(members[name] is not member for name, member in value.items()) else value
    if type(value) is list:
        items = [_with_integers(item) for item in value]
        return items if any(map(operator.is_not, items, value)) else value
    return value


class _Check:
    """Validates values of one schema.

    A value is first read in such a way that the first wrong item ends its collection: a million wrong items would be a
    million errors, and minutes of everybody's time. Only what is small is read again for all its errors.
    """

    def __init__(self, schema: dict[str, Any], *, lax: bool) -> None:
        from funcmcp.authoring.values.pydantic_schemas import hasty  # noqa: PLC0415 - pydantic, see above

        self.validate = _validating(hasty(schema), lax=lax)
        self._all_errors = cache(lambda: _validating(schema, lax=lax))

    def errors(self, error: ValidationError, value: Any) -> ValidationError:
        """Return all errors of a wrong value if it is small and has few so far; otherwise return *error*."""
        if error.error_count() > _FEW or not _is_small(value):
            return error
        try:
            self._all_errors()(_with_integers(value))
        except ToolError:  # too many ways to read it
            return error
        except type(error) as thorough:
            return thorough
        return error


def _is_small(value: Any) -> bool:
    """Tell whether a JSON value has few members, without a look at more than those few."""
    waiting = [value]
    seen = 0
    while waiting:
        one = waiting.pop()
        if type(one) is dict or type(one) is list:
            seen += len(one)
            if seen > _FEW:
                return False
            waiting += one.values() if type(one) is dict else one
    return True


def _reporting(check: _Check) -> Callable[[Any], Any]:
    from pydantic_core import ValidationError  # noqa: PLC0415 - pydantic, see above

    validate = check.validate

    def read(value: Any) -> Any:
        try:
            return validate(value)
        except ValidationError as error:
            return read_again(value, error)

    def read_again(value: Any, error: ValidationError) -> Any:
        changed = _with_integers(value)
        if changed is not value:
            try:
                return validate(changed)
            except ValidationError as second:
                error = second
        raise _problems([(check.errors(error, value), value)]) from None

    return read


def _several(parts: Sequence[Part], checks: Sequence[tuple[str | None, _Check]]) -> Reader:
    """Read the plain arguments and the spread ones; neither part is shown what belongs to the other."""
    from pydantic_core import ValidationError  # noqa: PLC0415 - pydantic, see above

    own = {
        _alias(field, name) for part in parts if part.parameter is None for name, field in _fields(part.schema).items()
    }

    def read(arguments: dict[str, Any]) -> dict[str, Any]:
        kwargs: dict[str, Any] = {}
        errors = []
        for parameter, check in checks:
            mine = {name: value for name, value in arguments.items() if (name in own) == (parameter is None)}
            try:
                try:
                    value = check.validate(mine)
                except ValidationError:
                    value = check.validate(_with_integers(mine))
                kwargs.update(value if parameter is None else {parameter: value})
            except ValidationError as error:
                errors.append((check.errors(error, mine), mine))
        if errors:
            raise _problems(errors)
        return kwargs

    return read


def _problems(errors: list[tuple[Any, Any]]) -> ToolError:
    from funcmcp.authoring.values.argument_errors import of_validation, wrong_arguments  # noqa: PLC0415 - only for errors

    return wrong_arguments(line for error, value in errors for line in of_validation(error, value))


def handwritten_reader(
    schema: Mapping[str, Any], tool: str, *, all_arguments: str | None, read_named: Reader | None
) -> Reader:
    """Return the reader of a tool with a hand-written schema.

    Args:
        schema: The schema that arguments must fit.
        tool: The tool's name.
        all_arguments: The parameter that takes all arguments as a dict, if there is one.
        read_named: Reads the arguments for named parameters, if there are any.
    """
    from funcmcp.authoring.values.argument_errors import wrong_arguments  # noqa: PLC0415 - only for errors
    from funcmcp.authoring.values.handwritten_schema import schema_checker  # noqa: PLC0415 - for these schemas only

    errors_of = schema_checker(schema, f"The input_schema of {tool}")

    def read(arguments: dict[str, Any]) -> dict[str, Any]:
        errors = errors_of(arguments)
        if errors:
            raise wrong_arguments(errors)
        if all_arguments is not None:
            return {all_arguments: arguments}
        return {} if read_named is None else read_named(arguments)

    return read
