"""Parts of a request in the forms of other frameworks: the caller's token and the HTTP request."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, field_validator

from funcmcp._auth.principal import Principal
from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from funcmcp._server.calls.context import HTTPRequestInfo


@public("funcmcp.compat")
class AccessToken(BaseModel):
    """The token of a caller, which ``verify_token`` of a verifier returns.

    Attributes:
        token: The token as the caller sent it; empty for tokens of an `OAuthProxy`, keys and other credentials.
        client_id: The id of the client.
        scopes: The scopes of the token.
        expires_at: The time at which the token expires, in seconds since 1970; None if it is unknown.
        resource: The URL for which the token was issued; None if it is unknown.
        subject: The id of the user at the issuer; None if it is unknown.
        claims: The claims of the token.
        original_client_id: The id of the client, where `MultiAuth` has put the name of its source before it.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(hide_input_in_errors=True)

    token: str
    client_id: str
    scopes: list[str]
    expires_at: int | None = None
    resource: str | None = None
    subject: str | None = None
    claims: dict[str, Any] = Field(default_factory=dict)
    original_client_id: str | None = None

    @field_validator("claims", mode="before")
    @classmethod
    def _without_claims(cls, claims: Any) -> Any:
        return {} if claims is None else claims  # None in the official SDK


@dataclass(frozen=True, slots=True)
class TokenPrincipal(Principal):
    """A caller with the access token that a verifier has returned.

    Attributes:
        access_token: The access token.
    """

    access_token: AccessToken | None = dataclass_field(default=None, repr=False, hash=False, compare=False)


def access_token_of(principal: Principal) -> AccessToken:
    """Return the token of a caller.

    It has no text if the token is for this server alone: authors of FastMCP send `AccessToken.token` to the API of the
    provider, which must not get a token of the `OAuthProxy`, or a key.
    """
    if isinstance(principal, TokenPrincipal) and principal.access_token is not None:
        return principal.access_token.model_copy(deep=True)  # the principal serves other calls, too
    expires_at = principal.claims.get("exp")
    return AccessToken(
        token="" if principal.verified_token is None else principal.verified_token.reveal(),
        client_id=principal.client_id or principal.subject,
        scopes=sorted(principal.scopes),
        expires_at=expires_at if isinstance(expires_at, int) else None,
        subject=None if principal.per_token else principal.subject,
        claims=dict(principal.claims),
    )


class Address(NamedTuple):
    """The address of a client, like Starlette's. The port is 0: behind proxies it would be that of a proxy."""

    host: str
    port: int


class PlainRequest:
    """An HTTP request with the attributes of Starlette's ``Request``, where Starlette is not installed.

    Attributes:
        client: The client's address; None if it is unknown.
    """

    def __init__(self, http: HTTPRequestInfo) -> None:
        self._http = http
        self.client: Address | None = _client_of(http)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._http, name)


def _client_of(http: HTTPRequestInfo) -> Address | None:
    return None if http.client_address is None else Address(http.client_address, 0)


def http_request_of(http: HTTPRequestInfo) -> Any:
    """Return an HTTP request as Starlette's ``Request``, or as `PlainRequest` if Starlette is not installed."""
    try:
        from starlette.requests import Request  # noqa: PLC0415 - an author's own dependency
    except ModuleNotFoundError:
        return PlainRequest(http)
    from urllib.parse import urlsplit  # noqa: PLC0415 - only for the above

    url = urlsplit(http.url)
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in http.headers.items()]
    scope: dict[str, Any] = {
        "type": "http",
        "method": http.method,
        "scheme": url.scheme,
        "path": url.path,
        "query_string": url.query.encode("latin-1"),
        "headers": headers,
        "server": (url.hostname, url.port or (443 if url.scheme == "https" else 80)),
        "client": _client_of(http),
        "state": {},
    }
    return Request(scope)
