"""The deliberate differences between funcmcp and the judges, each as a change of the judges.

A disagreement is explained by a set of these rules if the judge, changed by them, agrees with funcmcp. The table
"Differences from pydantic" in docs/guides/tools.md says of each rule what it is and what users gain by it.
"""

from __future__ import annotations

import enum
import json
import re
from base64 import b64decode, b64encode
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias, Union, get_args, get_origin
from uuid import UUID

from pydantic import (
    UUID4,
    AnyUrl,
    AwareDatetime,
    BeforeValidator,
    ByteSize,
    ConfigDict,
    EmailStr,
    Field,
    NaiveDatetime,
    PlainSerializer,
    RootModel,
    Strict,
    TypeAdapter,
)
from pydantic_core import PydanticOmit, PydanticSerializationUnexpectedValue, PydanticUseDefault, core_schema

from tests.differential.leaves import UNSAID
from tests.differential.signatures import POSITIONS
from tests.differential.vocabulary import Access, Level, Mixed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Arguments: TypeAlias = dict[str, Any]


class Rule(NamedTuple):
    """A deliberate difference.

    Attributes:
        name: The name in the guide's table.
        names: For pydantic: names of the vocabulary with other values. signatures.py reads the rules "null",
            "optional", "named tuples" and "whole numbers", which concern declarations of classes.
        schema: For JSON Schema: returns a changed schema for each schema in the announced one.
        arguments_schema: For JSON Schema: returns a changed schema of the arguments.
    """

    name: str
    names: Mapping[str, Any] = MappingProxyType({})
    schema: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    arguments_schema: Callable[[dict[str, Any]], dict[str, Any]] | None = None


# Types


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _json_integer(value: Any) -> Any:
    """Return what pydantic's integer that is not strict takes for a JSON number, and refuse everything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("The value is not a number.")
    if isinstance(value, float) and value.is_integer() and abs(value) >= 2.0**63:
        return str(int(value))
    return value


def _checked(kind: Any, accepts: Callable[[Any], bool]) -> Any:
    """Return a type that accepts a part of the JSON values that pydantic accepts for it.

    pydantic takes what a function returns for a value of Python, so the function returns a value of the type.
    """
    adapter = TypeAdapter(kind, config=ConfigDict(strict=True))

    def validate(value: Any) -> Any:
        if value is not None and not isinstance(value, str | int | float | list | dict):
            return value  # another rule's function has read it
        if not accepts(value):
            raise ValueError("The value has another form.")
        return adapter.validate_json(json.dumps(value))

    return Annotated[kind, BeforeValidator(validate), _Converted()]


class _Converted:
    """Marks a type whose values unions treat as converted, like those that no text is exactly."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        schema = handler(source)
        steps = [schema, core_schema.any_schema()]
        return core_schema.chain_schema(steps, serialization=_serialization(schema))


def _serialization(schema: Any) -> Any:
    """Return how a schema is serialized by its own serializer or that of a schema in it; None if there is none."""
    while "serialization" not in schema and ("schema" in schema or "steps" in schema):
        schema = schema["schema"] if "schema" in schema else schema["steps"][0]
    return schema.get("serialization")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _json_number(value: Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)


