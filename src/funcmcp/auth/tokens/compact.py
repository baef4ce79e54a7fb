"""Signed tokens as text: the compact serialisation of a JSON Web Signature, read strictly.

Source: RFC 7515 sections 2 (base64url without padding or any other character), 3.1, 4.1.11 and 7.1.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import Any

from funcmcp.protocol.codec import decode

LONGEST = 16 * 1024
"""Characters that a token may have."""

_SHAPE = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]*)\.([A-Za-z0-9_-]+)")


class TokenError(ValueError):
    """A token is refused; the text says why and repeats nothing of it."""


@dataclass(frozen=True, slots=True)
class SignedToken:
    """What a token says, with nothing of it checked yet.

    Attributes:
        algorithm: how it says to be signed.
        key_id: which key it says to be signed with.
        type: its media type in lower case without ``application/``, or None.
        payload: the bytes that are signed for.
        signed: the text that the signature is of.
        signature: the signature.
    """

    algorithm: str
    key_id: str | None
    type: str | None
    payload: bytes
    signed: bytes
    signature: bytes


def read(token: str) -> SignedToken:
    """Return a token's parts.

    Keys that a header brings along (`jwk`, `jku`, `x5u`, `x5c`) are not looked at: nobody may choose what to be
    checked with.

    Raises:
        TokenError: the text is no such token, is too long, or has extensions that have to be understood (`crit`).
    """
    if len(token) > LONGEST:
        raise TokenError("The token is too long.")
    match = _SHAPE.fullmatch(token)
    if match is None:
        raise TokenError("The token is no signed JSON Web Token.")
    header = read_object(_to_bytes(match[1]), "header")
    if "crit" in header:
        raise TokenError("The token has extensions that are not understood.")
    algorithm = _text(header, "alg")
    if algorithm is None:
        raise TokenError("The token does not name its algorithm.")
    kind = _text(header, "typ")
    return SignedToken(
        algorithm=algorithm,
        key_id=_text(header, "kid"),
        type=None if kind is None else kind.lower().removeprefix("application/"),
        payload=_to_bytes(match[2]),
        signed=token.rpartition(".")[0].encode("ascii"),
        signature=_to_bytes(match[3]),
    )


def read_object(data: bytes, part: str) -> dict[str, Any]:
    """Return the JSON object that a part of a token is, or raise TokenError."""
    try:
        value = decode(data)
    except ValueError:
        raise TokenError(f"The token's {part} is not valid JSON.") from None
    if not isinstance(value, dict):
        raise TokenError(f"The token's {part} is no JSON object.")
    return value


def _text(header: dict[str, Any], name: str) -> str | None:
    value = header.get(name)
    if value is not None and not isinstance(value, str):
        raise TokenError("The token's header is not as it has to be.")
    return value


def _to_bytes(text: str) -> bytes:
    if len(text) % 4 == 1:
        raise TokenError("The token is no signed JSON Web Token.")
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    # Only the canonical spelling counts: the unused bits of the last character must be zero.
    if base64.urlsafe_b64encode(data).rstrip(b"=") != text.encode("ascii"):
        raise TokenError("The token is no signed JSON Web Token.")
    return data
