"""Which applications are served without ASGI."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp import HTTPOptions, MCPServer
from funcmcp._adapters.asgi.application import ASGIApplication, HTTPRuntime
from funcmcp._adapters.http1.direct_path import direct_path

pytestmark = pytest.mark.lowest("uvicorn, httptools, h11 and uvloop read and write HTTP.")


class Logged(MCPServer):
    """A server that sees each scope."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await super().__call__(scope, receive, send)


async def unused(request: Any) -> Any:
    raise AssertionError(request)


def test_a_server_is_served_at_its_endpoint() -> None:
    mcp = MCPServer("Direct", http=HTTPOptions(path="/a/b-c"))
    path = direct_path(mcp)
    assert path is not None
    assert (path.path, path.target, path.app) == ("/a/b-c", b"/a/b-c", mcp)


@pytest.mark.parametrize(
    "application",
    [
        Logged("Direct"),
        ASGIApplication(HTTPRuntime(unused)),
        MCPServer("Direct", http=HTTPOptions(path="/caf\u00e9")),
        MCPServer("Direct", http=HTTPOptions(path="/a%20b")),
        unused,
    ],
    ids=["another __call__", "no endpoint", "not ASCII", "percent", "another application"],
)
def test_all_requests_of_other_applications_go_through_asgi(application: Any) -> None:
    assert direct_path(application) is None
