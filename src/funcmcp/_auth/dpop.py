"""Tokens that are bound to a key of the client (DPoP): which of them a server takes, and the URL that proofs are for.

Source: RFC 9449 sections 4.3 (what a proof must be), 5.1 and 7.1 (metadata, the scheme DPoP); RFC 9728 section 2
(`dpop_bound_access_tokens_required`); RFC 3986 sections 6.2.2 and 6.2.3 (normalization).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal, TypeAlias
from urllib.parse import SplitResult, urlsplit

from funcmcp._auth.authenticator import parts_of

if TYPE_CHECKING:
    from funcmcp._auth.authenticator import Authenticator

DPoP: TypeAlias = Literal["allowed", "required"]
"""Whether tokens that are bound to a key are taken beside others, or are the only ones."""

PROOF_ALGORITHMS: Final = ("ES256", "ES384", "ES512", "EdDSA", "Ed25519", "PS256", "PS384", "PS512", "RS256", "RS384",
                           "RS512")  # fmt: skip
"""The algorithms of proofs, all of them asymmetric, in the order of preference."""

_VISIBLE: Final = re.compile(r"[\x21\x23-\x5b\x5d\x5f\x61-\x7a\x7e]+")
_PORTS: Final = {"http": 80, "https": 443}
_ESCAPE: Final = re.compile(r"%([0-9A-Fa-f]{2})?")
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def checked_dpop(owner: str, value: str | None) -> DPoP | None:
    """Return the value of an option; raise ValueError for another one.

    Args:
        owner: The class that has the option.
        value: The value.
    """
    if value not in {None, "allowed", "required"}:
        raise ValueError(f'{owner}.dpop must be "allowed", "required" or None; got {value!r}.')
    return value  # type: ignore[return-value]


def dpop_of(authenticator: Authenticator) -> DPoP | None:
    """Return which tokens the authenticators that `first_of` has combined take together.

    ``"required"`` if each of those for tokens requires proofs. Other authenticators play no part.
    """
    modes = {part.dpop for part in parts_of(authenticator) if hasattr(part, "dpop")}
    if modes == {"required"}:
        return "required"
    return "allowed" if modes - {None} else None


def needs_nonces(authenticator: Authenticator) -> bool:
    """Return whether proofs need a nonce of the server."""
    return any(getattr(part, "dpop_nonces", False) is True for part in parts_of(authenticator))


def normalized(url: str) -> str | None:
    """Return a URL without query and fragment, in the form that equal URLs have in common.

    None: it is not a URL of http or https, has a user name, or has characters that a URL can't contain.
    """
    parts = _split(url)
    path = None if parts is None else _decoded(parts.path)
    if parts is None or path is None:
        return None
    host = parts.hostname or ""
    authority = f"[{host}]" if ":" in host else host
    if parts.port not in {None, _PORTS[parts.scheme]}:
        authority = f"{authority}:{parts.port}"
    return f"{parts.scheme}://{authority}{_without_dots(path) or '/'}"


def _split(url: str) -> SplitResult | None:
    """Return the parts of a URL; None if it is not one that a request can have."""
    if not _VISIBLE.fullmatch(url):
        return None
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in _PORTS and bool(parts.hostname) and "@" not in parts.netloc and parts.port != 0
    except ValueError:  # of the port, or of an address in brackets
        return None
    return parts if is_valid else None


def _decoded(path: str) -> str | None:
    """Return a path with its percent-encodings as RFC 3986 wants them; None if one is incomplete."""
    if any(match[1] is None for match in _ESCAPE.finditer(path)):
        return None
    return _ESCAPE.sub(lambda match: _character(match[1]), path)


def _character(digits: str) -> str:
    character = chr(int(digits, 16))
    return character if character in _UNRESERVED else f"%{digits.upper()}"


def _without_dots(path: str) -> str:
    """Return a path without the segments ``.`` and ``..`` (RFC 3986 section 5.2.4)."""
    if "/." not in path:
        return path
    segments: list[str] = []
    for segment in path.split("/")[1:]:
        if segment == "..":
            segments[-1:] = []
        elif segment != ".":
            segments.append(segment)
    if path.endswith(("/.", "/..")):
        segments.append("")
    return "/" + "/".join(segments)
