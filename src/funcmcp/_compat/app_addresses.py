"""The names under which the pages of an app call its tools, whatever a server, a mount or a transform names them.

The name ``__<hash>_<tool>`` has a hash of the names of the app and the tool, which is also in
``_meta.fastmcp.tool_hash``.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

HASH_LENGTH: int = 12
"""The length of a hash in hexadecimal digits."""

TOOL_HASH_META_KEY: str = "tool_hash"
"""The member of ``_meta.fastmcp`` with the hash."""

_NAME = re.compile(r"__([0-9a-f]{12})_(.+)", re.DOTALL)
_PAGE = re.compile(r"ui://prefab/tool/([0-9a-f]{12})/renderer\.html")


def hash_tool(app_name: str, tool_name: str) -> str:
    """Return the hash of a tool of an app, which is the same in each process."""
    return hashlib.sha256(f"{app_name}\0{tool_name}".encode()).hexdigest()[:HASH_LENGTH]


def hashed_backend_name(app_name: str, tool_name: str) -> str:
    """Return the name under which the pages of an app call a tool."""
    return f"__{hash_tool(app_name, tool_name)}_{tool_name}"


def parse_hashed_backend_name(name: str) -> tuple[str, str] | None:
    """Return the hash and the name of the tool in a name that pages call; None for other names."""
    match = _NAME.fullmatch(name)
    return None if match is None else (match[1], match[2])


def hashed_resource_uri(app_name: str, tool_name: str) -> str:
    """Return the URI of the page that Prefab renders for a tool."""
    return f"ui://prefab/tool/{hash_tool(app_name, tool_name)}/renderer.html"


def parse_hashed_resource_uri(uri: str) -> str | None:
    """Return the hash in the URI of a page that Prefab renders; None for other URIs."""
    match = _PAGE.fullmatch(uri)
    return None if match is None else match[1]


def tool_identity(tool: Any) -> str | None:
    """Return the hash of a tool; None if it does not belong to an app."""
    of_fastmcp = (tool.meta or {}).get("fastmcp")
    identity = of_fastmcp.get(TOOL_HASH_META_KEY) if isinstance(of_fastmcp, dict) else None
    return identity if isinstance(identity, str) else None


def is_app_tool_with_identity(tool: Any, tool_hash: str) -> bool:
    """Return whether a tool has a hash, and pages may call it."""
    ui = (tool.meta or {}).get("ui")
    visibility = ui.get("visibility", ()) if isinstance(ui, dict) else ()
    return tool_identity(tool) == tool_hash and "app" in visibility
