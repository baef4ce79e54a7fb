"""A local authorization server to try the sample with. It believes whoever says who they are: never let it out.

Run it with ``python -m samples.signin.authorization``; ``grants.py`` has the OAuth of it. Source: RFC 8414 (metadata;
section 3 for issuers with a path), OpenID Connect Discovery 1.0 section 4 (the other address of the same).
"""

from __future__ import annotations

import html
import json
import secrets
from typing import Any, Literal
from urllib.parse import parse_qsl, urlsplit

from authlib.oauth2.rfc6749.errors import OAuth2Error
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from .grants import AUTH_METHODS, GRANT_TYPES, FormRequest, OAuth

MOST_BYTES = 64 * 1024
PAGE = """<!doctype html>
<meta charset="utf-8">
<title>Sign in</title>
<form method="post" action="{action}">
<h1>Sign in</h1>
<p>{client} wants to use {resource} on your behalf: {scope}.</p>
<label>Who are you? <input name="user" value="ada" required></label>
<input type="hidden" name="ticket" value="{ticket}">
<button name="decision" value="allow">Allow</button>
<button name="decision" value="deny" formnovalidate>Deny</button>
</form>
"""
GUARDED = {"cache-control": "no-store", "content-security-policy": "default-src 'none'; frame-ancestors 'none'"}


class AuthorizationServer:
    """The pages and endpoints of one issuer.

    Args:
        issuer: its own URL, such as ``http://127.0.0.1:9000``.
        resources: servers that tokens are made for, by their URLs, each with its scopes.
        algorithm: how tokens are signed.

    Attributes:
        app: the ASGI application.
    """

    def __init__(
        self, issuer: str, resources: dict[str, list[str]], algorithm: Literal["RS256", "ES256"] = "RS256"
    ) -> None:
        self.issuer = issuer
        self.oauth = OAuth(issuer, resources, algorithm)
        self._asked: dict[str, FormRequest] = {}
        path = urlsplit(issuer).path
        self._path = path
        metadata = [
            f"/.well-known/oauth-authorization-server{path}",
            f"/.well-known/openid-configuration{path}",
            f"{path}/.well-known/openid-configuration",
        ]
        self.app = Starlette(
            routes=[
                *(Route(place, self.metadata) for place in dict.fromkeys(metadata)),
                Route(f"{path}/keys", self.keys),
                Route(f"{path}/register", self.register, methods=["POST"]),
                Route(f"{path}/authorize", self.authorize),
                Route(f"{path}/consent", self.consent, methods=["POST"]),
                Route(f"{path}/token", self.token, methods=["POST"]),
            ],
            middleware=[Middleware(CORSMiddleware, allow_origins=["*"], allow_methods=["GET", "POST"])],
        )

    async def metadata(self, _request: Request) -> Response:
        """Say where everything is."""
        return JSONResponse(
            {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "registration_endpoint": f"{self.issuer}/register",
                "jwks_uri": f"{self.issuer}/keys",
                "scopes_supported": self.oauth.scopes_supported,
                "response_types_supported": ["code"],
                "grant_types_supported": GRANT_TYPES,
                "token_endpoint_auth_methods_supported": AUTH_METHODS,
                "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": True,
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["RS256"],
            }
        )

    async def keys(self, _request: Request) -> Response:
        """Give the public keys."""
        return JSONResponse(self.oauth.keys.as_dict(private=False))

    async def register(self, request: Request) -> Response:
        """Register a client."""
        try:
            said = json.loads(await _body(request))
        except ValueError:
            said = None
        asked = FormRequest("POST", str(request.url), request.headers, said if isinstance(said, dict) else {})
        return _response(self.oauth.create_endpoint_response("client_registration", asked))

    async def authorize(self, request: Request) -> Response:
        """Ask the user, who has come with a browser."""
        asked = _asked(request, request.url.query)
        if asked is None:
            return HTMLResponse("This link says something twice.", 400, GUARDED)
        try:
            grant = self.oauth.get_consent_grant(asked)
        except OAuth2Error as error:
            if error.redirect_uri:
                return self.oauth.send_back(asked, error)
            return HTMLResponse(html.escape(f"{error.error}: {error.description}"), 400, GUARDED)
        ticket = secrets.token_urlsafe(16)
        self._asked[ticket] = asked
        words = {
            "action": f"{self._path}/consent",
            "client": grant.client.name,
            "resource": asked.args["resource"],
            "scope": asked.scope or "nothing in particular",
            "ticket": ticket,
        }
        page = PAGE.format_map({name: html.escape(text) for name, text in words.items()})
        return HTMLResponse(page, headers=GUARDED)

    async def consent(self, request: Request) -> Response:
        """Take the user's decision, and send the browser back to the client."""
        said = dict(parse_qsl((await _body(request)).decode()))
        asked = self._asked.pop(said.get("ticket", ""), None)
        if asked is None:
            return HTMLResponse("This page was answered already.", 400, GUARDED)
        user = said.get("user") if said.get("decision") == "allow" else None
        return _response(self.oauth.create_authorization_response(asked, user, self._grant(asked)))

    async def token(self, request: Request) -> Response:
        """Give tokens for a code or a refresh token."""
        asked = _asked(request, (await _body(request)).decode())
        if asked is None:
            return JSONResponse({"error": "invalid_request"}, 400)
        return _response(self.oauth.create_token_response(asked))

    def _grant(self, asked: FormRequest) -> Any:
        return self.oauth.get_authorization_grant(asked)


def _asked(request: Request, encoded: str) -> FormRequest | None:
    """Return a request with its parameters, or None where one comes twice (RFC 6749 section 3.1)."""
    pairs = parse_qsl(encoded)
    if len(dict(pairs)) < len(pairs):
        return None
    return FormRequest(request.method, str(request.url), request.headers, dict(pairs))


async def _body(request: Request) -> bytes:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            raise ValueError("No message to an authorization server is as long as this.")
    return body


def _response(made: Any) -> Response:
    """Return what authlib, which has no types, got from `OAuth.handle_response`."""
    if not isinstance(made, Response):
        raise TypeError(f"That is no response: {made!r}.")
    return made


def main() -> None:
    """Serve on the address that is the issuer's."""
    import uvicorn  # noqa: PLC0415 - only here

    from .settings import ISSUER, SCOPES, URL  # noqa: PLC0415 - tests have their own

    address = urlsplit(ISSUER)
    server = AuthorizationServer(ISSUER, {URL: SCOPES})
    uvicorn.run(server.app, host=address.hostname or "127.0.0.1", port=address.port or 80, log_level="warning")


if __name__ == "__main__":
    main()
