"""Options of servers, tools, resources and prompts in other frameworks, and funcmcp's options for them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from funcmcp._authoring.results.content import Icon
from funcmcp._compat.annotations import plain
from funcmcp._compat.auth import AuthProvider, native_auth
from funcmcp._compat.server_settings import DEFAULTS, Settings
from funcmcp._objects.mappings import only, without, without_none
from funcmcp._server.options import ProtocolOptions
from funcmcp._transports.http.options import HTTPOptions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_NATIVE = frozenset(
    {"http", "info", "limits", "protocol", "sessions", "show_errors", "state", "tasks", "unknown_arguments"}
)
_SERVER = frozenset(
    {
        *("title", "description", "icons", "website_url", "list_page_size", "mask_error_details", "middleware"),
        *("lifespan", "tools", "strict_input_validation", "auth", "token_verifier", "auth_server_provider"),
        *("on_duplicate", "on_duplicate_tools", "on_duplicate_resources", "on_duplicate_prompts"),
        *("include_tags", "exclude_tags", "include_fastmcp_meta", "transforms", "providers", "resource_security"),
        *("telemetry_mode", "cache_ttl", "cache_scope", "client_log_level"),
        *("host", "port", "log_level", "debug", "mount_path", "sse_path", "message_path", "streamable_http_path"),
        *("json_response", "stateless_http", "transport_security", "dependencies"),
        *("warn_on_duplicate_tools", "warn_on_duplicate_resources", "warn_on_duplicate_prompts"),
    }
)
"""Options of servers that have a meaning here, or whose default has."""

_WITHOUT_MEANING = frozenset(
    {
        *("cache_expiration_seconds", "resource_prefix_format", "tool_serializer"),
        *("event_store", "retry_interval", "dereference_schemas", "session_state_store"),
        *("request_state_security", "subscriptions"),
        *("sampling_handler", "sampling_handler_behavior", "experimental_capabilities"),
        *("http_app_path", "tool_transformations", "event_store_ttl"),
    }
)
"""Options of servers that change nothing here."""

_UNSUPPORTED = {
    "extensions": "Use extensions= of funcmcp.MCPServer with funcmcp.extensions.Extension.",
}
"""Options of servers that funcmcp has nothing for, and what to do."""

_FEATURE_WITHOUT_MEANING = {
    "tool": ("serializer", "key", "validate_output"),
    "resource": ("key", "task"),
    "prompt": ("key", "task"),
}
"""Options of components that change nothing here."""


_MOUNT_WITHOUT_MEANING = frozenset(
    {"as_proxy", "tool_separator", "resource_separator", "prompt_separator", "resource_prefix_format"}
)
"""Options of ``mount`` that change nothing here: names are separated with an underscore, and mounts are live."""

_IGNORED_SETTINGS = ("debug", "dependencies", "json_response", "log_level", "message_path")
"""Options of servers that change nothing here except the attribute of ``mcp.settings``."""


def checked_server_options(options: Mapping[str, Any], cls: str) -> dict[str, Any]:
    """Return the options of a server that `funcmcp.MCPServer` takes.

    Raises:
        TypeError: An option does not exist, or funcmcp has nothing for it.
    """
    present = without_none(options)
    for name, advice in _UNSUPPORTED.items():
        if present.get(name):
            raise TypeError(f"{cls} of funcmcp.compat has no option {name!r}. {advice}")
    unknown = sorted(options.keys() - _NATIVE - _SERVER - _WITHOUT_MEANING - _UNSUPPORTED.keys())
    if unknown:
        valid = ", ".join(sorted(_NATIVE | _SERVER))
        raise TypeError(f"Unknown option {', '.join(map(repr, unknown))} of {cls}. Valid options: {valid}.")
    chosen = only(options, _NATIVE)
    provider = provider_in(present)
    path = Settings(present).streamable_http_path
    auth = native_auth(present.get("auth"), present.get("token_verifier")) if provider is None else None
    if provider is not None:
        chosen["auth_provider"], chosen["auth"] = provider, provider.native_auth(path)
    elif auth is not None:
        chosen["auth"] = auth
    return chosen


def provider_in(options: Mapping[str, Any]) -> AuthProvider | None:
    """Return the provider of authentication in the options of a server; None without one.

    Raises:
        TypeError: There is an authorization server of the official SDK without its settings, or with a verifier.
    """
    from funcmcp._compat.authorization_servers import FastMCPProvider, SDKProvider  # noqa: PLC0415 - few servers have one

    auth, server = options.get("auth"), options.get("auth_server_provider")
    if server is not None:
        if options.get("token_verifier") is not None:
            raise TypeError("Pass auth_server_provider= or token_verifier=, not both.")
        return SDKProvider(server, auth)
    if isinstance(auth, AuthProvider):
        return None if options.get("token_verifier") is not None else auth
    if not isinstance(auth, type) and hasattr(auth, "verify_token") and getattr(auth, "get_routes", list)():
        return FastMCPProvider(auth)
    return None


def ignored_server_options(options: Mapping[str, Any]) -> list[str]:
    """Return the names of a server's options that change nothing here."""
    ignored = [name for name in without_none(options) if name in _WITHOUT_MEANING]
    ignored += [name for name in _IGNORED_SETTINGS if options.get(name) not in (None, DEFAULTS[name])]
    return ignored


