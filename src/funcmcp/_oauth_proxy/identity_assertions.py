"""Identity assertions (ID-JAG), with which an identity provider itself lets a client act for a user.

How it works: in an organization, a client that has signed its user in at the identity provider asks the provider for
an assertion for this server. The provider decides by its rules, so the user sees no page. The client brings the
assertion to the token endpoint, and gets an access token. The assertion is checked like an ID token, but for the server
in place of a client, and counts once. There is no refresh token: the client asks the provider again.

Source: MCP "Enterprise-Managed Authorization" (modelcontextprotocol/ext-auth, specification/stable), sections 4.3, 5 to
7; draft-ietf-oauth-identity-assertion-authz-grant, sections 3 and 4.4; RFC 7523 section 3; RFC 8725.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, cast

from funcmcp._auth.tokens.compact import TokenError, read, read_object
from funcmcp._auth.tokens.keys import ALGORITHMS, SHARED_SECRET_ALGORITHMS

if TYPE_CHECKING:
    from funcmcp._auth.tokens.keys import KeySource
    from funcmcp._oauth_proxy.upstream import Upstream, User

GRANT_TYPE: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
PROFILE: Final = "urn:ietf:params:oauth:grant-profile:id-jag"
_TYPE: Final = "oauth-id-jag+jwt"
_ALGORITHMS: Final = ALGORITHMS - SHARED_SECRET_ALGORITHMS
_LEEWAY: Final = 60
_MAX_SECONDS: Final = 3600
_MAX_TIME: Final = 2**53
_MAX_NAMES: Final = {"sub": 512, "client_id": 4096, "jti": 512}
MAX_ASSERTION: Final = 16 * 1024


class IdentityAssertion(NamedTuple):
    """A valid assertion.

    Attributes:
        user: The user.
        client_id: The client that may use it.
        scopes: The scopes that the provider allows.
        signed_in: When the user signed in at the provider, in seconds since 1970.
        unique: What distinguishes the assertion from all others of the provider.
        seconds: Seconds after which it is not valid any more.
    """

    user: User
    client_id: str
    scopes: tuple[str, ...]
    signed_in: int
    unique: str
    seconds: float


class AssertingUpstream(Protocol):
    """An upstream that issues identity assertions for this server."""

    async def identity_assertion(self, assertion: str, audience: str, resource: str) -> IdentityAssertion:
        """Return a valid assertion for a server; raise UpstreamRefusedError or UpstreamUnavailableError."""


def asserting_upstream_of(upstream: Upstream) -> AssertingUpstream | None:
    """Return an upstream that can validate identity assertions; None if it can't."""
    return cast("AssertingUpstream", upstream) if hasattr(upstream, "identity_assertion") else None


async def validated(
    assertion: str, *, issuer: str, audience: str, resource: str, keys: KeySource, now: float
) -> dict[str, Any]:
    """Return the claims of an assertion; raise TokenError if it is not valid.

    Args:
        assertion: The assertion.
        issuer: The exact ``iss``.
        audience: The issuer of this server's tokens, which ``aud`` must be.
        resource: The URL of the endpoint, which ``resource`` must be if it is present.
        keys: The keys of the issuer.
        now: Seconds since 1970.
    """
    if len(assertion) > MAX_ASSERTION:
        raise TokenError("The assertion is too long.")
    signed = read(assertion)
    if signed.type != _TYPE:
        raise TokenError("The assertion has another type than oauth-id-jag+jwt.")
    if signed.algorithm not in _ALGORITHMS:
        raise TokenError("The assertion has an algorithm that the server does not accept.")
    claims = read_object(signed.payload, "payload")
    if claims.get("iss") != issuer:
        raise TokenError("The assertion has another issuer.")
    # More audiences than one would let another server use the assertion here.
    if claims.get("aud") not in (audience, [audience]):
        raise TokenError(f"The assertion is for another server than {audience}.")
    if not _is_for(claims.get("resource", resource), resource):
        raise TokenError("The assertion is for another resource.")
    for name, characters in _MAX_NAMES.items():
        value = claims.get(name)
        if not isinstance(value, str) or not 0 < len(value) <= characters:
            raise TokenError(f"The assertion has no {name}.")
    _check_times(claims, now)
    if not any(key.verifies(signed) for key in await keys.find(signed)):
        raise TokenError("The signature of the assertion is invalid.")
    return claims


def assertion_of(claims: dict[str, Any], user: User, now: float) -> IdentityAssertion:
    """Return the assertion with valid claims."""
    scope, signed_in = claims.get("scope"), claims.get("auth_time", claims["iat"])
    return IdentityAssertion(
        user=user,
        client_id=claims["client_id"],
        scopes=tuple(scope.split()) if isinstance(scope, str) else (),
        signed_in=int(signed_in if _is_time(signed_in) and signed_in <= now else now),
        unique=f"{claims['iss']} {claims['sub']} {claims['jti']}",
        seconds=claims["exp"] + _LEEWAY - now,
    )


def _is_for(value: object, resource: str) -> bool:
    resources = value if isinstance(value, list) else [value]
    return len(resources) == 1 and isinstance(resources[0], str) and resources[0].removesuffix("/") == resource


def _check_times(claims: dict[str, Any], now: float) -> None:
    if not _is_time(claims.get("exp")) or not _is_time(claims.get("iat")):
        raise TokenError("The assertion has no time of issue or no expiry.")
    if now >= claims["exp"] + _LEEWAY:
        raise TokenError("The assertion has expired.")
    if now < claims["iat"] - _LEEWAY:
        raise TokenError("The assertion was issued in the future.")
    if claims["exp"] - claims["iat"] > _MAX_SECONDS:
        raise TokenError(f"The assertion is valid for more than {_MAX_SECONDS} seconds.")
    start = claims.get("nbf", claims["iat"])
    if not _is_time(start) or now < start - _LEEWAY:
        raise TokenError("The assertion is not valid yet.")


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < _MAX_TIME
