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

import asyncio
import re
from dataclasses import dataclass, replace
from time import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from funcmcp._auth.basic import basic_of
from funcmcp._auth.urls import checked
from funcmcp._client.errors import SignInError, one_line
from funcmcp._protocol.codec import decode, encode
from funcmcp._protocol.loopback import is_loopback

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from ssl import SSLContext

_SECONDS = 10.0
_MAX_ANSWER = 256 * 1024
_OK, _CREATED, _BAD_REQUEST, _SERVER_ERROR = 200, 201, 400, 500
_AUTH_METHODS = ("none", "client_secret_basic", "client_secret_post")
"""How a client can authenticate at the token endpoint, the preferred way first."""

_PARAMETER = re.compile(r'([\w-]+)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s",]+))')
_BEARER = re.compile(r"(?:^|[\s,])bearer(?=[\s,]|$)", re.IGNORECASE)
_ESCAPED = re.compile(r"\\(.)")


class RefusedError(SignInError):
    """The authorization server refuses a request: its status is 400 to 499."""


@dataclass(frozen=True, slots=True)
class AuthorizationServer:
    """The authorization server of an endpoint.

    Attributes:
        issuer: Its identifier.
        authorization_endpoint: Where the user signs in.
        token_endpoint: Where codes and refresh tokens are exchanged.
        registration_endpoint: Where clients register; None if they can't.
        scopes: The scopes that it names.
        auth_methods: How clients can authenticate at the token endpoint.
        takes_documents: Whether a client id may be the URL of a document (CIMD).
        sends_issuer: Whether each of its answers with the browser has an ``iss`` (RFC 9207).
        resource: The ``resource`` of requests; None for servers of 2025-03-26.
        resource_scopes: The scopes that the endpoint names.
    """

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str | None
    scopes: tuple[str, ...]
    auth_methods: tuple[str, ...]
    takes_documents: bool
    sends_issuer: bool
    resource: str | None
    resource_scopes: tuple[str, ...]


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
    secret: str | None
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
    """

    issuer: str
    token_endpoint: str
    resource: str | None
    client: RegisteredClient
    access_token: str = ""
    expires: float | None = None
    refresh_token: str | None = None
    scopes: tuple[str, ...] = ()


def parameters_of(challenge: str | None) -> dict[str, str]:
    """Return the parameters of the Bearer challenge in a WWW-Authenticate field. Empty if there is none."""
    bearer = _BEARER.search(challenge or "")
    if bearer is None or challenge is None:
        return {}
    parameters: dict[str, str] = {}
    for match in _PARAMETER.finditer(challenge, bearer.end()):
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

    Raises:
        ValueError: The URL is neither https nor on a loopback address.
    """

    def __init__(self, url: str) -> None:
        parts = checked("The URL of an endpoint with SignIn", url)
        self.url: str = url
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self._path = parts.path.rstrip("/")
        self._is_local = is_loopback(parts.hostname or "")
        self._tls: SSLContext | None = None

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
        answer = await self._send("POST", server.registration_endpoint, encode(metadata), headers)
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
        new = Grant(server.issuer, server.token_endpoint, server.resource, client, scopes=tuple(scopes))
        return _granted(new, await self._token(new, form))

    async def refresh(self, grant: Grant) -> Grant:
        """Renew a grant; raise RefusedError if the authorization server does not."""
        form = {"grant_type": "refresh_token", "refresh_token": grant.refresh_token or ""}
        return _granted(grant, await self._token(grant, form))

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
        if "S256" not in _texts(document.get("code_challenge_methods_supported")):
            raise SignInError(f"{issuer} does not offer PKCE with S256, without which a code can be stolen.")
        registration = document.get("registration_endpoint")
        return AuthorizationServer(
            issuer=str(named),
            authorization_endpoint=self._checked(document.get("authorization_endpoint")),
            token_endpoint=self._checked(document.get("token_endpoint")),
            registration_endpoint=None if registration is None else self._checked(registration),
            scopes=_texts(document.get("scopes_supported")),
            auth_methods=_texts(document.get("token_endpoint_auth_methods_supported")),
            takes_documents=document.get("client_id_metadata_document_supported") is True,
            sends_issuer=document.get("authorization_response_iss_parameter_supported") is True,
            resource=resource,
            resource_scopes=scopes,
        )

    async def _token(self, grant: Grant, form: dict[str, str]) -> dict[str, Any]:
        client = grant.client
        headers = {"content-type": "application/x-www-form-urlencoded"}
        if client.secret is not None and client.auth_method != "client_secret_post":
            headers["authorization"] = basic_of(client.client_id, client.secret)
        else:
            form = {**form, "client_id": client.client_id}
            if client.secret is not None:
                form["client_secret"] = client.secret
        if grant.resource is not None:
            form = {**form, "resource": grant.resource}
        return await self._send("POST", grant.token_endpoint, urlencode(form).encode(), headers)

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
                return await self._send("GET", self._checked(url), b"", {})
            except RefusedError:
                continue
        return None

    async def _send(self, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> dict[str, Any]:
        """Send a request, and return the JSON object of its answer.

        Raises:
            RefusedError: The status is 300 to 499.
            SignInError: There is no usable answer.
        """
        import httpx2  # noqa: PLC0415 - vendor code, for URLs alone

        if self._tls is None:  # loading the certificate authorities takes longer than a request
            self._tls = httpx2.create_ssl_context()
        fields = {"accept": "application/json", "accept-encoding": "identity", **headers}
        answer = bytearray()
        try:
            async with (
                asyncio.timeout(_SECONDS),
                httpx2.AsyncClient(verify=self._tls, headers=fields, timeout=None) as client,
                client.stream(method, url, content=body, follow_redirects=False) as response,
            ):
                async for part in response.aiter_raw():
                    answer += part
                    if len(answer) > _MAX_ANSWER:
                        raise SignInError(f"The answer of {one_line(url)} is too large.")
        except (httpx2.HTTPError, TimeoutError, OSError) as error:
            raise SignInError(
                f"{one_line(url)} can't be reached: {one_line(error) or type(error).__name__}."
            ) from error
        try:
            value = decode(bytes(answer))
        except ValueError:
            value = None
        status = response.status_code
        if status in {_OK, _CREATED} and isinstance(value, dict):
            return value
        reason = f"{one_line(url)} answers with status {status}{_reason(value)}."
        if status < _SERVER_ERROR:
            raise RefusedError(reason)
        raise SignInError(reason)


_DEFAULT_PATHS = {"authorization": "authorize", "token": "token", "registration": "register"}
"""Paths of the endpoints of an authorization server without metadata (2025-03-26)."""


def authorization_url(
    server: AuthorizationServer, client: RegisteredClient, *, scopes: Iterable[str], state: str, challenge: str
) -> str:
    """Return the URL at which the user signs in."""
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
    endpoint = server.authorization_endpoint
    return f"{endpoint}{'&' if '?' in endpoint else '?'}{query}"


def _metadata_urls(issuer: str) -> list[str]:
    """Return where the metadata of an authorization server may be, in the order in which clients try."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    urls = [f"{origin}/.well-known/{name}{path}" for name in ("oauth-authorization-server", "openid-configuration")]
    return [*urls, f"{origin}{path}/.well-known/openid-configuration"] if path else urls


def _granted(grant: Grant, answer: Mapping[str, Any]) -> Grant:
    """Return a grant with the tokens in an answer of its token endpoint; raise SignInError if there are none."""
    token, seconds = answer.get("access_token"), answer.get("expires_in")
    if not isinstance(token, str) or not token.isascii() or not token.isprintable():
        raise SignInError(f"{grant.issuer} has issued no token.")
    if str(answer.get("token_type")).lower() != "bearer":
        raise SignInError(f"{grant.issuer} has issued a token that is not a bearer token.")
    renewed = answer.get("refresh_token", grant.refresh_token)
    return replace(
        grant,
        access_token=token,
        expires=time() + seconds if isinstance(seconds, int | float) else None,
        refresh_token=renewed if isinstance(renewed, str) else None,
        scopes=words_of(answer.get("scope")) or grant.scopes,
    )


def _texts(value: object) -> tuple[str, ...]:
    """Return the texts of a list in metadata."""
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _reason(value: object) -> str:
    """Return the error in the answer of an authorization server, as the end of a sentence."""
    if not isinstance(value, dict) or "error" not in value:
        return ""
    return f": {one_line(value['error'], 80)} {one_line(value.get('error_description', ''))}".rstrip(" .")
