"""Options of servers under test, by their names alone."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from funcmcp import HTTPOptions, ProtocolOptions, ServerInfo

_GROUPS: dict[str, Any] = {"http": HTTPOptions, "info": ServerInfo, "protocol": ProtocolOptions}


def grouped(**options: Any) -> dict[str, Any]:
    """Return options of `MCPServer`, with those of a dataclass, such as ``page_size``, inside of it."""
    for name, group in _GROUPS.items():
        members = {field.name: options.pop(field.name) for field in fields(group) if field.name in options}
        if members:
            options[name] = replace(options.get(name) or group(), **members)
    return options
