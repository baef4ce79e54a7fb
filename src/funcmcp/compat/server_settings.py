"""`Settings`: the options of a server that programs may change after its construction, as ``mcp.settings``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    "dependencies": [],
    "warn_on_duplicate_tools": True,
    "warn_on_duplicate_resources": True,
    "warn_on_duplicate_prompts": True,
}
_TRUE = {"1", "true", "yes", "on"}


class Settings:
    """The settings of a server. Variables such as ``FASTMCP_PORT`` in the environment are the defaults.

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

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        self.chosen: set[str] = set()
        for name, default in DEFAULTS.items():
            text = os.environ.get(f"FASTMCP_{name.upper()}")
            value = default if text is None else _converted(text, default)
            if text is not None:
                self.chosen.add(name)
            object.__setattr__(self, name, value)
        for name, value in (options or {}).items():
            if value is not None and name in DEFAULTS:
                setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in DEFAULTS:
            self.chosen.add(name)
        object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"funcmcp.compat has no setting {name!r}. Settings: {', '.join(DEFAULTS)}.", name=name)


def _converted(text: str, default: Any) -> Any:
    """Return the value of an environment variable in the type of the default."""
    if isinstance(default, bool):
        return text.strip().lower() in _TRUE
    if isinstance(default, int):
        return int(text)
    if isinstance(default, list):
        return [item for item in map(str.strip, text.split(",")) if item]
    return text
