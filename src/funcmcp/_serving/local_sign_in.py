"""A server whose users sign in without their identity provider, on the machine of a developer.

How it works: an `OAuthProxy` for a loopback address, whose provider signs one user in (`LocalProvider`), takes the
place of the server's own proxy, or stands before its other authenticators. It has the scopes, `allow` and the other
rules of the server's proxy. The user still confirms each application on the page of the proxy, because any page in a
browser can send the user to it.

Its keys are derived from those of the process, the URL and the user, so neither a deployed server nor the same one with
another user accepts its tokens. Requests that come through a proxy or from another machine are refused.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from funcmcp._auth.authenticator import first_of, parts_of
from funcmcp._oauth_proxy.local_provider import LocalProvider
from funcmcp._oauth_proxy.proxy import OAuthProxy
from funcmcp._oauth_proxy.settings import IGNORED_SCOPES
from funcmcp._oauth_proxy.upstream import User
from funcmcp._oauth_proxy.user_claims import RESERVED
from funcmcp._protocol.codec import encode
from funcmcp._serving.environment import platform_variable
from funcmcp._state.keys import configured_keys
from funcmcp._transports.http.admission.this_machine import ThisMachine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp._auth.policy import Auth
    from funcmcp._serving.composition import ServerRuntime

_MAX_TEXT = 200
_MAX_ROLES = 1000


def sign_in_locally(runtime: ServerRuntime, claims: Mapping[str, Any], origin: str) -> None:
    """Sign every client of a server in as one user. Call it before the server starts.

    Args:
        runtime: The server.
        claims: The claims of the user, as those of an ID token; see `local_user`.
        origin: The scheme, the host and the port of the server, on a loopback address.

    Raises:
        ValueError: The server has no auth, a claim is not valid, or a platform runs this process.
    """
    check_environment()
    auth, user = runtime.auth, local_user(claims)
    if auth is None:
        raise ValueError(f"{runtime.name} has no auth=, so no client signs in to it. Leave the option out.")
    url = f"{origin}{runtime.path}"
    keys = configured_keys(os.environ).of(f"sign-in as {encode(dict(sorted(claims.items()))).decode()}")
    provider = LocalProvider(user, keys.of(url))
    parts = parts_of(auth.authenticator)
    if runtime.proxy is None:
        names = [name for name in claims if name not in RESERVED and not name.startswith("__")]
        proxy = OAuthProxy(url, upstream=provider, scopes=sentences_of(runtime, auth), claims=names, keys=keys)
    else:
        proxy = runtime.proxy.with_provider(url, provider, keys)
    remaining = [part for part in parts if part is not runtime.proxy]
    runtime.change_auth(replace(auth, authenticator=first_of(proxy, *remaining), resource=None))
    runtime.wrap_exchange(ThisMachine)


def check_environment() -> None:
    """Raise ValueError if a platform runs this process, on which the server would be for others than a developer."""
    variable = platform_variable(os.environ)
    if variable is not None:
        raise ValueError(
            f"A sign-in without the identity provider is for a developer's machine, and {variable} is set."
        )


def local_user(claims: Mapping[str, Any]) -> User:
    """Return the user in claims; raise ValueError if one is not valid.

    Args:
        claims: ``sub``, and if wanted ``name``, ``email``, ``tid``, ``roles`` and any others.
    """
    roles = claims.get("roles", [])
    roles = [roles] if isinstance(roles, str) else roles
    if not isinstance(roles, list) or len(roles) > _MAX_ROLES or not all(isinstance(role, str) for role in roles):
        raise ValueError('The claim "roles" of the user must be a list of strings.')
    subject = _text(claims, "sub")
    if not subject:
        raise ValueError('The user needs the claim "sub", such as {"sub": "ada", "roles": ["cook"]}.')
    return User(
        subject,
        name=_text(claims, "name"),
        email=None if claims.get("email_verified") is False else _text(claims, "email"),
        tenant=_text(claims, "tid"),
        roles=frozenset(roles),
        claims=claims,
    )


def sentences_of(runtime: ServerRuntime, auth: Auth) -> dict[str, str]:
    """Return the scopes of a server without a proxy, with a sentence for each; one for all of it if it has none."""
    scopes = [*(() if auth.resource is None else auth.resource.scopes), *auth.scopes]
    accesses = [feature.access for feature in runtime.server.catalog.features()]
    for access in (*accesses, *(route.access for route in runtime.routes)):
        scopes += access.required_scopes
    distinct = [scope for scope in dict.fromkeys(scopes) if scope not in IGNORED_SCOPES]
    if not distinct:
        return {"all": f"Use {runtime.name}"}
    return {scope: f"Use what needs the scope {scope}" for scope in distinct}


def _text(claims: Mapping[str, Any], name: str) -> str | None:
    """Return a claim that is a text of one line; raise ValueError for anything else."""
    value = claims.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not value.isprintable() or len(value) > _MAX_TEXT:
        raise ValueError(f"The claim {name!r} of the user must be a text of at most {_MAX_TEXT} printable characters.")
    return value or None
