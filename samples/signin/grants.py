"""OAuth as the local authorization server speaks it: its clients, what users agree to, and the tokens for that.

authlib checks the requests; here is what it wants to know. Everything is kept in memory. Source: RFC 6749, RFC 7591
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
    """A program that has registered itself."""

    client_id: str
    secret: str
    name: str
    redirect_uris: tuple[str, ...]
    auth_method: str
    grant_types: tuple[str, ...]

    def get_client_id(self) -> str:
        """Return what names the client."""
        return self.client_id

    def get_default_redirect_uri(self) -> None:
        """Return none: a client always says where its user goes back to."""

    def get_allowed_scope(self, scope: str | None) -> str:
        """Return the scopes that the client may ask its user for: those that it asks for."""
        return scope or ""

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        """Tell whether the client has registered an address, letter for letter."""
        return redirect_uri in self.redirect_uris

    def check_client_secret(self, client_secret: str) -> bool:
        """Tell whether this is the client's secret."""
        return hmac.compare_digest(self.secret.encode(), client_secret.encode())

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        """Tell whether the client says who it is in the way that it has registered."""
        return endpoint == "token" and method == self.auth_method

    def check_response_type(self, response_type: str) -> bool:
        """Tell whether the client may ask for this: only for codes."""
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        """Tell whether the client has registered for a way to get tokens."""
        return grant_type in self.grant_types


@dataclass(frozen=True)
class Agreement:
    """What a user agreed to, with a code or a refresh token that stands for it."""

    client_id: str
    subject: str
    scope: str
    resource: str
    redirect_uri: str
    code_challenge: str
    code_challenge_method: Literal["S256"] = "S256"
    expires: float = float("inf")

    def get_redirect_uri(self) -> str:
        """Return where the user went back to."""
        return self.redirect_uri

    def get_scope(self) -> str:
        """Return the scopes, separated by spaces."""
        return self.scope

    def get_user_id(self) -> str:
        """Return who agreed."""
        return self.subject

    def check_client(self, client: Client) -> bool:
        """Tell whether it is this client that the user agreed about."""
        return client.client_id == self.client_id


class InvalidTargetError(OAuth2Error):
    """The resource is missing, none that tokens are made for, or not the one that was agreed about (RFC 8707)."""

    error = "invalid_target"


class FormRequest(OAuth2Request):
    """A request as authlib wants to have it.

    Args:
        method: of HTTP.
        uri: absolute.
        headers: as they came.
        values: the parameters of the query, or of the form.
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
        issuer: its own URL.
        resources: servers that tokens are made for, by their URLs, each with its scopes.
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
        """Remember what a refresh token stands for."""
        if "refresh_token" in token:
            self.refresh_tokens[token["refresh_token"]] = replace(request.user, scope=token.get("scope", ""))

    def send_back(self, request: FormRequest, error: OAuth2Error) -> Response:
        """Return what sends a browser back to the client with an error."""
        response: Response = self.handle_error_response(request, error)
        self.execute_hook("after_create_authorization_response", response)
        return response

    def send_signal(self, name: str, *args: Any, **kwargs: Any) -> None:
        """Tell nobody of what happens."""

    def create_oauth2_request(self, request: FormRequest) -> FormRequest:
        """Return a request, which is what it should be already."""
        return request

    def create_json_request(self, request: FormRequest) -> FormRequest:
        """Return a request, which is what it should be already."""
        return request

    def handle_response(self, status: int, body: Any, headers: list[tuple[str, str]]) -> Response:
        """Return a response of the web framework."""
        fields = dict(headers)
        if "Location" in fields:
            return Redirection(fields["Location"])
        fields.pop("Content-Type", None)
        return JSONResponse(body, status, fields)


class Redirection(RedirectResponse):
    """Sends a browser on; `location` can be changed as authlib does."""

    def __init__(self, url: str) -> None:
        super().__init__(url, 302, {"cache-control": "no-store"})

    @property
    def location(self) -> str:
        """Where to."""
        return self.headers["location"]

    @location.setter
    def location(self, url: str) -> None:
        self.headers["location"] = url


class Codes(AuthorizationCodeGrant):
    """From a user's consent to a code, and from the code to tokens."""

    TOKEN_ENDPOINT_AUTH_METHODS = AUTH_METHODS

    def validate_authorization_request(self) -> str:
        """Return where the user goes back to; raise OAuth2Error where the request is none to ask a user about."""
        redirect_uri: str = super().validate_authorization_request()
        if self.request.payload.data.get("resource") not in self.server.resources:
            raise InvalidTargetError("Name the server that the token is for.", redirect_uri=redirect_uri)
        return redirect_uri

    def save_authorization_code(self, code: str, request: OAuth2Request) -> None:
        """Remember what a code stands for."""
        said = request.payload.data
        self.server.codes[code] = Agreement(
            client_id=request.client.client_id,
            subject=request.user,
            scope=request.scope,
            resource=said["resource"],
            redirect_uri=said["redirect_uri"],
            code_challenge=said["code_challenge"],
            expires=time.monotonic() + CODE_SECONDS,
        )

    def query_authorization_code(self, code: str, client: Client) -> Agreement | None:
        """Return what a code stands for. It is used up by that, even if the request turns out to be wrong."""
        found: Agreement | None = self.server.codes.pop(code, None)
        if found is None or not found.check_client(client) or time.monotonic() > found.expires:
            return None
        _check_resource(self.request, found)
        return found

    def delete_authorization_code(self, authorization_code: Agreement) -> None:
        """Do nothing: it is gone already."""

    def authenticate_user(self, authorization_code: Agreement) -> Agreement:
        """Return who agreed, and to what."""
        return authorization_code


