"""An OpenID provider in this process that has a path for each quirk of real ones. It is our own work."""

from __future__ import annotations

import gzip
import json
import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.auth.making_tokens import key, public, sign, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

CLIENT_ID, SECRET = "funcmcp", "a secret of the tests"
PROFILE = {"name": "Ada Lovelace", "email": "ada@example.com", "email_verified": True}
GROUPS = [f"00000000-0000-4000-8000-{number:012}" for number in range(310)]
"""Ids of groups, as Entra has them."""


class Answer(NamedTuple):
    """An answer of an endpoint, in place of the usual one."""

    status: int
    body: object
    headers: Mapping[str, str] = {}


@dataclass(frozen=True)
class Quirk:
    """How an issuer differs from a plain one. None leaves out a member of a mapping.

    Attributes:
        document: Members of the discovery document, in which `{issuer}` stands for the issuer.
        claims: Claims of the ID tokens.
        userinfo: Claims that the userinfo endpoint has beside the subject.
        kind: The kind of the key that signs.
        algorithm: The algorithm of the signatures.
        header: Members of the header of the ID tokens.
        is_encrypted: Whether the ID tokens are encrypted.
        tokens: Members of the answers with tokens.
        refreshed: Members of the answers to refresh tokens.
        exchange: The answer to a code.
        refresh: The answer to a refresh token.
        callback: What the browser brings back in place of a code.
    """

    document: Mapping[str, Any] = field(default_factory=dict)
    claims: Mapping[str, Any] = field(default_factory=dict)
    userinfo: Mapping[str, Any] = field(default_factory=dict)
    kind: str = "RSA"
    algorithm: str = "RS256"
    header: Mapping[str, Any] = field(default_factory=dict)
    is_encrypted: bool = False
    tokens: Mapping[str, Any] = field(default_factory=dict)
    refreshed: Mapping[str, Any] = field(default_factory=dict)
    exchange: Answer | None = None
    refresh: Answer | None = None
    callback: Mapping[str, str] | None = None


NO_PROFILE = dict.fromkeys(PROFILE)
HTML = "<!doctype html><title>Sorry</title>"
JSON_TYPE = {"content-type": "application/json"}

