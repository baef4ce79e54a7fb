"""Microsoft Entra ID as upstream of the proxy.

How it works: Entra registers no clients and refuses the parameter ``resource`` that MCP clients send, so the proxy
never sends it. The proxy asks for no permissions of an API: only the ID token of the sign-in counts, whose version does
not depend on the registration of an API.

Source: Microsoft identity platform, "ID token claims reference" and "Optional claims" (`tid`, `oid`, `idp`, `acct`,
`xms_edov`); azure-identity 1.27.0, `app_service.py` and `imds.py` (requests for tokens of managed identities); RFC 7523
section 2.2 (a token as the credential of a client).
"""

from __future__ import annotations

import inspect
import os
from time import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from funcmcp._auth.entra_id import checked_guid
from funcmcp._auth.tokens.compact import TokenError
from funcmcp._oauth_proxy.id_tokens import text_claim, texts_claim
from funcmcp._oauth_proxy.oidc import OIDC
from funcmcp._oauth_proxy.upstream import UpstreamHTTP, UpstreamUnavailableError, User
from funcmcp._public_names import public

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Credential = Callable[[], str | Awaitable[str]]

_AUTHORITY: Final = "https://login.microsoftonline.com"
_AUDIENCE: Final = "api://AzureADTokenExchange"
_ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_INSTANCE_METADATA: Final = "http://169.254.169.254/metadata/identity/oauth2/token"
_RENEWAL_SECONDS: Final = 300.0


@public("funcmcp.auth")
class ManagedIdentity:
    """The managed identity of an Azure resource, as the credential of a registration in Entra ID.

    The registration has a *federated credential* that names the identity, so there is no secret that could leak or
    expire. It works on App Service, Azure Functions, Container Apps and virtual machines.

    Args:
        client_id: The client id of a user-assigned identity, which a federated credential needs.
        clock: A function that returns seconds since 1970.
    """

    def __init__(self, client_id: str | None = None, *, clock: Callable[[], float] = time) -> None:
        self._client_id = client_id
        self._clock = clock
        self._http = UpstreamHTTP(trusts_environment=False)
        self._token = ""
        self._until = 0.0

    async def __call__(self) -> str:
        """Return a token of the identity; raise UpstreamUnavailableError."""
        if self._clock() < self._until:
            return self._token
        endpoint, header = os.environ.get("IDENTITY_ENDPOINT"), os.environ.get("IDENTITY_HEADER")
        query = {"resource": _AUDIENCE} | ({} if self._client_id is None else {"client_id": self._client_id})
        if endpoint and header:
            query["api-version"] = "2019-08-01"
            headers = {"x-identity-header": header}
        else:
            endpoint, query["api-version"] = _INSTANCE_METADATA, "2018-02-01"
            headers = {"metadata": "true"}
        answer = await self._http.get(f"{endpoint}?{urlencode(query)}", headers)
        token, end = answer.get("access_token"), answer.get("expires_on")
        if not isinstance(token, str) or not str(end).isdecimal():
            raise UpstreamUnavailableError("the managed identity has returned no token")
        self._token, self._until = token, int(str(end)) - _RENEWAL_SECONDS
        return token


@public("funcmcp.auth")
class EntraID(OIDC):
    """One tenant of Microsoft Entra ID for `OAuthProxy`.

    Register the server there with the platform *Web* and the redirect URI
    ``https://<host of the server>/oauth/callback``. The subject of a user is ``<tenant id>.<object id>``, the same in
    all applications of the tenant. Roles are the app roles of the registration; prefer them to groups, which Entra
    leaves out of the token of a user with many of them.

    Args:
        tenant: The id of the tenant, a GUID. ``common`` and ``organizations`` are rejected: they mean any tenant.
        client_id: The application id of the registration, a GUID.
        client_secret: A secret of the registration.
        credential: In place of a secret, a function that returns a signed assertion (RFC 7523) for each request, such
            as `ManagedIdentity`. It may be async.
        guests: Whether users of other tenants may sign in that are guests of this tenant.
        clock: A function that returns seconds since 1970.

    Raises:
        ValueError: The tenant or the application id is not a GUID, or there are both or neither of secret and
            credential.
    """

    def __init__(
        self,
        tenant: str,
        client_id: str,
        client_secret: str | None = None,
        *,
        credential: Credential | None = None,
        guests: bool = False,
        clock: Callable[[], float] = time,
    ) -> None:
        if (client_secret is None) == (credential is None):
            raise ValueError("EntraID needs either client_secret or credential, such as ManagedIdentity().")
        self._tenant = checked_guid("tenant", tenant)
        super().__init__(
            f"{_AUTHORITY}/{self._tenant}/v2.0",
            checked_guid("client_id", client_id),
            client_secret,
            name="Microsoft",
            parameters={"prompt": "select_account"},
            clock=clock,
        )
        self._credential = credential
        self._guests = guests

    async def _authentication(self, *, uses_basic: bool) -> tuple[dict[str, str], dict[str, str]]:
        if self._credential is None:
            return await super()._authentication(uses_basic=uses_basic)
        assertion = self._credential()
        if inspect.isawaitable(assertion):
            assertion = await assertion
        form = {
            "client_id": self._client_id,
            "client_assertion_type": _ASSERTION_TYPE,
            "client_assertion": assertion,
        }
        return {}, form

    def _user_of(self, claims: dict[str, Any]) -> User:
        object_id = text_claim(claims, "oid")
        if claims.get("tid") != self._tenant or object_id is None:
            raise TokenError("The user is of another tenant, or the ID token has no object id.")
        is_guest = claims.get("acct") == 1 or claims.get("idp", self.issuer) != self.issuer
        if is_guest and not self._guests:
            raise TokenError("The user is a guest of the tenant. EntraID(guests=True) accepts guests.")
        return User(
            f"{self._tenant}.{object_id}",
            name=text_claim(claims, "name", "preferred_username"),
            # Entra does not verify `email`. Only this optional claim says that the owner of the domain has.
            email=text_claim(claims, "email") if claims.get("xms_edov") is True else None,
            tenant=self._tenant,
            roles=texts_claim(claims, "roles"),
            claims=claims,
        )
