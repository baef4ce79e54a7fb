"""Providers of FastMCP that sign users in, over `funcmcp.auth.OAuthProxy`.

How it works: a provider makes an upstream of funcmcp from its options, and the proxy when a server has it, because the
URL of the endpoint is a part of it. The verifier of a provider checks the provider's token at the sign-in and at each
refresh. A token of the proxy has those scopes of the server that the provider has granted.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from funcmcp._auth.policy import Auth
from funcmcp._auth.principal import Principal
from funcmcp._auth.urls import checked
from funcmcp._compat.auth import AuthProvider, refuse_middleware, url_of
from funcmcp._compat.redirect_patterns import RedirectPatterns
from funcmcp._compat.remote_auth import issuer_in
from funcmcp._compat.request_parts import access_token_of
from funcmcp._compat.token_verifiers import AzureJWTVerifier, parsed_scopes, scopes_in
from funcmcp._oauth_proxy.github import GitHub
from funcmcp._oauth_proxy.google import Google
from funcmcp._oauth_proxy.oauth2 import OAuth2
from funcmcp._oauth_proxy.oidc import OIDC
from funcmcp._oauth_proxy.proxy import OAuthProxy as NativeProxy
from funcmcp._oauth_proxy.settings import IGNORED_SCOPES
from funcmcp._oauth_proxy.upstream import UpstreamRefusedError, User
from funcmcp._objects.mappings import only, without_none
from funcmcp._objects.public_names import public
from funcmcp._state.key_values import SignInStore
from funcmcp._state.seal import KeyRing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from funcmcp._oauth_proxy.oidc import Provider
    from funcmcp._oauth_proxy.upstream import SignIn, Upstream

_logger = logging.getLogger("funcmcp.compat")
_GRANTED = "funcmcp_granted_scopes"
_CLAIMS = (
    *("login", "avatar_url", "picture", "given_name", "family_name", "preferred_username", "username", "upn", "oid"),
    *("locale", "hd", "org_id", "global_name", "html_url", "company", "nickname"),
)
"""Claims that tools get, if the provider has them and they are short texts."""

_MAX_CLAIM = 256
_DEFAULT_SCOPE = "mcp"
"""The scope of a server whose author names none but those of OpenID Connect."""

_ACCESS_SECONDS = 3600


@dataclass(frozen=True, kw_only=True)
class ProxyOptions:
    """The options that all providers of FastMCP have, by their names there.

    Attributes:
        resource_base_url: The public URL of the resource, if it is another one than *base_url*.
        issuer_url: The issuer of the tokens, by default *base_url*.
        redirect_path: The path of the redirect URI that is registered at the provider.
        valid_scopes: Scopes that clients may request, by default the required ones.
        allowed_client_redirect_uris: Patterns of redirect URIs; None: all clients.
        jwt_signing_key: A secret from which the keys of the proxy are derived. None: the keys of FUNCMCP_KEYS.
        client_storage: A store of sign-ins of funcmcp. Stores of other kinds are ignored.
        enable_cimd: Whether the id of a client may be the URL of a document.
        forward_pkce: Whether the provider supports PKCE.
        token_endpoint_auth_method: How the secret is sent to the provider.
        extra_authorize_params: More parameters of the authorization request.
        extra_token_params: More parameters of token requests.
        upstream_revocation_endpoint: The URL at which the provider revokes tokens.
        fastmcp_access_token_expiry_seconds: Seconds after which tokens of the proxy expire.
        identity_assertion: Not supported.
        require_authorization_consent: Is ignored: users are always asked.
        consent_csp_policy: Is ignored.
        service_documentation_url: Is ignored.
        forward_resource: Is ignored: the resource is never sent to the provider.
        fallback_access_token_expiry_seconds: Is ignored.
        fallback_refresh_token_expiry_seconds: Is ignored.
        token_expiry_threshold_seconds: Is ignored.
        timeout_seconds: Is ignored.
        cache_ttl_seconds: Is ignored: the provider is asked at the sign-in and at each refresh.
        max_cache_size: Is ignored.
        http_client: Is ignored.
    """

    resource_base_url: Any = None
    issuer_url: Any = None
    redirect_path: str | None = None
    valid_scopes: Any = None
    allowed_client_redirect_uris: list[str] | None = None
    jwt_signing_key: str | bytes | None = None
    client_storage: Any = None
    enable_cimd: bool = True
    forward_pkce: bool = True
    token_endpoint_auth_method: Any = None
    extra_authorize_params: dict[str, str] | None = None
    extra_token_params: dict[str, str] | None = None
    upstream_revocation_endpoint: str | None = None
    fastmcp_access_token_expiry_seconds: int | None = None
    identity_assertion: Any = None
    require_authorization_consent: Any = True
    consent_csp_policy: str | None = None
    service_documentation_url: Any = None
    forward_resource: bool = True
    fallback_access_token_expiry_seconds: int | None = None
    fallback_refresh_token_expiry_seconds: int | None = None
    token_expiry_threshold_seconds: int = 0
    timeout_seconds: float | None = None
    cache_ttl_seconds: int | None = None
    max_cache_size: int | None = None
    http_client: Any = None

    def __post_init__(self) -> None:
        if self.identity_assertion is not None:
            raise TypeError(
                "funcmcp.compat does not support identity_assertion=. Use identity_assertions= of "
                "funcmcp.auth.OAuthProxy."
            )
        if self.require_authorization_consent not in {True, "remember"}:
            _logger.warning("require_authorization_consent is ignored: users are always asked for consent.")
        if self.client_storage is not None and self.store is None:
            _logger.warning(
                "client_storage=%s is ignored, so users sign in once a day. Pass a store of funcmcp, such as "
                "funcmcp.state.SQLiteSignIns or funcmcp.redis.RedisSignIns.",
                type(self.client_storage).__name__,
            )

    @property
    def store(self) -> SignInStore | None:
        """The store of sign-ins; None without one of funcmcp."""
        return self.client_storage if isinstance(self.client_storage, SignInStore) else None

    @property
    def keys(self) -> KeyRing | None:
        """The keys of the proxy; None for those of the environment."""
        key = self.jwt_signing_key
        if key is None:
            return None
        secret = key.encode() if isinstance(key, str) else key
        return KeyRing([hashlib.scrypt(secret, salt=b"funcmcp jwt_signing_key", n=2**14, r=8, p=1, dklen=32)])


class ProxyProvider(AuthProvider):
    """A provider that signs users in.

    Args:
        upstream: The identity provider.
        base_url: The public URL of the server, without the path of the endpoint.
        required_scopes: Scopes that every caller needs.
        options: The options of all providers.
        grants_by_provider: Whether a user gets only the scopes that the provider has granted.
    """

    def __init__(
        self,
        upstream: Upstream,
        base_url: Any,
        required_scopes: Sequence[str],
        options: ProxyOptions,
        *,
        grants_by_provider: bool = False,
    ) -> None:
        super().__init__(base_url, list(required_scopes), options.resource_base_url)
        checked(f"base_url of {type(self).__name__}", str(self.base_url))
        self.upstream = upstream
        self.options = options
        self.issuer_url: Any = url_of(options.issuer_url) or self.base_url
        self._grants_by_provider = grants_by_provider
        self._clients = (
            None
            if options.allowed_client_redirect_uris is None
            else RedirectPatterns(options.allowed_client_redirect_uris)
        )
        self._keys = options.keys
        self._proxy: NativeProxy | None = None

    @property
    def scopes_supported(self) -> list[str]:
        """The scopes of the server."""
        return parsed_scopes(self.options.valid_scopes) or self.required_scopes

    @property
    def server_scopes(self) -> list[str]:
        """The scopes of the server without those of OpenID Connect, which give no rights here."""
        scopes = dict.fromkeys([*self.scopes_supported, *self.required_scopes])
        return [scope for scope in scopes if scope not in IGNORED_SCOPES] or [_DEFAULT_SCOPE]

    @property
    def has_routes(self) -> bool:
        """Whether a subclass has routes beside those of the sign-in, which the server has anyway."""
        return type(self).get_routes is not ProxyProvider.get_routes

    def get_routes(self, mcp_path: str | None = None) -> list[Any]:
        """Return the routes with the metadata, for an application that mounts the server below a path."""
        from starlette.responses import JSONResponse  # noqa: PLC0415 - an author's own dependency
        from starlette.routing import Route  # noqa: PLC0415 - as above

        proxy = self._proxy_at(mcp_path or self.mcp_path or "/mcp")

        async def resource(_: Any) -> Any:
            return JSONResponse(proxy.resource.document)

        async def metadata(_: Any) -> Any:
            return JSONResponse(proxy.metadata())

        paths = [path for path in proxy.paths if path.startswith("/.well-known/")]
        return [
            Route(proxy.resource.paths[0], resource, methods=["GET"]),
            *(Route(path, metadata, methods=["GET"]) for path in paths),
        ]

    def _proxy_at(self, path: str) -> NativeProxy:
        """Return the proxy of an endpoint."""
        if self._proxy is None or self.mcp_path != path:
            self.set_mcp_path(path)
            self._proxy = self._made(str(self._get_resource_url(path)))
        return self._proxy

    def _made(self, url: str) -> NativeProxy:
        options = self.options
        return NativeProxy(
            url,
            upstream=self.upstream,
            scopes={scope: f"Use what the server offers with {scope!r}" for scope in self.server_scopes},
            allow=self._allow if self._grants_by_provider else None,
            claims=_claims_of,
            clients=self._clients,
            client_documents=options.enable_cimd,
            access_seconds=options.fastmcp_access_token_expiry_seconds or _ACCESS_SECONDS,
            issuer=str(self.issuer_url).rstrip("/"),
            keys=self._keys,
            callback_path=options.redirect_path or "/auth/callback",
            store=options.store,
        )

    def _allow(self, user: User) -> bool | list[str]:
        """Return the scopes that a user may have: those that the provider has granted."""
        granted = set(user.claims.get(_GRANTED) or ())
        if not granted.issuperset(set(self.required_scopes) - IGNORED_SCOPES):
            return False
        return [scope for scope in self.server_scopes if scope in granted or scope == _DEFAULT_SCOPE]

    async def verify_token(self, token: str) -> Any:
        """Return the access token for a token of the proxy, or None if it is invalid."""
        identity = await self._proxy_at(self.mcp_path or "/mcp")({"authorization": f"Bearer {token}"})
        return access_token_of(identity) if isinstance(identity, Principal) else None

    def native_auth(self, path: str) -> Auth:
        """Return funcmcp's options of authentication."""
        refuse_middleware(type(self))
        required = [scope for scope in self.required_scopes if scope not in IGNORED_SCOPES]
        return Auth(self._proxy_at(path), scopes=required, lists="closed")


