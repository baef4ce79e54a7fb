"""HAProxy sends requests to the instances that are ready."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.cli.processes import FUNCMCP, running
from tests.cluster.proxy import proxied
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow("Several processes fail and start again, behind a proxy or a store.")

SERVER = """
import os
from pathlib import Path

from funcmcp import HTTPOptions, MCPServer

NAME = os.environ["NAME"]


async def has_database() -> bool:
    return Path(f"{NAME}.database").exists()


mcp = MCPServer("Instance", http=HTTPOptions(ready=[has_database]))


@mcp.custom_route("/name")
def name() -> str:
    return NAME
"""


def answering(url: str) -> set[str]:
    """Return the names of the instances that answer twenty requests in a row; "" stands for the proxy itself."""
    names = set()
    for _ in range(20):
        try:
            with urllib.request.urlopen(url.replace("/mcp", "/name"), timeout=PATIENCE) as response:
                names.add(response.read().decode())
        except urllib.error.HTTPError:
            names.add("")
    return names


def wait_for(url: str, expected: set[str]) -> None:
    deadline = time.monotonic() + PATIENCE
    names = answering(url)
    while names != expected:
        assert time.monotonic() < deadline, names
        names = answering(url)


def test_requests_go_to_the_instances_that_are_ready(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    files = {name: tmp_path / f"{name}.database" for name in ("one", "two")}
    for file in files.values():
        file.touch()
    with ExitStack() as stack:
        endpoints = []
        for name in files:
            command = [*FUNCMCP, "run", "server.py", "--port", "0"]
            process = stack.enter_context(running(command, folder=tmp_path, env={"NAME": name}))
            endpoints.append(process.endpoint())
        url = stack.enter_context(
            proxied(endpoints, tmp_path, balance="roundrobin", check="option httpchk GET /readyz")
        )
        wait_for(url, {"one", "two"})
        files["one"].unlink()
        wait_for(url, {"two"})
        files["one"].touch()
        wait_for(url, {"one", "two"})
