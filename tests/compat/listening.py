"""Serves servers of compat on real sockets."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import uvicorn

from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    import pytest

    from funcmcp.compat import FastMCP


def under_uvicorn(app: Any) -> Any:
    return uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning")).serve()


@asynccontextmanager
async def listening(
    serve: Callable[[FastMCP], Any], mcp: FastMCP, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[str]:
    """Serve on a free port of the loopback interface, and yield scheme, host and port."""
    started: asyncio.Future[uvicorn.Server] = asyncio.get_running_loop().create_future()
    main_loop = uvicorn.Server.main_loop

    async def reporting(self: uvicorn.Server) -> None:
        started.set_result(self)
        await main_loop(self)

    monkeypatch.setattr(uvicorn.Server, "main_loop", reporting)
    serving = asyncio.ensure_future(serve(mcp))
    await asyncio.wait({started, serving}, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        serving.result()
    running = started.result()
    try:
        yield f"http://127.0.0.1:{running.servers[0].sockets[0].getsockname()[1]}"
    finally:
        running.should_exit = True
        await serving
