"""Token verifiers of other frameworks as authenticators of funcmcp.

There, `verify_token` is not the whole check: the framework itself then compares the expiry, the scopes and the resource
of the token that it returns. The authenticator here makes the same checks.

Source: `BearerAuthBackend` and `RequireAuthMiddleware` of the official SDK, which FastMCP uses, too.
"""

from __future__ import annotations

import hashlib
from time import time
from typing import TYPE_CHECKING, Any, TypedDict

from pydantic import AnyHttpUrl, BaseModel, ValidationError

from funcmcp._auth.authenticator import Challenge, UnavailableError
from funcmcp._auth.policy import Auth
from funcmcp._auth.protected_resource import ProtectedResource
from funcmcp._compat.request_parts import AccessToken, TokenPrincipal
from funcmcp._objects.public_names import public
from funcmcp._state.line_limit import LineLimit, escaped

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from funcmcp._auth.authenticator import Authenticator, Identity
    from funcmcp._auth.principal import Principal

_ADVICE = "Use auth= with an authenticator of funcmcp.auth, such as BearerTokens; see docs/guides/authentication.md."
_SCHEME = "bearer "
_WELL_KNOWN = "/.well-known/"
_RESOURCE_METADATA = "/.well-known/oauth-protected-resource"
_HANDLED_SETTINGS = frozenset({"issuer_url", "required_scopes", "resource_server_url", "validate_token_resource"})
"""Members of the SDK's AuthSettings that have a meaning here. The others are for authorization servers."""


def native_auth(auth: Any, token_verifier: Any) -> Auth | Authenticator | None:
    """Return the authenticator for the options of a server; None if it has none.

    Args:
        auth: An authenticator of funcmcp, an object with ``verify_token``, or settings of the official SDK.
        token_verifier: An object with ``verify_token``.

    Raises:
        TypeError: funcmcp has nothing for it. A server with auth must not start without it.
    """
    if token_verifier is None:
        if auth is None or isinstance(auth, Auth):
            return auth
        if hasattr(auth, "verify_token"):
            return verifier_auth(auth)
        if callable(auth):
            return auth  # type: ignore[no-any-return] # an authenticator is a function
        raise TypeError(f"auth={type(auth).__name__} has no method verify_token. {_ADVICE}")
    if not hasattr(token_verifier, "verify_token"):
        raise TypeError(f"token_verifier={type(token_verifier).__name__} has no method verify_token. {_ADVICE}")
    if auth is None:
        return verifier_auth(token_verifier)
    if not isinstance(auth, BaseModel) or not hasattr(auth, "issuer_url"):
        raise TypeError(
            f"auth={type(auth).__name__} can't be combined with token_verifier=. Pass one of them, or AuthSettings of "
            "the official SDK as auth=."
        )
    return _auth_with_settings(auth, token_verifier)


def verifier_auth(
    verifier: Any,
    scopes: Iterable[str] = (),
    *,
    metadata: ProtectedResource | None = None,
    token_resource: str | None = None,
) -> Auth:
    """Return the options for a verifier.

    Args:
        verifier: The object with ``verify_token``.
        scopes: Scopes that every caller needs in addition to those of the verifier.
        metadata: Metadata that tell clients where to get tokens.
        token_resource: The URL that tokens must be issued for; None to accept tokens for any.
    """
    if isinstance(verifier, type):
        raise TypeError(f"auth must be a verifier, not a class. Write {verifier.__name__}(...).")
    refuse_middleware(type(verifier))
    scopes = tuple(dict.fromkeys([*scopes, *(getattr(verifier, "required_scopes", None) or ())]))
    return Auth(authenticator_of(verifier, token_resource), resource=metadata, scopes=scopes, lists="closed")


def _auth_with_settings(settings: Any, verifier: Any) -> Auth:
    """Return the options for a verifier and the SDK's AuthSettings.

    Raises:
        TypeError: The settings have a member that funcmcp has nothing for.
        ValueError: A URL of the settings is not secure.
    """
    unhandled = [name for name, value in settings if name not in _HANDLED_SETTINGS and getattr(value, "enabled", value)]
    if unhandled:
        raise TypeError(
            f"funcmcp.compat does not support {', '.join(unhandled)} of {type(settings).__name__}: funcmcp is not an "
            "authorization server. Remove them, and configure the authorization server of issuer_url."
        )
    return verifier_auth(verifier, settings.required_scopes or (), **settings_metadata(settings))


class SettingsMetadata(TypedDict):
    """What the SDK's AuthSettings say about the resource.

    Attributes:
        metadata: The metadata of the server; None if the settings have no URL of it.
        token_resource: The URL that tokens must be issued for; None to accept tokens for any.
    """

    metadata: ProtectedResource | None
    token_resource: str | None


