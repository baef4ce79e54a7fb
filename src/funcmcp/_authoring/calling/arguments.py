"""Validation of a call's JSON arguments, and their conversion to a function's keyword arguments.

How it works: `parts_of` divides the parameters of a function into parts, and each part has its own validator. All plain
parameters form one part, whose core schema is that of a TypedDict. A parameter marked with `Arguments` is a separate
part: the fields of its type are arguments at the same level as the plain ones. `input_schema` merges the JSON schemas
of the parts. `reader_of` builds their validators when the feature is first called. pydantic is not loaded before that.

A call's arguments are validated in up to three steps. The first validator stops at the first invalid item of a
collection (`fail_fast`), because a million invalid items would produce a million errors and take minutes. If it rejects
the value, and the value contains null, a validator that takes null as the absence of an argument with a default
decides. If the value is invalid and small, another validator lists all errors for the client.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, NamedTuple, NotRequired, Protocol, get_origin

from funcmcp._authoring.signatures.annotations import marks_of
from funcmcp._authoring.signatures.signature import EMPTY, Spread
from funcmcp._protocol.errors import ToolError
from funcmcp._protocol.media_types import FILE_HINT
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from pydantic_core import ValidationError

    from funcmcp._authoring.signatures.signature import Parameter
    from funcmcp._server.catalog.features import LeftOut

    Reader: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]

_MAX_MEMBERS_FOR_ALL_ERRORS = 1000
"""For arguments with more members, only the errors of the first validation are reported."""

_AS_SERVICE = "Register the function's result with mcp.services, and annotate the parameter with its type."
_FROM_REQUEST = "Read context.http_request.headers instead."
_FOREIGN_MARKS = {
    "fastapi.Cookie": _FROM_REQUEST,
    "fastapi.Depends": _AS_SERVICE,
    "fastapi.Header": _FROM_REQUEST,
    "uncalled_for.Dependency": _AS_SERVICE,  # Depends of FastMCP
}
"""Marks of other frameworks whose values are not for clients to choose, by the library and a base of their class, with
what to do instead. Ignored, ``user: str = Depends(current_user)`` would let a client say who it is."""


class Known(Protocol):
    """The arguments that a function has, and what happens to others: `KnownArguments` of `unknown_arguments.py`."""

    @property
    def names(self) -> frozenset[str]:
        """Their names."""

    def known_in(self, arguments: dict[str, Any], read: Reader) -> dict[str, Any]:
        """Return the known ones of the arguments; raise ToolError if the others are refused."""


class Part(NamedTuple):
    """The arguments that one validator validates.

    Attributes:
        schema: The core schema, as `argument_schema` of `values/pydantic_argument_schemas.py` returns it.
        parameter: The parameter that gets the result. None if the result is a dict of several parameters.
        defaults: The function's own defaults by parameter, for the JSON schema.
    """

    schema: dict[str, Any]
    parameter: str | None
    defaults: Mapping[str, Any]


def parts_of(parameters: Sequence[Parameter], tool: str, *, lax: bool) -> list[Part]:
    """Return the parts of a function's arguments: one for the plain parameters, and one for a spread parameter.

    Args:
        parameters: The parameters that take arguments.
        tool: The tool's name, for errors.
        lax: Whether values are converted, such as ``"5"`` to 5.

    Raises:
        RegistrationError: JSON can't represent a type, two fields have the same alias, or more than one parameter is
            marked with `Arguments`.
    """
    from funcmcp._authoring.schemas.pydantic_argument_schemas import argument_schema  # noqa: PLC0415 - loads pydantic

    parts = []
    spread = [parameter for parameter in parameters if is_spread(parameter)]
    if len(spread) > 1:
        raise RegistrationError(f"{tool} has more than one Arguments[...] parameter. Combine their types into one.")
    plain = [parameter for parameter in parameters if not is_spread(parameter)]
    if plain:
        defaults = {p.name: p.default for p in plain if p.default is not EMPTY and not is_field(p.default)}
        parts.append(Part(_plain_schema(plain, tool, lax=lax), None, defaults))
    for parameter in spread:
        place = _place([parameter.name], tool)
        schema = argument_schema(parameter.annotation, place, lax=lax)
        parts.append(Part(schema, parameter.name, {}))
    return parts


def _plain_schema(parameters: Sequence[Parameter], tool: str, *, lax: bool) -> dict[str, Any]:
    """Return the core schema of plain parameters. If there is an error, it names the parameter that causes it."""
    from funcmcp._authoring.schemas.pydantic_argument_schemas import argument_schema  # noqa: PLC0415 - loads pydantic

    for parameter in parameters:
        _check_qualifier(parameter, tool)
        _check_marks(parameter, tool)
    place = _place([parameter.name for parameter in parameters], tool)
    try:
        return argument_schema(_typed_dict(parameters), place, lax=lax)
    except RegistrationError:
        if len(parameters) > 1:
            for parameter in parameters:
                _plain_schema([parameter], tool, lax=lax)
        raise


def _check_qualifier(parameter: Parameter, tool: str) -> None:
    """Raise RegistrationError for a type such as ``Final[int]``, which only variables can have."""
    annotation = parameter.annotation
    qualifier = get_origin(annotation) or annotation
    if qualifier is Final or qualifier is ClassVar:
        place = _place([parameter.name], tool)
        raise RegistrationError(
            f"{place} has the type {annotation}, which only variables can have. Remove {qualifier}."
        )


def _check_marks(parameter: Parameter, feature: str) -> None:
    """Raise RegistrationError for a parameter that another framework would fill, and no client may."""
    for mark in (*marks_of(parameter.annotation), parameter.default):
        for base in type(mark).__mro__:
            library, _, _ = base.__module__.partition(".")
            remedy = _FOREIGN_MARKS.get(f"{library}.{base.__name__}")
            if remedy is not None:
                mark_name = type(mark).__name__.lstrip("_")
                raise RegistrationError(
                    f"{_place([parameter.name], feature)} has {mark_name}(...) of {library}, which is not evaluated "
                    f"here: clients would pass the value. {remedy}"
                )


def text_parts_of(parameters: Sequence[Parameter], feature: str) -> list[Part]:
    """Return the parts of a prompt's arguments or a template's variables, whose values are strings.

    Arguments have the names of the parameters. Aliases are ignored.

    Raises:
        RegistrationError: JSON can't represent a type, or a parameter is marked with `Arguments`.
    """
    if any(is_spread(parameter) for parameter in parameters):
        raise RegistrationError(
            f"{feature} has an Arguments[...] parameter, which only tools can have. "
            "Declare each argument as a parameter."
        )
    from funcmcp._authoring.schemas.pydantic_argument_schemas import for_texts  # noqa: PLC0415 - loads pydantic

    parts = [part._replace(schema=for_texts(part.schema)) for part in parts_of(parameters, feature, lax=True)]
    for part in parts:
        for field in _fields(part.schema).values():
            field.pop("validation_alias", None)
    return parts


def optional_of(parts: Sequence[Part]) -> set[str]:
    """Return the plain parameters that a call may omit."""
    optional: set[str] = set()
    for part in parts:
        if part.parameter is None:
            optional |= {name for name, field in _fields(part.schema).items() if field.get("required") is False}
    return optional


def json_texts_of(parts: Sequence[Part]) -> dict[str, bool]:
    """Return the plain parameters whose texts must be JSON, because each value but None is an object or an array.

    The value is whether an author's function may read other texts, too.
    """
    from funcmcp._authoring.schemas.pydantic_argument_schemas import reads_texts, requires_json  # noqa: PLC0415 - loads pydantic

    texts: dict[str, bool] = {}
    for part in parts:
        if part.parameter is None:
            for name, field in _fields(part.schema).items():
                if requires_json(part.schema, field):
                    texts[name] = reads_texts(field)
    return texts


def _place(parameters: Sequence[str], tool: str) -> str:
    """Return a phrase that names parameters in errors."""
    if len(parameters) == 1:
        return f"The parameter {parameters[0]!r} of {tool}"
    return f"One of {tool}'s parameters {', '.join(map(repr, parameters))}"


def is_spread(parameter: Parameter) -> bool:
    """Return whether a parameter's type is marked with `Arguments`."""
    return any(isinstance(mark, Spread) for mark in marks_of(parameter.annotation))


