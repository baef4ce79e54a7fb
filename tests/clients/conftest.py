"""The orders sample, served once for all clients."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from tests.clients.plan import Target
from tests.serving import REPOSITORY, serve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.clients.plan import Transport

SAMPLE = REPOSITORY / "samples/orders/server.py"
EVERY_WAY = f"""
import sys

sys.path.insert(0, {str(SAMPLE.parent)!r})
from server import mcp as orders

from funcmcp import MCPServer

mcp = MCPServer("orders", sse="/sse", websocket="/ws")
for tool in orders.server.tools:
    mcp.server.tools.add(tool)
"""


@pytest.fixture(scope="package")
def orders_env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the sample's processes have in their environment, so that all serve the same orders."""
    folder = tmp_path_factory.mktemp("orders")
    path = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
    return {"ORDERS_DB": str(folder / "orders.db"), **path}


@pytest.fixture(scope="package")
def orders_url(orders_env: dict[str, str]) -> Iterator[str]:
    with serve(SAMPLE, env=orders_env, folder=REPOSITORY) as served:
        yield served.url


@pytest.fixture(scope="package")
def orders_origin(tmp_path_factory: pytest.TempPathFactory, orders_env: dict[str, str]) -> Iterator[str]:
    """Where the sample's tools are served over HTTP+SSE and WebSocket."""
    file = tmp_path_factory.mktemp("every") / "every_way.py"
    file.write_text(EVERY_WAY, encoding="utf-8")
    with serve(file, env=orders_env, folder=REPOSITORY) as served:
        yield served.origin


@pytest.fixture(scope="package")
def orders(orders_url: str, orders_origin: str, orders_env: dict[str, str]) -> Callable[[Transport], Target]:
    """Tells where the sample is by transport; over stdio every client starts a process of its own."""
    command = (sys.executable, "-m", "funcmcp.cli.main", "run", str(SAMPLE), "--stdio")
    targets = {
        "http": Target("http", orders_url),
        "sse": Target("sse", f"{orders_origin}/sse"),
        "stdio": Target("stdio", command=command, env=orders_env),
        "websocket": Target("websocket", f"{orders_origin.replace('http', 'ws', 1)}/ws"),
    }
    return targets.__getitem__