def _claims_of(user: User) -> dict[str, str]:
    """Return the claims that tools get."""
    claims = only(user.claims, _CLAIMS)
    return {name: text for name, text in claims.items() if isinstance(text, str) and len(text) <= _MAX_CLAIM}


class _DiscoveredOIDC(OIDC):
    """An OpenID provider whose issuer is the one in its document, and whose tokens a verifier checks.

    Args:
        config_url: The URL of the document.
        verifier: Checks the access token, or the ID token; None: nothing more is checked.
        checks_id_token: Whether the verifier checks the ID token.
        options: The arguments of `OIDC`.
    """

    def __init__(self, config_url: str, verifier: Any, *, checks_id_token: bool = False, **options: Any) -> None:
        super().__init__(issuer_in(config_url), discovery=config_url, **options)
        self._verifier = verifier
        self._checks_id_token = checks_id_token

    def _read(self, document: dict[str, Any]) -> Provider:
        issuer = document.get("issuer")
        if isinstance(issuer, str):  # of a document at the URL that the author has chosen
            self.issuer = self._issuer = issuer
        return super()._read(document)

    async def _user_in(self, provider: Provider, answer: dict[str, Any], nonce: str | None) -> User:
        user = await super()._user_in(provider, answer, nonce)
        granted = scopes_in(answer["scope"]) if "scope" in answer else list(provider.scopes)  # RFC 6749 section 5.1
        if self._verifier is not None and not self._checks_id_token:
            granted = (await _verified(self._verifier, answer.get("access_token"))).scopes
        return replace(user, claims={**user.claims, _GRANTED: granted})

    async def _sign_in(self, answer: dict[str, Any], user: User | None) -> SignIn:
        if self._verifier is not None and self._checks_id_token and user is not None:
            await _verified(self._verifier, answer.get("id_token"))
        elif self._verifier is not None and not self._checks_id_token and user is None:
            await _verified(self._verifier, answer.get("access_token"))
        return await super()._sign_in(answer, user)


