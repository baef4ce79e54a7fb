"""Providers of FastMCP whose clients get their tokens at the identity provider itself, and `MultiAuth`.

How it works: a provider has a verifier of tokens, and publishes metadata that lead clients to the identity provider.
For old clients, which look for the metadata of the identity provider at this server, it passes these on.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from hashlib import sha256
from time import monotonic
from typing import TYPE_CHECKING, Any

from funcmcp._auth.authenticator import first_of
from funcmcp._auth.policy import Auth
from funcmcp._auth.protected_resource import ProtectedResource
from funcmcp._compat.auth import (
    AuthProvider,
    TokenVerificationError,
    TokenVerifier,
    authenticator_of,
    refuse_middleware,
    url_of,
    verifier_auth,
)
from funcmcp._compat.request_parts import AccessToken
from funcmcp._compat.token_verifiers import Auth0JWTVerifier, IntrospectionTokenVerifier, JWTVerifier, parsed_scopes
from funcmcp._objects.mappings import only
from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pydantic import SecretStr

_logger = logging.getLogger("funcmcp.compat")
_AS_METADATA = "/.well-known/oauth-authorization-server"
_OPENID_METADATA = "/.well-known/openid-configuration"
_RESOURCE_METADATA = "/.well-known/oauth-protected-resource"
_KEPT_SECONDS = 300.0
_PAUSE_SECONDS = 5.0
_OVERRIDES = ("timeout_seconds", "cache_ttl_seconds", "max_cache_size", "http_client")
"""Arguments of the verifier that authors may choose for PropelAuth."""

_IDENTITY = ("issuer", "issuer_url", "introspection_url", "jwks_uri")
"""Attributes that distinguish a source of tokens."""


def _plain(url: Any) -> str:
    return str(url).rstrip("/")


@public("funcmcp.compat")
class RemoteAuthProvider(AuthProvider):
    """Accepts the tokens of a verifier, and leads clients to the servers that issue them.

    Args:
        token_verifier: The verifier.
        authorization_servers: The URLs of the issuers.
        base_url: The public URL of the server, without the path of the endpoint.
        scopes_supported: The scopes in the metadata. By default they are those of the verifier.
        resource_base_url: The public URL of the resource, if it is another one.
        resource_name: A name of the server for people.
        resource_documentation: The URL of a page for developers.
        challenge_scopes: The scopes in the challenge for a caller without a token.
        required_scopes: Scopes that every caller needs. By default they are those of the verifier.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - FastMCP's parameters
        self,
        token_verifier: Any,
        authorization_servers: Sequence[Any],
        base_url: Any,
        scopes_supported: list[str] | None = None,
        resource_base_url: Any = None,
        resource_name: str | None = None,
        resource_documentation: Any = None,
        challenge_scopes: list[str] | None = None,
        required_scopes: list[str] | None = None,
    ) -> None:
        scopes = token_verifier.required_scopes if required_scopes is None else required_scopes
        super().__init__(base_url, scopes, resource_base_url)
        self.token_verifier = token_verifier
        self.authorization_servers: list[Any] = list(authorization_servers)
        self._scopes_supported = scopes_supported
        self._challenge_scopes = challenge_scopes
        self.resource_name = resource_name
        self.resource_documentation = resource_documentation
        self._forwarded = _Forwarded()

    @property
    def scopes_supported(self) -> list[str]:
        """The scopes in the metadata of the server."""
        if self._scopes_supported is not None:
            return self._scopes_supported
        scopes: list[str] = getattr(self.token_verifier, "scopes_supported", None) or self.required_scopes
        return scopes

    def get_challenge_scopes(self, required_scopes: list[str] | None = None) -> list[str]:
        """Return scopes in the form in which clients request them."""
        scopes = self.required_scopes if required_scopes is None else required_scopes
        if scopes == self.required_scopes and self._challenge_scopes is not None:
            return self._challenge_scopes
        translate = getattr(self.token_verifier, "get_challenge_scopes", None)
        translated: list[str] = scopes if translate is None else translate(required_scopes)
        return translated

    async def verify_token(self, token: str) -> Any:
        """Return the access token, or None if the token is invalid."""
        return await self.token_verifier.verify_token(token)

    def resource_at(self, path: str | None) -> ProtectedResource:
        """Return the metadata of an endpoint.

        Raises:
            ValueError: A URL does not begin with https, or is not absolute.
        """
        documentation = self.resource_documentation
        return ProtectedResource(
            resource=str(self._get_resource_url(path)),
            authorization_servers=[str(server) for server in self.authorization_servers],
            scopes=self.scopes_supported,
            name=self.resource_name,
            documentation=None if documentation is None else str(documentation),
        )

    def metadata_urls(self) -> list[str]:
        """Return the URLs of the metadata that are passed on to old clients; the first one that answers counts."""
        return []

    def get_routes(self, mcp_path: str | None = None) -> list[Any]:
        """Return the routes with the metadata, as routes of Starlette."""
        from starlette.responses import JSONResponse  # noqa: PLC0415 - an author's own dependency
        from starlette.routing import Route  # noqa: PLC0415 - as above

        self.set_mcp_path(mcp_path)
        resource = self.resource_at(mcp_path)

        async def metadata(_: Any) -> Any:
            return JSONResponse(resource.document, headers={"cache-control": "public, max-age=3600"})

        async def forwarded(_: Any) -> Any:
            document = await self._forwarded.document(self.metadata_urls())
            if document is None:
                error = {"error": "server_error", "error_description": "The metadata are not available now."}
                return JSONResponse(error, status_code=500)
            return JSONResponse(document)

        routes: list[Any] = [Route(resource.paths[0], metadata, methods=["GET"])]
        if self.metadata_urls():
            routes.append(Route(_AS_METADATA, forwarded, methods=["GET"]))
        return routes

    @property
    def has_routes(self) -> bool:
        """Whether `get_routes` returns more than the metadata of the server, which the server has anyway."""
        return bool(self.metadata_urls()) or type(self).get_routes is not RemoteAuthProvider.get_routes

    def native_auth(self, path: str) -> Auth:
        """Return funcmcp's options of authentication."""
        self.set_mcp_path(path)
        refuse_middleware(type(self))
        return verifier_auth(self, metadata=self.resource_at(path))


