"""Access tokens of Microsoft Entra ID (formerly Azure Active Directory).

Source: Microsoft identity platform, "Access token claims reference" and "Validate tokens".
"""

from __future__ import annotations

import uuid
from time import time
from typing import TYPE_CHECKING

from funcmcp.auth.tokens.bearer import BearerTokens
from funcmcp.auth.tokens.claims import TokenRules
from funcmcp.auth.tokens.jwks import JWKS

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp.auth.tokens.keys import KeySource

_AUTHORITY = "https://login.microsoftonline.com"
_AUTHORITY_OF_V1 = "https://sts.windows.net"


def entra(
    tenant: str,
    client_id: str,
    *,
    app_id_uri: str | None = None,
    keys: KeySource | None = None,
    clock: Callable[[], float] = time,
) -> BearerTokens:
    """Return an authenticator for callers of one tenant, users as well as programs.

    Tokens of version 1 and 2 are accepted. A token must be an access token (it names the calling application, which
    ID tokens do not) that carries scopes (`scp`) or app roles (`roles`): a program that nobody gave any is refused,
    although the tenant gives it a token.

    Args:
        tenant: the tenant's id, a GUID; never ``common`` or ``organizations``, which would let in everybody.
        client_id: the application id of this server's registration, a GUID.
        app_id_uri: the registration's Application ID URI, where it is not ``api://<client_id>``.
        keys: where the keys are, if not at the tenant's URL.
        clock: returns seconds since 1970.

    Raises:
        ValueError: tenant or application is no GUID.
    """
    tenant, client_id = _guid("tenant", tenant), _guid("client_id", client_id)
    rules = TokenRules(
        algorithms=("RS256",),
        types=("JWT", "at+jwt"),
        required={"tid": tenant},
        any_of=(("scp", "roles"), ("azp", "appid")),
    )
    return BearerTokens(
        [f"{_AUTHORITY}/{tenant}/v2.0", f"{_AUTHORITY_OF_V1}/{tenant}/"],
        [client_id, app_id_uri or f"api://{client_id}"],
        keys=keys or JWKS(f"{_AUTHORITY}/{tenant}/discovery/v2.0/keys"),
        rules=rules,
        clock=clock,
    )


def _guid(name: str, value: str) -> str:
    try:
        found = str(uuid.UUID(value))
    except ValueError:
        found = None
    if found is None or found != value.lower():  # the library reads other spellings, too, which no issuer writes
        raise ValueError(f"The {name} must be a GUID, not {value!r}.")
    return found
