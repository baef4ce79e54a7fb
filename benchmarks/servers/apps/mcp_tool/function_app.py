"""azure-functions' own decorator: triggers that its MCP extension calls."""

from __future__ import annotations

import time

import azure.functions as func

app = func.FunctionApp()


@app.mcp_tool()
async def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


@app.mcp_tool()
def nap() -> str:
    """Wait for something, in a plain function."""
    time.sleep(0.05)
    return "true"
