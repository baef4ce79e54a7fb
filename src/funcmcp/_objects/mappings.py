"""Dicts that have some of the members of a mapping or the last ones only, and the depth of values of JSON."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections import OrderedDict
    from collections.abc import Container, Iterable, Mapping

K = TypeVar("K")
V = TypeVar("V")


def only(members: Mapping[K, V], keys: Container[K]) -> dict[K, V]:
    """Return the members that have one of the keys."""
    return {key: value for key, value in members.items() if key in keys}


def without(members: Mapping[K, V], *keys: K) -> dict[K, V]:
    """Return the members that have none of the keys."""
    return {key: value for key, value in members.items() if key not in keys}


def without_none(members: Mapping[K, V | None]) -> dict[K, V]:
    """Return the members whose value is not None."""
    return {key: value for key, value in members.items() if value is not None}


def lower_names(members: Mapping[str, V]) -> dict[str, V]:
    """Return the members with their names in lower case."""
    return {name.lower(): value for name, value in members.items()}


def remember(members: OrderedDict[K, V], key: K, value: V, limit: int) -> None:
    """Set a member. If there are more than *limit* then, the one that was set first is removed."""
    members[key] = value
    members.move_to_end(key)
    if len(members) > limit:
        members.popitem(last=False)


def is_nested_deeper(value: Any, limit: int) -> bool:
    """Return whether the objects and arrays of a value of JSON are nested more than *limit* levels deep."""
    level = [value]
    for _ in range(limit + 1):
        level = [container for container in level if type(container) is dict or type(container) is list]
        if not level:
            return False
        level = list(chain.from_iterable(map(_children_of, level)))
    return True


def _children_of(container: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return container.values() if type(container) is dict else container
