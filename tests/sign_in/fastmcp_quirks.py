"""Signs in with FastMCP's own client at some endpoints, calls a tool at each, and renews the tokens.

It runs in the virtual environment of scripts/setup-differential.sh, without funcmcp. It prints the results as JSON.
Arguments: the URLs of endpoints.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from fastmcp import Client
from fastmcp.client.auth import OAuth


async def drive(url: str) -> dict[str, Any]:
    auth = OAuth()
    seen: dict[str, Any] = {"is_signed_in": False}
    try:
        async with Client(url, auth=auth) as client:
            await client.call_tool("who")
            seen["is_signed_in"] = True
            auth.context.token_expiry_time = 1.0
            await client.call_tool("who")
            seen["again"] = "AUTHORIZED"
    except Exception as error:  # noqa: BLE001 - the test reads it
        seen["again" if seen["is_signed_in"] else "text"] = f"{type(error).__name__}: {error}"
    return seen


print(json.dumps([asyncio.run(drive(url)) for url in sys.argv[1:]]))
