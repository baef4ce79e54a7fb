"""``funcmcp run --tls-cert --tls-key --client-ca``: HTTPS with certificates that the tests make themselves."""

from __future__ import annotations

import datetime as dt
import http.client
import re
import ssl
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.certificates import write_certificate
from tests.cli.forking import funcmcp, running
from tests.cli.processes import FUNCMCP, Running
from tests.clients.plan import Target, tool
from tests.clients.players import PLAYERS, Player
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SERVER = """
from funcmcp import MCPServer

mcp = MCPServer("Sums")


@mcp.tool
def add(a: int, b: int) -> int:
    return a + b
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a server, a certificate for 127.0.0.1 (cert.pem, key.pem), and files that are none."""
    folder: Path = tmp_path_factory.mktemp("https")
    (folder / "sums.py").write_text(SERVER, encoding="utf-8")
    key = write_certificate(folder)
    locked = serialization.BestAvailableEncryption(b"secret")
    data = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked)
    (folder / "locked.pem").write_bytes(data)
    other = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "other.pem").write_bytes(other)
    (folder / "text.pem").write_text("no certificate\n")
    return folder


def url_of(process: Running) -> str:
    url = re.search(r"https://127\.0\.0\.1:\d+/mcp", process.line_with("is served at"))
    assert url is not None
    return url[0]


@pytest.fixture(scope="module", params=[[], ["--workers", "2"]], ids=["plain", "workers"])
def url(folder: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    files = ["--tls-cert", "cert.pem", "--tls-key", "key.pem"]
    with running([*FUNCMCP, "run", "sums.py", "--port", "0", *files, *request.param], folder=folder) as process:
        yield url_of(process)


@pytest.mark.parametrize("player", [PLAYERS[0], PLAYERS[2], PLAYERS[3], PLAYERS[-1]], ids=lambda player: player.name)
def test_a_client_that_trusts_the_certificate_calls_over_https(
    player: Player, url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / "cert.pem"))
    monkeypatch.setenv("NODE_EXTRA_CA_CERTS", str(folder / "cert.pem"))
    played = player.play(Target("http", url), [tool("add", {"a": 1, "b": 2})])
    assert played.calls[0].result is not None
    assert played.calls[0].result["content"][0]["text"] == "3"


@pytest.mark.parametrize("options", [[], ["--workers", "2"]], ids=["plain", "workers"])
@pytest.mark.parametrize(
    ("certificate", "key", "reason"),
    [
        ("missing.pem", "key.pem", "Can't read missing.pem: No such file or directory."),
        ("cert.pem", "missing.pem", "Can't read missing.pem: No such file or directory."),
        (
            "text.pem",
            "key.pem",
            "text.pem and key.pem are not a PEM certificate and its private key without a password",
        ),
        ("cert.pem", "other.pem", "cert.pem and other.pem are not a PEM certificate and its private key without"),
        ("cert.pem", "locked.pem", "without a password: the key has a password."),
    ],
)
def test_files_that_can_not_be_served_with_are_one_line(
    folder: Path, certificate: str, key: str, reason: str, options: list[str]
) -> None:
    files = ["--tls-cert", certificate, "--tls-key", key]
    ended = funcmcp("run", "sums.py", "--port", "0", *files, *options, folder=folder)
    assert (ended.returncode, ended.stdout) == (1, "")
    [line] = ended.stderr.splitlines()
    assert reason in line
    assert line.endswith("Correct --tls-cert and --tls-key.")


@pytest.mark.parametrize("option", ["--tls-cert", "--tls-key"])
def test_one_file_alone_is_refused(folder: Path, option: str) -> None:
    ended = funcmcp("run", "sums.py", option, "cert.pem", folder=folder)
    assert ended.returncode == 2
    assert "HTTPS needs both --tls-cert and --tls-key." in " ".join(ended.stderr.split())


