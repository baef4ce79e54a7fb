"""Microsoft Entra ID as upstream of the proxy.

How it works: Entra registers no clients and refuses the parameter ``resource`` that MCP clients send, so the proxy
never sends it. Only the ID token of the sign-in counts, whose version does not depend on the registration of an API.
Without *on_behalf_of* the proxy asks for no permissions of an API, and drops the access token.

With *on_behalf_of* the access token is for the application itself, so that the application, and nobody else, can
exchange it for tokens of other APIs. The scope has the application's id: with its URI, Entra refuses the refresh
(AADSTS90009). One sign-in has one API (AADSTS28000), so a token for Microsoft Graph then comes from an exchange, too.

For several tenants, the endpoints are those of ``organizations``. Its discovery document has no issuer but a template,
and its keys are those of all tenants. So each ID token is checked as one of the tenant that it names: its issuer is
that tenant's, and so is its key, if the key has an issuer. Then the tenant must be an allowed one. A token for another
API is requested at the tenant of the user.

Entra leaves out the groups of a user with more than 200 of them. That is not the same as no groups: such a sign-in is
refused, or the groups come from Microsoft Graph.

Source: Microsoft identity platform, "Claims validation" and "Access tokens" (issuers of tokens and of keys in
multitenant applications), "ID token claims reference" (also for `_claim_names` and `hasgroups`) and "Optional
claims" (`tid`, `oid`, `idp`, `acct`, `xms_edov`), "OAuth 2.0 On-Behalf-Of flow", also "Use of a single application";
Microsoft Graph, "List a user's memberships (direct and transitive)"; azure-identity 1.27.0, `app_service.py` and
`imds.py` (requests for tokens of managed identities); RFC 7523 section 2.2 (a token as the credential of a client);
public issues for AADSTS90009 (Softeria/ms-365-mcp-server 502 and 508) and AADSTS28003 (a code without scopes).
"""

from __future__ import annotations

import asyncio
import inspect
import os
from dataclasses import replace
from time import time
from typing import TYPE_CHECKING, Any, Final, Literal, cast
from urllib.parse import urlencode

from funcmcp._auth.client_options import checked_parameters
from funcmcp._auth.entra_id import checked_guid
from funcmcp._auth.tokens.compact import TokenError, read, read_object
from funcmcp._oauth_proxy.certificates import ClientCertificate
from funcmcp._oauth_proxy.client_requests import issued_token_in
from funcmcp._oauth_proxy.entra_errors import explanation_of
from funcmcp._oauth_proxy.failures import PROVIDER_ANSWER, PROVIDER_REFUSES_SERVER, TENANT, TENANTS_FAILED
from funcmcp._oauth_proxy.id_tokens import IDTokens, exact_claim, text_claim, texts_claim
from funcmcp._oauth_proxy.oidc import OIDC
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

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from funcmcp._auth.client_options import MakeAssertion
    from funcmcp._auth.tokens.compact import SignedToken
    from funcmcp._auth.tokens.keys import KeySource, VerificationKey
    from funcmcp._oauth_proxy.oidc import Provider

    Credential = ClientCertificate | MakeAssertion
    AllowTenant = Callable[[str], bool | Awaitable[bool]]

_AUTHORITY: Final = "https://login.microsoftonline.com"
_ORGANIZATIONS: Final = "organizations"
_ISSUER_TEMPLATE: Final = f"{_AUTHORITY}/{{tenantid}}/v2.0"
"""The issuer in the discovery document of ``organizations``, and of keys that sign for all tenants."""

