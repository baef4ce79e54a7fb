"""A front of a function app: an `MCPServer` that stands for the MCP endpoint of Azure's Functions host.

How it works: the features are those of an `Upstream`, so clients of every revision and transport reach an app whose
host has some of them only. Requests have the app's key, credentials that a function returns for the caller, or the
caller's own. The last ones are those of the app: the front keeps nothing of them but digests, and does not judge them.
When the app refuses some, the next request with them gets 401, so that clients sign in again.

Source: Azure Functions MCP extension, `McpWebhook` and "Connect to your remote MCP server" (the system key
`mcp_extension` in the header `x-functions-key`); RFC 9728.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from time import time
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from funcmcp._app.mcp_server import MCPServer
from funcmcp._auth.authenticator import Challenge
from funcmcp._auth.policy import Auth
from funcmcp._auth.principal import Principal, VerifiedToken
from funcmcp._auth.tokens.compact import has_shape, unverified_claims
from funcmcp._auth.urls import checked
from funcmcp._client.targets import HTTPEndpoint
from funcmcp._protocol.objects import number_of
from funcmcp._server.options import ProtocolOptions
from funcmcp._upstreams.auth import UpstreamAuth, auth_of, static
from funcmcp._upstreams.bridged import stand_for
from funcmcp._upstreams.limits import UpstreamTimeouts
from funcmcp._upstreams.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from funcmcp._auth.authenticator import Identity
    from funcmcp._auth.protected_resource import ProtectedResource
    from funcmcp._authoring.calling.services import Services
    from funcmcp._client.errors import AuthenticationError
    from funcmcp._upstreams.auth import AuthFunction, Caller, Headers

KEY_HEADER: Final = "x-functions-key"
MCP_PATH: Final = "/runtime/webhooks/mcp"

_CREDENTIALS: Final = ("authorization", KEY_HEADER)
_RETRY_SECONDS: Final = 60.0
"""Seconds for an app that starts from nothing."""

_TIMEOUTS: Final = UpstreamTimeouts(connect=2 * _RETRY_SECONDS)
_REFUSED_SECONDS: Final = 30.0
_MAX_REFUSED: Final = 1024
_UNAUTHORIZED: Final = 401


def endpoint_of(url: str) -> tuple[str, str | None]:
    """Return the URL of an app's MCP endpoint, and the key in its query or None.

    Args:
        url: The URL of the endpoint, or that of the app.

    Raises:
        ValueError: The URL is neither https nor on a loopback address, so that credentials could be read.
    """
    checked("The URL of the function app", urlunsplit(urlsplit(url)._replace(query="")))
    parts = urlsplit(url)
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    key = next((value for name, value in pairs if name == "code" and value), None)
    query = urlencode([(name, value) for name, value in pairs if name != "code"])
    path = MCP_PATH if parts.path in ("", "/") else parts.path
    return urlunsplit(parts._replace(path=path, query=query)), key


def front_of(
    url: str,
    *,
    key: str | None = None,
    auth: Auth | None = None,
    identity: UpstreamAuth | AuthFunction | None = None,
    resource: ProtectedResource | None = None,
    allow_anonymous: bool = False,
) -> MCPServer:
    """Return a server that stands for a function app; see `funcmcp.azure.front`.

    Args:
        url: The URL of the app or of its MCP endpoint.
        key: The system key.
        auth: Who may call the front.
        identity: Who calls the app.
        resource: Metadata for clients that get tokens for the app.
        allow_anonymous: Whether requests without credentials are passed on.
    """
    address, key_in_url = endpoint_of(url)
    if key is not None and key_in_url is not None:
        raise ValueError("The key is in the URL as well: leave out ?code=.")
    key = key if key is not None else key_in_url
    name = urlsplit(address).hostname or address
    endpoint = HTTPEndpoint(address, retry_seconds=_RETRY_SECONDS)
    if key is None and identity is None:
        if auth is not None:
            raise ValueError("auth= says who may call the front. Say with key= or identity= who calls the app.")
        passed = PassedCredentials(required=not allow_anonymous)
        mcp = MCPServer(name, auth=Auth(passed.caller, resource=resource), protocol=ProtocolOptions(offer_tools=None))
        mcp.mount(Upstream(endpoint, auth=passed, timeouts=_TIMEOUTS))
        return mcp
    if resource is not None:
        raise ValueError("resource= is for callers whose own tokens are passed on. Write Auth(..., resource=...).")
    mcp = MCPServer(name, auth=auth, protocol=ProtocolOptions(offer_tools=None))
    app_auth = _AppAuth(key, None if identity is None else auth_of(identity))
    upstream = Upstream(endpoint, auth=app_auth, timeouts=_TIMEOUTS)
    if app_auth.per_caller:
        mcp.mount(upstream)
    else:
        stand_for(upstream, mcp)
    return mcp


class _AppAuth(UpstreamAuth):
    """The key of an app, and the headers of another identity beside it."""

    def __init__(self, key: str | None, identity: UpstreamAuth | None) -> None:
        self._key = static({} if key is None else {KEY_HEADER: key})
        self._identity = identity
        self.per_caller = identity is not None and identity.per_caller
        self.routes = () if identity is None else identity.routes

    def attach(self, services: Services) -> None:
        if self._identity is not None:
            self._identity.attach(services)

    async def headers(self, caller: Caller) -> Headers:
        headers = await self._key.headers(caller)
        return headers if self._identity is None else {**headers, **await self._identity.headers(caller)}

    async def refused(self, caller: Caller, headers: Headers, error: AuthenticationError) -> bool:
        return self._identity is not None and await self._identity.refused(caller, headers, error)


class PassedCredentials(UpstreamAuth):
    """Credentials of callers that are passed on to the function app, which alone judges them.

    Args:
        required: Whether a request without credentials is refused.
        clock: Returns seconds since 1970.
    """

    owner = "the caller"

    def __init__(self, *, required: bool, clock: Callable[[], float] = time) -> None:
        self._required = required
        self._clock = clock
        self._refused: OrderedDict[str, float] = OrderedDict()

    async def caller(self, headers: Mapping[str, str]) -> Identity:
        """Return the caller with the credentials of a request, as an authenticator does."""
        credentials = {name: headers[name] for name in _CREDENTIALS if headers.get(name)}
        if not credentials:
            return None if self._required else Principal("anonymous", "function app")
        text = json.dumps(credentials)
        subject = _digest(text)
        if self._refused.get(subject, 0.0) > self._clock():
            return Challenge("invalid_token", "The function app refuses these credentials.")
        if self._is_over(credentials.get("authorization", "")):
            return Challenge("invalid_token", "The token has expired.")
        return Principal(subject, "function app", per_token=True, verified_token=VerifiedToken(text))

    async def headers(self, caller: Caller) -> Headers:
        """Return the credentials of the caller."""
        token = None if caller.principal is None else caller.principal.verified_token
        return {} if token is None else json.loads(token.reveal())

    async def refused(self, caller: Caller, headers: Headers, error: AuthenticationError) -> bool:
        """Note credentials that the app refuses, for their next request."""
        del caller
        if headers and error.status == _UNAUTHORIZED:
            self._refused[_digest(json.dumps(headers))] = self._clock() + _REFUSED_SECONDS
            while len(self._refused) > _MAX_REFUSED:
                self._refused.popitem(last=False)
        return False

    def _is_over(self, authorization: str) -> bool:
        """Return whether a header has a JSON Web Token that says that it has expired."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not has_shape(token):
            return False
        expires = number_of(unverified_claims(token).get("exp"))
        return expires is not None and expires <= self._clock()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
