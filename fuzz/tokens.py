"""Credentials: bearer tokens from raw texts to signed claims of any kind, and Easy Auth's header.

An input that begins with `{` is the header of a token, and behind a line feed the payload; both are signed rightly.
Any other is the Authorization header as it came.
"""

from __future__ import annotations

import base64
import hashlib
import hmac

from funcmcp._auth.authenticator import Challenge
from funcmcp._auth.easy_auth import HEADER, EasyAuth
from funcmcp._auth.principal import Principal
from funcmcp._auth.protected_resource import unauthorized
from funcmcp._auth.tokens.bearer import BearerTokens
from funcmcp._auth.tokens.claims import TokenRules
from funcmcp._auth.tokens.compact import TokenError, read
from funcmcp._auth.tokens.keys import StaticKeys
from funcmcp._protocol.codec import encode
from fuzz.driving import drive

ISSUER, AUDIENCE, NOW = "https://login.example.com", "https://orders.example.com/mcp", 1_800_000_000.0
_SECRET = b"a secret of the fuzzer's own, 32+"
_RULES = TokenRules(algorithms=["HS256"], types=["at+jwt", "JWT"])
_PLATFORM = EasyAuth(trust_platform=True, environ={"WEBSITE_AUTH_ENABLED": "true"})
_UNCHECKED = "The token can't be verified."


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


_KEYS = StaticKeys({"kty": "oct", "k": _text(_SECRET), "kid": "one"})


def sign(header: bytes, payload: bytes) -> str:
    """Return a token whose signature is right."""
    signed = f"{_text(header)}.{_text(payload)}"
    return f"{signed}.{_text(hmac.digest(_SECRET, signed.encode(), hashlib.sha256))}"


def check(data: bytes) -> None:
    """Ask for the identity of a caller with these credentials."""
    bearer = BearerTokens(ISSUER, AUDIENCE, keys=_KEYS, rules=_RULES, clock=lambda: NOW)
    if data.startswith(b"{"):
        header, _, payload = data.partition(b"\n")
        token = sign(header, payload)
        _check_parts(token)
        _check_identity(drive(bearer({"authorization": f"Bearer {token}"})))
        return
    field = data.decode("latin-1")
    _check_parts(field)
    for value in (field, f"Bearer {field}"):
        identity = drive(bearer({"authorization": value}))
        assert not isinstance(identity, Principal), "the token is not signed"
        _check_identity(identity)
    for value in (field, base64.b64encode(data).decode("ascii")):
        _check_challenge(drive(_PLATFORM({HEADER: value})))


def _check_parts(token: str) -> None:
    """The parts of a token, encoded again, are the token itself."""
    try:
        parts = read(token)
    except TokenError as error:
        assert len(str(error)) < 100
        return
    assert f"{parts.signed.decode('ascii')}.{_text(parts.signature)}" == token
    assert _text(parts.payload) == token.split(".")[1]


def _check_identity(identity: Principal | Challenge | None) -> None:
    _check_challenge(identity)
    if isinstance(identity, Principal):
        audience = identity.claims["aud"]
        assert identity.issuer == identity.claims["iss"] == ISSUER
        assert AUDIENCE in {name.removesuffix("/") for name in ([audience] if isinstance(audience, str) else audience)}
        assert identity.claims["exp"] + 60 > NOW
        assert identity.subject == identity.claims["sub"]
        encode(dict(identity.claims))


def _check_challenge(identity: Principal | Challenge | None) -> None:
    if isinstance(identity, Challenge):
        assert identity.description != _UNCHECKED, "a library failed"
        header = unauthorized(identity, metadata_url="https://orders.example.com/metadata", scopes=["read"])
        assert header.isascii()
        assert header.isprintable()
