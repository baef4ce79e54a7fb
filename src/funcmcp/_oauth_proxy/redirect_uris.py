"""The redirect URIs of clients: which ones can be registered, and which one a request may use.

How it works: an address is allowed by its scheme and by the form of each of its parts, after it has been parsed, and a
request has to repeat a registered address character by character. The only exception is the port of a loopback address:
a program on the user's machine gets a free port each time. There, an address without a path is the same as with a
slash: libraries of clients add it to one of the two.

Source: RFC 6749 section 3.1.2 (no fragment), RFC 8252 sections 7.1 (private-use schemes), 7.3 (loopback addresses with
any port) and 8.4, RFC 9700 section 2.1 (exact comparison); MCP security best practices, "Confused Deputy Problem".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_URIS = 16
MAX_CHARACTERS = 2048
"""Maximum number of characters of all redirect URIs of a client."""

LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
"""RFC 8252 names the two addresses. Clients also register the name. Other spellings of them are not accepted."""

_ALLOWED = re.compile(r"[A-Za-z0-9._~:/?\[\]@!$&'()*+,;=%-]+")
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):(.+)")
_LABEL = re.compile(r"[A-Za-z0-9-]{1,63}")
_LOOPBACK = re.compile(r"http://(localhost|127\.0\.0\.1|\[::1\])(?::[0-9]{1,5})?((?:[/?].*)?)")
_UNSAFE_SCHEMES = frozenset(
    {
        "about", "afp", "android-app", "applescript", "blob", "callto", "chrome", "cid", "content", "data", "facetime",
        "facetime-audio", "feed", "file", "filesystem", "ftp", "ftps", "gopher", "hcp", "help", "imap", "intent",
        "itms", "itms-apps", "itms-appss", "itms-services", "jar", "javascript", "ldap", "ldaps", "mailto", "market",
        "mid", "mk", "news", "nfs", "nntp", "rdp", "res", "resource", "search", "search-ms", "sftp", "shell",
        "shortcuts", "sip", "sips", "skype", "smb", "sms", "ssh", "steam", "tel", "telnet", "urn", "vbscript",
        "view-source", "vnc", "webcal", "ws", "wss",
    }
)  # fmt: skip
"""Schemes whose addresses run code, show content or start a program that is not a client."""

_UNSAFE_PREFIXES = ("ms-", "x-apple")
"""How the schemes of parts of Windows, of Office and of macOS begin, such as ``ms-appinstaller:``."""


class RedirectURIError(ValueError):
    """A client can't register a redirect URI. The text is a sentence for developers, without the address."""


def checked_uris(uris: object, *, application_type: object = None) -> tuple[str, ...]:
    """Return the redirect URIs of a client; raise RedirectURIError if one of them is not allowed.

    Args:
        uris: The value of ``redirect_uris``.
        application_type: ``"web"``: only https is allowed. Any other value allows what native applications use, too.
    """
    if not isinstance(uris, list) or not uris or not all(isinstance(uri, str) for uri in uris):
        raise RedirectURIError("redirect_uris must be a list with at least one address.")
    if len(uris) > MAX_URIS or sum(map(len, uris)) > MAX_CHARACTERS:
        raise RedirectURIError(f"A client has at most {MAX_URIS} redirect URIs with {MAX_CHARACTERS} characters.")
    for uri in uris:
        _check(uri)
        if application_type == "web" and not uri.startswith("https:"):
            raise RedirectURIError('The redirect URIs of a client with the application_type "web" begin with https:.')
    return tuple(dict.fromkeys(uris))


def is_registered(uri: str, registered: Iterable[str]) -> bool:
    """Return whether a request may use a redirect URI."""
    for candidate in registered:
        if uri == candidate or (is_loopback_uri(candidate) and _is_same_but_port(uri, candidate)):
            return True
    return False


def is_loopback_uri(uri: str) -> bool:
    """Return whether a redirect URI leads to a program on the user's machine, whichever this is."""
    return _LOOPBACK.fullmatch(uri) is not None


def destination_of(uri: str) -> str:
    """Return what a person has to recognize in a registered redirect URI: the host, or the scheme of an application."""
    parts = urlsplit(uri)
    return parts.netloc.lower() if parts.scheme in {"http", "https"} else f"{parts.scheme}:"


def is_host(host: str) -> bool:
    """Return whether a text is a host name, or an IPv4 address: labels of letters, digits and hyphens."""
    labels = host.split(".")
    return all(_LABEL.fullmatch(label) and label[0] != "-" and label[-1] != "-" for label in labels)


def _check(uri: str) -> None:
    match = _SCHEME.fullmatch(uri)
    if match is None or not _ALLOWED.fullmatch(uri):
        raise RedirectURIError("A redirect URI must be an absolute address without a fragment and special characters.")
    scheme = match[1]
    if scheme in _UNSAFE_SCHEMES or scheme.startswith(_UNSAFE_PREFIXES):
        raise RedirectURIError(f"A redirect URI can't begin with {scheme}:.")
    if any(segment in {".", ".."} for segment in unquote(match[2]).replace("\\", "/").split("/")):
        raise RedirectURIError("A redirect URI can't have the segments . and .. in its path.")
    try:
        parts = urlsplit(uri)
        host, _port = parts.hostname or "", parts.port
    except ValueError:
        raise RedirectURIError("The host or the port of a redirect URI is malformed.") from None
    if "@" in parts.netloc:
        raise RedirectURIError("A redirect URI can't have a user name.")
    if scheme == "https" and not is_host(host):
        raise RedirectURIError("The host of a redirect URI is malformed.")
    if scheme == "http" and not (host in LOOPBACK_HOSTS and is_loopback_uri(uri)):
        raise RedirectURIError("A redirect URI begins with https:// unless its host is localhost, 127.0.0.1 or [::1].")


def _is_same_but_port(uri: str, registered: str) -> bool:
    requested, expected = _LOOPBACK.fullmatch(uri), _LOOPBACK.fullmatch(registered)
    if requested is None or expected is None or requested[1] != expected[1]:
        return False
    if (requested[2] or "/") != (expected[2] or "/"):  # RFC 3986 section 6.2.3: an empty path is a slash
        return False
    try:
        _check(uri)
    except RedirectURIError:
        return False
    return True
