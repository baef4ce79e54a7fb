"""The checks of the rules. Each yields the places of a `Subject` that break its rule, as text for people.

The keyword arguments of a check are the options of its rows in ``rules.toml``.
"""

from __future__ import annotations

import json
import re
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any

from pydantic import AnyUrl, TypeAdapter, ValidationError

from funcmcp import RegistrationError
from funcmcp._authoring.schemas.handwritten_schema import schema_checker
from funcmcp._authoring.schemas.json_schema import FORMATS
from funcmcp._client.errors import one_line
from funcmcp_cli.client_rules.ecma_syntax import syntax_error
from funcmcp_cli.install.servers import slug
from funcmcp_cli.json_values import as_list, as_object

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from typing import TypeAlias

    from funcmcp_cli.client_rules.schema_parts import SchemaPart
    from funcmcp_cli.client_rules.subjects import Subject

    Check: TypeAlias = Callable[[Subject], Iterator[str]]

_NAME = re.compile(r"[a-zA-Z0-9_-]*")
_KEYS = {
    "claude": re.compile(r"[a-zA-Z0-9_.-]{1,64}"),
    "gemini": re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,63}"),
}
"""By API, the names of arguments and members that it accepts."""

_TYPING = frozenset({"$ref", "allOf", "anyOf", "oneOf", "type"})
_VALUES = (("anyOf",), ("items",), ("properties",))
_FOLLOWED_BY_GOOGLE = frozenset({"$defs", "additionalProperties", "anyOf", "items", "oneOf", "properties"})
_TIMES = ("date-time", "time")
_ID = re.compile(r"(^|_)(id|ID)s?$|[a-z0-9](Id|ID)s?$")
_KEYWORDS_BELOW_A_NAME = frozenset({"anyOf", "oneOf", "items", "0", "1", "2", "3"})
_MAX_SAFE_INTEGER = 2**53 - 1
_MAX_PLACE = 200
_MAX_TEXT = 80
_URL: TypeAdapter[Any] = TypeAdapter(AnyUrl)


def many_tools(subject: Subject, *, limit: int) -> Iterator[str]:
    """Check the number of tools."""
    count = len(as_list(subject.definition.get("tools")))
    if count > limit:
        yield f"{count} tools"


def long_name(subject: Subject, *, limit: int) -> Iterator[str]:
    """Check the length of a tool's name."""
    if len(subject.key) > limit:
        yield f"{len(subject.key)} characters"


def long_full_name(subject: Subject, *, limit: int) -> Iterator[str]:
    """Check the name with the name that the server gets from ``funcmcp install``, and a character between them."""
    server = slug(subject.server_name)
    length = len(server) + 1 + len(subject.key)
    if length > limit:
        yield f"{length} characters with the server's name {server}"


def name_characters(subject: Subject) -> Iterator[str]:
    """Check the characters of a tool's name."""
    invalid_characters = _NAME.sub("", subject.key)
    if invalid_characters:
        yield f"the characters {_text(''.join(dict.fromkeys(invalid_characters)))}"


def name_start(subject: Subject) -> Iterator[str]:
    """Check the first character of a tool's name."""
    if subject.key[:1].isdecimal() or subject.key[:1] in {"-", "."}:
        yield f"the first character {subject.key[0]}"


def no_description(subject: Subject) -> Iterator[str]:
    """Check that a tool has a description."""
    description = subject.definition.get("description")
    if not isinstance(description, str) or not description.strip():
        yield "no description"


def long_description(subject: Subject, *, limit: int) -> Iterator[str]:
    """Check the length of a tool's description."""
    length = len(str(subject.definition.get("description", "")))
    if length > limit:
        yield f"{length} characters"


def no_properties(subject: Subject) -> Iterator[str]:
    """Check that the input schema has ``properties``."""
    if "properties" not in as_object(subject.definition.get("inputSchema")):
        yield "inputSchema"


def combined_top(subject: Subject, *, keywords: Sequence[str]) -> Iterator[str]:
    """Check that the input schema has no alternatives at its top."""
    schema = as_object(subject.definition.get("inputSchema"))
    yield from (f"inputSchema/{keyword}" for keyword in keywords if keyword in schema)


