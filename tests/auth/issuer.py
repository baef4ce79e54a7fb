"""An issuer on this machine that publishes its keys, well or badly."""

from __future__ import annotations

import asyncio
import datetime as dt
import ipaddress
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator
    from pathlib import Path


class Issuer:
    """Answers every request with what it has been told to.

    Attributes:
        url: where the keys are.
        requests: the heads of the requests that came.
        status: the status line's code and reason.
        fields: header fields beside the length.
        body: the body.
        drips: send the body byte by byte.
        open: cleared, an answer waits until it is set.
    """

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[str] = []
        self.status = "200 OK"
        self.fields = ["Content-Type: application/json"]
        self.body = b""
        self.drips = False
        self.open = asyncio.Event()
        self.open.set()
        self.asked = asyncio.Event()

    def publish(self, *keys: object) -> None:
        self.status, self.body = "200 OK", json.dumps({"keys": keys}).encode()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.requests.append((await reader.readuntil(b"\r\n\r\n")).decode("latin-1"))
            self.asked.set()
            await self.open.wait()
            head = [f"HTTP/1.1 {self.status}", *self.fields, f"Content-Length: {len(self.body)}", "Connection: close"]
            writer.write("\r\n".join([*head, "", ""]).encode())
            for part in [self.body] if not self.drips else [self.body[at : at + 1] for at in range(len(self.body))]:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(0)
        except (ConnectionError, asyncio.IncompleteReadError):
            return  # whoever asked has hung up, as it should where the answer is of no use
        finally:
            writer.close()


def certificate(folder: Path) -> Path:
    """Write a certificate for 127.0.0.1, with its key, that vouches for itself; return the file."""
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder(name, name, private.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(private, hashes.SHA256())
    )
    file = folder / "certificate.pem"
    key = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(made.public_bytes(Encoding.PEM) + key)
    return file


@asynccontextmanager
async def serving(tls: ssl.SSLContext | None = None) -> AsyncIterator[Issuer]:
    """Open an issuer on a loopback port."""
    issuer = Issuer()
    server = await asyncio.start_server(issuer.answer, "127.0.0.1", 0, ssl=tls)
    issuer.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}/keys"
    try:
        yield issuer
    finally:
        issuer.open.set()
        server.close()