class _Forwarded:
    """A document of another server, requested once for many requests."""

    def __init__(self) -> None:
        self._document: Any = None
        self._end = -1.0
        self._lock = asyncio.Lock()

    async def document(self, urls: Sequence[str]) -> Any:
        """Return the first document that one of the URLs answers, or the last one that did; None without any."""
        async with self._lock:
            if monotonic() >= self._end:
                document = await _first_of(urls)
                self._end = monotonic() + (_PAUSE_SECONDS if document is None else _KEPT_SECONDS)
                self._document = self._document if document is None else document
            return self._document


async def _first_of(urls: Sequence[str]) -> Any:
    import httpx2  # noqa: PLC0415 - slow to load, and few servers need it

    async with httpx2.AsyncClient(timeout=10.0, follow_redirects=False) as client:
        for url in urls:
            try:
                response = await client.get(url)
                response.raise_for_status()
                return response.json()
            except Exception as error:  # noqa: BLE001 - the next one may answer
                _logger.info("The metadata at %s are not available: %s.", url, type(error).__name__)
    return None


class _Provider(RemoteAuthProvider):
    """A provider whose verifier follows from its options.

    Args:
        verifier: The verifier of the author; None for *default*.
        default: Makes the verifier of the provider.
        server: The URL of the issuer.
        scopes: ``required_scopes`` of the author.
        options: The other arguments of `RemoteAuthProvider`.
    """

    def __init__(self, verifier: Any, default: Callable[[], Any], server: Any, scopes: Any, **options: Any) -> None:
        chosen = default() if verifier is None else verifier
        base_url = url_of(_plain(options.pop("base_url")))
        super().__init__(chosen, [server], base_url, required_scopes=parsed_scopes(scopes), **options)


class _BoundProvider(_Provider):
    """A provider whose tokens are for the URL of the resource, so that its verifier demands it."""

    def __init__(self, verifier: Any, default: Callable[[], Any], server: Any, scopes: Any, **options: Any) -> None:
        super().__init__(verifier, default, server, scopes, **options)
        self._binds_audience = verifier is None

    def set_mcp_path(self, mcp_path: str | None) -> None:
        """Set the path of the endpoint, and the audience of tokens with it."""
        super().set_mcp_path(mcp_path)
        if self._binds_audience and self._resource_url is not None:
            self.token_verifier.audience = str(self._resource_url)