def boolean_schema(subject: Subject) -> Iterator[str]:
    """Check that no part that google-genai converts is true or false."""
    for part in subject.input_parts:
        if isinstance(part.schema, bool) and _FOLLOWED_BY_GOOGLE.issuperset(part.keywords):
            yield _place("inputSchema", part, part.schema)


def keyword(subject: Subject, *, name: str, below_top: bool = False, shows_value: bool = False) -> Iterator[str]:
    """Check that no part has a keyword.

    Args:
        subject: The tool.
        name: The keyword.
        below_top: Whether the schema itself may have it.
        shows_value: Whether the value is part of the place.
    """
    for part in subject.input_parts:
        if part.has(name) and (part.path or not below_top):
            yield _place("inputSchema", part, part.get(name) if shows_value else None)


def no_items(subject: Subject) -> Iterator[str]:
    """Check that arrays have ``items``."""
    for part in subject.input_parts:
        if part.get("type") == "array" and not part.has("items"):
            yield _place("inputSchema", part)


def no_type(subject: Subject) -> Iterator[str]:
    """Check that arguments, members, items and alternatives have a type."""
    for part in subject.input_parts:
        is_value = part.keywords[-1:] in _VALUES and part.keywords != ("anyOf",)
        if is_value and isinstance(part.schema, dict) and _TYPING.isdisjoint(part.schema):
            yield _place("inputSchema", part)


def several_types(subject: Subject) -> Iterator[str]:
    """Check that no type is a list."""
    for part in subject.input_parts:
        if isinstance(part.get("type"), list):
            yield _place("inputSchema", part, part.get("type"))


def bare_object(subject: Subject) -> Iterator[str]:
    """Check that arguments and members that are objects describe their members."""
    for part in subject.input_parts:
        is_argument = part.keywords[-1:] == ("properties",) and part.get("type") == "object"
        if is_argument and not part.get("properties") and not part.get("additionalProperties"):
            yield _place("inputSchema", part)


def open_object(subject: Subject) -> Iterator[str]:
    """Check that the names of all members are known."""
    for part in subject.input_parts:
        is_bare = bool(part.path) and part.get("type") == "object" and not part.get("properties")
        has_others = isinstance(part.get("additionalProperties"), dict) or part.has("patternProperties")
        if is_bare or has_others:
            yield _place("inputSchema", part)


def optional_null(subject: Subject) -> Iterator[str]:
    """Check that optional arguments do not accept null."""
    schema = as_object(subject.definition.get("inputSchema"))
    required = as_list(schema.get("required"))
    for name, member in as_object(schema.get("properties")).items():
        if name not in required and _accepts_null(as_object(member)):
            yield f"inputSchema/properties/{_text(name)}"


def _accepts_null(schema: Any) -> bool:
    if "null" in as_list(schema.get("type")) or schema.get("type") == "null":
        return True
    return any(as_object(member).get("type") == "null" for member in as_list(schema.get("anyOf")))


def number_enum(subject: Subject) -> Iterator[str]:
    """Check that the values of enums are strings."""
    for part in subject.input_parts:
        types = _types_in(part)
        if len(types) == 1 and types != {str}:
            yield _place("inputSchema", part, part.get("enum"))


def mixed_enum(subject: Subject) -> Iterator[str]:
    """Check that the values of an enum have one type."""
    for part in subject.input_parts:
        if len(_types_in(part)) > 1:
            yield _place("inputSchema", part, part.get("enum"))


def _types_in(part: SchemaPart) -> set[type]:
    return set(map(type, as_list(part.get("enum"))))


def empty_enum_value(subject: Subject) -> Iterator[str]:
    """Check that no value of an enum is an empty text."""
    yield from (_place("inputSchema", part) for part in subject.input_parts if "" in as_list(part.get("enum")))


def many_enum_values(subject: Subject, *, limit: int) -> Iterator[str]:
    """Check the number of all values in enums."""
    count = sum(len(as_list(part.get("enum"))) for part in subject.input_parts)
    if count > limit:
        yield f"{count} values"


def property_key(subject: Subject, *, api: str) -> Iterator[str]:
    """Check the names of arguments and members."""
    for part in subject.input_parts:
        for name in as_object(part.get("properties")):
            if not _KEYS[api].fullmatch(str(name)):
                yield _place("inputSchema", part, name)


