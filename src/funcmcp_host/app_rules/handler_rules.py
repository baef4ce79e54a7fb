"""The rules about custom handlers: the program, the requests that it gets, and the settings that it needs.

`forwarding`, `routes_in` and `invoked_functions` read the app for the rules and for `funcmcp host`.
"""

from __future__ import annotations

import shutil
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from funcmcp._adapters.azure.settings import (
    SELF_HOSTED_PROFILE,
    SELF_HOSTED_PROFILES,
    at,
    has_self_hosted_profile,
)
from funcmcp._text.files import is_file
from funcmcp_host.app_rules.model import is_true, kind_of
from funcmcp_host.app_rules.rule import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp_host.app_rules.model import App, AppFunction
    from funcmcp_host.app_rules.rule import Faults

_CUSTOM_HANDLERS = "https://learn.microsoft.com/azure/azure-functions/functions-custom-handlers"
_TUTORIAL = "https://learn.microsoft.com/azure/azure-functions/functions-mcp-tutorial"
_HOST = "https://github.com/Azure/azure-functions-host/blob"
_WORKERS = "src/WebJobs.Script/Workers/Http"
_PROXYING = "https://github.com/Azure/azure-functions-host/pull/11035"
_ROUTE_FUNCTIONS = f"{_HOST}/0d957c3d6a0e93229e31d9cc756fe3de84018144/{_WORKERS}/HttpWorkerFunctionProvider.cs"
_FORWARDING = ("enableForwardingHttpRequest", "enableProxyingHttpRequest")
_MISSPELT = (("enableHttpProxyingRequest",), ("http", "enableProxying"))
"""Members in published samples and proposals that the Functions host does not know."""

_SCRIPTS = {".py", ".js", ".mjs", ".cjs", ".dll", ".jar", ".sh"}
_PROFILES = {*SELF_HOSTED_PROFILES, "default", ""}
_PACKAGES = "/".join(("", "home", "site", "wwwroot", ".python_packages", "lib", "site-packages"))
"""Where Azure's build installs the packages of an app."""

FEATURE_FLAG = "EnableMcpCustomHandlerPreview"


class RouteText(NamedTuple):
    """A route of a custom handler, as host.json has it.

    Attributes:
        route: The route below the prefix of HTTP triggers.
        level: Its level, in lower case.
    """

    route: str
    level: str


def forwarding(host: Mapping[str, Any]) -> Literal["routes", "triggers"] | None:
    """Return what decides which HTTP requests a custom handler gets as they are.

    "routes" are those of host.json, or with a profile all paths; "triggers" those of HTTP triggers in function.json
    files. Without either, the handler gets invocations as JSON.
    """
    handler = at(host, "customHandler")
    if has_self_hosted_profile(host):
        return "routes"
    if not any(is_true(at(handler, name)) for name in _FORWARDING):
        return None
    return "routes" if at(handler, "http", "routes") else "triggers"


def routes_in(app: App) -> list[RouteText]:
    """Return the routes of a custom handler that host.json decides: all paths, if it names none."""
    default = str(app.value("customHandler", "http", "defaultAuthorizationLevel") or "function").lower()
    routes = at(app.host, "customHandler", "http", "routes")
    texts = []
    for route in routes if isinstance(routes, list) else []:
        if isinstance(route, dict):
            level = str(at(route, "authorizationLevel") or default).lower()
            texts.append(RouteText(str(at(route, "route") or "{*route}").strip("/"), level))
    return texts or [RouteText("{*route}", default)]


def trigger_levels(app: App) -> dict[str, str]:
    """Return the levels of the HTTP triggers in function.json files, by their files."""
    levels = {}
    for function in _functions_of_files(app):
        trigger = function.http_trigger
        if trigger is not None:
            levels[f"{function.name}/function.json"] = str(trigger.get("authlevel") or "function").lower()
    return levels


def invoked_functions(app: App) -> list[str]:
    """Return the functions whose invocations a custom handler gets as JSON, and not as HTTP requests.

    With "triggers", that a function without an output ``http`` is forwarded too is not so on Azure; a rule says it.
    """
    kind = forwarding(app.host)
    if not app.has_custom_handler or kind == "routes" or _misspelt(app):
        return []
    return [
        function.name
        for function in _functions_of_files(app)
        if _has_trigger(function) and not (kind == "triggers" and _is_plain(function))
    ]


def _functions_of_files(app: App) -> list[AppFunction]:
    """Return the functions that have a function.json."""
    names = {folder.name for folder in app.folders}
    return [function for function in app.functions if function.name in names]


def _misspelt(app: App) -> list[str]:
    """Return the members of customHandler that the Functions host does not know, though samples have them."""
    return [".".join(keys) for keys in _MISSPELT if at(app.host, "customHandler", *keys) is not None]


def _has_trigger(function: AppFunction) -> bool:
    return any(kind_of(binding).endswith("trigger") for binding in function.bindings)


def _is_plain(function: AppFunction) -> bool:
    return function.http_trigger is not None and _kinds_beside(function) <= {"http"}


