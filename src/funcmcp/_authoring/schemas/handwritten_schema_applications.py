"""How often the parts of a hand-written schema apply to the parts of a value.

A schema that refers to itself in two members of an ``anyOf`` applies 2 to the power of the depth times to a nested
value. The library caches the results of such checks, so they cost little. When it lists errors, it does not cache, and
lists every combination. It never caches references that do not lead back to themselves: a chain of 30 of them that
doubles at each step takes minutes. `Applications` counts the applications before a check, up to a limit.

How it works: each subschema is a state. Keywords such as ``anyOf`` and ``$ref`` lead from a state to other states that
apply to the same value; ``properties`` and ``items`` lead to states that apply to its members. The closure of a state
contains all states that apply to the same value, with the number of ways that lead to each; it is computed once.
`Applications.exceeds` walks through a value, and adds up the ways to the states of each part. Keywords that depend on
the value count as if they applied.

Source: JSON Schema 2020-12 "Core", sections 8.2 and 10, and the keywords that older drafts have in their place.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urldefrag, urljoin

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SAME_VALUE = ("else", "if", "not", "then")
_SAME_VALUE_LISTS = ("allOf", "anyOf", "oneOf")
_SAME_VALUE_MAPS = ("dependencies", "dependentSchemas")
_ANY_MEMBER = ("additionalProperties", "unevaluatedProperties")
_ANY_ITEM = ("additionalItems", "contains", "items", "unevaluatedItems")
_ITEM_LISTS = ("items", "prefixItems")
_DEFINITIONS = ("$defs", "definitions")
_REFERENCES = ("$dynamicRef", "$recursiveRef", "$ref")
_UNEVALUATED = ("unevaluatedItems", "unevaluatedProperties")

_MAX_FOR_ONE_VALUE = 20_000
"""The maximum number of applications of parts of a schema to one value, through references that do not lead back."""

_COST_PER_CHOICE = 30

_UNKNOWN = 10**9
"""The number of applications of a schema in another document, whose parts are unknown."""


class Applications:
    """Counts how often parts of a schema apply to parts of values.

    Args:
        schema: A valid JSON schema, which must not change.

    Raises:
        ValueError: The schema applies itself to the same value again, or its parts apply to one value too often.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._root = _State(dict(schema), "")
        self._states: dict[int, _State] = {}
        self._anchors: dict[str, list[_State]] = {}
        self._dynamic: dict[str, list[_State]] = {}
        self._resources: dict[str, _State] = {"": self._root}
        self._collect(self._root)
        self._repeats = 2 if self.has_unevaluated else 1
        self._closures: dict[int, Counter[int]] = {}
        try:
            for key in list(self._states):
                if self._closure(key).total() > _MAX_FOR_ONE_VALUE:
                    raise ValueError(
                        f"parts of it apply more than {_MAX_FOR_ONE_VALUE:,} times to one value. "
                        "Remove some references to the same definition"
                    )
            self._per_part: dict[int, tuple[int, int]] = {}
            self._recursive: set[int] = set()
            self.per_part = self._most_per_part()
        except RecursionError:
            raise ValueError("its references are nested too deeply") from None

    @property
    def has_unevaluated(self) -> bool:
        """Whether it has ``unevaluatedProperties`` or ``unevaluatedItems``, which apply other keywords once more."""
        return any(keyword in state.schema for state in self._states.values() for keyword in _UNEVALUATED)

    def uses(self, *keywords: str) -> bool:
        """Return whether any part of the schema has one of these keywords."""
        return any(keyword in state.schema for state in self._states.values() for keyword in keywords)

    @property
    def has_references(self) -> bool:
        """Whether any part of the schema has a reference."""
        return any(keyword in state.schema for state in self._states.values() for keyword in _REFERENCES)

    def _most_per_part(self) -> int:
        """Return a bound on the applications to each part of any value, for a library that caches recursive ones."""
        total = max(self._widths(self._root))
        counted: set[int] = set()
        while pending := self._recursive - counted:
            key = pending.pop()
            counted.add(key)
            total += max(self._widths(self._states[key], again=True))
        return total

    def _widths(self, state: _State, *, again: bool = False) -> tuple[int, int]:
        """Return how often a state's parts apply to its value, and how often at most to one value inside it.

        A reference to a state that is being counted counts once, and the state is added to the recursive ones.
        """
        key = id(state.schema)
        if key in self._per_part and not again:
            widths = self._per_part[key]
            if not any(widths):
                self._recursive.add(key)
                return 1, 1
            return widths
        self._per_part[key] = (0, 0)
        here, inside = state.cost, self._most_inside(state)
        for target in [*state.same_value(), *self._targets(state)]:
            at_target, below_target = self._widths(self._states[id(target)])
            here += at_target * self._repeats
            inside += below_target * self._repeats
        self._per_part[key] = (here, inside)
        return here, inside

    def _most_inside(self, state: _State) -> int:
        """Return a bound on the applications to one value in an object or an array, whatever its name or index."""

        def largest(schema: dict[str, Any]) -> int:
            return max(self._widths(self._states[id(schema)]))

        named = max(map(largest, state.named_members()), default=0) + sum(map(largest, state.any_members()))
        indexed = max(map(largest, state.indexed_items()), default=0) + sum(map(largest, state.any_items()))
        return max(named, indexed)

    def exceeds(self, value: Any, limit: int) -> bool:
        """Return whether parts of the schema apply more than *limit* times to a value and the values in it."""
        total = 0
        pending: list[tuple[Any, Counter[int]]] = [(value, Counter({id(self._root.schema): 1}))]
        while pending:
            part, entered = pending.pop()
            counts: Counter[int] = Counter()
            for key, count in entered.items():
                for state, ways in self._closure(key).items():
                    counts[state] += count * ways
            for key, count in counts.items():
                total += count * self._states[key].weight
            if total > limit:
                return True
            if isinstance(part, dict | list):
                # Each pending member counts at least once, so the list need not be longer than the limit.
                pending += islice(self._members(part, counts), max(0, limit + 1 - total - len(pending)))
        return False

    def _members(self, part: dict[str, Any] | list[Any], counts: Counter[int]) -> Iterator[tuple[Any, Counter[int]]]:
        """Yield the members of an object or an array, with the number of ways to each schema that applies to them."""
        states = [(self._states[key], count) for key, count in counts.items()]
        is_object = isinstance(part, dict)
        of_any: Counter[int] = Counter()
        for state, count in states:
            for schema in state.any_members() if is_object else state.any_items():
                of_any[id(schema)] += count
        placed = [(state, count) for state, count in states if state.has_places]
        for place, member in part.items() if isinstance(part, dict) else enumerate(part):
            entered = of_any
            for state, count in placed:
                placed_schema = state.at(place)
                if placed_schema is not None:
                    entered = entered + Counter({id(placed_schema): count})
            if entered:
                yield member, entered

    def _collect(self, state: _State) -> None:
        """Store a state and all states below it, by the names that references may use."""
        if id(state.schema) in self._states:
            return
        schema = state.schema
        self._states[id(schema)] = state
        if isinstance(schema.get("$id"), str):
            state.base = urldefrag(urljoin(state.base, schema["$id"])).url
            self._resources[state.base] = state
        for keyword, by_name in (("$anchor", self._anchors), ("$dynamicAnchor", self._dynamic)):
            if isinstance(schema.get(keyword), str):
                by_name.setdefault(schema[keyword], []).append(state)
        for child in state.all():
            self._collect(_State(child, state.base))

    def _closure(self, key: int) -> Counter[int]:
        """Return the states that apply to a value together with one state, and the number of ways to each."""
        if key in self._closures:
            closure = self._closures[key]
            if not closure:
                raise ValueError("a reference leads back to itself for the same value")
            return closure
        self._closures[key] = Counter()
        closure = Counter({key: 1})
        state = self._states[key]
        for target in [*state.same_value(), *self._targets(state)]:
            for reached, ways in self._closure(id(target)).items():
                closure[reached] += ways * self._repeats
        self._closures[key] = closure
        return closure

    def _targets(self, state: _State) -> Iterator[dict[str, Any]]:
        """Yield the schemas to which the references of a state may lead."""
        for keyword in _REFERENCES:
            reference = state.schema.get(keyword)
            if isinstance(reference, str):
                targets = list(self._resolved(reference, state.base, is_dynamic=keyword != "$ref"))
                if not targets:
                    state.weight = _UNKNOWN
                yield from targets

    def _resolved(self, reference: str, base: str, *, is_dynamic: bool) -> Iterator[dict[str, Any]]:
        url, fragment = urldefrag(urljoin(base, reference) if base else reference)
        if is_dynamic:
            by_name = self._dynamic.get(fragment, self._anchors.get(fragment, []))
            resources = by_name if fragment else list(self._resources.values())
            yield from (state.schema for state in resources)
            return
        resource = self._resources.get(url)
        if fragment and not fragment.startswith("/"):
            anchored = self._anchors.get(fragment, []) + self._dynamic.get(fragment, [])
            yield from (state.schema for state in anchored if state.base == url)
        elif resource is not None:
            node: Any = resource.schema
            for part in fragment.split("/")[1:]:
                name = unquote(part).replace("~1", "/").replace("~0", "~")
                node = node[int(name)] if isinstance(node, list) else node[name]
            if isinstance(node, dict):
                self._collect(_State(node, url))
                yield node