async def _verified(verifier: Any, token: Any) -> Any:
    """Return what a verifier says about a token of the provider; raise UpstreamRefusedError if it refuses it."""
    access = await verifier.verify_token(token) if isinstance(token, str) and token else None
    if access is None:
        raise UpstreamRefusedError(f"{type(verifier).__name__} does not accept the token of the provider")
    return access


def _oauth2(client_id: str, secret: str | None, verifier: Any, options: ProxyOptions, **chosen: Any) -> OAuth2:
    """Return an upstream whose users are those of access tokens that a verifier accepts."""

    async def userinfo(answer: Mapping[str, Any], _: Any) -> dict[str, Any]:
        access = await _verified(verifier, answer["access_token"])
        claims = dict(getattr(access, "claims", None) or {})
        subject = getattr(access, "subject", None) or claims.get("sub")
        return {**claims, "sub": subject, _GRANTED: list(access.scopes)}

    return OAuth2(
        client_id,
        secret,
        userinfo=userinfo,
        parameters=options.extra_authorize_params,
        token_parameters=options.extra_token_params,
        token_endpoint_auth_method=options.token_endpoint_auth_method,
        pkce=options.forward_pkce,
        revoke=options.upstream_revocation_endpoint,
        **chosen,
    )


@public("funcmcp.compat")
class OAuthProxy(ProxyProvider):
    """Signs users in at a provider with OAuth 2.0.

    Args:
        upstream_authorization_endpoint: The URL at which users sign in.
        upstream_token_endpoint: The URL of the token endpoint.
        upstream_client_id: The id of the registration.
        upstream_client_secret: Its secret; None for a public client.
        token_verifier: Checks the provider's access token at the sign-in, and says who the user is.
        base_url: The public URL of the server, without the path of the endpoint.
        options: The options of `ProxyOptions`.

    Raises:
        TypeError: An option does not exist, or is not supported.
        ValueError: A URL is not secure, or an option has a value that is not allowed.
    """

    def __init__(
        self,
        *,
        upstream_authorization_endpoint: str,
        upstream_token_endpoint: str,
        upstream_client_id: str,
        upstream_client_secret: str | None = None,
        token_verifier: Any,
        base_url: Any,
        **options: Any,
    ) -> None:
        chosen = ProxyOptions(**options)
        self.token_verifier = token_verifier
        required = list(token_verifier.required_scopes or ())
        upstream = _oauth2(
            upstream_client_id,
            upstream_client_secret,
            token_verifier,
            chosen,
            authorize=upstream_authorization_endpoint,
            token=upstream_token_endpoint,
            scopes=parsed_scopes(chosen.valid_scopes) or required,
        )
        super().__init__(upstream, base_url, required, chosen, grants_by_provider=True)


