"""What the tokens of the proxy say about the user beyond subject, name, verified e-mail address, tenant and roles.

How it works: `OAuthProxy.claims` names claims of the provider, or computes claims from a `User`. They are determined
at the sign-in, and again with each refresh that says something new about the user. The access token has them as claims
of its own. What is too long for a header stays in the record of the sign-in in the store, and the access token has a
reference to the record, which is read at each call. Without a store such a user can't sign in.

If an ID token lacks a claim that was asked for, the proxy requests it (`ClaimsRequest`). Without *allow* and *claims*,
nothing depends on the answer, and a user is signed in all the same if the provider can't be asked.

Source: RFC 9068 section 2.2 (claims of access tokens), RFC 7519 section 4.1, OpenID Connect Core 1.0 sections 5.4 and
5.6.2 (claims that a provider leaves out).
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from funcmcp._auth.tokens.claims import claim_at
from funcmcp._oauth_proxy.author_functions import AuthorFunctions
from funcmcp._oauth_proxy.failures import CLAIMS_FAILED, PROVIDER_AWAY
from funcmcp._oauth_proxy.upstream import UpstreamUnavailableError, failed
from funcmcp._protocol.codec import decode
from funcmcp._state.line_limit import escaped

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from funcmcp._auth.principal import Principal
    from funcmcp._oauth_proxy.stored_sign_ins import StoredSignIns
    from funcmcp._oauth_proxy.upstream import SignIn, User

    ClaimsOf = Callable[[User], Mapping[str, Any] | Awaitable[Mapping[str, Any]]]
    Claims = Sequence[str] | ClaimsOf

_logger = logging.getLogger("funcmcp")

MAX_IN_TOKEN: Final = 4096
"""Maximum number of bytes of JSON of the roles and claims in an access token: with them it has about 6,500 characters,
and many proxies take headers of 8 KiB at most."""

MAX_BESIDE_UPSTREAM: Final = 1024
"""As above, with a store, if access tokens also carry the token of the provider."""

MAX_IN_STORE: Final = 128 * 1024
"""Maximum number of bytes of JSON of the roles and claims in a store."""

_LONG_TOKEN: Final = 8000
"""Characters of an access token with which the header field comes close to 8 KiB."""

REFERENCE: Final = "sign_in"
"""The claim of an access token of the proxy that refers to the sign-in in the store, encrypted."""

RESERVED: Final = frozenset(
    {
        # Claims of the access token itself, and of the proxy.
        "iss", "sub", "aud", "exp", "nbf", "iat", "jti", "auth_time", "client_id", "scope", "cnf", "name", "email",
        "tid", "roles", "upstream", REFERENCE,
        # Claims by which a resource server decides about a token: its scopes, its client, or that it is an ID token.
        "scp", "azp", "appid", "act", "may_act", "authorization_details", "nonce", "at_hash", "c_hash", "s_hash",
        "typ", "token_use", "email_verified",
        # Names that have a meaning for JavaScript, in which clients and gateways are written.
        "constructor", "prototype",
    }
)  # fmt: skip
"""Names that `OAuthProxy.claims` can't have."""

_MAX_NAME: Final = 200
_MAX_NESTING: Final = 16
"""A sealed record nests the claims in itself, and JSON is read up to a depth of 64."""

_CACHE_SECONDS: Final = 10.0
_MAX_CACHED: Final = 128
"""Maximum number of sign-ins whose claims are cached, so that the cache takes some 16 MiB of JSON at most."""

_SECONDS: Final = 5.0
"""Seconds that the request for more claims may take."""


class ClaimsTooLongError(Exception):
    """The roles and claims of a user are too long. The text has the size and the limit."""


