"""A script in place of Entra ID and of Microsoft Graph. It is our own work, and proves nothing about these.

It has the rules and errors that Microsoft documents or public reports quote; the numbers of errors are Microsoft's
(AADSTS...). Some errors appear on a page of Microsoft, which the script raises as `MicrosoftPage`. The others come back
to the callback, or from the token endpoint. A test changes one attribute, and so produces one error.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from joserfc.jwk import RSAKey
from joserfc.jws import JWSRegistry

from tests.auth.making_tokens import NOW, Clock, sign
from tests.oauth_proxy.scripted import APP, ENTRA, TENANT, ScriptedHTTP

GRAPH = "https://graph.microsoft.com"
GRAPH_ID = "00000003-0000-0000-c000-000000000000"
OPENID = frozenset({"openid", "profile", "email", "offline_access"})
READ_USER = f"{GRAPH}/User.Read"
SECRET = "the-value-of-the-secret"


class MicrosoftPage(Exception):
    """An error that Entra shows on its own page. The proxy never hears of it."""


class Refused(Exception):
    """An error that Entra sends to the application.

    Args:
        error: The name of OAuth.
        code: Microsoft's number.
        text: The text.
        members: More members of the answer.
    """

    def __init__(self, error: str, code: int, text: str, **members: Any) -> None:
        super().__init__(text)
        self.answer = {
            "error": error,
            "error_description": f"AADSTS{code}: {text}\r\nTrace ID: 0",
            "error_codes": [code],
        }
        self.answer |= members


@dataclass
class Grant:
    """What a code or a refresh token stands for."""

    request: dict[str, str]
    scopes: frozenset[str]
    used: bool = False


@dataclass
class ScriptedEntra(ScriptedHTTP):
    """One tenant with one registration and one user.

    Attributes:
        redirect_uris: The redirect URIs of the registration.
        secrets: The secrets of the registration, and when each expires.
        certificates: The public keys of its certificates, by the SHA-256 digest in base64url.
        federated: The assertions of the managed identity that its federated credential fits.
        exposed: The scopes that it exposes.
        consented: The permissions of other APIs that somebody has consented to.
        claims: Claims of ID tokens.
        groups: The groups of the user.
        sign_in_error: The error with which a sign-in ends: name, number and text.
        refresh_error: The error with which a refresh ends.
        exchange_error: The error with which an exchange ends.
        lifetime: Seconds for which access tokens are valid.
        clock: The time.
    """

    redirect_uris: list[str] = field(default_factory=lambda: ["https://orders.example.com/oauth/callback"])
    secrets: dict[str, float] = field(default_factory=lambda: {SECRET: NOW + 1_000_000})
    certificates: dict[str, Any] = field(default_factory=dict)
    federated: set[str] = field(default_factory=set)
    exposed: set[str] = field(default_factory=lambda: {"access_as_user"})
    consented: set[str] = field(default_factory=lambda: {READ_USER})
    claims: dict[str, Any] = field(default_factory=dict)
    groups: list[str] = field(default_factory=list)
    sign_in_error: tuple[str, int, str] | None = None
    refresh_error: tuple[str, int, str] | None = None
    exchange_error: tuple[str, int, str] | None = None
    lifetime: int = 3600
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        super().__init__()
        self.grants: dict[str, Grant] = {}
        self.issued: dict[str, tuple[str, frozenset[str]]] = {}
        self.count = 0

    # The browser

    def sign_in(self, url: str) -> dict[str, str]:
        """Return the query with which the browser comes back to the callback."""
        parts = urlsplit(url)
        request = dict(parse_qsl(parts.query, keep_blank_values=True))
        if parts.path != f"/{TENANT}/oauth2/v2.0/authorize":
            raise MicrosoftPage("AADSTS90002")
        if request["client_id"] != APP:
            raise MicrosoftPage("AADSTS700016")
        if request["redirect_uri"] not in self.redirect_uris:
            raise MicrosoftPage("AADSTS50011")
        try:
            scopes = self.requested(request)
            if self.sign_in_error is not None:
                raise Refused(*self.sign_in_error)
        except Refused as error:
            members = {name: str(error.answer[name]) for name in ("error", "error_description")}
            return members | {"state": request["state"]}
        self.count += 1
        self.grants[f"code-{self.count}"] = Grant(request, scopes)
        return {"code": f"code-{self.count}", "state": request["state"]}

    def requested(self, request: dict[str, str]) -> frozenset[str]:
        """Return the scopes of a request; raise Refused for those that Entra refuses."""
        scopes = frozenset(request.get("scope", "").split())
        if "resource" in request:
            if scopes - OPENID:
                raise Refused("invalid_target", 9010010, "The resource parameter does not match the requested scopes.")
            raise Refused("invalid_request", 901002, "The 'resource' request parameter is not supported.")
        for scope in scopes - OPENID:
            api, _, name = scope.rpartition("/")
            if api == f"api://{APP}":
                raise Refused("invalid_request", 90009, "Application is requesting a token for itself.")
            if api == APP and name not in self.exposed:
                raise Refused("invalid_client", 650053, f"The application asked for scope '{name}' that doesn't exist.")
        if len({api_of(scope) for scope in scopes - OPENID}) > 1:
            raise Refused("invalid_request", 28000, "The scope contains more than one resource.")
        return scopes

    # The token endpoint

    def answer(self, url: str, headers: dict[str, str], form: dict[str, str]) -> tuple[int, Any]:
        if url == f"{ENTRA}/.well-known/openid-configuration":
            base = f"https://login.microsoftonline.com/{TENANT}/oauth2/v2.0"
            return 200, {
                "issuer": ENTRA,
                "authorization_endpoint": f"{base}/authorize",
                "token_endpoint": f"{base}/token",
                "jwks_uri": "http://127.0.0.1:1/keys",
                "scopes_supported": sorted(OPENID),
                "token_endpoint_auth_methods_supported": [
                    "client_secret_post",
                    "private_key_jwt",
                    "client_secret_basic",
                ],
            }
        if url.startswith(GRAPH):
            return self.graph(url, headers)
        assert url == f"https://login.microsoftonline.com/{TENANT}/oauth2/v2.0/token"
        try:
            self.authenticate(headers, form)
            scopes = self.requested(form)
            match form["grant_type"]:
                case "authorization_code":
                    return 200, self.redeem(form, scopes)
                case "refresh_token":
                    return 200, self.renew(form, scopes)
                case "urn:ietf:params:oauth:grant-type:jwt-bearer":
                    return 200, self.exchange(form, scopes)
            raise Refused("unsupported_grant_type", 70003, "The app requested an unsupported grant type.")
        except Refused as error:
            return 401 if error.answer["error"] == "invalid_client" else 400, error.answer

    def authenticate(self, headers: dict[str, str], form: dict[str, str]) -> None:
        if "client_assertion" in form:
            assert form["client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
            self.check_assertion(form["client_assertion"])
            return
        basic = headers.get("authorization", "").removeprefix("Basic ")
        if not basic:
            raise Refused(
                "invalid_client", 7000218, "The request body must contain: 'client_assertion' or 'client_secret'."
            )
        client, _, secret = base64.b64decode(basic).decode().partition(":")
        if client != APP:
            raise Refused("unauthorized_client", 700016, "Application was not found in the directory.")
        if secret not in self.secrets:
            raise Refused("invalid_client", 7000215, "Invalid client secret provided.")
        if self.clock() >= self.secrets[secret]:
            raise Refused("invalid_client", 7000222, "The provided client secret keys are expired.")

    def check_assertion(self, assertion: str) -> None:
        if assertion in self.federated:
            return
        if assertion.count(".") != 2:
            raise Refused("invalid_client", 700213, "No matching federated identity record found: subject.")
        header, claims, signature = assertion.split(".")
        head, payload = json.loads(decoded(header)), json.loads(decoded(claims))
        key = self.certificates.get(head["x5t#S256"])
        if key is None:
            raise Refused("invalid_client", 700027, "The certificate with identifier used to sign is not registered.")
        algorithm = JWSRegistry.algorithms[head["alg"]]
        if not algorithm.verify(f"{header}.{claims}".encode(), decoded(signature), RSAKey.import_key(key)):
            raise Refused("invalid_client", 7000274, "The signature of the client assertion is invalid.")
        assert payload["aud"] == f"https://login.microsoftonline.com/{TENANT}/oauth2/v2.0/token"
        assert (payload["iss"], payload["sub"]) == (APP, APP)
        if not payload["nbf"] - 300 <= self.clock() < payload["exp"] + 300:
            raise Refused("invalid_client", 700024, "Client assertion is not within its valid time range.")

    def redeem(self, form: dict[str, str], scopes: frozenset[str]) -> dict[str, Any]:
        grant = self.grants.get(form["code"])
        if grant is None or grant.used:
            raise Refused("invalid_grant", 54005, "OAuth2 Authorization code was already redeemed.")
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != grant.request["code_challenge"]:
            raise Refused("invalid_grant", 501481, "The Code_Verifier does not match the code_challenge.")
        if not scopes:
            raise Refused("invalid_request", 28003, "The scope can't be empty.")
        grant.used = True
        return self.tokens(Grant(grant.request, scopes), grant.request["nonce"])

    def renew(self, form: dict[str, str], scopes: frozenset[str]) -> dict[str, Any]:
        if self.refresh_error is not None:
            raise Refused(*self.refresh_error)
        grant = self.grants.get(form["refresh_token"])
        if grant is None:
            raise Refused("invalid_grant", 70000, "The provided value for the refresh token is not valid.")
        if not scopes and grant.scopes - OPENID:
            raise Refused("invalid_request", 90009, "Application is requesting a token for itself.")
        return self.tokens(Grant(grant.request, scopes), None)

    def exchange(self, form: dict[str, str], scopes: frozenset[str]) -> dict[str, Any]:
        assert form["requested_token_use"] == "on_behalf_of"
        audience, _ = self.issued.get(form["assertion"], ("", frozenset()))
        if audience != APP:
            raise Refused("invalid_grant", 500131, "Assertion audience does not match the Client app.")
        if self.exchange_error is not None:
            raise Refused(*self.exchange_error, claims='{"access_token":{}}')
        if not scopes <= self.consented:
            text = "The user or administrator has not consented to use the application."
            raise Refused("invalid_grant", 65001, text, suberror="consent_required")
        return {
            "token_type": "Bearer",
            "expires_in": self.lifetime,
            "access_token": self.access_token(api_of(min(scopes)), scopes),
        }

    def tokens(self, grant: Grant, nonce: str | None) -> dict[str, Any]:
        own = [scope for scope in grant.scopes if api_of(scope) == APP]
        answer = {
            "token_type": "Bearer",
            "expires_in": self.lifetime,
            "access_token": self.access_token(APP if own else GRAPH_ID, grant.scopes),
            "id_token": self.id_token(nonce),
        }
        if "offline_access" in grant.scopes:
            self.count += 1
            answer["refresh_token"] = f"refresh-{self.count}"
            self.grants[f"refresh-{self.count}"] = grant
        return answer

    def access_token(self, audience: str, scopes: frozenset[str]) -> str:
        self.count += 1
        token = f"access-token-{self.count}-for-{audience}"
        self.issued[token] = audience, scopes
        return token

    def id_token(self, nonce: str | None) -> str:
        claims = {
            "iss": ENTRA,
            "aud": APP,
            "exp": self.clock() + 3600,
            "iat": self.clock(),
            "nonce": nonce,
            "sub": "per application",
            "oid": "ada-object",
            "tid": TENANT,
            "name": "Ada",
            "ver": "2.0",
        } | self.claims
        if len(self.groups) > 200:
            claims["_claim_names"] = {"groups": "src1"}
            claims["_claim_sources"] = {"src1": {"endpoint": f"{GRAPH}/v1.0/users/ada-object/getMemberObjects"}}
        elif self.groups:
            claims["groups"] = self.groups
        return sign({name: value for name, value in claims.items() if value is not None})

    # Microsoft Graph

    def graph(self, url: str, headers: dict[str, str]) -> tuple[int, Any]:
        token = headers["authorization"].removeprefix("Bearer ")
        audience, scopes = self.issued.get(token, ("", frozenset()))
        if audience not in {GRAPH, GRAPH_ID}:
            return 401, {"error": {"code": "InvalidAuthenticationToken"}}
        if READ_USER not in scopes:
            return 403, {"error": {"code": "Authorization_RequestDenied"}}
        assert url.startswith(f"{GRAPH}/v1.0/me/transitiveMemberOf?")
        query = dict(parse_qsl(urlsplit(url).query))
        start, size = int(query.get("$skiptoken", 0)), 100
        page = self.groups[start : start + size]
        objects = [{"@odata.type": "#microsoft.graph.group", "id": group} for group in page]
        role = {"@odata.type": "#microsoft.graph.directoryRole", "id": "a role and not a group"}
        answer: dict[str, Any] = {"value": [role, *objects]}
        if start + size < len(self.groups):
            answer["@odata.nextLink"] = f"{GRAPH}/v1.0/me/transitiveMemberOf?$skiptoken={start + size}"
        return 200, answer


def api_of(scope: str) -> str:
    """Return the API that a scope names."""
    return GRAPH if scope in OPENID else scope.rpartition("/")[0]


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