def _kinds_beside(function: AppFunction) -> set[str]:
    """Return the types of a function's bindings beside its HTTP trigger."""
    return {kind_of(binding) for binding in function.bindings if binding is not function.http_trigger}


def _description(app: App) -> Any:
    return at(app.host, "customHandler", "description")


def _missing_program(app: App) -> Faults:
    program = at(_description(app), "defaultExecutablePath")
    if app.has_custom_handler and (not isinstance(program, str) or not program):
        yield "customHandler", "has no description.defaultExecutablePath, so the host starts nothing. Name the program."


def _missing_files(app: App) -> Faults:
    program = at(_description(app), "defaultExecutablePath")
    for name in _script_names(app):
        if not is_file(_working_folder(app) / name):
            is_built = name.startswith(("dist", "build", "out"))
            advice = "Run the build of the app first." if is_built else "Correct the path in host.json."
            yield "customHandler", f"starts {program} with {name}, which does not exist. {advice}"


def _unknown_program(app: App) -> Faults:
    program = at(_description(app), "defaultExecutablePath")
    if not isinstance(program, str) or not program or "%" in program:
        return
    if not is_file(_working_folder(app) / program) and shutil.which(program) is None:
        yield (
            "customHandler",
            (
                f"starts {program}, which is neither a file of the app nor on the PATH here. "
                "Build the program, or correct defaultExecutablePath in host.json."
            ),
        )


def _working_folder(app: App) -> Path:
    return app.folder / str(at(_description(app), "workingDirectory") or "")


def _script_names(app: App) -> list[str]:
    """Return the arguments of a program that look like files of the app."""
    description = _description(app)
    arguments = at(description, "arguments")
    names = [str(argument) for argument in arguments] if isinstance(arguments, list) else []
    path = at(description, "defaultWorkerPath")
    if isinstance(path, str) and path:
        names.append(path)
    return [name for name in names if Path(name).suffix in _SCRIPTS]


def _unforwarded(app: App) -> Faults:
    is_forwarding = forwarding(app.host) is not None or bool(invoked_functions(app))
    if not app.has_custom_handler or is_forwarding or any(_unknown_profiles(app)):
        return
    remark = "".join(f" The Functions host does not know {name}." for name in _misspelt(app))
    yield (
        "customHandler",
        (
            f'does not receive the requests. Add "configurationProfile": "{SELF_HOSTED_PROFILE}" to host.json, or '
            "enableProxyingHttpRequest and either http.routes or a function.json with an HTTP trigger."
            f"{remark}"
        ),
    )


def _two_sources(app: App) -> Faults:
    if app.has_custom_handler and app.folders and _has_routes(app):
        names = ", ".join(f"{folder.name}/function.json" for folder in app.folders)
        yield (
            names,
            (
                "can't be there: Azure's host accepts one source of routes, and those of the custom handler are in "
                "host.json or in its profile. Remove these files, or the routes and the profile."
            ),
        )


def _has_routes(app: App) -> bool:
    return has_self_hosted_profile(app.host) or bool(at(app.host, "customHandler", "http", "routes"))


def _other_bindings(app: App) -> Faults:
    if not app.has_custom_handler or forwarding(app.host) != "triggers":
        return
    for function in _functions_of_files(app):
        kinds = sorted(kind_of(binding) for binding in function.bindings)
        if "httptrigger" in kinds and kinds != ["http", "httptrigger"]:
            yield (
                f"{function.name}/function.json",
                (
                    "gets invocations as JSON on Azure: only functions with an HTTP trigger and an http output, and "
                    "with no other binding, get requests. Keep only these two for a server of MCP."
                ),
            )


def _missing_triggers(app: App) -> Faults:
    broken = any(folder.error for folder in app.folders) or bool(invoked_functions(app))
    if app.has_custom_handler and forwarding(app.host) == "triggers" and not trigger_levels(app) and not broken:
        yield (
            "function.json",
            (
                "is missing: without an HTTP trigger in one, no request reaches the handler. "
                f'Add one, or "configurationProfile": "{SELF_HOSTED_PROFILE}" in host.json.'
            ),
        )


def _routes_as_json(app: App) -> Faults:
    invoked = invoked_functions(app)
    for function in app.functions:
        trigger = function.http_trigger
        if trigger is not None and function.name in invoked and "{*" in str(trigger.get("route") or ""):
            yield (
                f"{function.name}/function.json",
                (
                    "has a route for many paths, whose requests the program gets as JSON. For a server of MCP, add "
                    f'"configurationProfile": "{SELF_HOSTED_PROFILE}" to host.json.'
                ),
            )


def _broken_triggers(app: App) -> Faults:
    for folder in app.folders:
        if folder.error and app.has_custom_handler:
            yield f"{folder.name}/function.json", f"can't be used. {folder.error}"


def _unknown_profiles(app: App) -> Faults:
    profile = at(app.host, "configurationProfile")
    if profile is not None and str(profile).lower() not in _PROFILES:
        yield (
            "configurationProfile",
            f'is "{profile}", with which the host on Azure does not start. Write "{SELF_HOSTED_PROFILE}".',
        )