_AUDIENCE: Final = "api://AzureADTokenExchange"
_INSTANCE_METADATA: Final = "http://169.254.169.254/metadata/identity/oauth2/token"
_RENEWAL_SECONDS: Final = 300.0
_ON_BEHALF_OF: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_GRAPH: Final = "https://graph.microsoft.com"
_READ_USER: Final = f"{_GRAPH}/User.Read"
_MAX_PAGES: Final = 20
_TENANTS_SECONDS: Final = 5.0
_OTHER_FORM: Final = "Microsoft Graph has returned groups in another form than expected"
_TOO_MANY_GROUPS: Final = (
    "You are in more groups than Microsoft tells this server, so that it can't decide what you may do. Report it to "
    "the operator of the server."
)
_NOT_OF_TENANT: Final = "This account is not one of the organization. Sign in with another account."
_GUEST: Final = "This server does not accept guests of the organization. Sign in with another account."


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
            raise failed(
                UpstreamMisconfiguredError, PROVIDER_REFUSES_SERVER, "the managed identity has returned no token"
            )
        self._token, self._until = token, int(str(end)) - _RENEWAL_SECONDS
        return token


@public("funcmcp.auth")
class EntraID(OIDC):
    """One tenant of Microsoft Entra ID, or several, for `OAuthProxy`.

    Register the server there with the platform *Web* and the redirect URI
    ``https://<host of the server>/oauth/callback``. The subject of a user is ``<tenant id>.<object id>``, the same in
    all applications of the tenant. Roles are the app roles of the registration; prefer them to groups, which Entra
    leaves out of the token of a user with many of them.

    Args:
        tenant: The id of the tenant, a GUID; or ``"organizations"`` for several tenants. Then the registration is for
            *accounts in any organizational directory*, and *tenants* is required.
        client_id: The application id of the registration, a GUID.
        client_secret: A secret of the registration.
        credential: In place of a secret, a `ClientCertificate`, a `ManagedIdentity`, or a function that returns a
            signed assertion (RFC 7523) for each request. The function may be async.
        tenants: Which tenants may sign in at ``"organizations"``: a list of their ids, or a function that gets the id
            of a tenant and returns True for an allowed one. The function may be async, has five seconds, and decides
            again at a refresh.
        guests: Whether users of other tenants may sign in that are guests of this tenant.
        groups: What a user with too many groups for a token gets, if the registration has the claim ``groups``.
            ``"token"``: the sign-in is refused. ``"graph"``: the groups come from Microsoft Graph, with the permission
            User.Read. ``"ignore"``: the sign-ins of all users have no groups.
        on_behalf_of: The name of a scope that the registration exposes, such as ``"access_as_user"``. Tools then get
            tokens for other APIs by `Context.upstream_token`. None: they get none.
        parameters: More parameters of the authorization request, such as ``{"domain_hint": "example.com"}``. A value of
            ``""`` leaves out a parameter that the proxy would send, such as ``prompt``.
        clock: A function that returns seconds since 1970.

    Raises:
        TypeError: *tenants* is one string.
        ValueError: The tenant or the application id is not a GUID, there are both or neither of secret and credential,
            ``"organizations"`` has no *tenants*, *groups* or *on_behalf_of* is invalid, or a parameter belongs to the
            proxy.
    """

    def __init__(  # noqa: PLR0913 - the registration, and what the server does with its users
        self,
        tenant: str,
        client_id: str,
        client_secret: str | None = None,
        *,
        credential: Credential | None = None,
        tenants: Sequence[str] | AllowTenant | None = None,
        guests: bool = False,
        groups: Literal["token", "graph", "ignore"] = "token",
        on_behalf_of: str | None = None,
        parameters: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time,
    ) -> None:
        if (client_secret is None) == (credential is None):
            raise ValueError("EntraID needs either client_secret or credential, such as ManagedIdentity().")
        if groups not in {"token", "graph", "ignore"}:
            raise ValueError(f"EntraID.groups must be 'token', 'graph' or 'ignore', not {groups!r}.")
        if on_behalf_of is not None and (not on_behalf_of or "/" in on_behalf_of):
            raise ValueError(
                "EntraID.on_behalf_of is the name of a scope that the registration exposes, without its URI, such as "
                f"'access_as_user'; got {on_behalf_of!r}."
            )
        self._tenant = _checked_tenant(tenant, tenants)
        self._tenants = _checked_tenants(tenants)
        client_id = checked_guid("client_id", client_id)
        scopes = ["openid", "profile", "email"]
        if on_behalf_of is not None:
            scopes.append(f"{client_id}/{on_behalf_of}")
        elif groups == "graph":
            scopes.append(_READ_USER)
        super().__init__(
            _ISSUER_TEMPLATE if self._tenant is None else _issuer_of(self._tenant),
            client_id,
            client_secret,
            discovery=_DISCOVERY_OF_ORGANIZATIONS if self._tenant is None else None,
            name="Microsoft",
            scopes=scopes,
            parameters={"prompt": "select_account"} | checked_parameters("EntraID.parameters", parameters),
            credential=cast("MakeAssertion | None", credential),  # _assertion() reads a certificate
            token_exchange=on_behalf_of is not None,
            clock=clock,
        )
        if self._tenant is None:
            self.issuer: str | None = None
        self._guests = guests
        self._groups = groups
        self.on_behalf_of: str | None = on_behalf_of

    async def exchange_token(self, access_token: str, scopes: Sequence[str], audience: str | None) -> IssuedToken:
        """See `TokenExchanger.exchange_token`; the scopes name the API, and *audience* must be None."""
        if audience is not None:
            raise ValueError(
                'Entra ID has no audience: the scopes name the API, as "https://graph.microsoft.com/User.Read".'
            )
        form = {
            "grant_type": _ON_BEHALF_OF,
            "requested_token_use": "on_behalf_of",
            "assertion": access_token,
            "scope": " ".join(scopes),
        }
        provider = await self._discover()
        if self._tenant is None:
            tenant = await self._tenant_of(access_token)
            provider = replace(provider, token_endpoint=f"{_AUTHORITY}/{tenant}/oauth2/v2.0/token")
        return issued_token_in(await self._post(provider, provider.token_endpoint, form))

    async def _tenant_of(self, access_token: str) -> str:
        """Return the tenant in an access token that Entra has issued for the application itself."""
        try:
            claims = read_object(read(access_token).payload, "payload")
            tenant = checked_guid("tid", str(claims.get("tid")))
        except ValueError:
            raise UpstreamUnavailableError("the access token of the sign-in does not name a tenant") from None
        await self._check_tenant(tenant)
        return tenant

    async def _check_tenant(self, tenant: str) -> None:
        """Raise UpstreamRefusedError if the users of one of several tenants may not sign in."""
        if not callable(self._tenants):
            allowed: object = tenant in self._tenants
        else:
            try:
                async with asyncio.timeout(_TENANTS_SECONDS):
                    allowed = self._tenants(tenant)
                    allowed = await allowed if inspect.isawaitable(allowed) else allowed
            except Exception as error:
                detail = f"{type(error).__name__}: {error!s:.200}"
                raise failed(UpstreamMisconfiguredError, TENANTS_FAILED, detail) from error
        if allowed is not True:
            raise failed(UpstreamRefusedError, TENANT, tenant)

    def _read(self, document: dict[str, Any]) -> Provider:
        provider = super()._read(document)
        if self._tenant is not None:
            return provider
        return replace(provider, id_tokens=_IDTokensOfTenants(self._client_id, provider.keys))

    async def _user_in(self, provider: Provider, answer: dict[str, Any], nonce: str | None) -> User:
        user = await super()._user_in(provider, answer, nonce)
        if self._tenant is None:
            await self._check_tenant(str(user.tenant))
        return user

    async def _assertion(self, audience: str) -> str:
        credential: object = self._credential
        if isinstance(credential, ClientCertificate):
            return credential.assertion(self._client_id, audience, self._clock())
        return await super()._assertion(audience)

    async def _post(self, provider: Provider, url: str, form: dict[str, str]) -> dict[str, Any]:
        try:
            return await super()._post(provider, url, form)
        except UpstreamError as error:
            explanation = explanation_of(str(error))
            if explanation is None:
                raise
            kind = UpstreamMisconfiguredError if explanation.is_of_operator else type(error)
            raise kind(f"{explanation.code}: {explanation.operator} ({error})", explanation.user) from error

    def _exchange_fields(self, provider: Provider) -> dict[str, str]:
        return {"scope": " ".join(provider.scopes)}

    async def _sign_in(self, answer: dict[str, Any], user: User | None) -> SignIn:
        sign_in = await super()._sign_in(answer, user)
        if user is None or self._groups != "graph" or not _lacks_groups(user.claims):
            return sign_in
        token = issued_token_in(answer)
        if self.exchanges_tokens:
            token = await self.exchange_token(token.token, [_READ_USER], None)
        claims = {name: value for name, value in user.claims.items() if name not in _GROUP_CLAIMS}
        groups = await self._groups_at_graph(token.token)
        return sign_in._replace(user=replace(user, claims=claims | {"groups": groups}))

    def _claims_request(self, provider: Provider, answer: dict[str, Any], user: User) -> None:
        """Return None: userinfo of Entra is an API of Microsoft Graph, and has less than the ID token."""

    async def _groups_at_graph(self, token: str) -> list[str]:
        """Return the ids of all groups of the user, also of those that contain a group of the user."""
        url: object = f"{_GRAPH}/v1.0/me/transitiveMemberOf?$select=id&$top=999"
        groups: list[str] = []
        for _ in range(_MAX_PAGES):
            if not isinstance(url, str) or not url.startswith(f"{_GRAPH}/v1.0/"):
                raise failed(UpstreamUnavailableError, PROVIDER_ANSWER, _OTHER_FORM)
            try:
                page = await self._http.get(url, {"authorization": f"Bearer {token}"})
            except UpstreamUnavailableError as error:
                raise UpstreamUnavailableError(f"the groups of the user at Microsoft Graph: {error}") from error
            groups += _groups_in(page)
            url = page.get("@odata.nextLink")
            if url is None:
                return groups
        raise UpstreamRefusedError("the user has too many groups", _TOO_MANY_GROUPS)

    def _user_of(self, claims: dict[str, Any]) -> User:
        object_id = exact_claim(claims, "oid")
        if object_id is None:
            raise TokenError("The ID token has no object id.")
        tenant = claims.get("tid")
        if not isinstance(tenant, str) or claims["iss"] != _issuer_of(tenant):
            raise UpstreamRefusedError("the user is of another tenant", _NOT_OF_TENANT)
        is_guest = claims.get("acct") == 1 or claims.get("idp", claims["iss"]) != claims["iss"]
        if is_guest and not self._guests:
            raise UpstreamRefusedError("the user is a guest; EntraID(guests=True) accepts guests", _GUEST)
        if self._groups == "ignore":
            claims = {name: value for name, value in claims.items() if name not in _GROUP_CLAIMS}
        elif self._groups == "token" and _lacks_groups(claims):
            reason = 'the user has more groups than a token can have; use app roles, or EntraID(groups="graph")'
            raise UpstreamRefusedError(reason, _TOO_MANY_GROUPS)
        return User(
            f"{tenant}.{object_id}",
            name=text_claim(claims, "name", "preferred_username"),
            # Entra does not verify `email`. Only this optional claim says that the owner of the domain has.
            email=exact_claim(claims, "email") if claims.get("xms_edov") is True else None,
            tenant=tenant,
            roles=texts_claim(claims, "roles"),
            claims=claims,
        )


