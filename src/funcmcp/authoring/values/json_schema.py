"""JSON schemas of types, as clients read them.

How it works: pydantic generates the schema from a core schema. `_Generator` changes parts of it to what funcmcp reads
and writes, adds descriptions of fields, and leaves out generated titles. `arranged` then puts the definition in place
of each reference, because many clients do not follow references, and sorts the keywords. Definitions that refer to
themselves stay in ``$defs``. If the result would be too large, all references stay.

Source: 2026-07-28 "server/tools, Tool"; JSON Schema 2020-12.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import fields, is_dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError

from funcmcp.authoring.signatures.field_descriptions import describe_fields
from funcmcp.protocol.codec import encode
from funcmcp.server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pydantic.json_schema import JsonSchemaMode
    from pydantic_core import core_schema

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
_MAX_EXPANSIONS = 1000
"""The maximum number of references that are replaced. The schema of models that refer to one another many times would
otherwise grow without bounds."""


def json_schema(schema: Any, mode: JsonSchemaMode, place: str) -> dict[str, Any]:
    """Return the JSON schema of a core schema.

    Args:
        schema: The core schema.
        mode: ``"validation"`` for arguments, ``"serialization"`` for results.
        place: The type's place, for errors, such as "The parameter 'orders' of get_order".

    Raises:
        RegistrationError: JSON can't carry a type in it.
    """
    try:
        generated = _Generator(by_alias=True).generate(schema, mode)
    except PydanticInvalidForJsonSchema as error:
        raise RegistrationError(f"{place} has a type that JSON can't carry ({error.message}).") from None
    return arranged(generated)


def encoded_default(value: Any) -> Any:
    """Return a default value in JSON form. Raise ValueError if JSON can't carry it."""
    return _Generator().encode_default(value)


def arranged(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with definitions in place of references, and with sorted keywords."""
    definitions: dict[str, Any] = schema.get("$defs", {})
    recursive = {name for name in definitions if name in _reachable(name, definitions)}
    try:
        return _Arranger(definitions, recursive).root(schema)
    except OverflowError:
        return _Arranger(definitions, set(definitions)).root(schema)


class _Arranger:
    """Replaces the references of one schema, and sorts its keywords.

    Args:
        definitions: The definitions by name.
        preserved: The names of definitions to which references stay.
    """

    def __init__(self, definitions: dict[str, Any], preserved: set[str]) -> None:
        self._definitions = definitions
        self._preserved = preserved
        self._remaining_expansions = _MAX_EXPANSIONS
        self._used: set[str] = set()

    def root(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the arranged schema. A reference at its root is replaced even if its definition is recursive."""
        schema = {key: value for key, value in schema.items() if key != "$defs"}
        name = _target(schema)
        if name is not None:
            schema = {**self._definitions[name], **{key: value for key, value in schema.items() if key != "$ref"}}
        result = self._node(schema)
        definitions: dict[str, Any] = {}
        while missing := sorted(self._used - definitions.keys()):
            for name in missing:
                definitions[name] = self._node(self._definitions[name])
        return {**result, "$defs": dict(sorted(definitions.items()))} if definitions else result

    def _node(self, node: Any) -> Any:
        if isinstance(node, list):
            return [self._node(member) for member in node]
        if not isinstance(node, dict):
            return float_or_int(node)
        name = _target(node)
        if name is not None:
            if name in self._preserved:
                self._used.add(name)
            else:
                self._remaining_expansions -= 1
                if self._remaining_expansions < 0:
                    raise OverflowError
                siblings = {key: value for key, value in node.items() if key != "$ref"}
                return self._node({**self._definitions[name], **siblings})
        keywords = sorted(node, key=lambda keyword: _RANK.get(keyword, _BETWEEN))
        return {keyword: self._keyword(keyword, node[keyword]) for keyword in keywords}

    def _keyword(self, keyword: str, value: Any) -> Any:
        if keyword in _DATA:
            return value
        if keyword in _MAPS:
            return {name: self._node(member) for name, member in value.items()}
        return self._node(value)


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

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's signature
        return False

    def emit_warning(self, kind: Any, detail: str) -> None:
        """Ignore that JSON can't carry a default, which is left out."""

    def sort(self, value: Any, parent_key: str | None = None) -> Any:  # noqa: ARG002 - `arranged` sorts
        return value

    def encode_default(self, dft: Any) -> Any:
        if isinstance(dft, bytes):
            encoded = b64encode(dft).decode()
        else:
            encoded = super().encode_default(float_or_int(_without_derived_fields(dft)))
        try:
            encode(encoded)
        except ValueError as error:  # NaN or Infinity
            raise PydanticSerializationError(str(error)) from None
        return encoded

    def field_is_present(self, field: Any) -> bool:
        if self.mode == "validation" and field.get("init") is False:
            return False  # a field of a dataclass that is not an argument
        return super().field_is_present(field)

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> dict[str, Any]:
        result = super().default_schema(schema)
        if "default" in result and result["default"] is None:
            del result["default"]
        return result

    def nullable_schema(self, schema: core_schema.NullableSchema) -> dict[str, Any]:
        if self.mode == "validation":
            return self.generate_inner(schema["schema"])
        return super().nullable_schema(schema)

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> dict[str, Any]:
        result: dict[str, Any] = {"type": "number"}
        self.update_with_validations(result, schema, self.ValidationsMapping.numeric)
        return result

    def bytes_schema(self, schema: core_schema.BytesSchema) -> dict[str, Any]:
        result = super().bytes_schema(schema)
        result.pop("format", None)  # "binary", which is a format of OpenAPI for bytes outside JSON
        return result

    def dict_schema(self, schema: core_schema.DictSchema) -> dict[str, Any]:
        result = super().dict_schema(schema)
        key_schema = result.get("propertyNames", {})
        if "$ref" in key_schema:
            key_schema = self.get_schema_from_definitions(key_schema["$ref"])
        if key_schema and key_schema.get("type", "string") != "string":
            del result["propertyNames"]  # it describes a number, but a name is a string
        return result

    def tagged_union_schema(self, schema: core_schema.TaggedUnionSchema) -> dict[str, Any]:
        result = super().tagged_union_schema(schema)
        result.pop("discriminator", None)  # a keyword of OpenAPI, whose references would not exist
        return result

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
        if isinstance(cls, type):
            describe_fields(result, cls, {name: self._get_alias_name(field, name) for name, field in named_fields})
        return _untitled(result, cls)

    def enum_schema(self, schema: core_schema.EnumSchema) -> dict[str, Any]:
        return _untitled(super().enum_schema(schema), schema["cls"])

    def named_tuple_schema(self, schema: Any) -> dict[str, Any]:
        fields = schema["fields"]
        result: dict[str, Any] = {
            "type": "object",
            "properties": {field["name"]: self.generate_inner(field["schema"]) for field in fields},
        }
        required = [field["name"] for field in fields if field["schema"]["type"] != "default"]
        return {**result, "required": required} if required else result


def _untitled(schema: dict[str, Any], cls: Any) -> dict[str, Any]:
    """Remove a title that is only the class's name."""
    if schema.get("title") == getattr(cls, "__name__", None):
        schema.pop("title", None)
    return schema
