"""OpenID providers as upstreams of the proxy: Auth0, Okta, Keycloak, Amazon Cognito and others.

How it works: the endpoints and the URL of the keys come from the provider's discovery document, which is requested with
the first sign-in and again after an hour. If the provider does not answer then, the last document stays valid.

The provider may change its keys at any time, and the server requests them at most every 30 seconds. So a valid ID token
may have a key that the server does not have yet. At a sign-in that is an outage. A refresh succeeds without the ID
token, as the provider has renewed the sign-in: if it has replaced the refresh token, the old one can't be used again.

Providers may leave claims out of the ID token that userinfo has. It is requested only if claims are missing
(`user_claims`), with the access token of the sign-in. An answer that is refused, of another user or not valid is not
used, and the claims remain missing.

Source: OpenID Connect Discovery 1.0 sections 3 and 4, OpenID Connect Core 1.0 sections 3.1.2.1, 5.3 and 5.4 (userinfo),
11 (`offline_access`) and 12, RFC 7636, RFC 7009; RFC 8693 section 2 (tokens for other APIs); RFC 9126 (pushed
authorization requests).
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Final

from funcmcp._auth.access import distinct
from funcmcp._auth.client_options import checked_parameters, made_assertion
from funcmcp._auth.tokens.claims import claim_at
from funcmcp._auth.tokens.compact import MissingKeyError, TokenError
from funcmcp._auth.tokens.jwks import JWKS
from funcmcp._auth.urls import checked, checked_insecure_hosts
from funcmcp._oauth_proxy.client_requests import (
    RESERVED_AT_TOKEN,
    ClientAuthentication,
    issued_token_in,
    refresh_token_in,
    url_with,
)
from funcmcp._oauth_proxy.failures import (
    ID_TOKEN_ALGORITHM,
    ID_TOKEN_KEY,
    PROVIDER_AWAY,
    PROVIDER_DOCUMENT,
    PROVIDER_REFUSES_SERVER,
)
from funcmcp._oauth_proxy.id_tokens import (
    ACCEPTED,
    IDTokenError,
    IDTokens,
    roles_in,
    text_claim,
    texts_claim,
    verified_email,
    with_userinfo,
)
from funcmcp._oauth_proxy.identity_assertions import assertion_of, validated
from funcmcp._oauth_proxy.upstream import (
    ClaimsRequest,
    SignIn,
    UpstreamHTTP,
    UpstreamMisconfiguredError,
    UpstreamRefusedError,
    UpstreamUnavailableError,
    User,
    failed,
)
from funcmcp._objects.public_names import public
from funcmcp._state.line_limit import LineLimit, escaped

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Mapping, Sequence

    from funcmcp._auth.client_options import AuthMethod, MakeAssertion
    from funcmcp._auth.tokens.keys import KeySource
    from funcmcp._oauth_proxy.identity_assertions import IdentityAssertion
    from funcmcp._oauth_proxy.upstream import AuthorizationRequest, IssuedToken, UpstreamError

_logger = logging.getLogger("funcmcp")

_DISCOVERY: Final = "/.well-known/openid-configuration"
_LIFETIME: Final = 3600.0
_PAUSE: Final = 5.0
"""Minimum number of seconds between two requests for the discovery document."""

_ROLES: Final = "roles"
_OFFLINE: Final = "offline_access"
_GRANT_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
_KIND_ACCESS: Final = "urn:ietf:params:oauth:token-type:access_token"
_PUSHED: Final = "pushed_authorization_request_endpoint"
_ENDPOINTS: Final = (
    "authorization_endpoint",
    "jwks_uri",
    _PUSHED,
    "revocation_endpoint",
    "token_endpoint",
    "userinfo_endpoint",
)
"""Members of the discovery document that the author can replace."""

_MAX_REQUEST_URI: Final = 2048


@dataclass(frozen=True, slots=True)
class Provider:
    """What the discovery document of a provider says.

    Attributes:
        pushed_endpoint: Takes authorization requests before the browser is sent there; None: they go with the browser.
        auth_methods: How the proxy may authenticate.
        sends_issuer: Whether each answer with the browser has an ``iss``.
    """

    authorization_endpoint: str
    token_endpoint: str
    revocation_endpoint: str | None
    pushed_endpoint: str | None
    userinfo_endpoint: str | None
    scopes: tuple[str, ...]
    auth_methods: tuple[str, ...]
    sends_issuer: bool
    keys: KeySource
    id_tokens: IDTokens


@public("funcmcp.auth")
class OIDC:
    """An OpenID provider for `OAuthProxy`.

    Register the server there as a web application with the redirect URI
    ``https://<host of the server>/oauth/callback``. The provider's own scopes and tokens are never passed on.

    Args:
        issuer: The exact issuer of the provider, as in its discovery document.
        client_id: The id of the registration.
        client_secret: The secret of the registration; None for a public client.
        discovery: The URL of the discovery document, if it is not ``<issuer>/.well-known/openid-configuration``, as for
            Azure AD B2C. The document must have the issuer all the same.
        name: The name of the provider, for people; by default the host of the issuer.
        scopes: Scopes to request. ``openid`` is always requested, and ``offline_access`` if the provider has it.
        parameters: More parameters of the authorization request, such as ``{"audience": "..."}`` for Auth0. A value of
            ``""`` leaves out a parameter that the proxy would send.
        token_parameters: More parameters of the requests with a code or a refresh token. A value of ``""`` leaves out a
            parameter that the proxy would send, such as ``scope``, which it repeats with a refresh token.
        token_endpoint_auth_method: How the proxy sends its secret: ``"client_secret_basic"``, ``"client_secret_post"``,
            or ``"client_secret_jwt"``, which signs with it. None: the first of these that the discovery document has.
        credential: In place of a secret, a function that returns a signed assertion (``private_key_jwt``, RFC 7523) for
            each request. The function may be async.
        roles_claim: The claim of the ID token, or of userinfo, with the roles of the user: a list of strings, or one
            string. A path names a member of a claim, such as ``"realm_access.roles"``.
        token_exchange: Whether tools get tokens for other APIs by `Context.upstream_token`. The provider must support
            RFC 8693, and the registration must be allowed to exchange tokens.
        endpoints: URLs that replace those of the discovery document, by their names there, such as
            ``{"token_endpoint": "https://keycloak.internal/token"}``.
        insecure_hosts: Hosts, with their port, whose URLs may begin with ``http://``, such as ``["keycloak:8080"]``.
            For development only: whoever can change the answers can sign in as any user. The log warns at the start.
        ca_file: A PEM file with certificate authorities that are trusted as well, for a provider with a private one.
        pushed_requests: Whether authorization requests are pushed (RFC 9126), for a provider that demands it of this
            registration. If the discovery document says that it demands it of all, they always are.
        requires_nonce: Whether an ID token must repeat the nonce of the sign-in. False is for a provider that leaves it
            out. Then only PKCE keeps a stolen code from being used for another sign-in, so the provider must check it.
        clock: A function that returns seconds since 1970.

    Attributes:
        issuer: The issuer.
        name: The name of the provider, for people.
        exchanges_tokens: Whether tools get tokens for other APIs.

    Raises:
        TypeError: *scopes* or *insecure_hosts* is one string.
        ValueError: The issuer or the URL of the document is not an https URL (http only on a loopback address), the
            issuer is the URL of its document, the id is missing, a scope is invalid, a parameter belongs to the proxy,
            there are both a secret and a credential, the method is unknown or has no secret, the name of an endpoint is
            unknown, or the file has no certificates.
    """

    # What the first request replaces.
    _provider: Provider | None = None
    _next_discovery = 0.0
    _discovering: asyncio.Task[None] | None = None
    _failure: UpstreamUnavailableError | None = None
    _keys: tuple[str, JWKS] | None = None

    def __init__(  # noqa: PLR0913 - the registration, and what providers differ in
        self,
        issuer: str,
        client_id: str,
        client_secret: str | None = None,
        *,
        discovery: str | None = None,
        name: str | None = None,
        scopes: Sequence[str] = ("openid", "profile", "email"),
        parameters: Mapping[str, str] | None = None,
        token_parameters: Mapping[str, str] | None = None,
        token_endpoint_auth_method: AuthMethod | None = None,
        credential: MakeAssertion | None = None,
        roles_claim: str = _ROLES,
        token_exchange: bool = False,
        endpoints: Mapping[str, str] | None = None,
        insecure_hosts: Collection[str] = (),
        ca_file: str | os.PathLike[str] | None = None,
        pushed_requests: bool = False,
        requires_nonce: bool = True,
        clock: Callable[[], float] = time,
    ) -> None:
        self._insecure_hosts = checked_insecure_hosts("OIDC.insecure_hosts", insecure_hosts)
        parts = checked("The issuer", issuer, self._insecure_hosts)
        _check_issuer(issuer)
        if discovery is not None:
            checked("OIDC.discovery", discovery, self._insecure_hosts)
        self.issuer: str | None = issuer
        self.name: str = name or parts.hostname or issuer
        self.exchanges_tokens: bool = token_exchange
        self._issuer = issuer
        self._discovery = discovery or issuer.removesuffix("/") + _DISCOVERY
        self._client_id = client_id
        self._scopes = _checked_scopes(scopes)
        self._parameters = checked_parameters("OIDC.parameters", parameters)
        self._token_parameters = checked_parameters("OIDC.token_parameters", token_parameters, RESERVED_AT_TOKEN)
        self._endpoints = _checked_endpoints(endpoints, self._insecure_hosts)
        self._credential = credential
        assertion = None if credential is None else self._assertion
        self._authentication = ClientAuthentication(
            "OIDC", client_id, client_secret, method=token_endpoint_auth_method, assertion=assertion, clock=clock
        )
        self._pushed_requests = pushed_requests
        self._requires_nonce = requires_nonce
        self._roles_claim = roles_claim
        self._has_logged_roles = False
        self._ignored = LineLimit()
        self._clock = clock
        self._ca_file = ca_file
        self._http = UpstreamHTTP(ca_file=ca_file)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._issuer!r}, {self._client_id!r})"

    async def authorization_url(self, request: AuthorizationRequest) -> str:
        """See `Upstream.authorization_url`."""
        provider = await self._discover()
        parameters = {
            "response_type": "code",
            "client_id": self._client_id,
            "redirect_uri": request.redirect_uri,
            "scope": " ".join(provider.scopes),
            "state": request.state,
            "nonce": request.nonce,
            "code_challenge": request.challenge,
            "code_challenge_method": "S256",
        }
        if _OFFLINE in provider.scopes:
            parameters["prompt"] = "consent"  # OpenID Connect Core 1.0 section 11
        parameters |= self._parameters
        if provider.pushed_endpoint is not None:
            request_uri = await self._push(provider, provider.pushed_endpoint, parameters)
            parameters = {"client_id": self._client_id, "request_uri": request_uri}
        return url_with(provider.authorization_endpoint, parameters)

    async def requires_issuer(self) -> bool:
        """See `Upstream.requires_issuer`."""
        return (await self._discover()).sends_issuer

    async def exchange(self, code: str, *, redirect_uri: str, verifier: str, nonce: str) -> SignIn:
        """See `Upstream.exchange`."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        provider = await self._discover()
        answer = await self._request_tokens(provider, form | self._exchange_fields(provider))
        user = await self._user_in(provider, answer, nonce)
        sign_in = await self._sign_in(answer, user)
        return sign_in._replace(claims_request=self._claims_request(provider, answer, user))

    async def refresh(self, refresh_token: str, subject: str) -> SignIn:
        """See `Upstream.refresh`."""
        provider = await self._discover()
        # Entra, for one, refuses a refresh without the scopes of the sign-in.
        form = {
            "grant_type": "refresh_token",
            "refresh_token": refresh_token,
            "scope": " ".join(provider.scopes),
        }
        answer = await self._request_tokens(provider, form)
        user = None
        try:
            if answer.get("id_token") is not None:
                user = await self._user_in(provider, answer, None)
        except UpstreamUnavailableError as error:
            self._ignored.write("event=oauth_id_token_ignored issuer=%s reason=%s", self._issuer, escaped(str(error)))
        if user is not None and user.subject != subject:
            raise UpstreamRefusedError("the ID token of the refresh is another user's")
        sign_in = await self._sign_in(answer, user)
        return (
            sign_in if user is None else sign_in._replace(claims_request=self._claims_request(provider, answer, user))
        )

    async def revoke(self, refresh_token: str) -> bool:
        """See `Upstream.revoke`."""
        provider = await self._discover()
        if provider.revocation_endpoint is None:
            return False
        form = {"token": refresh_token, "token_type_hint": "refresh_token"}
        try:
            await self._post(provider, provider.revocation_endpoint, form)
        except UpstreamRefusedError as error:
            raise UpstreamUnavailableError(str(error)) from error
        return True

    async def exchange_token(self, access_token: str, scopes: Sequence[str], audience: str | None) -> IssuedToken:
        """See `TokenExchanger.exchange_token`."""
        provider = await self._discover()
        form = {
            "grant_type": _GRANT_EXCHANGE,
            "subject_token": access_token,
            "subject_token_type": _KIND_ACCESS,
            "requested_token_type": _KIND_ACCESS,
            "scope": " ".join(scopes),
            "audience": audience or "",
        }
        sent = {name: value for name, value in form.items() if value}
        return issued_token_in(await self._post(provider, provider.token_endpoint, sent))

    async def check(self) -> None:
        """Request the discovery document, unless it is known; the log says what is wrong with it."""
        await self._http.prepare()
        with suppress(UpstreamUnavailableError):  # which is in the log
            await self._discover()

    async def identity_assertion(self, assertion: str, audience: str, resource: str) -> IdentityAssertion:
        """See `AssertingUpstream.identity_assertion`."""
        provider = await self._discover()
        now = self._clock()
        try:
            claims = await validated(
                assertion, issuer=self._issuer, audience=audience, resource=resource, keys=provider.keys, now=now
            )
            return assertion_of(claims, self._user_of(claims), now)
        except TokenError as error:
            raise _upstream_error(error) from error

    async def _sign_in(self, answer: dict[str, Any], user: User | None) -> SignIn:
        """Return what an answer of the token endpoint says."""
        access_token = issued_token_in(answer) if self.exchanges_tokens else None
        return SignIn(user, refresh_token_in(answer), access_token)

    def _exchange_fields(self, provider: Provider) -> dict[str, str]:
        """Return more fields of the request with a code."""
        del provider
        return {}

    def _user_of(self, claims: dict[str, Any]) -> User:
        """Return the user in the claims of a valid ID token, or of one with its userinfo."""
        return User(
            claims["sub"],
            name=text_claim(claims, "name", "preferred_username"),
            email=verified_email(claims),
            roles=self._roles_in(claims),
            claims=claims,
        )

    def _roles_in(self, claims: dict[str, Any]) -> frozenset[str]:
        roles = roles_in(claims, self._roles_claim)
        if roles is None:
            self._log_roles("is not a list of strings or one string")
        return roles or frozenset()

    def _log_roles(self, problem: str) -> None:
        """Log once in this process that users have no roles."""
        if self._has_logged_roles:
            return
        self._has_logged_roles = True
        _logger.warning(
            "event=oauth_no_roles issuer=%s claim=%s: the claim of a user %s, so the user has no roles. "
            "OIDC(roles_claim=) names the claim, or a path to it such as realm_access.roles. This is logged once.",
            self._issuer,
            escaped(self._roles_claim),
            problem,
        )

    def _claims_request(self, provider: Provider, answer: dict[str, Any], user: User) -> ClaimsRequest | None:
        """Return what can be asked at the userinfo endpoint, with the access token in an answer."""
        url, token = provider.userinfo_endpoint, answer.get("access_token")
        if url is None or not isinstance(token, str) or not token.isascii() or not token.isprintable():
            self._check_roles(user)
            return None
        standard = {"profile": "name", "email": "email"}
        names = [name for scope, name in standard.items() if scope in provider.scopes]
        if self._roles_claim != _ROLES:
            names.append(self._roles_claim)
        return ClaimsRequest(tuple(names), partial(self._with_userinfo, provider, url, token, user))

    async def _with_userinfo(self, provider: Provider, url: str, token: str, user: User) -> User:
        """Return a user with the claims of userinfo; without them if the answer can't be used."""
        headers = {"authorization": f"Bearer {token}", "accept": "application/json, application/jwt"}
        status, body = await self._http.fetch("GET", url, headers, None)
        try:
            if status != 200:  # noqa: PLR2004 - OK
                raise TokenError(f"The status is {status}.")
            userinfo = await provider.id_tokens.userinfo(body, user.claims["sub"])
            user = self._user_of(with_userinfo(user.claims, userinfo))
        except MissingKeyError as error:
            raise failed(UpstreamUnavailableError, ID_TOKEN_KEY, error) from error
        except TokenError as error:
            self._ignored.write(
                "event=oauth_userinfo_ignored issuer=%s reason=%s Claims that only userinfo has are missing.",
                self._issuer,
                escaped(str(error)),
            )
        self._check_roles(user)
        return user

    def _check_roles(self, user: User) -> None:
        """Log a configured claim that a user has neither in the ID token nor in userinfo."""
        if self._roles_claim != _ROLES and claim_at(user.claims, self._roles_claim) is None:
            self._log_roles("is missing")

    async def _user_in(self, provider: Provider, answer: dict[str, Any], nonce: str | None) -> User:
        try:
            claims = await provider.id_tokens.validate(answer.get("id_token"), self._clock(), nonce=nonce)
            return self._user_of(claims)
        except TokenError as error:
            raise _upstream_error(error) from error

    async def _request_tokens(self, provider: Provider, form: dict[str, str]) -> dict[str, Any]:
        """Send a code or a refresh token, with the parameters of the configuration."""
        sent = {name: value for name, value in (form | self._token_parameters).items() if value}
        return await self._post(provider, provider.token_endpoint, sent)

    async def _post(self, provider: Provider, url: str, form: dict[str, str]) -> dict[str, Any]:
        headers, fields = await self._authentication.fields(provider.auth_methods, provider.token_endpoint)
        return await self._http.post(url, form | fields, headers)

    async def _push(self, provider: Provider, url: str, parameters: dict[str, str]) -> str:
        """Send an authorization request to the provider itself, and return the ``request_uri`` that refers to it."""
        headers, fields = await self._authentication.fields(provider.auth_methods, provider.token_endpoint)
        form = {name: value for name, value in parameters.items() if value}
        status, answer = await self._http.request("POST", url, headers, form | fields)
        value = answer if isinstance(answer, dict) else {}
        uri = value.get("request_uri")
        if status not in {200, 201} or not isinstance(uri, str) or not 0 < len(uri) <= _MAX_REQUEST_URI:
            reason = f"{value.get('error')!r:.80}, {value.get('error_description')!r:.500}"
            raise failed(
                UpstreamMisconfiguredError,
                PROVIDER_REFUSES_SERVER,
                f"the pushed authorization request: status {status}, error {reason}",
            )
        return uri

    async def _assertion(self, audience: str) -> str:
        """Return a signed assertion for an audience, which authenticates one request."""
        del audience
        return "" if self._credential is None else await made_assertion(self._credential)

    async def _discover(self) -> Provider:
        """Return what the provider says about itself, from the cache if possible."""
        now = monotonic()
        if self._provider is not None and now < self._next_discovery:
            return self._provider
        discovering = self._discovering
        if discovering is None or discovering.done() or discovering.get_loop() is not asyncio.get_running_loop():
            if now < self._next_discovery:
                raise self._last_failure()
            self._next_discovery = now + _PAUSE
            discovering = self._discovering = asyncio.create_task(self._request_document())
        # The shield keeps the shared request running if this caller is cancelled.
        await asyncio.shield(discovering)
        if self._provider is None:
            raise self._last_failure()
        return self._provider

    def _last_failure(self) -> UpstreamUnavailableError:
        """Return why the last request for the discovery document has failed."""
        failure = self._failure
        if failure is None:  # the request runs in another event loop
            return failed(UpstreamUnavailableError, PROVIDER_AWAY, "the discovery document is being requested")
        return type(failure)(str(failure), failure.advice)

    async def _request_document(self) -> None:
        """Replace what is known of the provider; after a failure it remains."""
        try:
            self._provider = self._read(await self._http.get_document(self._discovery))
            self._next_discovery = monotonic() + _LIFETIME
            self._failure = None
        except UpstreamUnavailableError as error:
            self._failure = error
            level = logging.ERROR if isinstance(error, UpstreamMisconfiguredError) else logging.WARNING
            _logger.log(level, "event=oauth_discovery_failed issuer=%s reason=%s", self._issuer, escaped(str(error)))

    def _read(self, document: dict[str, Any]) -> Provider:
        """Return what a discovery document says; raise UpstreamUnavailableError if it is not usable."""
        if document.get("issuer") != self._issuer:
            issuer = document.get("issuer")
            reason = f"the discovery document has the issuer {issuer!r:.200}; configure that one"
            raise failed(UpstreamMisconfiguredError, PROVIDER_DOCUMENT, reason)
        document = document | self._endpoints
        methods = texts_claim(document, "token_endpoint_auth_methods_supported")
        algorithms = texts_claim(document, "id_token_signing_alg_values_supported")
        if algorithms and algorithms.isdisjoint(ACCEPTED):
            detail = escaped(" ".join(sorted(algorithms)))
            _logger.error("event=oauth_id_token_algorithm %s (it offers %s)", ID_TOKEN_ALGORITHM.operator, detail)
        supported = texts_claim(document, "scopes_supported")
        scopes = [*self._scopes, _OFFLINE] if _OFFLINE in supported else [*self._scopes]
        pushes = self._pushed_requests or document.get("require_pushed_authorization_requests") is True
        revokes = document.get("revocation_endpoint") is not None
        keys = self._keys_in(document)
        return Provider(
            authorization_endpoint=self._endpoint(document, "authorization_endpoint"),
            token_endpoint=self._endpoint(document, "token_endpoint"),
            revocation_endpoint=self._endpoint(document, "revocation_endpoint") if revokes else None,
            pushed_endpoint=self._endpoint(document, _PUSHED) if pushes else None,
            userinfo_endpoint=self._userinfo_endpoint(document),
            scopes=distinct(scopes),
            auth_methods=tuple(methods) or ("client_secret_basic",),
            sends_issuer=document.get("authorization_response_iss_parameter_supported") is True,
            keys=keys,
            id_tokens=IDTokens(self._issuer, self._client_id, keys, requires_nonce=self._requires_nonce),
        )

    def _userinfo_endpoint(self, document: dict[str, Any]) -> str | None:
        """Return the userinfo endpoint of a discovery document; None if there is none, or if it is not secure."""
        if document.get("userinfo_endpoint") is None:
            return None
        try:
            return self._endpoint(document, "userinfo_endpoint")
        except UpstreamUnavailableError as error:
            _logger.warning("event=oauth_userinfo_ignored issuer=%s reason=%s", self._issuer, escaped(str(error)))
            return None

    def _keys_in(self, document: dict[str, Any]) -> JWKS:
        """Return the keys that a discovery document refers to, with their cache if the URL has not changed."""
        url = self._endpoint(document, "jwks_uri")
        if self._keys is None or self._keys[0] != url:
            self._keys = url, JWKS(url, ca_file=self._ca_file, insecure_hosts=self._insecure_hosts)
        return self._keys[1]

    def _endpoint(self, document: dict[str, Any], name: str) -> str:
        """Return the URL in a discovery document; raise UpstreamMisconfiguredError if it is missing or not secure."""
        value = document.get(name)
        if not isinstance(value, str):
            raise failed(UpstreamMisconfiguredError, PROVIDER_DOCUMENT, f"the discovery document has no {name}")
        try:
            checked(name, value, self._insecure_hosts)
        except ValueError:
            advice = "name an internal address in endpoints=, or, for development, the host in insecure_hosts="
            reason = f"the {name} in the discovery document is not an https URL: {value!r:.200}; {advice}"
            raise failed(UpstreamMisconfiguredError, PROVIDER_DOCUMENT, reason) from None
        return value