class _KeysOfIssuer:
    """Those keys of several issuers that sign for one."""

    def __init__(self, keys: KeySource, issuer: str) -> None:
        self._keys = keys
        self._issuers = {None, _ISSUER_TEMPLATE, issuer}

    async def find(self, token: SignedToken) -> Sequence[VerificationKey]:
        """See `KeySource.find`."""
        return [key for key in await self._keys.find(token) if key.issuer in self._issuers]


class _IDTokensOfTenants(IDTokens):
    """Validates the ID tokens of several tenants, each as one of the tenant that it names."""

    def __init__(self, client_id: str, keys: KeySource) -> None:
        super().__init__(_ISSUER_TEMPLATE, client_id, keys)

    async def validate(self, token: object, now: float, *, nonce: str | None) -> dict[str, Any]:
        """See `IDTokens.validate`."""
        if not isinstance(token, str):
            raise TokenError("The answer has no ID token.")
        try:
            tenant = checked_guid("tid", str(read_object(read(token).payload, "payload").get("tid")))
        except TokenError:
            raise
        except ValueError:
            raise TokenError("The ID token does not name a tenant.") from None
        issuer = _issuer_of(tenant)
        tokens = IDTokens(issuer, self._client_id, _KeysOfIssuer(self._keys, issuer))
        return await tokens.validate(token, now, nonce=nonce)


