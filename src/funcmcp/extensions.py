"""Extensions of the protocol: what a server has beside the methods and capabilities of MCP.

See guides/extensions.md.

Example:
    ```python
    search = Extension("com.example/search", settings={"languages": ["en"]})
    mcp = MCPServer("Shop", extensions=[search])
    ```
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._objects.public_names import lazy_names

if TYPE_CHECKING:
    from funcmcp._authoring.features.extensions import Extension

__all__ = ["Extension"]

_HOMES = {"_authoring.features.extensions": ["Extension"]}

if not TYPE_CHECKING:  # a type checker reports a name that the module does not have
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
