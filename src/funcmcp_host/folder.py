"""The folder of a function app: host.json, local.settings.json and the language.

Source: host.json reference of Azure Functions ("host.json" v2); the documentation of the MCP extension
("extensions.mcp"); local.settings.json as Core Tools read it.
"""

from __future__ import annotations

import json
import logging
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from funcmcp._adapters.azure.settings import can_be_set, prefix_in
from funcmcp._objects.mappings import lower_names, without
from funcmcp._state.keys import VARIABLE as KEYS_VARIABLE
from funcmcp._text.files import is_file, read_text
from funcmcp._text.jsonc import JSONTextError, parse
from funcmcp_host.keys import VARIABLE as HOST_KEYS_VARIABLE
from funcmcp_host.other_languages import language_of, language_of_runtime, refusal_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_OVERRIDE = "azurefunctionsjobhost__"
"""The prefix of environment variables that replace members of host.json, in lower case."""

_OF_THE_HOST = {HOST_KEYS_VARIABLE, KEYS_VARIABLE}
"""Environment variables that the app does not get: with them it could sign in and forge sessions."""

_SETTINGS_FILE = "local.settings.json"
_MAX_PORT = 65535
_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://(?:[A-Za-z0-9._\-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?")
_DEFAULT_TIMEOUT = 300.0
_DURATION = re.compile(r"(?:(\d{1,8})\.)?(\d{1,2}):(\d{1,2}):(\d{1,2})")
_LEVELS = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "information": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
    "none": logging.CRITICAL + 1,
}
_VERSION = "2.0"
_AUTHORIZATION_LEVELS = {"anonymous", "system"}
_OBJECTS = (
    ("extensions",),
    ("extensions", "durabletask"),
    ("extensions", "http"),
    ("extensions", "mcp"),
    ("extensions", "mcp", "system"),
    ("logging",),
    ("logging", "loglevel"),
)
"""Paths in host.json that are objects."""


class FolderError(Exception):
    """A function app's folder can't be served; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class HostOptions:
    """What host.json says.

    Attributes:
        name: The server's name, as clients see it.
        version: The server's version.
        instructions: Guidance for models on how to use the server.
        anonymous: Whether the MCP endpoint needs no key.
        route_prefix: The first part of the paths of HTTP triggers.
        timeout: Seconds that a call may take; None for any time.
        log_level: The least severe level of the app's log records.
        hub_name: The name of the task hub of Durable Functions, which may have app settings; empty for the default.
    """

    name: str = "Azure Functions MCP server"
    version: str = "1.0.0"
    instructions: str | None = None
    anonymous: bool = False
    route_prefix: str = "api"
    timeout: float | None = _DEFAULT_TIMEOUT
    log_level: int = logging.INFO
    hub_name: str = ""


@dataclass(frozen=True, slots=True)
class CrossOrigin:
    """Which pages may call the app from a browser.

    Attributes:
        origins: The origins, such as ``https://app.example.com``, or ``*`` for all.
        credentials: Whether pages may send cookies.
    """

    origins: Sequence[str] = ()
    credentials: bool = False


@dataclass(frozen=True, slots=True)
class Folder:
    """A function app's folder.

    Attributes:
        path: The folder.
        runtime: The value of FUNCTIONS_WORKER_RUNTIME, or the language of the app's files: "python" or "node". For an
            app with a worker of its own it can be another language, or empty.
        options: What host.json says.
        settings: The app settings: those of local.settings.json and of the environment, which goes first. Keys of the
            host in the environment are left out.
        cross_origin: Which pages local.settings.json lets call the app.
    """

    path: Path
    runtime: str
    options: HostOptions
    settings: Mapping[str, str] = field(default_factory=dict)
    cross_origin: CrossOrigin = field(default_factory=CrossOrigin)


def read_folder(path: Path, environment: Mapping[str, str], *, has_worker: bool = False) -> Folder:
    """Read a function app's folder.

    Args:
        path: The folder.
        environment: The environment variables of this process.
        has_worker: Accept any language, because the app has a worker of its own.

    Raises:
        FolderError: The folder has no function app, or one of its files can't be read.
    """
    path = path.resolve()
    if not path.is_dir():
        raise FolderError(f"{path} is not a folder.")
    if not (path / "host.json").is_file():
        raise FolderError(f"{path} has no host.json, so it is not a function app. Name the folder of the app.")
    variables = without(environment, *_OF_THE_HOST)
    local_settings = _local_settings(path / _SETTINGS_FILE)
    settings = {**_values(local_settings), **variables}
    options = _host_options(read_json(path / "host.json"), environment)
    runtime = settings.get("FUNCTIONS_WORKER_RUNTIME", "") if has_worker else _runtime_of(path, settings)
    return Folder(path, runtime, options, settings, _cross_origin(local_settings))


def worker_environment(folder: Folder, hostname: str) -> dict[str, str]:
    """Return the environment of an app's worker.

    Args:
        folder: The app.
        hostname: The host and the port on which the app is served.
    """
    environment = {
        "AZURE_FUNCTIONS_ENVIRONMENT": "Development",
        "WEBSITE_HOSTNAME": hostname,
        **folder.settings,
        "AzureWebJobsScriptRoot": str(folder.path),
        "FUNCMCP_APP_LOG_LEVEL": str(folder.options.log_level),
    }
    if folder.runtime:
        environment["FUNCTIONS_WORKER_RUNTIME"] = folder.runtime
    return environment


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file, which may have comments, trailing commas and a byte order mark.

    Raises:
        FolderError: The file can't be read, or does not hold an object.
    """
    try:
        value = parse(read_text(path), comments=True).value
    except JSONTextError as error:
        raise FolderError(f"{path.name}, {error}. Correct the JSON there.") from error
    except OSError as error:
        raise FolderError(f"{path.name} can't be read: {error.strerror}.") from error
    except ValueError as error:
        raise FolderError(f"{path.name} can't be read: {error}.") from error
    if not isinstance(value, dict):
        raise FolderError(f"{path.name} must hold a JSON object, such as {{}}.")
    return value


