"""JSON schemas of types, as clients read them.

How it works: pydantic generates the schema from a core schema. `_Generator` changes parts of it to what funcmcp reads
and writes, adds descriptions of fields, and leaves out generated titles. `arranged` then puts the definition in place
of each reference, because many clients do not follow references, and sorts the keywords. Definitions that refer to
themselves stay in ``$defs``. If the result would be too large, all references stay.

`arranged` also keeps to what clients and the APIs of models accept: no boolean ``additionalProperties``, no ``oneOf``,
no list of types, no ``allOf`` where one schema can say the same, no array without ``items``, no empty ``description``,
no unknown ``format``, only patterns of ECMA-262, and only defaults that fit their schemas. The server still checks what
the schema does not say for this reason. `LeftOut` lists such formats and patterns.

Source: 2026-07-28 "server/tools, Tool"; JSON Schema 2020-12.
"""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import fields, is_dataclass
from decimal import Decimal
from enum import Enum, Flag
from fractions import Fraction
from inspect import cleandoc
from typing import TYPE_CHECKING, Any

from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.json_schema import GenerateJsonSchema, JsonRef
from pydantic_core import PydanticSerializationError

from funcmcp._authoring.schemas.argument_type_checks import members_of
from funcmcp._authoring.schemas.bytes_encodings import base64_length, encoding_of
from funcmcp._authoring.schemas.ecma_patterns import UntranslatableError, ecma_pattern
from funcmcp._authoring.schemas.pydantic_choices import choices_schema, flag_schema
from funcmcp._authoring.schemas.python_values import is_of_library, python_value
from funcmcp._authoring.schemas.schema_defaults import fits
from funcmcp._authoring.schemas.schema_forms import combined, without_type_list
from funcmcp._authoring.schemas.string_formats import RESULT_FORMATS, WRITTEN_FORMATS
from funcmcp._authoring.signatures.choices import distinct_json, json_value
from funcmcp._authoring.signatures.field_descriptions import describe_fields
from funcmcp._objects.mappings import without
from funcmcp._protocol.codec import encode
from funcmcp._server.catalog.features import LeftOut
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import TypeAlias

    from pydantic.json_schema import JsonSchemaMode
    from pydantic_core import core_schema

    _Path: TypeAlias = tuple[str | int, ...]

