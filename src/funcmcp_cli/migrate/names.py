"""Names of FastMCP and of the official SDK, and what becomes of them, as data."""

from __future__ import annotations

SERVER_CLASSES = {"FastMCP", "MCPServer"}

COMPAT_NAMES = frozenset(
    {
        "AcceptedElicitation", "AccessToken", "AssistantMessage", "Audio", "AuthorizationError", "BinaryResource",
        "CallArgument", "CallNext", "CancelledElicitation", "Context", "CurrentAccessToken", "CurrentContext",
        "CurrentFastMCP", "CurrentHeaders", "CurrentRequest", "DeclinedElicitation", "Depends",
        "DetailedTimingMiddleware", "DirectoryResource", "DisabledError", "ElicitationResult",
        "ErrorHandlingMiddleware", "FastMCP", "FastMCPError", "File", "FileResource", "Image", "LoggingMiddleware",
        "MCPServer", "McpError", "Message", "Middleware", "MiddlewareContext", "NotFoundError", "Progress", "Prompt",
        "PromptError", "PromptResult", "Resource", "ResourceContent", "ResourceError", "ResourceResult",
        "SamplingResult", "Settings", "Shared", "StaticTokenVerifier", "StructuredLoggingMiddleware", "TextResource",
        "TimingMiddleware", "TokenClaim", "TokenVerifier", "Tool", "ToolAnnotations", "ToolError", "ToolResult",
        "UserMessage", "ValidationError", "get_access_token", "get_context", "get_http_headers", "get_http_request",
        "get_server", "AuthProvider", "Elicit", "FunctionPrompt", "FunctionResource", "FunctionTool", "Icon",
        "ListRoots", "RequestStateSecurity", "Resolve", "ResourceNotFoundError", "ResourceSecurity", "ResourceTemplate",
        "Sample", "configure_logging", "get_logger", "ContextManagerLifespan", "Lifespan", "TaskConfig", "lifespan",
        "BM25SearchTransform", "RegexSearchTransform", "create_proxy",
        "MCPType", "RouteMap", "TokenVerificationError",
    }
)  # fmt: skip
"""Names that `funcmcp.compat` has."""

SESSION_VISIBILITY = frozenset({"disable_components", "enable_components", "reset_visibility"})
"""Methods of FastMCP's context that hide and show features in one session."""

COMPAT_TYPES = frozenset({"Icon", "ToolAnnotations"})
"""Names of the official SDK's types that `funcmcp.compat` has."""


def is_framework(module: str) -> bool:
    """Return whether a module belongs to FastMCP, or has the classes for servers of the official SDK."""
    return module in ("fastmcp", "mcp.server") or module.startswith(
        ("fastmcp.", "mcp.server.fastmcp", "mcp.server.mcpserver")
    )


def is_types(module: str) -> bool:
    """Return whether a module has the types of the official SDK."""
    return module in ("mcp", "mcp.types", "mcp_types")
