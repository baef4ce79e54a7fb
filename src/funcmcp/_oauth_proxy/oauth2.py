"""OAuth 2.0 providers without OpenID Connect as upstreams of the proxy: Discord, Slack, Notion, Linear and others.

How it works: the code is exchanged for an access token of the provider, with which the proxy asks an API of the
provider who the user is. There is no ID token and no nonce: state, the cookie of the browser and PKCE bind the code to
the sign-in.

A refresh asks for the user again. If the provider issues a refresh token, it renews the sign-in. Otherwise the access
token does, as long as the provider accepts it. Either leaves the proxy only encrypted, in a refresh token or in the
store.

Source: RFC 6749 sections 4.1, 5 and 6, RFC 7636, RFC 7009.
"""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any, Final

from funcmcp._auth.client_options import checked_parameters
from funcmcp._auth.urls import checked, checked_insecure_hosts
from funcmcp._oauth_proxy.client_requests import (
    RESERVED_AT_TOKEN,
    ClientAuthentication,
    issued_token_in,
    refresh_token_in,
    url_with,
)
from funcmcp._oauth_proxy.failures import PROVIDER_REFUSED, PROVIDER_USER
from funcmcp._oauth_proxy.id_tokens import text_claim, verified_email
from funcmcp._oauth_proxy.upstream import (
    IssuedToken,
    SignIn,
    UpstreamError,
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
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

    from funcmcp._auth.client_options import AuthMethod
    from funcmcp._oauth_proxy.upstream import AuthorizationRequest

    Claims = Mapping[str, Any]
    AskForUser = Callable[[Claims, UpstreamHTTP], Claims | Awaitable[Claims]]
    ReadUser = Callable[[Claims], User]

_ACCESS: Final = "user:"
_REFRESH: Final = "refresh:"
"""How a renewal begins: an access token with which the proxy asks for the user again, or a refresh token."""

_MAX_TEXT: Final = 255
_SECONDS: Final = 30.0
"""Seconds for which the functions of the author may take. Each request has a limit of its own."""


@public("funcmcp.auth")
class OAuth2:
    """An OAuth 2.0 provider without OpenID Connect for `OAuthProxy`.

    `OIDC` is for providers with a discovery document, and is safer: an ID token is bound to the sign-in.

    Register the server there as a web application with the redirect URI
    ``https://<host of the server>/oauth/callback``.

    Args:
        client_id: The id of the registration.
        client_secret: The secret of the registration; None for a public client.
        authorize: The URL at which users sign in.
        token: The URL at which the proxy exchanges codes and refresh tokens.
        userinfo: Who has signed in: the URL of an API that returns a JSON object, or a function. The function gets the
            answer of the token endpoint, with ``access_token``, and an `UpstreamHTTP` for requests, and returns a
            mapping. It may be async. If a sign-in is renewed without a refresh token, the answer has only
            ``access_token``.
        user: The member of this object that identifies the user for ever, such as ``"id"``; or a function that returns
            a `User` for the object. With a name, `User.email` is set only if ``email_verified`` is true.
        scopes: Scopes to request at the provider.
        scope_separator: What is between two scopes.
        parameters: More parameters of the authorization request. A value of ``""`` leaves out a parameter that the
            proxy would send.
        token_parameters: More parameters of the requests with a code or a refresh token.
        token_member: The member of an answer of *token* that has ``access_token`` and ``refresh_token``, such as
            ``"authed_user"`` for user tokens of Slack. None, or if an answer lacks it: the answer itself has them.
        token_endpoint_auth_method: How the proxy sends its secret: ``"client_secret_basic"``, ``"client_secret_post"``,
            or ``"client_secret_jwt"``. None: by HTTP Basic.
        pkce: Whether the provider supports PKCE. False: only state and a cookie bind a code to the sign-in.
        revoke: The URL at which a token is revoked (RFC 7009); None: a sign-in can't be revoked at the provider.
        token_for_tools: Whether tools get the access token of the user by `Context.upstream_token`, for the API of the
            provider itself. The access token of the proxy then carries it, encrypted.
        headers: More header fields of all requests, such as ``{"Notion-Version": "2022-06-28"}``. A function for
            *userinfo* sends its own.
        name: The name of the provider, for people; by default the host of *authorize*.
        issuer: The exact ``iss`` of answers with the browser (RFC 9207). None: an answer with ``iss`` is refused.
        ca_file: A PEM file with certificate authorities that are trusted as well, for a provider with a private one.
        insecure_hosts: Hosts, with their port, whose URLs may begin with ``http://``. For development only: whoever can
            change the answers can sign in as any user. The log warns at the start.

    Attributes:
        issuer: The issuer.
        name: The name of the provider, for people.
        exchanges_tokens: Whether tools get the access token of the user.

    Raises:
        TypeError: *scopes* or *insecure_hosts* is one string.
        ValueError: A URL does not begin with ``https://`` (http only on a loopback address), the id is missing, there
            is neither a secret nor PKCE, a parameter belongs to the proxy, the method has no secret, or the file has no
            certificates.

    Example:
        ```python
        upstream = OAuth2(
            client_id,
            client_secret,
            authorize="https://login.example.com/authorize",
            token="https://login.example.com/token",
            userinfo="https://api.example.com/me",
            user="id",
            scopes=["profile"],
        )
        ```
    """

    def __init__(  # noqa: PLR0913 - the registration, and what providers differ in
        self,
        client_id: str,
        client_secret: str | None = None,
        *,
        authorize: str,
        token: str,
        userinfo: str | AskForUser,
        user: str | ReadUser = "sub",
        scopes: Sequence[str] = (),
        scope_separator: str = " ",
        parameters: Mapping[str, str] | None = None,
        token_parameters: Mapping[str, str] | None = None,
        token_member: str | None = None,
        token_endpoint_auth_method: AuthMethod | None = None,
        pkce: bool = True,
        revoke: str | None = None,
        token_for_tools: bool = False,
        headers: Mapping[str, str] | None = None,
        name: str | None = None,
        issuer: str | None = None,
        ca_file: str | os.PathLike[str] | None = None,
        insecure_hosts: Collection[str] = (),
    ) -> None:
        hosts = checked_insecure_hosts("OAuth2.insecure_hosts", insecure_hosts)
        _check_urls({"authorize": authorize, "token": token, "revoke": revoke, "userinfo": userinfo}, hosts)
        if isinstance(scopes, str):
            raise TypeError("OAuth2.scopes is a list of strings, not one string.")
        if client_secret is None and not pkce:
            raise ValueError("OAuth2 needs client_secret or PKCE: without both, a code is enough to sign in.")
        self.issuer: str | None = issuer
        self.name: str = name or checked("OAuth2.authorize", authorize, hosts).hostname or authorize
        self.exchanges_tokens: bool = token_for_tools
        self._client_id = client_id
        self._authorize, self._token, self._revoke, self._userinfo = authorize, token, revoke, userinfo
        self._read_user = user
        self._scopes = frozenset(scopes)
        self._scope = scope_separator.join(scopes)
        self._parameters = checked_parameters("OAuth2.parameters", parameters)
        self._token_parameters = checked_parameters("OAuth2.token_parameters", token_parameters, RESERVED_AT_TOKEN)
        self._token_member = token_member
        self._authentication = ClientAuthentication(
            "OAuth2", client_id, client_secret, method=token_endpoint_auth_method
        )
        self._pkce = pkce
        self._headers = dict(headers or {})
        self._http = UpstreamHTTP(ca_file=ca_file)
        self._ignored = LineLimit()

    def __repr__(self) -> str:
        return f"OAuth2({self._client_id!r}, authorize={self._authorize!r})"

    async def authorization_url(self, request: AuthorizationRequest) -> str:
        """See `Upstream.authorization_url`."""
        parameters = {
            "response_type": "code",
            "client_id": self._client_id,
            "redirect_uri": request.redirect_uri,
            "scope": self._scope,
            "state": request.state,
        }
        if self._pkce:
            parameters |= {"code_challenge": request.challenge, "code_challenge_method": "S256"}
        return url_with(self._authorize, parameters | self._parameters)

    async def requires_issuer(self) -> bool:
        """See `Upstream.requires_issuer`."""
        return self.issuer is not None

    async def exchange(self, code: str, *, redirect_uri: str, verifier: str, nonce: str) -> SignIn:
        """See `Upstream.exchange`. There is no nonce: the verifier binds the code to the sign-in."""
        del nonce
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": redirect_uri}
        if self._pkce:
            form["code_verifier"] = verifier
        answer = await self._request_tokens(form)
        user = await self._user(answer)
        refresh_token = refresh_token_in(answer)
        renewal = f"{_ACCESS}{answer['access_token']}" if refresh_token is None else f"{_REFRESH}{refresh_token}"
        return SignIn(user, renewal, self._token_in(answer))

    async def refresh(self, refresh_token: str, subject: str) -> SignIn:
        """See `Upstream.refresh`."""
        new_token = None
        if refresh_token.startswith(_REFRESH):
            form = {"grant_type": "refresh_token", "refresh_token": refresh_token.removeprefix(_REFRESH)}
            answer = await self._request_tokens(form)
            new_token = refresh_token_in(answer)
        else:
            answer = {"access_token": refresh_token.removeprefix(_ACCESS)}
        try:
            user = await self._user(answer)
        except UpstreamUnavailableError as error:
            if new_token is None:
                raise
            # The provider has replaced its refresh token, so an error would end the sign-in. The user stays as before.
            self._ignored.write("event=oauth_userinfo_ignored issuer=%s reason=%s", self.name, escaped(str(error)))
            return SignIn(None, f"{_REFRESH}{new_token}")
        if user.subject != subject:
            raise UpstreamRefusedError("the refresh is another user's")
        return SignIn(user, None if new_token is None else f"{_REFRESH}{new_token}", self._token_in(answer))

    async def exchange_token(self, access_token: str, scopes: Sequence[str], audience: str | None) -> IssuedToken:
        """See `TokenExchanger.exchange_token`. The token is that of the sign-in: there is no other API to ask for."""
        missing = sorted(set(scopes) - self._scopes)
        if missing or audience is not None:
            reason = f"OAuth2.scopes lacks {', '.join(missing)!r:.200}" if missing else "OAuth2 knows no audience"
            raise UpstreamMisconfiguredError(reason)
        return IssuedToken(access_token, None)

    def _token_in(self, answer: Claims) -> IssuedToken | None:
        """Return the access token in an answer, if tools get it. Providers call its type differently."""
        return issued_token_in({**answer, "token_type": "bearer"}) if self.exchanges_tokens else None

    async def revoke(self, refresh_token: str) -> bool:
        """See `Upstream.revoke`."""
        if self._revoke is None:
            return False
        is_refresh_token = refresh_token.startswith(_REFRESH)
        form = {
            "token": refresh_token.partition(":")[2],
            "token_type_hint": "refresh_token" if is_refresh_token else "access_token",
        }
        try:
            await self._post(self._revoke, form)
        except UpstreamRefusedError as error:
            raise UpstreamUnavailableError(str(error)) from error
        return True

    async def _request_tokens(self, form: dict[str, str]) -> dict[str, Any]:
        """Send a code or a refresh token; return an answer with an access token."""
        sent = {name: value for name, value in (form | self._token_parameters).items() if value}
        answer = await self._post(self._token, sent)
        nested = answer.get(self._token_member) if self._token_member is not None else None
        if isinstance(nested, dict):
            # The tokens beside it, if there are any, are of a bot and not of the user.
            answer = {name: value for name, value in answer.items() if name != "refresh_token"} | nested
        token = answer.get("access_token")
        if not isinstance(token, str) or not token:
            detail = f"the answer has no access token; it has {', '.join(answer)[:200]!r}"
            raise failed(UpstreamMisconfiguredError, PROVIDER_USER, detail)
        return answer

    async def _post(self, url: str, form: dict[str, str]) -> dict[str, Any]:
        headers, fields = await self._authentication.fields(["client_secret_basic"], self._token)
        return await self._http.post(url, form | fields, self._headers | headers)

    async def _user(self, answer: Claims) -> User:
        """Return the user of the access token in an answer; raise UpstreamRefusedError or UpstreamUnavailableError."""
        try:
            async with asyncio.timeout(_SECONDS):
                claims = await self._claims(answer)
            user = _user_in(claims, self._read_user) if isinstance(self._read_user, str) else self._read_user(claims)
        except UpstreamError:
            raise
        except Exception as error:
            # The functions of the author meet whatever the provider answers. Their error is one of the provider.
            detail = f"no user in the answer: {type(error).__name__}: {error!s:.200}"
            raise failed(UpstreamMisconfiguredError, PROVIDER_USER, detail) from error
        if not _is_usable(user):
            detail = (
                "no user in the answer: OAuth2.user needs a User whose subject, name, email and tenant are short texts"
            )
            raise failed(UpstreamMisconfiguredError, PROVIDER_USER, detail)
        return user

    async def _claims(self, answer: Claims) -> Claims:
        """Return what the provider says about the user."""
        if isinstance(self._userinfo, str):
            return await self._http.call_api(self._userinfo, answer["access_token"], headers=self._headers)
        claims = self._userinfo(answer, self._http)
        return await claims if inspect.isawaitable(claims) else claims


def _check_urls(urls: Mapping[str, object], insecure_hosts: Collection[str]) -> None:
    """Raise ValueError if the URL of an option is not secure. Options that are no text are not checked."""
    for option, url in urls.items():
        if isinstance(url, str):
            checked(f"OAuth2.{option}", url, insecure_hosts)


def _is_usable(user: object) -> bool:
    """Return whether an object is a user whose texts fit a token."""
    if not isinstance(user, User) or not user.subject:
        return False
    texts: list[object] = [user.subject, user.name or "", user.email or "", user.tenant or ""]
    return all(isinstance(text, str) and len(text) <= _MAX_TEXT for text in texts)


def _user_in(claims: Claims, name: str) -> User:
    """Return the user whose subject is a member of an object."""
    subject = claims.get(name)
    if type(subject) is int:
        subject = str(subject)
    if not isinstance(subject, str) or not subject:
        error = claims.get("error")
        if isinstance(error, str):  # Slack answers with status 200 to a token that it does not accept
            detail = f"the provider does not say who the user is: error {error!r:.80}"
            raise failed(UpstreamRefusedError, PROVIDER_REFUSED, detail)
        detail = f"the user has no {name!r}; there are {', '.join(claims)[:200]!r}"
        raise failed(UpstreamMisconfiguredError, PROVIDER_USER, detail)
    members = dict(claims)
    user_name = text_claim(members, "name", "preferred_username", "username", "login")
    return User(subject, name=user_name, email=verified_email(members), claims=members)