def input_schema(
    parts: Sequence[Part], tool: str, descriptions: Mapping[str, str], left_out: list[LeftOut] | None = None
) -> dict[str, Any]:
    """Return the input schema of a tool.

    Args:
        parts: The parts of its arguments.
        tool: The tool's name, for errors.
        descriptions: Descriptions of parameters from the docstring. Those in annotations take precedence.
        left_out: Gets what the schema does not say.

    Raises:
        RegistrationError: A spread type does not have named fields, or two arguments have the same name.
    """
    if not parts:
        return {"type": "object", "properties": {}}
    from funcmcp._authoring.schemas.json_schema import arranged, json_schema  # noqa: PLC0415 - loads pydantic

    merged: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
    for part in parts:
        place = _place([part.parameter] if part.parameter else list(_fields(part.schema)), tool)
        schema = json_schema(part.schema, "validation", place, left_out)
        if schema.get("type") != "object" or "properties" not in schema:
            raise RegistrationError(f"{place} is marked with Arguments, so its type must have named fields.")
        if part.parameter is None:
            _describe(part, schema, descriptions)
        duplicates = merged["properties"].keys() & schema["properties"].keys()
        if duplicates:
            raise RegistrationError(f"{tool} has two arguments named {', '.join(sorted(duplicates))}. Rename one.")
        merged["properties"].update(schema.pop("properties"))
        merged["required"] += schema.pop("required", [])
        merged.update({key: value for key, value in schema.items() if key == "$defs"})
    if not merged["required"]:
        del merged["required"]
    return arranged(merged)


