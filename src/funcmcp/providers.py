"""Features that are computed at run time: from a database, files, plugins, a document or another server.

See guides/providers.md.

Example:
    ```python
    class Reports(Provider):
        async def list(self, caller):
            return [self.tool_of(row) for row in await database.all_reports()]
    ```
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._objects.public_names import lazy_names

if TYPE_CHECKING:
    from funcmcp._providers.provider import Provider
    from funcmcp._providers.python_files import EntryPointsProvider, FileSystemProvider
    from funcmcp._providers.schema_tools import tool_from_schema
    from funcmcp._server.catalog.features import Prompt, Resource, ResourceTemplate, Skill, Tool

__all__ = [
    "EntryPointsProvider",
    "FileSystemProvider",
    "Prompt",
    "Provider",
    "Resource",
    "ResourceTemplate",
    "Skill",
    "Tool",
    "tool_from_schema",
]

_HOMES = {
    "_providers.python_files": ["EntryPointsProvider", "FileSystemProvider"],
    "_providers.provider": ["Provider"],
    "_providers.schema_tools": ["tool_from_schema"],
    "_server.catalog.features": ["Prompt", "Resource", "ResourceTemplate", "Skill", "Tool"],
}

if not TYPE_CHECKING:  # a type checker reports a name that the module does not have
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
