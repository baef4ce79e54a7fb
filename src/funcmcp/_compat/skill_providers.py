"""FastMCP 3's providers of skills: the files of a skill's folder as resources, without the extension for skills.

``mcp.add_skills(folder)`` serves the extension as well, and checks the skills.
"""

from __future__ import annotations

import hashlib
import json
import logging
import mimetypes
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from funcmcp._adapters.strict_yaml import plain_value_of_yaml
from funcmcp._compat.components import Resource, ResourceTemplate
from funcmcp._compat.errors import ResourceNotFoundError
from funcmcp._compat.provider import AggregateProvider, Provider
from funcmcp._objects.public_names import public
from funcmcp._protocol.media_types import media_type_of_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_logger = logging.getLogger("funcmcp.compat")
_DRIVE = re.compile(r"[A-Za-z]:")
"""The beginning of paths on other drives of Windows."""

_MANIFEST = "_manifest"
_MAX_DESCRIPTION = 200


class SkillPathError(ResourceNotFoundError, ValueError):
    """A path leads out of the folder of a skill."""


class SkillFiles(ResourceTemplate):
    """The files of a skill.

    Args:
        skill: The skill.
    """

    def __init__(self, skill: SkillInfo) -> None:
        def read(path: str) -> str | bytes:
            return skill.contents(path)

        options = {"description": f"Access files within {skill.name}", "mime_type": "application/octet-stream"}
        super().__init__(read, f"{skill.uri_prefix}{{path*}}", f"{skill.name}_files", **options)
        self._skill = skill

    async def create_resource(self, uri: str, params: dict[str, Any]) -> Resource:
        """Return the resource of a file; raise SkillPathError if it is not in the folder."""
        path = str(params.get("path", ""))
        self._skill.place_of(path)
        options = {"description": f"File from {self._skill.name} skill", "mime_type": _media_type(path)}
        return Resource(lambda: self._skill.contents(path), uri, f"{self._skill.name}/{path}", **options)


@dataclass(frozen=True)
class SkillFileInfo:
    """A file of a skill.

    Attributes:
        path: The path below the folder, with ``/``.
        size: The size in bytes.
        hash: ``sha256:`` and the digest in hex.
    """

    path: str
    size: int
    hash: str


@dataclass(frozen=True)
class SkillInfo:
    """A skill.

    Attributes:
        name: The name of its folder.
        description: The description in the frontmatter, or the first line of the text.
        path: The folder.
        main_file: The name of the main file.
        files: All files.
        frontmatter: The frontmatter.
    """

    name: str
    description: str
    path: Path
    main_file: str
    files: list[SkillFileInfo] = field(default_factory=list)
    frontmatter: dict[str, Any] = field(default_factory=dict)

    @property
    def uri_prefix(self) -> str:
        """The beginning of the URIs of its files."""
        return f"skill://{self.name}/"

    def manifest(self) -> str:
        """Return the list of files as JSON."""
        files = [{"path": file.path, "size": file.size, "hash": file.hash} for file in self.files]
        return json.dumps({"skill": self.name, "files": files}, indent=2)

    def place_of(self, path: str) -> Path:
        """Return where a file is; raise SkillPathError if it is not in the folder."""
        place = _inside(self.path, path)
        if place is None:
            raise SkillPathError(f"Invalid path: {path}")
        return place

    def contents(self, path: str) -> str | bytes:
        """Return what a file contains.

        Raises:
            ResourceNotFoundError: The file does not exist, or is not in the folder.
        """
        place = self.place_of(path)
        if not place.is_file():
            raise ResourceNotFoundError(f"File not found: {path}")
        data = place.read_bytes()
        if path == self.main_file or _media_type(path).startswith("text/"):
            return data.decode("utf-8")
        return data


