"""Names of FastMCP and of the official SDK, and what becomes of them, as data."""

from __future__ import annotations

import re

SERVER_CLASSES = {"FastMCP", "MCPServer"}

NATIVE_NAMES = SERVER_CLASSES | {"Context", "ToolAnnotations", "ToolError"}
"""Names whose every use can be written with funcmcp's own API, if `native_use` finds no other obstacle."""

COMPAT_NAMES = frozenset(
    {
        "AcceptedElicitation", "AccessToken", "AssistantMessage", "Audio", "AuthorizationError", "BinaryResource",
        "CallNext", "CancelledElicitation", "Context", "CurrentAccessToken", "CurrentContext", "CurrentFastMCP",
        "CurrentHeaders", "CurrentRequest", "DeclinedElicitation", "Depends", "DetailedTimingMiddleware",
        "DirectoryResource", "DisabledError", "ElicitationResult", "ErrorHandlingMiddleware", "FastMCP", "FastMCPError",
        "File", "FileResource", "Image", "LoggingMiddleware", "MCPServer", "McpError", "Message", "Middleware",
        "MiddlewareContext", "NotFoundError", "Progress", "Prompt", "PromptError", "PromptResult", "Resource",
        "ResourceContent", "ResourceError", "ResourceResult", "SamplingResult", "Settings", "StaticTokenVerifier",
        "StructuredLoggingMiddleware", "TextResource", "TimingMiddleware", "TokenClaim", "TokenVerifier", "Tool",
        "ToolError", "ToolResult", "UserMessage", "ValidationError", "get_access_token", "get_context",
        "get_http_headers", "get_http_request", "get_server",
    }
)  # fmt: skip
"""Names that `funcmcp.compat` has."""

CONTEXT_LOGS = {"debug": "debug", "error": "error", "info": "info", "warning": "warning"}
"""Methods of Context that become ``log``, with the level."""

CONTEXT_MEMBERS = {*CONTEXT_LOGS, "report_progress", "session_id"}

SERVER_OPTIONS = {"name", "instructions", "version"}
FEATURE_OPTIONS = {
    "tool": {"name", "title", "description", "annotations"},
    "resource": {"uri", "name", "title", "description", "mime_type"},
    "prompt": {"name", "title", "description"},
}
"""By decorator, the options that funcmcp's own API also has."""

HINTS = {
    "readOnlyHint": "read_only",
    "destructiveHint": "destructive",
    "idempotentHint": "idempotent",
    "openWorldHint": "open_world",
    "title": "title",
    "read_only_hint": "read_only",
    "destructive_hint": "destructive",
    "idempotent_hint": "idempotent",
    "open_world_hint": "open_world",
}
"""By member of ToolAnnotations, in both spellings, the option of ``@mcp.tool``."""

RUN_OPTIONS = {"transport", "host", "port"}
CONTEXT_CLASSES = {"tool": "ToolContext", "resource": "ResourceContext", "prompt": "PromptContext"}
SNAKE_CASE = re.compile(r"(?!.*__)[a-z][a-z0-9_]*(?<!_)")
"""Names of functions that funcmcp does not change."""


def is_framework(module: str) -> bool:
    """Return whether a module belongs to FastMCP, or has the classes for servers of the official SDK."""
    return module in ("fastmcp", "mcp.server") or module.startswith(
        ("fastmcp.", "mcp.server.fastmcp", "mcp.server.mcpserver")
    )


def is_types(module: str) -> bool:
    """Return whether a module has the types of the official SDK."""
    return module in ("mcp", "mcp.types", "mcp_types")
