"""Versions of features: their order, and the version that a request names.

A version is compared as one of Python packages (PEP 440) if it is one, with or without a ``v`` before it, and as a text
otherwise. Texts follow all versions of Python packages. FastMCP has the same order, and the same place in ``_meta``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TypeAlias

    from packaging.version import Version

    Order: TypeAlias = tuple[int, Version | str]


class Versioned(Protocol):
    """A feature with a version."""

    @property
    def version(self) -> str | None:
        """The version."""


F = TypeVar("F", bound=Versioned)

_META = "fastmcp"


def order_of(version: str | None) -> Order:
    """Return what versions are compared by; equal versions may be written differently."""
    from packaging.version import InvalidVersion, Version  # noqa: PLC0415 - few servers have versions

    text = version or ""
    try:
        return 1, Version(text.lstrip("v"))
    except InvalidVersion:
        return 2, text


def newest_first(features: Iterable[F]) -> list[F]:
    """Return features in the order of their versions. The text decides between equal ones, such as "1" and "1.0"."""
    return sorted(features, key=lambda feature: (order_of(feature.version), feature.version or ""), reverse=True)


def requested_version(params: Mapping[str, Any]) -> str | None:
    """Return the version of a feature that a request names in its ``_meta``; None for the newest one."""
    meta = params.get("_meta")
    members = meta.get(_META) if isinstance(meta, dict) else None
    version = members.get("version") if isinstance(members, dict) else None
    return version if isinstance(version, str) else None
