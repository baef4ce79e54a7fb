"""A bound on reading unions that contain themselves.

For ``A | B`` whose members both have a field of ``A | B``, pydantic tries each way at each level: 2 to the power of the
depth in all, for a value of some hundred bytes. Nothing can stop it from outside, so each such union counts what it
is given again, and gives up when that is far more than the value has. A limit on depth would be simpler, but there is
none that is both safe with ten members and large enough for a filter made of And, Or and Not, of which only one fits.
"""

from __future__ import annotations

from collections import Counter, deque
from contextvars import ContextVar
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from pydantic_core import SchemaValidator, core_schema, from_json, to_json

from funcmcp.authoring.values.pydantic_schema_tree import children, with_children
from funcmcp.protocol.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from collections.abc import Set as AbstractSet
    from typing import TypeAlias

    Node: TypeAlias = dict[str, Any]
    Reach: TypeAlias = Mapping[str, AbstractSet[str]]

_BUDGET = 500_000
"""What one value may cost that such unions get again: about 50 ms at worst, which is for a wrong value."""

_MOST_PARTS = 50_000
"""Objects and arrays of a value among which equal ones are looked for."""

_VISIT = 100
_VISIT_PER_MEMBER = 100
"""What a part costs that a union gets again, beside its bytes as JSON: each member that does not fit is an error."""

_TAG = -1
"""Stands in the place of an error; it is no name and no index of anything in JSON."""

_OBJECTS = frozenset({"dataclass", "dict", "frozendict", "model", "model-fields", "typed-dict"})
_ARRAYS = frozenset({"deque", "frozenset", "list", "set", "tuple"})


class _Tries:
    """What the unions of one value have been given.

    Parts are identified by their JSON, because each try may make new objects. When the budget is spent, equal parts of
    the value are looked for once, and what they have cost is given back.

    Args:
        value: returns the value.
    """

    def __init__(self, value: Callable[[], Any]) -> None:
        self._value = value
        self._left = _BUDGET
        self._visits: Counter[int] = Counter()
        self._occurrences: Counter[int] | None = None

    def count(self, part: Any, cost: int) -> None:
        """Count a part of the value that a union is given.

        Args:
            part: the part.
            cost: what it costs to read it once more than it occurs, beside its bytes.

        Raises:
            ToolError: the budget is spent.
        """
        data = _json(part)
        key = hash(data)
        self._visits[key] += 1
        occurrences = 1 if self._occurrences is None else self._occurrences[key]
        if self._visits[key] <= occurrences:
            return
        self._left -= cost + len(data)
        if self._left < 0 and self._occurrences is None:
            self._give_back(cost)
        if self._left < 0:
            raise ToolError(
                "A value is nested too deeply in types that contain themselves: "
                "there are too many ways to read it. Nest it less."
            )

    def _give_back(self, cost: int) -> None:
        self._occurrences = Counter()
        for part in islice(_containers(self._value()), _MOST_PARTS):
            data = _json(part)
            key = hash(data)
            self._occurrences[key] += 1
            if 1 < self._occurrences[key] <= self._visits[key]:
                self._left += cost + len(data)


def _json(part: Any) -> bytes:
    return to_json(part, serialize_unknown=True, bytes_mode="base64")


def _containers(value: Any) -> Iterator[Any]:
    """Yield the objects and arrays in a JSON value, from the outside in."""
    waiting = deque([value])
    while waiting:
        part = waiting.popleft()
        if isinstance(part, dict | list):
            yield part
            waiting += part.values() if isinstance(part, dict) else part


_tries: ContextVar[_Tries] = ContextVar("tries")


class BoundedValidator:
    """Validates as a SchemaValidator does, and raises ToolError for a value that takes too many tries."""

    def __init__(self, validator: SchemaValidator) -> None:
        self._validator = validator

    def validate_python(self, value: Any, *, strict: bool | None = None) -> Any:
        """Return a valid value; raise ValidationError or ToolError."""
        token = _tries.set(_Tries(lambda: value))
        try:
            return self._validator.validate_python(value, strict=strict)
        finally:
            _tries.reset(token)

    def validate_json(self, data: bytes, *, strict: bool | None = None) -> Any:
        """Return the valid value of a JSON text; raise ValidationError or ToolError."""
        token = _tries.set(_Tries(partial(from_json, data)))
        try:
            return self._validator.validate_json(data, strict=strict)
        finally:
            _tries.reset(token)


def bounded(schema: Node) -> Node | None:
    """Return a core schema with a bound on its unions that contain themselves; None if it has none."""
    if schema["type"] != "definitions":
        return None  # nothing that refers to itself, as pydantic arranges its schemas
    nodes = list(_nodes(schema, ()))
    definitions = {node["ref"]: node for node, _ in nodes if "ref" in node}
    reach = _reach(nodes)
    ambiguous = {id(node) for node, around in nodes if _is_ambiguous(node, around, definitions, reach)}
    return _with_bounds(schema, ambiguous) if ambiguous else None


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
    found = {start}
    waiting = [start]
    while waiting:
        new = direct[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def _is_ambiguous(node: Node, around: tuple[str, ...], definitions: Mapping[str, Node], reach: Reach) -> bool:
    """Tell whether a schema is a union to which one value can lead back through several of its members."""
    if node["type"] != "union" or not around:
        return False
    choices = [choice[0] if isinstance(choice, tuple) else choice for choice in node["choices"]]
    kinds = [_kind(choice, definitions) for choice in choices if _leads_to(choice, around, reach)]
    return len(kinds) > 1 and ("" in kinds or len(set(kinds)) < len(kinds))


def _leads_to(choice: Node, names: tuple[str, ...], reach: Reach) -> bool:
    references = (node["schema_ref"] for node, _ in _nodes(choice, ()) if node["type"] == "definition-ref")
    return any(not reach[reference].isdisjoint(names) for reference in references)


def _kind(choice: Node, definitions: Mapping[str, Node]) -> str:
    """Return which kind of JSON value a schema reads, or nothing if that is not plain to see."""
    while choice["type"] == "definition-ref":
        choice = definitions[choice["schema_ref"]]
    return "object" if choice["type"] in _OBJECTS else "array" if choice["type"] in _ARRAYS else ""


def _may_be_json(value: Any) -> bool:
    """Return whether a value may be an object or an array as text, which lax arguments are also read from."""
    return isinstance(value, str) and value.lstrip()[:1] in {"{", "["}


def _with_bounds(node: Node, ambiguous: set[int]) -> Node:
    copied = with_children(node, lambda child: _with_bounds(child, ambiguous))
    return _with_bound(copied) if id(node) in ambiguous else copied


def _with_bound(union: Node) -> Node:
    """Put a count before a union. As a discriminator it sees the value and leaves it as it is, JSON text included."""
    reference = union.pop("ref", None)
    choices: Any = {_TAG: union}
    cost = _VISIT + _VISIT_PER_MEMBER * len(union["choices"])

    def count(value: Any) -> int:
        if isinstance(value, dict | list) or _may_be_json(value):
            _tries.get().count(value, cost)
        return _TAG

    return dict(core_schema.tagged_union_schema(choices, count, ref=reference))
