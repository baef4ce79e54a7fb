"""The checks of ``funcmcp doctor`` for a server that signs its users in (`OAuthProxy`).

What only the identity provider knows is read from the project's Bicep files and azd environment, as far as they have
it.

Source: "Microsoft.Graph applications" (Bicep reference: `web`, `spa` and their redirect URIs), azure-dev (the folder
``.azure``).
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from funcmcp._adapters.azure.settings import at, is_local
from funcmcp_cli.doctor.project import Finding, Project, SignIn, text_of_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_REGISTRATION = "'Microsoft.Graph/applications@"
_REDIRECT_URIS = re.compile(r"(\w+)\s*:\s*\{[^{}\[\]]*?redirectUris\s*:\s*\[(.*?)\]", re.DOTALL)
_CALLBACK = "/oauth/callback"
_NO_ID = "00000000-0000-0000-0000-000000000000"
_VALUES = {
    "ENTRA_CLIENT_ID": _NO_ID,
    "ENTRA_TENANT_ID": _NO_ID,
    "AZURE_CLIENT_ID": _NO_ID,
    "DATABASE_URL": "postgresql://",
}
"""Variables of the templates' sign_in.py that a deployment sets, with values for code that is only imported."""

_ENV_LINE = re.compile(r"""\s*([A-Za-z_]\w*)\s*=\s*(["']?)(.*?)\2\s*""")
_LEVEL = "AzureFunctionsJobHost__customHandler__http__defaultAuthorizationLevel"


def values_of_deployment(folder: Path) -> dict[str, str]:
    """Return the variables that a deployment sets if it registers the server in Entra ID.

    Their values are those of the azd environment, or those of `_VALUES`. The code is imported with them, as it runs on
    Azure, and makes no requests with them.
    """
    infrastructure = _infrastructure(folder)
    if _REGISTRATION not in infrastructure:
        return {}
    deployed = _azd_environment(folder)
    return {name: deployed.get(name) or value for name, value in _VALUES.items() if name in infrastructure}


def check_sign_in(project: Project) -> Iterator[Finding]:
    """Check what a sign-in needs of the code, the infrastructure and the identity provider."""
    infrastructure = _infrastructure(project.folder)
    for server in project.code.servers:
        sign_in = server.sign_in
        if sign_in is not None:
            yield _url(project, sign_in, server.path)
            yield _redirect_uri(sign_in, infrastructure)
            yield from _scopes(sign_in, infrastructure)
            yield _keys(sign_in, infrastructure)
            yield from _platform(project, infrastructure)


def _url(project: Project, sign_in: SignIn, local_path: str) -> Finding:
    """Return whether the URL of the sign-in is the one that clients have."""
    parts = urlsplit(sign_in.url)
    routes = ["/" + str(endpoint.get("route", "")).strip("/") for _, endpoint in project.endpoints]
    paths = routes or [local_path]
    if parts.path not in paths:
        text = f"is for {sign_in.url}, but the path of the endpoint is {paths[0]}. Give the OAuthProxy the whole URL."
        return Finding("error", "sign-in", text)
    if sign_in.is_of_app:
        return Finding("ok", "sign-in", "has the URL of the app.")
    if is_local(parts.netloc):
        text = f"is for {sign_in.url}, which is on this machine. Use OAuthProxy(funcmcp.azure.public_url(), ...)."
        return Finding("error", "sign-in", text)
    deployed = _azd_environment(project.folder)
    deployed_url = deployed.get("MCP_URL", sign_in.url)
    if deployed_url != sign_in.url:
        text = f"is for {sign_in.url}, but azd deployed {deployed_url}. Clients must use the URL of the OAuthProxy."
        return Finding("warning", "sign-in", text)
    return Finding("ok", "sign-in", f"is for {sign_in.url}.")


