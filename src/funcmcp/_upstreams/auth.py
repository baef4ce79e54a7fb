"""Identity at an upstream: functions of the caller that return the headers of the requests to another server.

How it works: `calling` says for whom the requests to an upstream are made, while they are made. `IdentifiedExchange`
adds the headers that `UpstreamAuth` returns for that caller, and nothing of the client's own request. A token is
requested once for each caller, until shortly before it expires; callers that want it meanwhile wait for the same
request. If that fails, the failure holds for some seconds, so that an identity provider that is down gets few requests.
When the upstream refuses a token (401), it is requested once more.

The caller's own token goes to the token endpoint alone (RFC 8693, or Entra's on-behalf-of), and only if the server has
verified it. No message and no record contains a token, a secret, or a text of the identity provider that has one.

Source: MCP "Security Best Practices", "Token Passthrough"; RFC 8693 section 2; Microsoft identity platform, "OAuth 2.0
On-Behalf-Of flow".
"""

from __future__ import annotations

import hashlib
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from time import time
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from funcmcp._auth.access import distinct
from funcmcp._auth.principal import Principal, UpstreamTokenError
from funcmcp._auth.token_errors import helper_for
from funcmcp._auth.urls import checked
from funcmcp._client.credentials import JWT_BEARER, TOKEN_EXCHANGE, Issuer, client_fields
from funcmcp._client.errors import SignInError, one_line
from funcmcp._client.http_messages import MemoryRequest, discard, refusal_of
from funcmcp._client.oauth import parameters_of, words_of
from funcmcp._client.streamable_http import StreamableHTTP
from funcmcp._client.target_transports import transport_for
from funcmcp._client.targets import HTTPEndpoint
from funcmcp._client.token_requests import RefusedError, TokenRequests, renewal_margin
from funcmcp._grants.token_cache import Issued, TokenCache
from funcmcp._objects.mappings import lower_names
from funcmcp._objects.public_names import public
from funcmcp._protocol.objects import number_of
from funcmcp._state.line_limit import LineLimit
from funcmcp._text.visible import visible_url

if TYPE_CHECKING:
    from collections.abc import Iterator

    from funcmcp._authoring.calling.services import Services
    from funcmcp._client.credentials import Credential
    from funcmcp._client.errors import AuthenticationError
    from funcmcp._client.target_transports import Target
    from funcmcp._client.transport import Transport
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._transports.http.endpoints.custom_routes import CustomRoute
    from funcmcp._transports.http.messages import Exchange, HttpRequest, HttpResponse

_logger = logging.getLogger("funcmcp")

_DEFAULT_SECONDS: Final = 300.0
"""Seconds for which a token is used whose lifetime the authorization server does not say."""

_MAX_LENGTH: Final = 16 * 1024
_MAX_BODY: Final = 64 * 1024 * 1024
_ACCESS_TOKEN: Final = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 - a type
_UNAUTHORIZED: Final = 401
_RESERVED: Final = frozenset({"host", "content-length", "content-type", "accept", "transfer-encoding", "connection"})


@dataclass(frozen=True, slots=True)
class Caller:
    """Whom a request to an upstream is made for.

    Attributes:
        principal: The authenticated caller; None for an anonymous one.
        context: The request of the client, which can ask its user; None while lists or streams are read.
    """

    principal: Principal | None = None
    context: RequestContext | None = field(default=None, repr=False)


_CALLER: ContextVar[Caller] = ContextVar("funcmcp_upstream_caller", default=Caller())  # noqa: B039 - it is immutable


@contextmanager
def calling(principal: Principal | None, context: RequestContext | None = None) -> Iterator[None]:
    """Make the requests to upstreams in the block for a caller."""
    token = _CALLER.set(Caller(principal, context))
    try:
        yield
    finally:
        _CALLER.reset(token)


