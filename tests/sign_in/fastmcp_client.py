"""Signs in with FastMCP's own client, calls, steps up, and renews the tokens. Arguments: the URLs of endpoints.

It runs in the virtual environment of scripts/setup-differential.sh, without funcmcp. It prints the results as JSON.
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
    async with Client(url, auth=auth) as client:
        first = (await client.call_tool("who")).structured_content
        ordered = (await client.call_tool("order", {"dish": "pizza"})).structured_content
        tokens = [auth.context.current_tokens.access_token]
        auth.context.token_expiry_time = 1.0
        second = (await client.call_tool("who")).structured_content
        tokens.append(auth.context.current_tokens.access_token)
    return {"results": [first, ordered, second], "is_renewed": tokens[0] != tokens[1]}


print(json.dumps([asyncio.run(drive(url)) for url in sys.argv[1:]]))
