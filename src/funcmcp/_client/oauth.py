"""OAuth as a client of an MCP server needs it: the authorization server that the server names, and requests to it.

How it works: the challenge of a response with status 401 names the metadata of the server (RFC 9728), which names the
authorization server. The metadata of that one (RFC 8414, or OpenID Connect Discovery) has the endpoints. A server of
2025-03-26 has no metadata of its own: its origin is the authorization server, whose endpoints may have default paths.

The server, which may be hostile, chooses all these addresses. So each is https, or http on a loopback address if the
server itself is on one; no redirect is followed; an answer is not compressed, and has 256 KiB and takes ten seconds at
most; and the metadata must name the endpoint and the issuer that they are requested for.

Source: "basic/authorization" of 2025-03-26 to 2026-07-28; RFC 6749 sections 2.3.1, 4.1.3, 5 and 6; RFC 7591; RFC 7636;
RFC 8414 section 3; RFC 8707; RFC 9207; RFC 9728 section 3.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from time import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from funcmcp._auth.basic import basic_of
from funcmcp._auth.urls import checked
from funcmcp._client.credentials import ClientFields, Issuer
from funcmcp._client.errors import SignInError, one_line
from funcmcp._client.token_requests import ProofKey, RefusedError, TokenRequests
from funcmcp._protocol.codec import encode
from funcmcp._protocol.loopback import is_loopback
from funcmcp._protocol.objects import number_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"
_AUTH_METHODS = ("none", "client_secret_basic", "client_secret_post")
"""How a client can authenticate at the token endpoint, the preferred way first."""

_PARAMETER = re.compile(r'([\w-]+)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s",]+))')
_SCHEME = re.compile(r"(?:^|[\s,])(?:bearer|dpop)(?=[\s,]|$)", re.IGNORECASE)
_ESCAPED = re.compile(r"\\(.)")


@dataclass(frozen=True, slots=True)
class AuthorizationServer:
    """The authorization server of an endpoint.

    Attributes:
        issuer: Its identifier.
        authorization_endpoint: Where the user signs in; None if no user can.
        token_endpoint: Where codes and refresh tokens are exchanged.
        registration_endpoint: Where clients register; None if they can't.
        scopes: The scopes that it names.
        auth_methods: How clients can authenticate at the token endpoint.
        offers_pkce: Whether codes can be bound to the client with S256 (RFC 7636).
        takes_documents: Whether a client id may be the URL of a document (CIMD).
        sends_issuer: Whether each of its answers with the browser has an ``iss`` (RFC 9207).
        resource: The ``resource`` of requests; None for servers of 2025-03-26.
        resource_scopes: The scopes that the endpoint names.
    """

    issuer: str
    authorization_endpoint: str | None
    token_endpoint: str
    registration_endpoint: str | None
    scopes: tuple[str, ...]
    auth_methods: tuple[str, ...]
    offers_pkce: bool
    takes_documents: bool
    sends_issuer: bool
    resource: str | None
    resource_scopes: tuple[str, ...]

    @property
    def authenticates(self) -> Issuer:
        """What a client authenticates to."""
        return Issuer(self.issuer, self.token_endpoint, self.auth_methods)


@dataclass(frozen=True, slots=True)
class RegisteredClient:
    """What a client is at an authorization server.

    Attributes:
        client_id: Its id.
        secret: Its secret; None for a public client.
        auth_method: How it authenticates at the token endpoint.
        redirect_uri: Where the user returns to.
    """

    client_id: str
    secret: str | None = field(repr=False)
    auth_method: str
    redirect_uri: str


@dataclass(frozen=True, slots=True)
class Grant:
    """What a sign-in has led to.

    Attributes:
        issuer: The authorization server.
        token_endpoint: Its token endpoint.
        resource: The ``resource`` of requests; None for servers of 2025-03-26.
        client: The client that has the grant.
        access_token: The token for the endpoint.
        expires: When it expires, in seconds since 1970; None if that is unknown.
        refresh_token: What renews it; None if nothing does.
        scopes: Its scopes.
        lifetime: The seconds from its issue until it expires; None if that is unknown.
        token_type: How requests present the token: ``"Bearer"`` or ``"DPoP"``.
    """

    issuer: str
    token_endpoint: str
    resource: str | None
    client: RegisteredClient
    access_token: str = field(default="", repr=False)
    expires: float | None = None
    refresh_token: str | None = field(default=None, repr=False)
    scopes: tuple[str, ...] = ()
    lifetime: float | None = None
    token_type: str = "Bearer"  # noqa: S105 - a scheme


def parameters_of(challenge: str | None) -> dict[str, str]:
    """Return the parameters of the Bearer or DPoP challenge in a WWW-Authenticate field. Empty if there is none."""
    scheme = _SCHEME.search(challenge or "")
    if scheme is None or challenge is None:
        return {}
    parameters: dict[str, str] = {}
    for match in _PARAMETER.finditer(challenge, scheme.end()):
        quoted = match[2]
        parameters.setdefault(match[1].lower(), match[3] if quoted is None else _ESCAPED.sub(r"\1", quoted))
    return parameters


def words_of(text: object) -> tuple[str, ...]:
    """Return the words of a list such as ``scope``. Empty if the value is not a text."""
    return tuple(text.split()) if isinstance(text, str) else ()


class OAuth:
    """Requests of the client of one endpoint to its authorization server.

    Args:
        url: The endpoint.
        proof_key: Binds tokens to this process. None: tokens are bearer tokens.

    Raises:
        ValueError: The URL is neither https nor on a loopback address.
    """

    def __init__(self, url: str, proof_key: ProofKey | None = None) -> None:
        parts = checked("The URL of an endpoint with sign_in", url)
        self.url: str = url
        self._requests = TokenRequests(proof_key)
        self._token_type = "Bearer" if proof_key is None else "DPoP"
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self._path = parts.path.rstrip("/")
        self._is_local = is_loopback(parts.hostname or "")

    async def discover(self, metadata_url: str | None) -> AuthorizationServer:
        """Return the authorization server of the endpoint.

        Args:
            metadata_url: The URL of the endpoint's metadata, from a challenge; None without one.

        Raises:
            SignInError: The metadata are not usable, or are of another endpoint or issuer.
        """
        candidates = [] if metadata_url is None else [metadata_url]
        candidates += [f"{self._origin}/.well-known/oauth-protected-resource{path}" for path in {self._path: 0, "": 0}]
        document = await self._first(candidates)
        if document is None:
            return await self._server_of(None, self._origin, ())
        resource = document.get("resource")
        if not isinstance(resource, str) or not self._is_for(resource):
            raise SignInError(
                f"The metadata of {self.url} are for another resource, {one_line(resource)}. Use its URL."
            )
        issuers = document.get("authorization_servers")
        issuer = issuers[0] if isinstance(issuers, list) and issuers else self._origin
        return await self._server_of(resource, str(issuer), _texts(document.get("scopes_supported")))

    async def register(self, server: AuthorizationServer, name: str, redirect_uri: str) -> RegisteredClient:
        """Register the client (RFC 7591)."""
        if server.registration_endpoint is None:
            raise SignInError(
                f"{server.issuer} does not register clients. Register one there, and pass SignIn(client_id=...)."
            )
        auth_method = next((method for method in _AUTH_METHODS if method in server.auth_methods), _AUTH_METHODS[0])
        metadata = {
            "client_name": name,
            "redirect_uris": [redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": auth_method,
            "application_type": "native",
        }
        headers = {"content-type": "application/json"}
        answer = await self._requests.send("POST", server.registration_endpoint, encode(metadata), headers)
        client_id, secret = answer.get("client_id"), answer.get("client_secret")
        if not isinstance(client_id, str) or not isinstance(secret, str | None):
            raise SignInError(f"{server.issuer} has registered the client without an id.")
        registered = answer.get("token_endpoint_auth_method", auth_method)
        if secret is not None and registered == "none":
            secret = None
        return RegisteredClient(client_id, secret, str(registered), redirect_uri)

    async def exchange(
        self, server: AuthorizationServer, client: RegisteredClient, code: str, verifier: str, scopes: Iterable[str]
    ) -> Grant:
        """Exchange a code for tokens."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": client.redirect_uri,
            "code_verifier": verifier,
        }
        new = self._new_grant(server, client, tuple(scopes))
        return _granted(new, await self._token(new, form, _registered_fields(client)))

    async def refresh(self, grant: Grant) -> Grant:
        """Renew a grant; raise RefusedError if the authorization server does not."""
        form = {"grant_type": "refresh_token", "refresh_token": grant.refresh_token or ""}
        return _granted(grant, await self._token(grant, form, _registered_fields(grant.client)))

    async def program_grant(
        self, server: AuthorizationServer, form: Mapping[str, str], fields: ClientFields, scopes: tuple[str, ...]
    ) -> Grant:
        """Request a token for a program.

        Args:
            server: The authorization server.
            form: The grant.
            fields: What proves that the request comes from the client.
            scopes: The scopes to request.
        """
        new = self._new_grant(server, RegisteredClient("", None, "", ""), scopes)
        requested = {"scope": " ".join(scopes)} if scopes else {}
        granted = _granted(new, await self._token(new, {**form, **requested}, fields))
        return replace(granted, refresh_token=None)  # the next token is requested as this one (RFC 6749 section 4.4.3)

    async def exchange_identity(self, url: str, form: Mapping[str, str], fields: ClientFields) -> str:
        """Exchange a user's ID token at a company's identity provider; return the identity assertion (ID-JAG)."""
        answer = await TokenRequests().post_form(url, {**form, **fields.form}, fields.headers)
        assertion = answer.get("access_token")
        if answer.get("issued_token_type") != ID_JAG or not isinstance(assertion, str):
            raise SignInError(f"{one_line(url)} has issued no identity assertion.")
        return assertion

    async def _server_of(self, resource: str | None, issuer: str, scopes: tuple[str, ...]) -> AuthorizationServer:
        document = await self._first(_metadata_urls(issuer))
        if document is None and resource is not None:
            raise SignInError(f"The authorization server {one_line(issuer)} has no metadata.")
        if document is None:
            endpoints = {f"{name}_endpoint": f"{issuer}/{path}" for name, path in _DEFAULT_PATHS.items()}
            document = {"issuer": issuer, "code_challenge_methods_supported": ["S256"], **endpoints}
        named = document.get("issuer")
        is_same = named == issuer or (resource is None and str(named).rstrip("/") == issuer)
        if not is_same:
            raise SignInError(f"The metadata of {one_line(issuer)} are of another issuer, {one_line(named)}.")
        registration, authorization = document.get("registration_endpoint"), document.get("authorization_endpoint")
        return AuthorizationServer(
            issuer=str(named),
            authorization_endpoint=None if authorization is None else self._checked(authorization),
            token_endpoint=self._checked(document.get("token_endpoint")),
            registration_endpoint=None if registration is None else self._checked(registration),
            scopes=_texts(document.get("scopes_supported")),
            auth_methods=_texts(document.get("token_endpoint_auth_methods_supported")),
            offers_pkce="S256" in _texts(document.get("code_challenge_methods_supported")),
            takes_documents=document.get("client_id_metadata_document_supported") is True,
            sends_issuer=document.get("authorization_response_iss_parameter_supported") is True,
            resource=resource,
            resource_scopes=scopes,
        )

    def _new_grant(self, server: AuthorizationServer, client: RegisteredClient, scopes: tuple[str, ...]) -> Grant:
        return Grant(
            server.issuer, server.token_endpoint, server.resource, client, scopes=scopes, token_type=self._token_type
        )

    async def _token(self, grant: Grant, form: Mapping[str, str], fields: ClientFields) -> dict[str, Any]:
        resource = {} if grant.resource is None else {"resource": grant.resource}
        return await self._requests.post_form(grant.token_endpoint, {**form, **fields.form, **resource}, fields.headers)

    def _is_for(self, resource: str) -> bool:
        """Return whether a resource is the endpoint, or contains it."""
        parts = urlsplit(resource)
        if f"{parts.scheme}://{parts.netloc}".lower() != self._origin.lower() or parts.query or parts.fragment:
            return False
        return f"{self._path}/".startswith(f"{parts.path.rstrip('/')}/")

    def _checked(self, url: object) -> str:
        """Return the URL of metadata or of an endpoint; raise SignInError if nothing may be sent to it."""
        try:
            parts = checked("An address of the authorization server", str(url))
        except ValueError as error:
            raise SignInError(one_line(error)) from None
        if parts.scheme == "http" and not self._is_local:
            raise SignInError(f"{self.url} names an authorization server on this machine, {one_line(url)}.")
        return str(url)

    async def _first(self, urls: Iterable[str]) -> dict[str, Any] | None:
        """Return the first JSON object at these URLs; None if there is none."""
        for url in urls:
            try:
                return await self._requests.send("GET", self._checked(url), b"", {})
            except RefusedError:
                continue
        return None


