"""Our client as the conformance suite runs it: it signs in at the URL, its argument, and calls the tools there."""

from __future__ import annotations

import asyncio
import json
import os
import sys

import httpx2

from funcmcp.client import Client, HTTPEndpoint, SignIn

DOCUMENT = "https://conformance-test.local/client-metadata.json"


async def browse(address: str) -> None:
    """Follow the redirects of the suite's authorization server, which asks no user."""
    async with httpx2.AsyncClient(follow_redirects=True) as browser:
        (await browser.get(address)).raise_for_status()


async def main(url: str) -> None:
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    sign_in = SignIn(
        open_browser=browse,
        client_id=context.get("client_id"),
        client_secret=context.get("client_secret"),
        client_document=DOCUMENT,
    )
    revision = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION")
    async with Client(HTTPEndpoint(url, sign_in=sign_in), revision=revision) as client:
        for tool in await client.list_tools():
            await client.call_tool(tool.name, {})


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