def _redirect_uri(sign_in: SignIn, infrastructure: str) -> Finding:
    """Return whether the identity provider has the redirect URI, as far as the infrastructure says it."""
    uri = f"https://<host of the app>{_CALLBACK}" if sign_in.is_of_app else sign_in.callback
    if _REGISTRATION not in infrastructure:
        text = f"can't be checked: no Bicep file registers the server. Register {uri} at {sign_in.upstream}."
        return Finding("warning", "redirect URI", text)
    platforms = {platform for platform, uris in _REDIRECT_URIS.findall(infrastructure) if _CALLBACK in uris}
    if "web" in platforms:
        return Finding("ok", "redirect URI", "is in the registration of the infrastructure.")
    if platforms:
        text = f"is registered for {min(platforms)}. Entra ID then refuses the server: register it for web."
        return Finding("error", "redirect URI", text)
    return Finding(
        "error", "redirect URI", f"{uri} is not in the registration of the infrastructure (web.redirectUris)."
    )


def _scopes(sign_in: SignIn, infrastructure: str) -> Iterator[Finding]:
    """Yield the scopes that features require and no client can get, and the one that the registration lacks."""
    for scope, users in sign_in.unknown_scopes.items():
        text = f"is required by {users}, and the OAuthProxy does not have it. Add it to scopes={{...}}."
        yield Finding("error", f"scope {scope}", text)
    exposed = sign_in.on_behalf_of
    if exposed is not None and _REGISTRATION in infrastructure and f"'{exposed}'" not in infrastructure:
        text = "is on_behalf_of in the code, but the registration does not expose it (api.oauth2PermissionScopes)."
        yield Finding("error", f"scope {exposed}", text)


def _keys(sign_in: SignIn, infrastructure: str) -> Finding:
    """Return whether all instances of the app have the same keys."""
    if not sign_in.has_shared_keys:
        text = "of the sign-in are random in each process. Leave out keys=, so that all instances have the same ones."
        return Finding("error", "keys", text)
    if "managedEnvironmentId" in infrastructure and "FUNCMCP_KEYS" not in infrastructure:
        text = "are missing: on Container Apps the platform gives the app none. Add the setting FUNCMCP_KEYS."
        return Finding("error", "keys", text)
    return Finding("ok", "keys", "of the sign-in are the same on all instances.")


def _platform(project: Project, infrastructure: str) -> Iterator[Finding]:
    """Yield what of the platform stands between clients and the sign-in."""
    is_guarded = "requireAuthentication: true" in infrastructure and "if (!empty(platformSignIn))" not in infrastructure
    if is_guarded or re.search(r"^\s*platformSignIn\s*:", infrastructure, re.MULTILINE):
        text = "requires a sign-in of its own before the one of the server. Switch App Service authentication off."
        yield Finding("error", "authsettingsV2", text)
    level = at(project.host, "customHandler", "http", "defaultAuthorizationLevel")
    if project.is_self_hosted and str(level).lower() != "anonymous" and f"{_LEVEL}: 'anonymous'" not in infrastructure:
        text = f"requires a key that clients who sign in do not have. Set the app setting {_LEVEL} to anonymous."
        yield Finding("error", "defaultAuthorizationLevel", text)


def _infrastructure(folder: Path) -> str:
    """Return the Bicep files of a project as one text, without comments and descriptions."""
    files = sorted((folder / "infra").rglob("*.bicep")) if (folder / "infra").is_dir() else []
    text = "\n".join(text_of_file(file) for file in files)
    return re.sub(r"^\s*(//|@description).*$", "", text, flags=re.MULTILINE)


def _azd_environment(folder: Path) -> Mapping[str, str]:
    """Return the values of the default environment of azd; nothing if there is none."""
    try:
        config = json.loads(text_of_file(folder / ".azure" / "config.json") or "{}")
    except (ValueError, RecursionError):
        return {}
    name = config.get("defaultEnvironment") if isinstance(config, dict) else None
    if not isinstance(name, str) or not re.fullmatch(r"[\w.-]+", name):
        return {}
    values = {}
    for line in text_of_file(folder / ".azure" / name / ".env").splitlines():
        match = _ENV_LINE.fullmatch(line)
        if match is not None:
            values[match[1]] = match[3]
    return values