_DEFAULT_PATHS = {"authorization": "authorize", "token": "token", "registration": "register"}
"""Paths of the endpoints of an authorization server without metadata (2025-03-26)."""


def authorization_endpoint_of(server: AuthorizationServer) -> str:
    """Return where a user signs in; raise SignInError if a user can't sign in, or not safely."""
    if server.authorization_endpoint is None:
        raise SignInError(f"{server.issuer} has no authorization endpoint, at which a user could sign in.")
    if not server.offers_pkce:
        raise SignInError(f"{server.issuer} does not offer PKCE with S256, without which a code can be stolen.")
    return server.authorization_endpoint


def authorization_url(
    server: AuthorizationServer, client: RegisteredClient, *, scopes: Iterable[str], state: str, challenge: str
) -> str:
    """Return the URL at which the user signs in."""
    endpoint = authorization_endpoint_of(server)
    parameters = {
        "response_type": "code",
        "client_id": client.client_id,
        "redirect_uri": client.redirect_uri,
        "state": state,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        "scope": " ".join(scopes),
        "resource": server.resource or "",
    }
    query = urlencode({name: value for name, value in parameters.items() if value}, quote_via=quote)
    return f"{endpoint}{'&' if '?' in endpoint else '?'}{query}"


def _metadata_urls(issuer: str) -> list[str]:
    """Return where the metadata of an authorization server may be, in the order in which clients try."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    urls = [f"{origin}/.well-known/{name}{path}" for name in ("oauth-authorization-server", "openid-configuration")]
    return [*urls, f"{origin}{path}/.well-known/openid-configuration"] if path else urls


def _granted(grant: Grant, answer: Mapping[str, Any]) -> Grant:
    """Return a grant with the tokens in an answer of its token endpoint; raise SignInError if there are none."""
    token, lifetime = answer.get("access_token"), number_of(answer.get("expires_in"))
    if not isinstance(token, str) or not token.isascii() or not token.isprintable():
        raise SignInError(f"{grant.issuer} has issued no token.")
    if str(answer.get("token_type")).lower() != grant.token_type.lower():
        kind = "bearer token" if grant.token_type == "Bearer" else "token that is bound to the client's key"  # noqa: S105
        raise SignInError(f"{grant.issuer} has issued a token that is not a {kind}.")
    renewed = answer.get("refresh_token", grant.refresh_token)
    return replace(
        grant,
        access_token=token,
        expires=None if lifetime is None else time() + lifetime,
        refresh_token=renewed if isinstance(renewed, str) else None,
        scopes=words_of(answer.get("scope")) or grant.scopes,
        lifetime=lifetime,
    )


def _registered_fields(client: RegisteredClient) -> ClientFields:
    """Return what proves that a request comes from a client that has registered."""
    if client.secret is None:
        return ClientFields({}, {"client_id": client.client_id})
    if client.auth_method == "client_secret_post":
        return ClientFields({}, {"client_id": client.client_id, "client_secret": client.secret})
    return ClientFields({"authorization": basic_of(client.client_id, client.secret)}, {})


def _texts(value: object) -> tuple[str, ...]:
    """Return the texts of a list in metadata."""
    return tuple(text for text in value if isinstance(text, str)) if isinstance(value, list) else ()
