"""The identity provider behind the proxy: what the proxy needs of one, and its HTTP requests.

How it works: the proxy sends the user to the provider with an `AuthorizationRequest`, and exchanges the code that comes
back for a `SignIn`. It never reads the access token of the provider, and gives no token of it to a client.

A request follows no redirect, takes ten seconds and 256 KiB at most, and asks for an uncompressed answer. At most 100
requests run at once.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Set
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, cast
from urllib.parse import urlsplit

from funcmcp._auth.authorities import checked_ca_file, tls_context
from funcmcp._auth.connection_errors import is_of_certificate, reason_of
from funcmcp._auth.token_errors import error_in, helper_for
from funcmcp._oauth_proxy.failures import (
    PROVIDER_AWAY,
    PROVIDER_CERTIFICATE,
    PROVIDER_DOCUMENT,
    PROVIDER_REFUSED,
    PROVIDER_REFUSES_SERVER,
    Failure,
)
from funcmcp._objects.public_names import public
from funcmcp._protocol.codec import decode

if TYPE_CHECKING:
    import os
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from ssl import SSLContext

_SECONDS = 10.0
_MAX_ANSWER = 256 * 1024
_MAX_CONCURRENT = 100
_SERVER_ERROR = 500
_OK = 200
_AWAY = frozenset({408, 425, 429})
_REFUSED_STATUSES = frozenset({400, 401, 403})
_VISIBLE = re.compile(r"[\x21-\x7e]+")


@public("funcmcp.auth")
class UpstreamError(Exception):
    """A request to the identity provider has failed.

    Args:
        reason: A reason for the log.
        advice: A sentence for the user, without secrets; None for the usual sentence.
    """

    def __init__(self, reason: str, advice: str | None = None) -> None:
        super().__init__(reason)
        self.advice = advice


@public("funcmcp.auth")
class UpstreamUnavailableError(UpstreamError):
    """The identity provider can't be reached, or its answer is not usable: the client may send its request again."""


@public("funcmcp.auth")
class UpstreamMisconfiguredError(UpstreamUnavailableError):
    """The identity provider does not accept the server, or is not the one that is configured: the operator can help."""


@public("funcmcp.auth")
class UpstreamRefusedError(UpstreamError):
    """The identity provider does not accept a code, a refresh token or a user."""


class _NotJSONError(UpstreamUnavailableError):
    """The answer of the identity provider is not JSON."""

    def __init__(self, status: int) -> None:
        self.detail = f"status {status}, and the answer is not JSON"
        super().__init__(f"{PROVIDER_AWAY.cause}: {PROVIDER_AWAY.operator} ({self.detail})", PROVIDER_AWAY.user)


_E = TypeVar("_E", bound=UpstreamError)


def failed(kind: type[_E], failure: Failure, detail: object = "") -> _E:
    """Return the error for a failure of the table.

    Args:
        kind: The class of the error.
        failure: The failure.
        detail: What is special about it, for the log.
    """
    reason = f"{failure.cause}: {failure.operator}"
    return kind(f"{reason} ({detail})" if str(detail) else reason, failure.user)


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

    Raises:
        TypeError: The roles are one string, or are not strings.
    """

    subject: str
    name: str | None = None
    email: str | None = None
    tenant: str | None = None
    roles: frozenset[str] = frozenset()
    claims: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False, compare=False)

    def __post_init__(self) -> None:
        roles: object = self.roles
        # An object of roles may say of each whether the user has it, so that its names are not the roles.
        if not isinstance(roles, Set | list | tuple) or not all(isinstance(role, str) for role in roles):
            raise TypeError(f"User.roles is a set of strings, not {type(roles).__name__}, and not of other values.")
        object.__setattr__(self, "roles", frozenset(roles))
        object.__setattr__(self, "claims", MappingProxyType(dict(self.claims)))


@public("funcmcp.auth")
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


@public("funcmcp.auth")
class IssuedToken(NamedTuple):
    """An access token that an identity provider has issued.

    Attributes:
        token: The token.
        seconds: Seconds for which it is valid; None if the provider does not say.
    """

    token: str
    seconds: float | None

    def __repr__(self) -> str:
        return f"IssuedToken(..., seconds={self.seconds!r})"


@public("funcmcp.auth")
class ClaimsRequest(NamedTuple):
    """A request for claims of a user that are not in the answer of an identity provider, as for userinfo.

    Attributes:
        names: Claims that the upstream expects, by the scopes that it has requested.
        send: Requests the claims, and returns the user with them. What the provider does not give is missing. It
            raises UpstreamUnavailableError if the provider can't be asked.
    """

    names: tuple[str, ...]
    send: Callable[[], Awaitable[User]]

    def __repr__(self) -> str:
        return f"ClaimsRequest({self.names!r}, ...)"  # the function has an access token


@public("funcmcp.auth")
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

    def __repr__(self) -> str:
        return f"SignIn({self.user!r}, ...)"


@public("funcmcp.auth")
class Upstream(Protocol):
    """An identity provider for `OAuthProxy`, such as `OIDC`. Its methods are called by the proxy only.

    It may also have an async method ``check`` without parameters, which is called once, soon after the server has begun
    to listen. It writes into the log what is wrong with the provider; see `OIDC.check`.

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