class Refreshing(RefreshTokenGrant):
    """From a refresh token to the next ones."""

    TOKEN_ENDPOINT_AUTH_METHODS = AUTH_METHODS
    INCLUDE_NEW_REFRESH_TOKEN = True

    def authenticate_refresh_token(self, refresh_token: str) -> Agreement | None:
        """Return what a refresh token stands for. It can be used once."""
        found: Agreement | None = self.server.refresh_tokens.pop(refresh_token, None)
        if found is not None:
            _check_resource(self.request, found)
        return found

    def authenticate_user(self, refresh_token: Agreement) -> Agreement:
        """Return who agreed, and to what."""
        return refresh_token

    def revoke_old_credential(self, refresh_token: Agreement) -> None:
        """Do nothing: it is gone already."""


def _check_resource(request: OAuth2Request, agreed: Agreement) -> None:
    if request.payload.data.get("resource", agreed.resource) != agreed.resource:
        raise InvalidTargetError("The user agreed about another server.")


class S256(CodeChallenge):
    """PKCE, which nobody may leave out, and only with SHA-256."""

    SUPPORTED_CODE_CHALLENGE_METHOD = ("S256",)

    def validate_code_challenge(self, grant: AuthorizationCodeGrant, redirect_uri: str) -> None:
        """Raise OAuth2Error unless there is a challenge, and its method is said."""
        super().validate_code_challenge(grant, redirect_uri)
        if not grant.request.payload.data.get("code_challenge_method"):
            raise InvalidRequestError("Send a code_challenge with code_challenge_method=S256.")


class Tokens(JWTBearerTokenGenerator):
    """Signed access tokens (RFC 9068), and refresh tokens.

    Args:
        oauth: whose keys sign them.
        algorithm: RS256 or ES256.
    """

    def __init__(self, oauth: OAuth, algorithm: str) -> None:
        super().__init__(oauth.issuer, algorithm, lambda **_: secrets.token_urlsafe(32), TOKEN_SECONDS)
        self._keys = oauth.keys

    def get_jwks(self) -> KeySet:
        """Return the keys."""
        return self._keys

    def get_audiences(self, client: Client, user: Agreement, scope: str) -> str:  # noqa: ARG002 - authlib's signature
        """Return the server that the token is for, and that alone (RFC 8707)."""
        return user.resource


class Issuer(IssuerParameter):
    """Says in the address that a user goes back to whose answer it is (RFC 9207)."""

    def __init__(self, issuer: str) -> None:
        self._issuer = issuer

    def get_issuer(self) -> str:
        """Return the issuer."""
        return self._issuer


class Registration(ClientRegistrationEndpoint):
    """Takes note of any client that tells of itself (RFC 7591)."""

    def authenticate_token(self, request: OAuth2Request) -> Literal["anybody"]:  # noqa: ARG002 - authlib's signature
        """Let anybody register."""
        return "anybody"

    def get_server_metadata(self) -> dict[str, Any]:
        """Return what a client may ask for."""
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
        """Remember a client."""
        uris = client_metadata.get("redirect_uris")
        if not uris:
            raise InvalidRequestError("Name the redirect_uris.")
        self.server.clients[client_info["client_id"]] = Client(
            client_id=client_info["client_id"],
            secret=client_info["client_secret"],
            name=client_metadata.get("client_name") or client_info["client_id"],
            redirect_uris=tuple(uris),
            auth_method=client_metadata["token_endpoint_auth_method"],
            grant_types=tuple(client_metadata.get("grant_types") or ["authorization_code"]),
        )