def _describe(part: Part, schema: dict[str, Any], descriptions: Mapping[str, str]) -> None:
    """Add descriptions from the docstring, and the function's own defaults, to the schema of arguments."""
    from funcmcp._authoring.schemas.json_schema import encoded_default, without_null  # noqa: PLC0415 - loads pydantic

    properties = schema["properties"]
    definitions = schema.get("$defs", {})

    def definition(reference: str) -> Any:
        return definitions.get(reference.removeprefix("#/$defs/"))

    for name, field in _fields(part.schema).items():
        argument = properties[_alias(field, name)]
        if name in descriptions:
            _add_description(argument, descriptions[name])
        if "x-mcp-header" in argument:  # a header has no null, so the client omits it
            argument = properties[_alias(field, name)] = without_null(argument, definition)
        if name not in part.defaults:
            continue
        default = part.defaults[name]
        if default is None:
            properties[_alias(field, name)] = without_null(argument, definition)
        else:
            try:
                argument["default"] = encoded_default(default)
            except ValueError:
                continue  # JSON can't represent the default, so the schema omits it


def _add_description(argument: dict[str, Any], text: str) -> None:
    """Add the description in a docstring to the schema of an argument. One in the annotation takes precedence.

    The type of a file has a description of its own, which says how to send one. It comes last.
    """
    existing = argument.get("description")
    if existing == FILE_HINT:
        argument["description"] = f"{text} {existing}"
    else:
        argument.setdefault("description", text)


def _fields(schema: Mapping[str, Any]) -> Mapping[str, dict[str, Any]]:
    """Return the fields of a core schema by name."""
    while "fields" not in schema:
        schema = schema["schema"]
    fields: Mapping[str, dict[str, Any]] = schema["fields"]
    return fields


def _alias(field: Mapping[str, Any], name: str) -> str:
    alias = field.get("validation_alias", name)
    while isinstance(alias, list):
        alias = alias[0]
    return str(alias)


def _typed_dict(parameters: Sequence[Parameter]) -> Any:
    """Return a TypedDict with the parameters as its keys."""
    from typing_extensions import TypedDict  # noqa: PLC0415 - pydantic requires this TypedDict on Python 3.11

    hints: dict[str, Any] = {}
    for parameter in parameters:
        hint = Any if parameter.annotation is EMPTY else parameter.annotation
        has_default = parameter.default is not EMPTY
        if is_field(parameter.default):
            hint = Annotated[hint, parameter.default]
            has_default = False
        marks = [mark for mark in marks_of(hint) if is_field(mark) and not mark.is_required()]
        if has_default and marks:
            hint = Annotated[hint, _field_of(parameter.default, marks[-1])]
        if has_default or marks:
            hint = NotRequired[hint]
        hints[parameter.name] = hint
    return TypedDict("Arguments", hints)  # type: ignore[operator]


def _field_of(default: Any, mark: Any) -> Any:
    """Return a field whose default takes the place of the one that an annotation has, as in models of pydantic.

    Args:
        default: The default of the parameter.
        mark: The field in the annotation. Pydantic takes a default or a factory for one type, not both.
    """
    if mark.default_factory is None:
        return type(mark)(default=default)
    return type(mark)(default_factory=lambda: default)


def is_field(value: Any) -> bool:
    """Return whether a default or a mark is pydantic's ``Field(...)``, without loading pydantic."""
    return hasattr(value, "is_required") and hasattr(value, "default_factory")