_DISCOVERY_OF_ORGANIZATIONS: Final = f"{_AUTHORITY}/{_ORGANIZATIONS}/v2.0/.well-known/openid-configuration"
_GROUP_CLAIMS: Final = frozenset({"groups", "hasgroups", "_claim_names", "_claim_sources"})


def _issuer_of(tenant: str) -> str:
    return f"{_AUTHORITY}/{tenant}/v2.0"


def _checked_tenant(tenant: str, tenants: Sequence[str] | AllowTenant | None) -> str | None:
    """Return the id of the only tenant, None for several; raise TypeError or ValueError if the two do not fit."""
    if not isinstance(tenant, str):
        raise TypeError('EntraID.tenant is one string; for several: EntraID("organizations", ..., tenants=[...]).')
    if tenant == _ORGANIZATIONS:
        if not tenants:
            raise ValueError(
                'EntraID("organizations") needs the tenants that may sign in: tenants=["<tenant id>"], or a function '
                "that gets the id of a tenant and returns True for an allowed one."
            )
        return None
    if tenant == "common":
        raise ValueError(
            'EntraID("common") would accept personal accounts as well. For several organizations write '
            'EntraID("organizations", ..., tenants=["<tenant id>"]); for one, its tenant id, which must be a GUID.'
        )
    if tenants is not None:
        raise ValueError('EntraID.tenants is for EntraID("organizations"). One tenant needs its id only.')
    return checked_guid("tenant", tenant)


