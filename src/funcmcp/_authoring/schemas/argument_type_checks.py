"""Checks of the types of arguments: no schema may offer only values that the server would reject.

Such types are refused when a feature is first described or called, with the parameter's name and with what to write
instead. This module loads pydantic.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from funcmcp._authoring.schemas.pydantic_choices import invalid_choice
from funcmcp._authoring.schemas.pydantic_schema_tree import children, nodes_of
from funcmcp._objects.mappings import without
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import TypeAlias

    Node: TypeAlias = dict[str, Any]

_DICTS = frozenset({"counter", "dict", "frozendict", "ordered-dict"})
_OBJECTS = frozenset({"dataclass", "model", "named-tuple", "typed-dict"})
_NOT_KEYS = _DICTS | _OBJECTS | {"deque", "frozenset", "list", "none", "set", "tuple"}
"""Kinds of schemas that can't be read from the name of an object's member."""

_WITH_FIELDS = frozenset({"dataclass-args", "model-fields", "named-tuple", "typed-dict"})
_SETS = frozenset({"frozenset", "set"})
_ANY: dict[str, Any] = {"type": "any"}
_CLASSES = frozenset({"dataclass", "model"})
_TRANSPARENT = frozenset(
    {
        *("dataclass-args", "dataclass-field", "default", "frozenset", "model-field", "model-fields", "nullable"),
        *("tagged-union", "tuple", "union"),
    }
)
"""Kinds of schemas whose values are hashable if those of the schemas in them are."""

_PATTERN_OF_BYTES = "pattern_bytes_validator"
"""The name of pydantic's function for ``re.Pattern[bytes]``, which takes no text."""

_NEVER_HASHABLE = (_DICTS - {"frozendict"}) | {"deque", "list", "set", "typed-dict"}


def check_argument_types(schema: Node, place: str) -> None:
    """Raise RegistrationError for a type in a core schema for which no argument, or not each argument, can be valid.

    Args:
        schema: The core schema, as pydantic creates it.
        place: The type's place, for errors, such as "The parameter 'orders' of get_order".
    """
    nodes = list(nodes_of(schema))
    definitions = {node["ref"]: node for node in nodes if "ref" in node}
    for node in nodes:
        problem = _problem(node, definitions)
        if problem is not None:
            raise RegistrationError(f"{place} has {problem}.")


def _problem(node: Node, definitions: Mapping[str, Node]) -> str | None:
    """Return a phrase about the problem of one node, or None."""
    kind = node["type"]
    if kind in _DICTS and {key["type"] for key in members_of(node.get("keys_schema"))} <= _NOT_KEYS:
        return "a dict whose keys JSON can't carry. Use strings or numbers as keys"
    if kind in _SETS and not _is_hashable(node.get("items_schema", _ANY), definitions):
        return "a set whose members are not hashable in Python. Use a list, or hashable members such as frozen classes"
    if kind in _WITH_FIELDS:
        return _problem_of_names(node)
    if kind == "is-instance" and isinstance(node["cls"], type) and issubclass(node["cls"], Enum):
        return f"the enum {node['cls'].__name__}, which has no members. Add members"
    if kind == "function-plain" and getattr(node["function"]["function"], "__name__", "") == _PATTERN_OF_BYTES:
        return "a regular expression for bytes, which JSON can't carry. Use re.Pattern[str]"
    return invalid_choice(node)


def _problem_of_names(node: Node) -> str | None:
    """Return a phrase about the names of an object's fields in JSON, or None."""
    fields = node["fields"]
    named_fields = fields.items() if isinstance(fields, dict) else [(field["name"], field) for field in fields]
    names: set[str] = set()
    for field_name, field in named_fields:
        name = field.get("validation_alias", field_name)
        if not isinstance(name, str):
            paths = name if isinstance(name[0], list) else [name]
            if all(len(path) > 1 for path in paths):
                return f"the field {field_name!r}, whose AliasPath a schema can't describe. Use an alias with one name"
            continue  # several paths, of which pydantic takes the first that exists
        if name in names:
            return f"two fields with the name {name!r} in JSON. Change an alias"
        names.add(name)
    return None


def _is_hashable(node: Node, definitions: Mapping[str, Node]) -> bool:
    """Return whether all values of a schema may be members of a set in Python. An author's function may change them."""
    kind = node["type"]
    if kind == "definition-ref":
        name = node["schema_ref"]
        remaining = without(definitions, name)
        return name not in definitions or _is_hashable(definitions[name], remaining)
    if kind in _TRANSPARENT:
        return all(_is_hashable(child, definitions) for child in children(node))
    if kind in _CLASSES:
        cls = node["cls"]
        return cls.__hash__ is not None and (not _hashes_each_field(cls) or _is_hashable(node["schema"], definitions))
    return kind not in _NEVER_HASHABLE


def _hashes_each_field(cls: type) -> bool:
    """Return whether the hash of a class is that of all its fields, and not a method of the author."""
    if issubclass(cls, BaseModel):
        return cls.__hash__.__module__.startswith("pydantic.")
    if not is_dataclass(cls) or any(field.hash is False or not field.compare for field in fields(cls)):
        return False
    return getattr(cls.__hash__, "__code__", _hashes_each_field.__code__).co_filename == "<string>"  # by @dataclass


def accepts_none(node: Node, definitions: Mapping[str, Node]) -> bool:
    """Return whether a schema accepts None by what its type says, also through aliases."""
    kind = node["type"]
    if kind == "definition-ref":
        name = node["schema_ref"]
        remaining = without(definitions, name)
        return name in definitions and accepts_none(definitions[name], remaining)
    if kind == "literal":
        return any(choice is None for choice in node["expected"])
    if kind == "union" or kind.startswith("function-"):
        return any(accepts_none(child, definitions) for child in children(node))
    return bool(kind in {"none", "nullable"})


def members_of(schema: Node | None) -> Iterator[Node]:
    """Yield the members of a union, or the schema alone, without the schemas wrapped around them."""
    if schema is None:
        yield _ANY
    elif schema["type"] == "union":
        for choice in schema["choices"]:
            yield from members_of(choice[0] if isinstance(choice, tuple) else choice)
    elif schema["type"] == "chain":
        yield from members_of(schema["steps"][0])
    elif "schema" in schema and schema["type"] not in _OBJECTS:
        yield from members_of(schema["schema"])
    else:
        yield schema