class UserClaims:
    """Determines the claims of users for the tokens of a proxy.

    Args:
        claims: Names of claims of the provider, or a function from a `User` to claims; None for none.
        log_failure: Writes a line about a request to the provider that has failed.
        decides: Whether the proxy decides by a `User` which users may sign in (`OAuthProxy.allow`).
        has_store: Whether the proxy has a store for what is too long for a token.
        short: Maximum number of bytes of JSON that stay in the access token if there is a store.

    Attributes:
        configured: The names or the function; None for neither.
        functions: Calls the function.

    Raises:
        TypeError: *claims* is one string, or has another type.
        ValueError: A name is reserved or not fit.
    """

    def __init__(
        self,
        claims: Claims | None,
        log_failure: Callable[[str, Exception], None],
        *,
        decides: bool,
        has_store: bool,
        short: int,
    ) -> None:
        self.configured: Claims | None = claims
        self._names: tuple[str, ...] = ()
        self._function: ClaimsOf | None = None
        if callable(claims):
            self._function = claims
        elif isinstance(claims, str | Mapping) or (claims is not None and not hasattr(claims, "__iter__")):
            raise TypeError("OAuthProxy.claims is a list of names or a function of a User.")
        elif claims is not None:
            self._names = _checked_names(claims)
            self.configured = list(self._names)
        self.functions = AuthorFunctions("claims", CLAIMS_FAILED)
        self._log_failure = log_failure
        self._is_needed = decides or claims is not None
        self._has_store = has_store
        self._short = short
        self._reported: set[str] = set()
        self._has_warned = False

    async def complete(self, sign_in: SignIn, *, is_new: bool) -> User | None:
        """Return the user of a sign-in with all that the provider says; None if it says nothing about the user.

        Args:
            sign_in: The sign-in.
            is_new: Whether it begins, so that a user whose claims are not needed is signed in all the same.

        Raises:
            UpstreamUnavailableError: The provider can't be asked for claims that are missing.
        """
        user, request = sign_in.user, sign_in.claims_request
        if user is None or request is None:
            return user
        names = (*self._names, *request.names)
        if self._function is None and all(claim_at(user.claims, name) is not None for name in names):
            return user
        try:
            async with asyncio.timeout(_SECONDS):
                return await request.send()
        except TimeoutError:
            failure = failed(UpstreamUnavailableError, PROVIDER_AWAY, "userinfo: no answer in time")
        except UpstreamUnavailableError as error:
            failure = type(error)(f"userinfo: {error}", error.advice)
        if self._is_needed or not is_new:
            raise failure
        self._log_failure("userinfo", failure)
        return user

    async def claims_of(self, user: User) -> Mapping[str, Any]:
        """Return the claims of a user for the tokens.

        Raises:
            ClaimsTooLongError: They are too long.
            UpstreamUnavailableError: The function has failed.
        """
        if self._function is None:
            claims = self._named(user)
        else:
            claims = await self.functions.result_of(self._function, user, _checked_claims)
        limit = MAX_IN_STORE if self._has_store else MAX_IN_TOKEN
        size = size_of(user, claims)
        if size > limit:
            where = "with" if self._has_store else "without"
            raise ClaimsTooLongError(f"{size} bytes; the limit {where} a store is {limit}")
        return claims

    def remaining(self, claims: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return those claims of an earlier sign-in whose names are still configured."""
        if self._function is not None:
            return claims
        return {name: value for name, value in claims.items() if name in self._names}

    def belong_in_store(self, user: User, claims: Mapping[str, Any]) -> bool:
        """Return whether the roles and claims of a user stay in the store."""
        return self._has_store and size_of(user, claims) > self._short

    def check_length(self, access_token: str) -> str:
        """Return an access token; log once in this process if one is too long for many proxies."""
        if len(access_token) > _LONG_TOKEN and not self._has_warned:
            self._has_warned = True
            _logger.warning(
                "event=oauth_access_token_long characters=%d: many proxies refuse headers of more than 8 KiB. Use a "
                "store, or keep fewer claims. A token of the provider for other APIs takes a part of it. This is "
                "logged once.",
                len(access_token),
            )
        return access_token

    def _named(self, user: User) -> dict[str, Any]:
        """Return the named claims that the provider has sent."""
        claims: dict[str, Any] = {}
        for name in self._names:
            value = claim_at(user.claims, name)
            if value is None:
                self._report(name, _reason_for_missing(name, user.claims))
                continue
            try:
                claims[name] = _json_value(value)
            except ValueError as error:
                self._report(name, str(error))
        return claims

    def _report(self, name: str, reason: str) -> None:
        """Log once in this process that a claim is missing."""
        if name not in self._reported:
            self._reported.add(name)
            _logger.warning("event=oauth_claim_missing claim=%s: %s This is logged once.", escaped(name), reason)


class StoredClaims:
    """Reads the claims of callers whose access token refers to their sign-in in the store.

    They are cached for `_CACHE_SECONDS`, so a sign-out counts for all instances after this time at the latest.

    Args:
        sign_ins: The sign-ins.
    """

    def __init__(self, sign_ins: StoredSignIns) -> None:
        self._sign_ins = sign_ins
        self._cached: dict[str, _Cached] = {}

    async def complete(self, principal: Principal) -> Principal | None:
        """Return a principal with its roles and claims; None if its sign-in has ended.

        Raises:
            StoreUnavailableError: The store can't be reached.
        """
        claims = {name: value for name, value in principal.claims.items() if name != REFERENCE}
        reference = str(principal.claims[REFERENCE])
        stored = self._cached.get(reference)
        if stored is None or monotonic() >= stored.until:
            self._cached.pop(reference, None)
            refresh = await self._sign_ins.referred(reference)
            if refresh is None or refresh.user.subject != principal.subject:
                return None
            stored = _Cached(refresh.user.roles, refresh.claims, monotonic() + _CACHE_SECONDS)
            if len(self._cached) >= _MAX_CACHED:
                del self._cached[next(iter(self._cached))]
            self._cached[reference] = stored
        stored_claims = {name: value for name, value in stored.claims.items() if name not in RESERVED}
        if stored.roles:
            stored_claims["roles"] = sorted(stored.roles)
        return replace(principal, roles=stored.roles, claims={**stored_claims, **claims})


class _Cached(NamedTuple):
    roles: frozenset[str]
    claims: Mapping[str, Any]
    until: float


def size_of(user: User, claims: Mapping[str, Any]) -> int:
    """Return the bytes of JSON of the roles and claims of a user."""
    return len(json.dumps([sorted(user.roles), dict(claims)], ensure_ascii=False, separators=(",", ":")).encode())


def _reason_for_missing(name: str, claims: Mapping[str, Any]) -> str:
    distributed = claims.get("_claim_names")
    if (isinstance(distributed, dict) and name in distributed) or (name == "groups" and claims.get("hasgroups")):
        return (
            "the provider has left it out of the ID token of a user, because it is too long (groups overage). Use app "
            'roles, let it send only the groups of the application, or use EntraID(groups="graph").'
        )
    return (
        "neither the ID token nor userinfo of a user has it. Add it to the ID token at the provider (a mapper, an "
        "optional claim or a scope), or check the name."
    )


def _checked_names(names: Iterable[str]) -> tuple[str, ...]:
    checked = tuple(names)
    for name in checked:
        reason = _refusal_of(name)
        if reason is not None:
            raise ValueError(f"OAuthProxy.claims can't have {name!r:.80}: {reason}")
    return tuple(dict.fromkeys(checked))


def _refusal_of(name: object) -> str | None:
    """Return why a claim can't have a name; None if it can."""
    if not isinstance(name, str) or not 0 < len(name) <= _MAX_NAME or not name.isprintable():
        return f"a name has 1 to {_MAX_NAME} printable characters."
    if name == "email":
        return (
            "the claim has the address that the provider has verified. Keep an unverified one by another name: "
            'claims=lambda user: {"unverified_email": user.claims.get("email")}.'
        )
    if name in RESERVED or name.startswith("__"):
        return "the name is reserved. Keep the value by another name, with a function."
    return None


def _checked_claims(claims: object) -> dict[str, Any]:
    """Return the claims that a function has returned, without those that are None; raise TypeError or ValueError."""
    if not isinstance(claims, Mapping):
        raise TypeError(f"OAuthProxy.claims returns a mapping of claims, not {type(claims).__name__}.")
    checked: dict[str, Any] = {}
    for name, value in claims.items():
        reason = _refusal_of(name)
        if reason is not None:
            raise ValueError(f"OAuthProxy.claims can't return {name!r:.80}: {reason}")
        if value is not None:
            checked[name] = _json_value(value)
    return checked


def _json_value(value: object) -> Any:
    """Return a value as it comes back from JSON; raise ValueError if it does not."""
    try:
        return decode(json.dumps(value, allow_nan=False).encode(), nesting=_MAX_NESTING)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"The value can't be kept: {type(error).__name__}: {error!s:.200}") from None
