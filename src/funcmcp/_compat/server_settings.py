"""Settings of a server: those that programs may change after its construction, and those of the environment."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from funcmcp._objects.mappings import only
from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DEFAULTS: dict[str, Any] = {
    "host": "127.0.0.1",
    "port": 8000,
    "log_level": "INFO",
    "debug": False,
    "mount_path": "/",
    "sse_path": "/sse",
    "message_path": "/messages/",
    "streamable_http_path": "/mcp",
    "json_response": False,
    "stateless_http": False,
    "transport_security": None,
    "transport": None,
    "http_allowed_hosts": [],
    "http_allowed_origins": [],
    "dependencies": [],
    "warn_on_duplicate_tools": True,
    "warn_on_duplicate_resources": True,
    "warn_on_duplicate_prompts": True,
}
_TRUE = {"1", "true", "yes", "on"}
_PREFIX = "FASTMCP_"
_OPTIONS: dict[str, Any] = {
    "include_tags": [],
    "exclude_tags": [],
    "mask_error_details": False,
    "strict_input_validation": False,
}
"""Settings of the environment that are options of the constructor, with a value of their type."""

PROCESS_VALUES: dict[str, Any] = {}
"""The settings of the process that a program has changed: those of `funcmcp.compat.fastmcp.settings`."""

_WITHOUT_MEANING = frozenset({"log_level", "debug", "message_path", "json_response", "dependencies"})
_AUTH = frozenset({"server_auth", "default_auth_provider"})
"""Settings of FastMCP 2.6 to 2.14 that select a sign-in."""


def options_of_environment() -> dict[str, Any]:
    """Return the options of a server that variables such as ``FASTMCP_INCLUDE_TAGS`` set.

    Raises:
        TypeError: A variable selects a sign-in, and is not read. The server must not start without the sign-in.
    """
    options: dict[str, Any] = {}
    for variable, name, text in _variables():
        if name in _AUTH:
            raise TypeError(
                f"{variable} selects a sign-in, and is not read here. Unset it, and pass the sign-in in the code: "
                "FastMCP(..., auth=GoogleProvider(...)) with a provider of funcmcp.compat, or an authenticator of "
                "funcmcp.auth. See docs/guides/from-fastmcp.md, Sign-in and tokens."
            )
        if name in _OPTIONS:
            options[name] = _converted(text, _OPTIONS[name])
    return options | only(PROCESS_VALUES, _OPTIONS)


def ignored_variables() -> list[str]:
    """Return the variables of the environment for FastMCP that change nothing here."""
    return [variable for variable, name, _ in _variables() if name not in _OPTIONS and name not in _READ_BY_SETTINGS]


def _variables() -> Iterator[tuple[str, str, str]]:
    """Yield each variable that is set for FastMCP, with the name of the setting and its value."""
    for variable, text in os.environ.items():
        if variable.startswith(_PREFIX) and text:
            yield variable, variable.removeprefix(_PREFIX).lower(), text


_READ_BY_SETTINGS = DEFAULTS.keys() - _WITHOUT_MEANING


@public("funcmcp.compat")
class Settings:
    """The settings of a server. Variables such as ``FASTMCP_PORT`` in the environment are their defaults.

    Args:
        options: The values that the constructor got.
    """

    host: str
    port: int
    log_level: str
    debug: bool
    mount_path: str
    sse_path: str
    message_path: str
    streamable_http_path: str
    json_response: bool
    stateless_http: bool
    transport_security: Any
    transport: str | None
    http_allowed_hosts: list[str]
    http_allowed_origins: list[str]

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        self.chosen: set[str] = set()
        for name, default in DEFAULTS.items():
            text = os.environ.get(f"FASTMCP_{name.upper()}")
            value = default if text is None else _converted(text, default)
            if name in PROCESS_VALUES:
                value = default if PROCESS_VALUES[name] is None else PROCESS_VALUES[name]
            if text is not None or name in PROCESS_VALUES:
                self.chosen.add(name)
            object.__setattr__(self, name, value)
        for name, value in (options or {}).items():
            if value is not None and name in DEFAULTS:
                setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "auth":
            # The SDK reads it when it serves. Here it would leave a server open that its author has protected.
            raise AttributeError("settings.auth can't be changed. Pass auth= and token_verifier= to the server.")
        if name in DEFAULTS:
            self.chosen.add(name)
        object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"funcmcp.compat has no setting {name!r}. Settings: {', '.join(DEFAULTS)}", name=name)


def _converted(text: str, default: Any) -> Any:
    """Return the value of an environment variable in the type of the default."""
    if isinstance(default, bool):
        return text.strip().lower() in _TRUE
    if isinstance(default, int):
        return int(text)
    if isinstance(default, list):
        if text.lstrip().startswith("["):
            return json.loads(text)
        return [part for part in map(str.strip, text.split(",")) if part]
    return text
