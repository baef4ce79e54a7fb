"""Certificate authorities of a file: what can be read, and what is trusted beside it."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import pytest

from funcmcp._auth.authorities import checked_ca_file, tls_context
from tests.auth.issuer import certificate

if TYPE_CHECKING:
    from pathlib import Path


def test_a_file_with_a_certificate_is_trusted_beside_the_authorities_of_the_system(tmp_path: Path) -> None:
    file = certificate(tmp_path)
    assert checked_ca_file("ca_file", file) == str(file)
    usual, more = tls_context(None), tls_context(str(file))
    assert more.verify_mode == ssl.CERT_REQUIRED
    assert more.check_hostname
    assert more.cert_store_stats()["x509"] == usual.cert_store_stats()["x509"] + 1


def test_without_a_file_there_is_nothing_to_check() -> None:
    assert checked_ca_file("ca_file", None) is None


@pytest.mark.parametrize("content", [b"", b"text", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_a_file_without_certificates_is_an_error(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "authority.pem"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r"OIDC\.ca_file can't be used: .*authority\.pem"):
        checked_ca_file("OIDC.ca_file", file)


def test_a_missing_file_and_a_folder_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="No such file"):
        checked_ca_file("ca_file", tmp_path / "missing.pem")
    with pytest.raises(ValueError, match="can't be used"):
        checked_ca_file("ca_file", tmp_path)
