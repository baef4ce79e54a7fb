"""`SkillsDirectoryProvider` of ``fastmcp.skills.provider``: skills with the extension for skills."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from funcmcp._compat.provider import Provider, feature_transforms
from funcmcp._providers.skills import SkillFolder, SkillsProvider

if TYPE_CHECKING:
    from collections.abc import Sequence


class SkillsDirectoryProvider(Provider):
    """The skills in folders, which clients list, and their files as resources, as ``mcp.add_skills`` serves them.

    Args:
        roots: One or several folders. One that does not exist has no skills.
        reload: Whether changes of the folders are served without a new start of the server.
    """

    def __init__(self, roots: str | Path | Sequence[str | Path], *, reload: bool = False) -> None:
        super().__init__()
        folders = [roots] if isinstance(roots, str | Path) else roots
        self._roots = [Path(folder).resolve() for folder in folders]
        self._reload = reload

    def __repr__(self) -> str:
        return f"SkillsDirectoryProvider(roots={self._roots!r}, reload={self._reload})"

    def add_to(self, server: Any, namespace: str | None, transforms: Sequence[Any]) -> None:
        """Serve the skills with a server.

        Raises:
            RegistrationError: A skill is not valid.
        """
        for root in self._roots:
            if root.is_dir():
                folder = SkillFolder(root, {"reload": self._reload}, server.services)
                folder.features()  # raises for a skill that is not valid
                provider = SkillsProvider(folder)
                if not self._reload:
                    provider.refresh = None
                server.add_native_provider(provider, namespace, [*feature_transforms(self), *transforms])