@public("funcmcp.compat")
class AuthKitProvider(_BoundProvider):
    """Accepts tokens of WorkOS AuthKit for the URL of the endpoint.

    Args:
        authkit_domain: The URL of AuthKit.
        base_url: The public URL of the server.
        required_scopes: Scopes that every caller needs.
        token_verifier: A verifier in place of that of AuthKit.
        options: The other arguments of `RemoteAuthProvider`.
    """

    def __init__(
        self,
        *,
        authkit_domain: Any,
        base_url: Any,
        required_scopes: Any = None,
        token_verifier: Any = None,
        **options: Any,
    ) -> None:
        self.authkit_domain: str = _plain(authkit_domain)

        def verifier() -> JWTVerifier:
            return JWTVerifier(
                jwks_uri=f"{self.authkit_domain}/oauth2/jwks",
                issuer=self.authkit_domain,
                required_scopes=required_scopes,
            )

        super().__init__(token_verifier, verifier, self.authkit_domain, required_scopes, base_url=base_url, **options)

    def metadata_urls(self) -> list[str]:
        """Return the URL of the metadata that are passed on."""
        return [f"{self.authkit_domain}{_AS_METADATA}"]


@public("funcmcp.compat")
class Auth0MCPProvider(_BoundProvider):
    """Accepts tokens of Auth0 for the URL of the endpoint.

    Args:
        config_url: The URL of the OpenID configuration of the tenant.
        base_url: The public URL of the server.
        required_scopes: Scopes that every caller needs.
        token_verifier: A verifier in place of that of Auth0.
        timeout_seconds: Changes nothing: the configuration is not requested.
        options: The other arguments of `RemoteAuthProvider`.

    Raises:
        ValueError: *config_url* is not the URL of an OpenID configuration.
    """

    def __init__(
        self,
        *,
        config_url: Any,
        base_url: Any,
        required_scopes: Any = None,
        token_verifier: Any = None,
        timeout_seconds: float | None = None,
        **options: Any,
    ) -> None:
        del timeout_seconds
        self.config_url: str = str(config_url)
        domain = issuer_in(self.config_url)

        def verifier() -> JWTVerifier:
            return Auth0JWTVerifier(
                jwks_uri=f"{domain}/.well-known/jwks.json", issuer=f"{domain}/", required_scopes=required_scopes
            )

        super().__init__(token_verifier, verifier, url_of(domain), required_scopes, base_url=base_url, **options)

    def metadata_urls(self) -> list[str]:
        """Return the URL of the metadata that are passed on."""
        return [self.config_url]


def issuer_in(config_url: str) -> str:
    """Return the issuer whose OpenID configuration is at a URL, without a slash at the end; raise ValueError."""
    issuer, separator, _ = config_url.rpartition(_OPENID_METADATA)
    if not separator:
        raise ValueError(f"config_url must end with {_OPENID_METADATA}; got {config_url!r}.")
    return issuer.rstrip("/")


class DescopeVerifier(JWTVerifier):
    """Accepts the tokens of all issuers of a Descope project.

    Args:
        descope_base_url: The URL of Descope.
        project_id: The project.
        options: The other arguments of `JWTVerifier`.
    """

    def __init__(self, *, descope_base_url: str, project_id: str, **options: Any) -> None:
        super().__init__(**options)
        self.project_issuer: str = f"{descope_base_url}/v1/apps/{project_id}"
        self.agentic_issuer: str = f"{descope_base_url}/v1/apps/agentic/{project_id}"

    def _validate_issuer(self, issuer: Any) -> bool:
        if super()._validate_issuer(issuer):
            return True
        for prefix in (self.agentic_issuer, self.project_issuer):
            if isinstance(issuer, str) and issuer.startswith(f"{prefix}/"):
                segment = issuer.removeprefix(f"{prefix}/").strip("/")
                return bool(segment) and "/" not in segment
        return False