@public("funcmcp.compat")
class OIDCProxy(ProxyProvider):
    """Signs users in at an OpenID provider.

    Args:
        config_url: The URL of its discovery document.
        client_id: The id of the registration.
        client_secret: Its secret; None for a public client.
        base_url: The public URL of the server, without the path of the endpoint.
        audience: The audience that is requested.
        token_verifier: Checks the provider's access token in addition.
        required_scopes: Scopes that every caller needs, and that the provider must grant.
        verify_id_token: Whether the verifier checks the ID token in place of the access token.
        strict: Is ignored.
        algorithm: Is ignored: the provider's keys say what they are for.
        options: The options of `ProxyOptions`.

    Raises:
        TypeError: An option does not exist, or is not supported.
        ValueError: A URL is not secure, or an option has a value that is not allowed.
    """

    _default_scopes: ClassVar[tuple[str, ...]] = ()

    def __init__(  # noqa: PLR0913 - FastMCP's parameters
        self,
        *,
        config_url: Any,
        client_id: str,
        client_secret: str | None = None,
        base_url: Any,
        audience: str | None = None,
        token_verifier: Any = None,
        required_scopes: Any = None,
        verify_id_token: bool = False,
        strict: bool | None = None,
        algorithm: str | None = None,
        **options: Any,
    ) -> None:
        del strict
        chosen = ProxyOptions(**options)
        if token_verifier is not None and algorithm is not None:
            raise ValueError("Cannot specify 'algorithm' when providing a custom token_verifier.")
        if token_verifier is not None and required_scopes is not None and not verify_id_token:
            raise ValueError("Cannot specify 'required_scopes' when providing a custom token_verifier.")
        of_verifier = getattr(token_verifier, "required_scopes", None) or self._default_scopes
        required = parsed_scopes(required_scopes)
        if required is None:
            required = list(of_verifier)
        requested = {} if audience is None else {"audience": audience}
        scopes = dict.fromkeys(["openid", *required, *(parsed_scopes(chosen.valid_scopes) or ())])
        self.config_url: str = str(config_url)
        self.token_verifier = token_verifier
        upstream = _DiscoveredOIDC(
            self.config_url,
            token_verifier,
            checks_id_token=verify_id_token,
            client_id=client_id,
            client_secret=client_secret,
            scopes=list(scopes),
            parameters={**requested, **(chosen.extra_authorize_params or {})},
            token_parameters=chosen.extra_token_params,
            token_endpoint_auth_method=chosen.token_endpoint_auth_method,
        )
        super().__init__(upstream, base_url, required, chosen, grants_by_provider=True)


