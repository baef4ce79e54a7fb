"""Callers that Azure App Service has authenticated before it forwards the request ("Easy Auth").

Source: Azure App Service, "Work with user identities in authentication": the platform writes the caller into
`X-MS-CLIENT-PRINCIPAL` as base64 of JSON, and removes such a header from incoming requests. It does so only while its
authentication is enabled. Otherwise any client can write the header.
"""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from funcmcp._auth.authenticator import Challenge
from funcmcp._auth.principal import Principal
from funcmcp._objects.public_names import public
from funcmcp._protocol.codec import decode

if TYPE_CHECKING:
    from collections.abc import Mapping

HEADER = "x-ms-client-principal"
_MAX_HEADER = 64 * 1024
_IDENTITY = "http://schemas.microsoft.com/identity/claims/"
_PERSON = "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/"
_SUBJECT = ("sub", f"{_PERSON}nameidentifier", "oid", f"{_IDENTITY}objectidentifier")
_SCOPE = ("scp", f"{_IDENTITY}scope")
_ROLES = ("roles", "http://schemas.microsoft.com/ws/2008/06/identity/claims/role")
_NAME = ("name", f"{_PERSON}name", "preferred_username")


@public("funcmcp.auth")
class EasyAuth:
    """An authenticator for callers that the platform has authenticated.

    Args:
        trust_platform: Whether the server can be reached only through the platform. If it is False, or if the
            environment variable ``WEBSITE_AUTH_ENABLED`` is not ``true``, the header is ignored.
        environ: The environment, by default `os.environ`.
    """

    def __init__(self, *, trust_platform: bool, environ: Mapping[str, str] | None = None) -> None:
        environ = os.environ if environ is None else environ
        self._trusted = trust_platform and environ.get("WEBSITE_AUTH_ENABLED", "").lower() == "true"

    async def __call__(self, headers: Mapping[str, str]) -> Principal | Challenge | None:
        """Return the caller in the header, a challenge for an invalid header, or None without a trusted header."""
        field = headers.get(HEADER) if self._trusted else None
        if field is None:
            return None
        try:
            caller = _read(field)
        except ValueError:  # also the base class of the errors of base64 and JSON
            return Challenge("invalid_token", f"The {HEADER} header is invalid.")
        subject = caller.first(*_SUBJECT)
        if not subject:
            return Challenge("invalid_token", f"The {HEADER} header has no subject.")
        return Principal(
            subject=subject,
            issuer=caller.first("iss") or f"easy-auth:{caller.provider}",
            client_id=caller.first("azp", "appid") or "",
            scopes=frozenset(" ".join(caller.values(*_SCOPE)).split()),
            roles=frozenset(caller.values(*_ROLES, caller.role_type)),
            claims={kind: _one_or_all(values) for kind, values in caller.claims.items()},
            name=caller.first(caller.name_type, *_NAME),
        )


class _InvalidHeaderError(ValueError):
    """The header does not have the form that the platform writes."""


@dataclass(frozen=True, slots=True)
class _ClientPrincipal:
    """The content of the header: the identity provider, and the claims by type. A type may have several claims."""

    provider: str
    name_type: str
    role_type: str
    claims: Mapping[str, list[str]]

    def values(self, *kinds: str) -> list[str]:
        return [value for kind in kinds for value in self.claims.get(kind, ())]

    def first(self, *kinds: str) -> str | None:
        return next((value for value in self.values(*kinds) if value), None)


def _read(field: str) -> _ClientPrincipal:
    """Return the content of a header; raise ValueError if the header is invalid."""
    if len(field) > _MAX_HEADER:
        raise _InvalidHeaderError
    value = decode(base64.b64decode(field.strip(" ").encode("ascii"), validate=True))
    if not isinstance(value, dict) or not isinstance(value.get("claims"), list):
        raise _InvalidHeaderError
    claims: dict[str, list[str]] = {}
    for claim in value["claims"]:
        if not isinstance(claim, dict):
            raise _InvalidHeaderError
        claims.setdefault(_text(claim, "typ"), []).append(_text(claim, "val"))
    return _ClientPrincipal(_text(value, "auth_typ"), _text(value, "name_typ"), _text(value, "role_typ"), claims)


def _text(value: Mapping[str, Any], name: str) -> str:
    text = value.get(name)
    if text is not None and not isinstance(text, str):
        raise _InvalidHeaderError
    return text or ""


def _one_or_all(values: list[str]) -> str | tuple[str, ...]:
    return values[0] if len(values) == 1 else tuple(values)
