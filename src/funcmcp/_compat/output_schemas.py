"""Output schemas of tools as FastMCP infers them from return annotations.

How it works: a type that is sent as content, or of which nothing is known, has no schema. Another one gets the schema
that pydantic writes for it. A schema that is not one of objects becomes the schema of an object with the member
``result``, and `WRAPPED` marks it. Generated titles and unused definitions are left out.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

from pydantic import GetPydanticSchema, TypeAdapter
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema

from funcmcp._authoring.results.content import Content, ToolResult
from funcmcp._authoring.results.sdk_results import is_sdk_type
from funcmcp._authoring.schemas.python_values import is_of_library, python_schema
from funcmcp._authoring.signatures.signature import EMPTY
from funcmcp._compat.input_required import is_input_required_type
from funcmcp._compat.typed_dicts import readable
from funcmcp._objects.mappings import only, without

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import core_schema

WRAPPED = "x-fastmcp-wrap-result"
"""The member that marks a schema whose values are in the member ``result`` of an object."""

_SDK_CONTENT = frozenset(
    {"AudioContent", "CallToolResult", "EmbeddedResource", "ImageContent", "ResourceLink", "TextContent"}
)
_HELPERS = frozenset({"Audio", "File", "Image"})
_SEQUENCES = (list, tuple, Sequence)
_SCHEMAS_BY_NAME = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
_SCHEMAS = frozenset(
    {
        *("additionalProperties", "allOf", "anyOf", "contains", "contentSchema", "else", "if", "items", "not", "oneOf"),
        *("prefixItems", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
    }
)
"""Members of a schema that are schemas, or lists of them."""

_STRUCTURE = frozenset({"$ref", "allOf", "anyOf", "items", "oneOf", "properties", "required", "type"})
_METADATA = frozenset({"deprecated", "description", "readOnly", "title", "writeOnly"})


def output_schema_of(hint: Any) -> dict[str, Any] | None:
    """Return the output schema for a return annotation; None if there is none.

    Args:
        hint: The annotation, or EMPTY.
    """
    if hint is EMPTY or hint is None or hint is Any or hint is ...:
        return None
    hint = readable(with_data_types(without_questions(hint)))
    if _is_content(hint):
        return None
    try:
        schema = _schema_of(hint)
    except (PydanticUserError, NameError):
        return None
    if is_of_objects(schema):
        return compressed(schema)
    inner = without(schema, "$defs")
    wrapped = {"type": "object", "properties": {"result": inner}, "required": ["result"], **only(schema, ("$defs",))}
    return {**compressed(wrapped), WRAPPED: True}


def with_data_types(hint: Any) -> Any:
    """Return a type in which classes of other libraries are those of the data that their objects become."""
    if is_of_library(hint) and (schema := python_schema(get_origin(hint) or hint)) is not None:
        return Annotated[Any, GetPydanticSchema(lambda _kind, _handler: schema)]
    if get_origin(hint) in {Union, UnionType}:
        return Union[tuple(map(with_data_types, get_args(hint)))]  # noqa: UP007 - the members are in a tuple
    return hint


def _schema_of(hint: Any) -> dict[str, Any]:
    adapter: TypeAdapter[Any] = TypeAdapter(hint)
    return adapter.json_schema(mode="serialization", by_alias=False, schema_generator=_Generator)


class _Generator(GenerateJsonSchema):
    """Names the members of each model as its own configuration does when it is written."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Return the schema of a model."""
        by_alias = schema["cls"].model_config.get("serialize_by_alias")
        return self._named(bool(by_alias), lambda: super(_Generator, self).model_schema(schema))

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        """Return the schema of a dataclass."""
        by_alias = schema.get("config", {}).get("serialize_by_alias")
        return self._named(bool(by_alias), lambda: super(_Generator, self).dataclass_schema(schema))

    def _named(self, by_alias: bool, generate: Callable[[], JsonSchemaValue]) -> JsonSchemaValue:  # noqa: FBT001 - it is assigned
        outer = self.by_alias
        self.by_alias = by_alias
        try:
            return generate()
        finally:
            self.by_alias = outer


def is_of_objects(schema: dict[str, Any]) -> bool:
    """Return whether the values of a schema are objects, or null beside objects."""
    seen: set[str] = set()
    node: Any = schema
    while isinstance(node, dict):
        kind = node.get("type")
        if isinstance(kind, list):
            return [name for name in kind if name != "null"] == ["object"]
        if kind is not None:
            return bool(kind == "object")
        if "properties" in node:
            return True
        reference = node.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/") or reference in seen:
            return False
        seen.add(reference)
        node = definition_at(schema, reference)
    return False


def definition_at(schema: dict[str, Any], reference: str) -> Any:
    """Return the part of a schema that a local reference names; None if there is none."""
    node: Any = schema
    for segment in reference.removeprefix("#/").split("/"):
        if not isinstance(node, dict):
            return None
        node = node.get(segment.replace("~1", "/").replace("~0", "~"))
    return node


