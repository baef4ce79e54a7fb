"""Why a server could not be reached, in words for an operator.

An HTTP library has one error for an untrusted certificate, a refused connection and a name that does not exist. What
the operating system or the TLS library has said is in the causes of that error.
"""

from __future__ import annotations

import socket
import ssl
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_CAUSES: Final = 10
_HOST_NAME_MISMATCH, _ADDRESS_MISMATCH, _EXPIRED, _NOT_YET_VALID = 62, 64, 10, 9
"""Results of OpenSSL's verification (X509_V_ERR_...)."""

_CERTIFICATES: Final = {
    _HOST_NAME_MISMATCH: "its certificate is for another host name",
    _ADDRESS_MISMATCH: "its certificate is for another host name",
    _EXPIRED: "its certificate has expired",
    _NOT_YET_VALID: "its certificate is not valid yet: compare the clocks",
}
_UNKNOWN_AUTHORITY: Final = (
    "its certificate is not trusted. For a certificate authority of your own, set SSL_CERT_FILE to a file with the "
    "certificates of all authorities that the server trusts"
)


def reason_of(error: BaseException) -> str:
    """Return why a request has got no answer: the reason, and the name of the error in parentheses."""
    name = type(error).__name__
    for cause in _causes_of(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"{_CERTIFICATES.get(cause.verify_code, _UNKNOWN_AUTHORITY)} ({name})"
        if isinstance(cause, ssl.SSLError):
            return f"the connection is not TLS as the server can use it: {_tls_reason(cause)} ({name})"
        if isinstance(cause, socket.gaierror):
            return f"its host name can't be resolved ({name})"
        if isinstance(cause, ConnectionRefusedError):
            return f"the connection is refused: nothing listens at the address ({name})"
        if isinstance(cause, TimeoutError):
            return f"no answer in time ({name})"
    return name


def is_of_certificate(error: BaseException) -> bool:
    """Return whether a request has got no answer because the certificate of the server is not accepted."""
    return any(isinstance(cause, ssl.SSLCertVerificationError) for cause in _causes_of(error))


def _tls_reason(error: ssl.SSLError) -> str:
    reason = getattr(error, "reason", None)  # only errors of the TLS library itself have it
    return str(reason or "no reason").replace("_", " ").lower()


def _causes_of(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes, at most ten."""
    cause: BaseException | None = error
    for _ in range(_MAX_CAUSES):
        if cause is None:
            return
        if isinstance(cause, BaseExceptionGroup):  # one attempt for each address of a host
            cause = cause.exceptions[0]
        yield cause
        cause = cause.__cause__ or cause.__context__