def _missing_flag(app: App) -> Faults:
    if not app.has_custom_handler or not has_self_hosted_profile(app.host):
        return
    settings = " ".join((app.settings or {}).values())
    if FEATURE_FLAG not in (app.infrastructure or settings):
        place = "the infrastructure (infra)" if app.infrastructure else "local.settings.json"
        yield (
            "AzureWebJobsFeatureFlags",
            f'has no "{FEATURE_FLAG}" in {place}, which Azure needs for the profile. Add the app setting.',
        )


def _missing_path(app: App) -> Faults:
    program = PurePath(str(at(_description(app), "defaultExecutablePath"))).stem.lower()
    if program.startswith("py") and app.infrastructure and "PYTHONPATH" not in app.infrastructure:
        yield (
            "PYTHONPATH",
            (
                "is not set in the infrastructure (infra), so the program does not find its packages. "
                f'Add the app setting "{_PACKAGES}".'
            ),
        )


RULES = (
    Rule(
        "handler-program",
        "handler",
        "error",
        "`customHandler` without `description.defaultExecutablePath`",
        "No program is started.",
        "the program",
        _CUSTOM_HANDLERS,
        _missing_program,
    ),
    Rule(
        "handler-files",
        "handler",
        "error",
        "a script in `arguments` or `defaultWorkerPath` that is not in the folder",
        "The program ends at its start.",
        "the path of the script; run the build",
        _CUSTOM_HANDLERS,
        _missing_files,
    ),
    Rule(
        "handler-path",
        "handler",
        "warning",
        "a program that is neither in the folder nor on the `PATH`",
        "It may not be there on Azure either.",
        "a program of the app, or one that the platform has",
        _CUSTOM_HANDLERS,
        _unknown_program,
    ),
    Rule(
        "handler-forwarding",
        "handler",
        "error",
        (
            "`customHandler` without a profile, without a flag that forwards requests, and without a `function.json` "
            "with a trigger, also with `http.routes`"
        ),
        "Nothing reaches the program.",
        f'`"configurationProfile": "{SELF_HOSTED_PROFILE}"`',
        _PROXYING,
        _unforwarded,
    ),
    Rule(
        "handler-sources",
        "handler",
        "error",
        "a `function.json` beside `http.routes` of the custom handler, or beside a profile, which has a route",
        "No function is loaded: only one configuration source is supported.",
        "routes or `function.json` files, not both",
        _ROUTE_FUNCTIONS,
        _two_sources,
    ),
    Rule(
        "handler-bindings",
        "handler",
        "warning",
        "a `function.json` with an HTTP trigger and other bindings than one `http` output, and no routes in host.json",
        "The program gets its invocations as JSON, and no requests of MCP.",
        "an HTTP trigger and an `http` output",
        _PROXYING,
        _other_bindings,
    ),
    Rule(
        "handler-triggers",
        "handler",
        "error",
        "`enableForwardingHttpRequest` or `enableProxyingHttpRequest` without a trigger in a `function.json`",
        "No path leads to the program.",
        "a `function.json` with an HTTP trigger",
        _CUSTOM_HANDLERS,
        _missing_triggers,
    ),
    Rule(
        "handler-routes",
        "handler",
        "warning",
        "an HTTP trigger with a route such as `{*path}` and no flag that forwards requests",
        "The program gets `POST /FUNCTION` with JSON, and no requests of MCP.",
        f'`"configurationProfile": "{SELF_HOSTED_PROFILE}"`, or the flag',
        _CUSTOM_HANDLERS,
        _routes_as_json,
    ),
    Rule(
        "handler-function-files",
        "handler",
        "error",
        "a `function.json` that is not valid",
        "The function is not loaded.",
        "what the sentence names",
        _CUSTOM_HANDLERS,
        _broken_triggers,
    ),
    Rule(
        "profile-names",
        "handler",
        "error",
        "a `configurationProfile` that is unknown; its case does not count",
        "The host stops at its start.",
        f"`{SELF_HOSTED_PROFILE}` or `web-app-custom-handler`",
        f"{_HOST}/de4eacca128d91cc95725bd03fe8abb3bf08d3ce/src/WebJobs.Script/Config/HostConfigurationProfile.cs",
        _unknown_profiles,
    ),
    Rule(
        "feature-flags",
        "settings",
        "warning",
        f"the profile without `{FEATURE_FLAG}` in the Bicep or Terraform files or, without these, local.settings.json",
        "The preview of the profile is off on Azure.",
        f"`AzureWebJobsFeatureFlags={FEATURE_FLAG}`",
        _TUTORIAL,
        _missing_flag,
    ),
    Rule(
        "python-path",
        "settings",
        "warning",
        "a custom handler in Python without `PYTHONPATH` in the Bicep or Terraform files",
        "The program does not find the packages that the build installs.",
        "`PYTHONPATH` with the folder `.python_packages/lib/site-packages` of the deployed app",
        _TUTORIAL,
        _missing_path,
    ),
)
