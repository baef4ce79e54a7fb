"""Access tokens of Microsoft Entra ID (formerly Azure Active Directory).

Source: Microsoft identity platform, "Access token claims reference" and "Validate tokens".
"""

from __future__ import annotations

import uuid
from time import time
from typing import TYPE_CHECKING

from funcmcp._auth.tokens.bearer import BearerTokens
from funcmcp._auth.tokens.claims import TokenRules
from funcmcp._auth.tokens.jwks import JWKS
from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._auth.tokens.keys import KeySource

_AUTHORITY = "https://login.microsoftonline.com"
_AUTHORITY_V1 = "https://sts.windows.net"


@public("funcmcp.auth")
def entra(
    tenant: str,
    client_id: str,
    *,
    app_id_uri: str | None = None,
    keys: KeySource | None = None,
    clock: Callable[[], float] = time,
) -> BearerTokens:
    """Return an authenticator for the users and the applications of one tenant.

    It accepts access tokens of version 1 and 2 with scopes (``scp``) or app roles (``roles``). The tenant issues tokens
    to any of its applications, so a token without scopes and roles is rejected. ID tokens are rejected, because they
    do not name the calling application.

    Args:
        tenant: The id of the tenant, a GUID. ``common`` and ``organizations`` are rejected: they mean any tenant.
        client_id: The application id of the server's registration, a GUID.
        app_id_uri: The Application ID URI of the registration, if it is not ``api://<client_id>``.
        keys: The source of the keys, if it is not the tenant's URL.
        clock: A function that returns seconds since 1970.

    Raises:
        ValueError: The tenant or the application id is not a GUID.
    """
    tenant = checked_guid("tenant", tenant)
    client_id = checked_guid("client_id", client_id)
    rules = TokenRules(
        algorithms=("RS256",),
        types=("JWT", "at+jwt"),
        required={"tid": tenant},
        any_of=(("scp", "roles"), ("azp", "appid")),
    )
    return BearerTokens(
        [f"{_AUTHORITY}/{tenant}/v2.0", f"{_AUTHORITY_V1}/{tenant}/"],
        [client_id, app_id_uri or f"api://{client_id}"],
        keys=keys or JWKS(f"{_AUTHORITY}/{tenant}/discovery/v2.0/keys"),
        rules=rules,
        clock=clock,
    )


def checked_guid(name: str, value: str) -> str:
    """Return a GUID in lower case; raise ValueError if *value* is not one."""
    try:
        guid = str(uuid.UUID(value))
    except ValueError:
        guid = None
    if guid is None or guid != value.lower():  # UUID() also parses spellings that no issuer writes
        raise ValueError(f"The {name} must be a GUID, not {value!r}.")
    return guid
