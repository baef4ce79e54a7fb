"""Grants: what a user has allowed this server at another service, such as GitHub, and the services that give them.

`Grant` is what a tool needs, and `GrantProvider` is where the user is asked for it. `KNOWN_PROVIDERS` has the endpoints
of some services, so that their name is enough. What happens with a grant is in `funcmcp._grants`.

Source: RFC 6749 sections 3.3 (scopes) and 4.1; RFC 7009 (revocation); the services' own documentation of OAuth apps.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from time import time
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from funcmcp._auth.access import distinct
from funcmcp._auth.client_options import METHODS, AuthMethod, MakeAssertion, checked_parameters
from funcmcp._auth.urls import checked
from funcmcp._objects.public_names import public

Revoke: TypeAlias = Callable[[str], bool | Awaitable[bool]]
"""A function that revokes an access token, and returns whether that has happened. It may be async."""

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_MAX_SCOPES: Final = 50

KNOWN_PROVIDERS: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "discord": {
            "title": "Discord",
            "authorize": "https://discord.com/oauth2/authorize",
            "token": "https://discord.com/api/oauth2/token",
            "revoke": "https://discord.com/api/oauth2/token/revoke",
        },
        "github": {
            "title": "GitHub",
            "authorize": "https://github.com/login/oauth/authorize",
            "token": "https://github.com/login/oauth/access_token",
            "revoke": "https://api.github.com/applications/{client_id}/grant",
            "token_endpoint_auth_method": "client_secret_post",
            "includes": {  # GitHub leaves out of its answer what another scope includes
                "repo": ("repo:status", "repo_deployment", "public_repo", "repo:invite", "security_events"),
                "user": ("read:user", "user:email", "user:follow"),
                "admin:org": ("write:org", "read:org"),
                "write:org": ("read:org",),
            },
        },
        "gitlab": {
            "title": "GitLab",
            "authorize": "https://gitlab.com/oauth/authorize",
            "token": "https://gitlab.com/oauth/token",
            "revoke": "https://gitlab.com/oauth/revoke",
        },
        "google": {
            "title": "Google",
            "authorize": "https://accounts.google.com/o/oauth2/v2/auth",
            "token": "https://oauth2.googleapis.com/token",
            "revoke": "https://oauth2.googleapis.com/revoke",
            "token_endpoint_auth_method": "client_secret_post",
            # Without them, Google issues no refresh token when the user has agreed before.
            "parameters": {"access_type": "offline", "prompt": "consent"},
            "includes": {  # Google answers with the long names of these
                "https://www.googleapis.com/auth/userinfo.email": ("email",),
                "https://www.googleapis.com/auth/userinfo.profile": ("profile",),
            },
        },
        "linear": {
            "title": "Linear",
            "authorize": "https://linear.app/oauth/authorize",
            "token": "https://api.linear.app/oauth/token",
            "revoke": "https://api.linear.app/oauth/revoke",
        },
    }
)
"""The settings of some services by name: fields of `GrantProvider`."""


@public("funcmcp.auth")
@dataclass(frozen=True, slots=True)
class Grant:
    """What a tool needs at another service, for ``@mcp.tool(grant=...)``.

    The user of a call is asked for it once, before the tool runs. The tool gets the token by `Context.grant_token`.

    Attributes:
        provider: The name of a `GrantProvider` of the server.
        scopes: The scopes that the token must have, all of them. Scopes of further tools are added when they are
            needed.

    Raises:
        TypeError: The scopes are one string.
        ValueError: A scope has characters that a scope can't have, or there are more than 50.

    Example:
        ```python
        @mcp.tool(grant=Grant("github", scopes=["repo"]))
        async def star(repository: str, context: Context) -> str:
            token = await context.grant_token("github")
        ```
    """

    provider: str
    scopes: Sequence[str] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "scopes", checked_scopes("Grant", self.scopes))


@public("funcmcp.auth")
@dataclass(frozen=True, slots=True)
class GrantProvider:
    """A service at which users allow this server to act for them, for ``Auth(grants=[...])``.

    Register the server there as a web application, with the redirect URI
    ``https://<host of the server>/grants/<name>/callback``. The log says it when the server starts. Names with known
    endpoints are ``discord``, ``github``, ``gitlab``, ``google`` and ``linear``; all others need *authorize* and
    *token*.

    Attributes:
        name: The name, as in `Grant`: lower-case letters, digits and hyphens.
        client_id: The id of the registration at the service.
        client_secret: Its secret; None for a public client.
        authorize: The authorization endpoint.
        token: The token endpoint.
        revoke: The revocation endpoint (RFC 7009), which is called when a grant ends. A URL with ``{client_id}`` is
            GitHub's form of it, such as ``"https://ghe.example.com/api/v3/applications/{client_id}/grant"``. For other
            forms, a function that revokes the access token that it gets, and returns whether that has happened; it may
            be async. None: the grant is only deleted here.
        title: The name for people; by default the name.
        scopes: Scopes to request with every grant, such as ``["offline_access"]``.
        parameters: More parameters of the authorization request, such as ``{"audience": "api.example.com"}``.
        token_endpoint_auth_method: How the server sends its secret. None: by HTTP Basic.
        credential: In place of a secret, a function that returns a signed assertion (``private_key_jwt``, RFC 7523)
            for each request. The function may be async.
        issuer: The exact ``iss`` with which the browser returns, for services that send it (RFC 9207). None: it is
            not checked.
        includes: Scopes that another scope includes, where the service does not list them in its answer.
        public_url: The URL at which browsers reach this server, without the path of the endpoint. None: that of the
            `OAuthProxy`, or of `Auth.resource`.
        clock: A function that returns seconds since 1970.

    Raises:
        TypeError: The scopes are one string.
        ValueError: The name has other characters, an endpoint is missing or is neither https nor on this machine, the
            id is missing, a parameter belongs to the server, there are both a secret and a credential, or the method
            is unknown.
    """

    name: str
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    _: KW_ONLY
    authorize: str = ""
    token: str = ""
    revoke: str | Revoke | None = None
    title: str = ""
    scopes: Sequence[str] = ()
    parameters: Mapping[str, str] = field(default_factory=dict, hash=False)
    token_endpoint_auth_method: AuthMethod | None = None
    credential: MakeAssertion | None = field(default=None, repr=False)
    issuer: str | None = None
    includes: Mapping[str, Sequence[str]] = field(default_factory=dict, hash=False)
    public_url: str | None = None
    clock: Callable[[], float] = field(default=time, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise ValueError(
                "The name of a GrantProvider has lower-case letters, digits and hyphens, such as 'github'."
            )
        if not self.authorize and not self.token:
            for attribute, value in KNOWN_PROVIDERS.get(self.name, {}).items():
                object.__setattr__(self, attribute, getattr(self, attribute) or value)
        object.__setattr__(self, "title", self.title or self.name)
        object.__setattr__(self, "scopes", checked_scopes("GrantProvider", self.scopes))
        self._check_endpoints()
        self._check_client()

    def covers(self, granted: Sequence[str]) -> frozenset[str]:
        """Return granted scopes with those that they include."""
        return frozenset(granted).union(*(self.includes.get(scope, ()) for scope in granted))

    def _check_endpoints(self) -> None:
        if not self.authorize or not self.token:
            raise ValueError(
                f"GrantProvider({self.name!r}) needs authorize= and token=, the endpoints of the service. "
                f"Names with known endpoints: {', '.join(KNOWN_PROVIDERS)}."
            )
        for attribute in ("authorize", "token", "revoke", "public_url"):
            url = getattr(self, attribute)
            if isinstance(url, str):
                checked(f"GrantProvider.{attribute}", url)
        checked_parameters("GrantProvider.parameters", self.parameters)

    def _check_client(self) -> None:
        if not self.client_id:
            raise ValueError(f"GrantProvider({self.name!r}) needs the client_id of the registration at the service.")
        if self.client_secret is not None and self.credential is not None:
            raise ValueError("GrantProvider takes either client_secret or credential, not both.")
        if self.token_endpoint_auth_method not in {None, *METHODS}:
            raise ValueError(f"GrantProvider.token_endpoint_auth_method must be {' or '.join(map(repr, METHODS))}.")


def checked_scopes(place: str, scopes: Sequence[str]) -> tuple[str, ...]:
    """Return scopes without duplicates; raise TypeError for one string, ValueError for others that are not valid."""
    if isinstance(scopes, str):
        raise TypeError(f"{place}.scopes is a list of strings, not one string.")
    unique = distinct(scopes)
    if len(unique) > _MAX_SCOPES:
        raise ValueError(f"{place}.scopes has more than {_MAX_SCOPES} scopes.")
    return unique