def certificate_of_client(folder: Path, name: str, authority: str) -> tuple[Path, Path]:
    """Write a certificate of a client and its key, signed by the authority of two files; return their paths."""
    issuer = x509.load_pem_x509_certificate((folder / f"{authority}.pem").read_bytes())
    signer = serialization.load_pem_private_key((folder / f"{authority}-key.pem").read_bytes(), None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = new_certificate(name, key, issuer.subject, is_authority=False).sign(signer, hashes.SHA256())
    return write_pair(folder, name, certificate, key)


def new_certificate(
    name: str, key: ec.EllipticCurvePrivateKey, issuer: x509.Name | None, *, is_authority: bool
) -> x509.CertificateBuilder:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer or subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
    )


def write_pair(
    folder: Path, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey
) -> tuple[Path, Path]:
    paths = folder / f"{name}.pem", folder / f"{name}-key.pem"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return paths


@pytest.fixture(scope="module")
def authorities(folder: Path) -> Path:
    """The folder, also with two authorities (ours.pem, theirs.pem) and their keys."""
    for name in ("ours", "theirs"):
        key = ec.generate_private_key(ec.SECP256R1())
        write_pair(folder, name, new_certificate(name, key, None, is_authority=True).sign(key, hashes.SHA256()), key)
    return folder


def status_over_tls(url: str, folder: Path, authority: str | None) -> int:
    """Return the status for a client with a certificate of an authority, or without one."""
    trust = ssl.create_default_context(cafile=str(folder / "cert.pem"))
    if authority is not None:
        trust.load_cert_chain(*certificate_of_client(folder, f"client of {authority}", authority))
    connection = http.client.HTTPSConnection(urlsplit(url).netloc, context=trust, timeout=PATIENCE)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
@pytest.mark.parametrize("options", [[], ["--workers", "2"]], ids=["plain", "workers"])
def test_with_an_authority_of_clients_only_its_clients_connect(authorities: Path, options: list[str]) -> None:
    files = ["--tls-cert", "cert.pem", "--tls-key", "key.pem", "--client-ca", "ours.pem", "--log-level", "info"]
    with running([*FUNCMCP, "run", "sums.py", "--port", "0", *files, *options], folder=authorities) as process:
        url = url_of(process)
        assert status_over_tls(url, authorities, "ours") == 200
        for authority in ("theirs", None):
            with pytest.raises(OSError):  # the end of the connection, or an alert of TLS
                status_over_tls(url, authorities, authority)
        assert status_over_tls(url, authorities, "ours") == 200
        process.line_with("A client is refused: it has no certificate.")
    assert process.output.count("A client is refused: its certificate is not valid: ") == 1
    assert process.output.count("A client is refused: ") == 2
    assert "Traceback" not in process.output


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("missing.pem", "Can't read missing.pem: No such file or directory."),
        ("text.pem", "text.pem has no PEM certificates of authorities: "),
    ],
)
def test_a_file_without_authorities_is_one_line(folder: Path, file: str, reason: str) -> None:
    files = ["--tls-cert", "cert.pem", "--tls-key", "key.pem", "--client-ca", file]
    ended = funcmcp("run", "sums.py", "--port", "0", *files, folder=folder)
    assert (ended.returncode, ended.stdout) == (1, "")
    [line] = ended.stderr.splitlines()
    assert reason in line
    assert line.endswith("Correct --tls-cert, --tls-key and --client-ca.")


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
def test_authorities_of_clients_need_https(folder: Path) -> None:
    ended = funcmcp("run", "sums.py", "--client-ca", "cert.pem", folder=folder)
    assert ended.returncode == 2
    assert "pass --tls-cert and --tls-key as well" in " ".join(ended.stderr.split())


def test_a_client_that_does_not_trust_the_certificate_says_so(url: str) -> None:
    ended = funcmcp("call", url, "add", "a=1", "b=2")
    assert ended.returncode != 0
    line = " ".join(ended.stderr.split())
    assert f"The certificate of {url} is not accepted: self" in line
    assert "SSL_CERT_FILE" in line
