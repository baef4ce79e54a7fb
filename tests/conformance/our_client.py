"""Our client as the conformance suite runs it: it signs in at the URL, its argument, and calls the tools there."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

import httpx2

from funcmcp import MCPError
from funcmcp.client import Client, HTTPEndpoint, SignIn

NEGOTIATES = "request-metadata"
"""The scenario whose server refuses the first revision: a client that was told one has none to choose."""

DOCUMENT = "https://conformance-test.local/client-metadata.json"


async def browse(address: str) -> None:
    """Follow the redirects of the suite's authorization server, which asks no user."""
    async with httpx2.AsyncClient(follow_redirects=True) as browser:
        (await browser.get(address)).raise_for_status()


async def decline(params: dict[str, Any]) -> dict[str, Any]:
    """Answer no question of a server."""
    raise MCPError(-1, f"The user does not answer: {params}")


async def main(url: str) -> None:
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    sign_in = SignIn(
        open_browser=browse,
        client_id=context.get("client_id"),
        client_secret=context.get("client_secret"),
        client_document=DOCUMENT,
    )
    revision = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION")
    if os.environ.get("MCP_CONFORMANCE_SCENARIO") == NEGOTIATES:
        revision = None
    endpoint = HTTPEndpoint(url, sign_in=sign_in)
    async with Client(endpoint, revision=revision, elicit=decline, sample=decline, roots=[]) as client:
        for tool in await client.list_tools():
            await client.call_tool(tool.name, {})


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