Headers: TypeAlias = Mapping[str, str]
AuthFunction: TypeAlias = Callable[[Principal | None], Awaitable[Headers] | Headers]
"""A function from the caller, or None for an anonymous one, to the headers of requests to the upstream."""


class UpstreamAuth:
    """Says who calls an upstream.

    Attributes:
        per_caller: Whether the upstream may list other features for each caller.
        owner: Whose credentials the requests have, for messages.
        routes: Routes that the server gets with the upstream.
    """

    per_caller: bool = True
    owner: str = "this server"
    routes: Sequence[CustomRoute] = ()

    async def headers(self, caller: Caller) -> Headers:
        """Return the headers of a request; raise UpstreamTokenError if the caller gets none."""
        raise NotImplementedError

    async def refused(self, caller: Caller, headers: Headers, error: AuthenticationError) -> bool:
        """Say that the upstream has refused a request; return whether `headers` may return others now."""
        del caller, headers, error
        return False

    def attach(self, services: Services) -> None:
        """Connect it with the server that the upstream belongs to."""


class _FunctionAuth(UpstreamAuth):
    """The headers that an author's function returns."""

    def __init__(self, function: AuthFunction) -> None:
        self._function = function

    async def headers(self, caller: Caller) -> Headers:
        headers = self._function(caller.principal)
        return _checked_headers(await headers if inspect.isawaitable(headers) else headers)


def auth_of(auth: UpstreamAuth | AuthFunction) -> UpstreamAuth:
    """Return what says who calls an upstream; raise TypeError for another value."""
    if isinstance(auth, UpstreamAuth):
        return auth
    if isinstance(auth, type) or not callable(auth):
        raise TypeError(f"Upstream.auth is a function of the principal, such as static(...), not {_kind_of(auth)}.")
    return _FunctionAuth(auth)


class _Static(UpstreamAuth):
    per_caller = False

    def __init__(self, headers: Headers) -> None:
        self._headers = _checked_headers(headers)

    async def headers(self, caller: Caller) -> Headers:
        del caller
        return self._headers


@public("funcmcp.upstreams")
def static(headers: Headers) -> UpstreamAuth:
    """Return the same headers for all callers: ``auth=static({"x-api-key": os.environ["DOCS_KEY"]})``.

    Args:
        headers: The headers of each request.

    Raises:
        ValueError: A name is one that the client sets itself, or a value contains a line break.
    """
    return _Static(headers)


@dataclass(frozen=True, slots=True)
class TokenClient:
    """A client of an authorization server, whose token endpoint is configured.

    Attributes:
        token_url: The token endpoint.
        client_id: The id of the client.
        client_secret: Its secret, or None.
        credential: In place of a secret, as in `funcmcp.client.ClientCredentials`.
        requests: Sends the requests.
    """

    token_url: str
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    credential: Credential | None = field(default=None, repr=False)
    requests: TokenRequests = field(default_factory=TokenRequests, repr=False)
    log_limit: LineLimit = field(default_factory=LineLimit, repr=False)

    def __post_init__(self) -> None:
        checked("The token endpoint", self.token_url)
        if self.client_secret is not None and self.credential is not None:
            raise ValueError("Pass either client_secret or credential.")

    async def request(self, form: Mapping[str, str], scopes: Sequence[str]) -> dict[str, Any]:
        """Send a form to the token endpoint; return the answer, which has a bearer token.

        Raises:
            UpstreamTokenError: There is no token. Its text is for the caller.
        """
        sent = {name: value for name, value in {**form, "scope": " ".join(scopes)}.items() if value}
        try:
            issuer = Issuer(self.token_url, self.token_url)
            fields = await client_fields(self.client_id, self.client_secret, self.credential, issuer, time())
            answer = await self.requests.post_form(self.token_url, {**sent, **fields.form}, fields.headers)
            check_token(answer)
        except SignInError as error:
            is_of_user = "code" in form or "refresh_token" in form
            # Without the cause, which may have a text of the authorization server.
            raise self._failure(error, is_of_user=is_of_user) from None
        return answer

    def _failure(self, error: SignInError, *, is_of_user: bool) -> UpstreamTokenError:
        """Write a line about a failure, and return the error for the caller."""
        code = error.error if isinstance(error, RefusedError) else ""
        reason = one_line(code, 80) or type(error.__cause__ or error).__name__
        self.log_limit.write("event=upstream_token_failed token_url=%s reason=%s", self.token_url, reason)
        status = error.status if isinstance(error, RefusedError) else 0
        if code and helper_for(status, code, is_of_user=is_of_user) == "user":
            return UpstreamTokenError(
                "sign_in", f"The identity provider gives no token for the other server ({reason}). Sign in again."
            )
        if isinstance(error, RefusedError):
            return UpstreamTokenError(
                "configuration",
                "The identity provider gives no token for the other server. The log of this server says why.",
            )
        return UpstreamTokenError("unavailable", "The identity provider can't be reached. Try again later.")


