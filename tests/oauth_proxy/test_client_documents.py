"""Documents of clients: what they must contain, and that the request for one reaches public hosts only."""

from __future__ import annotations

import asyncio
import datetime as dt
import gzip
import json
import ssl
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from funcmcp._oauth_proxy.client_documents import (
    ClientDocuments,
    DocumentError,
    _addresses_of,
    host_of,
    is_public,
)
from tests.auth.making_tokens import Clock
from tests.patience import PATIENCE

if TYPE_CHECKING:
    import ipaddress
    from collections.abc import AsyncIterator
    from pathlib import Path

HOST = "app.example.com"
URL = f"https://{HOST}/oauth/client.json"
DOCUMENT = {
    "client_id": URL,
    "client_name": "Notes",
    "redirect_uris": ["http://localhost/callback", "https://app.example.com/back"],
    "grant_types": ["authorization_code", "refresh_token"],
    "token_endpoint_auth_method": "none",
}


class Host:
    """A host with TLS that answers every request with what a test sets.

    Attributes:
        documents: Requests documents from it: the name of the host leads here, and nothing else is trusted.
        requests: The heads of the requests.
        names: The names that were resolved.
        addresses: The addresses of the name.
    """

    def __init__(self) -> None:
        self.status = "200 OK"
        self.fields = ["Content-Type: application/json"]
        self.body = json.dumps(DOCUMENT).encode()
        self.was_asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.requests: list[str] = []
        self.names: list[str] = []
        self.addresses = ["127.0.0.1"]
        self.clock = Clock()
        self.documents = ClientDocuments()
        self.port = 0
        self.file = ""

    def new_documents(self, **options: Any) -> ClientDocuments:
        """Return what requests documents from this host, as one process does."""
        tls = ssl.create_default_context(cafile=self.file)
        return ClientDocuments(
            resolve=self.resolve, is_allowed=lambda address: True, tls=tls, port=self.port, **options
        )

    async def resolve(self, name: str) -> list[str]:
        self.names.append(name)
        return self.addresses

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.requests.append((await reader.readuntil(b"\r\n\r\n")).decode())
            self.was_asked.set()
            await self.may_answer.wait()
            head = [f"HTTP/1.1 {self.status}", *self.fields, f"Content-Length: {len(self.body)}", "Connection: close"]
            writer.write("\r\n".join([*head, "", ""]).encode() + self.body)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            return  # the server has stopped reading
        finally:
            writer.close()


