"""A bound on the time for reading unions that contain themselves.

For ``A | B`` whose members both have a field of ``A | B``, pydantic tries both members at each level: 2 to the power of
the depth tries in all, for a value of some hundred bytes. A running validation can't be interrupted. A limit on depth
would be simpler, but no limit is both safe for ten members and large enough for a filter of And, Or and Not, of which
only one fits.

How it works: `bounded` finds the unions to which one value can lead back through several members, and puts a counter
before each. The counter is the discriminator of a tagged union with one member, because pydantic passes the value to a
discriminator and does not change it. `BoundedValidator` sets a `_Tries` for the value that it validates, in a context
variable. Each part of the value that a union gets is identified by its JSON. The first visit of a part is free, and
each further one costs some of a budget. When the budget is spent, equal parts of the value are searched once, and
visits that they explain are refunded. If the budget is still spent, the value is rejected.
"""

from __future__ import annotations

from collections import Counter, deque
from contextvars import ContextVar
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from pydantic_core import (
    PydanticSerializationUnexpectedValue,
    SchemaSerializer,
    SchemaValidator,
    core_schema,
    from_json,
    to_json,
)

from funcmcp._authoring.schemas.pydantic_schema_tree import children, with_children
from funcmcp._objects.mappings import without
from funcmcp._protocol.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from collections.abc import Set as AbstractSet
    from typing import TypeAlias

    Node: TypeAlias = dict[str, Any]
    Reach: TypeAlias = Mapping[str, AbstractSet[str]]

_BUDGET = 500_000
"""The cost of repeated visits that one value may have: about 50 ms at worst, which is for a wrong value."""

_MAX_PARTS = 50_000
"""The maximum number of objects and arrays among which equal ones are searched."""

_VISIT = 100
_VISIT_PER_MEMBER = 100
"""The cost of a repeated visit, beside the part's size in bytes: each member that does not fit is an error."""

_TAG = -1
"""The tag in the paths of errors. JSON has no such name or index."""

_OBJECTS = frozenset({"dataclass", "dict", "frozendict", "model", "model-fields", "typed-dict"})
_ARRAYS = frozenset({"deque", "frozenset", "list", "set", "tuple"})


class _Tries:
    """The visits of one value's parts to unions that contain themselves.

    Parts are identified by their JSON, because each try may create new objects.

    Args:
        value: Returns the value.
    """

    def __init__(self, value: Callable[[], Any]) -> None:
        self._value = value
        self._budget = _BUDGET
        self._visits: Counter[int] = Counter()
        self._occurrences: Counter[int] | None = None

    def count(self, part: Any, cost: int) -> None:
        """Count a visit of a part of the value to a union.

        Args:
            part: The part.
            cost: The cost of a repeated visit, beside the part's size in bytes.

        Raises:
            ToolError: The budget is spent.
        """
        encoded = _json(part)
        key = hash(encoded)
        self._visits[key] += 1
        occurrences = 1 if self._occurrences is None else self._occurrences[key]
        if self._visits[key] <= occurrences:
            return
        self._budget -= cost + len(encoded)
        if self._budget < 0 and self._occurrences is None:
            self._refund(cost)
        if self._budget < 0:
            raise ToolError(
                "A value is nested too deeply in types that contain themselves: "
                "there are too many ways to read it. Nest it less deeply."
            )

    def _refund(self, cost: int) -> None:
        """Search equal parts of the value, and refund the visits that they explain."""
        self._occurrences = Counter()
        for part in islice(_containers(self._value()), _MAX_PARTS):
            encoded = _json(part)
            key = hash(encoded)
            self._occurrences[key] += 1
            if 1 < self._occurrences[key] <= self._visits[key]:
                self._budget += cost + len(encoded)


def _json(part: Any) -> bytes:
    return to_json(part, serialize_unknown=True, bytes_mode="base64")


def _containers(value: Any) -> Iterator[Any]:
    """Yield the objects and arrays in a JSON value, the outer ones first."""
    pending = deque([value])
    while pending:
        part = pending.popleft()
        if isinstance(part, dict | list):
            yield part
            pending += part.values() if isinstance(part, dict) else part


_tries: ContextVar[_Tries] = ContextVar("tries")


class BoundedValidator:
    """Validates values like a SchemaValidator, and raises ToolError for a value that takes too many tries."""

    def __init__(self, validator: SchemaValidator) -> None:
        self._validator = validator

    def validate_python(self, value: Any, *, strict: bool | None = None) -> Any:
        """Return the converted value. Raise ValidationError or ToolError for others."""
        token = _tries.set(_Tries(lambda: value))
        try:
            return self._validator.validate_python(value, strict=strict)
        finally:
            _tries.reset(token)

    def validate_json(self, data: bytes, *, strict: bool | None = None, context: Any = None) -> Any:
        """Return the converted value of a JSON text. Raise ValidationError or ToolError for others."""
        token = _tries.set(_Tries(partial(from_json, data)))
        try:
            return self._validator.validate_json(data, strict=strict, context=context)
        finally:
            _tries.reset(token)