QUIRKS: dict[str, Quirk] = {
    "plain": Quirk(),
    # Claims
    "userinfo_only": Quirk(claims=NO_PROFILE, userinfo=PROFILE),
    "userinfo_groups": Quirk(userinfo={**PROFILE, "groups": ["cooks"]}),
    "no_email": Quirk(claims={"email": None, "email_verified": None}),
    "unverified_email": Quirk(claims={"email_verified": False}),
    "own_claims": Quirk(claims={"org_id": "org_1", "groups": ["cooks"], "preferred_username": "ada.l"}),
    "groups_230": Quirk(claims={"groups": GROUPS[:230]}),
    "groups_310": Quirk(claims={"groups": GROUPS}),
    "groups_without_store": Quirk(claims={"groups": GROUPS}),
    "roles_as_text": Quirk(claims={"roles": "cook"}),
    "roles_nested": Quirk(claims={"realm_access": {"roles": ["cook"]}}),
    "roles_as_object": Quirk(claims={"urn:zitadel:iam:org:project:roles": {"cook": {"42": "orders.example.com"}}}),
    # Signatures
    "es512": Quirk(kind="P-521", algorithm="ES512"),
    "ps256": Quirk(algorithm="PS256"),
    "eddsa": Quirk(kind="Ed25519", algorithm="EdDSA"),
    "no_kid": Quirk(header={"kid": None}),
    "rs256_listed": Quirk(
        kind="P-256", algorithm="ES256", document={"id_token_signing_alg_values_supported": ["RS256"]}
    ),
    "hs256": Quirk(kind="oct", algorithm="HS256"),
    "encrypted": Quirk(is_encrypted=True),
    # ID tokens
    "no_id_token": Quirk(tokens={"id_token": None}),
    "no_nonce": Quirk(claims={"nonce": None}),
    "missing_nonce": Quirk(claims={"nonce": None}),
    "other_nonce": Quirk(claims={"nonce": "of another sign-in"}),
    "numeric_subject": Quirk(claims={"sub": 42}),
    "other_party": Quirk(claims={"azp": "another client"}),
    "other_issuer": Quirk(claims={"iss": "https://other.example.com"}),
    # Refresh tokens
    "no_refresh_token": Quirk(tokens={"refresh_token": None}),
    "refresh_without_id_token": Quirk(refreshed={"id_token": None}),
    "refresh_keeps_token": Quirk(refreshed={"refresh_token": None}),
    "refresh_mfa_required": Quirk(refresh=Answer(403, {"error": "mfa_required", "mfa_token": "secret"})),
    "refresh_session_expired": Quirk(
        refresh=Answer(400, {"error": "invalid_request", "error_description": "Session expired"})
    ),
    "refresh_user_disabled": Quirk(
        refresh=Answer(400, {"error": "unauthorized_client", "error_description": "User is disabled"})
    ),
    "refresh_error_code": Quirk(refresh=Answer(400, {"error_code": "token_inactive"})),
    "refresh_200": Quirk(refresh=Answer(200, {"error": "invalid_code"})),
    "refresh_502": Quirk(refresh=Answer(502, HTML, {"content-type": "text/html"})),
    "refresh_invalid_client": Quirk(refresh=Answer(401, {"error": "invalid_client"})),
    # Codes
    "code_mfa_required": Quirk(exchange=Answer(403, {"error": "mfa_required"})),
    "code_200": Quirk(exchange=Answer(200, {"ok": False, "error": "bad_verification_code"})),
    "code_invalid_client": Quirk(exchange=Answer(401, {"error": "invalid_client"})),
    "code_429": Quirk(exchange=Answer(429, {"error": "slow_down"})),
    "code_502": Quirk(exchange=Answer(502, HTML, {"content-type": "text/html"})),
    "code_html": Quirk(exchange=Answer(200, HTML, {"content-type": "text/html"})),
    "code_moved": Quirk(exchange=Answer(301, "", {"location": "https://other.example.com/token"})),
    "code_gzip": Quirk(exchange=Answer(200, gzip.compress(b"{}"), {**JSON_TYPE, "content-encoding": "gzip"})),
    # Browsers
    "denied": Quirk(callback={"error": "access_denied", "error_description": "Ada may not <use> this."}),
    "login_required": Quirk(callback={"error": "login_required"}),
    "unknown_scope": Quirk(callback={"error": "invalid_scope", "error_description": "Unknown scope: profile"}),
    "busy": Quirk(callback={"error": "temporarily_unavailable", "error_description": "Maintenance until 4"}),
    # Discovery documents
    "document_of_other": Quirk(document={"issuer": "https://other.example.com"}),
    "document_with_slash": Quirk(document={"issuer": "{issuer}/"}),
    "internal_endpoints": Quirk(document={"token_endpoint": "http://internal.example.com:8080/token"}),
    "par_required": Quirk(document={"require_pushed_authorization_requests": True}),
}


@dataclass
class Grant:
    """A sign-in of a user."""

    quirk: str
    nonce: str


