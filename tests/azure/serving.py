"""Serves a function app over HTTP, as the Functions host would, with Microsoft's worker library behind it."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.serving import REPOSITORY, Served, serve

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

SAMPLE = """
import functools
import sys

sys.path.insert(0, {samples!r})

import funcmcp.azure
from funcmcp.tasks import AzureTasks

funcmcp.MCPServer = functools.partial(funcmcp.MCPServer, tasks=AzureTasks("TASKS_STORAGE"))  # instead of memory

from {name}.server import mcp

app = funcmcp.azure.http_app(mcp, auth_level="anonymous", streams={streams})
"""


def write_app(folder: Path, code: str, *, prefix: str = "") -> Path:
    """Write a function app: function_app.py, and a host.json with the route prefix."""
    folder.mkdir(exist_ok=True)
    settings = {"version": "2.0", "extensions": {"http": {"routePrefix": prefix}}}
    (folder / "host.json").write_text(json.dumps(settings), encoding="utf-8")
    (folder / "function_app.py").write_text(code, encoding="utf-8")
    return folder


def write_sample(folder: Path, name: str, *, streams: bool = False) -> Path:
    """Write a function app that serves a sample at /mcp."""
    return write_app(folder, SAMPLE.format(samples=str(REPOSITORY / "samples"), name=name, streams=streams))


@contextmanager
def serve_app(folder: Path, *, env: Mapping[str, str] | None = None) -> Iterator[Served]:
    """Serve a function app until the block ends, as Core Tools would on a developer's machine."""
    settings = {"FUNCTION_APP": str(folder), "WEBSITE_HOSTNAME": "localhost:7071", **(env or {})}
    with serve(REPOSITORY / "tests/azure/front.py", attribute="app", folder=REPOSITORY, env=settings) as served:
        yield served
