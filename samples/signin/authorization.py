"""A local authorization server for the sample. It accepts any user name without a password, so it must stay local.

Run it with ``python -m samples.signin.authorization``; ``grants.py`` has its OAuth. Source: RFC 8414 (metadata;
section 3 for issuers with a path), OpenID Connect Discovery 1.0 section 4 (the other address of the metadata).
"""

from __future__ import annotations

import html
import secrets
import sys
from typing import Any, Literal
from urllib.parse import parse_qsl, urlsplit

from authlib.oauth2.rfc6749.errors import OAuth2Error
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from .grants import AUTH_METHODS, GRANT_TYPES, FormRequest, OAuth

MAX_BODY = 64 * 1024
PAGE = """<!doctype html>
<meta charset="utf-8">
<title>Sign in</title>
<form method="post" action="{action}">
<h1>Sign in</h1>
<p>{client} wants to use {resource} on your behalf: {scope}.</p>
<label>User name <input name="user" value="ada" required></label>
<input type="hidden" name="ticket" value="{ticket}">
<button name="decision" value="allow">Allow</button>
<button name="decision" value="deny" formnovalidate>Deny</button>
</form>
"""
GUARDED = {"cache-control": "no-store", "content-security-policy": "default-src 'none'; frame-ancestors 'none'"}


class Registration(BaseModel, strict=True, extra="allow"):
    """The members of a registration that are read (RFC 7591)."""

    redirect_uris: list[str] = []
    grant_types: list[str] = []
    response_types: list[str] = []
    token_endpoint_auth_method: str = ""
    client_name: str = ""
    scope: str = ""


class AuthorizationServer:
    """The pages and endpoints of one issuer.

    Args:
        issuer: The URL of the server, such as ``http://127.0.0.1:9000``.
        resources: The servers that get tokens, by their URLs, each with its scopes.
        algorithm: The algorithm of the signatures of tokens.

    Attributes:
        app: The ASGI application.
    """

    def __init__(
        self, issuer: str, resources: dict[str, list[str]], algorithm: Literal["RS256", "ES256"] = "RS256"
    ) -> None:
        self.issuer = issuer
        self.oauth = OAuth(issuer, resources, algorithm)
        self._requests: dict[str, FormRequest] = {}
        path = urlsplit(issuer).path
        self._path = path
        metadata = [
            f"/.well-known/oauth-authorization-server{path}",
            f"/.well-known/openid-configuration{path}",
            f"{path}/.well-known/openid-configuration",
        ]
        self.app = Starlette(
            routes=[
                *(Route(address, self.metadata) for address in dict.fromkeys(metadata)),
                Route(f"{path}/keys", self.keys),
                Route(f"{path}/register", self.register, methods=["POST"]),
                Route(f"{path}/authorize", self.authorize),
                Route(f"{path}/consent", self.consent, methods=["POST"]),
                Route(f"{path}/token", self.token, methods=["POST"]),
            ],
            exception_handlers={ValueError: _refuse},
            middleware=[Middleware(CORSMiddleware, allow_origins=["*"], allow_methods=["GET", "POST"])],
        )

    async def metadata(self, _request: Request) -> Response:
        """Return the metadata of the server."""
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
        """Return the public keys."""
        return JSONResponse(self.oauth.keys.as_dict(private=False))

    async def register(self, request: Request) -> Response:
        """Register a client."""
        metadata = Registration.model_validate_json(await _body(request)).model_dump(exclude_unset=True)
        registration = FormRequest("POST", str(request.url), request.headers, metadata)
        return _response(self.oauth.create_endpoint_response("client_registration", registration))

    async def authorize(self, request: Request) -> Response:
        """Show the page that asks the user."""
        form = _form_request(request, request.url.query)
        if form is None:
            return HTMLResponse("A parameter of this link is repeated.", 400, GUARDED)
        try:
            grant = self.oauth.get_consent_grant(form)
        except OAuth2Error as error:
            if error.redirect_uri:
                return self.oauth.redirect_with_error(form, error)
            return HTMLResponse(html.escape(f"{error.error}: {error.description}"), 400, GUARDED)
        ticket = secrets.token_urlsafe(16)
        self._requests[ticket] = form
        texts = {
            "action": f"{self._path}/consent",
            "client": grant.client.name,
            "resource": form.args["resource"],
            "scope": form.scope or "no scopes",
            "ticket": ticket,
        }
        page = PAGE.format_map({name: html.escape(text) for name, text in texts.items()})
        return HTMLResponse(page, headers=GUARDED)

    async def consent(self, request: Request) -> Response:
        """Accept the decision of the user, and redirect the browser to the client."""
        fields = dict(parse_qsl((await _body(request)).decode()))
        form = self._requests.pop(fields.get("ticket", ""), None)
        if form is None:
            return HTMLResponse("The form of this page was sent before.", 400, GUARDED)
        user = fields.get("user") if fields.get("decision") == "allow" else None
        return _response(self.oauth.create_authorization_response(form, user, self._grant(form)))

    async def token(self, request: Request) -> Response:
        """Return tokens for a code or a refresh token."""
        form = _form_request(request, (await _body(request)).decode())
        if form is None:
            return JSONResponse({"error": "invalid_request"}, 400)
        return _response(self.oauth.create_token_response(form))

    def _grant(self, form: FormRequest) -> Any:
        return self.oauth.get_authorization_grant(form)


def _form_request(request: Request, encoded: str) -> FormRequest | None:
    """Return a request with its parameters, or None if one of them is repeated (RFC 6749 section 3.1)."""
    pairs = parse_qsl(encoded)
    if len(dict(pairs)) < len(pairs):
        return None
    return FormRequest(request.method, str(request.url), request.headers, dict(pairs))


async def _refuse(_request: Request, _error: Exception) -> Response:
    """Answer a request that is too large, or not JSON or UTF-8."""
    return JSONResponse({"error": "invalid_request", "error_description": "The body can't be read."}, 400)


async def _body(request: Request) -> bytes:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY:
            raise ValueError(f"The body has more than {MAX_BODY} bytes.")
    return body


def _response(value: Any) -> Response:
    """Return the response of `OAuth.handle_response`, which authlib passes on without a type."""
    if not isinstance(value, Response):
        raise TypeError(f"{value!r} is not a response.")
    return value


def main() -> None:
    """Serve at the address of the issuer."""
    import uvicorn  # noqa: PLC0415 - only the command needs it

    from .settings import ISSUER, SCOPES, URL  # noqa: PLC0415 - tests have other settings

    address = urlsplit(ISSUER)
    server = AuthorizationServer(ISSUER, {URL: SCOPES})
    sys.stderr.write(f"The authorization server is at {ISSUER}. It accepts any user name.\n")
    uvicorn.run(server.app, host=address.hostname or "127.0.0.1", port=address.port or 80, log_level="warning")


if __name__ == "__main__":
    main()