_FIRST = (
    *("$schema", "$id", "$ref", "type", "title", "description", "format", "enum", "const"),
    *("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern"),
    *("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "properties", "required", "additionalProperties"),
)
_LAST = ("default", "examples", "x-mcp-header", "$defs")
_RANK = {
    **{keyword: rank for rank, keyword in enumerate(_FIRST)},
    **{keyword: 1000 + rank for rank, keyword in enumerate(_LAST)},
}
_BETWEEN = 500
_MAPS = frozenset({"properties", "patternProperties", "$defs", "dependentSchemas"})
_DATA = frozenset({"const", "default", "enum", "examples", "required", "x-mcp-header"})
FORMATS = frozenset(
    {
        *("date", "date-time", "duration", "email", "hostname", "idn-email", "idn-hostname", "ipv4", "ipv6", "iri"),
        *("iri-reference", "json-pointer", "regex", "relative-json-pointer", "time", "uri", "uri-reference"),
        *("uri-template", "uuid"),
    }
)
"""The formats of JSON Schema 2020-12."""

_UUID_VERSION = re.compile(r"uuid[1-8]")
_NAIVE_DATETIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?$"
_MAX_EXPANSIONS = 1000
"""The maximum number of references that are replaced. The schema of models that refer to one another many times would
otherwise grow without bounds."""


def json_schema(schema: Any, mode: JsonSchemaMode, place: str, left_out: list[LeftOut] | None = None) -> dict[str, Any]:
    """Return the JSON schema of a core schema.

    Args:
        schema: The core schema.
        mode: ``"validation"`` for arguments, ``"serialization"`` for results.
        place: The type's place, for errors, such as "The parameter 'orders' of get_order".
        left_out: Gets what the schema does not say.

    Raises:
        RegistrationError: JSON can't carry a type in it.
    """
    return arranged(_generated(_Generator, schema, mode, place), left_out)


def complete_schema(schema: Any, place: str, *, closed: bool) -> dict[str, Any]:
    """Return the JSON schema of results with what clients do not get to see, for the server's own check.

    Args:
        schema: The core schema.
        place: The type's place, for errors.
        closed: Whether objects must have all members that their types have, and no others.

    Raises:
        RegistrationError: JSON can't carry a type in it.
    """
    generated = _generated(_ClosedGenerator if closed else _Generator, schema, "serialization", place)
    definitions = generated.get("$defs", {})
    return _CompleteArranger(definitions, set(definitions)).root(generated)


def _generated(generator: type[_Generator], schema: Any, mode: JsonSchemaMode, place: str) -> dict[str, Any]:
    try:
        return generator(by_alias=True).generate(schema, mode)
    except PydanticInvalidForJsonSchema as error:
        raise RegistrationError(f"{place} has a type that JSON can't carry ({error.message}).") from None


def encoded_default(value: Any) -> Any:
    """Return a default value in JSON form. Raise ValueError if JSON can't carry it."""
    return _Generator().encode_default(value)


def without_null(
    schema: dict[str, Any], definition: Callable[[str], dict[str, Any] | None] = lambda _: None
) -> dict[str, Any]:
    """Return a schema without null as one of its alternatives, for an argument whose absence means null.

    Args:
        schema: The schema.
        definition: Returns the definition of a reference, or None.
    """
    siblings = without(schema, "$ref", "anyOf", "enum")
    if "$ref" in schema:
        target = definition(schema["$ref"])
        changed = target if target is None else without_null(target, definition)
        return schema if changed is target else {**(changed or {}), **siblings}
    if any(choice is None for choice in schema.get("enum", ())):
        return {**choices_schema([choice for choice in schema["enum"] if choice is not None]), **siblings}
    alternatives = schema.get("anyOf")
    if not isinstance(alternatives, list):
        return schema
    remaining = [without_null(member, definition) for member in alternatives if member.get("type") != "null"]
    if remaining == alternatives or not remaining:
        return schema
    if len(remaining) == 1:
        return {**remaining[0], **siblings}
    return {"anyOf": remaining, **siblings}


def arranged(
    schema: dict[str, Any], left_out: list[LeftOut] | None = None, *, max_expansions: int = _MAX_EXPANSIONS
) -> dict[str, Any]:
    """Return a schema with definitions in place of references, and with sorted keywords, as clients accept it.

    Args:
        schema: The schema.
        left_out: Gets what the returned schema does not say.
        max_expansions: The number of references that are replaced. If there are more, all of them stay.
    """
    definitions: dict[str, Any] = schema.get("$defs", {})
    recursive = {name for name in definitions if name in _reachable(name, definitions)}
    try:
        arranger = _Arranger(definitions, recursive, max_expansions)
        result = arranger.root(schema)
    except OverflowError:
        arranger = _Arranger(definitions, set(definitions))
        result = arranger.root(schema)
    if left_out is not None:
        left_out += arranger.left_out
    return result


class _Arranger:
    """Replaces the references of one schema, sorts its keywords, and makes them acceptable to clients.

    Args:
        definitions: The definitions by name.
        preserved: The names of definitions to which references stay.
        max_expansions: The number of references that are replaced. More raise OverflowError.

    Attributes:
        left_out: What the arranged schema does not say.
    """

    _for_clients = True

    def __init__(self, definitions: dict[str, Any], preserved: set[str], max_expansions: int = _MAX_EXPANSIONS) -> None:
        self._definitions = definitions
        self._preserved = preserved
        self._remaining_expansions = max_expansions
        self._used: set[str] = set()
        self.left_out: list[LeftOut] = []

    def root(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the arranged schema. A reference at its root is replaced even if its definition is recursive."""
        schema = without(schema, "$defs")
        name = _target(schema)
        if name is not None:
            schema = {**self._definitions[name], **without(schema, "$ref")}
        result = self._node(schema, ())
        definitions: dict[str, Any] = {}
        while missing := sorted(self._used - definitions.keys()):
            for name in missing:
                definitions[name] = self._node(self._definitions[name], ("$defs", name))
        return {**result, "$defs": dict(sorted(definitions.items()))} if definitions else result

    def _node(self, node: Any, path: _Path) -> Any:
        if isinstance(node, list):
            return [self._node(member, (*path, index)) for index, member in enumerate(node)]
        if not isinstance(node, dict):
            return float_or_int(node)
        name = _target(node)
        if name is not None and name not in self._preserved:
            return self._node(self._replaced(node), path)
        node = self._merged(node)
        name = _target(node)  # an allOf of one reference is that reference
        if name is not None:
            self._used.add(name)
        node = self._accepted(without_type_list(node), path)
        keywords = sorted(node, key=lambda keyword: _RANK.get(keyword, _BETWEEN))
        result = {keyword: self._keyword(keyword, node[keyword], (*path, keyword)) for keyword in keywords}
        if "default" in result and not fits(result["default"], result, self._definitions):
            del result["default"]
        return result

    def _merged(self, node: dict[str, Any]) -> dict[str, Any]:
        """Return a node without ``allOf`` where that is possible."""
        while isinstance(node.get("allOf"), list):
            members = map(self._replaced, node["allOf"])
            siblings = without(node, "allOf")
            merged = combined([*members, siblings])
            if merged is None:
                break
            node = merged
        return node

    def _replaced(self, node: Any) -> Any:
        """Return the definition that a node refers to, with the node's other keywords; other nodes unchanged."""
        name = _target(node)
        if name is None or name in self._preserved:
            return node
        self._remaining_expansions -= 1
        if self._remaining_expansions < 0:
            raise OverflowError
        siblings = without(node, "$ref")
        return self._replaced({**self._definitions[name], **siblings})

    def _accepted(self, node: dict[str, Any], path: _Path) -> dict[str, Any]:
        """Return a copy of a node with the keywords that clients accept."""
        node = dict(node)
        if isinstance(node.get("additionalProperties"), bool):
            del node["additionalProperties"]
        if not node.get("description", True):
            del node["description"]
        if "oneOf" in node and "anyOf" not in node:
            node["anyOf"] = node.pop("oneOf")
        if "format" in node:
            self._set_format(node, path)
        if "pattern" in node:
            pattern = self._pattern(node.pop("pattern"), (*path, "pattern"))
            if pattern is not None:
                node["pattern"] = pattern
        if "patternProperties" in node:
            self._set_pattern_properties(node, path)
        if node.get("type") == "array" and "items" not in node:
            node["items"] = _items(node)
        return node

    def _set_format(self, node: dict[str, Any], path: _Path) -> None:
        """Remove a format that JSON Schema does not have. Base64 is an encoding in JSON Schema."""
        name = node["format"]
        if isinstance(name, str) and _UUID_VERSION.fullmatch(name):
            node["format"] = "uuid"
        elif name in {"base64", "base64url"}:
            node["contentEncoding"] = node.pop("format")
        elif name not in FORMATS:
            del node["format"]
            if name in WRITTEN_FORMATS or name in RESULT_FORMATS:
                return  # the type does not promise more than its values have
            self.left_out.append(LeftOut((*path, "format"), name, "JSON Schema does not have this format"))

    def _set_pattern_properties(self, node: dict[str, Any], path: _Path) -> None:
        """Translate the patterns of members' names. Remove those that can't be translated."""
        members: dict[str, Any] = {}
        for source, schema in node.pop("patternProperties").items():
            pattern = self._pattern(source, (*path, "patternProperties", source))
            if pattern is not None:
                members[pattern] = schema
        if members:
            node["patternProperties"] = members

    def _pattern(self, pattern: str, path: _Path) -> str | None:
        """Return a pattern in the dialect of JSON Schema, or None if it can't be translated."""
        try:
            return ecma_pattern(pattern, for_clients=self._for_clients)
        except UntranslatableError as error:
            self.left_out.append(LeftOut(path, pattern, f"ECMA-262 does not have {error}"))
            return None

    def _keyword(self, keyword: str, value: Any, path: _Path) -> Any:
        if keyword in _DATA:
            return value
        if keyword in _MAPS:
            return {name: self._node(member, (*path, name)) for name, member in value.items()}
        return self._node(value, path)


class _CompleteArranger(_Arranger):
    """Leaves in a schema what only the server checks: formats that JSON Schema does not have, and closed objects.

    It removes ``uniqueItems``. Sets have no equal items, and the check of 20,000 large integers takes minutes.
    """

    _for_clients = False

    def _accepted(self, node: dict[str, Any], path: _Path) -> dict[str, Any]:
        complete = super()._accepted(node, path)
        complete.pop("uniqueItems", None)
        if node.get("additionalProperties") is False:
            complete["additionalProperties"] = False
        if node.get("format") in RESULT_FORMATS:
            complete["format"] = node["format"]
        if node.get("format") in WRITTEN_FORMATS:
            complete["pattern"] = WRITTEN_FORMATS[node["format"]]
        return complete


def _items(array: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of all items of an array that describes only the first ones, or none."""
    members = array.get("prefixItems", [])
    if array.get("maxItems", len(members) + 1) > len(members):
        return {}  # further items may be anything
    return _any_of(members)


def _any_of(members: list[Any]) -> dict[str, Any]:
    """Return the schema of values that fit one of several schemas."""
    distinct: list[Any] = []
    for member in members:
        if member not in distinct:
            distinct.append(member)
    if not distinct or {} in distinct:
        return {}
    if len(distinct) == 1:
        return dict(distinct[0])
    return {"anyOf": distinct}


def _target(node: Any) -> str | None:
    reference = node.get("$ref") if isinstance(node, dict) else None
    return reference.removeprefix("#/$defs/") if isinstance(reference, str) else None


def _reachable(name: str, definitions: dict[str, Any]) -> set[str]:
    """Return the names of the definitions that a definition refers to, directly or not."""
    reached: set[str] = set()
    pending = [name]
    while pending:
        new = set(_references(definitions[pending.pop()])) - reached
        reached |= new
        pending += new
    return reached


def _references(node: Any) -> Iterator[str]:
    name = _target(node)
    if name is not None:
        yield name
    members: Iterable[Any] = ()
    if isinstance(node, dict):
        members = node.values()
    elif isinstance(node, list):
        members = node
    for member in members:
        yield from _references(member)


def float_or_int(value: Any) -> Any:
    """Return a decimal as an int if it has no fraction, and otherwise as a float; other values unchanged."""
    if not isinstance(value, Decimal):
        return value
    if value.is_finite() and value == value.to_integral_value():
        return int(value)
    return float(value)


def _without_derived_fields(value: Any) -> Any:
    """Return an object of a dataclass as a dict of its constructor's arguments; other values unchanged."""
    if not is_dataclass(value) or isinstance(value, type):
        return value
    if hasattr(value, "__pydantic_serializer__") and all(field.init for field in fields(value)):
        return value  # pydantic knows the aliases of the fields
    return {field.name: _without_derived_fields(getattr(value, field.name)) for field in fields(value) if field.init}


class _Generator(GenerateJsonSchema):
    """pydantic's generator without generated titles, and with the types as funcmcp reads and writes them."""

    def build_schema_type_to_method(self) -> Any:
        # pydantic before 2.14 has no schema for named tuples
        return {**super().build_schema_type_to_method(), "named-tuple": self.named_tuple_schema}

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's signature
        return False

    def emit_warning(self, kind: Any, detail: str) -> None:
        """Ignore that JSON can't carry a default, which is left out."""

    def sort(self, value: Any, parent_key: str | None = None) -> Any:  # noqa: ARG002 - `arranged` sorts
        return value

    def encode_default(self, dft: Any) -> Any:
        if is_of_library(type(dft)):
            dft = python_value(dft)
        try:
            if isinstance(dft, bytes):
                encoded = b64encode(dft).decode()
            elif isinstance(dft, Enum):
                encoded = json_value(dft)
            else:
                encoded = super().encode_default(float_or_int(_without_derived_fields(dft)))
            encode(encoded)
        except ValueError as error:  # NaN or Infinity, or bytes in a list that are not text
            raise PydanticSerializationError(str(error)) from None
        return encoded

    def field_is_present(self, field: Any) -> bool:
        if self.mode == "validation" and field.get("init") is False:
            return False  # a field of a dataclass that is not an argument
        return super().field_is_present(field)

    def get_default_value(self, schema: core_schema.WithDefaultSchema) -> Any:
        default = super().get_default_value(schema)
        if isinstance(default, bytes):
            for node in members_of(dict(schema)):
                if node["type"] == "bytes":
                    return encoding_of(node).write(default)
        return default

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> dict[str, Any]:
        result = super().default_schema(schema)
        if "default" in result and result["default"] is None:
            del result["default"]
            if self.mode == "validation":
                return without_null(result, lambda reference: self.get_schema_from_definitions(JsonRef(reference)))
        return result

    def set_schema(self, schema: core_schema.SetSchema) -> dict[str, Any]:
        return self._accepting_duplicates(super().set_schema(schema))

    def frozenset_schema(self, schema: core_schema.FrozenSetSchema) -> dict[str, Any]:
        return self._accepting_duplicates(super().frozenset_schema(schema))

    def _accepting_duplicates(self, result: dict[str, Any]) -> dict[str, Any]:
        """Remove ``uniqueItems`` from arguments: equal items become one."""
        if self.mode == "validation":
            del result["uniqueItems"]
        return result

    def float_schema(self, schema: core_schema.FloatSchema) -> dict[str, Any]:
        return self._without_fraction(super().float_schema(schema))

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> dict[str, Any]:
        result: dict[str, Any] = {"type": "number"}
        self.update_with_validations(result, schema, self.ValidationsMapping.numeric)
        return self._without_fraction(result)

    def _without_fraction(self, result: dict[str, Any]) -> dict[str, Any]:
        """Remove a fraction under ``multipleOf`` for which validators round, as they do for 0.01 and not for 0.5."""
        denominator = Fraction(str(result.get("multipleOf", 1))).denominator
        is_exact = denominator & (denominator - 1) == 0  # a power of two
        if not is_exact:
            del result["multipleOf"]
        return result

    def bytes_schema(self, schema: core_schema.BytesSchema) -> dict[str, Any]:
        result = super().bytes_schema(schema)
        result.pop("format", None)  # "binary", which is a format of OpenAPI for bytes outside JSON
        for keyword in {"maxLength", "minLength"} & result.keys():
            result[keyword] = base64_length(result[keyword])
        return result

    def datetime_schema(self, schema: core_schema.DatetimeSchema) -> dict[str, Any]:
        result = self._as_written(super().datetime_schema(schema), schema)
        if self.mode == "validation" and schema.get("tz_constraint") == "naive":
            result.pop("format")  # it requires an offset
            result["pattern"] = _NAIVE_DATETIME
        return result

    def time_schema(self, schema: core_schema.TimeSchema) -> dict[str, Any]:
        return self._as_written(super().time_schema(schema), schema)

    def timedelta_schema(self, schema: core_schema.TimedeltaSchema) -> dict[str, Any]:
        return self._as_written(super().timedelta_schema(schema), schema)

    def _as_written(self, result: dict[str, Any], schema: Any) -> dict[str, Any]:
        """Replace the format in results, unless the type guarantees it.

        The formats of dates with times and of times require an offset, and that of durations has no fractions.
        """
        is_aware = schema.get("tz_constraint", "naive") != "naive"
        if self.mode == "serialization" and "format" in result and not is_aware:
            result["format"] = f"written-{schema['type']}"
        return result

    def url_schema(self, schema: core_schema.UrlSchema) -> dict[str, Any]:
        result = super().url_schema(schema)
        if self.mode == "serialization":
            del result["format"]  # the path and the query of a URL may have characters that a URI does not have
        return result

    def dict_schema(self, schema: core_schema.DictSchema) -> dict[str, Any]:
        result = super().dict_schema(schema)
        if "propertyNames" in result and not self._describes_names(result["propertyNames"]):
            del result["propertyNames"]  # it describes a number, but a name is a string
        return result

    def _describes_names(self, schema: Any) -> bool:
        """Return whether all values of a schema are strings."""
        if "$ref" in schema:
            schema = self.get_schema_from_definitions(schema["$ref"]) or {}
        if "type" in schema:
            return bool(schema["type"] == "string")
        if "enum" in schema:
            return all(isinstance(value, str) for value in schema["enum"])
        return all(map(self._describes_names, schema.get("anyOf", ())))

    def tagged_union_schema(self, schema: core_schema.TaggedUnionSchema) -> dict[str, Any]:
        members: list[dict[str, Any]] = []
        for choice in schema["choices"].values():
            member = self.generate_inner(choice)
            if member not in members:
                members.append(member)
        return _any_of(members)

    def model_schema(self, schema: core_schema.ModelSchema) -> dict[str, Any]:
        return self._documented(super().model_schema(schema), schema)

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> dict[str, Any]:
        return self._documented(super().dataclass_schema(schema), schema)

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> dict[str, Any]:
        return self._documented(super().typed_dict_schema(schema), schema)

    def _documented(self, result: dict[str, Any], schema: Any) -> dict[str, Any]:
        """Add descriptions of a class's fields, and remove a title that is only the class's name."""
        cls = schema.get("cls")
        node = schema.get("schema", schema)
        while "fields" not in node and "schema" in node:
            node = node["schema"]
        fields = node.get("fields", ())
        named_fields = fields.items() if isinstance(fields, dict) else ((field["name"], field) for field in fields)
        if isinstance(cls, type) and not schema.get("root_model"):
            describe_fields(result, cls, {name: self._get_alias_name(field, name) for name, field in named_fields})
        return _untitled(result, cls)

    def enum_schema(self, schema: core_schema.EnumSchema) -> dict[str, Any]:
        kind = schema["cls"]
        if issubclass(kind, Flag):
            result = flag_schema(kind, in_results=self.mode == "serialization")
        else:
            result = choices_schema(distinct_json(schema["members"]))
        if kind.__doc__:
            result["description"] = cleandoc(kind.__doc__)
        return result

    def literal_schema(self, schema: core_schema.LiteralSchema) -> dict[str, Any]:
        return choices_schema(distinct_json(schema["expected"]))

    def named_tuple_schema(self, schema: Any) -> dict[str, Any]:
        fields = schema["fields"]
        result: dict[str, Any] = {
            "type": "object",
            "properties": {field["name"]: self.generate_inner(field["schema"]) for field in fields},
        }
        required = [field["name"] for field in fields if field["schema"]["type"] != "default"]
        return {**result, "required": required} if required else result


class _ClosedGenerator(_Generator):
    """Generates schemas whose objects have the members that their types have: all of them and no others."""

    def field_is_required(self, field: Any, total: bool) -> bool:  # noqa: FBT001 - pydantic's signature
        return field["type"] != "typed-dict-field" or super().field_is_required(field, total)

    def _documented(self, result: dict[str, Any], schema: Any) -> dict[str, Any]:
        result = super()._documented(result, schema)
        if result.get("type") == "object":
            result.setdefault("additionalProperties", False)
        return result

    def named_tuple_schema(self, schema: Any) -> dict[str, Any]:
        result = super().named_tuple_schema(schema)
        return {**result, "required": list(result["properties"]), "additionalProperties": False}


def _untitled(schema: dict[str, Any], cls: Any) -> dict[str, Any]:
    """Remove a title that is only the class's name."""
    if schema.get("title") == getattr(cls, "__name__", None):
        schema.pop("title", None)
    return schema
