"""What a refresh token carries: a concealed text in place of a store, or the record of a stored sign-in.

The record has a version (`funcmcp._state.records`). Members that this version does not know are kept at each renewal.
Version 0.1 wrote lists, which are still read.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from funcmcp._oauth_proxy.upstream import User
from funcmcp._state.records import VERSION, are_texts, to_record, value_of, with_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp._state.records import Extra, Value
    from funcmcp._state.seal import KeyRing

_logger = logging.getLogger("funcmcp")

MAX_REFRESH_TOKEN = 10 * 1024
"""Maximum number of characters of a refresh token. A form with it and the longest client id has to fit a request."""

_REFRESH = "oauth refresh"
_REFRESH_OF_0_1 = (
    "subject", "name", "email", "tenant", "roles", "client", "scopes", "signed_in", "upstream_token"
)  # fmt: skip
"""The members of records of version 0.1, which were lists. Sign-ins of that version end after 90 days."""


@dataclass(frozen=True, slots=True)
class Refresh:
    """What a refresh token carries.

    Attributes:
        user: The user.
        client: The client's key.
        scopes: The scopes that the user has granted.
        signed_in: When the user signed in, in seconds since 1970.
        upstream_token: What renews the sign-in at the identity provider.
        jkt: The thumbprint of the client's key to which the tokens are bound (DPoP); None if they are not bound.
        claims: More claims of the user, for the access tokens (`user_claims`).
        extra: Members of the record that this version does not know.
    """

    user: User
    client: str
    scopes: tuple[str, ...]
    signed_in: int
    upstream_token: str = field(repr=False)
    jkt: str | None = None
    claims: Mapping[str, Any] = field(default_factory=dict, repr=False)
    extra: Extra = field(default_factory=dict)


def to_refresh_token(keys: KeyRing, refresh: Refresh) -> str | None:
    """Return a refresh token; None if it would be too long, because that of the identity provider is."""
    members, version = with_key(refresh_members(refresh), refresh.jkt)
    token = keys.conceal(_REFRESH, to_record(members, refresh.extra, version))
    if len(token) <= MAX_REFRESH_TOKEN:
        return token
    _logger.warning("event=oauth_refresh_token_too_long characters=%d: the client gets none. Use a store.", len(token))
    return None


def of_refresh_token(keys: KeyRing, text: str, now: float, seconds: float) -> Refresh | None:
    """Return what a refresh token carries; None if it is not one of the server's, or has expired.

    Args:
        keys: The keys.
        text: The token.
        now: Seconds since 1970.
        seconds: Seconds from the sign-in to the end of its refresh tokens.
    """
    payload = keys.reveal(_REFRESH, text) if len(text) <= MAX_REFRESH_TOKEN else None
    refresh = refresh_of(value_of(payload))
    if payload is not None and refresh is None:
        log_unreadable()
    return None if refresh is None or now - refresh.signed_in >= seconds else refresh


def log_unreadable() -> None:
    """Log that a sign-in of these keys can't be read."""
    _logger.warning(
        "event=oauth_sign_in_unreadable: a newer version of the server has written it, or it is damaged. The user has "
        "to sign in again."
    )


def refresh_members(refresh: Refresh) -> dict[str, Any]:
    """Return what a refresh token carries, but for its key, as members of a record."""
    user = refresh.user
    members: dict[str, Any] = {
        "subject": user.subject,
        "name": user.name,
        "email": user.email,
        "tenant": user.tenant,
        "roles": sorted(user.roles),
        "client": refresh.client,
        "scopes": list(refresh.scopes),
        "signed_in": refresh.signed_in,
        "upstream_token": refresh.upstream_token,
    }
    return members | {"claims": dict(refresh.claims)} if refresh.claims else members


def refresh_of(value: Value) -> Refresh | None:
    """Return what `refresh_members` has written; None if this version can't read it."""
    match value:
        case [str(), _, _, _, list(), str(), list(), int(), str()]:  # of version 0.1
            members = dict(zip(_REFRESH_OF_0_1, value, strict=True))
            return refresh_of({**members, "v": VERSION})
        case {"v": 2, "jkt": str(jkt), **unbound}:
            refresh = refresh_of({str(name): member for name, member in unbound.items()} | {"v": VERSION})
            return None if refresh is None else replace(refresh, jkt=jkt)
        case {
            "v": 1,
            "subject": str(subject),
            "name": str() | None as name,
            "email": str() | None as email,
            "tenant": str() | None as tenant,
            "roles": list(roles),
            "client": str(client),
            "scopes": list(scopes),
            "signed_in": int(signed_in),
            "upstream_token": str(upstream_token),
            **extra,
        } if are_texts(roles) and are_texts(scopes):
            user = User(subject, name=name, email=email, tenant=tenant, roles=frozenset(roles))
            claims = extra.pop("claims", {})
            if not isinstance(claims, dict):
                return None
            return Refresh(user, client, tuple(scopes), signed_in, upstream_token, claims=claims, extra=extra)
    return None
