"""Patterns of redirect URIs, as `allowed_client_redirect_uris` of FastMCP has them.

A pattern is a URI. ``*`` stands for any port, for any text in the path, and as ``*.`` for subdomains. A pattern without
a path allows every path, and one of a loopback address without a port every port.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_PORTS: Final = {"https": "443", "http": "80"}


class _Place(NamedTuple):
    """The parts of a URI or a pattern."""

    scheme: str
    host: str
    port: str | None
    path: str


class RedirectPatterns:
    """Decides which clients may sign users in, by patterns of their redirect URIs.

    Args:
        patterns: The patterns. Without one, no client may.

    Attributes:
        checks_documents: Whether the redirect URIs in the documents of clients must match, too: always.

    Raises:
        TypeError: The patterns are one string.
    """

    checks_documents = True

    def __init__(self, patterns: Sequence[str]) -> None:
        if isinstance(patterns, str):
            raise TypeError("allowed_client_redirect_uris is a list of strings, not one string.")
        self._patterns = [_place_of(str(pattern)) for pattern in patterns]

    def allows_document(self, url: str) -> bool:
        """Return whether the document of a client may be requested: its redirect URIs decide."""
        return bool(url and self._patterns)

    def allows_uris(self, redirect_uris: Iterable[str]) -> bool:
        """Return whether all redirect URIs of a client match a pattern."""
        return all(self._allows(uri) for uri in redirect_uris)

    def _allows(self, uri: str) -> bool:
        parts = urlsplit(uri)
        if "@" in parts.netloc or "\\" in uri or _has_dots(parts.path):
            return False
        place = _place_of(uri)
        return any(_matches(place, pattern) for pattern in self._patterns)


def _place_of(uri: str) -> _Place:
    parts = urlsplit(uri)
    host, port = parts.netloc, None
    if not host.endswith("]") and ":" in host:
        host, _, port = host.rpartition(":")
    return _Place(parts.scheme.lower(), host.strip("[]").lower(), port or None, parts.path or "/")


def _has_dots(path: str) -> bool:
    """Return whether a path has a segment ``.`` or ``..``, with which a browser leaves it."""
    return any(segment in {".", ".."} for text in (path, unquote(path)) for segment in text.split("/"))


def _matches(place: _Place, pattern: _Place) -> bool:
    if place.scheme != pattern.scheme or not _matches_host(place.host, pattern.host):
        return False
    default = _PORTS.get(place.scheme, "")
    any_port = pattern.port == "*" or (pattern.port is None and _is_loopback(pattern.host))
    if not any_port and (place.port or default) != (pattern.port or default):
        return False
    return pattern.path == "/" or fnmatchcase(place.path, pattern.path)


def _matches_host(host: str, pattern: str) -> bool:
    return host.endswith(pattern[1:]) and host != pattern[2:] if pattern.startswith("*.") else host == pattern


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