@public("funcmcp.compat")
class DescopeProvider(_Provider):
    """Accepts tokens of a Descope project.

    Args:
        base_url: The public URL of the server.
        config_url: The URL of the OpenID configuration of the project, or of one of its servers.
        project_id: The project, if there is no *config_url*.
        descope_base_url: The URL of Descope, if there is no *config_url*.
        required_scopes: Scopes that every caller needs.
        token_verifier: A verifier in place of that of Descope.
        options: The other arguments of `RemoteAuthProvider`.

    Raises:
        ValueError: The project is not known.
    """

    def __init__(
        self,
        *,
        base_url: Any,
        config_url: Any = None,
        project_id: str | None = None,
        descope_base_url: Any = None,
        required_scopes: Any = None,
        token_verifier: Any = None,
        **options: Any,
    ) -> None:
        if config_url is not None:
            issuer = _plain(str(config_url).removesuffix("/").removesuffix(_OPENID_METADATA))
            url, project = _descope_project(issuer)
        elif project_id is not None and descope_base_url is not None:
            url = _plain(descope_base_url)
            url = url if url.startswith(("http://", "https://")) else f"https://{url}"
            project = project_id
            issuer = f"{url}/v1/apps/{project}"
        else:
            raise ValueError("Either config_url or both project_id and descope_base_url must be provided")
        self.descope_base_url: str = url
        self.project_id: str = project
        self.openid_configuration_url: str = f"{issuer}{_OPENID_METADATA}"
        self.oauth_authorization_server_metadata_url: str = f"{issuer}{_AS_METADATA}"

        def verifier() -> JWTVerifier:
            return DescopeVerifier(
                descope_base_url=self.descope_base_url,
                project_id=self.project_id,
                jwks_uri=f"{self.descope_base_url}/{self.project_id}/.well-known/jwks.json",
                issuer=f"{self.descope_base_url}/v1/apps/{self.project_id}",
                audience=self.project_id,
                required_scopes=required_scopes,
            )

        super().__init__(token_verifier, verifier, url_of(issuer), required_scopes, base_url=base_url, **options)

    def metadata_urls(self) -> list[str]:
        """Return the URLs of the metadata that are passed on."""
        project = f"{self.descope_base_url}/v1/apps/{self.project_id}{_AS_METADATA}"
        return list(dict.fromkeys([self.oauth_authorization_server_metadata_url, project]))


def _descope_project(issuer: str) -> tuple[str, str]:
    """Return the URL of Descope and the project in an issuer; raise ValueError."""
    base, separator, path = issuer.partition("/v1/apps/")
    segments = [segment for segment in path.split("/") if segment]
    if segments[:1] == ["agentic"]:
        segments = segments[1:]
    if not separator or not segments:
        raise ValueError(f"Could not extract project_id from config_url: {issuer}")
    return base, segments[0]


@public("funcmcp.compat")
class ScalekitProvider(_Provider):
    """Accepts tokens of Scalekit for a resource.

    Args:
        environment_url: The URL of the environment.
        resource_id: The id of the resource there.
        base_url: The public URL of the server.
        mcp_url: The old name of *base_url*.
        client_id: Changes nothing.
        required_scopes: Scopes that every caller needs.
        token_verifier: A verifier in place of that of Scalekit.
        options: The other arguments of `RemoteAuthProvider`.

    Raises:
        ValueError: There is no *base_url*.
    """

    def __init__(  # noqa: PLR0913 - FastMCP's parameters
        self,
        *,
        environment_url: Any,
        resource_id: str,
        base_url: Any = None,
        mcp_url: Any = None,
        client_id: str | None = None,
        required_scopes: Any = None,
        token_verifier: Any = None,
        **options: Any,
    ) -> None:
        if not (base_url or mcp_url):
            raise ValueError("Either base_url or mcp_url must be provided")
        if mcp_url is not None or client_id is not None:
            _logger.warning("ScalekitProvider: mcp_url is deprecated, write base_url; client_id changes nothing.")
        self.environment_url: str = _plain(environment_url)
        self.resource_id = resource_id
        resource = f"{self.environment_url}/resources/{resource_id}"

        def verifier() -> JWTVerifier:
            return JWTVerifier(
                jwks_uri=f"{self.environment_url}/keys",
                issuer=[self.environment_url, resource],
                audience=resource_id,
                required_scopes=required_scopes,
            )

        super().__init__(
            token_verifier, verifier, url_of(resource), required_scopes, base_url=base_url or mcp_url, **options
        )

    def metadata_urls(self) -> list[str]:
        """Return the URL of the metadata that are passed on."""
        return [f"{self.environment_url}{_AS_METADATA}/resources/{self.resource_id}"]


