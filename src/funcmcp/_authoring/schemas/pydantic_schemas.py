"""pydantic's core schemas of types: how they are created, copied and compiled.

How it works: a core schema is a tree of dicts that describes how pydantic validates and serializes a type. funcmcp
takes the schema of a type (`core_schema_of`), and changes copies of its nodes (`adapted`), so that validation and
serialization agree with the JSON schema that clients read: `pydantic_argument_schemas.py` does this for arguments,
`pydantic_result_schemas.py` for results. The changed schema is then compiled (`validator`, `serializer`). Models share
their schemas, so nodes are copied and never changed in place, and the validators that pydantic has built for models are
not used, because they do not contain the changes.

This module loads pydantic. It is imported when a feature is first listed or called.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ConfigDict, EncodedBytes, PydanticUserError, TypeAdapter
from pydantic_core import SchemaError, SchemaSerializer, SchemaValidator, core_schema

from funcmcp._authoring.schemas.hash_limits import with_hash_limits
from funcmcp._authoring.schemas.pydantic_schema_tree import nodes_of, with_children
from funcmcp._authoring.schemas.pydantic_versions import compiled_serializer, compiled_validator, with_named_tuples
from funcmcp._authoring.schemas.union_limits import BoundedSerializer, BoundedValidator, bounded, bounded_in_results
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    Node: TypeAlias = dict[str, Any]
    Adapt: TypeAlias = Callable[[Node], Node]

_PLAIN = frozenset(
    {
        *("any", "bool", "default", "definition-ref", "definitions", "dict", "float", "int", "list", "literal"),
        *("model", "model-field", "model-fields", "nullable", "str", "typed-dict", "typed-dict-field"),
    }
)
"""Kinds of schemas that accept decoded JSON as strictly as JSON text."""

_UNKNOWN_CLASS = re.compile(r"schema for (?:<class '([\w.<>]+)'>|(numpy\.ndarray)\[)")
"""Finds the name of the class in pydantic's message about an unknown type."""

_ROWS = "list[dict[str, Any]] and make a DataFrame of it in the function"
_NUMBERS = "list[float] and make an array of it in the function"
_PARAMETER_TYPES = {
    "numpy.bool": "bool",
    "numpy.datetime64": "datetime.date or datetime.datetime",
    "numpy.float32": "float",
    "numpy.float64": "float",
    "numpy.int32": "int",
    "numpy.int64": "int",
    "numpy.ndarray": _NUMBERS,
    "pandas.DataFrame": _ROWS,
    "pandas.Series": "list[float] and make a Series of it in the function",
    "pandas.Timedelta": "datetime.timedelta and make a Timedelta of it in the function",
    "pandas.Timestamp": "datetime.date or datetime.datetime and make a Timestamp of it in the function",
    "polars.DataFrame": _ROWS,
    "polars.Series": "list[float] and make a Series of it in the function",
    "starlette.Request": "context: Context, whose http_request has the headers",
}
"""What to use for a parameter in place of a class of another library."""

_UNKNOWN_COLLECTION = re.compile(r"schema for [\w.]+\.(Collection|Container|Iterator|Reversible)\b")
"""Finds the name of an abstract collection in that message."""

_FLAGS = ((re.IGNORECASE, "i"), (re.MULTILINE, "m"), (re.DOTALL, "s"), (re.VERBOSE, "x"))


class UnknownTypeError(RegistrationError):
    """pydantic does not know a type of a parameter or a result.

    Args:
        message: The error, for a parameter.
        kind: The name of the type.
    """

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


def core_schema_of(annotation: Any, place: str) -> Node:
    """Return pydantic's core schema of a type.

    Args:
        annotation: The type.
        place: The type's place, for errors, such as "The parameter 'orders' of get_order".

    Raises:
        UnknownTypeError: pydantic does not know a class in the type.
        RegistrationError: JSON can't carry the type.
    """
    try:
        schema: Any = TypeAdapter(annotation).core_schema
    except PydanticUserError as error:
        reason = error.message.partition("\n")[0].partition(". ")[0].removesuffix(".")
        unknown = _UNKNOWN_CLASS.search(reason)
        if unknown is not None:
            name = unknown[1] or unknown[2]
            kind = name.rpartition(".")[2]
            library_name = f"{name.partition('.')[0]}.{kind}"
            reason = library_name if library_name in _PARAMETER_TYPES else kind
        collection = _UNKNOWN_COLLECTION.search(reason)
        if collection is not None:
            raise RegistrationError(
                f"{place} has the type {collection[1]}, which pydantic can't read. Use list."
            ) from None
        remedy = _PARAMETER_TYPES.get(reason, "a dataclass, a TypedDict or a pydantic model")
        raise UnknownTypeError(
            f"{place} has a type that JSON can't carry and that is not a registered service ({reason}). "
            f"Use {remedy}, or register the type with mcp.services.",
            reason,
        ) from None
    except TypeError as error:  # such as two equal tags of a discriminator
        raise RegistrationError(f"{place} has a type that pydantic can't read: {error}.") from error
    return with_named_tuples(dict(schema))


