"""``funcmcp run --tls-cert --tls-key``: HTTPS with a certificate that the test makes itself."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.certificates import write_certificate
from tests.cli.processes import FUNCMCP, Running, funcmcp, running
from tests.clients.plan import Target, tool
from tests.clients.players import PLAYERS, Player

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