def check_token(answer: Mapping[str, Any]) -> None:
    """Raise SignInError if the answer of a token endpoint has no bearer token that a header can contain."""
    token = answer.get("access_token")
    if not isinstance(token, str) or not 0 < len(token) <= _MAX_LENGTH or not token.isascii():
        raise SignInError("The authorization server has issued no token.")
    if not token.isprintable() or " " in token or str(answer.get("token_type", "bearer")).lower() != "bearer":
        raise SignInError("The authorization server has issued a token that is not a bearer token.")


def issued_in(answer: Mapping[str, Any], now: float) -> Issued:
    """Return the token in the answer of a token endpoint."""
    seconds = number_of(answer.get("expires_in"))
    if seconds is None:
        seconds = _DEFAULT_SECONDS
    return Issued(answer["access_token"], now + seconds - renewal_margin(seconds))


class _TokenAuth(UpstreamAuth):
    """Headers with a token that is requested for the caller.

    Args:
        scopes: The scopes to request.
        clock: Returns seconds since 1970.
    """

    def __init__(self, scopes: Sequence[str], clock: Callable[[], float]) -> None:
        self._scopes = distinct([scopes] if isinstance(scopes, str) else scopes)
        self._clock = clock
        self._cache = TokenCache(clock)

    async def headers(self, caller: Caller) -> Headers:
        token = await self._cache.get(self._key(caller), lambda: self._request(caller))
        return {"authorization": f"Bearer {token}"}

    async def refused(self, caller: Caller, headers: Headers, error: AuthenticationError) -> bool:
        if error.status != _UNAUTHORIZED:
            return False
        self._cache.drop(self._key(caller), headers["authorization"].removeprefix("Bearer "))
        return True

    def _key(self, caller: Caller) -> tuple[str, ...]:
        raise NotImplementedError

    async def _request(self, caller: Caller) -> Issued:
        raise NotImplementedError


class _ClientCredentials(_TokenAuth):
    """This server's own tokens.

    If the upstream asks for a further scope, a token with it is requested once. It replaces the one until then only if
    the authorization server issues it, so a scope that this server may not have takes nothing away from other requests.
    """

    per_caller = False

    def __init__(
        self, client: TokenClient, form: Mapping[str, str], scopes: Sequence[str], clock: Callable[[], float]
    ) -> None:
        super().__init__(scopes, clock)
        self._client = client
        self._form = form

    async def refused(self, caller: Caller, headers: Headers, error: AuthenticationError) -> bool:
        challenge = parameters_of(error.challenge)
        scopes = distinct([*self._scopes, *words_of(challenge.get("scope"))])
        if error.status == _UNAUTHORIZED or challenge.get("error") != "insufficient_scope" or scopes == self._scopes:
            return await super().refused(caller, headers, error)
        try:
            await self._cache.get(scopes, lambda: self._requested(scopes))
        except UpstreamTokenError:
            return False
        self._scopes = scopes
        return True

    def _key(self, caller: Caller) -> tuple[str, ...]:
        del caller
        return self._scopes

    async def _request(self, caller: Caller) -> Issued:
        del caller
        return await self._requested(self._scopes)

    async def _requested(self, scopes: Sequence[str]) -> Issued:
        now = self._clock()
        return issued_in(await self._client.request(self._form, scopes), now)