@public("funcmcp.auth")
class UpstreamHTTP:
    """Sends requests to an identity provider, for an `Upstream`.

    No redirect is followed. A request takes ten seconds at most, and an answer has 256 KiB at most. 100 requests run at
    once at most.

    Args:
        trusts_environment: Whether the variables of the environment may name a proxy for the requests.
        ca_file: A PEM file with certificate authorities that are trusted as well, for a provider with a private one.

    Raises:
        ValueError: The file can't be read, or has no certificates.
    """

    def __init__(self, *, trusts_environment: bool = True, ca_file: str | os.PathLike[str] | None = None) -> None:
        self._trusts_environment = trusts_environment
        self._ca_file = checked_ca_file("ca_file", ca_file)
        self._running = 0
        self._tls: SSLContext | None = None

    async def prepare(self) -> None:
        """Load in another thread what the first request needs, so that other requests are answered meanwhile."""
        await asyncio.to_thread(import_module, "httpx2")

    async def get(self, url: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return the JSON object at a URL; raise UpstreamUnavailableError."""
        status, value = await self.request("GET", url, headers or {}, None)
        if status != _OK:
            raise UpstreamUnavailableError(f"status {status}")
        return _object(value, status)

    async def call_api(
        self, url: str, access_token: str, *, headers: Mapping[str, str] | None = None, json: object = None
    ) -> dict[str, Any]:
        """Return the JSON object that an API has for the user of an access token.

        Args:
            url: The URL. It gets a POST request if there is *json*, otherwise a GET request.
            access_token: The access token, which is sent as a bearer token.
            headers: More header fields.
            json: The body of the request, such as ``{"query": "{ viewer { id } }"}`` for GraphQL.

        Raises:
            UpstreamRefusedError: The status is 400, 401 or 403: the user has to sign in again.
            UpstreamUnavailableError: There is another status, or no usable answer.
        """
        if not _VISIBLE.fullmatch(access_token):  # a header can't contain anything else
            reason = "the access token has characters that a header can't contain"
            raise failed(UpstreamUnavailableError, PROVIDER_AWAY, reason)
        fields = {**(headers or {}), "authorization": f"Bearer {access_token}"}
        method = "GET" if json is None else "POST"
        status, value = await self.request(method, url, fields, None, json=json)
        if status in _REFUSED_STATUSES:
            raise failed(UpstreamRefusedError, PROVIDER_REFUSED, f"status {status} for the access token")
        if status != _OK:
            raise failed(UpstreamUnavailableError, PROVIDER_AWAY, f"status {status}")
        return _object(value, status)

    async def get_document(self, url: str) -> dict[str, Any]:
        """Return the JSON object of a document whose URL is configured.

        Raises:
            UpstreamMisconfiguredError: There is an answer, and it is not such a document.
            UpstreamUnavailableError: There is no answer, or one that says to try again later.
        """
        try:
            status, value = await self.request("GET", url, {}, None)
        except _NotJSONError as error:
            raise failed(UpstreamMisconfiguredError, PROVIDER_DOCUMENT, f"{url}: {error.detail}") from None
        if status != _OK or not isinstance(value, dict):
            reason = f"status {status}{_error_of(value)}" if status != _OK else "the answer is not a JSON object"
            raise failed(UpstreamMisconfiguredError, PROVIDER_DOCUMENT, f"{url}: {reason}")
        return value

    async def post(self, url: str, form: Mapping[str, str], headers: Mapping[str, str]) -> dict[str, Any]:
        """Send a form to a token endpoint, and return the JSON object of the answer.

        Raises:
            UpstreamRefusedError: The provider refuses, and only the user can help, by another sign-in.
            UpstreamMisconfiguredError: It refuses, and only the operator can help.
            UpstreamUnavailableError: There is no usable answer, or it says to try again later.
        """
        status, answer = await self.request("POST", url, headers, form)
        value = _object(answer, status)
        error = error_in(value)
        if error is None and status == _OK:
            return value
        reason = f"status {status}{_error_of(value)}"
        is_of_user = "code" in form or "refresh_token" in form
        helper = "time" if error is None else helper_for(status, error, is_of_user=is_of_user)
        if helper == "user":
            raise failed(UpstreamRefusedError, PROVIDER_REFUSED, reason)
        if helper == "operator":
            raise failed(UpstreamMisconfiguredError, PROVIDER_REFUSES_SERVER, reason)
        raise failed(UpstreamUnavailableError, PROVIDER_AWAY, reason)

    async def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        form: Mapping[str, str] | None,
        *,
        json: object = None,
    ) -> tuple[int, Any]:
        """Send a request with a form, JSON or no body; return the status and the JSON value of the answer.

        An empty answer is an empty object.

        Raises:
            UpstreamUnavailableError: There is no usable answer, or its status is 408, 425, 429 or above 499.
        """
        status, body = await self.fetch(method, url, headers, form, json=json)
        try:
            return status, decode(body) if body else {}
        except ValueError:
            raise _NotJSONError(status) from None

    async def fetch(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        form: Mapping[str, str] | None,
        *,
        json: object = None,
    ) -> tuple[int, bytes]:
        """Send a request; return the status and the body of the answer. Raise UpstreamUnavailableError as `request`."""
        if self._running >= _MAX_CONCURRENT:
            reason = "too many requests to the identity provider are running"
            raise failed(UpstreamUnavailableError, PROVIDER_AWAY, reason)
        self._running += 1
        try:
            status, body = await self._send(method, url, headers, form, json)
        finally:
            self._running -= 1
        if status >= _SERVER_ERROR or status in _AWAY:
            raise failed(UpstreamUnavailableError, PROVIDER_AWAY, f"status {status}")
        return status, body

    async def _send(
        self, method: str, url: str, headers: Mapping[str, str], form: Mapping[str, str] | None, json: object
    ) -> tuple[int, bytes]:
        import httpx2  # noqa: PLC0415 - slow to load, and needed with the first sign-in

        if self._tls is None:  # loading the certificate authorities takes longer than a request
            self._tls = tls_context(self._ca_file)
        # A compressed answer could become very large, so none is accepted.
        fields = {"accept": "application/json", "accept-encoding": "identity", **headers}
        body = bytearray()
        try:
            async with (
                asyncio.timeout(_SECONDS),
                httpx2.AsyncClient(
                    verify=self._tls, headers=fields, timeout=None, trust_env=self._trusts_environment
                ) as client,
                client.stream(method, url, data=form, json=json, follow_redirects=False) as response,
            ):
                async for part in response.aiter_raw():
                    body += part
                    if len(body) > _MAX_ANSWER:
                        raise failed(UpstreamUnavailableError, PROVIDER_AWAY, "the answer is too large")
        except (httpx2.HTTPError, TimeoutError, OSError) as error:
            reason = f"{_origin(url)}: {reason_of(error)}"
            if is_of_certificate(error):
                raise failed(UpstreamMisconfiguredError, PROVIDER_CERTIFICATE, reason) from error
            raise failed(UpstreamUnavailableError, PROVIDER_AWAY, reason) from error
        return response.status_code, bytes(body)


def _object(value: Any, status: int) -> dict[str, Any]:
    if not isinstance(value, dict):
        reason = f"status {status}, and the answer is not a JSON object"
        raise failed(UpstreamUnavailableError, PROVIDER_AWAY, reason)
    return value


def _error_of(value: Any) -> str:
    """Return the error in an answer and the provider's sentence, for the log; "" if there is none."""
    error = error_in(value)
    return "" if error is None else f", error {error!r}, {value.get('error_description')!r:.500}"


def _origin(url: str) -> str:
    """Return the origin of a URL, whose path and query may have more than a log should."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
