"""OAuth of the local authorization server: its clients, the grants of users, and tokens.

authlib checks the requests, and calls the methods in this module. Everything is in memory. Source: RFC 6749, RFC 7591
(registration), RFC 7636 (PKCE), RFC 8707 (resource indicators), RFC 9068 (tokens), RFC 9207 (`iss`).
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from authlib.oauth2 import AuthorizationServer, OAuth2Request
from authlib.oauth2.rfc6749 import ClientMixin, InvalidRequestError
from authlib.oauth2.rfc6749.errors import OAuth2Error
from authlib.oauth2.rfc6749.grants import AuthorizationCodeGrant, RefreshTokenGrant
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oauth2.rfc7591 import ClientRegistrationEndpoint
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc9068 import JWTBearerTokenGenerator
from authlib.oauth2.rfc9207 import IssuerParameter
from joserfc.jwk import ECKey, KeySet, RSAKey
from starlette.responses import JSONResponse, RedirectResponse, Response

CODE_SECONDS = 60
TOKEN_SECONDS = 600
AUTH_METHODS = ["none", "client_secret_post", "client_secret_basic"]
GRANT_TYPES = ["authorization_code", "refresh_token"]


@dataclass(frozen=True)
class Client(ClientMixin):
    """A client that has registered."""

    client_id: str
    secret: str
    name: str
    redirect_uris: tuple[str, ...]
    auth_method: str
    grant_types: tuple[str, ...]

    def get_client_id(self) -> str:
        """Return the id of the client."""
        return self.client_id

    def get_default_redirect_uri(self) -> None:
        """Return None: a client always sends its redirect URI."""

    def get_allowed_scope(self, scope: str | None) -> str:
        """Return the scopes that the client may request: all of them."""
        return scope or ""

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        """Return whether the client has registered a redirect URI, character by character."""
        return redirect_uri in self.redirect_uris

    def check_client_secret(self, client_secret: str) -> bool:
        """Return whether this is the secret of the client."""
        return hmac.compare_digest(self.secret.encode(), client_secret.encode())

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        """Return whether the client authenticates with the method that it has registered."""
        return endpoint == "token" and method == self.auth_method

    def check_response_type(self, response_type: str) -> bool:
        """Return whether the client may use a response type: only codes."""
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        """Return whether the client has registered a grant type."""
        return grant_type in self.grant_types


@dataclass(frozen=True)
class Agreement:
    """The grant of a user, which a code or a refresh token refers to."""

    client_id: str
    subject: str
    scope: str
    resource: str
    redirect_uri: str
    code_challenge: str
    code_challenge_method: Literal["S256"] = "S256"
    expires: float = float("inf")

    def get_redirect_uri(self) -> str:
        """Return the redirect URI."""
        return self.redirect_uri

    def get_scope(self) -> str:
        """Return the scopes, separated by spaces."""
        return self.scope

    def get_user_id(self) -> str:
        """Return the user."""
        return self.subject

    def check_client(self, client: Client) -> bool:
        """Return whether the grant is for this client."""
        return client.client_id == self.client_id


class InvalidTargetError(OAuth2Error):
    """The resource is missing, unknown, or another one than that of the grant (RFC 8707)."""

    error = "invalid_target"


class FormRequest(OAuth2Request):
    """A request in the form that authlib expects.

    Args:
        method: The method of HTTP.
        uri: The absolute URL.
        headers: The header fields.
        values: The parameters of the query or of the form.
    """

    def __init__(self, method: str, uri: str, headers: Mapping[str, str], values: Mapping[str, Any]) -> None:
        super().__init__(method, uri, headers=headers)
        self._values = values
        self.payload = BasicOAuth2Payload(values)

    @property
    def args(self) -> Mapping[str, Any]:
        """The parameters."""
        return self._values

    @property
    def form(self) -> Mapping[str, Any]:
        """The parameters."""
        return self._values


class OAuth(AuthorizationServer):
    """The clients, codes, tokens and keys of one issuer.

    Args:
        issuer: The URL of the issuer.
        resources: The servers that get tokens, by their URLs, each with its scopes.
        algorithm: RS256 or ES256.
    """

    def __init__(self, issuer: str, resources: Mapping[str, list[str]], algorithm: Literal["RS256", "ES256"]) -> None:
        super().__init__(sorted({scope for scopes in resources.values() for scope in scopes}))
        self.issuer = issuer
        self.resources = resources
        self.clients: dict[str, Client] = {}
        self.codes: dict[str, Agreement] = {}
        self.refresh_tokens: dict[str, Agreement] = {}
        self.keys = KeySet(
            [
                RSAKey.generate_key(2048, {"use": "sig", "alg": "RS256", "kid": secrets.token_hex(8)}),
                ECKey.generate_key("P-256", {"use": "sig", "alg": "ES256", "kid": secrets.token_hex(8)}),
            ]
        )
        self.register_grant(Codes, [S256()])
        self.register_grant(Refreshing)
        self.register_endpoint(Registration)
        self.register_extension(Issuer(issuer))
        self.register_token_generator("default", Tokens(self, algorithm))

    def query_client(self, client_id: str) -> Client | None:
        """Return a client."""
        return self.clients.get(client_id)

    def save_token(self, token: dict[str, str], request: OAuth2Request) -> None:
        """Store the grant of a refresh token."""
        if "refresh_token" in token:
            self.refresh_tokens[token["refresh_token"]] = replace(request.user, scope=token.get("scope", ""))

    def redirect_with_error(self, request: FormRequest, error: OAuth2Error) -> Response:
        """Return the redirect to the client with an error."""
        response: Response = self.handle_error_response(request, error)
        self.execute_hook("after_create_authorization_response", response)
        return response

    def send_signal(self, name: str, *args: Any, **kwargs: Any) -> None:
        """Do nothing: the sample has no listeners."""

    def create_oauth2_request(self, request: FormRequest) -> FormRequest:
        """Return the request, which has the right type."""
        return request

    def create_json_request(self, request: FormRequest) -> FormRequest:
        """Return the request, which has the right type."""
        return request

    def handle_response(self, status: int, body: Any, headers: list[tuple[str, str]]) -> Response:
        """Return a response of the web framework."""
        fields = dict(headers)
        if "Location" in fields:
            return Redirection(fields["Location"])
        fields.pop("Content-Type", None)
        return JSONResponse(body, status, fields)


class Redirection(RedirectResponse):
    """A redirect whose `location` authlib can change."""

    def __init__(self, url: str) -> None:
        super().__init__(url, 302, {"cache-control": "no-store"})

    @property
    def location(self) -> str:
        """The URL to which the browser goes."""
        return self.headers["location"]

    @location.setter
    def location(self, url: str) -> None:
        self.headers["location"] = url


class Codes(AuthorizationCodeGrant):
    """Codes for the consent of users, and tokens for codes."""

    TOKEN_ENDPOINT_AUTH_METHODS = AUTH_METHODS

    def validate_authorization_request(self) -> str:
        """Return the redirect URI; raise OAuth2Error if the request is not valid."""
        redirect_uri: str = super().validate_authorization_request()
        if self.request.payload.data.get("resource") not in self.server.resources:
            raise InvalidTargetError("The resource must be the URL of a known server.", redirect_uri=redirect_uri)
        return redirect_uri

    def save_authorization_code(self, code: str, request: OAuth2Request) -> None:
        """Store the grant of a code."""
        parameters = request.payload.data
        self.server.codes[code] = Agreement(
            client_id=request.client.client_id,
            subject=request.user,
            scope=request.scope,
            resource=parameters["resource"],
            redirect_uri=parameters["redirect_uri"],
            code_challenge=parameters["code_challenge"],
            expires=time.monotonic() + CODE_SECONDS,
        )

    def query_authorization_code(self, code: str, client: Client) -> Agreement | None:
        """Return the grant of a code. The code is then used up, even if the request is not valid."""
        grant: Agreement | None = self.server.codes.pop(code, None)
        if grant is None or not grant.check_client(client) or time.monotonic() > grant.expires:
            return None
        _check_resource(self.request, grant)
        return grant

    def delete_authorization_code(self, authorization_code: Agreement) -> None:
        """Do nothing: it is removed when it is used."""

    def authenticate_user(self, authorization_code: Agreement) -> Agreement:
        """Return the grant."""
        return authorization_code


class Refreshing(RefreshTokenGrant):
    """The next tokens for a refresh token."""

    TOKEN_ENDPOINT_AUTH_METHODS = AUTH_METHODS
    INCLUDE_NEW_REFRESH_TOKEN = True

    def authenticate_refresh_token(self, refresh_token: str) -> Agreement | None:
        """Return the grant of a refresh token, which can be used once."""
        grant: Agreement | None = self.server.refresh_tokens.pop(refresh_token, None)
        if grant is not None:
            _check_resource(self.request, grant)
        return grant

    def authenticate_user(self, refresh_token: Agreement) -> Agreement:
        """Return the grant."""
        return refresh_token

    def revoke_old_credential(self, refresh_token: Agreement) -> None:
        """Do nothing: it is removed when it is used."""


def _check_resource(request: OAuth2Request, grant: Agreement) -> None:
    if request.payload.data.get("resource", grant.resource) != grant.resource:
        raise InvalidTargetError("The grant of the user is for another server.")


class S256(CodeChallenge):
    """PKCE, which is required, with SHA-256 only."""

    SUPPORTED_CODE_CHALLENGE_METHOD = ("S256",)

    def validate_code_challenge(self, grant: AuthorizationCodeGrant, redirect_uri: str) -> None:
        """Raise OAuth2Error unless there is a challenge with its method."""
        super().validate_code_challenge(grant, redirect_uri)
        if not grant.request.payload.data.get("code_challenge_method"):
            raise InvalidRequestError("Send a code_challenge with code_challenge_method=S256.")


class Tokens(JWTBearerTokenGenerator):
    """Signed access tokens (RFC 9068), and refresh tokens.

    Args:
        oauth: The issuer, whose keys sign the tokens.
        algorithm: RS256 or ES256.
    """

    def __init__(self, oauth: OAuth, algorithm: str) -> None:
        super().__init__(oauth.issuer, algorithm, lambda **_: secrets.token_urlsafe(32), TOKEN_SECONDS)
        self._keys = oauth.keys

    def get_jwks(self) -> KeySet:
        """Return the keys."""
        return self._keys

    def get_audiences(self, client: Client, user: Agreement, scope: str) -> str:  # noqa: ARG002 - authlib's signature
        """Return the audience of a token: the one server that it is for (RFC 8707)."""
        return user.resource


class Issuer(IssuerParameter):
    """Adds the issuer to the redirect to a client (RFC 9207)."""

    def __init__(self, issuer: str) -> None:
        self._issuer = issuer

    def get_issuer(self) -> str:
        """Return the issuer."""
        return self._issuer


class Registration(ClientRegistrationEndpoint):
    """Registers every client that asks for it (RFC 7591)."""

    def authenticate_token(self, request: OAuth2Request) -> Literal["anonymous"]:  # noqa: ARG002 - authlib's signature
        """Accept every caller."""
        return "anonymous"

    def get_server_metadata(self) -> dict[str, Any]:
        """Return what a client may register."""
        return {
            "scopes_supported": self.server.scopes_supported,
            "response_types_supported": ["code"],
            "grant_types_supported": GRANT_TYPES,
            "token_endpoint_auth_methods_supported": AUTH_METHODS,
        }

    def save_client(
        self,
        client_info: dict[str, Any],
        client_metadata: dict[str, Any],
        request: OAuth2Request,  # noqa: ARG002 - authlib's signature
    ) -> None:
        """Store a client."""
        uris = client_metadata.get("redirect_uris")
        if not uris:
            raise InvalidRequestError("redirect_uris is missing.")
        self.server.clients[client_info["client_id"]] = Client(
            client_id=client_info["client_id"],
            secret=client_info["client_secret"],
            name=client_metadata.get("client_name") or client_info["client_id"],
            redirect_uris=tuple(uris),
            auth_method=client_metadata["token_endpoint_auth_method"],
            grant_types=tuple(client_metadata.get("grant_types") or ["authorization_code"]),
        )