def pattern(subject: Subject, *, member: str) -> Iterator[str]:
    """Check the patterns of a schema."""
    for part in _parts_of(subject, member):
        for text in [*as_object(part.get("patternProperties")), part.get("pattern")]:
            error = syntax_error(text) if isinstance(text, str) else None
            if error is not None:
                yield f"{_place(member, part, text)} has {error}"


def string_format(subject: Subject, *, members: Sequence[str], allowed: Collection[str] = FORMATS) -> Iterator[str]:
    """Check that the formats of schemas are some of those of JSON Schema."""
    for member in members:
        for part in _parts_of(subject, member):
            name = part.get("format")
            if isinstance(name, str) and name not in allowed:
                yield _place(member, part, name)


def _parts_of(subject: Subject, member: str) -> Sequence[SchemaPart]:
    return subject.input_parts if member == "inputSchema" else subject.output_parts


def strict_size(subject: Subject, *, properties: int, levels: int) -> Iterator[str]:
    """Check the number of properties, and the levels of objects in objects."""
    count = sum(len(as_object(part.get("properties"))) for part in subject.input_parts)
    if count > properties:
        yield f"{count} properties"
    depth = max(part.keywords.count("properties") for part in subject.input_parts)
    if depth > levels:
        yield f"{depth} levels of properties"


def reference(subject: Subject) -> Iterator[str]:
    """Check that references are to definitions at the top of the schema."""
    definitions = as_object(as_object(subject.definition.get("inputSchema")).get("$defs"))
    for part in subject.input_parts:
        target = part.get("$ref")
        if isinstance(target, str) and target.removeprefix("#/$defs/") not in definitions:
            yield _place("inputSchema", part, target)


def unknown_required(subject: Subject) -> Iterator[str]:
    """Check that what is required is described."""
    for part in subject.input_parts:
        for name in as_list(part.get("required")):
            if part.get("type") == "object" and name not in as_object(part.get("properties")):
                yield _place("inputSchema", part, name)


def recursion(subject: Subject) -> Iterator[str]:
    """Check that no definition refers to itself, directly or not."""
    graph: dict[str, set[str]] = {}
    for part in subject.input_parts:
        target = part.get("$ref")
        if isinstance(target, str):
            graph.setdefault(_definition_around(part), set()).add(_unescaped(target))
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        yield _text(" refers to ".join(reversed(error.args[1])))


def _definition_around(part: SchemaPart) -> str:
    """Return the reference to the definition that a part is in; "#" for the schema itself."""
    in_definition = part.path[:1] in (("$defs",), ("definitions",))
    return "/".join(("#", *part.path[:2])) if in_definition else "#"


def _unescaped(pointer: str) -> str:
    return pointer.replace("~1", "/").replace("~0", "~")


def object_union(subject: Subject) -> Iterator[str]:
    """Check that at most one alternative of a value is an object."""
    for part in subject.input_parts:
        if sum(_are_objects(subject, part)) > 1:
            yield _place("inputSchema", part)


def value_union(subject: Subject) -> Iterator[str]:
    """Check that values which are not objects have one type. LangChain.js understands null beside a plain type."""
    for part in subject.input_parts:
        alternatives = [as_object(schema) for schema in as_list(part.get("anyOf"))]
        types = [schema for schema in alternatives if schema.get("type") != "null"]
        has_null = len(types) < len(alternatives)
        has_array = any(schema.get("type") == "array" for schema in types)
        has_several_types = len(types) > 1 and not all(_are_objects(subject, part))
        if has_several_types or (has_null and has_array):
            yield _place("inputSchema", part)


def _are_objects(subject: Subject, part: SchemaPart) -> list[bool]:
    """Return for each alternative of a part but null whether it is an object."""
    definitions = as_object(as_object(subject.definition.get("inputSchema")).get("$defs"))
    are_objects = []
    for alternative in map(as_object, [*as_list(part.get("anyOf")), *as_list(part.get("oneOf"))]):
        name = str(alternative.get("$ref", "")).removeprefix("#/$defs/")
        schema = as_object(definitions[name]) if name in definitions else alternative
        if schema.get("type") != "null":
            are_objects.append(schema.get("type") == "object")
    return are_objects