class _OpenIDProvider(OIDCProxy):
    """An OpenID provider that requests ``openid`` by default."""

    _default_scopes = ("openid",)


@public("funcmcp.compat")
class Auth0Provider(_OpenIDProvider):
    """Signs users in at Auth0. The arguments are those of `OIDCProxy`."""


@public("funcmcp.compat")
class OCIProvider(_OpenIDProvider):
    """Signs users in at Oracle Cloud. The arguments are those of `OIDCProxy`."""


@public("funcmcp.compat")
class AWSCognitoProvider(_OpenIDProvider):
    """Signs users in at a user pool of Amazon Cognito.

    Args:
        user_pool_id: The id of the user pool.
        aws_region: The region.
        options: The other arguments of `OIDCProxy`.
    """

    def __init__(self, *, user_pool_id: str, aws_region: str = "eu-central-1", **options: Any) -> None:
        self.user_pool_id = user_pool_id
        self.aws_region = aws_region
        issuer = f"https://cognito-idp.{aws_region}.amazonaws.com/{user_pool_id}"
        super().__init__(config_url=f"{issuer}/.well-known/openid-configuration", **options)


@public("funcmcp.compat")
class ClerkProvider(OIDCProxy):
    """Signs users in at Clerk.

    Args:
        domain: The domain of the application there.
        options: The other arguments of `OIDCProxy`.
    """

    _default_scopes = ("openid", "email", "profile")

    def __init__(self, *, domain: str, **options: Any) -> None:
        self.domain: str = domain.removeprefix("https://").rstrip("/")
        super().__init__(config_url=f"https://{self.domain}/.well-known/openid-configuration", **options)


@public("funcmcp.compat")
class WorkOSProvider(OIDCProxy):
    """Signs users in at WorkOS AuthKit.

    Args:
        authkit_domain: The URL of AuthKit.
        options: The other arguments of `OIDCProxy`.
    """

    def __init__(self, *, authkit_domain: str, **options: Any) -> None:
        url = authkit_domain if authkit_domain.startswith(("http://", "https://")) else f"https://{authkit_domain}"
        self.authkit_domain: str = url.rstrip("/")
        method = options.pop("token_endpoint_auth_method", None) or "client_secret_post"
        super().__init__(
            config_url=f"{self.authkit_domain}/.well-known/openid-configuration",
            token_endpoint_auth_method=method,
            **options,
        )


