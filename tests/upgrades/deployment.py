"""Instances of the shop in two versions behind HAProxy, which a test replaces while clients use them."""

from __future__ import annotations

import asyncio
import secrets
import socket
import subprocess
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import urlsplit

from tests.patience import PATIENCE
from tests.redis_server import program
from tests.requirements import require, require_history
from tests.serving import REPOSITORY, serve

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Version: TypeAlias = Literal["0.1", "0.2"]

SHOP = Path(__file__).with_name("shop.py")
_PREVIOUS = REPOSITORY / ".servers" / "previous"
_SIGN_INS = "sign_ins"
_INSTANCES = "instances"

# A connection that the kernel has accepted for a process that ends has no response at all: no request was read from it.
# The proxy repeats only a request that it had as a whole when it connected.
_CONFIGURATION = """
global
    stats socket {folder}/admin.sock mode 600 level admin

defaults
    mode http
    balance roundrobin
    option httpclose
    option http-buffer-request
    option redispatch 1
    retries 3
    retry-on conn-failure empty-response
    timeout connect 30s
    timeout client 300s
    timeout server 300s

frontend all
    bind fd@{listener}
    use_backend {sign_ins} if {{ path_beg /oauth/ }}
    default_backend {instances}

backend {sign_ins}
    server s0 127.0.0.1:1 disabled

backend {instances}
{servers}
"""


def python_of(version: Version) -> Path | None:
    """Return the interpreter that has a version, None for the running one; skip the test if it is missing."""
    if version == "0.2":
        return None
    require_history()
    ready = (_PREVIOUS / ".ready").exists()
    return require("funcmcp 0.1 (scripts/setup-previous.sh)", _PREVIOUS / "bin" / "python" if ready else None)


class Deployment:
    """A proxy and the instances behind it. The paths of sign-ins go to one of them.

    Args:
        environment: For the instances.
        proxy: The URL of the proxy.
        admin: The socket for commands to HAProxy.

    Attributes:
        url: The endpoint.
    """

    def __init__(self, environment: Mapping[str, str], proxy: str, admin: Path) -> None:
        self.url = f"{proxy}/mcp"
        self._environment = {**environment}
        self._admin = admin
        self._running: dict[int, ExitStack] = {}
        self._replaced: list[ExitStack] = []
        self._origins: dict[int, str] = {}

    def set(self, variable: str, value: str) -> None:
        """Set an environment variable of the instances that start later."""
        self._environment[variable] = value

    async def replace(self, number: int, version: Version) -> None:
        """Start an instance, send requests to it in place of the earlier one with its number, and stop this one."""
        await self.begin_replacement(number, version)
        await self.end_replacement()

    async def begin_replacement(self, number: int, version: Version) -> None:
        """Start an instance, and send requests to it in place of the earlier one, which still runs."""
        stack = ExitStack()
        environment = {**self._environment, "SHOP_VERSION": version}
        served = await asyncio.to_thread(stack.enter_context, serve(SHOP, env=environment, python=python_of(version)))
        if number in self._running:
            self._replaced.append(self._running[number])
        self._running[number], self._origins[number] = stack, served.origin
        await self._send_to(_INSTANCES, f"i{number}", served.origin)

    async def end_replacement(self) -> None:
        """Stop the earlier instance."""
        while self._replaced:
            await asyncio.to_thread(self._replaced.pop().close)

    async def sign_in_at(self, number: int) -> None:
        """Send the paths of sign-ins to an instance."""
        await self._send_to(_SIGN_INS, "s0", self._origins[number])

    def close(self) -> None:
        """Stop all instances."""
        for stack in [*self._running.values(), *self._replaced]:
            stack.close()

    async def _send_to(self, backend: str, server: str, origin: str) -> None:
        address = urlsplit(origin)
        name = f"{backend}/{server}"
        await self._command(f"set server {name} addr {address.hostname} port {address.port}")
        await self._command(f"set server {name} state ready")

    async def _command(self, command: str) -> None:
        async with asyncio.timeout(PATIENCE):
            reader, writer = await asyncio.open_unix_connection(self._admin)
            writer.write(f"{command}\n".encode())
            answer = (await reader.read()).decode().strip()
            writer.close()
        assert not answer or "changed" in answer or "no need to change" in answer, answer


@contextmanager
def deployment(environment: Mapping[str, str], folder: Path, *, count: int = 1) -> Iterator[Deployment]:
    """Run HAProxy with places for a number of instances, none of which runs yet.

    Args:
        environment: For the instances. The URL of the endpoint and the folder are added.
        folder: For the files of the instances.
        count: The number of instances.
    """
    command = program("haproxy")
    python_of("0.1")
    with (
        tempfile.TemporaryDirectory(
            prefix="haproxy-"
        ) as name,  # the path of a socket may have about a hundred characters
        socket.create_server(("127.0.0.1", 0), backlog=1024) as listener,
    ):
        file = Path(name) / "haproxy.cfg"
        servers = "\n".join(f"    server i{number} 127.0.0.1:1 disabled" for number in range(count))
        file.write_text(
            _CONFIGURATION.format(
                folder=name, listener=listener.fileno(), sign_ins=_SIGN_INS, instances=_INSTANCES, servers=servers
            ),
            encoding="utf-8",
        )
        proxy = f"http://127.0.0.1:{listener.getsockname()[1]}"
        shared = {
            "SHOP_FOLDER": str(folder),
            "SHOP_NAME": f"Shop {secrets.token_hex(4)}",  # tasks of servers with other names are apart
            "SHOP_URL": f"{proxy}/mcp",
            "FUNCMCP_KEYS": secrets.token_urlsafe(32),
            "FUNCMCP_DRAIN_SECONDS": "5",
        }
        with subprocess.Popen(
            [command, "-f", str(file), "-db", "-q"], pass_fds=[listener.fileno()], stderr=subprocess.DEVNULL
        ) as process:
            running = Deployment({**shared, **environment}, proxy, Path(name) / "admin.sock")
            try:
                yield running
            finally:
                running.close()
                process.terminate()
                process.wait(PATIENCE)
