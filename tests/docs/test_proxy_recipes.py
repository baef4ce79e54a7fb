"""The recipes for rate limits and client certificates work in real proxies in front of ``funcmcp run``."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import ssl
import subprocess
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.cli.forking import running
from tests.cli.processes import FUNCMCP, PYTHON, environment
from tests.docs.pages import ROOT, block_of
from tests.docs.proxies import caddy, envoy, haproxy, nginx, proxied
from tests.patience import PATIENCE
from tests.requirements import require
from tests.sockets import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Configure = Callable[[str, int, str, Path], list[str]]

HOST = "shop.example.com"
RATES, CERTIFICATES = "deploy/rate-limits.md", "deploy/client-certificates.md"
LIST = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/list",
        "params": {
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            }
        },
    }
)
HEADERS = {
    "Host": HOST,
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": "tools/list",
}


@contextmanager
def server_behind(text: str, configure: Configure, code: str, folder: Path) -> Iterator[int]:
    """Run a server behind a proxy, and return the port of the proxy."""
    (folder / "server.py").write_text(code)
    port = free_port()
    command = [*FUNCMCP, "run", "server.py", "--port", "0", "--allowed-host", HOST]
    with running(command, folder=folder) as server:
        upstream = server.endpoint().removesuffix("/mcp").removeprefix("http://")
        with proxied(configure(text, port, upstream, folder), port, {"HOME": str(folder)}):
            yield port


def status_of(connection: http.client.HTTPConnection) -> int:
    connection.request("POST", "/mcp", LIST, HEADERS)
    response = connection.getresponse()
    response.read()
    return response.status


@pytest.mark.slow("A proxy of others and a server start.")
@pytest.mark.slow("A proxy of others and a server start.")
@pytest.mark.parametrize(
    ("heading", "language", "configure", "slower", "allowed"),
    [
        ("nginx", "nginx", nginx, ("rate=10r/s", "rate=1r/m"), 51),
        ("HAProxy", "text", haproxy, ("http_req_rate(5s)", "http_req_rate(1h)"), 100),
        (
            "Envoy",
            "yaml",
            envoy,
            ("tokens_per_fill: 10, fill_interval: 1s", "tokens_per_fill: 1, fill_interval: 3600s"),
            50,
        ),
    ],
    ids=["nginx", "HAProxy", "Envoy"],
)
def test_a_proxy_answers_429_when_the_burst_is_used_up(
    heading: str, language: str, configure: Configure, slower: tuple[str, str], allowed: int, tmp_path: Path
) -> None:
    """The bucket of the recipe fills up again within the test only if it is replaced by a slower one."""
    text = block_of(RATES, heading, language)
    assert slower[0] in text
    code = 'from funcmcp import MCPServer\n\nmcp = MCPServer("Shop")\n'
    with (
        server_behind(text.replace(*slower), configure, code, tmp_path) as port,
        closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)) as connection,
    ):
        statuses = [status_of(connection) for _ in range(allowed)]
        beyond = [status_of(connection) for _ in range(allowed)]  # nginx gives another token each minute
    assert set(statuses) == {200}
    assert 429 in beyond
    assert set(beyond) <= {200, 429}


def test_the_recipe_for_traefik_has_the_rate_of_the_others() -> None:
    recipe = yaml.safe_load(block_of(RATES, "Traefik", "yaml"))["http"]
    router = recipe["routers"]["shop"]
    assert [recipe["middlewares"][name] for name in router["middlewares"]] == [
        {"rateLimit": {"average": 10, "period": "1s", "burst": 50}}
    ]
    assert router["service"] in recipe["services"]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with what the commands of the page write, and with a certificate of the proxy (site.pem)."""
    folder: Path = tmp_path_factory.mktemp("authority")
    openssl = require("openssl", shutil.which("openssl"))
    commands = block_of(CERTIFICATES, "An authority for a test", "bash")
    site = (
        f'{openssl} req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN={HOST}" '
        f'-addext "subjectAltName=DNS:{HOST},DNS:localhost" -keyout site.key -out site.csr\n'
        f"{openssl} x509 -req -in site.csr -CA ca.pem -CAkey ca-key.pem -days 30 -copy_extensions copy -out site.pem\n"
    )
    run = subprocess.run(["bash", "-ec", commands + site], cwd=folder, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    (folder / "both.pem").write_text((folder / "site.pem").read_text() + (folder / "site.key").read_text())
    return folder


def with_certificates(authority: Path, configure: Configure) -> Configure:
    """Return a function that configures a proxy with the certificates of the tests in place of those in /etc/ssl."""

    def configured(text: str, port: int, upstream: str, folder: Path) -> list[str]:
        certificate = "both.pem" if configure is haproxy else "site.pem"
        text = text.replace("/etc/ssl/shop.pem", str(authority / certificate))
        text = text.replace("/etc/ssl/shop.key", str(authority / "site.key"))
        text = text.replace("/etc/ssl/ca.pem", str(authority / "ca.pem"))
        return configure(text, port, upstream, folder)

    return configured


def context_of_client(authority: Path, *, has_certificate: bool) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(authority / "ca.pem"))
    if has_certificate:
        context.load_cert_chain(authority / "client.pem", authority / "client-key.pem")
    return context


