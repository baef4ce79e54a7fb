"""The rules about host.json and local.settings.json: the version, the runtime and the bundle of extensions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from funcmcp._adapters.azure.settings import at, has_self_hosted_profile
from funcmcp_host.app_rules.handler_rules import forwarding
from funcmcp_host.app_rules.rule import Rule
from funcmcp_host.other_languages import DOTNET, IN_PROCESS, JAVA, POWERSHELL, language_of

if TYPE_CHECKING:
    from funcmcp_host.app_rules.model import App
    from funcmcp_host.app_rules.rule import Faults, Level

    Version = tuple[int, ...]

BUNDLE = "Microsoft.Azure.Functions.ExtensionBundle"
_FIRST_BUNDLES = {BUNDLE.lower(): (4, 36, 0), f"{BUNDLE}.Preview".lower(): (4, 42, 0)}
"""By bundle, its first version with Azure's MCP extension 1.5, the first with all keys of funcmcp's triggers."""

_EXPERIMENTAL = f"{BUNDLE}.Experimental".lower()
_INTERVAL = re.compile(r"[\[(]\s*([0-9.*]+)\s*,\s*([0-9.*]+)\s*([\])])")
_RUNTIMES = {
    DOTNET: {"dotnet-isolated", "dotnet"},
    IN_PROCESS: {"dotnet"},
    JAVA: {"java"},
    POWERSHELL: {"powershell"},
}
_HOST_JSON = "https://learn.microsoft.com/azure/azure-functions/functions-host-json"


def _other_versions(app: App) -> Faults:
    if app.host and at(app.host, "version") != "2.0":
        yield "host.json", 'has no "version": "2.0", without which the Functions host stops at its start. Add it.'


def _other_runtimes(app: App) -> Faults:
    runtimes = _runtimes_of(app)
    if app.settings is None or not runtimes:
        return
    runtime = app.settings.get("FUNCTIONS_WORKER_RUNTIME", "")
    if runtime.lower() not in runtimes:
        valid = " or ".join(f'"{name}"' for name in sorted(runtimes))
        current = f'is "{runtime}"' if runtime else "is missing"
        yield "FUNCTIONS_WORKER_RUNTIME", f"{current} in local.settings.json. Write {valid}."


def _runtimes_of(app: App) -> set[str]:
    """Return the valid values of FUNCTIONS_WORKER_RUNTIME; none if the language is not known."""
    language = _RUNTIMES.get(language_of(app.folder) or "", set())
    if app.has_custom_handler and forwarding(app.host) == "routes" and not has_self_hosted_profile(app.host):
        return {"custom"}  # the routes of host.json are ignored with another one
    if app.has_custom_handler:
        return {"custom", "python", "node", *language}
    if (app.folder / "function_app.py").is_file():
        return {"python"}
    return language or ({"node"} if (app.folder / "package.json").is_file() else set())


def _bundle(app: App, level: Level) -> Faults:
    if not app.mcp_functions:
        return
    bundle = at(app.host, "extensionBundle")
    if bundle is None and any(app.folder.glob("*.csproj")):
        return  # its extensions are in that file
    judged, text = _judged_bundle(bundle)
    if judged == level:
        yield "extensionBundle", text


def _judged_bundle(bundle: object) -> tuple[Level | None, str]:
    """Return what is wrong with a bundle of an app with MCP triggers, and how much; None if nothing is."""
    if bundle is None:
        return "error", f"is missing in host.json, and MCP triggers need it. Add {_recommended(BUNDLE)}."
    identity = str(at(bundle, "id"))
    if identity.lower() == _EXPERIMENTAL:
        return "warning", f"{identity} may have an MCP extension before 1.5. Use {_recommended(BUNDLE)}."
    first = _FIRST_BUNDLES.get(identity.lower())
    if first is None:
        return "error", f"{identity} has no MCP extension. Use {_recommended(BUNDLE)}."
    interval = _INTERVAL.fullmatch(str(at(bundle, "version")))
    if interval is None:
        return "error", f"has a version that is not a range. Use {_recommended(identity)}."
    lowest, highest, includes_highest = version_in(interval[1]), version_in(interval[2]), interval[3] == "]"
    if highest < first or (highest == first and not includes_highest):
        return "error", f"has a range without the MCP extension 1.5. Use {_recommended(identity)}."
    if lowest < first:
        return "warning", f"has a range that includes bundles before the extension. Use {_recommended(identity)}."
    return None, ""


def _recommended(identity: str) -> str:
    first = ".".join(map(str, _FIRST_BUNDLES[identity.lower()]))
    return f'"extensionBundle": {{"id": "{identity}", "version": "[{first}, 5.0.0)"}}'


def version_in(text: str) -> Version:
    """Return the first three numbers of a version, with zeros for missing ones and for ``*``."""
    parts = [int(part[:9]) if part.isdecimal() else 0 for part in text.split(".")]
    return tuple([*parts, 0, 0][:3])


def _wrong_bundles(app: App) -> Faults:
    yield from _bundle(app, "error")


def _wide_bundles(app: App) -> Faults:
    yield from _bundle(app, "warning")


RULES = (
    Rule(
        "host-version",
        "settings",
        "error",
        '`version` of host.json is missing, or not `"2.0"`',
        "The host stops at its start.",
        '`"version": "2.0"`',
        "https://github.com/Azure/azure-functions-host/blob/89dc438d476542786f2fc4070f553423213a6223"
        "/src/WebJobs.Script/Config/HostJsonFileConfigurationSource.cs#L177-L192",
        _other_versions,
    ),
    Rule(
        "worker-runtime",
        "settings",
        "error",
        "`FUNCTIONS_WORKER_RUNTIME` of local.settings.json is missing, or not that of the app's files",
        "The functions are not found.",
        "the runtime",
        "https://learn.microsoft.com/azure/azure-functions/functions-app-settings#functions_worker_runtime",
        _other_runtimes,
    ),
    Rule(
        "bundle",
        "settings",
        "error",
        "MCP triggers without a bundle, or with one that does not have the MCP extension 1.5",
        "The triggers are not known.",
        f"`{BUNDLE}`, `[4.36.0, 5.0.0)`",
        _HOST_JSON + "#extensionbundle",
        _wrong_bundles,
    ),
    Rule(
        "bundle-range",
        "settings",
        "warning",
        "MCP triggers with the experimental bundle, or with a range that begins before the MCP extension 1.5",
        "An older extension may be loaded, which ignores what it does not know.",
        f"`{BUNDLE}`, `[4.36.0, 5.0.0)`",
        _HOST_JSON + "#extensionbundle",
        _wide_bundles,
    ),
)
