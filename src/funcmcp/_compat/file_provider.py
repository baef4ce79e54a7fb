"""FastMCP's `FileSystemProvider`: the components of the Python files in a folder."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from funcmcp._compat.file_discovery import discovered
from funcmcp._compat.local_provider import LocalProvider
from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_logger = logging.getLogger("funcmcp.compat")


@public("funcmcp.compat")
class FileSystemProvider(LocalProvider):
    """The components of the Python files in a folder and the folders below: objects, and functions with `tool` etc.

    Args:
        root: The folder, or one file. The code in it runs in this process, so only the author may write there.
        reload: Whether all files are imported again for each request. Otherwise they are imported once, at once.
    """

    def __init__(self, root: str | Path = ".", reload: bool = False) -> None:  # noqa: FBT001, FBT002 - of FastMCP
        super().__init__(on_duplicate="replace")
        self._root = Path(root).resolve()
        self._reload = reload
        self._lock = asyncio.Lock()
        self._loads = 0
        self._failed: dict[Path, str] = {}
        self._warned: dict[Path, str] = {}
        self._load()

    def __repr__(self) -> str:
        return f"FileSystemProvider(root={self._root!r}, reload={self._reload})"

    @property
    def failed_files(self) -> Mapping[Path, str]:
        """The files that could not be imported or have a component that could not be registered, with the reasons."""
        return dict(self._failed)

    def _load(self) -> None:
        """Import all files, and keep their components in place of those before."""
        if not self._root.exists():
            _logger.warning("FileSystemProvider root does not exist: %s", self._root)
        discovery = discovered(self._root)
        self._components = {}
        self._failed = dict(discovery.failed_files)
        for path, component in discovery.components:
            try:
                self._registrar.register(component)
            except Exception as error:  # noqa: BLE001 - a component of an author may be anything
                self._failed[path] = f"{type(error).__name__}: {error}"
        for path, reason in self._failed.items():
            if self._warned.get(path) != reason:
                _logger.warning("Failed to load %s: %s", path, reason)
        self._warned = dict(self._failed)

    async def _reloaded(self) -> None:
        """Import all files again, if that is wanted. Requests at the same time share one import."""
        if not self._reload:
            return
        loads = self._loads
        async with self._lock:
            if self._loads == loads:
                await asyncio.shield(asyncio.to_thread(self._load))
                self._loads += 1

    async def _list_tools(self) -> Sequence[Any]:
        await self._reloaded()
        return await super()._list_tools()

    async def _list_resources(self) -> Sequence[Any]:
        await self._reloaded()
        return await super()._list_resources()

    async def _list_resource_templates(self) -> Sequence[Any]:
        await self._reloaded()
        return await super()._list_resource_templates()

    async def _list_prompts(self) -> Sequence[Any]:
        await self._reloaded()
        return await super()._list_prompts()
