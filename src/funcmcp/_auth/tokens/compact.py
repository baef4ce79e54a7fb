"""The compact serialization of a JSON Web Signature, parsed strictly.

Source: RFC 7515 sections 2 (base64url without padding or any other character), 3.1, 4.1.11 and 7.1.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import Any

from funcmcp._protocol.codec import decode

MAX_TOKEN = 16 * 1024
"""Maximum number of characters of a token."""

_SHAPE = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]*)\.([A-Za-z0-9_-]+)")


class TokenError(ValueError):
    """A token is invalid. The text is the reason, without any part of the token."""


class MissingKeyError(TokenError):
    """A token can't be checked, because the server does not have the key of the issuer at present."""


@dataclass(frozen=True, slots=True)
class SignedToken:
    """The parts of a token. None of them is verified.

    Attributes:
        algorithm: The algorithm of the signature (``alg``).
        key_id: The name of the key (``kid``), or None.
        type: The media type (``typ``) in lower case without ``application/``, or None.
        payload: The payload.
        signed: The text that is signed.
        signature: The signature.
        jwk: The key in the header, of whatever type. Only a proof of possession brings its own key; a token that did
            would be worth nothing.
    """

    algorithm: str
    key_id: str | None
    type: str | None
    payload: bytes
    signed: bytes
    signature: bytes
    jwk: object = None


def read(token: str, longest: int = MAX_TOKEN) -> SignedToken:
    """Return the parts of a token.

    References to keys in the header (`jku`, `x5u`, `x5c`) are ignored: a token must not select its own key.

    Args:
        token: The token.
        longest: Maximum number of characters of the token.

    Raises:
        TokenError: The text is not a signed token, is too long, or has critical extensions (``crit``).
    """
    if len(token) > longest:
        raise TokenError("The token is too long.")
    match = _SHAPE.fullmatch(token)
    if match is None:
        raise TokenError("The token is not a signed JSON Web Token.")
    header = read_object(_to_bytes(match[1]), "header")
    if "crit" in header:
        raise TokenError("The token has extensions that the server does not support.")
    algorithm = _text(header, "alg")
    if algorithm is None:
        raise TokenError("The token has no algorithm.")
    kind = _text(header, "typ")
    return SignedToken(
        algorithm=algorithm,
        key_id=_text(header, "kid"),
        type=None if kind is None else kind.lower().removeprefix("application/"),
        payload=_to_bytes(match[2]),
        signed=token.rpartition(".")[0].encode("ascii"),
        signature=_to_bytes(match[3]),
        jwk=header.get("jwk"),
    )


def has_shape(token: str) -> bool:
    """Return whether a text looks like a signed JSON Web Token: three parts, of which the first one is an object."""
    return token.startswith("ey") and len(token) <= MAX_TOKEN and _SHAPE.fullmatch(token) is not None


def unverified_claims(token: str) -> dict[str, Any]:
    """Return what a text of this shape says about itself, which proves nothing; an empty dict if it is not readable."""
    try:
        return read_object(_to_bytes(token.split(".")[1]), "payload")
    except TokenError:
        return {}


def read_object(json_text: bytes, part: str) -> dict[str, Any]:
    """Return the JSON object in a part of a token; raise TokenError if the part is not a JSON object."""
    try:
        value = decode(json_text)
    except ValueError:
        raise TokenError(f"The token's {part} is not valid JSON.") from None
    if not isinstance(value, dict):
        raise TokenError(f"The token's {part} is not a JSON object.")
    return value


def _text(header: dict[str, Any], name: str) -> str | None:
    value = header.get(name)
    if value is not None and not isinstance(value, str):
        raise TokenError("A member of the token's header is not a string.")
    return value


def _to_bytes(text: str) -> bytes:
    if len(text) % 4 == 1:
        raise TokenError("The token is not a signed JSON Web Token.")
    decoded = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    # Only the canonical encoding is valid: the unused bits of the last character must be zero.
    if base64.urlsafe_b64encode(decoded).rstrip(b"=") != text.encode("ascii"):
        raise TokenError("The token is not a signed JSON Web Token.")
    return decoded
