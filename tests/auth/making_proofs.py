"""Makes proofs of possession (DPoP), good and bad ones, and tokens that are bound to a key."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from tests.auth.making_tokens import AUDIENCE, NOW, claims, key, sign, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from joserfc.jwk import Key

_MEMBERS = ("kty", "crv", "x", "y", "n", "e")


def jwk_of(signer: Key) -> dict[str, Any]:
    """Return the public key of a proof."""
    members = signer.as_dict(private=False)
    return {name: members[name] for name in _MEMBERS if name in members}


def hash_of(token: str) -> str:
    """Return the value of ``ath`` for a token."""
    return text(hashlib.sha256(token.encode()).digest())


def proof(
    token: str | None = None,
    *,
    signer: Key | None = None,
    algorithm: str = "ES256",
    header: Mapping[str, object] | None = None,
    **changes: object,
) -> str:
    """Return a proof for a POST to the audience of the tests.

    Args:
        token: The access token of the request; None at a token endpoint.
        signer: The key.
        algorithm: The algorithm.
        header: Members of the header beside or instead of the usual ones; None takes one away.
        changes: Claims beside or instead of the usual ones; None takes one away.
    """
    signer = signer or key("P-256")
    usual = {"jti": "first", "htm": "POST", "htu": AUDIENCE, "iat": int(NOW)}
    if token is not None:
        usual["ath"] = hash_of(token)
    payload = {name: value for name, value in {**usual, **changes}.items() if value is not None}
    members = {"typ": "dpop+jwt", "kid": None, "jwk": jwk_of(signer), **(header or {})}
    return sign(payload, signer=signer, algorithm=algorithm, header=members)


def bound(signer: Key | None = None, **changes: object) -> str:
    """Return an access token that is bound to a key."""
    return sign(claims(cnf={"jkt": (signer or key("P-256")).thumbprint()}, **changes))
