"""Causes of connections that fail, in the chains in which HTTP libraries raise them."""

from __future__ import annotations

import socket
import ssl

import pytest

from funcmcp._auth.connection_errors import is_of_certificate, reason_of


class ConnectError(Exception):
    """The error of an HTTP library."""


def chained(*causes: BaseException) -> BaseException:
    """Return the error of a library with its causes."""
    error: BaseException = ConnectError("")
    link = error
    for cause in causes:
        link.__cause__ = cause
        link = cause
    return error


def untrusted(code: int) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code = code
    return error


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (chained(untrusted(20)), "not trusted. For a certificate authority of your own, set SSL_CERT_FILE"),
        (chained(untrusted(18)), "SSL_CERT_FILE"),
        (chained(OSError("wrapped"), untrusted(62)), "is for another host name"),
        (chained(untrusted(64)), "is for another host name"),
        (chained(untrusted(10)), "has expired"),
        (chained(untrusted(9)), "compare the clocks"),
        (chained(ssl.SSLEOFError(8, "EOF")), "is not TLS as the server can use it"),
        (chained(socket.gaierror(-2, "Name or service not known")), "host name can't be resolved (ConnectError)"),
        (chained(OSError("All attempts failed"), ConnectionRefusedError(111, "")), "nothing listens at the address"),
        (chained(ExceptionGroup("attempts", [ConnectionRefusedError(111, "")])), "nothing listens at the address"),
        (TimeoutError(), "no answer in time (TimeoutError)"),
    ],
)
def test_the_reason_is_that_of_the_system(error: BaseException, reason: str) -> None:
    assert reason in reason_of(error)
    assert is_of_certificate(error) == ("certificate" in reason_of(error))


def test_without_a_known_cause_the_reason_is_the_name_of_the_error() -> None:
    assert reason_of(chained()) == "ConnectError"
    assert reason_of(chained(*(ValueError() for _ in range(50)))) == "ConnectError"
    assert not is_of_certificate(chained())