@public("funcmcp.compat")
class SkillProvider(Provider):
    """The files of one skill as resources: its main file, a list of its files, and the others.

    Args:
        skill_path: The folder.
        main_file_name: The name of the main file.
        supporting_files: ``"template"`` serves the other files by a template; ``"resources"`` lists each of them.

    Raises:
        FileNotFoundError: The folder or its main file does not exist, or is a link that leads out of the folder.
    """

    def __init__(
        self, skill_path: str | Path, main_file_name: str = "SKILL.md", supporting_files: str = "template"
    ) -> None:
        super().__init__()
        self._skill_path = Path(skill_path).resolve()
        self._supporting_files = supporting_files
        self.skill_info: SkillInfo = _skill_in(self._skill_path, main_file_name)

    def __repr__(self) -> str:
        return f"SkillProvider(skill_path={self._skill_path!r}, supporting_files={self._supporting_files!r})"

    async def _list_resources(self) -> Sequence[Any]:
        skill = self.skill_info
        resources = [self._main_file(), self._manifest()]
        if self._supporting_files == "resources":
            resources += [self._file(file.path) for file in skill.files if file.path != skill.main_file]
        return resources

    async def _get_resource(self, uri: str, version: Any = None) -> Any:
        del version
        path = unquote(uri.removeprefix(self.skill_info.uri_prefix))
        if not uri.startswith(self.skill_info.uri_prefix):
            return None
        if path == _MANIFEST:
            return self._manifest()
        if path == self.skill_info.main_file:
            return self._main_file()
        is_listed = self._supporting_files == "resources"
        return self._file(path) if is_listed and any(file.path == path for file in self.skill_info.files) else None

    async def _list_resource_templates(self) -> Sequence[Any]:
        return [SkillFiles(self.skill_info)] if self._supporting_files == "template" else []

    def _main_file(self) -> Resource:
        skill = self.skill_info
        options = {"description": skill.description, "mime_type": "text/markdown"}
        return self._resource(skill.main_file, lambda: skill.contents(skill.main_file), **options)

    def _manifest(self) -> Resource:
        skill = self.skill_info
        options = {"description": f"File listing for {skill.name}", "mime_type": "application/json"}
        return self._resource(_MANIFEST, skill.manifest, **options)

    def _file(self, path: str) -> Resource:
        skill = self.skill_info
        options = {"description": f"File from {skill.name} skill", "mime_type": _media_type(path)}
        return self._resource(path, lambda: skill.contents(path), **options)

    def _resource(self, path: str, read: Callable[[], str | bytes], **options: Any) -> Resource:
        skill = self.skill_info
        meta = {"fastmcp": {"skill": {"name": skill.name, "is_manifest": path == _MANIFEST}}}
        uri = f"{skill.uri_prefix}{quote(path, safe='/')}"
        return Resource(read, uri, f"{skill.name}/{path}", meta=meta, **options)


@public("funcmcp.compat")
class SkillsDirectoryProvider(AggregateProvider):
    """The files of all skills in folders as resources. Each folder below with a main file is a skill.

    Args:
        roots: One or several folders. The first skill of a name counts.
        reload: Whether the folders are looked through for each request.
        main_file_name: The name of the main file of a skill.
        supporting_files: As for `SkillProvider`.
    """

    def __init__(
        self,
        roots: str | Path | Sequence[str | Path],
        reload: bool = False,  # noqa: FBT001, FBT002 - of FastMCP
        main_file_name: str = "SKILL.md",
        supporting_files: str = "template",
    ) -> None:
        super().__init__()
        folders = [roots] if isinstance(roots, str | Path) else roots
        self._roots = [Path(folder).resolve() for folder in folders]
        self._reload = reload
        self._main_file_name = main_file_name
        self._supporting_files = supporting_files
        self._discover_skills()

    def __repr__(self) -> str:
        roots = self._roots[0] if len(self._roots) == 1 else self._roots
        return f"SkillsDirectoryProvider(roots={roots!r}, reload={self._reload}, skills={len(self.providers)})"

    def _discover_skills(self) -> None:
        """Look through the folders, and keep a provider for each skill."""
        providers: dict[str, Provider] = {}
        for folder in self._skill_folders():
            if folder.name in providers:
                continue
            try:
                providers[folder.name] = SkillProvider(folder, self._main_file_name, self._supporting_files)
            except (OSError, UnicodeDecodeError):
                _logger.exception("Failed to load skill: %s", folder.name)
        self.providers: list[Provider] = list(providers.values())

    def _skill_folders(self) -> Iterator[Path]:
        for root in self._roots:
            for path in root.iterdir() if root.exists() else ():
                try:
                    folder = path.resolve(strict=True)
                except (OSError, RuntimeError):
                    _logger.warning("Skipping skill directory that cannot be used: %s", path.name)
                    continue
                if folder.is_dir() and (folder / self._main_file_name).exists():
                    yield folder

    async def _asked(self, method: str, *arguments: Any) -> list[Any]:
        if self._reload and "resource" in method:
            self._discover_skills()
        return await super()._asked(method, *arguments)


class _HomeSkillsProvider(SkillsDirectoryProvider):
    """The skills of a program of the user.

    Args:
        reload: As for `SkillsDirectoryProvider`.
        supporting_files: As for `SkillProvider`.
    """

    system_folders: Sequence[str] = ()
    home_folder: str

    def __init__(self, reload: bool = False, supporting_files: str = "template") -> None:  # noqa: FBT001, FBT002 - of FastMCP
        roots = [*map(Path, self.system_folders), Path.home() / self.home_folder]
        super().__init__(roots, reload=reload, supporting_files=supporting_files)


