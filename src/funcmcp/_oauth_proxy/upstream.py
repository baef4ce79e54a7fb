"""The identity provider behind the proxy: what the proxy needs of one, and its HTTP requests.

How it works: the proxy sends the user to the provider with an `AuthorizationRequest`, and exchanges the code that comes
back for a `SignIn`. It never reads the access token of the provider, and gives no token of it to a client.

A request follows no redirect, takes ten seconds and 256 KiB at most, and asks for an uncompressed answer. At most 100
requests run at once.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from funcmcp._objects.public_names import public
from funcmcp._protocol.codec import decode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from ssl import SSLContext

_logger = logging.getLogger("funcmcp")

_SECONDS = 10.0
_MAX_ANSWER = 256 * 1024
_MAX_CONCURRENT = 100
_SERVER_ERROR = 500
_TOO_MANY_REQUESTS = 429
_REFUSALS = frozenset({"invalid_grant", "interaction_required", "consent_required", "login_required", "access_denied"})
"""Errors that another request does not mend: the user has to sign in again, or may not sign in."""


class UpstreamError(Exception):
    """A request to the identity provider has failed.

    Args:
        reason: A reason for the log.
        advice: A sentence for the user, without secrets; None for the usual sentence.
    """

    def __init__(self, reason: str, advice: str | None = None) -> None:
        super().__init__(reason)
        self.advice = advice


class UpstreamUnavailableError(UpstreamError):
    """The identity provider can't be reached, or its answer is not usable."""


class UpstreamRefusedError(UpstreamError):
    """The identity provider does not accept a code, a refresh token or a user."""


@public("funcmcp.auth")
@dataclass(frozen=True, slots=True)
class User:
    """A user who has signed in at the identity provider of an `OAuthProxy`.

    Attributes:
        subject: The id of the user, constant and unique at the provider.
        name: A name for people. It can change, and users may choose it: don't decide by it.
        email: The e-mail address, if the provider says that it has verified it; otherwise None.
        tenant: The tenant or the organization of the user, where the provider has such; otherwise None.
        roles: The roles of the user in this application.
        claims: What else the provider says about the user, read-only.
    """

    subject: str
    name: str | None = None
    email: str | None = None
    tenant: str | None = None
    roles: frozenset[str] = frozenset()
    claims: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "claims", MappingProxyType(dict(self.claims)))


class AuthorizationRequest(NamedTuple):
    """What the proxy sends to an identity provider with the browser.

    Attributes:
        redirect_uri: The callback of the proxy.
        state: Comes back with the code.
        challenge: The PKCE challenge (S256) of the proxy.
        nonce: Comes back in the ID token.
    """

    redirect_uri: str
    state: str
    challenge: str
    nonce: str


class IssuedToken(NamedTuple):
    """An access token that an identity provider has issued.

    Attributes:
        token: The token.
        seconds: Seconds for which it is valid; None if the provider does not say.
    """

    token: str
    seconds: float | None


class ClaimsRequest(NamedTuple):
    """A request for claims of a user that are not in the answer of an identity provider, as for userinfo.

    Attributes:
        names: Claims that the upstream expects, by the scopes that it has requested.
        send: Requests the claims, and returns the user with them. What the provider does not give is missing. It
            raises UpstreamUnavailableError if the provider can't be asked.
    """

    names: tuple[str, ...]
    send: Callable[[], Awaitable[User]]


class SignIn(NamedTuple):
    """What an identity provider says for a code or a refresh token.

    Attributes:
        user: The user; None if a refresh says nothing new about the user.
        refresh_token: What renews the sign-in; None if it can't be renewed, or, after a refresh, remains the same.
        access_token: The access token of the provider, if it can be exchanged for tokens for other APIs.
        claims_request: Asks the provider about the user, and is sent if claims are missing; None if it can't be asked.
    """

    user: User | None
    refresh_token: str | None
    access_token: IssuedToken | None = None
    claims_request: ClaimsRequest | None = None


@public("funcmcp.auth")
class Upstream(Protocol):
    """An identity provider for `OAuthProxy`, such as `OIDC`. Its methods are called by the proxy only.

    Attributes:
        name: The name of the provider, for people.
        issuer: The exact ``iss`` of its answers; None if it has none.
    """

    name: str
    issuer: str | None

    async def authorization_url(self, request: AuthorizationRequest) -> str:
        """Return the URL at which the user signs in; raise UpstreamUnavailableError."""

    async def requires_issuer(self) -> bool:
        """Return whether each answer with the browser has an ``iss``; raise UpstreamUnavailableError."""

    async def exchange(self, code: str, *, redirect_uri: str, verifier: str, nonce: str) -> SignIn:
        """Return who has signed in; raise UpstreamRefusedError or UpstreamUnavailableError."""

    async def refresh(self, refresh_token: str, subject: str) -> SignIn:
        """Renew the sign-in of a user; raise UpstreamRefusedError or UpstreamUnavailableError."""

    async def revoke(self, refresh_token: str) -> bool:
        """End a sign-in; return False if the provider can't. Raise UpstreamUnavailableError."""


