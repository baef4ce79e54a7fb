"""`OAuthProxy`, the small authorization server in front of an identity provider that knows no MCP clients."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from functools import cached_property
from time import time
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from funcmcp._auth.access import distinct
from funcmcp._auth.authenticator import Challenge
from funcmcp._auth.dpop import PROOF_ALGORITHMS, checked_dpop
from funcmcp._auth.principal import Principal
from funcmcp._auth.protected_resource import ProtectedResource
from funcmcp._auth.tokens.bearer import BearerTokens
from funcmcp._auth.tokens.claims import TokenRules
from funcmcp._auth.tokens.keys import StaticKeys
from funcmcp._auth.tokens.proofs import Proofs
from funcmcp._auth.urls import checked
from funcmcp._oauth_proxy.access_tokens import ALGORITHM, TYPE, AccessTokens
from funcmcp._oauth_proxy.allowed_clients import AllowedClients, ClientFilter
from funcmcp._oauth_proxy.client_documents import ClientDocuments
from funcmcp._oauth_proxy.clients import ClientMetadataError, Clients
from funcmcp._oauth_proxy.failures import CLIENT_NOT_ALLOWED, REGISTRATION, TOO_MANY
from funcmcp._oauth_proxy.identity_assertions import PROFILE, AssertionGrants
from funcmcp._oauth_proxy.page import refusal_page
from funcmcp._oauth_proxy.programs import STATEMENT_ALGORITHMS, Programs
from funcmcp._oauth_proxy.redirect_uris import RedirectURIError
from funcmcp._oauth_proxy.settings import (
    CALLBACK_PATH,
    IGNORED_SCOPES,
    ClientNotAllowedError,
    ProxySettings,
    log_event,
)
from funcmcp._oauth_proxy.sign_in import authorize, callback, consent
from funcmcp._oauth_proxy.sign_in_log import SignInLog
from funcmcp._oauth_proxy.stored_sign_ins import LIFETIME_SECONDS, StoredSignIns
from funcmcp._oauth_proxy.token_endpoint import revoke, token
from funcmcp._oauth_proxy.upstream import token_exchanger_of
from funcmcp._oauth_proxy.upstream_tokens import CLAIM, Exchange
from funcmcp._oauth_proxy.user_claims import MAX_BESIDE_UPSTREAM, MAX_IN_TOKEN, REFERENCE, StoredClaims, UserClaims
from funcmcp._oauth_proxy.userinfo import CLAIMS as USERINFO_CLAIMS
from funcmcp._oauth_proxy.userinfo import PATH as USERINFO
from funcmcp._oauth_proxy.userinfo import userinfo
from funcmcp._oauth_proxy.visits import Visits
from funcmcp._oauth_proxy.web import WebAnswer, error_answer, json_answer
from funcmcp._objects.public_names import public
from funcmcp._state.key_values import MemorySignIns
from funcmcp._state.keys import configured_keys
from funcmcp._state.replays import FixedAccount, Nonces, Replays

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from funcmcp._auth.authenticator import Fit
    from funcmcp._auth.dpop import DPoP
    from funcmcp._oauth_proxy.clients import ClientWithSecret
    from funcmcp._oauth_proxy.programs import Program
    from funcmcp._oauth_proxy.settings import Allow
    from funcmcp._oauth_proxy.upstream import Upstream
    from funcmcp._oauth_proxy.user_claims import Claims
    from funcmcp._oauth_proxy.web import WebRequest
    from funcmcp._state.key_values import SignInStore
    from funcmcp._state.seal import KeyRing

    Handler = Callable[[ProxySettings, WebRequest], Awaitable[WebAnswer]]

_MAX_ACCESS_SECONDS: Final = 86_400
_MAX_REFRESH_SECONDS: Final = 86_400
_SEGMENT: Final = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._~-]+")
_PORTS: Final = {"https": 443, "http": 80}
_OPENID_METADATA: Final = "/.well-known/openid-configuration"
_METADATA: Final = ("/.well-known/oauth-authorization-server", _OPENID_METADATA)
_ERRORS: Final = {429: "temporarily_unavailable", 500: "server_error", 503: "temporarily_unavailable"}
"""The errors of OAuth for refusals; ``invalid_request`` for all other statuses."""

_AUTH_METHODS: Final = ("none", "client_secret_basic", "client_secret_post")

_READ: Final = ("GET", "HEAD")
"""The methods of documents. HEAD is answered as GET, and the platform leaves the body out."""

_PROOF_BYTES: Final = 8 * 1024 * 1024
"""Bytes of memory of used proofs of token requests. A user has a quarter of it, and so has an address."""

_ENDED: Final = Challenge("invalid_token", "The sign-in of the token has ended. Sign in again.")
_CACHED: Final = ("cache-control", "max-age=3600")
_CORS: Final = (
    ("access-control-allow-origin", "*"),
    ("access-control-expose-headers", "dpop-nonce, retry-after, www-authenticate"),
)
_PREFLIGHT: Final = (
    ("access-control-allow-headers", "authorization, *"),
    ("access-control-max-age", "600"),
)


class _Endpoint(NamedTuple):
    """An endpoint: its methods, what answers it, and whether it is for clients (or else for the user's browser)."""

    methods: tuple[str, ...]
    handler: Handler
    is_for_clients: bool


async def _metadata(settings: ProxySettings, request: WebRequest) -> WebAnswer:
    """Answer with the metadata of the authorization server (RFC 8414)."""
    answer = json_answer(200, _metadata_of(settings, is_openid=_OPENID_METADATA in request.path))
    return WebAnswer(200, (answer.headers[0], _CACHED), answer.body)


def _metadata_of(settings: ProxySettings, *, is_openid: bool) -> dict[str, Any]:
    """Return the metadata of the authorization server, or those of an OpenID provider."""
    issuer = settings.issuer
    document: dict[str, object] = {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/oauth/authorize",
        "token_endpoint": f"{issuer}/oauth/token",
        "registration_endpoint": f"{issuer}/oauth/register",
        "revocation_endpoint": f"{issuer}/oauth/revoke",
        "jwks_uri": f"{issuer}/oauth/keys",
        "scopes_supported": list(settings.scopes),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": settings.grant_types,
        # Registered clients have no secret, so "none" is first: some clients choose the first one.
        "token_endpoint_auth_methods_supported": list(_AUTH_METHODS),
        "revocation_endpoint_auth_methods_supported": list(_AUTH_METHODS),
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": settings.documents is not None,
        # What OpenID Connect Discovery requires of its document. The proxy issues no ID tokens.
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [ALGORITHM],
    }
    if settings.assertions is not None:
        document["authorization_grant_profiles_supported"] = [PROFILE]
    if settings.programs is not None and settings.programs.has_keys:
        document["token_endpoint_auth_methods_supported"] = [*_AUTH_METHODS, "private_key_jwt"]
        document["token_endpoint_auth_signing_alg_values_supported"] = sorted(STATEMENT_ALGORITHMS)
    if settings.dpop is not None:
        document["dpop_signing_alg_values_supported"] = list(PROOF_ALGORITHMS)
    if is_openid:
        # For those that decide by the domain of an address. These scopes are accepted, and give nothing.
        document["userinfo_endpoint"] = f"{issuer}{USERINFO}"
        document["claims_supported"] = list(USERINFO_CLAIMS)
        document["scopes_supported"] = ["openid", "email", "profile", *settings.scopes]
    return document


async def _keys(settings: ProxySettings, request: WebRequest) -> WebAnswer:
    """Return the public keys, for gateways that check access tokens."""
    del request
    answer = json_answer(200, {"keys": settings.tokens.public_keys})
    return WebAnswer(200, (answer.headers[0], ("cache-control", "max-age=300")), answer.body)


async def _register(settings: ProxySettings, request: WebRequest) -> WebAnswer:
    """Register a client (RFC 7591)."""
    seconds = await settings.rates.registrations.take(request.caller)
    if seconds:
        retry_after = ("retry-after", str(int(seconds) + 1))
        settings.log.refused(TOO_MANY, "registrations")
        return error_answer(429, "temporarily_unavailable", TOO_MANY.user, retry_after)
    try:
        answer = settings.clients.register(request.body, settings.clock())
        settings.check_uris(answer["redirect_uris"])
    except RedirectURIError as error:
        settings.log.refused(REGISTRATION, error)
        return error_answer(400, "invalid_redirect_uri", str(error))
    except ClientNotAllowedError:
        settings.log.refused(CLIENT_NOT_ALLOWED, "a registration")
        return error_answer(400, "invalid_redirect_uri", CLIENT_NOT_ALLOWED.user)
    except ClientMetadataError as error:
        settings.log.refused(REGISTRATION, error)
        return error_answer(400, "invalid_client_metadata", str(error))
    client = settings.clients.read(answer["client_id"])
    log_event("registered", "-" if client is None else client.key)
    return json_answer(201, answer)


_METADATA_ENDPOINT: Final = _Endpoint(_READ, _metadata, is_for_clients=True)
_ENDPOINTS: Final[Mapping[str, _Endpoint]] = {
    "/oauth/keys": _Endpoint(_READ, _keys, is_for_clients=True),
    "/oauth/register": _Endpoint(("POST",), _register, is_for_clients=True),
    "/oauth/authorize": _Endpoint(("GET",), authorize, is_for_clients=False),
    "/oauth/consent": _Endpoint(("POST",), consent, is_for_clients=False),
    CALLBACK_PATH: _Endpoint(("GET",), callback, is_for_clients=False),
    "/oauth/token": _Endpoint(("POST",), token, is_for_clients=True),
    "/oauth/revoke": _Endpoint(("POST",), revoke, is_for_clients=True),
}


@public("funcmcp.auth")
class OAuthProxy:
    """An authenticator with a sign-in for clients that the identity provider of your users does not know.

    The server itself registers clients, asks the user for consent, sends the user to the identity provider, and issues
    tokens for its own endpoint. It needs no store: with shared keys (``FUNCMCP_KEYS``) any instance continues what
    another one began. With a store, sign-ins last longer, stolen refresh tokens are detected, and sign-ins can be
    ended. See docs/guides/sign-in.md.

    Args:
        url: The public URL of the endpoint, such as ``"https://orders.example.com/mcp"``. http is allowed on a
            loopback address only.
        upstream: The identity provider, such as `OIDC`.
        scopes: The scopes of the server, each with a sentence that tells users what it allows. A client that names no
            scope requests all of them.
        allow: Decides which users may sign in. It gets a `User`, and returns True, False, or the scopes that the user
            may have. It may be async, and has five seconds. None: every user of the upstream may sign in.
        claims: More claims of the user for tools, in `Principal.claims`: names of claims of the provider, such as
            ``["org_id", "groups"]``, or paths to members of one (``"realm_access.roles"``); or a function that gets a
            `User` and returns a mapping. It may be async, and has five seconds. The claims are determined at the
            sign-in, and again when a refresh says something new about the user. Without a store they may have 4 KiB of
            JSON with the roles, and with one 128 KiB. Clients can read those that are in the token. None: no more than
            name, verified e-mail address, tenant and roles.
        clients: Which applications may sign users in: ``["https://claude.ai", "http://localhost"]``. An entry is the
            origin of a document (CIMD) or of redirect URIs, ``"http://localhost"`` for all programs on the computer of
            the user, or a scheme such as ``"cursor:"``. An object with the methods of `AllowedClients` decides in
            another way. None: all applications; each user is asked.
        client_documents: Whether a client's id may be the URL of a document that describes it (CIMD). The server
            requests it from the internet, guarded against requests to other networks.
        access_seconds: Seconds after which an access token expires, at most a day.
        refresh_seconds: Seconds after the sign-in for which its access tokens can be renewed. The identity provider is
            asked each time. Without a store a day at most, which is the default. With a store 90 days at most, which is
            the default, and a sign-in ends that is not renewed for 30 days. 0: clients get no refresh tokens.
        store: Stores the sign-ins, such as `funcmcp.redis.RedisSignIns`, `funcmcp.postgres.PostgresSignIns`,
            `funcmcp.azure.AzureSignIns`, `funcmcp.state.SQLiteSignIns` or `funcmcp.state.MemorySignIns`. What is in it
            is encrypted with the keys of the proxy.
        identity_assertions: Clients that may bring an identity assertion of the upstream (ID-JAG) in place of a
            sign-in: the secret for each client id, or None for a public client such as the URL of a document. It needs
            a store. None: no client.
        programs: Programs that get tokens with a secret of their own, without a user (client credentials), by name. The
            name is the ``sub`` and the ``client_id`` of their tokens. *allow* is not called for them. None: no program.
        callback_path: The path, below the issuer, of the redirect URI to register at the identity provider.
        issuer: The issuer of the tokens, below which the endpoints of the sign-in are. None: the origin of the URL, so
            a host has one proxy. For several servers of one host, a part of the URL, such as
            ``"https://mcp.example.com/orders"`` for ``"https://mcp.example.com/orders/mcp"``.
        keys: The keys of the proxy. By default the keys in the environment variable ``FUNCMCP_KEYS``, those of the
            platform, or a random key of this process, whichever exists first. Keys for the URL are derived from them.
        dpop: Whether clients may bind their tokens to a key of theirs (RFC 9449), or must. ``"allowed"``: a token
            request with a proof gets tokens that are bound to its key, and every other one bearer tokens,
            unless the client says of itself that it always has a key (``dpop_bound_access_tokens``).
            ``"required"``: each token request needs a proof. None: tokens are bearer tokens.
        dpop_nonces: Whether proofs need a nonce of the server, as in `BearerTokens`.
        clock: A function that returns seconds since 1970.

    Attributes:
        resource: The metadata of the server, which `Auth` publishes.
        issues_tokens: True: the proxy issues the tokens that it accepts.
        nonces: Issues the nonces, for the endpoint as well: to a client, both are one server. None without nonces.

    Raises:
        TypeError: *upstream* is not an identity provider, *scopes* or *programs* is not a dict, or *claims* or
            *clients* is one string.
        ValueError: The URL is not https, or has a query or another spelling than clients use; *issuer* is not a part of
            it; there are no scopes, one is invalid, or has no sentence; a name in *claims* is reserved; an entry of
            *clients* has another form; *identity_assertions* has no store, no client or a short secret; a program has
            no valid name or scope; a number of seconds is not allowed; or *dpop* has another value.

    Example:
        ```python
        auth = Auth(
            OAuthProxy(
                "https://orders.example.com/mcp",
                upstream=OIDC("https://login.example.com", client_id, client_secret),
                scopes={"orders.read": "See your orders", "orders.write": "Place and cancel orders"},
            ),
            scopes=["orders.read"],
        )
        ```
    """

    issues_tokens: Literal[True] = True

    def __init__(  # noqa: PLR0913 - one parameter for each concern
        self,
        url: str,
        *,
        upstream: Upstream,
        scopes: Mapping[str, str],
        allow: Allow | None = None,
        claims: Claims | None = None,
        clients: Sequence[str] | ClientFilter | None = None,
        client_documents: bool = True,
        access_seconds: int = 3600,
        refresh_seconds: int | None = None,
        store: SignInStore | None = None,
        identity_assertions: Mapping[str, str | None] | None = None,
        programs: Mapping[str, Program] | None = None,
        callback_path: str = CALLBACK_PATH,
        issuer: str | None = None,
        keys: KeyRing | None = None,
        dpop: DPoP | None = None,
        dpop_nonces: bool = False,
        clock: Callable[[], float] = time,
    ) -> None:
        url, issuer = _checked_place(url, issuer)
        refresh_seconds = _checked_refresh_seconds(refresh_seconds, has_store=store is not None)
        own_keys = (keys or configured_keys(os.environ)).of(f"oauth {url}")
        self.nonces: Nonces | None = Nonces(own_keys, clock) if dpop_nonces else None
        sign_ins = None if store is None else StoredSignIns(store, own_keys, upstream, refresh_seconds, clock)
        self._settings = ProxySettings(
            url=url,
            issuer=issuer,
            upstream=_checked_upstream(upstream),
            scopes=_checked_scopes(scopes),
            keys=own_keys,
            clients=Clients(own_keys, takes_proofs=dpop is not None),
            allowed_clients=_allowed(clients),
            documents=ClientDocuments() if client_documents else None,
            tokens=AccessTokens(issuer, url, own_keys, _checked_access_seconds(access_seconds)),
            exchange=_exchange_of(upstream, own_keys),
            assertions=_assertions(upstream, identity_assertions, sign_ins, issuer=issuer, resource=url),
            programs=_programs(programs, scopes, issuer, store, clock),
            allow=allow,
            claims=_claims(claims, upstream, decides=allow is not None, has_store=store is not None),
            sign_ins=sign_ins,
            refresh_seconds=refresh_seconds,
            callback_path=_checked_callback(callback_path),
            dpop=checked_dpop("OAuthProxy", dpop),
            proofs=None if dpop is None else _proofs(store, clock, self.nonces),
            clock=clock,
        )
        self.resource: ProtectedResource = _resource(url, issuer, scopes)

    @cached_property
    def _bearer(self) -> _OwnTokens:
        """Checks the access tokens of the proxy."""
        return _check_of_tokens(self._settings)

    @cached_property
    def _endpoints(self) -> Mapping[str, _Endpoint]:
        """The endpoints by path."""
        settings = self._settings
        return _endpoints_below(settings.issuer.removeprefix(settings.origin), self._userinfo, settings.callback_path)

    @property
    def dpop(self) -> DPoP | None:
        """Whether clients may bind their tokens to a key, or must."""
        return self._settings.dpop

    @property
    def dpop_nonces(self) -> bool:
        """Whether proofs need a nonce of the server."""
        return self.nonces is not None

    @property
    def has_shared_keys(self) -> bool:
        """Whether other processes can have the same keys."""
        return self._settings.keys.shared

    @property
    def has_lasting_keys(self) -> bool:
        """Whether a later start of the server has the same keys."""
        return self._settings.keys.lasting

    @property
    def store(self) -> SignInStore | None:
        """The store of sign-ins; None without one."""
        return None if self._settings.sign_ins is None else self._settings.sign_ins.store

    @property
    def refresh_seconds(self) -> float:
        """Seconds after a sign-in for which it can be renewed."""
        return self._settings.refresh_seconds

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the endpoints."""
        return tuple(self._endpoints)

    @property
    def upstream(self) -> Upstream:
        """The identity provider."""
        return self._settings.upstream

    @cached_property
    def visits(self) -> Visits:
        """Finds out which user is at a browser, for pages of the server that are not part of a sign-in."""
        return Visits(self._settings)

    @property
    def callback(self) -> str:
        """The redirect URI to register at the identity provider."""
        return self._settings.callback

    @property
    def has_registration(self) -> bool:
        """Whether the server is registered at its identity provider. A `LocalProvider` needs no registration."""
        return bool(getattr(self.upstream, "needs_registration", True))

    async def __call__(self, headers: Mapping[str, str]) -> Principal | Challenge | None:
        """Return the user of a token of this proxy, a challenge for another token, or None without a bearer token.

        Raises:
            StoreUnavailableError: The claims of the user are in the store, and it can't be reached.
        """
        return await self._bearer(headers)

    def recall(self, digest: bytes) -> Principal | None:
        """See `BearerTokens.recall`."""
        return self._bearer.recall(digest)

    def fit(self, headers: Mapping[str, str]) -> Fit:
        """See `BearerTokens.fit`."""
        return self._bearer.fit(headers)

    def client(self, name: str, redirect_uris: Sequence[str], *, pkce: bool = True) -> ClientWithSecret:
        """Return the id and the secret of a client, for a platform that asks for both.

        They are derived from the keys of the server and from the arguments, so nothing is stored, and each call returns
        the same ones. The id contains the arguments. They are valid for as long as the keys are.

        Args:
            name: What users read when the platform asks for access.
            redirect_uris: The addresses to which the platform lets users return.
            pkce: Whether each sign-in needs PKCE. False is for a platform that does not send it: then only the secret
                and the platform's own ``state`` protect a code, and it is another client.

        Raises:
            TypeError: The redirect URIs are one string.
            RuntimeError: The keys are those of this start, so that the client would be unknown after the next one.
            ValueError: A redirect URI is not allowed, by itself or by *clients*.

        Example:
            ```python
            print(proxy.client("Power Platform", ["https://global.consent.azure-apim.net/redirect/orders"]))
            ```
        """
        if isinstance(redirect_uris, str):
            raise TypeError("OAuthProxy.client takes a list of redirect URIs, not one string.")
        if not self.has_lasting_keys:
            raise RuntimeError("OAuthProxy.client needs keys that a restart keeps: set FUNCMCP_KEYS, or keys=.")
        client = self._settings.clients.with_secret(name, redirect_uris, needs_pkce=pkce)
        try:
            self._settings.check_uris(redirect_uris)
        except ClientNotAllowedError:
            raise ValueError("OAuthProxy.clients does not allow the redirect URIs of this client. Add them.") from None
        return client

    async def sign_out(self, subject: str) -> None:
        """End all sign-ins of a user, and the grants of tools with ``grant=``.

        Access tokens of the proxy that were issued before are valid until they expire.

        Args:
            subject: The subject of the user, as in `Principal.subject`.

        Raises:
            RuntimeError: The proxy has no store.
            StoreUnavailableError: The store can't be reached, or other requests change it too often. Call it again.
        """
        sign_ins = self._settings.sign_ins
        if sign_ins is not None:  # first, because a service of a grant may be slow
            await sign_ins.sign_out(subject)
            log_event("signed_out", "-", subject)
        for sign_out in self.visits.sign_outs:
            await sign_out(subject)
        if sign_ins is None:
            raise RuntimeError("OAuthProxy.sign_out needs a store: OAuthProxy(store=...).")

    async def check(self) -> None:
        """Look beside serving whether the identity provider can be used; the log says what is wrong."""
        check = getattr(self.upstream, "check", None)
        if check is not None:
            await check()

    def with_provider(self, url: str, upstream: Upstream, keys: KeyRing, **changes: Any) -> OAuthProxy:
        """Return a proxy with the same scopes and rules at another URL, whose users another provider signs in.

        For tests and machines of developers: it has keys of its own, so neither proxy accepts the tokens of the other.
        Sign-ins that this proxy would keep in a store are kept in memory. All applications may sign users in, and none
        may bring identity assertions. There are no programs.

        Args:
            url: The URL of the endpoint.
            upstream: The provider.
            keys: The keys of the new proxy.
            changes: Other options that differ.
        """
        settings = self._settings
        options: dict[str, Any] = {
            "scopes": settings.scopes,
            "allow": settings.allow,
            "claims": settings.claims.configured,
            "client_documents": settings.documents is not None,
            "access_seconds": settings.tokens.seconds,
            "refresh_seconds": settings.refresh_seconds,
            "store": None if self.store is None else MemorySignIns(),
            "dpop": self.dpop,
            "dpop_nonces": self.dpop_nonces,
            "clock": settings.clock,
        }
        return OAuthProxy(url, upstream=upstream, keys=keys, **options | changes)

    def raise_failures(self) -> None:
        """Raise what *allow* and *claims* raise, in place of an outage. For tests."""
        self._settings.allow_functions.raises = self._settings.claims.functions.raises = True

    async def aclose(self, seconds: float = 5.0) -> None:
        """Close the connections of the store, after the renewals that are running.

        Args:
            seconds: Maximum number of seconds for the renewals, whose clients have gone.
        """
        if self._settings.sign_ins is not None:
            await self._settings.sign_ins.finish(seconds)
            await self._settings.sign_ins.store.aclose()

    async def answer(self, request: WebRequest) -> WebAnswer:
        """Answer a request to one of the paths."""
        endpoint = self._endpoints[request.path]
        methods = ", ".join(endpoint.methods)
        if not endpoint.is_for_clients:
            if request.method not in endpoint.methods:
                text = "This address is part of a sign-in. Start the sign-in in your application."
                return refusal_page(request, 405, "There is nothing to see here", text).with_headers(("allow", methods))
            visited = await self.visits.answer(request) if endpoint.handler is callback else None
            return await endpoint.handler(self._settings, request) if visited is None else visited
        if request.method == "OPTIONS":
            return WebAnswer(204, (*_CORS, ("access-control-allow-methods", methods), *_PREFLIGHT))
        if request.method not in endpoint.methods:
            answer = error_answer(405, "invalid_request", f"Use {methods}.", ("allow", methods))
        else:
            answer = await endpoint.handler(self._settings, request)
        return answer.with_headers(*_CORS)

    async def _userinfo(self, settings: ProxySettings, request: WebRequest) -> WebAnswer:
        """Answer who the user of an access token is."""
        return await userinfo(settings, request, self._bearer)

    def metadata(self) -> dict[str, Any]:
        """Return the metadata of the authorization server (RFC 8414)."""
        return _metadata_of(self._settings, is_openid=False)

    def refusal(self, request: WebRequest, status: int, reason: str, *headers: tuple[str, str]) -> WebAnswer:
        """Return the answer to a request that is refused before it is read: an OAuth error, or a page.

        Args:
            request: The request, whose body plays no part.
            status: The status.
            reason: A sentence for developers.
            headers: More header fields.
        """
        if not self._endpoints[request.path].is_for_clients:
            advice = "Start the sign-in again in your application."
            return refusal_page(request, status, "This request can't be answered", reason, advice).with_headers(
                *headers
            )
        answer = error_answer(status, _ERRORS.get(status, "invalid_request"), reason, *headers)
        return answer.with_headers(*_CORS)


class _OwnTokens(BearerTokens):
    """The access tokens of a proxy, whose principals get tokens for other APIs, and claims that are in the store.

    Attributes:
        exchange: Exchanges sign-ins; None if the upstream does not.
        stored_claims: Reads claims in the store; None without a store.
    """

    exchange: Exchange | None = None
    stored_claims: StoredClaims | None = None

    async def __call__(self, headers: Mapping[str, str]) -> Principal | Challenge | None:
        identity = await super().__call__(headers)
        if not isinstance(identity, Principal) or REFERENCE not in identity.claims:
            return identity
        return _ENDED if self.stored_claims is None else await self.stored_claims.complete(identity) or _ENDED

    def recall(self, digest: bytes) -> Principal | None:
        principal = super().recall(digest)
        return None if principal is None or REFERENCE in principal.claims else principal

    async def _check(self, token: str, now: float) -> tuple[Principal, float]:
        principal, end = await super()._check(token, now)
        principal = replace(principal, verified_token=None)  # the proxy's own token, which no other endpoint takes
        if CLAIM not in principal.claims:
            return principal, end
        # The encrypted token is not for authors, and a stored task must not have it.
        claims = {name: value for name, value in principal.claims.items() if name != CLAIM}
        tokens = None if self.exchange is None else self.exchange.tokens_of(principal.claims[CLAIM])
        return replace(principal, claims=claims, upstream_tokens=tokens), end


def _resource(url: str, issuer: str, scopes: Mapping[str, str]) -> ProtectedResource:
    return ProtectedResource(resource=url, authorization_servers=[issuer], scopes=list(scopes))


def _check_of_tokens(settings: ProxySettings) -> _OwnTokens:
    """Return the check of the access tokens that a proxy issues."""
    bearer = _OwnTokens(
        settings.issuer,
        settings.url,
        keys=StaticKeys(*settings.tokens.public_keys),
        rules=TokenRules(algorithms=(ALGORITHM,), types=(TYPE,)),
        dpop=settings.dpop,
        clock=settings.clock,
    )
    bearer.exchange = settings.exchange
    bearer.stored_claims = None if settings.sign_ins is None else StoredClaims(settings.sign_ins)
    return bearer


def _checked_upstream(upstream: Upstream) -> Upstream:
    """Return an upstream; raise TypeError for another object, such as the URL of the identity provider."""
    if not callable(getattr(upstream, "authorization_url", None)):
        raise TypeError(
            "OAuthProxy.upstream is an identity provider, such as OIDC(issuer, client_id, client_secret), not "
            f"{type(upstream).__name__}."
        )
    return upstream


def _exchange_of(upstream: Upstream, keys: KeyRing) -> Exchange | None:
    """Return what exchanges sign-ins at an identity provider; None if the provider does not."""
    exchanger = token_exchanger_of(upstream)
    return None if exchanger is None else Exchange(exchanger, keys, SignInLog().upstream_failed)


def _claims(claims: Claims | None, upstream: Upstream, *, decides: bool, has_store: bool) -> UserClaims:
    """Return what determines the claims of users, with fewer in access tokens that also have one of the provider."""
    short = MAX_IN_TOKEN if token_exchanger_of(upstream) is None else MAX_BESIDE_UPSTREAM
    return UserClaims(claims, SignInLog().upstream_failed, decides=decides, has_store=has_store, short=short)


def _proofs(store: SignInStore | None, clock: Callable[[], float], nonces: Nonces | None) -> Proofs:
    """Return what checks the proofs of token requests."""
    return Proofs(_replays(store, clock), clock, nonces)


def _programs(
    programs: Mapping[str, Program] | None,
    scopes: Mapping[str, str],
    issuer: str,
    store: SignInStore | None,
    clock: Callable[[], float],
) -> Programs | None:
    """Return the programs that get tokens; None if there are none."""
    if programs is None:
        return None
    audiences = (issuer, f"{issuer}/oauth/token")
    return Programs(programs, scopes, audiences=audiences, used=_replays(store, clock), clock=clock)


def _replays(store: SignInStore | None, clock: Callable[[], float]) -> Replays:
    """Return what remembers used proofs, in the store if other processes reach it, too."""
    account = FixedAccount(_PROOF_BYTES, _PROOF_BYTES // 4)
    return Replays(account, clock, store if store is not None and store.shared else None)


def _assertions(
    upstream: Upstream,
    clients: Mapping[str, str | None] | None,
    sign_ins: StoredSignIns | None,
    *,
    issuer: str,
    resource: str,
) -> AssertionGrants | None:
    """Return what accepts identity assertions of some clients; raise ValueError if there is no store for it."""
    if clients is None:
        return None
    if sign_ins is None:
        raise ValueError("OAuthProxy.identity_assertions needs a store, so that each assertion counts once.")
    return AssertionGrants(upstream, clients, sign_ins.use_once, issuer=issuer, resource=resource)


def _checked_place(url: str, issuer: str | None) -> tuple[str, str]:
    """Return the URL and the issuer, without slashes at the end; raise ValueError."""
    url, origin = _checked_url(url)
    issuer = origin if issuer is None else _checked_issuer(issuer, url, origin)
    return url, issuer


def _checked_url(url: str) -> tuple[str, str]:
    """Return the URL of an endpoint without a slash at the end, and its origin; raise ValueError if it is not fit."""
    parts = checked("The URL of an OAuthProxy", url)
    if parts.query or "?" in url:
        raise ValueError(f"The URL of an OAuthProxy can't have a query; got {url!r}.")
    if parts.netloc != parts.netloc.lower() or parts.port == _PORTS[parts.scheme]:
        raise ValueError(
            "The URL of an OAuthProxy must be spelled as clients spell it, with the host in lower case and without a "
            f"default port; got {url!r}."
        )
    return url.removesuffix("/"), f"{parts.scheme}://{parts.netloc}"


def _checked_issuer(issuer: str, url: str, origin: str) -> str:
    """Return an issuer without a slash at the end; raise ValueError if it is not the beginning of the URL."""
    issuer = issuer.removesuffix("/")
    if not f"{url}/".startswith(f"{issuer}/") or not issuer.startswith(origin):
        examples = " or ".join(dict.fromkeys([repr(origin), repr(url.rpartition("/")[0])]))
        raise ValueError(
            f"OAuthProxy.issuer must be the beginning of the URL, such as {examples}; got {issuer!r}. The endpoints of "
            "the sign-in are below it."
        )
    segments = issuer.removeprefix(origin).split("/")[1:]
    if not all(map(_SEGMENT.fullmatch, segments)):
        raise ValueError(
            f"The path of OAuthProxy.issuer can have letters, digits and the characters . _ ~ - only; got {issuer!r}."
        )
    return issuer


def _allowed(clients: Sequence[str] | ClientFilter | None) -> ClientFilter | None:
    if clients is None or isinstance(clients, ClientFilter):
        return clients
    return AllowedClients(clients)


def _checked_callback(path: str) -> str:
    """Return the path of the callback; raise ValueError if it is not one, or is that of another endpoint."""
    if not path.startswith("/") or not all(map(_SEGMENT.fullmatch, path[1:].split("/"))):
        raise ValueError(f"OAuthProxy.callback_path must be a path such as {CALLBACK_PATH!r}; got {path!r}.")
    if path != CALLBACK_PATH and (path in _ENDPOINTS or path.startswith("/.well-known/")):
        raise ValueError(f"OAuthProxy.callback_path is that of another endpoint: {path!r}.")
    return path


def _endpoints_below(path: str, userinfo: Handler, callback_path: str) -> Mapping[str, _Endpoint]:
    """Return the endpoints of an issuer by path. Clients look for its metadata at several (RFC 8414 section 3.1)."""
    metadata = [f"{name}{path}" for name in _METADATA]
    if path:
        metadata.append(f"{path}{_OPENID_METADATA}")
    endpoints = {f"{path}{name}": endpoint for name, endpoint in _ENDPOINTS.items() if name != CALLBACK_PATH}
    endpoints[f"{path}{callback_path}"] = _ENDPOINTS[CALLBACK_PATH]
    endpoints[f"{path}{USERINFO}"] = _Endpoint((*_READ, "POST"), userinfo, is_for_clients=True)
    return MappingProxyType(dict.fromkeys(metadata, _METADATA_ENDPOINT) | endpoints)


def _checked_access_seconds(seconds: int) -> int:
    """Return after how many seconds access tokens expire; raise ValueError for a time that is not allowed."""
    if not 0 < seconds <= _MAX_ACCESS_SECONDS:
        raise ValueError(f"OAuthProxy.access_seconds must be between 1 and {_MAX_ACCESS_SECONDS}.")
    return seconds


def _checked_refresh_seconds(seconds: int | None, *, has_store: bool) -> int:
    """Return for how long sign-ins are renewed; raise ValueError for a time that is not allowed."""
    longest = LIFETIME_SECONDS if has_store else _MAX_REFRESH_SECONDS
    if seconds is None:
        return longest
    if not 0 <= seconds <= longest:
        hint = "" if has_store else ", or up to 90 days with a store"
        raise ValueError(f"OAuthProxy.refresh_seconds must be between 0 and {longest}{hint}.")
    return seconds


def _checked_scopes(scopes: Mapping[str, str]) -> dict[str, str]:
    if not hasattr(scopes, "items"):
        raise TypeError(
            'OAuthProxy.scopes is a dict with a sentence for each scope, such as {"orders.read": "See your orders"}.'
        )
    if not scopes:
        raise ValueError("OAuthProxy needs at least one scope, with a sentence for users.")
    distinct(scopes)
    for scope, sentence in scopes.items():
        if scope in IGNORED_SCOPES:
            raise ValueError(
                f"{scope!r} is a scope of OpenID Connect. Choose another name for the scope of the server."
            )
        if not isinstance(sentence, str) or not sentence.strip():
            raise ValueError(f"The scope {scope!r} needs a sentence that tells users what it allows.")
    return dict(scopes)
