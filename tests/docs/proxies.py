"""The proxies of docs/deploy, as tests run them: without TLS unless a test has certificates, and on other ports."""

from __future__ import annotations

import re
import socket
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.cli.processes import environment
from tests.docs.pages import ROOT
from tests.redis_server import program
from tests.requirements import require

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


def proxy_program(name: str) -> str:
    """Return the path of a proxy, or skip the test (fail in CI)."""
    path = ROOT / ".servers" / "proxies" / name
    return str(require(f"{name} (scripts/setup-proxies.sh)", path if path.exists() else None))


def nginx(configuration: str, port: int, upstream: str, folder: Path) -> list[str]:
    if "/etc/ssl/" in configuration:
        configuration = re.sub(r"^ *ssl_\w+ .*\n", "", configuration, flags=re.MULTILINE).replace(" 443 ssl;", " 443;")
    site = configuration.replace("listen 443", f"listen 127.0.0.1:{port}").replace("127.0.0.1:8000", upstream)
    paths = "\n".join(
        f"{name}_temp_path {folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    text = f"daemon off;\npid {folder}/pid;\nevents {{}}\nhttp {{\naccess_log off;\n{paths}\n{site}\n}}\n"
    (folder / "nginx.conf").write_text(text)
    return [proxy_program("nginx"), "-e", f"{folder}/error.log", "-c", f"{folder}/nginx.conf"]


def haproxy(configuration: str, port: int, upstream: str, folder: Path) -> list[str]:
    text = configuration.replace("bind :443 ssl crt /etc/ssl/shop.pem", f"bind 127.0.0.1:{port}")
    text = text.replace("bind :443", f"bind 127.0.0.1:{port}")
    text = re.sub(r"(127\.0\.0\.1|10\.0\.0\.7):8000", upstream, text)
    (folder / "haproxy.cfg").write_text(text.replace("127.0.0.1:8001", upstream))
    return [program("haproxy"), "-f", f"{folder}/haproxy.cfg", "-db", "-q"]


def caddy(configuration: str, port: int, upstream: str, folder: Path) -> list[str]:
    scheme = "https" if "tls " in configuration else "http"
    text = configuration.replace("shop.example.com", f"{scheme}://shop.example.com:{port}")
    text = text.replace("127.0.0.1:8000", upstream)
    (folder / "Caddyfile").write_text(f"{{\n    admin off\n}}\n{text}")
    return [proxy_program("caddy"), "run", "--adapter", "caddyfile", "--config", f"{folder}/Caddyfile"]


def envoy(configuration: str, port: int, upstream: str, folder: Path) -> list[str]:
    host, _, upstream_port = upstream.partition(":")
    text = configuration.replace("{address: 0.0.0.0, port_value: 443}", f"{{address: 127.0.0.1, port_value: {port}}}")
    text = text.replace("port_value: 8000", f"port_value: {upstream_port}")
    assert f"address: {host}, port_value: {upstream_port}" in text
    (folder / "envoy.yaml").write_text(text)
    return [
        proxy_program("envoy"),
        "--config-path",
        f"{folder}/envoy.yaml",
        "--concurrency",
        "1",
        "--disable-hot-restart",
    ]


@contextmanager
def proxied(command: list[str], port: int, variables: Mapping[str, str]) -> Iterator[None]:
    """Run a proxy until the block ends."""
    with subprocess.Popen(command, env=environment(variables), stderr=subprocess.DEVNULL) as process:
        try:
            _wait_for(port, process)
            yield
        finally:
            process.terminate()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        with socket.socket() as connection:
            if connection.connect_ex(("127.0.0.1", port)) == 0:
                return
    raise AssertionError(f"The proxy ended with {process.returncode}.")
