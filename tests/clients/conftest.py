"""The samples, served once for all clients, over every transport."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.clients.plan import Target
from tests.serving import REPOSITORY, serve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from tests.clients.plan import Transport

EVERY_WAY = """
import functools
import sys

import funcmcp

sys.path.insert(0, {samples!r})
funcmcp.MCPServer = functools.partial(funcmcp.MCPServer, http=funcmcp.HTTPOptions(sse="/sse", websocket="/ws"))
from {name}.server import mcp
"""
"""A module with a sample's server that has the endpoints which are off by default."""


@contextmanager
def serve_every_way(name: str, folder: Path, env: Mapping[str, str]) -> Iterator[Callable[[Transport], Target]]:
    """Serve a sample, and tell where it is by transport. Over stdio every client starts a process of its own."""
    samples = REPOSITORY / "samples"
    file = folder / f"{name}_every_way.py"
    file.write_text(EVERY_WAY.format(samples=str(samples), name=name), encoding="utf-8")
    server = str(samples / name / "server.py")
    command = (sys.executable, "-m", "funcmcp_cli.main", "run", server, "--stdio")
    with serve(file, env=env, folder=REPOSITORY) as served:
        targets = {
            "http": Target("http", served.url),
            "sse": Target("sse", f"{served.origin}/sse"),
            "stdio": Target("stdio", command=command, env=dict(env)),
            "websocket": Target("websocket", f"{served.origin.replace('http', 'ws', 1)}/ws"),
        }
        yield targets.__getitem__


@pytest.fixture(scope="package")
def samples_env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the samples' processes have in their environment, so that all serve the same orders."""
    folder = tmp_path_factory.mktemp("orders")
    path = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
    return {"ORDERS_DB": str(folder / "orders.db"), **path}


@pytest.fixture(scope="package")
def orders(
    tmp_path_factory: pytest.TempPathFactory, samples_env: dict[str, str]
) -> Iterator[Callable[[Transport], Target]]:
    with serve_every_way("orders", tmp_path_factory.mktemp("every_way"), samples_env) as targets:
        yield targets


@pytest.fixture(scope="package")
def everything(
    tmp_path_factory: pytest.TempPathFactory, samples_env: dict[str, str]
) -> Iterator[Callable[[Transport], Target]]:
    with serve_every_way("everything", tmp_path_factory.mktemp("every_way"), samples_env) as targets:
        yield targets


@pytest.fixture(scope="package")
def orders_url(orders: Callable[[Transport], Target]) -> str:
    return orders("http").url