@public("funcmcp.upstreams")
def client_credentials(  # noqa: PLR0913 - the client, and what it requests
    token_url: str,
    client_id: str,
    client_secret: str | None = None,
    *,
    credential: Credential | None = None,
    scopes: Sequence[str] = (),
    resource: str | None = None,
    clock: Callable[[], float] = time,
) -> UpstreamAuth:
    """Call the upstream as this server, for all callers (OAuth's grant ``client_credentials``).

    Where the upstream names its authorization server, ``HTTPEndpoint(url, sign_in=ClientCredentials(...))`` needs no
    token endpoint.

    Args:
        token_url: The token endpoint.
        client_id: The id of this server as a client.
        client_secret: Its secret.
        credential: In place of a secret, as in `funcmcp.client.ClientCredentials`.
        scopes: The scopes to request.
        resource: The URL of the upstream, for authorization servers that want it (RFC 8707).
        clock: Returns seconds since 1970.

    Raises:
        ValueError: The token endpoint is neither https nor on this machine, or there are a secret and a credential.
    """
    form = {"grant_type": "client_credentials", "resource": resource or ""}
    return _ClientCredentials(TokenClient(token_url, client_id, client_secret, credential), form, scopes, clock)


class _Exchange(_TokenAuth):
    """Exchanges the verified token of the caller for one of the upstream.

    Args:
        client: This server as a client.
        form: Returns the form with the caller's token.
        scopes: The scopes to request.
        clock: Returns seconds since 1970.
    """

    def __init__(
        self,
        client: TokenClient,
        form: Callable[[str], dict[str, str]],
        scopes: Sequence[str],
        clock: Callable[[], float],
    ) -> None:
        super().__init__(scopes, clock)
        self._client = client
        self._form = form

    def _key(self, caller: Caller) -> tuple[str, ...]:
        """Return the caller with the digest of its token: another token may have other scopes."""
        principal, token = _verified(caller)
        return (*principal.key, hashlib.sha256(token.encode()).hexdigest())

    async def _request(self, caller: Caller) -> Issued:
        now = self._clock()
        return issued_in(await self._client.request(self._form(_verified(caller)[1]), self._scopes), now)


@public("funcmcp.upstreams")
def token_exchange(  # noqa: PLR0913 - as above
    token_url: str,
    client_id: str,
    client_secret: str | None = None,
    *,
    credential: Credential | None = None,
    audience: str | None = None,
    resource: str | None = None,
    scopes: Sequence[str] = (),
    clock: Callable[[], float] = time,
) -> UpstreamAuth:
    """Call the upstream as each caller, with a token for which the caller's own one is exchanged (RFC 8693).

    It needs an authenticator that verifies tokens, such as `funcmcp.auth.BearerTokens`. Callers without a token are
    refused. The caller's token is sent to the token endpoint only.

    Args:
        token_url: The token endpoint of the issuer of the callers' tokens.
        client_id: The id of this server as a client.
        client_secret: Its secret.
        credential: In place of a secret, as in `funcmcp.client.ClientCredentials`.
        audience: The name of the upstream at the authorization server.
        resource: The URL of the upstream, for authorization servers that want it.
        scopes: The scopes to request.
        clock: Returns seconds since 1970.

    Raises:
        ValueError: The token endpoint is neither https nor on this machine, or there are a secret and a credential.
    """

    def form(token: str) -> dict[str, str]:
        return {
            "grant_type": TOKEN_EXCHANGE,
            "subject_token": token,
            "subject_token_type": _ACCESS_TOKEN,
            "requested_token_type": _ACCESS_TOKEN,
            "audience": audience or "",
            "resource": resource or "",
        }

    return _Exchange(TokenClient(token_url, client_id, client_secret, credential), form, scopes, clock)


