"""Callers that Azure App Service has signed in before the request gets here ("Easy Auth").

Source: Azure App Service, "Work with user identities in authentication": the platform puts who it is into
`X-MS-CLIENT-PRINCIPAL` as base64 of JSON, and drops what came in such a header from outside. It does so only while its
authentication is switched on; without it, anybody could write that header.
"""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from funcmcp.auth.authenticator import Challenge
from funcmcp.auth.principal import Principal
from funcmcp.protocol.codec import decode

if TYPE_CHECKING:
    from collections.abc import Mapping

HEADER = "x-ms-client-principal"
_LONGEST = 64 * 1024
_IDENTITY = "http://schemas.microsoft.com/identity/claims/"
_PERSON = "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/"
_SUBJECT = ("sub", f"{_PERSON}nameidentifier", "oid", f"{_IDENTITY}objectidentifier")
_SCOPE = ("scp", f"{_IDENTITY}scope")
_ROLES = ("roles", "http://schemas.microsoft.com/ws/2008/06/identity/claims/role")
_NAME = ("name", f"{_PERSON}name", "preferred_username")


class EasyAuth:
    """Accepts callers that the platform has signed in.

    Args:
        trust_platform: that this server can be reached only through the platform. Nobody is accepted without it, nor
            where the platform does not say that its authentication is on (``WEBSITE_AUTH_ENABLED``).
        environ: the environment; by default the process's own.
    """

    def __init__(self, *, trust_platform: bool, environ: Mapping[str, str] | None = None) -> None:
        environ = os.environ if environ is None else environ
        self._trusted = trust_platform and environ.get("WEBSITE_AUTH_ENABLED", "").lower() == "true"

    async def __call__(self, headers: Mapping[str, str]) -> Principal | Challenge | None:
        """Return the caller that the platform names, or None where it names nobody or is not trusted."""
        field = headers.get(HEADER) if self._trusted else None
        if field is None:
            return None
        try:
            said = _read(field)
        except ValueError:  # what the decoders of base64 and JSON raise is one, too
            return Challenge("invalid_token", f"The {HEADER} header can't be read.")
        subject = said.first(*_SUBJECT)
        if not subject:
            return Challenge("invalid_token", f"The {HEADER} header names nobody.")
        return Principal(
            subject=subject,
            issuer=said.first("iss") or f"easy-auth:{said.provider}",
            client_id=said.first("azp", "appid") or "",
            scopes=frozenset(" ".join(said.every(*_SCOPE)).split()),
            roles=frozenset(said.every(*_ROLES, said.role_type)),
            claims={kind: values[0] if len(values) == 1 else tuple(values) for kind, values in said.claims.items()},
            name=said.first(said.name_type, *_NAME),
        )


class _UnreadableError(ValueError):
    """The header is not what the platform writes."""


@dataclass(frozen=True, slots=True)
class _ClientPrincipal:
    """What the platform says about a caller: who signed it in, and claims by their type, some of which come twice."""

    provider: str
    name_type: str
    role_type: str
    claims: Mapping[str, list[str]]

    def every(self, *kinds: str) -> list[str]:
        return [value for kind in kinds for value in self.claims.get(kind, ())]

    def first(self, *kinds: str) -> str | None:
        return next((value for value in self.every(*kinds) if value), None)


def _read(field: str) -> _ClientPrincipal:
    """Return what a header's value says; raise ValueError."""
    if len(field) > _LONGEST:
        raise _UnreadableError
    value = decode(base64.b64decode(field.strip(" ").encode("ascii"), validate=True))
    if not isinstance(value, dict) or not isinstance(value.get("claims"), list):
        raise _UnreadableError
    claims: dict[str, list[str]] = {}
    for claim in value["claims"]:
        if not isinstance(claim, dict):
            raise _UnreadableError
        claims.setdefault(_text(claim, "typ"), []).append(_text(claim, "val"))
    return _ClientPrincipal(_text(value, "auth_typ"), _text(value, "name_typ"), _text(value, "role_typ"), claims)


def _text(value: Mapping[str, Any], name: str) -> str:
    found = value.get(name)
    if found is not None and not isinstance(found, str):
        raise _UnreadableError
    return found or ""
