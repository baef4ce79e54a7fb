"""Names of FastMCP 2 to 4 and of the official SDK 1.x and 2.x over funcmcp, for servers that move here.

Change the imports to ``from funcmcp.compat import FastMCP, Context``, and the server runs. See
docs/guides/from-fastmcp.md and docs/guides/from-the-sdk.md for what behaves differently.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._objects.public_names import lazy_names

if TYPE_CHECKING:
    from funcmcp._compat.annotations import ToolAnnotations
    from funcmcp._compat.auth import AuthProvider, StaticTokenVerifier, TokenVerificationError, TokenVerifier
    from funcmcp._compat.authorization import (
        AuthCheck,
        AuthContext,
        require_roles,
        require_scopes,
        restrict_tag,
        run_auth_checks,
    )
    from funcmcp._compat.catalog_transforms import (
        BaseSearchTransform,
        BM25SearchTransform,
        CatalogTransform,
        RegexSearchTransform,
    )
    from funcmcp._compat.components import (
        BinaryResource,
        DirectoryResource,
        FileResource,
        FunctionPrompt,
        FunctionResource,
        FunctionResourceTemplate,
        FunctionTool,
        HttpResource,
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
    from funcmcp._compat.context import Context, get_context
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
        InsufficientScopeError,
        InvalidSignature,
        McpError,
        NotFoundError,
        PromptError,
        ResourceError,
        ResourceNotFoundError,
        ResourceSecurityError,
        ToolError,
        ValidationError,
    )
    from funcmcp._compat.features_as_tools import PromptsAsTools, ResourcesAsTools
    from funcmcp._compat.file_provider import (
        FileSystemProvider,
    )
    from funcmcp._compat.lifespans import ContextManagerLifespan, Lifespan, lifespan
    from funcmcp._compat.local_provider import (
        LocalProvider,
    )
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
    from funcmcp._compat.openapi import HTTPRoute, MCPType, RouteMap
    from funcmcp._compat.openapi_provider import (
        OpenAPIProvider,
    )
    from funcmcp._compat.provider import (
        AggregateProvider,
        Provider,
    )
    from funcmcp._compat.proxy import (
        FastMCPProxy,
        ProxyClient,
        ProxyProvider,
        StatefulProxyClient,
    )
    from funcmcp._compat.request_parts import AccessToken
    from funcmcp._compat.resolvers import Elicit, ListRoots, Resolve, Sample
    from funcmcp._compat.sampling import SamplingResult
    from funcmcp._compat.security import (
        DEFAULT_RESOURCE_SECURITY,
        INHERIT_SECURITY,
        RequestStateSecurity,
        ResourceSecurity,
    )
    from funcmcp._compat.server import FastMCP, MCPServer, create_proxy
    from funcmcp._compat.server_provider import (
        FastMCPProvider,
    )
    from funcmcp._compat.server_settings import Settings
    from funcmcp._compat.skill_providers import (
        ClaudeSkillsProvider,
        CodexSkillsProvider,
        CopilotSkillsProvider,
        CursorSkillsProvider,
        GeminiSkillsProvider,
        GooseSkillsProvider,
        OpenCodeSkillsProvider,
        SkillProvider,
        SkillsDirectoryProvider,
        VSCodeSkillsProvider,
    )
    from funcmcp._compat.standalone import (
        prompt,
        resource,
        tool,
    )
    from funcmcp._compat.task_config import TaskConfig
    from funcmcp._compat.tool_transforms import ArgTransform, TransformedTool, forward, forward_raw
    from funcmcp._compat.transforms import (
        ArgTransformConfig,
        Namespace,
        ToolTransform,
        ToolTransformConfig,
        Transform,
        VersionFilter,
        Visibility,
        is_enabled,
    )
    from funcmcp._compat.versions import (
        VersionKey,
        VersionSpec,
        compare_versions,
        dedupe_with_versions,
        is_version_greater,
        max_version,
        min_version,
        parse_version_key,
        version_sort_key,
    )

_HOMES = {
    "_compat.catalog_transforms": [
        "BM25SearchTransform",
        "BaseSearchTransform",
        "CatalogTransform",
        "RegexSearchTransform",
    ],
    "_compat.features_as_tools": ["PromptsAsTools", "ResourcesAsTools"],
    "_compat.transforms": [
        "ArgTransformConfig",
        "Namespace",
        "ToolTransform",
        "ToolTransformConfig",
        "Transform",
        "VersionFilter",
        "Visibility",
        "is_enabled",
    ],
    "_compat.annotations": ["ToolAnnotations"],
    "_compat.auth": ["AuthProvider", "StaticTokenVerifier", "TokenVerificationError", "TokenVerifier"],
    "_compat.authorization": [
        "AuthCheck",
        "AuthContext",
        "require_roles",
        "require_scopes",
        "restrict_tag",
        "run_auth_checks",
    ],
    "_compat.components": [
        "BinaryResource",
        "DirectoryResource",
        "FileResource",
        "FunctionPrompt",
        "FunctionResource",
        "FunctionResourceTemplate",
        "FunctionTool",
        "HttpResource",
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
    "_compat.context": ["Context", "get_context"],
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
        "InsufficientScopeError",
        "InvalidSignature",
        "McpError",
        "NotFoundError",
        "PromptError",
        "ResourceError",
        "ResourceNotFoundError",
        "ResourceSecurityError",
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
    "_compat.openapi": ["HTTPRoute", "MCPType", "RouteMap"],
    "_compat.request_parts": ["AccessToken"],
    "_compat.resolvers": ["Elicit", "ListRoots", "Resolve", "Sample"],
    "_compat.sampling": ["SamplingResult"],
    "_compat.security": [
        "DEFAULT_RESOURCE_SECURITY",
        "INHERIT_SECURITY",
        "RequestStateSecurity",
        "ResourceSecurity",
    ],
    "_compat.server": ["FastMCP", "MCPServer", "create_proxy"],
    "_compat.server_settings": ["Settings"],
    "_compat.task_config": ["TaskConfig"],
    "_compat.versions": [
        "VersionKey",
        "VersionSpec",
        "compare_versions",
        "dedupe_with_versions",
        "is_version_greater",
        "max_version",
        "min_version",
        "parse_version_key",
        "version_sort_key",
    ],
    "_compat.tool_transforms": ["ArgTransform", "TransformedTool", "forward", "forward_raw"],
    "_compat.file_provider": ["FileSystemProvider"],
    "_compat.local_provider": ["LocalProvider"],
    "_compat.provider": ["AggregateProvider", "Provider"],
    "_compat.skill_providers": [
        "ClaudeSkillsProvider",
        "CodexSkillsProvider",
        "CopilotSkillsProvider",
        "CursorSkillsProvider",
        "GeminiSkillsProvider",
        "GooseSkillsProvider",
        "OpenCodeSkillsProvider",
        "SkillProvider",
        "SkillsDirectoryProvider",
        "VSCodeSkillsProvider",
    ],
    "_compat.standalone": ["prompt", "resource", "tool"],
    "_compat.proxy": ["FastMCPProxy", "ProxyClient", "ProxyProvider", "StatefulProxyClient"],
    "_compat.server_provider": ["FastMCPProvider"],
    "_compat.openapi_provider": ["OpenAPIProvider"],
}

__all__ = [
    "DEFAULT_RESOURCE_SECURITY",
    "INHERIT_SECURITY",
    "AcceptedElicitation",
    "AccessToken",
    "AggregateProvider",
    "ArgTransform",
    "ArgTransformConfig",
    "AssistantMessage",
    "Audio",
    "AuthCheck",
    "AuthContext",
    "AuthProvider",
    "AuthorizationError",
    "BM25SearchTransform",
    "BaseSearchTransform",
    "BinaryResource",
    "CallArgument",
    "CallNext",
    "CancelledElicitation",
    "CatalogTransform",
    "ClaudeSkillsProvider",
    "CodexSkillsProvider",
    "Context",
    "ContextManagerLifespan",
    "CopilotSkillsProvider",
    "CurrentAccessToken",
    "CurrentContext",
    "CurrentFastMCP",
    "CurrentHeaders",
    "CurrentRequest",
    "CursorSkillsProvider",
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
    "FastMCPProvider",
    "FastMCPProxy",
    "File",
    "FileResource",
    "FileSystemProvider",
    "FunctionPrompt",
    "FunctionResource",
    "FunctionResourceTemplate",
    "FunctionTool",
    "GeminiSkillsProvider",
    "GooseSkillsProvider",
    "HTTPRoute",
    "HttpResource",
    "Icon",
    "Image",
    "InsufficientScopeError",
    "InvalidSignature",
    "Lifespan",
    "ListRoots",
    "LocalProvider",
    "LoggingMiddleware",
    "MCPServer",
    "MCPType",
    "McpError",
    "Message",
    "Middleware",
    "MiddlewareContext",
    "Namespace",
    "NotFoundError",
    "OpenAPIProvider",
    "OpenCodeSkillsProvider",
    "Progress",
    "Prompt",
    "PromptError",
    "PromptResult",
    "PromptsAsTools",
    "Provider",
    "ProxyClient",
    "ProxyProvider",
    "RegexSearchTransform",
    "RequestStateSecurity",
    "Resolve",
    "Resource",
    "ResourceContent",
    "ResourceError",
    "ResourceNotFoundError",
    "ResourceResult",
    "ResourceSecurity",
    "ResourceSecurityError",
    "ResourceTemplate",
    "ResourcesAsTools",
    "RouteMap",
    "Sample",
    "SamplingResult",
    "Settings",
    "Shared",
    "SkillProvider",
    "SkillsDirectoryProvider",
    "StatefulProxyClient",
    "StaticTokenVerifier",
    "StructuredLoggingMiddleware",
    "TaskConfig",
    "TextResource",
    "TimingMiddleware",
    "TokenClaim",
    "TokenVerificationError",
    "TokenVerifier",
    "Tool",
    "ToolAnnotations",
    "ToolError",
    "ToolResult",
    "ToolTransform",
    "ToolTransformConfig",
    "Transform",
    "TransformedTool",
    "UserMessage",
    "VSCodeSkillsProvider",
    "ValidationError",
    "VersionFilter",
    "VersionKey",
    "VersionSpec",
    "Visibility",
    "compare_versions",
    "configure_logging",
    "create_proxy",
    "dedupe_with_versions",
    "forward",
    "forward_raw",
    "get_access_token",
    "get_context",
    "get_http_headers",
    "get_http_request",
    "get_logger",
    "get_server",
    "is_enabled",
    "is_version_greater",
    "lifespan",
    "max_version",
    "min_version",
    "parse_version_key",
    "prompt",
    "require_roles",
    "require_scopes",
    "resource",
    "restrict_tag",
    "run_auth_checks",
    "tool",
    "version_sort_key",
]

_ELSEWHERE = {
    "Client": "Use funcmcp.client.Client, or funcmcp.testing.Client in tests.",
    "MCPConfig": "Pass the dict to create_proxy, or the dict or the file to funcmcp.client.Client.",
    "Server": "funcmcp has no low-level server. Use @mcp.tool(input_schema=...) of funcmcp.MCPServer.",
    "EventStore": "Use MCPServer(sessions=...), such as funcmcp.redis.RedisSessions.",
    "Extension": "Use extensions= of funcmcp.MCPServer with funcmcp.extensions.Extension.",
    "ServerExtension": "Use extensions= of funcmcp.MCPServer with funcmcp.extensions.Extension.",
    "AuthMiddleware": "Use auth=funcmcp.auth.Auth(..., scopes=[...]), or scopes= and authorize= of features.",
    "RateLimitingMiddleware": "Use HTTPOptions(rates=funcmcp.state.MemoryRates(...)).",
    "SlidingWindowRateLimitingMiddleware": "Use HTTPOptions(rates=funcmcp.state.MemoryRates(...)).",
    "ResponseCachingMiddleware": "Use funcmcp.middleware.cache_results.",
    "ResponseLimitingMiddleware": "Use limits=funcmcp.Limits(result_characters=...).",
    "RetryMiddleware": "Use funcmcp.middleware.retry_calls.",
    "CodeMode": "funcmcp runs no programs of a model. Use mcp.tool_search().",
    "Approval": "Use confirm= of the tool, which the model can't leave out.",
    "FileUpload": "Use HTTPOptions(uploads=funcmcp.http.Uploads()).",
    "SessionId": "Use funcmcp.state.StateHandle.",
    "UserSession": "Use context.state of funcmcp.Context.",
}
"""Names of other frameworks that are not here, and what to use."""

_PROXY = "Use funcmcp.auth.OAuthProxy with the upstream"
_RESOURCE = (
    "Use funcmcp.auth.Auth with BearerTokens and a ProtectedResource, or "
    "funcmcp.auth.OAuthProxy with the upstream OIDC."
)
_OF_ACCOUNTS = (
    "Use funcmcp.auth.OAuthProxy, whose tokens are its own, or write a TokenVerifier whose verify_token asks the API."
)
_TESTS = "Use funcmcp.testing.SignedIn in tests, and funcmcp run --sign-in-as on your machine."

_ELSEWHERE |= {
    # Providers of sign-in
    "OAuthProxy": f"{_PROXY} OIDC or OAuth2, and MCPServer(auth=...).",
    "OAuthProvider": "Use funcmcp.auth.OAuthProxy, in front of an identity provider.",
    **dict.fromkeys(
        ("Auth0Provider", "AWSCognitoProvider", "ClerkProvider", "HuggingFaceProvider", "OCIProvider", "OIDCProxy"),
        f"{_PROXY} OIDC.",
    ),
    "WorkOSProvider": f"{_PROXY} OIDC.",
    "AzureProvider": f"{_PROXY} EntraID, or funcmcp.auth.entra.",
    "DiscordProvider": f"{_PROXY} OAuth2.",
    "GitHubProvider": f"{_PROXY} GitHub.",
    "GoogleProvider": f"{_PROXY} Google.",
    "IdentityAssertion": "Use funcmcp.auth.OAuthProxy(identity_assertions=...).",
    "EntraOBOToken": "Use Context.upstream_token, and EntraID(on_behalf_of=...) as the upstream of OAuthProxy.",
    "InMemoryOAuthProvider": _TESTS,
    # Verifiers of tokens
    **dict.fromkeys(
        (
            "Auth0MCPProvider", "AuthKitProvider", "DescopeProvider", "KeycloakAuthProvider", "RemoteAuthProvider",
            "ScalekitProvider", "SupabaseProvider",
        ),
        _RESOURCE,
    ),
    "PropelAuthProvider": "Use funcmcp.auth.Auth with Introspection and a ProtectedResource.",
    "JWTVerifier": "Use funcmcp.auth.BearerTokens.",
    "BearerAuthProvider": "Use funcmcp.auth.BearerTokens.",
    "Auth0JWTVerifier": 'Use funcmcp.auth.BearerTokens with TokenRules(scope_claims=["scope", "permissions"]).',
    "AWSCognitoTokenVerifier": "Use funcmcp.auth.BearerTokens with TokenRules(clients_without_audience=[...]).",
    "AzureJWTVerifier": "Use funcmcp.auth.entra.",
    "IntrospectionTokenVerifier": "Use funcmcp.auth.Introspection.",
    "ClerkTokenVerifier": "Use funcmcp.auth.Introspection.",
    **dict.fromkeys(
        (
            "DiscordTokenVerifier", "GitHubTokenVerifier", "GoogleTokenVerifier", "HuggingFaceTokenVerifier",
            "WorkOSTokenVerifier",
        ),
        _OF_ACCOUNTS,
    ),
    "DebugTokenVerifier": f"Use StaticTokenVerifier, or an authenticator of your own. {_TESTS}",
    "RSAKeyPair": _TESTS,
    "JWKData": "funcmcp.auth.StaticKeys takes a dict.",
    "JWKSData": "funcmcp.auth.StaticKeys takes a dict.",
    "MultiAuth": "Use funcmcp.auth.first_of with several authenticators.",
}  # fmt: skip
"""Names of authentication in FastMCP. The guide from-fastmcp.md has what to write for each."""

if not TYPE_CHECKING:  # a type checker reports a name that the module does not have
    _load, __dir__ = lazy_names(__name__, _HOMES)

    def __getattr__(name: str) -> Any:
        if name in _ELSEWHERE:
            # An ImportError, because `from funcmcp.compat import X` drops the text of an AttributeError.
            raise ImportError(f"funcmcp.compat has no {name}. {_ELSEWHERE[name]}", name="funcmcp.compat")
        return _load(name)
