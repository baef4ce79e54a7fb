"""HAProxy in front of instances: each request goes to another one."""

from __future__ import annotations

import socket
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tests.patience import PATIENCE
from tests.redis_server import program

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

CONFIGURATION = """
defaults
    mode http
    balance {balance}
    option redispatch 1
    # To a second request of a connection it would answer the death of an instance with nothing at all instead of 502.
    option httpclose
    retries 3
    retry-on conn-failure
    timeout connect 30s
    timeout client 60s
    timeout server 60s
    timeout check 30s

frontend all
    bind fd@{listener}
{rules}
    default_backend instances

backend instances
{check}
    default-server check inter 200ms fall 1 rise 1
{instances}
"""


@contextmanager
def proxied(
    urls: Sequence[str], folder: Path, *, balance: str = "random(1)", rules: Sequence[str] = (), check: str = ""
) -> Iterator[str]:
    """Put a proxy in front of endpoints; yield the endpoint that leads to them.

    Args:
        urls: the endpoints.
        folder: where the configuration is written.
        balance: how the proxy chooses one, such as "roundrobin"; by chance by default.
        rules: lines for its front end, such as "http-request del-header x-user".
        check: how it checks instances, such as "option httpchk GET /readyz"; by default by connecting.
    """
    command = program("haproxy")
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        servers = [f"    server i{number} {urlsplit(url).netloc}" for number, url in enumerate(urls)]
        file = folder / "haproxy.cfg"
        text = CONFIGURATION.format(
            balance=balance,
            listener=listener.fileno(),
            rules="\n".join(f"    {rule}" for rule in rules),
            instances="\n".join(servers),
            check=f"    {check}" if check else "",
        )
        file.write_text(text)
        with subprocess.Popen(
            [command, "-f", str(file), "-db", "-q"], pass_fds=[listener.fileno()], stderr=subprocess.DEVNULL
        ) as process:
            try:
                yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
            finally:
                process.terminate()
                process.wait(PATIENCE)
