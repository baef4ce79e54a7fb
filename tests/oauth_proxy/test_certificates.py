"""Certificates as credentials at Entra ID: what can be read, and what is signed."""

from __future__ import annotations

import base64
import hashlib
import logging
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    pkcs12,
)

from funcmcp._oauth_proxy.upstream import AuthorizationRequest, UpstreamUnavailableError
from funcmcp.auth import ClientCertificate, EntraID
from tests.auth.making_tokens import Clock
from tests.oauth_proxy.scripted import APP, TENANT, with_keys
from tests.oauth_proxy.scripted_entra import ScriptedEntra
from tests.oauth_proxy.stage import challenge_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.lowest("cryptography and joserfc check the signatures.")

REQUEST = AuthorizationRequest("https://orders.example.com/oauth/callback", "state", challenge_of("verifier"), "nonce")
PASSWORD = b"the password"


@cache
def key(bits: int = 2048) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, bits)


@cache
def certificate(days: int = 365, signer: Any = None) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "orders")])
    now = datetime.now(UTC)
    signer = signer or key()
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(signer.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1000))
        .not_valid_after(now + timedelta(days=days))
        .sign(signer, hashes.SHA256())
    )


def pem(private: Any = None, signed: x509.Certificate | None = None, password: bytes | None = None) -> bytes:
    encryption = NoEncryption() if password is None else BestAvailableEncryption(password)
    text = (private or key()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
    return (signed or certificate()).public_bytes(Encoding.PEM) + text


def registered() -> dict[str, Any]:
    """Return the certificate as the registration has it."""
    digest = hashlib.sha256(certificate().public_bytes(Encoding.DER)).digest()
    public = key().public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return {base64.urlsafe_b64encode(digest).rstrip(b"=").decode(): public.decode()}


async def exchange(script: ScriptedEntra, credential: ClientCertificate, clock: Clock) -> Any:
    upstream = with_keys(EntraID(TENANT, APP, credential=credential, clock=clock), script)
    code = script.sign_in(await upstream.authorization_url(REQUEST))["code"]
    return await upstream.exchange(code, redirect_uri=REQUEST.redirect_uri, verifier="verifier", nonce="nonce")


@pytest.mark.parametrize("algorithm", ["PS256", "RS256"])
async def test_a_certificate_signs_each_request(algorithm: Any) -> None:
    script = ScriptedEntra(certificates=registered())
    signed_in = await exchange(script, ClientCertificate(pem(), algorithm=algorithm), script.clock)
    assert signed_in.user.name == "Ada"
    form = script.requests[-1][3]
    assert "client_secret" not in form
    assert "authorization" not in script.requests[-1][2]


@pytest.mark.parametrize("digests", [{}, None])
async def test_a_certificate_that_is_not_registered_is_an_outage_that_says_what_to_do(digests: Any) -> None:
    script = ScriptedEntra(certificates=digests or {})
    with pytest.raises(UpstreamUnavailableError, match="AADSTS700027: The certificate is not registered"):
        await exchange(script, ClientCertificate(pem()), script.clock)


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_a_wrong_clock_and_the_key_of_another_certificate_have_errors_of_their_own() -> None:
    script = ScriptedEntra(certificates=registered())
    with pytest.raises(UpstreamUnavailableError, match="AADSTS700024: The clock of the server is wrong"):
        await exchange(script, ClientCertificate(pem()), Clock(script.clock() - 3600))
    thumbprint = next(iter(script.certificates))
    other = rsa.generate_private_key(65537, 2048).public_key()
    script.certificates[thumbprint] = other.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    with pytest.raises(UpstreamUnavailableError, match="AADSTS7000274"):
        await exchange(script, ClientCertificate(pem()), script.clock)


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
def test_pem_and_pkcs12_can_be_read_with_and_without_a_password(tmp_path: Path) -> None:
    thumbprint = hashlib.sha256(certificate().public_bytes(Encoding.DER)).hexdigest().upper()
    bundle = pkcs12.serialize_key_and_certificates(b"orders", key(), certificate(), None, NoEncryption())
    locked = pkcs12.serialize_key_and_certificates(
        b"orders", key(), certificate(), None, BestAvailableEncryption(PASSWORD)
    )
    file = tmp_path / "orders.pem"
    file.write_bytes(pem())
    chain = pem() + certificate(signer=rsa.generate_private_key(65537, 2048)).public_bytes(Encoding.PEM)
    certificates = [
        ClientCertificate(pem()),
        ClientCertificate(pem().decode()),
        ClientCertificate(chain),
        ClientCertificate(pem(password=PASSWORD), PASSWORD),
        ClientCertificate(pem(password=PASSWORD), PASSWORD.decode()),
        ClientCertificate(bundle),
        ClientCertificate(locked, PASSWORD),
        ClientCertificate.from_file(file),
    ]
    assert {one.thumbprint for one in certificates} == {thumbprint}
    assert repr(certificates[0]) == f"ClientCertificate({thumbprint})"


@pytest.mark.parametrize(
    ("data", "password", "message"),
    [
        (b"nonsense", None, "can't read its data"),
        ("-----BEGIN nonsense", None, "can't read its data"),
        (pem(password=PASSWORD), None, "can't read its data"),
        (pem(password=PASSWORD), b"another", "can't read its data"),
        (pem(key(1024)), None, "RSA key of at least 2048 bits"),
        (pem(ec.generate_private_key(ec.SECP256R1())), None, "RSA key of at least 2048 bits"),
        (pem(rsa.generate_private_key(65537, 2048)), None, "needs the certificate of the key"),
    ],
)
def test_other_data_are_refused_with_a_reason(data: Any, password: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ClientCertificate(data, password)


def test_an_unknown_algorithm_is_refused() -> None:
    with pytest.raises(ValueError, match="PS256 or RS256"):
        ClientCertificate(pem(), algorithm="HS256")  # type: ignore[arg-type]


def test_a_certificate_that_ends_soon_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "funcmcp"):
        ClientCertificate(pem())
        assert not caplog.records
        ClientCertificate(pem(signed=certificate(days=10)))
        ClientCertificate(pem(signed=certificate(days=-1)))
    assert [record.getMessage().split(" ")[0] for record in caplog.records] == ["event=oauth_certificate_ends"] * 2