class QuirkyProvider:
    """Serves all quirks at once.

    Args:
        origin: Where it is served.

    Attributes:
        app: The ASGI application.
        refreshes: How many requests with a refresh token have come, by quirk.
    """

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.refreshes: dict[str, int] = {}
        self._codes: dict[str, Grant] = {}
        self._refresh_tokens: dict[str, Grant] = {}
        self._access_tokens: dict[str, Grant] = {}
        self._pushed: dict[str, dict[str, str]] = {}
        self.app = Starlette(
            routes=[
                Route("/{quirk}/.well-known/openid-configuration", self.document),
                Route("/{quirk}/authorize", self.authorize),
                Route("/{quirk}/par", self.push, methods=["POST"]),
                Route("/{quirk}/token", self.token, methods=["POST"]),
                Route("/{quirk}/userinfo", self.userinfo),
                Route("/{quirk}/keys", self.keys),
            ]
        )

    def issuer(self, quirk: str) -> str:
        return f"{self.origin}/{quirk}"

    async def document(self, request: Request) -> Response:
        name = request.path_params["quirk"]
        issuer = self.issuer(name)
        members = {
            "issuer": issuer,
            "authorization_endpoint": f"{issuer}/authorize",
            "pushed_authorization_request_endpoint": f"{issuer}/par",
            "token_endpoint": f"{issuer}/token",
            "userinfo_endpoint": f"{issuer}/userinfo",
            "jwks_uri": f"{issuer}/keys",
            "scopes_supported": ["openid", "profile", "email", "offline_access"],
        }
        changes = {
            member: value.format(issuer=issuer) if isinstance(value, str) else value
            for member, value in QUIRKS[name].document.items()
        }
        return JSONResponse(_changed(members, changes))

    async def authorize(self, request: Request) -> Response:
        name = request.path_params["quirk"]
        parameters = dict(request.query_params)
        if name == "par_required":
            pushed = self._pushed.pop(parameters.get("request_uri", ""), None)
            if pushed is None:
                return Response("A pushed request is required.", 400)
            parameters = pushed
        answer = QUIRKS[name].callback
        if answer is None:
            code = secrets.token_urlsafe()
            self._codes[code] = Grant(name, parameters.get("nonce", ""))
            answer = {"code": code}
        return RedirectResponse(f"{parameters['redirect_uri']}?{urlencode({**answer, 'state': parameters['state']})}")

    async def push(self, request: Request) -> Response:
        name = f"urn:ietf:params:oauth:request_uri:{secrets.token_urlsafe()}"
        self._pushed[name] = {name: str(value) for name, value in (await request.form()).items()}
        return JSONResponse({"request_uri": name, "expires_in": 60}, 201)

    async def token(self, request: Request) -> Response:
        name = request.path_params["quirk"]
        form = await request.form()
        if "refresh_token" in form:
            self.refreshes[name] = self.refreshes.get(name, 0) + 1
            return self._tokens(QUIRKS[name], self._refresh_tokens.get(str(form["refresh_token"])), is_refresh=True)
        return self._tokens(QUIRKS[name], self._codes.pop(str(form.get("code")), None), is_refresh=False)

    def _tokens(self, quirk: Quirk, grant: Grant | None, *, is_refresh: bool) -> Response:
        scripted = quirk.refresh if is_refresh else quirk.exchange
        if scripted is not None:
            return _response(scripted)
        if grant is None:
            return JSONResponse({"error": "invalid_grant"}, 400)
        access_token, refresh_token = secrets.token_urlsafe(), secrets.token_urlsafe()
        self._access_tokens[access_token] = grant
        self._refresh_tokens[refresh_token] = grant
        members = {
            "access_token": access_token,
            "token_type": "Bearer",
            "expires_in": 300,
            "refresh_token": refresh_token,
            "id_token": self._id_token(quirk, grant),
        }
        changes = {**quirk.tokens, **(quirk.refreshed if is_refresh else {})}
        return JSONResponse(_changed(members, changes))

    def _id_token(self, quirk: Quirk, grant: Grant) -> str:
        if quirk.is_encrypted:
            header = json.dumps({"alg": "RSA-OAEP-256", "enc": "A256GCM", "cty": "JWT"}).encode()
            return ".".join([text(header), *(text(part) for part in (b"key", b"vector", b"ciphertext", b"tag"))])
        now = int(time.time())
        claims = {
            "iss": self.issuer(grant.quirk),
            "aud": CLIENT_ID,
            "sub": "ada",
            "iat": now,
            "exp": now + 300,
            "nonce": grant.nonce,
            **PROFILE,
        }
        signer = key(quirk.kind)
        return sign(_changed(claims, quirk.claims), signer=signer, algorithm=quirk.algorithm, header=quirk.header)

    async def userinfo(self, request: Request) -> Response:
        grant = self._access_tokens.get(request.headers.get("authorization", "").removeprefix("Bearer "))
        if grant is None or grant.quirk != request.path_params["quirk"]:
            return Response(status_code=401)
        return JSONResponse(_changed({"sub": "ada"}, QUIRKS[grant.quirk].userinfo))

    async def keys(self, request: Request) -> Response:
        quirk = QUIRKS[request.path_params["quirk"]]
        return JSONResponse({"keys": [] if quirk.kind == "oct" else [public(quirk.kind)]})


def _changed(members: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in {**members, **changes}.items() if value is not None}


def _response(answer: Answer) -> Response:
    if isinstance(answer.body, str | bytes):
        return Response(answer.body, answer.status, dict(answer.headers))
    return JSONResponse(answer.body, answer.status)
