"""Names of FastMCP 2 to 4 and of the official SDK 1.x and 2.x over funcmcp, for servers that move here.

Change the imports to ``from funcmcp.compat import FastMCP, Context``, and the server runs. See
docs/guides/from-fastmcp.md and docs/guides/from-the-sdk.md for what behaves differently.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp.lazy_names import lazy_names

if TYPE_CHECKING:
    from funcmcp.compat.annotations import ToolAnnotations
    from funcmcp.compat.auth import AuthProvider, StaticTokenVerifier, TokenVerifier
    from funcmcp.compat.components import (
        BinaryResource,
        DirectoryResource,
        FileResource,
        FunctionPrompt,
        FunctionResource,
        FunctionTool,
        Prompt,
        Resource,
        ResourceTemplate,
        TextResource,
        Tool,
    )
    from funcmcp.compat.content import (
        AssistantMessage,
        Audio,
        File,
        Icon,
        Image,
        Message,
        PromptResult,
        ResourceContent,
        ResourceResult,
        ToolResult,
        UserMessage,
    )
    from funcmcp.compat.context import Context
    from funcmcp.compat.current import get_context
    from funcmcp.compat.dependencies import (
        CurrentAccessToken,
        CurrentContext,
        CurrentFastMCP,
        CurrentHeaders,
        CurrentRequest,
        Depends,
        Progress,
        TokenClaim,
        get_access_token,
        get_http_headers,
        get_http_request,
        get_server,
    )
    from funcmcp.compat.elicitation import (
        AcceptedElicitation,
        CancelledElicitation,
        DeclinedElicitation,
        ElicitationResult,
    )
    from funcmcp.compat.errors import (
        AuthorizationError,
        DisabledError,
        FastMCPError,
        McpError,
        NotFoundError,
        PromptError,
        ResourceError,
        ResourceNotFoundError,
        ToolError,
        ValidationError,
    )
    from funcmcp.compat.loggers import configure_logging, get_logger
    from funcmcp.compat.middleware import (
        CallNext,
        DetailedTimingMiddleware,
        ErrorHandlingMiddleware,
        LoggingMiddleware,
        Middleware,
        MiddlewareContext,
        StructuredLoggingMiddleware,
        TimingMiddleware,
    )
    from funcmcp.compat.options import RequestStateSecurity, ResourceSecurity
    from funcmcp.compat.request_parts import AccessToken
    from funcmcp.compat.resolvers import Elicit, ListRoots, Resolve, Sample
    from funcmcp.compat.sampling import SamplingResult
    from funcmcp.compat.server import FastMCP, MCPServer
    from funcmcp.compat.server_settings import Settings

_HOMES = {
    "compat.annotations": ["ToolAnnotations"],
    "compat.auth": ["AuthProvider", "StaticTokenVerifier", "TokenVerifier"],
    "compat.components": [
        "BinaryResource",
        "DirectoryResource",
        "FileResource",
        "FunctionPrompt",
        "FunctionResource",
        "FunctionTool",
        "Prompt",
        "Resource",
        "ResourceTemplate",
        "TextResource",
        "Tool",
    ],
    "compat.content": [
        "AssistantMessage",
        "Audio",
        "File",
        "Icon",
        "Image",
        "Message",
        "PromptResult",
        "ResourceContent",
        "ResourceResult",
        "ToolResult",
        "UserMessage",
    ],
    "compat.context": ["Context"],
    "compat.current": ["get_context"],
    "compat.dependencies": [
        "CurrentAccessToken",
        "CurrentContext",
        "CurrentFastMCP",
        "CurrentHeaders",
        "CurrentRequest",
        "Depends",
        "Progress",
        "TokenClaim",
        "get_access_token",
        "get_http_headers",
        "get_http_request",
        "get_server",
    ],
    "compat.elicitation": ["AcceptedElicitation", "CancelledElicitation", "DeclinedElicitation", "ElicitationResult"],
    "compat.errors": [
        "AuthorizationError",
        "DisabledError",
        "FastMCPError",
        "McpError",
        "NotFoundError",
        "PromptError",
        "ResourceError",
        "ResourceNotFoundError",
        "ToolError",
        "ValidationError",
    ],
    "compat.loggers": ["configure_logging", "get_logger"],
    "compat.middleware": [
        "CallNext",
        "DetailedTimingMiddleware",
        "ErrorHandlingMiddleware",
        "LoggingMiddleware",
        "Middleware",
        "MiddlewareContext",
        "StructuredLoggingMiddleware",
        "TimingMiddleware",
    ],
    "compat.options": ["RequestStateSecurity", "ResourceSecurity"],
    "compat.request_parts": ["AccessToken"],
    "compat.resolvers": ["Elicit", "ListRoots", "Resolve", "Sample"],
    "compat.sampling": ["SamplingResult"],
    "compat.server": ["FastMCP", "MCPServer"],
    "compat.server_settings": ["Settings"],
}

__all__ = [
    "AcceptedElicitation",
    "AccessToken",
    "AssistantMessage",
    "Audio",
    "AuthProvider",
    "AuthorizationError",
    "BinaryResource",
    "CallNext",
    "CancelledElicitation",
    "Context",
    "CurrentAccessToken",
    "CurrentContext",
    "CurrentFastMCP",
    "CurrentHeaders",
    "CurrentRequest",
    "DeclinedElicitation",
    "Depends",
    "DetailedTimingMiddleware",
    "DirectoryResource",
    "DisabledError",
    "Elicit",
    "ElicitationResult",
    "ErrorHandlingMiddleware",
    "FastMCP",
    "FastMCPError",
    "File",
    "FileResource",
    "FunctionPrompt",
    "FunctionResource",
    "FunctionTool",
    "Icon",
    "Image",
    "ListRoots",
    "LoggingMiddleware",
    "MCPServer",
    "McpError",
    "Message",
    "Middleware",
    "MiddlewareContext",
    "NotFoundError",
    "Progress",
    "Prompt",
    "PromptError",
    "PromptResult",
    "RequestStateSecurity",
    "Resolve",
    "Resource",
    "ResourceContent",
    "ResourceError",
    "ResourceNotFoundError",
    "ResourceResult",
    "ResourceSecurity",
    "ResourceTemplate",
    "Sample",
    "SamplingResult",
    "Settings",
    "StaticTokenVerifier",
    "StructuredLoggingMiddleware",
    "TextResource",
    "TimingMiddleware",
    "TokenClaim",
    "TokenVerifier",
    "Tool",
    "ToolAnnotations",
    "ToolError",
    "ToolResult",
    "UserMessage",
    "ValidationError",
    "configure_logging",
    "get_access_token",
    "get_context",
    "get_http_headers",
    "get_http_request",
    "get_logger",
    "get_server",
]

_ELSEWHERE = {
    "Client": "Use funcmcp.client.Client, or funcmcp.testing.Client in tests.",
    "FastMCPProxy": "funcmcp has no proxy yet.",
    "create_proxy": "funcmcp has no proxy yet.",
    "Server": "funcmcp has no low-level server. Use @mcp.tool(input_schema=...) of funcmcp.MCPServer.",
    "OAuthProxy": "funcmcp has no OAuth proxy. Use an authenticator of funcmcp.auth, such as BearerTokens.",
    "GitHubProvider": "funcmcp has no OAuth proxy. Use an authenticator of funcmcp.auth, such as BearerTokens.",
    "GoogleProvider": "funcmcp has no OAuth proxy. Use an authenticator of funcmcp.auth, such as BearerTokens.",
    "WorkOSProvider": "funcmcp has no OAuth proxy. Use an authenticator of funcmcp.auth, such as BearerTokens.",
    "AuthKitProvider": "funcmcp has no OAuth proxy. Use an authenticator of funcmcp.auth, such as BearerTokens.",
    "Auth0Provider": "funcmcp has no OAuth proxy. Use an authenticator of funcmcp.auth, such as BearerTokens.",
    "OIDCProxy": "funcmcp has no OAuth proxy. Use an authenticator of funcmcp.auth, such as BearerTokens.",
    "EventStore": "Use MCPServer(sessions=...), such as funcmcp.redis.RedisSessions.",
    "Extension": "Use middleware, or the options of funcmcp.MCPServer.",
    "ServerExtension": "Use middleware, or the options of funcmcp.MCPServer.",
    "OAuthProvider": "funcmcp has no authorization server. Use an authenticator of funcmcp.auth.",
    "RemoteAuthProvider": "Use funcmcp.auth.Auth with a ProtectedResource.",
    "JWTVerifier": "Use funcmcp.auth.BearerTokens.",
    "BearerAuthProvider": "Use funcmcp.auth.BearerTokens.",
    "MultiAuth": "Use funcmcp.auth.first_of with several authenticators.",
    "IntrospectionTokenVerifier": "Write a TokenVerifier whose verify_token asks the authorization server.",
    "AzureProvider": "Use funcmcp.auth.entra.",
    "RateLimitingMiddleware": "Use HTTPOptions(rates=funcmcp.state.MemoryRates(...)).",
    "SlidingWindowRateLimitingMiddleware": "Use HTTPOptions(rates=funcmcp.state.MemoryRates(...)).",
    "ResponseCachingMiddleware": "Use funcmcp.middleware.cache_results.",
    "RetryMiddleware": "Retry inside of the tool.",
}
"""Names of other frameworks that are not here, and what to use."""

_load, __dir__ = lazy_names(__name__, _HOMES)


def __getattr__(name: str) -> Any:
    if name in _ELSEWHERE:
        # An ImportError, because `from funcmcp.compat import X` drops the text of an AttributeError.
        raise ImportError(f"funcmcp.compat has no {name}. {_ELSEWHERE[name]}", name="funcmcp.compat")
    return _load(name)