def settings_metadata(settings: Any) -> SettingsMetadata:
    """Return what the SDK's AuthSettings say about the resource.

    Raises:
        ValueError: A URL of the settings is not secure.
    """
    if settings.resource_server_url is None:
        return {"metadata": None, "token_resource": None}
    url = str(settings.resource_server_url)
    scopes = settings.required_scopes or ()
    metadata = ProtectedResource(resource=url, authorization_servers=[str(settings.issuer_url)], scopes=scopes)
    validates = getattr(settings, "validate_token_resource", None)  # settings of the SDK 1.x don't have it
    return {"metadata": metadata, "token_resource": url if validates else None}


def refuse_middleware(cls: type) -> None:
    """Raise TypeError for a class whose checks would be lost."""
    get_middleware = getattr(cls, "get_middleware", None)
    if get_middleware is not None and not get_middleware.__module__.startswith("fastmcp."):
        raise TypeError(f"{cls.__name__} has a method get_middleware, which funcmcp.compat does not call. {_ADVICE}")


def authenticator_of(verifier: Any, resource: str | None = None) -> Authenticator:
    """Return an authenticator for an object whose ``verify_token`` returns an access token or None.

    Args:
        verifier: The object.
        resource: The URL that tokens must be issued for; None to accept tokens for any.
    """
    log = LineLimit()

    async def authenticate(headers: Mapping[str, str]) -> Identity:
        header = headers.get("authorization", "")
        if not header.lower().startswith(_SCHEME):
            return None
        token = header[len(_SCHEME) :]
        if not token.strip():  # servers strip the header, so that no verifier of FastMCP or the SDK gets it
            return None
        try:
            result = await verifier.verify_token(token)
        except Exception as error:
            if not _is_outage(error):
                raise
            text = escaped(str(error)[:200])
            log.write("event=token_not_verified verifier=%s reason=%s", type(verifier).__name__, text)
            raise UnavailableError("The token can't be checked now. Try again later.") from error
        if not result:
            return Challenge("invalid_token", "The token is invalid or has expired.")
        access = _checked(token, result)
        if access.expires_at is not None and access.expires_at <= time():
            return Challenge("invalid_token", "The token has expired.")
        if resource is not None and not _is_same_url(access.resource, resource):
            return Challenge("invalid_token", "The token is for another resource.")
        confirmation = (access.claims or {}).get("cnf")
        if isinstance(confirmation, dict) and "jkt" in confirmation:  # RFC 9449: not without a proof
            return Challenge("invalid_token", "The token is bound to a key, so it can't be a bearer token.")
        return _principal(access, type(verifier).__name__)

    return authenticate


def _is_outage(error: Exception) -> bool:
    """Return whether a verifier says that it can't check a token now; its class may be that of FastMCP."""
    return any(cls.__name__ == TokenVerificationError.__name__ for cls in type(error).__mro__)


def _checked(token: str, result: Any) -> AccessToken:
    """Return what a verifier has returned; raise ValidationError or AttributeError if it is not an access token."""
    return AccessToken(
        token=token,
        client_id=result.client_id,
        scopes=result.scopes,
        expires_at=result.expires_at,
        resource=getattr(result, "resource", None),
        subject=getattr(result, "subject", None),
        claims=getattr(result, "claims", None) or {},
    )


def _is_same_url(resource: str | None, server: str) -> bool:
    """Return whether the resource of a token is the server's URL, apart from a slash at the end."""
    try:
        url = str(AnyHttpUrl(resource or ""))
    except ValidationError:
        return False
    return url.removesuffix("/") == str(AnyHttpUrl(server)).removesuffix("/")


def _principal(access: AccessToken, default_issuer: str) -> Principal:
    """Return the principal that a token names.

    Only ``sub`` is the id of a user at every issuer: other claims may be the same for all users of an organization.
    """
    subject = access.subject or access.claims.get("sub")
    per_token = not isinstance(subject, str) or not subject
    if per_token:
        subject = hashlib.sha256(access.token.encode("utf-8", "surrogatepass")).hexdigest()
    return TokenPrincipal(
        subject=str(subject),
        issuer=str(access.claims.get("iss") or default_issuer),
        client_id=access.client_id,
        scopes=frozenset(access.scopes),
        claims=access.claims,
        per_token=per_token,
        access_token=access,
    )


@public("funcmcp.compat")
class TokenVerificationError(RuntimeError):
    """A verifier can't check a token now, for example because another server is away. The client gets status 503."""