class TokenExchanger(Protocol):
    """An upstream that exchanges the access token of a sign-in for tokens for other APIs.

    Attributes:
        exchanges_tokens: Whether it does so. If not, it returns no access tokens with its sign-ins.
    """

    exchanges_tokens: bool

    async def exchange_token(self, access_token: str, scopes: Sequence[str], audience: str | None) -> IssuedToken:
        """Return a token for another API; raise UpstreamRefusedError or UpstreamUnavailableError."""


def token_exchanger_of(upstream: Upstream) -> TokenExchanger | None:
    """Return an upstream that exchanges tokens; None if it does not."""
    return cast("TokenExchanger", upstream) if getattr(upstream, "exchanges_tokens", False) is True else None


class UpstreamHTTP:
    """Sends requests to an identity provider.

    Args:
        trusts_environment: Whether the variables of the environment may name a proxy for the requests.
    """

    def __init__(self, *, trusts_environment: bool = True) -> None:
        self._trusts_environment = trusts_environment
        self._running = 0
        self._tls: SSLContext | None = None

    async def get(self, url: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return the JSON object at a URL; raise UpstreamUnavailableError."""
        status, value = await self.request("GET", url, headers or {}, None)
        if status != 200:  # noqa: PLR2004 - OK
            raise UpstreamUnavailableError(f"status {status}")
        return _object(value, status)

    async def post(self, url: str, form: Mapping[str, str], headers: Mapping[str, str]) -> dict[str, Any]:
        """Send a form, and return the JSON object of the answer.

        Raises:
            UpstreamRefusedError: The answer is the error ``invalid_grant``, or says that the user has to sign in again.
            UpstreamUnavailableError: There is another error, or no usable answer.
        """
        status, answer = await self.request("POST", url, headers, form)
        value = _object(answer, status)
        error = value.get("error")
        if error is None and status == 200:  # noqa: PLR2004 - OK
            return value
        reason = f"status {status}, error {error!r:.80}, {value.get('error_description')!r:.500}"
        if error in _REFUSALS:
            raise UpstreamRefusedError(reason)
        raise UpstreamUnavailableError(reason)

    async def request(
        self, method: str, url: str, headers: Mapping[str, str], form: Mapping[str, str] | None
    ) -> tuple[int, Any]:
        """Send a request; return the status and the JSON value of the answer. An empty body is an empty object.

        Raises:
            UpstreamUnavailableError: There is no usable answer, or its status is 429 or above 499.
        """
        status, body = await self.fetch(method, url, headers, form)
        try:
            return status, decode(body) if body else {}
        except ValueError:
            raise UpstreamUnavailableError(f"status {status}, and the answer is not JSON") from None

    async def fetch(
        self, method: str, url: str, headers: Mapping[str, str], form: Mapping[str, str] | None
    ) -> tuple[int, bytes]:
        """Send a request; return the status and the body of the answer. Raise UpstreamUnavailableError as `request`."""
        if self._running >= _MAX_CONCURRENT:
            raise UpstreamUnavailableError("too many requests to the identity provider are running")
        self._running += 1
        try:
            status, body = await self._send(method, url, headers, form)
        finally:
            self._running -= 1
        if status >= _SERVER_ERROR or status == _TOO_MANY_REQUESTS:
            raise UpstreamUnavailableError(f"status {status}")
        return status, body

    async def _send(
        self, method: str, url: str, headers: Mapping[str, str], form: Mapping[str, str] | None
    ) -> tuple[int, bytes]:
        import httpx2  # noqa: PLC0415 - slow to load, and needed with the first sign-in

        if self._tls is None:  # loading the certificate authorities takes longer than a request
            self._tls = httpx2.create_ssl_context()
        # A compressed answer could become very large, so none is accepted.
        fields = {"accept": "application/json", "accept-encoding": "identity", **headers}
        body = bytearray()
        try:
            async with (
                asyncio.timeout(_SECONDS),
                httpx2.AsyncClient(
                    verify=self._tls, headers=fields, timeout=None, trust_env=self._trusts_environment
                ) as client,
                client.stream(method, url, data=form, follow_redirects=False) as response,
            ):
                async for part in response.aiter_raw():
                    body += part
                    if len(body) > _MAX_ANSWER:
                        raise UpstreamUnavailableError("the answer is too large")
        except (httpx2.HTTPError, TimeoutError, OSError) as error:
            raise UpstreamUnavailableError(type(error).__name__) from error
        return response.status_code, bytes(body)


def _object(value: Any, status: int) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UpstreamUnavailableError(f"status {status}, and the answer is not a JSON object")
    return value
