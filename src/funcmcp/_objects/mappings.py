"""Dicts that have some of the members of a mapping."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

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