def _check_issuer(issuer: str) -> None:
    """Raise ValueError if an issuer is the URL of its discovery document."""
    base, separator, rest = issuer.partition("/.well-known/")
    if separator:
        raise ValueError(
            f"The issuer is not the URL of its discovery document. Write OIDC({base!r}, ...), or the issuer that is in "
            f"the document, such as {base + '/'!r}. If its URL has another form, pass it as discovery=; got "
            f"/.well-known/{rest}."
        )


def _checked_scopes(scopes: Sequence[str]) -> tuple[str, ...]:
    if isinstance(scopes, str):
        raise TypeError("OIDC.scopes is a list of strings, not one string.")
    return distinct(["openid", *scopes])


def _checked_endpoints(endpoints: Mapping[str, str] | None, insecure_hosts: Collection[str]) -> dict[str, str]:
    """Return the endpoints of the author; raise ValueError for an unknown name or a URL that is not secure."""
    for name, url in (endpoints or {}).items():
        if name not in _ENDPOINTS:
            raise ValueError(f"Unknown endpoint {name!r} in OIDC.endpoints. Valid names: {', '.join(_ENDPOINTS)}.")
        checked(f"OIDC.endpoints[{name!r}]", url, insecure_hosts)
    return dict(endpoints or {})


def _upstream_error(error: TokenError) -> UpstreamError:
    """Return what an invalid token of the provider means for the sign-in: an outage if only its key is missing."""
    if isinstance(error, MissingKeyError):
        return failed(UpstreamUnavailableError, ID_TOKEN_KEY, error)
    if isinstance(error, IDTokenError):
        return failed(UpstreamRefusedError, error.failure, error.detail)
    return UpstreamRefusedError(str(error))
