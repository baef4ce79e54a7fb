"""Versions of components as FastMCP compares, chooses and filters them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import total_ordering
from typing import TYPE_CHECKING, Any, TypeVar

from funcmcp._objects.public_names import public
from funcmcp._server.catalog.versions import order_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from funcmcp._server.catalog.versions import Order

C = TypeVar("C", bound=Any)


@public("funcmcp.compat")
@total_ordering
class VersionKey:
    """What versions are compared by: none, then versions of Python packages, then other texts.

    Args:
        version: The version; None for a component without one.
    """

    __slots__ = ("_order", "_version")

    def __init__(self, version: str | None) -> None:
        self._version = version
        self._order: Order = (0, "") if version is None else order_of(version)

    def __eq__(self, other: object) -> bool:
        """Return whether two versions are the same, such as "1" and "v1.0"."""
        return self._order == other._order if isinstance(other, VersionKey) else NotImplemented

    def __lt__(self, other: VersionKey) -> bool:
        """Return whether this version is the lower one."""
        return self._order < other._order if isinstance(other, VersionKey) else NotImplemented

    def __hash__(self) -> int:
        """Return the hash of the version."""
        return hash(self._order)

    def __repr__(self) -> str:
        return f"VersionKey({self._version!r})"


@public("funcmcp.compat")
@dataclass
class VersionSpec:
    """The versions of components that a filter, a rule or a lookup takes.

    Attributes:
        gte: The lowest version.
        lt: The version from which on no version matches.
        eq: The only version that matches; the two others then do not count.
    """

    gte: str | None = None
    lt: str | None = None
    eq: str | None = None

    def matches(self, version: str | None, *, match_none: bool = True) -> bool:
        """Return whether a version matches.

        Args:
            version: The version.
            match_none: Whether components without a version match.
        """
        if version is None:
            return match_none
        key = VersionKey(version)
        if self.eq is not None:
            return key == VersionKey(self.eq)
        is_too_low = self.gte is not None and key < VersionKey(self.gte)
        is_too_high = self.lt is not None and key >= VersionKey(self.lt)
        return not (is_too_low or is_too_high)

    def intersect(self, other: VersionSpec | None) -> VersionSpec:
        """Return what matches the versions that match both; no version if they contradict each other."""
        if other is None:
            return self
        for exact, range_ in ((self, other), (other, self)):
            if exact.eq is not None:
                return exact if range_.matches(exact.eq) else VersionSpec(eq=_IMPOSSIBLE)
        return VersionSpec(max_version(self.gte, other.gte), min_version(self.lt, other.lt))


_IMPOSSIBLE = "__impossible__"
"""A version that no component has."""


@public("funcmcp.compat")
def parse_version_key(version: str | None) -> VersionKey:
    """Return what a version is compared by."""
    return VersionKey(version)


@public("funcmcp.compat")
def version_sort_key(component: Any) -> tuple[VersionKey, str]:
    """Return what components are sorted by: their versions, and the text of equal ones such as "1" and "1.0"."""
    return VersionKey(component.version), component.version or ""


@public("funcmcp.compat")
def compare_versions(a: str | None, b: str | None) -> int:
    """Return -1 if the first version is the lower one, 1 if it is the higher one, 0 if they are equal."""
    first, second = VersionKey(a), VersionKey(b)
    return (first > second) - (first < second)


@public("funcmcp.compat")
def is_version_greater(a: str | None, b: str | None) -> bool:
    """Return whether the first version is the higher one."""
    return VersionKey(a) > VersionKey(b)


@public("funcmcp.compat")
def max_version(a: str | None, b: str | None) -> str | None:
    """Return the higher of two versions, of which each may be None."""
    return max((a, b), key=VersionKey)


@public("funcmcp.compat")
def min_version(a: str | None, b: str | None) -> str | None:
    """Return the lower of two versions; if one of them is None, the other one."""
    return min((version for version in (a, b) if version is not None), key=VersionKey, default=None)


@public("funcmcp.compat")
def dedupe_with_versions(components: Sequence[C], key_fn: Callable[[C], str]) -> list[C]:
    """Return the newest version of each component, with all of its versions in ``meta["fastmcp"]["versions"]``.

    Args:
        components: The components.
        key_fn: Returns what versions of one component have in common, such as the name.
    """
    groups: dict[str, list[C]] = {}
    for component in components:
        groups.setdefault(key_fn(component), []).append(component)
    return [_newest_of(group) for group in groups.values()]


def _newest_of(group: Sequence[C]) -> C:
    ordered = sorted(group, key=version_sort_key, reverse=True)
    versions = [component.version for component in ordered if component.version is not None]
    if not versions:
        return group[0]
    meta = ordered[0].meta or {}
    changed = {**meta, "fastmcp": {**meta.get("fastmcp", {}), "versions": versions}}
    copy: C = ordered[0].model_copy(update={"meta": changed})
    return copy


def checked_version(version: Any) -> str | None:
    """Return the version of a component or a server as a text.

    Raises:
        TypeError: It is neither a text nor a number.
        ValueError: It has an ``@``. The error is one of pydantic, as in FastMCP.
    """
    if version is None:
        return None
    if isinstance(version, bool) or not isinstance(version, str | int | float):
        raise TypeError(f"Version must be a string, int, or float, got {type(version).__name__}: {version!r}")
    text = str(version)
    if "@" in text:
        _refuse(f"Version string cannot contain '@', which ends names in keys: {text!r}")
    return text


def _refuse(message: str) -> None:
    from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError  # noqa: PLC0415 - an error

    details = InitErrorDetails(type=PydanticCustomError("value_error", "{message}", {"message": message}), input="")
    raise ValidationError.from_exception_data("version", [details])


def check_mixing(kind: str, key: str, version: str | None, existing: Iterable[str | None]) -> None:
    """Raise ValueError if one component would have a version and another one of its name would have none.

    Args:
        kind: The kind of the component, for the error.
        key: Its name or URI.
        version: Its version.
        existing: The versions of the components with this name or URI.
    """
    if any((other is None) != (version is None) for other in existing):
        has, lacks = ("unversioned", "versioned") if version is None else ("versioned", "unversioned")
        raise ValueError(
            f"The {has} {kind} {key!r} can't be added: there is a {lacks} one of this name. Give all of them a "
            "version, or none."
        )


def newest_matching(components: Iterable[C], version: VersionSpec | None) -> C | None:
    """Return the newest component whose version matches; None if there is none."""
    matching = [item for item in components if version is None or version.matches(item.version)]
    return max(matching, key=version_sort_key, default=None)