@public("funcmcp.compat")
class AuthProvider:
    """The base class of verifiers and providers under its name in FastMCP.

    Args:
        base_url: The public URL of the server, without the path of the endpoint.
        required_scopes: Scopes that every caller needs.
        resource_base_url: The public URL of the resource, if it is another one.
    """

    def __init__(
        self, base_url: Any = None, required_scopes: list[str] | None = None, resource_base_url: Any = None
    ) -> None:
        self.base_url: Any = url_of(base_url)
        self.required_scopes: list[str] = required_scopes or []
        self.resource_base_url: Any = url_of(resource_base_url)
        self._mcp_path: str | None = None
        self._resource_url: Any = None

    async def verify_token(self, token: str) -> Any:
        """Return the access token, or None if the token is invalid."""
        raise NotImplementedError

    @property
    def scopes_supported(self) -> list[str]:
        """The scopes in the metadata of the server."""
        return self.required_scopes

    @property
    def challenge_scopes(self) -> list[str]:
        """The scopes in the challenge for a caller without a token."""
        return self.get_challenge_scopes()

    def get_challenge_scopes(self, required_scopes: list[str] | None = None) -> list[str]:
        """Return scopes in the form in which clients request them."""
        return self.required_scopes if required_scopes is None else required_scopes

    @property
    def mcp_path(self) -> str | None:
        """The path of the endpoint; None as long as no server has the provider."""
        return self._mcp_path

    def set_mcp_path(self, mcp_path: str | None) -> None:
        """Set the path of the endpoint, from which the URL of the resource follows. The server calls it."""
        self._mcp_path = mcp_path
        self._resource_url = self._get_resource_url(mcp_path)

    def _get_resource_url(self, path: str | None = None) -> Any:
        base = self.resource_base_url or self.base_url
        if base is None or not path:
            return base
        return AnyHttpUrl(f"{str(base).rstrip('/')}/{path.lstrip('/')}")

    def get_routes(self, mcp_path: str | None = None) -> list[Any]:
        """Return routes of Starlette that the server serves in addition. Subclasses may override it.

        Args:
            mcp_path: The path of the endpoint.
        """
        self.set_mcp_path(mcp_path)
        return []

    def get_well_known_routes(self, mcp_path: str | None = None) -> list[Any]:
        """Return those routes whose path begins with ``/.well-known/``, for an application that mounts the server."""
        return [route for route in self.get_routes(mcp_path) if str(route.path).startswith(_WELL_KNOWN)]

    @property
    def has_routes(self) -> bool:
        """Whether `get_routes` returns routes that the server has to serve."""
        return type(self).get_routes is not AuthProvider.get_routes

    def served_routes(self, path: str) -> list[Any]:
        """Return the routes of `get_routes` but the metadata of the server, which it serves anyway.

        Args:
            path: The path of the endpoint.
        """
        if not self.has_routes:
            return []
        return [route for route in self.get_routes(path) if not _path_of(route).startswith(_RESOURCE_METADATA)]

    def native_auth(self, path: str) -> Auth:
        """Return funcmcp's options of authentication.

        Args:
            path: The path of the endpoint.
        """
        self.set_mcp_path(path)
        refuse_middleware(type(self))
        return verifier_auth(self)


def _path_of(route: Any) -> str:
    """Return the path of a route; raise TypeError for an object that is not a route of Starlette."""
    path = getattr(route, "path", None)
    if not isinstance(path, str) or not callable(getattr(route, "endpoint", None)):
        raise TypeError(
            f"get_routes returned {type(route).__name__}. funcmcp.compat serves Route objects of Starlette only."
        )
    return path


def url_of(value: Any) -> Any:
    """Return a URL as FastMCP has it, with a slash behind a host; None for None."""
    return AnyHttpUrl(value) if isinstance(value, str) else value


@public("funcmcp.compat")
class TokenVerifier(AuthProvider):
    """The base class of verifiers: a subclass has an async method ``verify_token``, which returns an `AccessToken`."""


@public("funcmcp.compat")
class StaticTokenVerifier(TokenVerifier):
    """Accepts the tokens of a dict, for tests.

    Args:
        tokens: The claims by token: ``client_id``, and if they are needed ``scopes``, ``expires_at`` and ``sub``.
        required_scopes: Scopes that every caller needs.
    """

    def __init__(self, tokens: Mapping[str, Mapping[str, Any]], required_scopes: list[str] | None = None) -> None:
        super().__init__(required_scopes=required_scopes)
        self.tokens = tokens

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the access token, or None if the token is unknown or expired, or lacks a scope."""
        claims = self.tokens.get(token)
        if not claims:
            return None
        expires_at, scopes = claims.get("expires_at"), claims.get("scopes", [])
        if expires_at is not None and expires_at < time():
            return None
        if not set(self.required_scopes).issubset(scopes):
            return None
        return AccessToken(
            token=token,
            client_id=claims["client_id"],
            scopes=scopes,
            expires_at=expires_at,
            subject=claims.get("sub"),
            claims=dict(claims),
        )
