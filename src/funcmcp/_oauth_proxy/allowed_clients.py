"""Which clients may sign users in: by the hosts of their documents and of their redirect URIs.

How it works: a client whose id is the URL of a document is as good as the host of the document, so that this host
decides. The name of a client that registers proves nothing; what matters is where its users return to. So each of its
redirect URIs must lead to an allowed place. The rule holds at every step: registration, authorization, code, refresh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable
from urllib.parse import urlsplit

from funcmcp._oauth_proxy.redirect_uris import LOOPBACK_HOSTS, is_host, is_loopback_uri

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_LOOPBACK: Final = "http://localhost"


@runtime_checkable
class ClientFilter(Protocol):
    """Decides which clients may sign users in.

    Attributes:
        checks_documents: Whether the redirect URIs in the document of a client must be allowed as well.
    """

    checks_documents: bool

    def allows_document(self, url: str) -> bool:
        """Return whether a client may have a document at a URL as its id."""

    def allows_uris(self, redirect_uris: Iterable[str]) -> bool:
        """Return whether a client may have these redirect URIs."""


class AllowedClients:
    """The clients that may sign users in.

    Args:
        origins: ``"https://<host>"`` for a site, ``"http://localhost"`` for programs on the user's computer, and
            ``"<scheme>:"`` for an application with a scheme of its own.

    Raises:
        TypeError: *origins* is one string.
        ValueError: There are none, or one has another form.
    """

    checks_documents = False

    def __init__(self, origins: Sequence[str]) -> None:
        if isinstance(origins, str):
            raise TypeError('OAuthProxy.clients is a list of strings, such as ["https://claude.ai"], not one string.')
        if not origins:
            raise ValueError("OAuthProxy.clients needs at least one entry. None allows every client.")
        self._places = frozenset(map(_checked, origins))

    def allows_document(self, url: str) -> bool:
        """Return whether a client may have a document at a URL as its id."""
        return _place_of(url) in self._places

    def allows_uris(self, redirect_uris: Iterable[str]) -> bool:
        """Return whether a client that registers may have these redirect URIs."""
        return all(_place_of(uri) in self._places for uri in redirect_uris)


def _place_of(uri: str) -> str:
    """Return the place that a checked URI leads to, as the list has it."""
    if is_loopback_uri(uri):
        return _LOOPBACK
    parts = urlsplit(uri)
    return f"https://{parts.netloc.lower()}" if parts.scheme == "https" else f"{parts.scheme}:"


def _checked(origin: str) -> str:
    """Return an entry of the list as `_place_of` writes it; raise ValueError if it has another form."""
    scheme, separator, remainder = origin.partition(":")
    if separator and not remainder.strip("/") and scheme.isascii() and scheme not in {"http", "https", ""}:
        return f"{scheme.lower()}:"
    parts = urlsplit(origin)
    if parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError(_form(origin))
    host = parts.hostname or ""
    if parts.scheme == "http" and host in LOOPBACK_HOSTS:
        return _LOOPBACK
    if parts.scheme == "https" and is_host(host):
        return f"https://{parts.netloc.lower()}"
    raise ValueError(_form(origin))


def _form(origin: str) -> str:
    return (
        'An entry of OAuthProxy.clients is "https://<host>", "http://localhost" for programs on the user\'s computer, '
        f'or the scheme of an application such as "cursor:"; got {origin!r}.'
    )
