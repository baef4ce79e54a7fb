"""Names of FastMCP 2 to 4 and of the official SDK 1.x and 2.x over funcmcp, for servers that move here.

Change the imports to ``from funcmcp.compat import FastMCP, Context``, and the server runs. See
docs/guides/from-fastmcp.md and docs/guides/from-the-sdk.md for what behaves differently.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._public_names import lazy_names

if TYPE_CHECKING:
    from funcmcp._compat.annotations import ToolAnnotations
    from funcmcp._compat.auth import AuthProvider, StaticTokenVerifier, TokenVerifier
    from funcmcp._compat.components import (
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
    from funcmcp._compat.content import (
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
    from funcmcp._compat.context import Context
    from funcmcp._compat.current import get_context
    from funcmcp._compat.dependencies import (
        CallArgument,
        CurrentAccessToken,
        CurrentContext,
        CurrentFastMCP,
        CurrentHeaders,
        CurrentRequest,
        Depends,
        Progress,
        Shared,
        TokenClaim,
        get_access_token,
        get_http_headers,
        get_http_request,
        get_server,
    )
    from funcmcp._compat.elicitation import (
        AcceptedElicitation,
        CancelledElicitation,
        DeclinedElicitation,
        ElicitationResult,
    )
    from funcmcp._compat.errors import (
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
    from funcmcp._compat.lifespans import ContextManagerLifespan, Lifespan, lifespan
    from funcmcp._compat.loggers import configure_logging, get_logger
    from funcmcp._compat.middleware import (
        CallNext,
        DetailedTimingMiddleware,
        ErrorHandlingMiddleware,
        LoggingMiddleware,
        Middleware,
        MiddlewareContext,
        StructuredLoggingMiddleware,
        TimingMiddleware,
    )
    from funcmcp._compat.options import RequestStateSecurity, ResourceSecurity
    from funcmcp._compat.request_parts import AccessToken
    from funcmcp._compat.resolvers import Elicit, ListRoots, Resolve, Sample
    from funcmcp._compat.sampling import SamplingResult
    from funcmcp._compat.server import FastMCP, MCPServer
    from funcmcp._compat.server_settings import Settings
    from funcmcp._compat.task_config import TaskConfig

_HOMES = {
    "_compat.annotations": ["ToolAnnotations"],
    "_compat.auth": ["AuthProvider", "StaticTokenVerifier", "TokenVerifier"],
    "_compat.components": [
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
    "_compat.content": [
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
    "_compat.context": ["Context"],
    "_compat.current": ["get_context"],
    "_compat.dependencies": [
        "CallArgument",
        "CurrentAccessToken",
        "CurrentContext",
        "CurrentFastMCP",
        "CurrentHeaders",
        "CurrentRequest",
        "Depends",
        "Progress",
        "Shared",
        "TokenClaim",
        "get_access_token",
        "get_http_headers",
        "get_http_request",
        "get_server",
    ],
    "_compat.elicitation": ["AcceptedElicitation", "CancelledElicitation", "DeclinedElicitation", "ElicitationResult"],
    "_compat.errors": [
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
    "_compat.lifespans": ["ContextManagerLifespan", "Lifespan", "lifespan"],
    "_compat.loggers": ["configure_logging", "get_logger"],
    "_compat.middleware": [
        "CallNext",
        "DetailedTimingMiddleware",
        "ErrorHandlingMiddleware",
        "LoggingMiddleware",
        "Middleware",
        "MiddlewareContext",
        "StructuredLoggingMiddleware",
        "TimingMiddleware",
    ],
    "_compat.options": ["RequestStateSecurity", "ResourceSecurity"],
    "_compat.request_parts": ["AccessToken"],
    "_compat.resolvers": ["Elicit", "ListRoots", "Resolve", "Sample"],
    "_compat.sampling": ["SamplingResult"],
    "_compat.server": ["FastMCP", "MCPServer"],
    "_compat.server_settings": ["Settings"],
    "_compat.task_config": ["TaskConfig"],
}

__all__ = [
    "AcceptedElicitation",
    "AccessToken",
    "AssistantMessage",
    "Audio",
    "AuthProvider",
    "AuthorizationError",
    "BinaryResource",
    "CallArgument",
    "CallNext",
    "CancelledElicitation",
    "Context",
    "ContextManagerLifespan",
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
    "Lifespan",
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
    "Shared",
    "StaticTokenVerifier",
    "StructuredLoggingMiddleware",
    "TaskConfig",
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
    "lifespan",
]

_ELSEWHERE = {
    "Client": "Use funcmcp.client.Client, or funcmcp.testing.Client in tests.",
    "FastMCPProxy": "funcmcp has no proxy yet.",
    "create_proxy": "funcmcp has no proxy yet.",
    "Server": "funcmcp has no low-level server. Use @mcp.tool(input_schema=...) of funcmcp.MCPServer.",
    "OAuthProxy": "Use funcmcp.auth.OAuthProxy with MCPServer(auth=...).",
    "GitHubProvider": "Use funcmcp.auth.OAuthProxy with the upstream GitHub.",
    "GoogleProvider": "Use funcmcp.auth.OAuthProxy with the upstream Google.",
    "WorkOSProvider": "Use funcmcp.auth.OAuthProxy with the upstream OIDC.",
    "AuthKitProvider": "Use funcmcp.auth.OAuthProxy with the upstream OIDC, or funcmcp.auth.BearerTokens.",
    "Auth0Provider": "Use funcmcp.auth.OAuthProxy with the upstream OIDC.",
    "OIDCProxy": "Use funcmcp.auth.OAuthProxy with the upstream OIDC.",
    "EventStore": "Use MCPServer(sessions=...), such as funcmcp.redis.RedisSessions.",
    "Extension": "Use middleware, or the options of funcmcp.MCPServer.",
    "ServerExtension": "Use middleware, or the options of funcmcp.MCPServer.",
    "OAuthProvider": "Use funcmcp.auth.OAuthProxy, in front of an identity provider.",
    "RemoteAuthProvider": "Use funcmcp.auth.Auth with a ProtectedResource.",
    "JWTVerifier": "Use funcmcp.auth.BearerTokens.",
    "BearerAuthProvider": "Use funcmcp.auth.BearerTokens.",
    "MultiAuth": "Use funcmcp.auth.first_of with several authenticators.",
    "AuthContext": "Use authorize= of a feature with a function that takes the principal and returns True.",
    "AuthMiddleware": "Use auth=funcmcp.auth.Auth(..., scopes=[...]), or scopes= and authorize= of features.",
    "require_roles": "Use authorize= of a feature with a function that looks at the roles of the principal.",
    "require_scopes": 'Use scopes=["orders:read"] of a feature.',
    "restrict_tag": "Use scopes= of the features that have the tag.",
    "run_auth_checks": "Use authorize= of a feature, which the server calls itself.",
    "IntrospectionTokenVerifier": "Write a TokenVerifier whose verify_token asks the authorization server.",
    "AzureProvider": "Use funcmcp.auth.OAuthProxy with the upstream EntraID, or funcmcp.auth.entra.",
    "RateLimitingMiddleware": "Use HTTPOptions(rates=funcmcp.state.MemoryRates(...)).",
    "SlidingWindowRateLimitingMiddleware": "Use HTTPOptions(rates=funcmcp.state.MemoryRates(...)).",
    "ResponseCachingMiddleware": "Use funcmcp.middleware.cache_results.",
    "RetryMiddleware": "Retry inside of the tool.",
}
"""Names of other frameworks that are not here, and what to use."""

if not TYPE_CHECKING:  # a type checker reports a name that the module does not have
    _load, __dir__ = lazy_names(__name__, _HOMES)

    def __getattr__(name: str) -> Any:
        if name in _ELSEWHERE:
            # An ImportError, because `from funcmcp.compat import X` drops the text of an AttributeError.
            raise ImportError(f"funcmcp.compat has no {name}. {_ELSEWHERE[name]}", name="funcmcp.compat")
        return _load(name)