def reader_of(
    parts: Sequence[Part],
    *,
    lax: bool,
    schema: Callable[[], dict[str, Any]] | None = None,
    known: Known | None = None,
) -> Reader:
    """Return a function that converts arguments to keyword arguments. It raises ToolError if they are invalid.

    Args:
        parts: The parts of the arguments.
        lax: Whether values are converted.
        schema: Returns the arguments' JSON schema, from which errors describe missing arguments.
        known: The arguments that the function has. None: unknown ones are not looked for.
    """
    describing = None if schema is None else cache(schema)
    checks = [(part.parameter, _Check(part.schema, lax=lax)) for part in parts]
    if len(parts) == 1 and parts[0].parameter is None:
        return _reporting(checks[0][1], describing, known)
    read = _several(parts, checks, describing) if parts else _no_arguments
    if known is None:
        return read

    def read_known(arguments: dict[str, Any]) -> dict[str, Any]:
        if not known.names.issuperset(arguments):
            arguments = known.known_in(arguments, read)
        return read(arguments)

    return read_known


def reader_of_type(annotation: Any, name: str) -> Callable[[Any], Any]:
    """Return a function that converts a JSON value to a type. It raises ToolError for values that do not fit.

    Args:
        annotation: The type.
        name: The name of the type in errors.
    """
    from funcmcp._authoring.schemas.json_schema import json_schema  # noqa: PLC0415 - loads pydantic
    from funcmcp._authoring.schemas.pydantic_argument_schemas import argument_schema  # noqa: PLC0415 - loads pydantic

    schema = argument_schema(annotation, name, lax=False)
    return _reporting(_Check(schema, lax=False), cache(lambda: json_schema(schema, "validation", name)))


def _no_arguments(_: dict[str, Any]) -> dict[str, Any]:
    return {}


def _validating(schema: dict[str, Any], *, lax: bool) -> Callable[[Any], Any]:
    """Return a function that validates a JSON value and raises pydantic's ValidationError."""
    from pydantic_core import to_json  # noqa: PLC0415 - loads pydantic

    from funcmcp._authoring.schemas.pydantic_argument_schemas import (  # noqa: PLC0415 - loads pydantic
        locating_errors,
        strict_schema,
        strings_first,
        whole_numbers,
    )
    from funcmcp._authoring.schemas.pydantic_schemas import is_plain, validator  # noqa: PLC0415 - loads pydantic

    changed = locating_errors(strings_first(schema))
    if lax:  # strict types remain strict, but dates, sets and the like of strict models are read from JSON
        built = validator(whole_numbers(changed))
    else:
        built = validator(whole_numbers(strict_schema(changed)), strict=True)
    if is_plain(schema):
        return built.validate_python
    return lambda value: built.validate_json(to_json(value))


def _has_null(value: Any) -> bool:
    """Return whether a JSON value is null or contains it."""
    pending = [value]
    while pending:
        member = pending.pop()
        if member is None:
            return True
        if type(member) is dict:
            pending += member.values()
        elif type(member) is list:
            pending += member
    return False


class _Check:
    """Validates values against one schema, and lists all errors of small values.

    Attributes:
        validate: Returns the converted value, or raises ValidationError. It stops at the first invalid item of a
            collection.
    """

    def __init__(self, schema: dict[str, Any], *, lax: bool) -> None:
        from funcmcp._authoring.schemas.pydantic_argument_schemas import fail_fast, null_as_absent  # noqa: PLC0415 - loads pydantic

        self.validate = _validating(fail_fast(schema), lax=lax)
        self._with_defaults = cache(lambda: _validating(fail_fast(null_as_absent(schema)), lax=lax))
        self._all_errors = cache(lambda: _validating(schema, lax=lax))
        self._all_errors_with_defaults = cache(lambda: _validating(null_as_absent(schema), lax=lax))

    def validate_again(self, value: Any, error: ValidationError) -> Any:
        """Return the result for a value that `validate` rejects as it is, or raise ValidationError.

        Args:
            value: The value.
            error: The error of `validate`.
        """
        if _has_null(value):
            return self._with_defaults()(value)
        raise error

    def errors(self, error: ValidationError, value: Any) -> ValidationError:
        """Return an error that lists all problems of a small value. For a large value, return *error*.

        Args:
            error: The error of the validation that stopped early.
            value: The value that was validated.
        """
        if error.error_count() > _MAX_MEMBERS_FOR_ALL_ERRORS or not _is_small(value):
            return error
        all_errors = self._all_errors_with_defaults if _has_null(value) else self._all_errors
        try:
            all_errors()(value)
        except ToolError:  # too many attempts to match unions, see values/union_limits.py
            return error
        except type(error) as thorough:
            return thorough
        return error


