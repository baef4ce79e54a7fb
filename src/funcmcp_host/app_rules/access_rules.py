"""The rules about who can call an app."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._objects.mappings import without
from funcmcp._text.listing import some_of
from funcmcp_host.app_rules.handler_rules import forwarding, invoked_functions, routes_in, trigger_levels
from funcmcp_host.app_rules.rule import Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from funcmcp_host.app_rules.model import App, AppFunction
    from funcmcp_host.app_rules.rule import Faults

_ANONYMOUS = "anonymous"
_WEBHOOK = "webhookAuthorizationLevel"
_MAX_NAMES = 10
_LEVELS = "https://learn.microsoft.com/azure/azure-functions/functions-bindings-http-webhook-trigger#http-auth"


def levels_of(app: App) -> dict[str, str]:
    """Return the levels of an app's MCP endpoints, in lower case, each by the place that sets it."""
    levels = {}
    if app.has_custom_handler:
        if forwarding(app.host) == "routes":
            levels = {f"host.json: {route.route}": route.level for route in routes_in(app)}
        else:
            levels = trigger_levels(app)
    if app.mcp_functions and (not app.has_custom_handler or invoked_functions(app)):
        levels[_WEBHOOK] = _webhook_level(app)
    for function in _http_endpoints(app):
        levels[function.name] = _level(function)
    return levels


def is_open(app: App) -> bool:
    """Return whether a part of an app that speaks MCP needs no key of the app."""
    return _ANONYMOUS in levels_of(app).values()


def _webhook_level(app: App) -> str:
    return str(app.value("extensions", "mcp", "system", "webhookAuthorizationLevel") or "system").lower()


def _http_endpoints(app: App) -> Iterator[AppFunction]:
    """Yield the functions with HTTP triggers that serve MCP, or may do so.

    `http_app` makes another function for preflight requests beside its endpoint. Without such a function, and without
    MCP triggers, any function that accepts POST may be the endpoint.
    """
    if app.has_custom_handler:
        return
    names = {function.name for function in app.functions}
    endpoints = [function for function in app.functions if f"{function.name}_preflight" in names]
    if not endpoints and not app.mcp_functions:
        endpoints = [function for function in app.functions if _accepts_post(function.http_trigger)]
    yield from (function for function in endpoints if function.http_trigger is not None)


def _accepts_post(trigger: Any) -> bool:
    methods = [] if trigger is None else [str(method).lower() for method in trigger.get("methods") or ()]
    return trigger is not None and (not methods or "post" in methods)


def _level(function: AppFunction) -> str:
    trigger = function.http_trigger or {}
    return str(trigger.get("authlevel") or "function").lower()


def _requires_tokens(app: App, function: AppFunction) -> bool:
    """Return whether `http_app` serves the metadata of a sign-in beside an endpoint."""
    return any(other.name == f"{function.name}_metadata" for other in app.functions)


def _open_webhook(app: App) -> Faults:
    has_triggers = bool(app.mcp_functions) or not app.functions  # of an app in another language, none are known
    if has_triggers and _webhook_level(app) == _ANONYMOUS:
        yield (
            "webhookAuthorizationLevel",
            (
                "is Anonymous, so any caller may use the triggers, unless App Service authentication is on. "
                'Write "System", or turn that authentication on.'
            ),
        )


def _open_handler(app: App) -> Faults:
    if not app.has_custom_handler or app.signs_in:
        return
    levels = without(levels_of(app), _WEBHOOK)  # another rule's
    places = [place for place, level in levels.items() if level == _ANONYMOUS]
    if places:
        yield "access", f"needs no key ({some_of(sorted(places), _MAX_NAMES)}: anonymous). {_remark(app)}"


def _open_endpoints(app: App) -> Faults:
    if app.signs_in:
        return
    names = [
        function.name
        for function in _http_endpoints(app)
        if _level(function) == _ANONYMOUS and not _requires_tokens(app, function)
    ]
    if names:
        yield "access", f"needs no key ({some_of(sorted(names), _MAX_NAMES)}: anonymous). {_remark(app)}"


def _remark(app: App) -> str:
    if app.signs_in is False:
        return "The server has no sign-in (auth=) either, so any caller may use it. Add one, or the level function."
    return (
        "Neither a sign-in of the server nor App Service authentication is examined. "
        "Set the level function if callers do not sign in."
    )


def _closed_sign_ins(app: App) -> Faults:
    for function in _http_endpoints(app):
        if _requires_tokens(app, function) and _level(function) != _ANONYMOUS:
            yield (
                "auth_level",
                f"of {function.name} requires a key that clients who sign in do not have. Omit auth_level.",
            )


RULES = (
    Rule(
        "webhook-level",
        "access",
        "warning",
        "MCP triggers and `system.webhookAuthorizationLevel: Anonymous`",
        "Any caller may use the triggers, unless App Service authentication is on.",
        "`System`, or App Service authentication",
        "https://github.com/Azure/azure-functions-host/pull/11383",
        _open_webhook,
    ),
    Rule(
        "handler-access",
        "access",
        "warning",
        "a custom handler without a sign-in whose level, or that of one of its routes, is `anonymous`",
        "Any caller may use the server.",
        "`function`, or a sign-in",
        "https://learn.microsoft.com/azure/azure-functions/self-hosted-mcp-servers",
        _open_handler,
    ),
    Rule(
        "endpoint-access",
        "access",
        "warning",
        "an HTTP trigger that serves MCP, or may do so, with the level `anonymous` and without a sign-in",
        "Any caller may use the server.",
        "`function`, or a sign-in",
        _LEVELS,
        _open_endpoints,
    ),
    Rule(
        "sign-in-keys",
        "access",
        "error",
        "an endpoint whose clients sign in, with another level than `anonymous`",
        "Clients who sign in have no key, and are refused.",
        "no `auth_level`",
        _LEVELS,
        _closed_sign_ins,
    ),
)