def schema_with_any_classes(annotation: Any) -> Node | None:
    """Return pydantic's core schema of a type, with ``is-instance`` for each class that pydantic does not know.

    Return None if a pydantic model has such a class, and its config does not allow it.
    """
    config = ConfigDict(arbitrary_types_allowed=True)
    items: Any = list[annotation]  # pydantic takes no config for a dataclass itself
    try:
        schema: Any = TypeAdapter(items, config=config).core_schema
    except PydanticUserError:
        return None
    if schema["type"] == "definitions":
        return with_named_tuples({**schema, "schema": schema["schema"]["items_schema"]})
    return with_named_tuples(dict(schema["items_schema"]))


def is_plain(schema: Any) -> bool:
    """Return whether decoded JSON is valid as it is for a schema, without conversions."""
    return all(node["type"] in _PLAIN for node in nodes_of(schema))


def adapted(node: Node, adapt: Adapt) -> Node:
    """Return a copy of a schema with each node replaced by what *adapt* returns for it, innermost nodes first.

    *adapt* may change the copy that it gets. It also gets nodes without a ``type``: the fields of models, dataclasses,
    typed dicts and named tuples, and the parameters of calls.
    """
    if is_encoded_bytes(node):
        return adapt(dict(node))
    copied = with_children(node, lambda child: adapted(child, adapt))
    if copied.get("type") == "enum":
        _remove_generated_title(copied)
    return adapt(copied)


def is_encoded_bytes(node: Node) -> bool:
    """Return whether a node is pydantic's own for bytes in an encoding, such as Base64Bytes."""
    function = node.get("function")
    return isinstance(function, dict) and isinstance(getattr(function["function"], "__self__", None), EncodedBytes)


def _remove_generated_title(enum: Node) -> None:
    """Remove the function that gives an enum's JSON schema the class's name as its title."""
    metadata = enum.get("metadata", {})
    functions = [
        function
        for function in metadata.get("pydantic_js_functions", ())
        if "_enum_schema" not in getattr(function, "__qualname__", "")
    ]
    enum["metadata"] = {**metadata, "pydantic_js_functions": functions}


def validated_first(function: Callable[[Any], Any], node: Node) -> Node:
    """Return a node that calls a function before it validates. References to the node lead to the new one."""
    wrapped: Any = core_schema.no_info_before_validator_function(function, node)
    if "ref" in node:
        wrapped["ref"] = node.pop("ref")
    return dict(wrapped)


def never_exact(node: Node) -> Node:
    """Return a node whose result is a conversion for a union. References to the node lead to the new one.

    pydantic's unions prefer a member that takes a value as it is to one that converts it, and `str | date` keeps a
    date's text. It does not notice a conversion in a function, and takes the text of a UUID in JSON for exact. A result
    that passes through ``Any`` counts as converted. The JSON schema is that of the chain's first step.
    """
    chain: Any = core_schema.chain_schema([node, core_schema.any_schema()])
    if "ref" in node:
        chain["ref"] = node.pop("ref")
    return dict(chain)


def validator(schema: Node, *, strict: bool = False) -> SchemaValidator | BoundedValidator:
    """Return the validator of a changed schema, with bounds on hashes and on unions that contain themselves.

    Args:
        schema: The schema.
        strict: Whether nodes without a config of their own are strict.
    """
    config = core_schema.CoreConfig(strict=strict)
    schema = with_hash_limits(schema)
    with_bounds = bounded(schema)
    if with_bounds is None:
        return compiled_validator(schema, config)
    return BoundedValidator(compiled_validator(with_bounds, config))


def serializer(schema: Node) -> SchemaSerializer | BoundedSerializer:
    """Return the serializer of a changed schema, with a bound on unions that contain themselves."""
    with_bounds = bounded_in_results(schema)
    return _serializer(schema) if with_bounds is None else BoundedSerializer(_serializer(with_bounds))


def text_serializer(schema: Node, *, inf_nan: Literal["constants", "null"]) -> SchemaSerializer:
    """Return the serializer of a changed schema without references.

    Args:
        schema: The schema.
        inf_nan: Whether NaN and Infinity are written by these names, or as null.
    """
    return _serializer(schema, inf_nan)


def _serializer(schema: Node, inf_nan: Literal["constants", "null"] = "null") -> SchemaSerializer:
    config = core_schema.CoreConfig(ser_json_bytes="base64", ser_json_inf_nan=inf_nan)
    return compiled_serializer(schema, config)


def pattern_error(pattern: str) -> str | None:
    """Return why the linear regular expression engine can't compile a pattern, or None if it can."""
    try:
        SchemaValidator(core_schema.str_schema(pattern=pattern))
    except SchemaError as error:
        reason = str(error).rstrip().rpartition("\n")[2]
        return reason.strip().removeprefix("error: ").removeprefix("SchemaError: ").removesuffix(".")
    return None


def linear_pattern(pattern: str | re.Pattern[str]) -> str:
    """Return a pattern as text, with the flags of a compiled one."""
    if isinstance(pattern, str):
        return pattern
    flags = "".join(letter for flag, letter in _FLAGS if pattern.flags & flag)
    return f"(?{flags}){pattern.pattern}" if flags else pattern.pattern
