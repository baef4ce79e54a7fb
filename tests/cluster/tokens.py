"""Tokens of the shop's callers."""

from __future__ import annotations

import secrets
from time import time

from joserfc.jwk import OctKey

from tests.auth.making_tokens import sign

_LIFETIME = 600


class Tokens:
    """Makes tokens that the shop takes.

    Attributes:
        secret: the key of the tokens, as the shop is told it.
    """

    def __init__(self) -> None:
        self.secret = secrets.token_urlsafe(64)

    def of(self, subject: str) -> str:
        """Return a token of a caller; a new one each time."""
        claims = {
            "iss": "https://login.example.com",
            "aud": "https://shop.example.com/mcp",
            "sub": subject,
            "client_id": "tests",
            "exp": int(time()) + _LIFETIME,
            "jti": secrets.token_hex(4),
        }
        signer = OctKey.import_key({"kty": "oct", "k": self.secret})
        return sign(claims, signer=signer, algorithm="HS256", header={"kid": None})

    def headers(self, subject: str) -> dict[str, str]:
        """Return the header of a request of a caller."""
        return {"authorization": f"Bearer {self.of(subject)}"}
