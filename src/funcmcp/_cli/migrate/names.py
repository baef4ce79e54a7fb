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
        "ToolAnnotations", "ToolError", "ToolResult", "UserMessage", "ValidationError", "get_access_token",
        "get_context", "get_http_headers", "get_http_request", "get_server", "AuthProvider", "Elicit", "FunctionPrompt",
        "FunctionResource", "FunctionTool", "Icon", "ListRoots", "RequestStateSecurity", "Resolve",
        "ResourceNotFoundError", "ResourceSecurity", "ResourceTemplate", "Sample", "configure_logging", "get_logger",
    }
)  # fmt: skip
"""Names that `funcmcp.compat` has."""

CONTEXT_LOGS = {"debug", "error", "info", "warning"}
"""Methods of Context for log messages, whose arguments have other names."""

CONTEXT_MEMBERS = {*CONTEXT_LOGS, "lifespan_context", "report_progress", "session_id"}

INFO_OPTIONS = {"title", "website_url"}
"""Options of the server that become options of `ServerInfo`."""

DROPPED_SERVER_OPTIONS = {"debug", "dependencies", "json_response", "log_level"}
"""Options of the server that change nothing in funcmcp."""

TAG_OPTIONS = {"include_tags": "enable", "exclude_tags": "disable"}
"""Options of the server that become calls of a method."""

SERVER_SWITCHES = {"mask_error_details", "strict_input_validation", "stateless_http"}
"""Options of the server that are rewritten if they are written as True, False or None."""

SERVER_OPTIONS = {
    "name", "instructions", "version", "lifespan",
    *INFO_OPTIONS, *DROPPED_SERVER_OPTIONS, *TAG_OPTIONS, *SERVER_SWITCHES,
}  # fmt: skip
_COMMON_OPTIONS = {"name", "title", "description", "tags", "enabled", "meta"}
FEATURE_OPTIONS = {
    "tool": _COMMON_OPTIONS | {"annotations", "timeout", "structured_output", "output_schema"},
    "resource": _COMMON_OPTIONS | {"uri", "mime_type", "annotations"},
    "prompt": _COMMON_OPTIONS,
}
"""By decorator, the options that funcmcp's own API also has."""

ASYNC_RUNS = {
    "run_stdio_async": "stdio",
    "run_http_async": "http",
    "run_streamable_http_async": "http",
    "run_sse_async": "sse",
}
"""By method of the server, the transport for `run_async`."""

APPLICATIONS = {"http_app", "streamable_http_app"}
"""Methods of the server that return an ASGI application, which funcmcp's server is itself."""

MOUNTS = {"mount", "import_server"}
MOUNT_OPTIONS = {"server", "prefix", "namespace"}
SERVER_MEMBERS = {*FEATURE_OPTIONS, *ASYNC_RUNS, *APPLICATIONS, *MOUNTS, "add_tool", "name", "run", "run_async"}
"""Attributes of the server whose uses can be written with funcmcp's own API."""

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
DROPPED_RUN_OPTIONS = {"show_banner", "log_level"}
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
