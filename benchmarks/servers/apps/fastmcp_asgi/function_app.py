"""FastMCP as the ASGI application of a function app: stateless, JSON answers."""

from __future__ import annotations

import time

import azure.functions as func
from fastmcp import FastMCP

server = FastMCP("bench", version="1.0.0")


@server.tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool
def nap() -> bool:
    """Wait for something, in a plain function."""
    time.sleep(0.05)
    return True


asgi = server.http_app(path="/api/mcp", stateless_http=True, json_response=True)
app = func.AsgiFunctionApp(app=asgi, http_auth_level=func.AuthLevel.ANONYMOUS)
