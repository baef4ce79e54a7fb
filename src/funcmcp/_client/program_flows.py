"""How programs get tokens: client credentials, the identity of a workload, and a company's identity provider.

How it works: the server names its authorization server, and the client requests a token there for its own credential.
The first authorization server is the only one that gets the credential, for a server that is taken over could name
another one. A token that is about to expire is replaced by one that is requested in the same way, without asking the
server again.

A refusal ends the request: another grant, or the same one again, would not help.
"""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING, Protocol

from funcmcp._client.credentials import (
    JWT_BEARER,
    TOKEN_EXCHANGE,
    ClientCredentials,
    ClientFields,
    EnterpriseSignIn,
    IdentityProvider,
    Issuer,
    WorkloadIdentity,
    client_fields,
    platform_token,
    result_of,
)
from funcmcp._client.errors import SignInError, one_line
from funcmcp._client.oauth import ID_JAG
from funcmcp._client.token_requests import RefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp._client.credentials import ProgramSignIn
    from funcmcp._client.oauth import AuthorizationServer, Grant, OAuth

_INVALID_GRANT = "invalid_grant"
_ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"  # noqa: S105 - a type


class _Grant(Protocol):
    """What a program sends to the token endpoint."""

    async def form(self, server: AuthorizationServer, scopes: tuple[str, ...]) -> dict[str, str]:
        """Return the grant for these scopes."""

    async def fields(self, server: AuthorizationServer) -> ClientFields:
        """Return what proves that the request comes from the client."""


class ProgramFlow:
    """Gets tokens for a program.

    Args:
        oauth: Requests to the authorization server of the endpoint.
        options: The issuer and the scopes of the program.
        grant: What the program sends.
    """

    def __init__(self, oauth: OAuth, options: ProgramSignIn, grant: _Grant) -> None:
        self._oauth = oauth
        self._scopes = options.scopes
        self._issuer = options.issuer
        self._grant = grant
        self._server: AuthorizationServer | None = None

    async def grant(self, earlier: Grant | None, challenge: Mapping[str, str], requested: tuple[str, ...]) -> Grant:
        """Find the authorization server, and request a token there; see `Flow.grant`."""
        del earlier
        server = await self._oauth.discover(challenge.get("resource_metadata"))
        if self._issuer is None:
            self._issuer = server.issuer
        elif server.issuer != self._issuer:
            raise SignInError(
                f"{one_line(self._oauth.url)} names another authorization server, {one_line(server.issuer)}. The "
                f"credential is for {self._issuer}."
            )
        self._server = server
        scopes = (*self._scopes, *requested) if self._scopes else requested or server.resource_scopes
        return await self._requested(server, tuple(dict.fromkeys(scopes)))

    async def renew(self, grant: Grant) -> Grant | None:
        """Request another token for the same scopes; see `Flow.renew`."""
        if self._server is None:
            return None
        try:
            return await self._requested(self._server, grant.scopes)
        except RefusedError as error:
            raise SignInError(str(error)) from error  # another request would not help

    async def _requested(self, server: AuthorizationServer, scopes: tuple[str, ...]) -> Grant:
        form, fields = await self._grant.form(server, scopes), await self._grant.fields(server)
        return await self._oauth.program_grant(server, form, fields, scopes)


class _ClientCredentialsGrant:
    def __init__(self, options: ClientCredentials) -> None:
        self._options = options

    async def form(self, _server: AuthorizationServer, _scopes: tuple[str, ...]) -> dict[str, str]:
        return {"grant_type": "client_credentials"}

    async def fields(self, server: AuthorizationServer) -> ClientFields:
        options = self._options
        return await client_fields(
            options.client_id, options.client_secret, options.credential, server.authenticates, time()
        )


class _WorkloadGrant:
    def __init__(self, options: WorkloadIdentity) -> None:
        self._options = options

    async def form(self, server: AuthorizationServer, _scopes: tuple[str, ...]) -> dict[str, str]:
        return {"grant_type": JWT_BEARER, "assertion": await platform_token(self._options.token, server.issuer)}

    async def fields(self, server: AuthorizationServer) -> ClientFields:
        return await client_fields(self._options.client_id, None, None, server.authenticates, time())


class _EnterpriseGrant:
    """An identity assertion of a company's provider.

    Source: the extension ``io.modelcontextprotocol/enterprise-managed-authorization``, sections 4 and 5.
    """

    def __init__(self, options: EnterpriseSignIn, oauth: OAuth) -> None:
        self._options = options
        self._oauth = oauth

    async def form(self, server: AuthorizationServer, scopes: tuple[str, ...]) -> dict[str, str]:
        source, resource = self._options.assertion, server.resource or self._oauth.url
        if isinstance(source, IdentityProvider):
            assertion = await self._exchanged(source, server.issuer, resource, scopes)
            return {"grant_type": JWT_BEARER, "assertion": assertion}
        returned = await result_of(source, server.issuer, resource)
        if not isinstance(returned, str) or not returned:
            raise SignInError("EnterpriseSignIn.assertion has returned no identity assertion.")
        return {"grant_type": JWT_BEARER, "assertion": returned}

    async def fields(self, server: AuthorizationServer) -> ClientFields:
        options = self._options
        return await client_fields(
            options.client_id, options.client_secret, options.credential, server.authenticates, time()
        )

    async def _exchanged(
        self, provider: IdentityProvider, audience: str, resource: str, scopes: tuple[str, ...]
    ) -> str:
        """Return the identity assertion for an ID token, and for a newer one if the provider does not take the first.

        The application may renew the ID token only when it is asked for it, so it is asked once more.
        """
        url = provider.token_endpoint
        fields = await client_fields(
            provider.client_id, provider.client_secret, provider.credential, Issuer(url, url), time()
        )
        form = {
            "grant_type": TOKEN_EXCHANGE,
            "requested_token_type": ID_JAG,
            "audience": audience,
            "resource": resource,
            "subject_token_type": _ID_TOKEN,
        }
        if scopes:
            form["scope"] = " ".join(scopes)
        token = await platform_token(provider.id_token, url)
        try:
            return await self._oauth.exchange_identity(url, {**form, "subject_token": token}, fields)
        except RefusedError as error:
            newer = await platform_token(provider.id_token, url) if error.error == _INVALID_GRANT else token
            if newer == token:
                raise
        return await self._oauth.exchange_identity(url, {**form, "subject_token": newer}, fields)


def flow_of(oauth: OAuth, options: ProgramSignIn) -> ProgramFlow:
    """Return the flow of a program.

    Args:
        oauth: Requests to the authorization server of the endpoint.
        options: How the program gets tokens.
    """
    if isinstance(options, ClientCredentials):
        return ProgramFlow(oauth, options, _ClientCredentialsGrant(options))
    if isinstance(options, WorkloadIdentity):
        return ProgramFlow(oauth, options, _WorkloadGrant(options))
    return ProgramFlow(oauth, options, _EnterpriseGrant(options, oauth))