def _checked_tenants(tenants: Sequence[str] | AllowTenant | None) -> frozenset[str] | AllowTenant:
    """Return the ids of the allowed tenants, or the function that decides; raise TypeError or ValueError."""
    if isinstance(tenants, str):
        raise TypeError("EntraID.tenants is a list of tenant ids, not one string.")
    if callable(tenants):
        return tenants
    return frozenset(checked_guid("tenant", tenant) for tenant in tenants or ())


def _lacks_groups(claims: Mapping[str, Any]) -> bool:
    """Return whether Entra has left out the groups of the user, because there are too many."""
    if claims.get("hasgroups") is not None:
        return True
    names = claims.get("_claim_names")
    return names is not None and (not isinstance(names, dict) or "groups" in names)


def _groups_in(page: dict[str, Any]) -> list[str]:
    """Return the ids of the groups among the objects of a page; raise UpstreamUnavailableError for another form."""
    objects = page.get("value")
    if not isinstance(objects, list) or not all(isinstance(entry, dict) for entry in objects):
        raise failed(UpstreamUnavailableError, PROVIDER_ANSWER, _OTHER_FORM)
    groups = [entry.get("id") for entry in objects if entry.get("@odata.type") == "#microsoft.graph.group"]
    if not all(isinstance(group, str) for group in groups):
        raise failed(UpstreamUnavailableError, PROVIDER_ANSWER, "Microsoft Graph has returned a group without an id")
    return [str(group) for group in groups]
