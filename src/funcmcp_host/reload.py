"""Reloading an app when its files change."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from funcmcp._server.log import quote
from funcmcp_host.folder import FolderError
from funcmcp_host.workers.worker import LoadFailed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_log = logging.getLogger("funcmcp.host")

_CODE = {".py", ".js", ".cjs", ".mjs", ".dll", ".jar", ".ps1", ".psm1"}
_FILES = {"function.json", "host.json", "local.settings.json", "package.json", "requirements.txt"}
_OTHER_FOLDERS = {".funcmcp", ".git", ".python_packages", ".venv", "__pycache__", "env", "node_modules", "venv"}


def is_part_of_app(folder: Path, path: str) -> bool:
    """Return whether a file is code or configuration of an app; data that the app writes is neither."""
    file = Path(path)
    if not file.is_relative_to(folder) or _OTHER_FOLDERS.intersection(file.relative_to(folder).parts):
        return False
    return file.suffix in _CODE or file.name in _FILES


async def reload_on_change(folder: Path, reload: Callable[[], Awaitable[None]]) -> None:
    """Call a function after each change of an app's files, until cancelled.

    Args:
        folder: The app's folder.
        reload: Loads the app again. While it raises LoadFailed or FolderError, the old app stays, and the reason is
            logged once.
    """
    import watchfiles  # noqa: PLC0415 - only for people who write code right now

    reason = ""
    watched = watchfiles.awatch(folder, watch_filter=lambda _, path: is_part_of_app(folder, path), step=100)
    async for changes in watched:
        _log.info("Reloading because %s changed.", ", ".join(sorted({_shown(folder, path) for _, path in changes})[:3]))
        try:
            await reload()
        except (LoadFailed, FolderError) as error:
            if str(error) != reason:
                reason = str(error)
                _log.error("The changed app can't be loaded. The previous one keeps running. %s", reason)
        else:
            reason = ""
            _log.info("The app was loaded again.")


def _shown(folder: Path, path: str) -> str:
    """Return the path of a file below the app's folder, as a text of one line."""
    return quote(Path(path).relative_to(folder))
