"""The access tokens of the proxy: signed with keys that are derived from the keys of the server.

How it works: each key of the ring gives a private key on the curve P-256. The first one signs, all of them verify and
are published. So a rotation of the server's keys rotates them, too, and instances with the same keys accept the tokens
of each other.

Source: RFC 9068 section 2 (the token), RFC 9449 section 6.1 (`cnf`), RFC 7517 and RFC 7638 (keys and their names), RFC
7518 section 3.4 (ES256); NIST FIPS 186-5 appendix A.2.1 (a private key from extra random bits).
"""

from __future__ import annotations

import hashlib
import hmac
import os
from typing import TYPE_CHECKING, Any, Final

from cryptography.hazmat.primitives.asymmetric import ec
from joserfc.jwk import ECKey
from joserfc.jws import JWSRegistry

from funcmcp._oauth_proxy.upstream_tokens import CLAIM
from funcmcp._oauth_proxy.user_claims import REFERENCE, RESERVED
from funcmcp._protocol.codec import encode
from funcmcp._state.seal import base64url

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from funcmcp._oauth_proxy.upstream import User
    from funcmcp._state.seal import KeyRing

ALGORITHM: Final = "ES256"
TYPE: Final = "at+jwt"
_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_COORDINATE_BYTES: Final = 32


class AccessTokens:
    """Issues the access tokens for one endpoint.

    Args:
        issuer: The ``iss`` of the tokens.
        audience: The ``aud`` of the tokens: the URL of the endpoint.
        keys: The keys of the server.
        seconds: Seconds after which a token expires.

    Attributes:
        public_keys: The public keys as JSON Web Keys, that of the first key first.
    """

    def __init__(self, issuer: str, audience: str, keys: KeyRing, seconds: int) -> None:
        private = [_private_key(secret) for secret in keys.derive("oauth sign")]
        self.public_keys: list[dict[str, str]] = [_jwk(key) for key in private]
        self.seconds = seconds
        self._issuer = issuer
        self._audience = audience
        self._key = ECKey.import_key(private[0])

    def issue(  # noqa: PLR0913 - the claims
        self,
        user: User,
        client: str,
        scopes: Sequence[str],
        *,
        signed_in: int | None,
        now: float,
        seconds: int | None = None,
        upstream: str | None = None,
        claims: Mapping[str, Any] | None = None,
        sign_in: str | None = None,
        jkt: str | None = None,
    ) -> str:
        """Return a token.

        Args:
            user: The user, whose roles are in the token unless it refers to the sign-in.
            client: The client's key.
            scopes: The granted scopes.
            signed_in: When the user signed in, in seconds since 1970; None for a program.
            now: Seconds since 1970.
            seconds: Seconds after which the token expires; None for the usual number.
            upstream: The provider's access token of the sign-in, encrypted; None for none.
            claims: More claims of the user. They never replace one of the proxy.
            sign_in: A reference to the sign-in in the store, encrypted, in place of the roles and of *claims*; None
                for none.
            jkt: The thumbprint of the client's key to which the token is bound; None for a bearer token.
        """
        extra = {} if claims is None or sign_in is not None else claims
        standard: dict[str, Any] = {
            "iss": self._issuer,
            "aud": self._audience,
            "sub": user.subject,
            "client_id": client,
            "scope": " ".join(scopes),
            "iat": int(now),
            "exp": int(now) + (self.seconds if seconds is None else seconds),
            "auth_time": signed_in,
            "jti": base64url(os.urandom(16)),
            "name": user.name,
            "email": user.email,
            "tid": user.tenant,
            "roles": (sorted(user.roles) if sign_in is None else None) or None,
            CLAIM: upstream,
            REFERENCE: sign_in,
            "cnf": None if jkt is None else {"jkt": jkt},
        }
        header = {"alg": ALGORITHM, "typ": TYPE, "kid": self.public_keys[0]["kid"]}
        present = {name: value for name, value in extra.items() if name not in RESERVED}
        present |= {name: value for name, value in standard.items() if value is not None}
        signed = f"{base64url(encode(header))}.{base64url(encode(present))}"
        signature = JWSRegistry.algorithms[ALGORITHM].sign(signed.encode("ascii"), self._key)
        return f"{signed}.{base64url(signature)}"


def _private_key(secret: bytes) -> ec.EllipticCurvePrivateKey:
    """Return the private key of a secret. 512 bits make each key equally probable."""
    bits = int.from_bytes(hmac.digest(secret, b"P-256", hashlib.sha512), "big")
    return ec.derive_private_key(bits % (_ORDER - 1) + 1, ec.SECP256R1())


def _jwk(key: ec.EllipticCurvePrivateKey) -> dict[str, str]:
    numbers = key.public_key().public_numbers()
    jwk = {"crv": "P-256", "kty": "EC", "x": _number(numbers.x), "y": _number(numbers.y)}
    thumbprint = hashlib.sha256(encode(jwk)).digest()  # RFC 7638: these members, in this order
    return jwk | {"kid": base64url(thumbprint), "use": "sig", "alg": ALGORITHM}


def _number(value: int) -> str:
    return base64url(value.to_bytes(_COORDINATE_BYTES, "big"))