@public("funcmcp.upstreams")
def on_behalf_of(  # noqa: PLR0913 - as above
    tenant: str,
    client_id: str,
    client_secret: str | None = None,
    *,
    credential: Credential | None = None,
    scopes: Sequence[str],
    token_url: str | None = None,
    clock: Callable[[], float] = time,
) -> UpstreamAuth:
    """Call the upstream as each caller, with a token of Microsoft Entra ID on its behalf.

    It needs `funcmcp.auth.entra`, which verifies the callers' tokens. Behind an `OAuthProxy`, use `from_sign_in`.

    Args:
        tenant: The id of the tenant.
        client_id: The application id of this server, which is the audience of the callers' tokens.
        client_secret: Its secret.
        credential: In place of a secret, a `funcmcp.auth.ClientCertificate` or a `funcmcp.auth.ManagedIdentity`.
        scopes: The scopes, which name the upstream: ``["api://docs/.default"]``.
        token_url: The token endpoint, if it is not that of the tenant in the public cloud.
        clock: Returns seconds since 1970.

    Raises:
        ValueError: The tenant is not a GUID, there are no scopes, or there are a secret and a credential.
    """
    from funcmcp._auth.entra_id import checked_guid  # noqa: PLC0415 - loads the libraries of tokens

    url = token_url or f"https://login.microsoftonline.com/{checked_guid('tenant', tenant)}/oauth2/v2.0/token"
    if not scopes:
        raise ValueError('on_behalf_of needs scopes, which name the upstream: ["api://docs/.default"].')

    def form(token: str) -> dict[str, str]:
        return {"grant_type": JWT_BEARER, "requested_token_use": "on_behalf_of", "assertion": token}

    return _Exchange(TokenClient(url, client_id, client_secret, credential), form, scopes, clock)


class _FromSignIn(UpstreamAuth):
    def __init__(self, scopes: Sequence[str], audience: str | None) -> None:
        self._scopes = distinct([scopes] if isinstance(scopes, str) else scopes)
        self._audience = audience

    async def headers(self, caller: Caller) -> Headers:
        tokens = None if caller.principal is None else caller.principal.upstream_tokens
        if tokens is None:
            raise UpstreamTokenError(
                "missing", "The other server needs a user who has signed in. Sign in, and call again."
            )
        return {"authorization": f"Bearer {await tokens(self._scopes, self._audience)}"}


@public("funcmcp.upstreams")
def from_sign_in(scopes: Sequence[str], *, audience: str | None = None) -> UpstreamAuth:
    """Call the upstream as each user, with what `Context.upstream_token` returns for an `OAuthProxy`.

    Args:
        scopes: The scopes to request.
        audience: The name of the upstream at the identity provider, where it needs one.
    """
    return _FromSignIn(scopes, audience)


