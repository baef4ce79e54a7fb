"""Options of authentication and authorization."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, cast

from funcmcp._auth.authenticator import parts_of
from funcmcp._auth.dpop import dpop_of
from funcmcp._objects.definitions import options
from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Sequence

    from funcmcp._auth.authenticator import Authenticator
    from funcmcp._auth.grants import GrantProvider
    from funcmcp._auth.protected_resource import ProtectedResource

Lists: TypeAlias = Literal["auto", "open", "filtered", "closed"]


class TokenIssuer(Protocol):
    """An authenticator that issues the tokens itself, such as `OAuthProxy`.

    Attributes:
        issues_tokens: True.
        resource: The metadata of the server.
    """

    issues_tokens: Literal[True]
    resource: ProtectedResource


def token_issuer_in(authenticator: Authenticator) -> TokenIssuer | None:
    """Return the authenticator that issues tokens, which is or is part of another one; None if there is none.

    Raises:
        ValueError: There are several.
    """
    issuers = [part for part in parts_of(authenticator) if getattr(part, "issues_tokens", False) is True]
    if len(issuers) > 1:
        raise ValueError("Auth can't have several proxies: each one is the issuer of its host.")
    return cast("TokenIssuer", issuers[0]) if issuers else None


@public("funcmcp")
@options
class Auth:
    """Options of authentication and authorization.

    Attributes:
        authenticator: The function that returns the caller of a request.
        resource: Metadata that tell clients where to get tokens. None: those of the `OAuthProxy`, if the authenticator
            is or contains one. Otherwise the server publishes no metadata. They also say which tokens the authenticator
            takes that are bound to a key.
        lists: Who gets the lists of tools, resources and prompts. ``"auto"``: principals get all features, callers
            without credentials those with ``allow_anonymous=True``, or 401 if there are none. ``"closed"``: principals
            get all features, others 401. ``"filtered"``: each caller gets the features that it may use. ``"open"``:
            every caller gets all features.
        scopes: Scopes that a principal needs in addition to those of a feature. Features with
            ``allow_anonymous=True`` need none.
        grants: Services at which users allow tools with ``grant=`` to act for them; see docs/guides/grants.md.

    Raises:
        TypeError: The authenticator is a class or can't be called, or `resource` or `grants` has another type.
        ValueError: There are several proxies, two grants have the same name, `resource` is not that of the proxy, or it
            is missing although the authenticator takes tokens that are bound to a key: proofs are for its URL.
    """

    authenticator: Authenticator
    resource: ProtectedResource | None = None
    lists: Lists = "auto"
    scopes: Sequence[str] = ()
    grants: Sequence[GrantProvider] = ()

    def __post_init__(self) -> None:
        if isinstance(self.authenticator, type) or not callable(self.authenticator):
            raise TypeError(
                "Auth needs an authenticator, such as APIKeys({...}), or an async function; "
                f"got {_kind_of(self.authenticator)}."
            )
        if self.resource is not None and not hasattr(self.resource, "metadata_url"):
            raise TypeError(f"Auth.resource must be ProtectedResource(...) or None; got {_kind_of(self.resource)}.")
        object.__setattr__(self, "resource", self._with_dpop(self._checked_resource()))
        if self.grants:
            object.__setattr__(self, "grants", _checked_grants(self.grants))

    def _checked_resource(self) -> ProtectedResource | None:
        """Return the metadata to publish."""
        issuer = token_issuer_in(self.authenticator)
        if issuer is None:
            return self.resource
        proxied = issuer.resource
        if self.resource is None:
            return proxied
        servers = self.resource.authorization_servers
        if self.resource.resource != proxied.resource or not set(proxied.authorization_servers) <= set(servers):
            raise ValueError(
                f"Auth.resource must have the resource {proxied.resource!r} and the authorization server "
                f"{proxied.authorization_servers[0]!r}, as the OAuthProxy. Leave it out to publish those of the proxy."
            )
        return self.resource

    def _with_dpop(self, resource: ProtectedResource | None) -> ProtectedResource | None:
        """Return metadata that say which tokens the authenticator takes that are bound to a key."""
        mode = dpop_of(self.authenticator)
        if mode is None:
            return resource
        if resource is None:
            raise ValueError(
                "BearerTokens(dpop=) needs Auth(resource=ProtectedResource(...)): proofs are for the URL of the server."
            )
        return replace(resource, dpop=mode)


def _checked_grants(grants: Sequence[GrantProvider]) -> tuple[GrantProvider, ...]:
    """Return the providers of grants; raise TypeError for other objects, ValueError for two with the same name."""
    from funcmcp._auth.grants import GrantProvider as Provider  # noqa: PLC0415 - few servers have grants

    if isinstance(grants, Provider):
        raise TypeError("Auth.grants is a list: Auth(..., grants=[GrantProvider(...)]).")
    providers = tuple(grants)
    for provider in providers:
        if not isinstance(provider, Provider):
            raise TypeError(f"Auth.grants has GrantProvider(...) only; got {_kind_of(provider)}.")
    names = [provider.name for provider in providers]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"Auth.grants has two providers with the name {name!r}. Give one of them another name.")
    return providers


def _kind_of(value: object) -> str:
    """Return what an option has got, without the value, which may be a secret."""
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