@public("funcmcp.compat")
class HuggingFaceProvider(OIDCProxy):
    """Signs users in at Hugging Face. The arguments are those of `OIDCProxy` without *config_url*."""

    _default_scopes = ("openid", "profile")

    def __init__(self, **options: Any) -> None:
        super().__init__(config_url="https://huggingface.co/.well-known/openid-configuration", **options)


class _AccountProvider(ProxyProvider):
    """A provider whose users may grant every scope themselves, so that the server's scopes are theirs after consent."""

    _default_scopes: ClassVar[tuple[str, ...]] = ()

    def __init__(self, upstream: Upstream, base_url: Any, required_scopes: Any, options: ProxyOptions) -> None:
        required = parsed_scopes(required_scopes)
        super().__init__(upstream, base_url, list(self._default_scopes) if required is None else required, options)


@public("funcmcp.compat")
class GitHubProvider(_AccountProvider):
    """Signs users in at GitHub.

    Args:
        client_id: The id of the app.
        client_secret: Its secret.
        base_url: The public URL of the server, without the path of the endpoint.
        required_scopes: Scopes that every caller needs, by default ``user``.
        options: The options of `ProxyOptions`.
    """

    _default_scopes = ("user",)

    def __init__(
        self, *, client_id: str, client_secret: str, base_url: Any, required_scopes: Any = None, **options: Any
    ) -> None:
        chosen = ProxyOptions(**options)
        upstream = GitHub(client_id, client_secret, organizations=None, parameters=chosen.extra_authorize_params)
        super().__init__(upstream, base_url, required_scopes, chosen)


@public("funcmcp.compat")
class GoogleProvider(_AccountProvider):
    """Signs users in at Google.

    Args:
        client_id: The id of the client.
        client_secret: Its secret.
        base_url: The public URL of the server, without the path of the endpoint.
        required_scopes: Scopes that every caller needs, by default ``openid``.
        options: The options of `ProxyOptions`.

    Raises:
        TypeError: There is no secret, or an option does not exist or is not supported.
    """

    _default_scopes = ("openid",)

    def __init__(
        self,
        *,
        client_id: str,
        client_secret: str | None = None,
        base_url: Any,
        required_scopes: Any = None,
        **options: Any,
    ) -> None:
        if client_secret is None:
            raise TypeError("GoogleProvider of funcmcp.compat needs client_secret=.")
        chosen = ProxyOptions(**options)
        upstream = Google(client_id, client_secret, domains=None, parameters=chosen.extra_authorize_params)
        super().__init__(upstream, base_url, required_scopes, chosen)


def _discord_user(claims: Mapping[str, Any]) -> User:
    email = claims.get("email") if claims.get("verified") is True else None
    return User(claims["id"], name=claims.get("global_name") or claims["username"], email=email, claims=claims)


@public("funcmcp.compat")
class DiscordProvider(_AccountProvider):
    """Signs users in at Discord.

    Args:
        client_id: The id of the application.
        client_secret: Its secret.
        base_url: The public URL of the server, without the path of the endpoint.
        required_scopes: Scopes that every caller needs, by default ``identify``.
        options: The options of `ProxyOptions`.
    """

    _default_scopes = ("identify",)

    def __init__(
        self, *, client_id: str, client_secret: str, base_url: Any, required_scopes: Any = None, **options: Any
    ) -> None:
        chosen = ProxyOptions(**options)
        upstream = OAuth2(
            client_id,
            client_secret,
            name="Discord",
            authorize="https://discord.com/oauth2/authorize",
            token="https://discord.com/api/oauth2/token",  # noqa: S106 - a URL
            revoke="https://discord.com/api/oauth2/token/revoke",
            userinfo="https://discord.com/api/users/@me",
            user=_discord_user,
            scopes=parsed_scopes(required_scopes) or list(self._default_scopes),
            parameters=chosen.extra_authorize_params,
            pkce=False,
        )
        super().__init__(upstream, base_url, required_scopes, chosen)