def _local_settings(path: Path) -> dict[str, Any]:
    """Return the members of local.settings.json by their names in lower case."""
    if not path.is_file():
        return {}
    content = lower_names(read_json(path))
    if content.get("isencrypted"):
        raise FolderError(f"{path.name} is encrypted. Run: func settings decrypt")
    return content


def _values(content: Mapping[str, Any]) -> dict[str, str]:
    """Return the app settings in local.settings.json."""
    values = content.get("values", {})
    if not isinstance(values, dict):
        raise FolderError(f'{_SETTINGS_FILE}: "Values" must be an object.')
    settings = {name: _setting(value) for name, value in values.items() if value is not None}
    for name, value in settings.items():
        if not can_be_set(name, value):
            raise FolderError(f"{_SETTINGS_FILE}: the setting {name!r} can't be an environment variable. Remove it.")
    return settings


def local_port(path: Path) -> int | None:
    """Return the port that ``Host.LocalHttpPort`` in local.settings.json names, or None.

    Args:
        path: The folder of the app.

    Raises:
        FolderError: The file can't be read, or the port is not valid.
    """
    port = _local_host(_local_settings(path / _SETTINGS_FILE)).get("localhttpport") or 0
    if not re.fullmatch("[0-9]{1,5}", str(port)) or int(port) > _MAX_PORT:
        raise FolderError(f'{_SETTINGS_FILE}: "LocalHttpPort" must be a port, such as 7071.')
    return int(port) or None


def local_origins(path: Path) -> Sequence[str]:
    """Return the origins in ``Host.CORS`` of local.settings.json; raise FolderError if it can't be read.

    Args:
        path: The folder of the app.
    """
    return _cross_origin(_local_settings(path / _SETTINGS_FILE)).origins