class _State:
    """A subschema.

    Attributes:
        schema: The subschema.
        base: The URI that its references are relative to.
        weight: The number of times that one application counts: one, and one for each value of an ``enum``.
        cost: The time of one application, as a multiple of a plain one. The library looks up texts and integers of an
            ``enum``, and compares other values one by one.
    """

    def __init__(self, schema: dict[str, Any], base: str) -> None:
        self.schema = schema
        self.base = base
        self.weight = 1 + len(schema.get("enum", ()))
        self.cost = 1
        if not all(isinstance(value, str | int) for value in schema.get("enum", ())):
            self.cost += _COST_PER_CHOICE * len(schema["enum"])

    def all(self) -> Iterator[dict[str, Any]]:
        """Yield all subschemas directly inside it."""
        yield from self.same_value()
        yield from self._single(_ANY_MEMBER)
        yield from self._single(_ANY_ITEM)
        yield from self._single(("propertyNames",))
        yield from self._listed(_ITEM_LISTS)
        yield from self._named(("patternProperties", "properties", *_DEFINITIONS))

    def same_value(self) -> Iterator[dict[str, Any]]:
        """Yield the subschemas that apply to the same value."""
        yield from self._single(_SAME_VALUE)
        yield from self._listed(_SAME_VALUE_LISTS)
        yield from self._named(_SAME_VALUE_MAPS)

    @property
    def has_places(self) -> bool:
        """Whether there are subschemas for members with certain names or items with certain indexes."""
        return any(keyword in self.schema for keyword in ("properties", *_ITEM_LISTS))

    def at(self, place: str | int) -> dict[str, Any] | None:
        """Return the subschema for the member with this name, or the item with this index."""
        if isinstance(place, str):
            schemas: Any = self.schema.get("properties")
            schema = schemas.get(place) if isinstance(schemas, dict) else None
            return schema if isinstance(schema, dict) else None
        for keyword in _ITEM_LISTS:
            schemas = self.schema.get(keyword)
            if isinstance(schemas, list) and place < len(schemas) and isinstance(schemas[place], dict):
                return schemas[place]  # type: ignore[no-any-return] # checked above
        return None

    def named_members(self) -> Iterator[dict[str, Any]]:
        """Yield the subschemas that apply to members with certain names."""
        yield from self._named(("properties",))

    def any_members(self) -> Iterator[dict[str, Any]]:
        """Yield the subschemas that may apply to a member of any name."""
        yield from self._named(("patternProperties",))
        yield from self._single(_ANY_MEMBER)
        yield from self._single(("propertyNames",))

    def indexed_items(self) -> Iterator[dict[str, Any]]:
        """Yield the subschemas that apply to items of certain indexes."""
        yield from self._listed(_ITEM_LISTS)

    def any_items(self) -> Iterator[dict[str, Any]]:
        """Yield the subschemas that may apply to an item of any index."""
        yield from self._single(_ANY_ITEM)

    def _single(self, keywords: tuple[str, ...]) -> Iterator[dict[str, Any]]:
        for keyword in keywords:
            if isinstance(self.schema.get(keyword), dict):
                yield self.schema[keyword]

    def _listed(self, keywords: tuple[str, ...]) -> Iterator[dict[str, Any]]:
        for keyword in keywords:
            schemas = self.schema.get(keyword)
            if isinstance(schemas, list):
                yield from (schema for schema in schemas if isinstance(schema, dict))

    def _named(self, keywords: tuple[str, ...]) -> Iterator[dict[str, Any]]:
        for keyword in keywords:
            schemas = self.schema.get(keyword)
            if isinstance(schemas, dict):
                yield from (schema for schema in schemas.values() if isinstance(schema, dict))
