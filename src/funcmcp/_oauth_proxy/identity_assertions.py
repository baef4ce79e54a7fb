"""Identity assertions (ID-JAG), with which an identity provider itself lets a client act for a user.

How it works: in an organization, a client that has signed its user in at the identity provider asks the provider for
an assertion for this server. The provider decides by its rules, so the user sees no page. The client brings the
assertion to the token endpoint, and gets an access token. The assertion is checked like an ID token, but for the server
in place of a client, and counts once, which needs a store. There is no refresh token: the client asks the provider
again.

The operator names the clients, each with its secret. A client without one is public: then whoever has an assertion can
use it, once.

Source: MCP "Enterprise-Managed Authorization" (modelcontextprotocol/ext-auth, specification/stable), sections 4.3, 5 to
7; draft-ietf-oauth-identity-assertion-authz-grant, sections 3, 4.4 and "Client Authentication"; RFC 7523 section 3; RFC
8725; RFC 6749 section 2.3.1 (secrets of clients).
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, cast

from funcmcp._auth.basic import read_basic
from funcmcp._auth.tokens.compact import TokenError, read, read_object
from funcmcp._auth.tokens.keys import ALGORITHMS, SHARED_SECRET_ALGORITHMS
from funcmcp._oauth_proxy.web import OAuthError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping

    from funcmcp._auth.tokens.keys import KeySource
    from funcmcp._oauth_proxy.upstream import Upstream, User
    from funcmcp._oauth_proxy.web import Parameters

ASSERTION_GRANT: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
PROFILE: Final = "urn:ietf:params:oauth:grant-profile:id-jag"
_TYPE: Final = "oauth-id-jag+jwt"
_ALGORITHMS: Final = ALGORITHMS - SHARED_SECRET_ALGORITHMS
_LEEWAY: Final = 60
_MAX_SECONDS: Final = 3600
_MAX_TIME: Final = 2**53
_MAX_NAMES: Final = {"sub": 512, "client_id": 4096, "jti": 512}
_MAX_ASSERTION: Final = 16 * 1024
_MIN_SECRET: Final = 16


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


class AssertionGrants:
    """Gives clients what an identity assertion is good for.

    Args:
        upstream: The identity provider.
        clients: The secrets of the clients that may bring assertions, by client id. None: a public client.
        use_once: Returns whether a text is used for the first time, and remembers it for a number of seconds.
        issuer: The issuer of the server's tokens.
        resource: The URL of the endpoint.

    Attributes:
        has_secrets: Whether a client has a secret.

    Raises:
        ValueError: The upstream can't validate assertions, there are no clients, or a secret is too short.
    """

    def __init__(
        self,
        upstream: Upstream,
        clients: Mapping[str, str | None],
        use_once: Callable[[str, str, float], Awaitable[bool]],
        *,
        issuer: str,
        resource: str,
    ) -> None:
        if not hasattr(upstream, "identity_assertion"):
            raise ValueError(
                f"{upstream.name} issues no identity assertions. OAuthProxy.identity_assertions needs OIDC."
            )
        if not clients or "" in clients:
            raise ValueError("OAuthProxy.identity_assertions needs the ids of the clients that may bring assertions.")
        if any(secret is not None and len(secret) < _MIN_SECRET for secret in clients.values()):
            raise ValueError(f"A secret in OAuthProxy.identity_assertions needs at least {_MIN_SECRET} characters.")
        self.has_secrets: bool = any(clients.values())
        self._upstream = cast("AssertingUpstream", upstream)
        self._clients = dict(clients)
        self._use_once = use_once
        self._issuer = issuer
        self._resource = resource

    def client_of(self, form: Parameters, authorization: str | None) -> str:
        """Return the id of the client that sends a request; raise OAuthError."""
        client_id, secret = form.get("client_id"), form.get("client_secret")
        if authorization is not None:
            if secret is not None:
                raise OAuthError("invalid_request", "The client sends its secret twice.")
            basic_id, secret = basic_client(authorization)
            if client_id not in {None, basic_id}:
                raise OAuthError("invalid_client", "The client sends two ids.")
            client_id = basic_id
        if client_id is None or client_id not in self._clients:
            raise OAuthError("invalid_client", "The client may not bring identity assertions.")
        expected = self._clients[client_id]
        if (expected is None) != (secret is None):
            raise OAuthError("invalid_client", "The client is not authenticated as it is configured.")
        if not hmac.compare_digest((secret or "").encode(), (expected or "").encode()):
            raise OAuthError("invalid_client", "The secret of the client is wrong.")
        return client_id

    async def read(
        self, assertion: str, client_id: str, requested: Collection[str], existing: Collection[str]
    ) -> IdentityAssertion:
        """Return a valid assertion for a client.

        Args:
            assertion: The assertion.
            client_id: The client that sends it.
            requested: The scopes that the client requests; none for all of the assertion.
            existing: The scopes of the server.

        Raises:
            OAuthError: The assertion is for another client, or has scopes that the server or the request does not have.
            UpstreamRefusedError: It is not valid.
            UpstreamUnavailableError: The provider can't be reached for its keys.
        """
        asserted = await self._upstream.identity_assertion(assertion, self._issuer, self._resource)
        if asserted.client_id != client_id:
            raise OAuthError("invalid_grant", "The assertion is for another client.")
        scopes = set(asserted.scopes)
        if not scopes or not scopes <= set(existing):
            raise OAuthError("invalid_grant", "The assertion has no scope, or one that the server does not have.")
        if requested and not scopes <= set(requested):
            raise OAuthError("invalid_scope", "The assertion has scopes that the request does not have.")
        return asserted

    async def use(self, asserted: IdentityAssertion) -> None:
        """Use an assertion up; raise OAuthError if it was used before."""
        # As long as the assertion may be valid at the instance whose clock is the slowest.
        if not await self._use_once("id-jag", asserted.unique, asserted.seconds + 2 * _LEEWAY):
            raise OAuthError("invalid_grant", "The assertion was used before. Request another one.")


def basic_client(authorization: str) -> tuple[str, str]:
    """Return the id and the secret in a header; raise OAuthError for another form."""
    credentials = read_basic(authorization)
    if credentials is None:
        raise OAuthError("invalid_client", "The Authorization header is not Basic with an id and a secret.")
    return credentials


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
    if len(assertion) > _MAX_ASSERTION:
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
        scopes=tuple(dict.fromkeys(scope.split())) if isinstance(scope, str) else (),
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