def compressed(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without generated titles and unused definitions, and without a reference at its root."""
    reference = schema.get("$ref")
    if isinstance(reference, str) and "type" not in schema:
        target = definition_at(schema, reference)
        if isinstance(target, dict) and target is not schema:
            schema = {**target, **without(schema, "$ref")}
    cleaned: dict[str, Any] = _without_titles(schema)
    return without_unused_definitions(cleaned)


def _without_titles(node: Any) -> Any:
    if isinstance(node, list):
        return [_without_titles(item) for item in node]
    if not isinstance(node, dict):
        return node
    has_title = isinstance(node.get("title"), str) and (node.keys() & _STRUCTURE or node.keys() <= _METADATA)
    cleaned: dict[str, Any] = {}
    for name, value in node.items():
        if name == "title" and has_title:
            continue
        if name in _SCHEMAS_BY_NAME and isinstance(value, dict):
            cleaned[name] = {key: _without_titles(member) for key, member in value.items()}
        else:
            cleaned[name] = _without_titles(value) if name in _SCHEMAS else value
    return cleaned


def without_unused_definitions(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with those definitions only that it refers to."""
    definitions = schema.get("$defs")
    if not definitions:
        return without(schema, "$defs")
    used: set[str] = set()
    waiting = [without(schema, "$defs")]
    while waiting:
        names = _references(waiting.pop()) - used
        used |= names
        waiting += [definitions[name] for name in names if name in definitions]
    remaining = {name: definition for name, definition in definitions.items() if name in used}
    return {**schema, "$defs": remaining} if remaining else without(schema, "$defs")


def _references(node: Any) -> set[str]:
    """Return the names of the definitions that a schema refers to."""
    if isinstance(node, list):
        return set().union(*map(_references, node))
    if not isinstance(node, dict):
        return set()
    names = set().union(*map(_references, node.values()))
    reference = node.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/$defs/"):
        names.add(reference.split("/")[2].replace("~1", "/").replace("~0", "~"))
    return names


def without_questions(hint: Any) -> Any:
    """Return a return annotation without ``InputRequiredResult``, which is a question to the client and not a value."""
    hint = _aliased(hint)
    origin = get_origin(hint)
    if origin is Annotated:
        inner, *marks = get_args(hint)
        return Annotated[(without_questions(inner), *marks)]
    if origin is not Union and origin is not UnionType:
        return hint
    members = [without_questions(member) for member in get_args(hint) if not is_input_required_type(_bare(member))]
    return Union[tuple(members)] if members else hint  # noqa: UP007 - the members are in a list


def _aliased(hint: Any) -> Any:
    """Return the type that a name of ``type X = ...`` stands for."""
    while hasattr(hint, "__value__"):
        hint = hint.__value__
    return hint


def _bare(hint: Any) -> Any:
    hint = _aliased(hint)
    return _aliased(get_args(hint)[0]) if get_origin(hint) is Annotated else hint


def _is_content(hint: Any) -> bool:
    """Return whether values of a type are sent as content, so that the type has no schema."""
    if _is_open_sequence(_bare(hint)):
        return True
    if any(member is bytes or _is_complete(member) for member in _alternatives(hint)):
        return True
    return any(map(_is_block, _nested(hint)))


def _is_open_sequence(hint: Any) -> bool:
    """Return whether a type is a list or a tuple of anything."""
    if hint in _SEQUENCES:
        return True
    if get_origin(hint) not in _SEQUENCES:
        return False
    members = get_args(hint)
    if get_origin(hint) is tuple:
        return members == (Any, ...)
    return all(member is Any for member in members)


def _alternatives(hint: Any) -> Iterator[Any]:
    """Yield the members of unions in a type, without marks."""
    hint = _bare(hint)
    if get_origin(hint) in {Union, UnionType}:
        for member in get_args(hint):
            yield from _alternatives(member)
    else:
        yield hint


def _nested(hint: Any) -> Iterator[Any]:
    """Yield a type and the types that it is parametrized with."""
    hint = _bare(hint)
    yield hint
    for member in get_args(hint):
        yield from _nested(member)


def _is_complete(hint: Any) -> bool:
    """Return whether a type is one of complete results, or a component of Prefab."""
    if not isinstance(hint, type):
        return False
    return issubclass(hint, ToolResult) or is_input_required_type(hint) or _is_of_prefab(hint)


def _is_of_prefab(hint: type) -> bool:
    return "prefab_ui" in sys.modules and any(base.__module__.startswith("prefab_ui") for base in hint.__mro__)


def _is_block(hint: Any) -> bool:
    if not isinstance(hint, type):
        return False
    if issubclass(hint, Content | ToolResult):
        return True
    return is_sdk_type(hint) and any(base.__name__ in _SDK_CONTENT | _HELPERS for base in hint.__mro__)
