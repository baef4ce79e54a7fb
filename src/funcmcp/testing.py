"""Helpers for tests of MCP servers: the client of `funcmcp.client`, and a server on a real port.

Example:
    ```python
    async def test_add() -> None:
        async with Client(mcp) as client:
            result = await client.call_tool("add", {"a": 1, "b": 2})
        assert result.structured_content == {"result": 3}
    ```
"""

from __future__ import annotations

from funcmcp.client.answers import Answers
from funcmcp.client.connection import Client
from funcmcp.client.streamable_http import MemoryRequest, post, read_messages

__all__ = ["Answers", "Client", "MemoryRequest", "post", "read_messages"]