def name_that_a_tool_sees(connection: http.client.HTTPConnection) -> str:
    """Call the tool of the page with a false name in the header."""
    message: dict[str, Any] = json.loads(LIST)
    message["method"] = "tools/call"
    message["params"].update(name="whoami", arguments={})
    headers = {**HEADERS, "Mcp-Method": "tools/call", "Mcp-Name": "whoami", "X-Client-Name": "CN=root"}
    connection.request("POST", "/mcp", json.dumps(message), headers)
    result = json.loads(connection.getresponse().read())["result"]
    return str(result["content"][0]["text"])


class Connection(http.client.HTTPSConnection):
    """A connection to a proxy on this machine, whose certificate is that of the site."""

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        self.sock = self._context.wrap_socket(self.sock, server_hostname=HOST)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("heading", "language", "configure", "name"),
    [
        ("nginx", "nginx", nginx, "CN=billing"),
        ("HAProxy", "text", haproxy, "/CN=billing"),
        ("Caddy", "text", caddy, "CN=billing"),
    ],
    ids=["nginx", "HAProxy", "Caddy"],
)
def test_a_proxy_lets_clients_with_a_certificate_in_and_passes_their_name_on(
    heading: str, language: str, configure: Configure, name: str, authority: Path, tmp_path: Path
) -> None:
    text, code = block_of(CERTIFICATES, heading, language), block_of(CERTIFICATES, "The name in a tool")
    page = (ROOT / "docs" / CERTIFICATES).read_text()
    assert re.search(rf"{heading} (writes )?`{re.escape(name)}`", page)
    with server_behind(text, with_certificates(authority, configure), code, tmp_path) as port:
        context = context_of_client(authority, has_certificate=True)
        with closing(Connection("127.0.0.1", port, timeout=PATIENCE, context=context)) as connection:
            assert name_that_a_tool_sees(connection) == name
        context = context_of_client(authority, has_certificate=False)
        with closing(Connection("127.0.0.1", port, timeout=PATIENCE, context=context)) as connection:
            assert answer_without_certificate(connection) in {400, None}


def answer_without_certificate(connection: http.client.HTTPConnection) -> int | None:
    """Return the status of the answer, or None if the proxy closes the connection."""
    try:
        return status_of(connection)
    except (OSError, http.client.HTTPException):
        return None


@pytest.mark.slow("Programs start for each case.")
def test_the_server_itself_lets_the_client_of_the_page_in(authority: Path, tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(block_of(CERTIFICATES, "The name in a tool"))
    (tmp_path / "client.py").write_text(block_of(CERTIFICATES, "A client"))
    for file in ("client.pem", "client-key.pem"):
        shutil.copy(authority / file, tmp_path)
    files = ["--tls-cert", str(authority / "site.pem"), "--tls-key", str(authority / "site.key")]
    command = [*FUNCMCP, "run", "server.py", "--port", "0", *files, "--client-ca", str(authority / "ca.pem")]
    with running(command, folder=tmp_path) as server:
        (url,) = re.findall(r"https://\S+/mcp", server.line_with("is served at"))
        run = subprocess.run(
            [PYTHON, "client.py", url.replace("127.0.0.1", "localhost")],
            cwd=tmp_path,
            env=environment({"SSL_CERT_FILE": str(authority / "ca.pem")}),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    assert run.stdout == "['whoami']\n", run.stderr
