"""Makes tokens and keys, good and bad ones."""

from __future__ import annotations

import base64
import functools
import json
from typing import TYPE_CHECKING, Any, cast

from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from joserfc.jwk import Key

ISSUER = "https://login.example.com"
AUDIENCE = "https://orders.example.com/mcp"
NOW = 1_800_000_000.0


class Clock:
    """A clock that a test moves."""

    def __init__(self, now: float = NOW) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def key(kind: str = "RSA", name: str = "first") -> Key:
    """Return a private key; the same one each time."""
    return _generated(kind, name)


def pem(name: str = "first") -> bytes:
    """Return the RSA key to check with as text."""
    return cast("RSAKey", key("RSA", name)).as_pem(private=False)


@functools.cache
def _generated(kind: str, name: str) -> Key:
    parameters = {"kid": name}
    if kind == "RSA":
        return RSAKey.generate_key(2048, parameters)  # type: ignore[arg-type]
    if kind == "oct":
        return OctKey.generate_key(512, parameters)  # type: ignore[arg-type]
    if kind == "Ed25519":
        return OKPKey.generate_key("Ed25519", parameters)  # type: ignore[arg-type]
    return ECKey.generate_key(kind, parameters)  # type: ignore[arg-type]


def public(kind: str = "RSA", name: str = "first", **members: object) -> dict[str, Any]:
    """Return the JSON Web Key to check with."""
    return {**key(kind, name).as_dict(private=kind == "oct"), **members}


def claims(**changes: object) -> dict[str, Any]:
    """Return good claims, with others beside or instead; None takes one away."""
    good = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "exp": NOW + 600, "client_id": "app"}
    return {name: value for name, value in {**good, **changes}.items() if value is not None}


def text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def sign(
    payload: Mapping[str, object] | bytes,
    *,
    signer: Key | None = None,
    algorithm: str = "RS256",
    header: Mapping[str, object] | bytes | None = None,
) -> str:
    """Return a token; a header in pieces goes beside the usual one, None in it takes a member away."""
    if not isinstance(header, bytes):
        usual = {"alg": algorithm, "typ": "at+jwt", "kid": "first", **(header or {})}
        header = json.dumps({name: value for name, value in usual.items() if value is not None}).encode()
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    signed = f"{text(header)}.{text(body)}"
    signature = JWSRegistry.algorithms[algorithm].sign(signed.encode(), signer or key())
    return f"{signed}.{text(signature)}"


def bearing(token: str) -> dict[str, str]:
    """Return the header fields of a request with a token."""
    return {"accept": "application/json", "authorization": f"Bearer {token}"}