def ignored_component_options(options: Mapping[str, Any], kind: str) -> list[str]:
    """Return the names of a component's options that change nothing here."""
    return [name for name in _FEATURE_WITHOUT_MEANING[kind] if options.get(name) is not None]


def component_options(options: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return the options of a component without those that change nothing here.

    Args:
        options: The options.
        kind: The kind of the component: ``"tool"``, ``"resource"`` or ``"prompt"``.
    """
    return without(options, "auth", "enabled", "security", *_FEATURE_WITHOUT_MEANING[kind])


def duplicates_policy(options: Mapping[str, Any], default: str) -> str:
    """Return what happens to a second component of one name.

    Args:
        options: The options of the server.
        default: The policy of a server without such an option.

    Returns:
        ``"warn"`` (replace and warn), ``"replace"``, ``"error"``, ``"ignore"``, or ``"keep"`` (ignore and warn).
    """
    for name in ("on_duplicate", "on_duplicate_tools", "on_duplicate_resources", "on_duplicate_prompts"):
        policy = options.get(name)
        if policy is not None:
            return str(policy)
    return default


def protocol_options(options: Mapping[str, Any], list_ttl: float) -> ProtocolOptions:
    """Return the options of the protocol for those of a server.

    Args:
        options: The options of the server: ``list_page_size``, ``cache_ttl`` and ``cache_scope``.
        list_ttl: Seconds for which clients may cache lists by default.

    Raises:
        ValueError: A number is not positive, or there is a scope without seconds.
    """
    page_size, ttl, scope = (options.get(name) for name in ("list_page_size", "cache_ttl", "cache_scope"))
    if page_size is not None and page_size < 1:
        raise ValueError("list_page_size must be a positive integer or None")
    if ttl is None and scope is not None:
        raise ValueError("cache_scope requires cache_ttl")
    if ttl is None:
        return ProtocolOptions(page_size=page_size, list_ttl=list_ttl)
    if ttl <= 0:
        raise ValueError("cache_ttl must be a positive integer")
    return ProtocolOptions(page_size=page_size, list_ttl=ttl, read_ttl=ttl, share_caches=scope == "public")


def http_options(settings: Settings, base: HTTPOptions | None = None) -> HTTPOptions:
    """Return the options of HTTP for a server's settings.

    Args:
        settings: The settings.
        base: The options of HTTP of a server that exists. The settings replace the path and, if there are any, the
            hosts and origins.
    """
    base = base or HTTPOptions()
    security = settings.transport_security
    hosts: Sequence[str] = settings.http_allowed_hosts or base.allowed_hosts
    origins: Sequence[str] = settings.http_allowed_origins or base.allowed_origins
    if security is not None:
        if getattr(security, "enable_dns_rebinding_protection", True):
            hosts = [_without_any_port(host) for host in security.allowed_hosts]
            origins = [_without_any_port(origin) for origin in security.allowed_origins]
        else:
            hosts = ["*"]
    path = settings.streamable_http_path
    return replace(
        base,
        path=path if path == "/" else path.rstrip("/"),
        allowed_hosts=tuple(hosts),
        allowed_origins=tuple(origins),
    )


def _without_any_port(pattern: str) -> str:
    return pattern.removesuffix(":*")


def ignored_mount_options(options: Mapping[str, Any]) -> list[str]:
    """Return the names of options of ``mount`` and ``import_server`` that change nothing here.

    Raises:
        TypeError: An option does not exist, or funcmcp has nothing for it.
    """
    unknown = sorted(options.keys() - _MOUNT_WITHOUT_MEANING)
    if unknown:
        raise TypeError(
            f"Unknown option {', '.join(map(repr, unknown))} of mount. Valid options: prefix, namespace, tool_names."
        )
    return [name for name in options if options[name] is not None]


def icons_of(icons: Any) -> list[Any]:
    """Return icons as funcmcp takes them."""
    return [icon if isinstance(icon, Icon) else plain(icon) for icon in icons or ()]


def sessions_option(options: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """Return funcmcp's option ``sessions`` of a server, and make the settings agree: without sessions it is stateless.

    Args:
        options: The options of the constructor, of which ``sessions=None`` counts as well.
        settings: The settings.

    Raises:
        TypeError: ``sessions`` and ``stateless_http`` contradict each other.
    """
    if "sessions" not in options:
        return {"sessions": None} if settings.stateless_http else {}
    sessions, stateless = options["sessions"], options.get("stateless_http")
    if stateless is not None and stateless is not (sessions is None):
        raise TypeError(f"sessions={sessions!r} contradicts stateless_http={stateless}. Leave out one of them.")
    settings.stateless_http = sessions is None
    return {"sessions": sessions}
