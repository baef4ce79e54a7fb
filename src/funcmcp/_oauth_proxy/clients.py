"""Clients: registrations, which the client itself carries as its id.

How it works: a registration is checked, and sealed into the ``client_id`` that the client gets. So no store is needed,
no instance forgets a client, and registering many clients takes no room. A registration does not expire, so those of
version 0.1, which were lists, are read as well. Clients that register are public: PKCE binds a code to the client that
requested it. A client that the operator makes has a secret, which is derived from its id with the keys of the server.
Its id is sealed for another purpose, so it can't be taken for that of a public client. The same holds for clients that
need no PKCE.

Source: RFC 6749 section 2.3.1 (secrets); RFC 7591 sections 2, 3.2.1 and 3.2.2; RFC 9449 section 5.2
(`dpop_bound_access_tokens`); MCP "basic/authorization/client-registration".
"""

from __future__ import annotations

import hashlib
import hmac
import logging
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._oauth_proxy.redirect_uris import checked_uris
from funcmcp._objects.public_names import public
from funcmcp._protocol.codec import decode
from funcmcp._state.records import BOUND_VERSION, VERSION, are_texts, to_record, value_of
from funcmcp._state.seal import base64url
from funcmcp._text.visible import UNSAFE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from funcmcp._state.seal import KeyRing

_logger = logging.getLogger("funcmcp")

MAX_NAME = 100
MAX_CLIENT_ID = 4096
"""Maximum number of characters of a client id that is read. A registration has fewer."""

DEFAULT_GRANT_TYPES = ["authorization_code", "refresh_token"]
"""What a client may use that names no grant types. The default of RFC 7591 section 2 has no refresh tokens, but the
server may choose, and its answer says what it has chosen (section 3.2.1). The official SDK and FastMCP choose the same.
"""

_PURPOSE = "oauth client"
_PURPOSE_WITH_SECRET = "oauth client with a secret"  # noqa: S105 - a name
_PURPOSE_WITHOUT_PKCE = "oauth client without pkce"
_PURPOSES = (_PURPOSE, _PURPOSE_WITH_SECRET, _PURPOSE_WITHOUT_PKCE)
_UNNAMED = "An application without a name"


class ClientMetadataError(ValueError):
    """The metadata of a client are invalid. The text is a sentence for developers."""


class OAuthClient(NamedTuple):
    """A client.

    Attributes:
        key: The name of the client in tokens: a digest of its id, or the URL of its document.
        name: What the client calls itself, for people.
        redirect_uris: The addresses to which users return.
        refreshes: Whether it gets refresh tokens.
        host: The host of its document; None for a client that has registered.
        has_key: Whether each of its token requests needs a proof of a key (DPoP), as it says of itself.
        has_secret: Whether each of its token requests needs its secret.
        needs_pkce: Whether each of its sign-ins needs PKCE. A client without a secret always does.
    """

    key: str
    name: str
    redirect_uris: tuple[str, ...]
    refreshes: bool
    host: str | None = None
    has_key: bool = False
    has_secret: bool = False
    needs_pkce: bool = True


@public("funcmcp.auth")
class ClientWithSecret(NamedTuple):
    """A client of an `OAuthProxy` for a platform that asks for an id and a secret.

    Attributes:
        client_id: The id.
        client_secret: The secret.
    """

    client_id: str
    client_secret: str