@public("funcmcp.compat")
class AzureProvider(ProxyProvider):
    """Signs users in at Microsoft Entra ID, with scopes that the registration exposes.

    Args:
        client_id: The id of the registration.
        client_secret: Its secret.
        tenant_id: The id of the tenant.
        required_scopes: Scopes that every caller needs, in their short form, such as ``read``.
        base_url: The public URL of the server, without the path of the endpoint.
        identifier_uri: The URI of the application; by default ``api://<client_id>``.
        additional_authorize_scopes: Scopes of other APIs that users consent to as well.
        base_authority: The host of the sign-in.
        token_issuer: The issuer of tokens, if it is another one than that of the tenant.
        options: The options of `ProxyOptions`.

    Raises:
        TypeError: There is no secret, or an option does not exist or is not supported.
        ValueError: There is no scope but those of OpenID Connect.
    """

    def __init__(  # noqa: PLR0913 - FastMCP's parameters
        self,
        *,
        client_id: str,
        client_secret: str | None = None,
        tenant_id: str,
        required_scopes: Any,
        base_url: Any,
        identifier_uri: str | None = None,
        additional_authorize_scopes: Any = None,
        base_authority: str = "login.microsoftonline.com",
        token_issuer: str | None = None,
        **options: Any,
    ) -> None:
        if client_secret is None:
            raise TypeError(
                "AzureProvider of funcmcp.compat needs client_secret=. Use funcmcp.auth.EntraID without one."
            )
        required = [scope for scope in parsed_scopes(required_scopes) or [] if scope not in IGNORED_SCOPES]
        if not required:
            raise ValueError(
                "AzureProvider requires at least one non-OIDC scope in required_scopes, such as 'read': the others are "
                "not in access tokens."
            )
        chosen = ProxyOptions(**{"extra_authorize_params": {"prompt": "select_account"}, **without_none(options)})
        verifier = AzureJWTVerifier(
            client_id=client_id,
            tenant_id=tenant_id,
            required_scopes=required,
            identifier_uri=identifier_uri,
            base_authority=base_authority,
        )
        if token_issuer is not None:
            verifier.issuer = token_issuer
        self.identifier_uri: str = verifier.identifier_uri
        self.additional_authorize_scopes: list[str] = parsed_scopes(additional_authorize_scopes) or []
        endpoint = f"https://{base_authority}/{tenant_id}/oauth2/v2.0"
        scopes = [*verifier.get_challenge_scopes(), *self.additional_authorize_scopes, "openid", "offline_access"]
        upstream = _oauth2(
            client_id,
            client_secret,
            verifier,
            chosen,
            name="Microsoft",
            authorize=f"{endpoint}/authorize",
            token=f"{endpoint}/token",
            scopes=list(dict.fromkeys(scopes)),
        )
        self.token_verifier: AzureJWTVerifier = verifier
        super().__init__(upstream, base_url, required, chosen, grants_by_provider=True)

    @classmethod
    def from_b2c(
        cls,
        *,
        tenant_name: str,
        policy_name: str,
        client_id: str,
        custom_domain: str | None = None,
        identifier_uri: str | None = None,
        **options: Any,
    ) -> AzureProvider:
        """Return a provider for a user flow of Azure AD B2C.

        Args:
            tenant_name: The name of the tenant, without ``.onmicrosoft.com``.
            policy_name: The user flow.
            client_id: The id of the registration.
            custom_domain: The domain of the sign-in, if it is an own one.
            identifier_uri: The URI of the application.
            options: The other arguments of the class.

        Raises:
            ValueError: *tenant_name* is not the short name.
        """
        if ".onmicrosoft.com" in tenant_name:
            raise ValueError(
                f"tenant_name is the name without .onmicrosoft.com, such as 'mytenant'; got {tenant_name!r}."
            )
        domain = custom_domain or f"{tenant_name}.b2clogin.com"
        options.setdefault("extra_authorize_params", {})
        provider = cls(
            client_id=client_id,
            tenant_id=f"{tenant_name}.onmicrosoft.com/{policy_name}",
            base_authority=domain.removeprefix("https://").removeprefix("http://").rstrip("/"),
            identifier_uri=identifier_uri or f"https://{tenant_name}.onmicrosoft.com/{client_id}",
            **options,
        )
        if options.get("token_issuer") is None:
            provider.token_verifier.issuer = None  # of the audience and the keys of the user flow
        return provider