class IdentifiedExchange:
    """An exchange whose requests say who calls an upstream.

    Args:
        exchange: Sends the requests.
        auth: Returns the headers.
        name: The upstream, for messages.
    """

    def __init__(self, exchange: Exchange, auth: UpstreamAuth, name: str) -> None:
        self._exchange = exchange
        self._auth = auth
        self._name = name
        self._last: Headers = {}

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        """Send a request for the present caller; see `calling`.

        Raises:
            UpstreamTokenError: The caller gets no token, or the upstream does not accept it.
        """
        body = await request.read(_MAX_BODY)
        if request.method == "DELETE":  # the end of a session, which has no caller
            return await self._exchange(_with_headers(request, body, self._last))
        caller = _CALLER.get()
        if request.method == "GET":  # a stream may outlast the call that has opened it, so it asks nobody
            caller = Caller(caller.principal)
        headers = await self._auth.headers(caller)
        response = await self._exchange(_with_headers(request, body, headers))
        error = refusal_of(response)
        if error is not None and await self._auth.refused(caller, headers, error):
            await discard(response)
            headers = await self._auth.headers(caller)
            response = await self._exchange(_with_headers(request, body, headers))
            error = refusal_of(response)
        if error is not None:
            await discard(response)
            raise self._refusal(error)
        self._last = headers
        return response

    def _refusal(self, error: AuthenticationError) -> UpstreamTokenError:
        """Return the error for the caller, with the scopes that it lacks."""
        challenge = parameters_of(error.challenge)
        if challenge.get("error") == "insufficient_scope":
            scopes = one_line(challenge.get("scope", "")) or "more scopes"
            return UpstreamTokenError("configuration", f"{self._name} denies access. The token lacks: {scopes}.")
        if error.status == _UNAUTHORIZED:
            return UpstreamTokenError(
                "configuration", f"{self._name} does not accept the credentials of {self._auth.owner}."
            )
        return UpstreamTokenError("configuration", f"{self._name} denies access with these credentials.")


def _with_headers(request: HttpRequest, body: bytes, headers: Headers) -> HttpRequest:
    names = {name.encode() for name in headers}
    lines = [line for line in request.pairs if line[0] not in names]
    lines += [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    return MemoryRequest(request.method, request.path, lines, body)


def _checked_headers(headers: Headers) -> dict[str, str]:
    """Return headers with names in lower case; raise ValueError if a request can't have them."""
    if not isinstance(headers, Mapping):
        raise TypeError(f"The headers of an upstream are a mapping of texts, not {_kind_of(headers)}.")
    lower = lower_names(headers)
    for name, value in lower.items():
        if name in _RESERVED or name.startswith("mcp-"):
            raise ValueError(f"The header {name} is set by the client itself.")
        if not isinstance(value, str) or not value.isascii() or not value.isprintable():
            raise ValueError(f"The value of the header {name} has characters that a header can't contain.")
    return lower


def _verified(caller: Caller) -> tuple[Principal, str]:
    """Return a caller and its verified token; raise UpstreamTokenError for a caller without one."""
    principal = caller.principal
    if principal is None:
        raise UpstreamTokenError("missing", "The other server needs to know who calls. Sign in, and call again.")
    if principal.verified_token is None:
        raise UpstreamTokenError(
            "missing", "The call has no token that can be exchanged for one of the other server. Sign in with a token."
        )
    return principal, principal.verified_token.reveal()


def _kind_of(value: object) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__


def check_target(target: object) -> None:
    """Raise ValueError if the requests to a target can't have headers for each caller."""
    if isinstance(target, HTTPEndpoint):
        if target.sign_in is not None:
            raise ValueError("An Upstream with auth has no sign_in at its HTTPEndpoint: one of them says who calls.")
    elif not (isinstance(target, str) and target.startswith(("http://", "https://"))):
        raise ValueError("Upstream.auth is for a URL or an HTTPEndpoint. Other servers have no headers.")


def transport_of(target: Target, auth: UpstreamAuth | None) -> Transport:
    """Return the transport to an upstream, whose requests say who calls it."""
    transport = transport_for(target, {})
    identify(transport, target, auth)
    return transport


def identify(transport: Transport, target: Target, auth: UpstreamAuth | None) -> None:
    """Add the credentials of *auth* to the requests of a transport to a URL."""
    if auth is not None and isinstance(transport, StreamableHTTP):
        url = target.url if isinstance(target, HTTPEndpoint) else str(target)
        transport.wrap_exchange(partial(IdentifiedExchange, auth=auth, name=visible_url(url)))


def present_caller() -> Caller:
    """Return the caller for whom requests to upstreams are made now."""
    return _CALLER.get()
