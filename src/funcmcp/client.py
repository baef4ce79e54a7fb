"""A client of MCP servers: in memory, over Streamable HTTP and over stdio, in every revision of the protocol.

Example:
    ```python
    async with Client("http://127.0.0.1:8000/mcp") as client:
        result = await client.call_tool("add", {"a": 1, "b": 2})
        print(result.text)
    ```

Public names are loaded when they are first used. A URL needs ``pip install "funcmcp[client]"``; see guides/client.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._objects.public_names import lazy_names

if TYPE_CHECKING:
    from funcmcp._client.credentials import (
        ClientCredentials,
        EnterpriseSignIn,
        IdentityProvider,
        PrivateKeyJWT,
        WorkloadIdentity,
    )
    from funcmcp._client.errors import (
        AuthenticationError,
        ConnectionFailedError,
        RequestTimeoutError,
        SessionEndedError,
        SignInError,
        TaskCancelledError,
    )
    from funcmcp._client.notifications import Change, LogMessage, ProgressUpdate
    from funcmcp._client.skills import Skill, SkillError, SkillFile
    from funcmcp._client.subscriptions import Changes
    from funcmcp._client.targets import HTTPEndpoint, SignIn, StdioCommand
    from funcmcp._client.token_file import KeyringFile
    from funcmcp._client.tool_tasks import ToolTask
    from funcmcp._client.transport import Transport
    from funcmcp._client_api.connection import Client
    from funcmcp._protocol.completion import Completion
    from funcmcp._protocol.errors import ClientError, InvalidResponseError
    from funcmcp._protocol.objects import (
        CallToolResult,
        ContentBlock,
        GetPromptResult,
        Prompt,
        PromptArgument,
        PromptMessage,
        ReadResourceResult,
        Resource,
        ResourceContents,
        ResourceTemplate,
        Task,
        Tool,
    )

__all__ = [
    "AuthenticationError",
    "CallToolResult",
    "Change",
    "Changes",
    "Client",
    "ClientCredentials",
    "ClientError",
    "Completion",
    "ConnectionFailedError",
    "ContentBlock",
    "EnterpriseSignIn",
    "GetPromptResult",
    "HTTPEndpoint",
    "IdentityProvider",
    "InvalidResponseError",
    "KeyringFile",
    "LogMessage",
    "PrivateKeyJWT",
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
    "SignIn",
    "SignInError",
    "Skill",
    "SkillError",
    "SkillFile",
    "StdioCommand",
    "Task",
    "TaskCancelledError",
    "Tool",
    "ToolTask",
    "Transport",
    "WorkloadIdentity",
]

_HOMES = {
    "_client_api.connection": ["Client"],
    "_client.credentials": [
        "ClientCredentials",
        "EnterpriseSignIn",
        "IdentityProvider",
        "PrivateKeyJWT",
        "WorkloadIdentity",
    ],
    "_client.errors": [
        "AuthenticationError",
        "ConnectionFailedError",
        "RequestTimeoutError",
        "SessionEndedError",
        "SignInError",
        "TaskCancelledError",
    ],
    "_client.notifications": ["Change", "LogMessage", "ProgressUpdate"],
    "_client.skills": ["Skill", "SkillError", "SkillFile"],
    "_client.subscriptions": ["Changes"],
    "_protocol.completion": ["Completion"],
    "_protocol.errors": ["ClientError", "InvalidResponseError"],
    "_protocol.objects": [
        "CallToolResult",
        "ContentBlock",
        "GetPromptResult",
        "Prompt",
        "PromptArgument",
        "PromptMessage",
        "ReadResourceResult",
        "Resource",
        "ResourceContents",
        "ResourceTemplate",
        "Task",
        "Tool",
    ],
    "_client.targets": ["HTTPEndpoint", "SignIn", "StdioCommand"],
    "_client.token_file": ["KeyringFile"],
    "_client.tool_tasks": ["ToolTask"],
    "_client.transport": ["Transport"],
}

if not TYPE_CHECKING:  # a type checker reports a name that the module does not have
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