def _local_host(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of "Host" in local.settings.json by their names in lower case."""
    host = content.get("host") or {}
    if not isinstance(host, dict):
        raise FolderError(f'{_SETTINGS_FILE}: "Host" must be an object.')
    return lower_names(host)


def _cross_origin(content: Mapping[str, Any]) -> CrossOrigin:
    """Return which pages local.settings.json allows, as Core Tools reads it."""
    members = _local_host(content)
    origins = members.get("cors") or ""
    if not isinstance(origins, str):
        raise FolderError(f'{_SETTINGS_FILE}: "CORS" must be a text with origins, separated by commas.')
    credentials = members.get("corscredentials", False)
    try:
        return cross_origin(origins, credentials=credentials is True or str(credentials).lower() == "true")
    except ValueError as error:
        raise FolderError(f"{_SETTINGS_FILE}: {error}") from None


def cross_origin(text: str, *, credentials: bool = False) -> CrossOrigin:
    """Return which pages may call an app.

    Args:
        text: Origins, separated by commas, or ``*``.
        credentials: Whether pages may send cookies.

    Raises:
        ValueError: A part is not an origin, or all origins would get credentials.
    """
    origins = [origin.strip().rstrip("/") for origin in text.split(",") if origin.strip()]
    for origin in origins:
        if origin != "*" and not _ORIGIN.fullmatch(origin):
            raise ValueError(f"{origin!r} in CORS is not an origin. Write one such as https://app.example.com.")
    if credentials and "*" in origins:
        raise ValueError("CORS credentials can't be allowed for all origins. Write the origins in place of *.")
    return CrossOrigin(origins, credentials)


def _setting(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _runtime_of(path: Path, settings: Mapping[str, str]) -> str:
    runtime = settings.get("FUNCTIONS_WORKER_RUNTIME", "").lower()
    code_file = settings.get("PYTHON_SCRIPT_FILE_NAME", "function_app.py")
    if not runtime and is_file(path / code_file):
        runtime = "python"
    if runtime not in {"python", "node"}:
        language = language_of(path) or language_of_runtime(runtime)
        if language is not None:
            raise FolderError(refusal_for(path, language))
        if runtime:
            raise FolderError(
                f"FUNCTIONS_WORKER_RUNTIME is {runtime!r}. funcmcp host serves python and node. "
                "Another language needs --worker COMMAND."
            )
        if not (path / "package.json").is_file():
            raise FolderError(
                f"The language of {path} is unknown. "
                'Set FUNCTIONS_WORKER_RUNTIME to "python" or "node" in local.settings.json. '
                "Another language needs --worker COMMAND."
            )
        runtime = "node"
    if runtime == "python" and not is_file(path / code_file):
        advice = "Name the folder that has it."
        if any(path.glob("*/function.json")):
            advice = "Its function.json files are of an older programming model, which needs --worker COMMAND."
        raise FolderError(f"{path} has no {code_file}. {advice}")
    return runtime


def _host_options(content: dict[str, Any], environment: Mapping[str, str]) -> HostOptions:
    _check_objects(content)
    values = _flat(content)
    for name, text in environment.items():
        if name.lower().startswith(_OVERRIDE):
            values[name.lower()[len(_OVERRIDE) :].replace("__", ".")] = text
    _check_values(values)
    default = HostOptions()
    level = values.get("logging.loglevel.function", values.get("logging.loglevel.default", "information"))
    instructions = values.get("extensions.mcp.instructions")
    authorization = str(values.get("extensions.mcp.system.webhookauthorizationlevel", "system"))
    return HostOptions(
        name=str(values.get("extensions.mcp.servername") or default.name),
        version=str(values.get("extensions.mcp.serverversion", default.version)),
        instructions=None if instructions is None else str(instructions),
        anonymous=authorization.lower() == "anonymous",
        hub_name=str(values.get("extensions.durabletask.hubname", "")),
        route_prefix=str(values.get("extensions.http.routeprefix", prefix_in(content))).strip("/"),
        timeout=_seconds(values.get("functiontimeout")),
        log_level=_LEVELS[str(level).lower()],
    )


def _check_objects(content: dict[str, Any]) -> None:
    """Raise FolderError if a member of host.json that the functions host reads is not an object."""
    for path in _OBJECTS:
        value: Any = content
        for name in path:
            members = lower_names(value)
            value = members.get(name)
            if value is None:
                break
            if not isinstance(value, dict):
                raise FolderError(f"host.json: {'.'.join(path)} must be an object, not {json.dumps(value)}.")


def _check_values(values: dict[str, Any]) -> None:
    """Raise FolderError if a member of host.json has a value that the functions host refuses."""
    version = values.get("version", _VERSION)
    if version != _VERSION:
        raise FolderError(f'host.json: version is {json.dumps(version)}. Write "version": "{_VERSION}".')
    level = values.get("extensions.mcp.system.webhookauthorizationlevel", "system")
    if str(level).lower() not in _AUTHORIZATION_LEVELS:
        text = json.dumps(level)
        raise FolderError(f'host.json: webhookAuthorizationLevel is {text}. Valid levels: "System", "Anonymous".')
    for path, value in values.items():
        if path.startswith("logging.loglevel.") and str(value).lower() not in _LEVELS:
            valid = ", ".join(name.capitalize() for name in _LEVELS)
            raise FolderError(f"host.json: {path} is {json.dumps(value)}. Valid levels: {valid}.")


def _flat(content: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the members of an object and of the objects in it, by path in lower case."""
    values: dict[str, Any] = {}
    for name, value in content.items():
        path = f"{prefix}{name.lower()}"
        if isinstance(value, dict):
            values.update(_flat(value, f"{path}."))
        elif value is not None:
            values[path] = value
    return values


def _seconds(value: object) -> float | None:
    if value is None:
        return _DEFAULT_TIMEOUT
    text = str(value)
    if text == "-1":
        return None
    seconds = duration_in(text)
    if seconds is None:
        raise FolderError(f'host.json: functionTimeout is {text!r}. Write it as "00:05:00", or -1 for no limit.')
    return seconds or None


def duration_in(text: str) -> float | None:
    """Return the seconds of a duration such as "00:05:00"; None if the text is not one."""
    match = _DURATION.fullmatch(text)
    limits = (None, 24, 60, 60)
    parts = [int(part or 0) for part in match.groups()] if match else []
    if not parts or any(limit is not None and part >= limit for part, limit in zip(parts, limits, strict=True)):
        return None
    days, hours, minutes, seconds = parts
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
