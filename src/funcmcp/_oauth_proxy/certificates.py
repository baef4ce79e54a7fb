"""A certificate as the credential of a registration in Entra ID.

How it works: each request for tokens has a short statement that the application itself has signed. Entra knows the
certificate, and finds it by its SHA-256 digest in the header.

Source: Microsoft identity platform, "Application authentication certificate credentials" (header ``x5t#S256``,
algorithm PS256, claims); RFC 7523 section 2.2 and 3; RFC 7515 section 4.1.8.
"""

from __future__ import annotations

import hashlib
import logging
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from funcmcp._objects.public_names import public
from funcmcp._protocol.codec import encode
from funcmcp._state.seal import base64url

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.x509 import Certificate

_logger = logging.getLogger("funcmcp")

_MIN_KEY_BITS: Final = 2048
_SECONDS: Final = 300
_WARNING: Final = timedelta(days=30)


@public("funcmcp.auth")
class ClientCertificate:
    """A certificate with its private key, as the credential of a registration in Entra ID.

    Upload the certificate, without the key, under *Certificates & secrets* of the registration. A certificate is better
    than a secret, as its key never leaves the server. A `ManagedIdentity` is better still.

    Args:
        data: The RSA key and the certificate: PEM with both in one text, or PKCS #12 (``.pfx``).
        password: The password of the key, if it has one.
        algorithm: The signature algorithm. Entra recommends PS256 and accepts RS256.

    Attributes:
        thumbprint: The SHA-256 digest of the certificate, in hexadecimal digits.

    Raises:
        ValueError: The data have no certificate or no RSA key of 2048 bits at least, the key is that of another
            certificate, or the password is wrong.
    """

    def __init__(
        self,
        data: str | bytes,
        password: str | bytes | None = None,
        *,
        algorithm: Literal["PS256", "RS256"] = "PS256",
    ) -> None:
        from joserfc.jwk import RSAKey  # noqa: PLC0415 - few servers have a certificate

        if algorithm not in {"PS256", "RS256"}:
            raise ValueError(f"ClientCertificate.algorithm must be PS256 or RS256, not {algorithm!r}.")
        key, certificate = _read(_bytes(data), None if password is None else _bytes(password))
        self._algorithm = algorithm
        self._key = RSAKey.import_key(key)
        self._digest = hashlib.sha256(_der(certificate)).digest()
        self.thumbprint: str = self._digest.hex().upper()
        _warn_of_end(certificate, self.thumbprint)

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        password: str | bytes | None = None,
        *,
        algorithm: Literal["PS256", "RS256"] = "PS256",
    ) -> ClientCertificate:
        """Return the certificate in a ``.pem`` or ``.pfx`` file; raise OSError or ValueError."""
        return cls(Path(path).read_bytes(), password, algorithm=algorithm)

    def __repr__(self) -> str:
        return f"ClientCertificate({self.thumbprint})"

    def assertion(self, client_id: str, audience: str, now: float) -> str:
        """Return a statement for one request: that it comes from a client.

        Args:
            client_id: The client.
            audience: The token endpoint.
            now: Seconds since 1970.
        """
        from joserfc.jws import JWSRegistry  # noqa: PLC0415 - as above

        header = {"alg": self._algorithm, "typ": "JWT", "x5t#S256": base64url(self._digest)}
        claims = {
            "aud": audience,
            "iss": client_id,
            "sub": client_id,
            "jti": base64url(os.urandom(16)),
            "iat": int(now),
            "nbf": int(now),
            "exp": int(now) + _SECONDS,
        }
        signed = f"{base64url(encode(header))}.{base64url(encode(claims))}"
        signature = JWSRegistry.algorithms[self._algorithm].sign(signed.encode("ascii"), self._key)
        return f"{signed}.{base64url(signature)}"


def _read(encoded: bytes, password: bytes | None) -> tuple[RSAPrivateKey, Certificate]:
    """Return the key and its certificate; raise ValueError if they can't be used."""
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey  # noqa: PLC0415 - as above

    key, certificates = _parts(encoded, password)
    if not isinstance(key, RSAPrivateKey) or key.key_size < _MIN_KEY_BITS:
        raise ValueError(f"ClientCertificate needs an RSA key of at least {_MIN_KEY_BITS} bits.")
    for certificate in certificates:
        if certificate.public_key() == key.public_key():
            return key, certificate
    raise ValueError("ClientCertificate needs the certificate of the key.")


def _parts(encoded: bytes, password: bytes | None) -> tuple[object, list[Certificate]]:
    """Return the key and the certificates in PEM or PKCS #12."""
    from cryptography.hazmat.primitives.serialization import load_pem_private_key, pkcs12  # noqa: PLC0415 - as above
    from cryptography.x509 import load_pem_x509_certificates  # noqa: PLC0415 - as above

    try:
        if b"-----BEGIN " in encoded:
            return load_pem_private_key(encoded, password), load_pem_x509_certificates(encoded)
        key, certificate, chain = pkcs12.load_key_and_certificates(encoded, password)
    except (TypeError, ValueError) as error:
        # The library's texts name what is wrong (a password, a part that is missing), and contain none of the data.
        raise ValueError(f"ClientCertificate can't read its data: {error}") from None
    return key, [*([] if certificate is None else [certificate]), *chain]


def _der(certificate: Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding  # noqa: PLC0415 - as above

    return certificate.public_bytes(Encoding.DER)


def _warn_of_end(certificate: Certificate, thumbprint: str) -> None:
    end = certificate.not_valid_after_utc
    if end < datetime.now(UTC) + _WARNING:
        _logger.warning(
            "event=oauth_certificate_ends certificate=%s end=%s: register a new one at Entra ID.",
            thumbprint,
            end.date().isoformat(),
        )


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value