class Clients:
    """Registers clients, and reads their ids.

    Args:
        keys: Seal the registrations.
        takes_proofs: Whether the proxy takes proofs of keys (DPoP). Otherwise no client is registered with one.
    """

    def __init__(self, keys: KeyRing, *, takes_proofs: bool = False) -> None:
        self._keys = keys
        self._takes_proofs = takes_proofs
        self._has_logged_unknown = False

    def register(self, body: bytes, now: float) -> dict[str, Any]:
        """Return the answer to a registration, which has the id and all registered values.

        Raises:
            RedirectURIError: A redirect URI is missing or not allowed.
            ClientMetadataError: Another value is invalid.
        """
        metadata = _object(body)
        uris = checked_uris(metadata.get("redirect_uris"), application_type=metadata.get("application_type"))
        name = display_name(metadata.get("client_name"))
        grant_types = texts_in(metadata, "grant_types", DEFAULT_GRANT_TYPES)
        if "authorization_code" not in grant_types:
            raise ClientMetadataError("grant_types must contain authorization_code.")
        if "code" not in texts_in(metadata, "response_types", ["code"]):
            raise ClientMetadataError("response_types must contain code.")
        refreshes = "refresh_token" in grant_types
        members = {"registered": int(now), "name": name, "redirect_uris": list(uris), "refreshes": refreshes}
        has_key = says_it_has_key(metadata) and self._takes_proofs
        version = BOUND_VERSION if has_key else VERSION
        client_id = self._keys.seal(_PURPOSE, to_record(members, {}, version))
        answer = {
            "client_id": client_id,
            "client_id_issued_at": int(now),
            "client_name": name,
            "redirect_uris": list(uris),
            "grant_types": ["authorization_code", "refresh_token"] if refreshes else ["authorization_code"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        }
        if isinstance(metadata.get("application_type"), str):
            answer["application_type"] = metadata["application_type"][:MAX_NAME]
        if has_key:
            answer["dpop_bound_access_tokens"] = True
        return answer

    def with_secret(self, name: str, redirect_uris: Sequence[str], *, needs_pkce: bool) -> ClientWithSecret:
        """Return a client with a secret. It is the same one for the same arguments.

        Args:
            name: What users read.
            redirect_uris: The addresses to which users return.
            needs_pkce: Whether each of its sign-ins needs PKCE.

        Raises:
            RedirectURIError: A redirect URI is missing or not allowed.
        """
        uris = checked_uris(list(redirect_uris))
        members = {"name": display_name(name), "redirect_uris": list(uris), "refreshes": True}
        purpose = _PURPOSE_WITH_SECRET if needs_pkce else _PURPOSE_WITHOUT_PKCE
        client_id = self._keys.seal(purpose, to_record(members, {}))
        return ClientWithSecret(client_id, self._secrets_of(client_id)[0])

    def is_authenticated(self, client_id: str, secret: str | None) -> bool:
        """Return whether a registered client may send a request with a secret. A public client needs none."""
        purpose, payload = self._opened(client_id)
        if payload is None or purpose == _PURPOSE:
            return True
        sent = (secret or "").encode("utf-8", "surrogatepass")
        # All secrets are compared, so that the time does not depend on the matching key.
        matches = [hmac.compare_digest(expected.encode(), sent) for expected in self._secrets_of(client_id)]
        return any(matches)

    def read(self, client_id: str) -> OAuthClient | None:
        """Return the client with an id; None if no key of the server has sealed it, or this version can't read it."""
        if len(client_id) > MAX_CLIENT_ID:
            return None
        purpose, payload = self._opened(client_id)
        if payload is None:
            self._log_unknown()
        version = VERSION
        match value_of(payload):
            case [int(), str(name), list(uris), bool(refreshes)]:  # of version 0.1
                pass
            case {
                "v": 1 | 2 as version,
                "name": str(name),
                "redirect_uris": list(uris),
                "refreshes": bool(refreshes),
            }:
                pass
            case _:
                return None
        if not are_texts(uris):
            return None
        has_key = version == BOUND_VERSION
        return OAuthClient(
            key_of(client_id),
            name,
            tuple(uris),
            refreshes,
            has_key=has_key,
            has_secret=purpose != _PURPOSE,
            needs_pkce=purpose != _PURPOSE_WITHOUT_PKCE,
        )

    def _opened(self, client_id: str) -> tuple[str, bytes | None]:
        """Return for what an id was sealed, and its record; None for an unknown one."""
        for purpose in _PURPOSES if len(client_id) <= MAX_CLIENT_ID else ():
            payload = self._keys.open(purpose, client_id)
            if payload is not None:
                return purpose, payload
        return _PURPOSE, None

    def _secrets_of(self, client_id: str) -> list[str]:
        """Return the secret of a client by each key of the server, that of the first key first."""
        keys = self._keys.derive(_PURPOSE_WITH_SECRET)
        return [base64url(hmac.digest(key, client_id.encode(), hashlib.sha256)) for key in keys]

    def _log_unknown(self) -> None:
        """Log once that an id is unknown: the operator may have changed the keys."""
        if self._has_logged_unknown:
            return
        self._has_logged_unknown = True
        _logger.warning(
            "A sign-in or a refresh is refused, because no key of this server has sealed its client id. If "
            "FUNCMCP_KEYS has changed, clients register again and users sign in again; list the earlier key behind the "
            "new one to prevent that. This is logged once."
        )


def key_of(client_id: str) -> str:
    """Return the name of a registered client in tokens and in the log."""
    return base64url(hashlib.sha256(client_id.encode()).digest()[:16])


def display_name(name: object) -> str:
    """Return a client's name for people: in one line, without hidden and control characters, cut."""
    if not isinstance(name, str):
        return _UNNAMED
    return " ".join(UNSAFE.sub(" ", name[: 10 * MAX_NAME]).split())[:MAX_NAME].strip() or _UNNAMED


def says_it_has_key(metadata: dict[str, Any]) -> bool:
    """Return whether the metadata of a client say that it binds all its tokens to a key (DPoP)."""
    value = metadata.get("dpop_bound_access_tokens", False)
    if not isinstance(value, bool):
        raise ClientMetadataError("dpop_bound_access_tokens must be true or false.")
    return value


def _object(body: bytes) -> dict[str, Any]:
    try:
        metadata = decode(body)
    except ValueError:
        metadata = None
    if not isinstance(metadata, dict):
        raise ClientMetadataError("The body must be a JSON object.")
    return metadata


def texts_in(metadata: dict[str, Any], name: str, default: list[str]) -> list[str]:
    """Return a list of strings in the metadata of a client; raise ClientMetadataError for another value."""
    value = metadata.get(name)
    if value is None:
        return default
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ClientMetadataError(f"{name} must be a list of strings.")
    return value
