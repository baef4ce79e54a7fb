"""What Azure Functions tells an app about itself: the names and the paths by which clients reach it.

Source: "App settings reference for Azure Functions" (WEBSITE_HOSTNAME, AzureFunctionsJobHost__*), "host.json
reference" (extensions.http.routePrefix, "api" by default) and HostConfigurationProfile of the Functions host.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from funcmcp._objects.mappings import lower_names
from funcmcp._text.files import read_text
from funcmcp._text.jsonc import parse

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX_VARIABLE = "AzureFunctionsJobHost__extensions__http__routePrefix"
"""The app setting that overrides host.json."""

_FOLDER_VARIABLE = "AzureWebJobsScriptRoot"
_LOCAL = "localhost:7071"  # where Azure Functions Core Tools serve
SELF_HOSTED_PROFILE = "mcp-custom-handler"
SELF_HOSTED_PROFILES = frozenset({SELF_HOSTED_PROFILE, "web-app-custom-handler"})
"""The profiles of host.json that pass all requests on, with no prefix."""

_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


def hostname(environment: Mapping[str, str] = os.environ) -> str:
    """Return the app's name on Azure, with its port on a developer's machine."""
    return environment.get("WEBSITE_HOSTNAME") or _LOCAL


def is_local(host: str) -> bool:
    """Tell whether a host, with or without a port, is this machine itself."""
    return host.lower().startswith(tuple(f"{name}:" for name in _LOOPBACK)) or host.lower() in _LOOPBACK


def route_prefix(environment: Mapping[str, str] = os.environ) -> str:
    """Return the path below which the app's HTTP functions are: "" or such as "/api".

    Raises:
        ValueError: host.json is not JSON, even without its comments and trailing commas.
    """
    prefix = environment.get(PREFIX_VARIABLE)
    if prefix is None:
        prefix = _prefix_of(Path(environment.get(_FOLDER_VARIABLE, "")) / "host.json")
    prefix = prefix.strip("/")
    return f"/{prefix}" if prefix else ""


def _prefix_of(file: Path) -> str:
    try:
        settings = parse(read_text(file), comments=True).value
    except FileNotFoundError:
        settings = {}
    except ValueError as error:
        raise ValueError(
            f"{file} is not JSON ({error}). Correct it, or set {PREFIX_VARIABLE} to its routePrefix."
        ) from error
    return prefix_in(settings)


def prefix_in(host_json: Any) -> str:
    """Return the first part of the paths of HTTP functions in the content of host.json, without slashes around it."""
    prefix = at(host_json, "extensions", "http", "routePrefix")
    if prefix is None:
        prefix = "" if has_self_hosted_profile(host_json) else "api"
    return str(prefix).strip("/")


def has_self_hosted_profile(host_json: Any) -> bool:
    """Return whether the content of host.json has a profile of servers that are custom handlers, in any case."""
    return str(at(host_json, "configurationProfile")).lower() in SELF_HOSTED_PROFILES


def at(document: Any, *keys: str) -> Any:
    """Return the value at a path of keys in host.json or local.settings.json, whose keys have no case.

    It is None if it is missing.
    """
    for key in keys:
        members = lower_names(document) if isinstance(document, dict) else {}
        document = members.get(key.lower())
    return document


def can_be_set(name: str, value: str) -> bool:
    """Return whether an environment variable can have the name and the value of an app setting."""
    try:
        text = os.fsencode(name + value)
    except UnicodeEncodeError:  # a lone surrogate, which JSON can hold
        return False
    return bool(name) and "=" not in name and b"\0" not in text