@public("funcmcp.compat")
class ClaudeSkillsProvider(_HomeSkillsProvider):
    """The skills in ``~/.claude/skills``."""

    home_folder = ".claude/skills"


@public("funcmcp.compat")
class CursorSkillsProvider(_HomeSkillsProvider):
    """The skills in ``~/.cursor/skills``."""

    home_folder = ".cursor/skills"


@public("funcmcp.compat")
class VSCodeSkillsProvider(_HomeSkillsProvider):
    """The skills in ``~/.copilot/skills``."""

    home_folder = ".copilot/skills"


@public("funcmcp.compat")
class CodexSkillsProvider(_HomeSkillsProvider):
    """The skills in ``/etc/codex/skills`` and ``~/.codex/skills``."""

    system_folders: Sequence[str] = ("/etc/codex/skills",)
    home_folder = ".codex/skills"


@public("funcmcp.compat")
class GeminiSkillsProvider(_HomeSkillsProvider):
    """The skills in ``~/.gemini/skills``."""

    home_folder = ".gemini/skills"


@public("funcmcp.compat")
class GooseSkillsProvider(_HomeSkillsProvider):
    """The skills in ``~/.config/agents/skills``."""

    home_folder = ".config/agents/skills"


@public("funcmcp.compat")
class CopilotSkillsProvider(_HomeSkillsProvider):
    """The skills in ``~/.copilot/skills``."""

    home_folder = ".copilot/skills"


@public("funcmcp.compat")
class OpenCodeSkillsProvider(_HomeSkillsProvider):
    """The skills in ``~/.config/opencode/skills``."""

    home_folder = ".config/opencode/skills"


def _skill_in(folder: Path, main_file: str) -> SkillInfo:
    """Return the skill in a folder.

    Raises:
        FileNotFoundError: The folder or the main file does not exist, or is a link that leads out of the folder.
    """
    if not folder.exists():
        raise FileNotFoundError(f"Skill directory not found: {folder}")
    place = _inside(folder, main_file)
    if place is None or not place.exists():
        raise FileNotFoundError(f"Main skill file not found: {folder / main_file}. Expected {main_file} in {folder}")
    frontmatter, text = parse_frontmatter(place.read_text(encoding="utf-8"))
    description = frontmatter.get("description")
    if not isinstance(description, str) or not description:
        lines = (line.strip().lstrip("#").strip() for line in text.strip().split("\n"))
        description = next((line[:_MAX_DESCRIPTION] for line in lines if line), "")
    files = [_file_info(folder, path) for path in sorted(folder.rglob("*")) if path.is_file() and _stays(folder, path)]
    return SkillInfo(folder.name, description or f"Skill: {folder.name}", folder, main_file, files, frontmatter)


def _file_info(folder: Path, path: Path) -> SkillFileInfo:
    data = path.read_bytes()
    return SkillFileInfo(path.relative_to(folder).as_posix(), len(data), f"sha256:{hashlib.sha256(data).hexdigest()}")


def _stays(folder: Path, path: Path) -> bool:
    return path.resolve().is_relative_to(folder)


def _inside(folder: Path, path: str) -> Path | None:
    """Return a file below a folder, which is resolved; None if it is not there, also by a link."""
    if "\0" in path or _DRIVE.match(path):
        return None
    place = (folder / path).resolve()
    return place if place.is_relative_to(folder) else None


def _media_type(path: str) -> str:
    return media_type_of_name(path) or mimetypes.guess_type(path)[0] or "application/octet-stream"


def parse_frontmatter(content: str) -> tuple[dict[str, Any], str]:
    """Return the frontmatter of a Markdown text, with all scalars as text, and the text after it."""
    content = content.removeprefix("\ufeff")
    lines = content.split("\n")
    end = next((index for index, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), None)
    if not content.startswith("---") or end is None:
        return {}, content
    text, remaining = "\n".join(lines[1:end]), "\n".join(lines[end + 1 :])
    try:
        frontmatter = plain_value_of_yaml(text)
    except ValueError:
        return _lines_of(text), remaining
    return frontmatter if isinstance(frontmatter, dict) else {}, remaining


def _lines_of(text: str) -> dict[str, Any]:
    """Return the members of frontmatter that is not YAML: those on lines of their own."""
    members: dict[str, Any] = {}
    for line in text.strip().split("\n"):
        name, separator, value = line.partition(":")
        if separator:
            members[name.strip()] = value.strip().strip("\"'")
    return members