@public("funcmcp.compat")
class SupabaseProvider(_Provider):
    """Accepts tokens of a Supabase project, which are not for one server alone.

    Args:
        project_url: The URL of the project.
        base_url: The public URL of the server.
        auth_route: The path of the sign-in there.
        algorithm: The algorithm of the signatures.
        required_scopes: Scopes that every caller needs.
        token_verifier: A verifier in place of that of Supabase.
        options: The other arguments of `RemoteAuthProvider`.
    """

    def __init__(
        self,
        *,
        project_url: Any,
        base_url: Any,
        auth_route: str = "/auth/v1",
        algorithm: str = "ES256",
        required_scopes: Any = None,
        token_verifier: Any = None,
        **options: Any,
    ) -> None:
        self.project_url: str = _plain(project_url)
        self.auth_route: str = auth_route.strip("/")
        issuer = f"{self.project_url}/{self.auth_route}"

        def verifier() -> JWTVerifier:
            return JWTVerifier(
                jwks_uri=f"{issuer}/.well-known/jwks.json",
                issuer=issuer,
                algorithm=algorithm,
                audience="authenticated",
                required_scopes=required_scopes,
            )

        super().__init__(token_verifier, verifier, url_of(issuer), required_scopes, base_url=base_url, **options)

    def metadata_urls(self) -> list[str]:
        """Return the URL of the metadata that are passed on."""
        return [f"{self.project_url}/{self.auth_route}{_AS_METADATA}"]


@public("funcmcp.compat")
class KeycloakAuthProvider(_Provider):
    """Accepts tokens of a Keycloak realm. Set *audience*, or any token of the realm is accepted.

    Args:
        realm_url: The URL of the realm.
        base_url: The public URL of the server.
        required_scopes: Scopes that every caller needs, by default ``openid``.
        audience: The audiences that are accepted; None for any.
        token_verifier: A verifier in place of that of Keycloak.
    """

    def __init__(
        self,
        *,
        realm_url: Any,
        base_url: Any,
        required_scopes: Any = None,
        audience: str | list[str] | None = None,
        token_verifier: Any = None,
    ) -> None:
        self.realm_url: str = _plain(realm_url)

        def verifier() -> JWTVerifier:
            return JWTVerifier(
                jwks_uri=f"{self.realm_url}/protocol/openid-connect/certs",
                issuer=self.realm_url,
                audience=audience,
                required_scopes=["openid"] if required_scopes is None else required_scopes,
            )

        super().__init__(token_verifier, verifier, url_of(self.realm_url), required_scopes, base_url=base_url)


