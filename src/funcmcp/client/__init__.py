"""A client of MCP servers: in memory, over Streamable HTTP and over stdio, in every revision of the protocol.

Example:
    ```python
    async with Client("http://127.0.0.1:8000/mcp") as client:
        result = await client.call_tool("add", {"a": 1, "b": 2})
        print(result.text)
    ```

Public names are loaded when they are first used. A URL needs ``pip install "funcmcp[client]"``; see docs/client.md.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from funcmcp.client.connection import Client
    from funcmcp.client.errors import (
        AuthenticationError,
        ClientError,
        ConnectionFailedError,
        InvalidResponseError,
        RequestTimeoutError,
        SessionEndedError,
    )
    from funcmcp.client.notifications import LogMessage, ProgressUpdate
    from funcmcp.client.results import (
        CallToolResult,
        Completion,
        ContentBlock,
        GetPromptResult,
        Prompt,
        PromptArgument,
        PromptMessage,
        ReadResourceResult,
        Resource,
        ResourceContents,
        ResourceTemplate,
        Tool,
    )
    from funcmcp.client.targets import HTTPEndpoint, StdioCommand
    from funcmcp.client.transport import Transport

_HOMES = {
    "AuthenticationError": "errors",
    "CallToolResult": "results",
    "Client": "connection",
    "ClientError": "errors",
    "Completion": "results",
    "ConnectionFailedError": "errors",
    "ContentBlock": "results",
    "GetPromptResult": "results",
    "HTTPEndpoint": "targets",
    "InvalidResponseError": "errors",
    "LogMessage": "notifications",
    "ProgressUpdate": "notifications",
    "Prompt": "results",
    "PromptArgument": "results",
    "PromptMessage": "results",
    "ReadResourceResult": "results",
    "RequestTimeoutError": "errors",
    "Resource": "results",
    "ResourceContents": "results",
    "ResourceTemplate": "results",
    "SessionEndedError": "errors",
    "StdioCommand": "targets",
    "Tool": "results",
    "Transport": "transport",
}

__all__ = [
    "AuthenticationError",
    "CallToolResult",
    "Client",
    "ClientError",
    "Completion",
    "ConnectionFailedError",
    "ContentBlock",
    "GetPromptResult",
    "HTTPEndpoint",
    "InvalidResponseError",
    "LogMessage",
    "ProgressUpdate",
    "Prompt",
    "PromptArgument",
    "PromptMessage",
    "ReadResourceResult",
    "RequestTimeoutError",
    "Resource",
    "ResourceContents",
    "ResourceTemplate",
    "SessionEndedError",
    "StdioCommand",
    "Tool",
    "Transport",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'funcmcp.client' has no attribute {name!r}")
    value = getattr(import_module(f"funcmcp.client.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