def certificate(folder: Path, name: str) -> Path:
    """Write a certificate for a name, with its key; return the file."""
    private = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    signed = (
        x509.CertificateBuilder(subject, subject, private.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(private, hashes.SHA256())
    )
    file = folder / "certificate.pem"
    key = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(signed.public_bytes(Encoding.PEM) + key)
    return file


@asynccontextmanager
async def serving(folder: Path, name: str = HOST) -> AsyncIterator[Host]:
    host = Host()
    file = certificate(folder, name)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(file)
    server = await asyncio.start_server(host.answer, "127.0.0.1", 0, ssl=tls)
    host.port = server.sockets[0].getsockname()[1]
    host.file = str(file)
    host.documents = host.new_documents(clock=host.clock)
    try:
        yield host
    finally:
        host.may_answer.set()  # Python 3.12 and later wait for connections
        server.close()
        await server.wait_closed()


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the host more time than clients get, because this machine may be slow."""
    monkeypatch.setattr("funcmcp._oauth_proxy.client_documents._SECONDS", PATIENCE)


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    async with serving(tmp_path) as served:
        yield served


@pytest.mark.parametrize(("grant_types", "refreshes"), [(None, True), (["authorization_code"], False)])
async def test_a_document_without_grant_types_is_of_a_client_with_refresh_tokens(
    host: Host, grant_types: list[str] | None, refreshes: bool
) -> None:
    host.body = json.dumps(DOCUMENT | {"grant_types": grant_types}).encode()
    assert (await host.documents.client(URL)).refreshes is refreshes


async def test_a_client_is_what_its_document_says(host: Host) -> None:
    host.body = json.dumps(DOCUMENT | {"dpop_bound_access_tokens": True}).encode()
    client = await host.documents.client(URL)
    assert (client.key, client.name, client.host) == (URL, "Notes", HOST)
    assert client.redirect_uris == ("http://localhost/callback", "https://app.example.com/back")
    assert client.refreshes
    assert client.has_key
    (head,) = host.requests
    assert head.startswith("GET /oauth/client.json HTTP/1.1\r\n")
    fields = head.lower()
    assert f"host: {HOST}\r\n" in fields
    assert "accept-encoding: identity" in fields
    assert "authorization" not in fields
    assert "cookie" not in fields


async def test_the_name_is_resolved_once_and_tls_checks_the_name(host: Host, tmp_path: Path) -> None:
    await host.documents.client(URL)
    assert host.names == [HOST]
    async with serving(tmp_path, "other.example.com") as other:
        with pytest.raises(DocumentError, match="can't be reached"):
            await other.documents.client(URL)
        assert other.requests == []


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "::1",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.0.1",
        "169.254.169.254",
        "fe80::1",
        "fd00:ec2::254",
        "100.64.0.1",
        "0.0.0.0",
        "::",
        "224.0.0.1",
        "255.255.255.255",
        "192.0.2.1",
        "198.18.0.1",
        "::ffff:127.0.0.1",
        "::ffff:93.184.216.34",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::1",
        "2002:7f00:1::",
        "2001:0:7f00:1::",
        "fe80::1%eth0",
        "2606:2800:220:1::1%eth0",
        "::127.0.0.1",
        "::10.0.0.1",
        "::93.184.216.34",
        "::ffff:0:127.0.0.1",
        "::ffff:0:93.184.216.34",
        "64:ff9b::93.184.216.34",
        "64:ff9b:1:ffff:ffff:ffff:ffff:ffff",
        "2002:5db8:d822::1",
        "2001:0:5db8:d822::1",
        "2001:db8::1",
        "2001:20::1",
        "2001:2::1",
        "3fff::1",
        "3fff:fff::1",
        "5f00::1",
        "fec0::1",
        "feff::1",
        "fc00::1",
        "ff02::1",
        "100::1",
        "4000::1",
        "168.63.129.16",
        "100.100.100.200",
        "192.0.0.192",
        "192.88.99.1",
        "198.51.100.1",
        "203.0.113.1",
        "239.1.1.1",
        "240.0.0.1",
        "name",
        "",
    ],
)
async def test_an_address_that_is_not_public_is_never_asked(address: str) -> None:
    assert not is_public(address)

    async def resolve(name: str) -> list[str]:
        return ["93.184.216.34", address]

    with pytest.raises(DocumentError, match="not public"):
        await ClientDocuments(resolve=resolve).client(URL)


@given(st.ip_addresses())
def test_what_python_does_not_call_global_is_not_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    assert address.is_global or not is_public(str(address))


@pytest.mark.parametrize(
    "address",
    [
        "93.184.216.34",
        "168.63.129.17",
        "100.63.255.255",
        "172.32.0.1",
        "2606:2800:220:1:248:1893:25c8:1946",
        "2a00:1450:4001:80b::200e",
        "3ffe::1",
    ],
)
def test_a_public_address_may_be_asked(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "url",
    [
        "http://app.example.com/client.json",
        "https://app.example.com",
        "https://app.example.com/",
        "https://app.example.com:8443/client.json",
        "https://app.example.com:443/client.json",
        "https://user@app.example.com/client.json",
        "https://app.example.com/client.json?a=1",
        "https://app.example.com/client.json#a",
        "https://app.example.com/../client.json",
        "https://app.example.com/./client.json",
        "https://app.example.com/%2e%2e/client.json",
        "https://app.example.com/a%5c..%5cclient.json",
        "https://app.example.com\\@evil.example/client.json",
        "https://APP.example.com/client.json",
        "HTTPS://app.example.com/client.json",
        "https://localhost/client.json",
        "https://127.0.0.1/client.json",
        "https://127.1/client.json",
        "https://2130706433/client.json",
        "https://0x7f.0.0.0x1/client.json",
        "https://[::1]/client.json",
        "https://app.example.com./client.json",
        "https://аpp.example.com/client.json",  # a Cyrillic letter
        "https://app.example.com/client.json\r\nhost: evil.example",
        f"https://app.example.com/{'x' * 600}",
    ],
)
def test_a_url_that_a_client_can_not_have_is_refused(url: str) -> None:
    with pytest.raises(DocumentError, match="The id of the application"):
        host_of(url)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"client_id": "https://app.example.com/other.json"}, "another application"),
        ({"client_id": None}, "another application"),
        ({"client_secret": "s"}, "secret"),
        ({"redirect_uris": None}, "redirect_uris"),
        ({"redirect_uris": ["javascript:alert(1)"]}, "javascript"),
        ({"grant_types": ["client_credentials"]}, "authorization_code"),
        ({"grant_types": "authorization_code"}, "list of strings"),
        ({"dpop_bound_access_tokens": "true"}, "true or false"),
        ({"redirect_uris": ["http://localhost/"], "application_type": "web"}, "web"),
    ],
)
async def test_a_document_with_other_contents_is_refused(host: Host, changes: dict[str, Any], reason: str) -> None:
    host.body = json.dumps(DOCUMENT | changes).encode()
    with pytest.raises(DocumentError, match=reason):
        await host.documents.client(URL)


@pytest.mark.parametrize(
    ("status", "fields", "body"),
    [
        ("302 Found", ["Location: https://169.254.169.254/"], b""),
        ("404 Not Found", [], b"{}"),
        ("201 Created", ["Content-Type: application/json"], json.dumps(DOCUMENT).encode()),
        ("200 OK", ["Content-Type: text/html"], json.dumps(DOCUMENT).encode()),
        ("200 OK", [], json.dumps(DOCUMENT).encode()),
        ("200 OK", ["Content-Type: application/json"], b"[]"),
        ("200 OK", ["Content-Type: application/json"], b"{"),
        ("200 OK", ["Content-Type: application/json"], json.dumps(DOCUMENT | {"x": "y" * 6000}).encode()),
        (
            "200 OK",
            ["Content-Type: application/json", "Content-Encoding: gzip"],
            gzip.compress(json.dumps(DOCUMENT | {"x": "y" * 1_000_000}).encode()),
        ),
    ],
)
async def test_an_answer_of_another_form_is_refused(host: Host, status: str, fields: list[str], body: bytes) -> None:
    host.status, host.fields, host.body = status, fields, body
    with pytest.raises(DocumentError):
        await host.documents.client(URL)
    assert len(host.requests) == 1


async def test_a_host_that_does_not_answer_is_not_waited_for(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = asyncio.timeout(None)
    host.may_answer.clear()
    monkeypatch.setattr("funcmcp._oauth_proxy.client_documents.asyncio.timeout", lambda _seconds: limit)
    asking = asyncio.create_task(host.documents.client(URL))
    await host.was_asked.wait()
    limit.reschedule(asyncio.get_running_loop().time())
    with pytest.raises(DocumentError, match="in time"):
        await asking


async def test_a_name_without_an_address_is_refused() -> None:
    async def resolve(name: str) -> list[str]:
        raise OSError("unknown")

    with pytest.raises(DocumentError, match="no address"):
        await ClientDocuments(resolve=resolve).client(URL)
    assert "127.0.0.1" in await _addresses_of("localhost")


@pytest.mark.parametrize(
    ("cache_control", "seconds"),
    [
        (None, 3600),
        ("max-age=600", 600),
        ("public, max-age=600, immutable", 600),
        ("max-age=0", 60),
        ("no-store", 60),
        ("max-age=999999999", 86_400),
    ],
)
async def test_a_document_is_kept_as_long_as_its_host_allows(
    host: Host, cache_control: str | None, seconds: int
) -> None:
    if cache_control is not None:
        host.fields.append(f"Cache-Control: {cache_control}")
    await host.documents.client(URL)
    host.clock.now += seconds - 1
    await host.documents.client(URL)
    assert len(host.requests) == 1
    host.clock.now += 1
    await host.documents.client(URL)
    assert len(host.requests) == 2


async def test_a_failure_is_kept_for_a_minute(host: Host) -> None:
    host.status = "500 Error"
    for _ in range(3):
        with pytest.raises(DocumentError, match="status 500"):
            await host.documents.client(URL)
    assert len(host.requests) == 1
    host.status = "200 OK"
    host.clock.now += 60
    assert (await host.documents.client(URL)).name == "Notes"


async def test_a_host_gets_ten_requests_a_minute(host: Host) -> None:
    host.status = "404 Not Found"
    for number in range(12):
        with pytest.raises(DocumentError):
            await host.documents.client(f"https://{HOST}/{number}.json")
    assert len(host.requests) == 10


async def test_the_number_of_kept_documents_is_limited(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("funcmcp._oauth_proxy.client_documents._MAX_CACHED", 3)
    host.status = "404 Not Found"
    for number in range(6):
        with pytest.raises(DocumentError):
            await host.documents.client(f"https://{HOST}/{number}.json")
    assert len(host.documents._failures) == 3


async def test_a_known_document_is_not_forgotten_and_requested_again_whatever_others_ask_for(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("funcmcp._oauth_proxy.client_documents._MAX_CACHED", 3)
    await host.documents.client(URL)
    host.status = "404 Not Found"
    for number in range(12):  # more than are kept, and more than the host is asked for in a minute
        with pytest.raises(DocumentError):
            await host.documents.client(f"https://{HOST}/{number}.json")
    assert (await host.documents.client(URL)).name == "Notes"
    host.status = "200 OK"
    host.clock.now += 3600
    for number in range(12):
        with pytest.raises(DocumentError):
            await host.documents.client(f"https://{HOST}/other/{number}.json")
    monkeypatch.setattr("funcmcp._oauth_proxy.client_documents._MAX_CONCURRENT", 0)
    assert (await host.documents.client(URL)).name == "Notes"
    assert host.requests[-1].startswith(f"GET {urlsplit(URL).path} ")
    host.clock.now += 3600
    host.status = "500 Error"
    for _ in range(12):
        with pytest.raises(DocumentError, match="status 500"):
            await host.documents.client(URL)
        host.clock.now += 1
    host.status = "200 OK"
    host.clock.now += 60
    assert (await host.documents.client(URL)).name == "Notes"


async def test_of_many_used_documents_the_one_that_was_used_longest_ago_is_forgotten(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("funcmcp._oauth_proxy.client_documents._MAX_CACHED", 2)
    urls = [f"https://{HOST}/{number}.json" for number in range(3)]
    for url in [urls[0], urls[1], urls[0], urls[2]]:
        host.body = json.dumps({**DOCUMENT, "client_id": url}).encode()
        await host.documents.client(url)
    assert list(host.documents._documents) == [urls[0], urls[2]]


async def test_the_number_of_requests_at_once_is_limited(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("funcmcp._oauth_proxy.client_documents._MAX_CONCURRENT", 0)
    with pytest.raises(DocumentError, match="Too many"):
        await host.documents.client(URL)