def _matching(pattern: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


_TIME_OF_DAY = r"([01]\d|2[0-3]):[0-5]\d(:[0-5]\d([.,]\d+)?)?([Zz]|[+-][0-2]\d:?[0-5]\d)?"
_DAY = r"\d{4}-\d{2}-\d{2}"
_MOMENT = rf"{_DAY}[Tt ]{_TIME_OF_DAY}"


def _from_base64(value: Any) -> Any:
    return b64decode(value.replace("-", "+").replace("_", "/"), validate=True) if isinstance(value, str) else value


def _choice(kind: Any, options: Iterable[Any]) -> Any:
    """Return a type whose values are read from the JSON values of some options, of which true is not 1."""
    readable = [(_json_choice(option), option) for option in options]

    def read(value: Any) -> Any:
        for known, option in readable:
            if value is option or (known == value and isinstance(known, bool) == isinstance(value, bool)):
                return option
        raise ValueError("The value is not one of the options.")

    def write(value: Any) -> Any:
        if not any(value == option and type(value) is type(option) for _, option in readable):
            raise PydanticSerializationUnexpectedValue("The value belongs to another member of a union.")
        return _json_choice(value)

    return Annotated[kind, BeforeValidator(read), PlainSerializer(write, when_used="json")]


def _json_choice(option: Any) -> Any:
    value = option.value if isinstance(option, enum.Enum) else option
    return b64encode(value).decode() if isinstance(value, bytes) else value


class _ChoiceOfLiteral:
    def __class_getitem__(cls, options: Any) -> Any:
        values = options if isinstance(options, tuple) else (options,)
        literal: Any = Literal.__getitem__(values)
        return literal if all(isinstance(value, str) for value in values) else _choice(literal, values)


class _TextFirst:
    """A union whose members for text come first, without a preference for members that convert nothing."""

    def __class_getitem__(cls, members: tuple[Any, ...]) -> Any:
        texts = [text for member in members for text in _texts_of(member)]
        union: Any = Union.__getitem__(members)
        ordered: Any = Union.__getitem__((*texts, union))
        if not texts or get_origin(ordered) is not Union:
            return union
        return Annotated[ordered, Field(union_mode="left_to_right")]


_TEXTS = (str, EmailStr)


def _texts_of(kind: Any) -> list[Any]:
    """Return the types in a union, or in unions in it, whose values are strings."""
    if kind in _TEXTS:
        return [kind]
    if isinstance(kind, type) and issubclass(kind, RootModel):
        root = kind.model_fields["root"].annotation
        return [kind] if _texts_of(root) == [root] else []
    if get_origin(kind) is Annotated:
        inner = get_args(kind)[0]
        return [kind] if inner in _TEXTS else _texts_of(inner)
    if get_origin(kind) is Union:
        return [text for member in get_args(kind) for text in _texts_of(member)]
    return []


class _DefaultForNull:
    def __class_getitem__(cls, kind: Any) -> Any:
        return _raising_for_null(kind, PydanticUseDefault)


class _OmittedForNull:
    def __class_getitem__(cls, kind: Any) -> Any:
        return _raising_for_null(kind, PydanticOmit)


def _raising_for_null(kind: Any, error: type[Exception]) -> Any:
    def is_value(value: Any) -> bool:
        if value is None:
            raise error
        return True

    return _checked(kind, is_value)


_READ_FROM_TEXT = {"AnyUrl": AnyUrl, "UUID": UUID, "UUID4": UUID4, "time": time, "timedelta": timedelta}


def _named_tuple_schema(cls: Any, source: Any, handler: Callable[[Any], Any]) -> Any:
    """Return the schema of a NamedTuple that is an object in results."""
    schema = handler(source)
    fields = {field["name"]: core_schema.typed_dict_field(field["schema"]) for field in schema["fields"]}
    schema["serialization"] = core_schema.plain_serializer_function_ser_schema(
        lambda value: value._asdict(), return_schema=core_schema.typed_dict_schema(fields), when_used="json"
    )
    return schema


# Schemas


def _null_for_optional(schema: dict[str, Any]) -> dict[str, Any]:
    required = schema.get("required", [])
    if "properties" not in schema:
        return schema
    members = {
        name: member if name in required else {"anyOf": [member, {"type": "null"}]}
        for name, member in schema["properties"].items()
    }
    return {**schema, "properties": members}


def _with_unsaid(schema: dict[str, Any]) -> dict[str, Any]:
    description = schema.get("description", "")
    if not description.startswith(UNSAID):
        return schema
    changed = {**schema, **json.loads(description.removeprefix(UNSAID))}
    return {keyword: value for keyword, value in changed.items() if value is not None}


def _with_arrays(schema: dict[str, Any]) -> dict[str, Any]:
    """Accept an array for a NamedTuple, and reject unknown members of the object."""
    members = schema.get("properties", {})
    if POSITIONS[0] not in members:
        return schema
    arrays: list[dict[str, Any]] = []
    for length in range(len(schema.get("required", ())), len(members) + 1):
        array = {"type": "array", "items": {}, "minItems": length, "maxItems": length}
        arrays.append({**array, "prefixItems": list(members.values())[:length]} if length else array)
    return {"anyOf": [{**schema, "additionalProperties": False}, *arrays]}


def _with_base64(schema: dict[str, Any]) -> dict[str, Any]:
    if schema.get("contentEncoding") != "base64":
        return schema
    form = {"pattern": "^([A-Za-z0-9+/_-]{4})*([A-Za-z0-9+/_-]{2}==|[A-Za-z0-9+/_-]{3}=)?$"}
    return {"allOf": [schema, form]}


_FORMS = {
    "date-time": f"^{_MOMENT}$",
    "time": f"^{_TIME_OF_DAY}$",
    "uuid": r"^(urn:uuid:|\{)?[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}\}?$",
    "duration": r"^[+-]?(P(\d+Y)?(\d+M)?(\d+W)?(\d+D)?(T(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?|\d+:\d{2}(:\d{2})?)$",
}
"""What pydantic reads as a value of a format."""

_CHECKED = {
    "email": r"^[^@\s<>]+@[^@\s<>]+$",
    "hostname": r"^([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.|$))+$",
    "uri": r"^[A-Za-z][A-Za-z0-9+.-]*:(//)?[^/\s]\S*$",
}
"""What the server checks of formats that JSON Schema leaves to the validator."""


def _with_other_forms(schema: dict[str, Any]) -> dict[str, Any]:
    form = _FORMS.get(schema.get("format", ""))
    if form is None:
        return schema
    return {**{key: value for key, value in schema.items() if key != "format"}, "pattern": form}


def _with_checked_formats(schema: dict[str, Any]) -> dict[str, Any]:
    form = _CHECKED.get(schema.get("format", ""))
    return schema if form is None else {**schema, "pattern": form}


def _with_unicode(schema: dict[str, Any]) -> dict[str, Any]:
    return (
        {**schema, "pattern": schema["pattern"].replace(r"\d", "[0-9\u0660-\u0669]")} if "pattern" in schema else schema
    )


RULES = (
    Rule("optional"),
    Rule("null", {"DefaultForNull": _DefaultForNull, "OmittedForNull": _OmittedForNull}, schema=_null_for_optional),
    Rule(
        "whole numbers",
        {
            "int": Annotated[int, Strict(strict=False), BeforeValidator(_json_integer)],
            "ByteSize": Annotated[ByteSize, BeforeValidator(_whole)],
        },
    ),
    Rule("unknown arguments", arguments_schema=lambda schema: {**schema, "additionalProperties": False}),
    Rule(
        "text", {"Union": _TextFirst, **{name: Annotated[kind, _Converted()] for name, kind in _READ_FROM_TEXT.items()}}
    ),
    Rule(
        "decimals",
        {"Decimal": Annotated[_checked(Decimal, _is_number), PlainSerializer(_json_number, when_used="json")]},
    ),
    Rule(
        "ISO 8601",
        {
            "date": _checked(date, _matching(_DAY)),
            "datetime": _checked(datetime, _matching(_MOMENT)),
            "AwareDatetime": _checked(AwareDatetime, _matching(_MOMENT)),
            "NaiveDatetime": _checked(NaiveDatetime, _matching(_MOMENT)),
        },
    ),
    Rule(
        "base64",
        {
            "bytes": Annotated[
                bytes,
                BeforeValidator(_from_base64),
                PlainSerializer(lambda value: b64encode(value).decode(), when_used="json"),
            ],
            "Sequence": list,  # pydantic's serializer of a Sequence also takes bytes, and writes them as text
        },
        schema=_with_base64,
    ),
    Rule(
        "choices",
        {
            "Literal": _ChoiceOfLiteral,
            "Level": Annotated[_choice(Level, Level), _Converted()],
            "Mixed": Annotated[_choice(Mixed, Mixed), _Converted()],
            "Access": Annotated[_choice(Access, map(Access, range(4))), _Converted()],
        },
    ),
    Rule("iterables", {"Iterable": list}),
    Rule("named tuples", {"named_tuple_schema": classmethod(_named_tuple_schema)}, schema=_with_arrays),
    Rule("other forms", schema=_with_other_forms),
    Rule("formats", schema=_with_checked_formats),
    Rule("unsaid", schema=_with_unsaid),
    Rule("Unicode", schema=_with_unicode),
)