class BoundedSerializer:
    """Serializes values like a SchemaSerializer. Parts that take too many tries are written without their type."""

    def __init__(self, serializer: SchemaSerializer) -> None:
        self._serializer = serializer

    def to_python(self, value: Any, **options: Any) -> Any:
        """Return the JSON value of an object."""
        token = _tries.set(_Tries(lambda: value))
        try:
            return self._serializer.to_python(value, **options)
        finally:
            _tries.reset(token)


def bounded(schema: Node) -> Node | None:
    """Return a core schema with a bound on its unions that contain themselves. None if it has no such union."""
    return _bounded(schema, _with_bound)


def bounded_in_results(schema: Node) -> Node | None:
    """Return the same for a serializer, which also tries all members of a union at each level."""
    return _bounded(schema, _with_bound_in_results)


def _bounded(schema: Node, with_bound: Callable[[Node], Node]) -> Node | None:
    if schema["type"] != "definitions":
        return None  # pydantic puts each schema that refers to itself into definitions
    nodes = list(_nodes(schema, ()))
    definitions = {node["ref"]: node for node, _ in nodes if "ref" in node}
    reach = _reach(nodes)
    ambiguous = {id(node) for node, around in nodes if _is_ambiguous(node, around, definitions, reach)}
    return _with_bounds(schema, ambiguous, with_bound) if ambiguous else None


def _nodes(node: Node, around: tuple[str, ...]) -> Iterator[tuple[Node, tuple[str, ...]]]:
    """Yield the nodes of a schema, each with the names of the definitions around it."""
    if "ref" in node:
        around = (*around, node["ref"])
    if "type" in node:
        yield node, around
    for child in children(node):
        yield from _nodes(child, around)


def _reach(nodes: list[tuple[Node, tuple[str, ...]]]) -> Reach:
    """Return the names of all definitions that each definition leads to, itself among them."""
    direct: dict[str, set[str]] = {node["ref"]: {node["ref"]} for node, _ in nodes if "ref" in node}
    for node, around in nodes:
        for name in around if node["type"] == "definition-ref" else ():
            direct[name].add(node["schema_ref"])
    return {name: _closure(name, direct) for name in direct}


def _closure(start: str, direct: Reach) -> set[str]:
    reached = {start}
    pending = [start]
    while pending:
        new = direct[pending.pop()] - reached
        reached |= new
        pending += new
    return reached


def _is_ambiguous(node: Node, around: tuple[str, ...], definitions: Mapping[str, Node], reach: Reach) -> bool:
    """Return whether a schema is a union to which one value can lead back through several of its members."""
    if node["type"] != "union" or not around:
        return False
    kinds: list[str | None] = []
    for choice in node["choices"]:
        member = choice[0] if isinstance(choice, tuple) else choice
        if _leads_to(member, around, reach):
            kinds.append(_kind(member, definitions))
    has_equal_kinds = len(set(kinds)) < len(kinds)
    return len(kinds) > 1 and (None in kinds or has_equal_kinds)


def _leads_to(choice: Node, names: tuple[str, ...], reach: Reach) -> bool:
    references = (node["schema_ref"] for node, _ in _nodes(choice, ()) if node["type"] == "definition-ref")
    return any(not reach[reference].isdisjoint(names) for reference in references)


def _kind(choice: Node, definitions: Mapping[str, Node]) -> str | None:
    """Return the kind of JSON value that a schema reads: "object", "array", or None if the schema may read several."""
    while choice["type"] == "definition-ref":
        choice = definitions[choice["schema_ref"]]
    if choice["type"] in _OBJECTS:
        return "object"
    if choice["type"] in _ARRAYS:
        return "array"
    return None


def _may_be_json(value: Any) -> bool:
    """Return whether a value may be the text of an object or an array, which lax arguments may be."""
    return isinstance(value, str) and value.lstrip()[:1] in {"{", "["}


def _with_bounds(node: Node, ambiguous: set[int], with_bound: Callable[[Node], Node]) -> Node:
    copied = with_children(node, lambda child: _with_bounds(child, ambiguous, with_bound))
    return with_bound(copied) if id(node) in ambiguous else copied


def _with_bound(union: Node) -> Node:
    """Return a union with a counter before it."""
    reference = union.pop("ref", None)
    choices: Any = {_TAG: union}
    cost = _VISIT + _VISIT_PER_MEMBER * len(union["choices"])

    def count(value: Any) -> int:
        if isinstance(value, dict | list) or _may_be_json(value):
            _tries.get().count(value, cost)
        return _TAG

    return dict(core_schema.tagged_union_schema(choices, count, ref=reference))


def _with_bound_in_results(union: Node) -> Node:
    """Return a union with a counter before its serializer."""
    cost = _VISIT + _VISIT_PER_MEMBER * len(union["choices"])

    def count(value: Any, serialize: Callable[[Any], Any]) -> Any:
        if isinstance(value, dict | list | tuple):
            try:
                _tries.get().count(value, cost)
            except ToolError as error:
                raise PydanticSerializationUnexpectedValue(str(error)) from None
        return serialize(value)

    inner: Any = without(union, "ref")
    return {**union, "serialization": core_schema.wrap_serializer_function_ser_schema(count, schema=inner)}