def _is_small(value: Any) -> bool:
    """Return whether a JSON value has at most `_MAX_MEMBERS_FOR_ALL_ERRORS` members, in time bounded by that number."""
    pending = [value]
    count = 0
    while pending:
        container = pending.pop()
        if type(container) is not dict and type(container) is not list:
            continue
        count += len(container)
        if count > _MAX_MEMBERS_FOR_ALL_ERRORS:
            return False
        pending += container.values() if type(container) is dict else container
    return True


def _reporting(
    check: _Check, schema: Callable[[], dict[str, Any]] | None, known: Known | None = None
) -> Callable[[Any], Any]:
    """Return a function that validates a value, and raises ToolError with its errors.

    If the value is the arguments of a call, *known* are those that the function has.
    """
    from pydantic_core import ValidationError  # noqa: PLC0415 - loads pydantic

    validate = check.validate
    names = frozenset() if known is None else known.names

    def read(value: Any) -> Any:
        if known is not None and not names.issuperset(value):
            value = known.known_in(value, read)
        try:
            return validate(value)
        except ValidationError as error:
            return retry(value, error)

    def retry(value: Any, error: ValidationError) -> Any:
        try:
            return check.validate_again(value, error)
        except ValidationError as second:
            raise _tool_error([(check.errors(second, value), value)], schema) from None

    return read


def _several(
    parts: Sequence[Part],
    checks: Sequence[tuple[str | None, _Check]],
    schema: Callable[[], dict[str, Any]] | None,
) -> Reader:
    """Return the reader of plain and spread arguments. Each part gets only its own arguments."""
    from pydantic_core import ValidationError  # noqa: PLC0415 - loads pydantic

    plain_names: set[str] = set()
    for part in parts:
        if part.parameter is None:
            plain_names |= {_alias(field, name) for name, field in _fields(part.schema).items()}

    def read(arguments: dict[str, Any]) -> dict[str, Any]:
        plain = {name: value for name, value in arguments.items() if name in plain_names}
        spread = {name: value for name, value in arguments.items() if name not in plain_names}
        kwargs: dict[str, Any] = {}
        errors = []
        for parameter, check in checks:
            values = plain if parameter is None else spread
            try:
                try:
                    result = check.validate(values)
                except ValidationError as first:
                    result = check.validate_again(values, first)
            except ValidationError as error:
                errors.append((check.errors(error, values), values))
                continue
            if parameter is None:
                kwargs.update(result)
            else:
                kwargs[parameter] = result
        if errors:
            raise _tool_error(errors, schema)
        return kwargs

    return read


def _tool_error(errors: list[tuple[Any, Any]], schema: Callable[[], dict[str, Any]] | None) -> ToolError:
    """Return the error for the client. *errors* are pydantic's errors, each with its value."""
    from funcmcp._authoring.schemas.argument_errors import validation_errors, wrong_arguments  # noqa: PLC0415 - only for errors

    return wrong_arguments(line for error, value in errors for line in validation_errors(error, value, schema))


def handwritten_reader(
    schema: Mapping[str, Any], tool: str, *, all_arguments: str | None, read_named: Reader | None
) -> Reader:
    """Return the reader of a tool with a hand-written schema.

    Args:
        schema: The schema that the arguments must match.
        tool: The tool's name.
        all_arguments: The parameter that takes all arguments as a dict, if there is one.
        read_named: The reader of the arguments for named parameters, if there are any.
    """
    from funcmcp._authoring.schemas.argument_errors import wrong_arguments  # noqa: PLC0415 - only for errors
    from funcmcp._authoring.schemas.handwritten_schema import schema_checker  # noqa: PLC0415 - for these schemas only

    errors_of = schema_checker(schema, f"The input_schema of {tool}")

    def read(arguments: dict[str, Any]) -> dict[str, Any]:
        errors = errors_of(arguments)
        if errors:
            raise wrong_arguments(errors)
        if all_arguments is not None:
            return {all_arguments: arguments}
        if read_named is None:
            return {}
        return read_named(arguments)

    return read