def nested_object(subject: Subject) -> Iterator[str]:
    """Check that no argument is an object with named members."""
    for part in subject.input_parts:
        if part.path and as_object(part.get("properties")):
            yield _place("inputSchema", part)


def time_offset(subject: Subject) -> Iterator[str]:
    """Check that no part has a time for which clients require an offset."""
    for part in subject.input_parts:
        if part.get("format") in _TIMES:
            yield _place("inputSchema", part, part.get("format"))


def large_integer(subject: Subject) -> Iterator[str]:
    """Check that ids are not integers without a bound, and that no bound is larger than JavaScript's integers."""
    for member in ("inputSchema", "outputSchema"):
        for part in _parts_of(subject, member):
            if _is_integer(part) and (_may_be_an_id(part) or _has_large_bound(part)):
                yield _place(member, part)


def _is_integer(part: SchemaPart) -> bool:
    return part.get("type") == "integer" or "integer" in as_list(part.get("type"))


def _may_be_an_id(part: SchemaPart) -> bool:
    """Return whether an integer without a bound and without values has the name of an id, or is in such a list."""
    name = next((name for name in reversed(part.path) if name not in _KEYWORDS_BELOW_A_NAME), "")
    is_bounded = part.has("maximum") or part.has("exclusiveMaximum") or part.has("enum")
    return not is_bounded and _ID.search(name) is not None


def _has_large_bound(part: SchemaPart) -> bool:
    bounds = [part.get(keyword) for keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "const")]
    numbers = [bound for bound in [*bounds, *as_list(part.get("enum"))] if isinstance(bound, int | float)]
    return any(abs(number) > _MAX_SAFE_INTEGER + 1 for number in numbers)


def left_out(subject: Subject) -> Iterator[str]:
    """Yield what the generated schemas of a tool do not say."""
    for omission in subject.left_out:
        yield f"{'/'.join(map(str, omission.path))}: {_text(omission.value)} ({omission.reason})"


def unstructured_result(subject: Subject) -> Iterator[str]:
    """Check that the results of a tool with an output schema have structured content, and that it fits."""
    schema = subject.definition.get("outputSchema")
    if not isinstance(schema, dict):
        return
    if not subject.has_structure:
        yield "outputSchema, and useResultSchema is not set"
        return
    if not subject.results:
        return
    try:
        misfits_of = schema_checker(schema, "The output schema")
    except RegistrationError:
        misfits_of = None  # the schema can't be checked
    for result in subject.results:
        content = result.get("structuredContent")
        if result.get("isError"):
            continue
        if content is None:
            yield "a result has no structuredContent"
        elif misfits_of is not None:
            yield from (f"structuredContent {path} {phrase}" for path, phrase in misfits_of(content))


def prompt_arguments(subject: Subject, *, limit: int) -> Iterator[str]:
    """Check the number of a prompt's arguments."""
    count = len(as_list(subject.definition.get("arguments")))
    if count > limit:
        yield f"{count} arguments"


def optional_prompt_arguments(subject: Subject) -> Iterator[str]:
    """Check that all arguments of a prompt are required."""
    for argument in map(as_object, as_list(subject.definition.get("arguments"))):
        if argument.get("required") is not True:
            yield f"the argument {_text(argument.get('name'))}"


def spaces_in_name(subject: Subject) -> Iterator[str]:
    """Check that the name of a prompt or a resource is one word."""
    name = str(subject.definition.get("name"))
    if any(map(str.isspace, name)):
        yield f"the name {_text(name)}"


def resource_uri(subject: Subject) -> Iterator[str]:
    """Check that pydantic accepts a resource's URI, as the Python SDK 1.x requires."""
    try:
        _URL.validate_python(subject.key)
    except ValidationError as error:
        yield f"the URI: {error.errors()[0]['msg']}"


def _place(member: str, part: SchemaPart, value: object = None) -> str:
    place = one_line("/".join((member, *part.path)), _MAX_PLACE)
    return place if value is None else f"{place}: {_text(value)}"


def _text(value: object) -> str:
    """Return a value on one line: a text as it is, other values as JSON."""
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False, default=str)
    return one_line(value, _MAX_TEXT)