@public("funcmcp.compat")
class PropelAuthProvider(_Provider):
    """Accepts tokens of PropelAuth, which it asks about each of them.

    Args:
        auth_url: The URL of PropelAuth.
        introspection_client_id: The id of the server there.
        introspection_client_secret: Its secret.
        base_url: The public URL of the server.
        required_scopes: Scopes that every caller needs.
        resource: The audience that tokens must have; None for any.
        token_introspection_overrides: The time limit, the cache and the client of `IntrospectionTokenVerifier`.
        options: The other arguments of `RemoteAuthProvider`.
    """

    def __init__(  # noqa: PLR0913 - FastMCP's parameters
        self,
        *,
        auth_url: Any,
        introspection_client_id: str,
        introspection_client_secret: str | SecretStr,
        base_url: Any,
        required_scopes: Any = None,
        resource: Any = None,
        token_introspection_overrides: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.auth_url: str = _plain(auth_url)
        self.resource: str | None = None if resource is None else str(resource)
        issuer = f"{self.auth_url}/oauth/2.1"

        def verifier() -> IntrospectionTokenVerifier:
            return IntrospectionTokenVerifier(
                introspection_url=f"{issuer}/introspect",
                client_id=introspection_client_id,
                client_secret=introspection_client_secret,
                required_scopes=required_scopes,
                **only(token_introspection_overrides or {}, _OVERRIDES),
            )

        super().__init__(None, verifier, url_of(issuer), required_scopes, base_url=base_url, **options)

    async def verify_token(self, token: str) -> Any:
        """Return the access token, or None if the token is invalid or for another audience."""
        access = await super().verify_token(token)
        if access is None or self.resource is None or access.claims.get("aud") == self.resource:
            return access
        return None

    def metadata_urls(self) -> list[str]:
        """Return the URL of the metadata that are passed on."""
        return [f"{self.auth_url}{_AS_METADATA}/oauth/2.1"]


@public("funcmcp.compat")
class MultiAuth(AuthProvider):
    """Accepts the tokens of a provider, and of several verifiers.

    Args:
        server: The provider, whose metadata and endpoints are served. Its tokens are checked first.
        verifiers: One verifier, a list, or a dict with a name for each.
        server_source_id: The name of the provider as a source of tokens.
        base_url: The public URL of the server; by default the provider's.
        resource_base_url: The public URL of the resource; by default the provider's.
        required_scopes: Scopes that every caller needs; by default the provider's.

    Raises:
        ValueError: There is neither a provider nor a verifier, or a name is empty or not unique.
    """

    def __init__(
        self,
        *,
        server: AuthProvider | None = None,
        verifiers: Mapping[str, TokenVerifier] | Sequence[TokenVerifier] | TokenVerifier | None = None,
        server_source_id: str | None = None,
        base_url: Any = None,
        resource_base_url: Any = None,
        required_scopes: list[str] | None = None,
    ) -> None:
        names, listed = _named(verifiers)
        self.verifiers: list[Any] = listed
        if server_source_id is not None and server is None:
            raise ValueError("server_source_id requires a server")
        if server is None and not self.verifiers:
            raise ValueError("MultiAuth requires at least a server or one verifier")
        self._chosen_scopes = required_scopes
        scopes = required_scopes
        if server is not None:
            scopes = server.required_scopes if scopes is None else scopes
            base_url = base_url or server.base_url
            if resource_base_url is not None:
                server.resource_base_url = url_of(resource_base_url)
            resource_base_url = server.resource_base_url
        super().__init__(base_url, scopes, resource_base_url)
        self.server: AuthProvider | None = server
        of_server = [] if server is None else [(server_source_id, server)]
        sources = [*of_server, *zip(names, self.verifiers, strict=True)]
        self._sources: list[Any] = [source for _, source in sources]
        self._source_ids: list[str] = _checked_ids([name or _identity_of(source) for name, source in sources])

    @property
    def source_ids(self) -> list[str]:
        """The names of the sources, that of the provider first."""
        return self._source_ids

    @property
    def scopes_supported(self) -> list[str]:
        """The scopes in the metadata of the server."""
        return self.required_scopes if self.server is None else self.server.scopes_supported

    def get_challenge_scopes(self, required_scopes: list[str] | None = None) -> list[str]:
        """Return scopes in the form in which clients request them, which the provider or the only verifier knows."""
        scopes = self._chosen_scopes if required_scopes is None else required_scopes
        if self.server is not None:
            return self.server.get_challenge_scopes(scopes)
        translate = getattr(self.verifiers[0], "get_challenge_scopes", None) if len(self.verifiers) == 1 else None
        if translate is None:
            return self.required_scopes if scopes is None else scopes
        translated: list[str] = translate(scopes)
        return translated

    async def verify_token(self, token: str) -> Any:
        """Return the access token of the first source that accepts the token; None if none does.

        Raises:
            TokenVerificationError: No source accepts it, and one of them can't check it now.
        """
        return await self.verify_with(token, list(zip(self._source_ids, self._sources, strict=True)))

    async def verify_with(self, token: str, sources: Sequence[tuple[str, Any]]) -> Any:
        """Do the same as `verify_token`, with these sources by name.

        Raises:
            TokenVerificationError: As there.
        """
        failure: TokenVerificationError | None = None
        for name, source in sources:
            try:
                access = await source.verify_token(token)
            except TokenVerificationError as error:
                failure = failure or error
                continue
            except Exception:
                _logger.info("%s could not check a token.", type(source).__name__, exc_info=True)
                continue
            if access is not None:
                return _of_source(access, name, source)
        if failure is not None:
            raise failure
        return None

    def set_mcp_path(self, mcp_path: str | None) -> None:
        """Set the path of the endpoint for all sources."""
        super().set_mcp_path(mcp_path)
        for source in self._sources:
            if isinstance(source, AuthProvider):
                source.set_mcp_path(mcp_path)

    def get_routes(self, mcp_path: str | None = None) -> list[Any]:
        """Return the routes of the provider."""
        self.set_mcp_path(mcp_path)
        return [] if self.server is None else self.server.get_routes(mcp_path)

    def served_routes(self, path: str) -> list[Any]:
        """Return the routes of the provider that the server has to serve."""
        return [] if self.server is None else self.server.served_routes(path)

    def native_auth(self, path: str) -> Auth:
        """Return funcmcp's options of authentication."""
        self.set_mcp_path(path)
        refuse_middleware(type(self))
        if self.server is None:
            return verifier_auth(self)
        auth = self.server.native_auth(path)
        if getattr(auth.authenticator, "issues_tokens", False):
            # Tokens of the proxy are its own, so the other sources never see them.
            others = authenticator_of(_OtherSources(self))
            return Auth(first_of(auth.authenticator, others), scopes=tuple(self.required_scopes), lists="closed")
        return verifier_auth(self, metadata=auth.resource)


def _named(verifiers: Any) -> tuple[list[str | None], list[Any]]:
    """Return the names of verifiers, and the verifiers."""
    if isinstance(verifiers, Mapping):
        names = list(verifiers)
        if not all(isinstance(name, str) and name.strip() and name == name.strip() for name in names):
            raise ValueError("MultiAuth source IDs must be nonempty strings without outer whitespace")
        return list(names), list(verifiers.values())
    listed = [verifiers] if isinstance(verifiers, TokenVerifier) else list(verifiers or [])
    return [None] * len(listed), listed


def _checked_ids(names: list[str]) -> list[str]:
    """Return the names of sources; raise ValueError if one is empty or two are the same."""
    if not all(name.strip() and name == name.strip() for name in names):
        raise ValueError("MultiAuth source IDs must be nonempty strings without outer whitespace")
    if len(set(names)) != len(names):
        raise ValueError("MultiAuth source IDs must be unique; name each distinct source explicitly")
    return names


def _identity_of(source: Any) -> str:
    """Return what distinguishes a source of tokens: its issuer and its endpoint, and otherwise its class."""
    values = {name: getattr(source, name, None) for name in _IDENTITY}
    chosen = {name: sorted(value) if isinstance(value, list) else str(value) for name, value in values.items() if value}
    inner = getattr(source, "token_verifier", None)
    if not chosen and inner is not None:
        chosen = {"token_verifier": _identity_of(inner)}
    chosen = chosen or {"provider": f"{type(source).__module__}.{type(source).__qualname__}"}
    return f"configured:{sha256(json.dumps(chosen, sort_keys=True).encode()).hexdigest()}"


class _OtherSources:
    """The verifiers beside the provider of a `MultiAuth`."""

    def __init__(self, combined: MultiAuth) -> None:
        self._combined = combined

    async def verify_token(self, token: str) -> Any:
        """Return the access token of the first verifier that accepts the token; None if none does."""
        combined = self._combined
        names = combined.source_ids[len(combined.source_ids) - len(combined.verifiers) :]
        return await combined.verify_with(token, list(zip(names, combined.verifiers, strict=True)))


def _of_source(access: Any, name: str, source: Any) -> AccessToken:
    """Return an access token whose client has the name of its source, so that sources share no callers."""
    claims = getattr(access, "claims", None) or {}
    members = {field: getattr(access, field, None) for field in AccessToken.model_fields} | {"claims": claims}
    original = members["original_client_id"] if isinstance(source, MultiAuth) else None
    subject, issuer = members["subject"], claims.get("iss")
    parts = [name, members["client_id"], None if issuer is None else str(issuer), subject]
    members["client_id"] = json.dumps(parts, separators=(",", ":"))
    return AccessToken(**{**members, "original_client_id": original or access.client_id})
