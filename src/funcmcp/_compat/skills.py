"""FastMCP's skills as values: `Skill`, its manifest, and its entry in ``skills/list``. Needs ``funcmcp[skills]``."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from importlib.resources import files as files_of_package
from pathlib import Path, PurePosixPath, PureWindowsPath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, RootModel, model_validator

from funcmcp._adapters.skill_frontmatter import frontmatter_of
from funcmcp._objects.public_names import public
from funcmcp._protocol.skills import MANIFEST, MAX_BYTES, MAX_FILES, SCHEME, digest_of, entry_error, frontmatter_error

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from typing import Self


def checked_path(path: object) -> str:
    """Return the path of a file in a skill, or of a skill in a catalog; raise ValueError if it is not one."""
    if not isinstance(path, str) or not path:
        raise ValueError("Skill file paths must be non-empty strings")
    if path.startswith("/") or PureWindowsPath(path).drive or "\\" in path or "\x00" in path:
        raise ValueError(f"Skill file path must be relative POSIX: {path!r}")
    if any(part in {"", ".", ".."} for part in path.split("/")):
        raise ValueError(f"Skill file path contains an invalid segment: {path!r}")
    return path


def uri_of_file(path: str, file: str) -> str:
    """Return the URI of a file of a skill.

    Args:
        path: The path of the skill.
        file: The path of the file in the skill.
    """
    return f"{SCHEME}{quote(path, safe='/')}/{quote(file, safe='/')}"


@public("funcmcp.compat")
class SkillFrontmatter(RootModel[dict[str, Any]]):
    """The frontmatter of a skill."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        error = frontmatter_error(self.root)
        if error is not None:
            raise ValueError(error)
        return self

    @property
    def name(self) -> str:
        """The name of the skill."""
        return str(self.root["name"])

    @property
    def description(self) -> str:
        """The description of the skill."""
        return str(self.root["description"])


class SkillResource(BaseModel):
    """A file in the entry of a skill.

    Attributes:
        uri: The URI.
        digest: ``sha256:`` and the digest in hex.
        size: The size in bytes.
    """

    uri: str
    digest: str = Field(pattern=r"^sha256:[0-9a-f]{64}$")
    size: int = Field(ge=0)


@public("funcmcp.compat")
class MCPSkill(BaseModel):
    """The entry of a skill in ``skills/list``.

    Attributes:
        uri: The URI of the SKILL.md.
        frontmatter: The frontmatter.
        resources: The files; ``"dynamic"`` if their contents change.
        meta: The ``_meta``.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(populate_by_name=True)

    uri: str
    frontmatter: SkillFrontmatter
    resources: list[SkillResource] | Literal["dynamic"]
    meta: dict[str, Any] | None = Field(default=None, alias="_meta")

    @model_validator(mode="after")
    def _check(self) -> Self:
        error = entry_error(self.model_dump(mode="json"))
        if error is not None:
            raise ValueError(error)
        return self


class SkillFile(BaseModel):
    """A file of a skill, without its contents.

    Attributes:
        digest: ``sha256:`` and the digest in hex.
        size: The size in bytes.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)

    digest: str = Field(pattern=r"^sha256:[0-9a-f]{64}$")
    size: int = Field(ge=0)


class SkillManifest(BaseModel):
    """A skill without the contents of its files.

    Attributes:
        frontmatter: The frontmatter.
        files: The files by path, also the SKILL.md.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)

    frontmatter: SkillFrontmatter
    files: dict[str, SkillFile]

    @model_validator(mode="after")
    def _check(self) -> Self:
        _check_files({path: file.size for path, file in self.files.items()})
        return self

    def to_mcp_skill(self, path: str | None = None) -> MCPSkill:
        """Return the entry of the skill.

        Args:
            path: The path of the skill; None for its name.
        """
        return entry_of(path or self.frontmatter.name, self)


def entry_of(path: str, manifest: SkillManifest) -> MCPSkill:
    """Return the entry of a skill with a manifest."""
    files = [
        SkillResource(uri=uri_of_file(path, name), digest=file.digest, size=file.size)
        for name, file in manifest.files.items()
    ]
    frontmatter = SkillFrontmatter(dict(manifest.frontmatter.root))
    return MCPSkill(uri=uri_of_file(path, MANIFEST), frontmatter=frontmatter, resources=files)


def _check_files(sizes: Mapping[str, int]) -> None:
    """Raise ValueError if files can't be those of a skill."""
    for path in sizes:
        checked_path(path)
    if MANIFEST not in sizes:
        raise ValueError(f"A skill must contain {MANIFEST}")
    if len(sizes) > MAX_FILES:
        raise ValueError(f"A skill may contain at most {MAX_FILES} files")
    if sum(sizes.values()) > MAX_BYTES:
        raise ValueError(f"A skill may contain at most {MAX_BYTES} bytes")
    for path in sizes:
        if any(str(folder) in sizes for folder in PurePosixPath(path).parents):
            raise ValueError(f"Skill file is also used as a directory: {path!r}")


@public("funcmcp.compat")
@dataclass(frozen=True, init=False, repr=False)
class Skill:
    """A skill: its SKILL.md and its other files, wherever they come from.

    Args:
        name: The name.
        description: What the skill is for.
        instructions: The text of the SKILL.md after the frontmatter.
        files: The other files by path.
        frontmatter: Other members of the frontmatter.

    Attributes:
        files: The files by path, also the SKILL.md.

    Raises:
        ValueError: The name, the frontmatter or a path is not valid, or the skill is too large.
    """

    files: Mapping[str, bytes]

    def __init__(
        self,
        *,
        name: str,
        description: str,
        instructions: str,
        files: Mapping[str, str | bytes] | None = None,
        frontmatter: Mapping[str, Any] | None = None,
    ) -> None:
        for member in ("name", "description"):
            if member in (frontmatter or {}):
                raise ValueError(f"Pass {member!r} as a Skill argument, not frontmatter")
        if MANIFEST in (files or {}):
            raise ValueError(f"Pass {MANIFEST} content as `instructions`")
        header = SkillFrontmatter({"name": name, "description": description, **(frontmatter or {})})
        lines = [f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in header.root.items()]
        self._set({MANIFEST: f"---\n{''.join(lines)}---\n{instructions}", **(files or {})})

    def _set(self, files: Mapping[str, str | bytes]) -> None:
        contents = {
            path: content.encode() if isinstance(content, str) else bytes(content) for path, content in files.items()
        }
        _check_files({path: len(content) for path, content in contents.items()})
        frontmatter_of(contents[MANIFEST])  # raises ValueError
        object.__setattr__(self, "files", MappingProxyType(dict(sorted(contents.items()))))

    def __hash__(self) -> int:
        return hash(tuple(self.files.items()))

    def __repr__(self) -> str:
        return f"Skill(name={self.name!r}, files={len(self.files)})"

    @classmethod
    def from_files(cls, files: Mapping[str, str | bytes]) -> Skill:
        """Return the skill of files by path, one of which is the SKILL.md; raise ValueError if it is not valid."""
        skill = object.__new__(cls)
        skill._set(files)
        return skill

    @classmethod
    def from_directory(cls, path: str | os.PathLike[str]) -> Skill:
        """Return the skill in a folder, which has the skill's name.

        Raises:
            ValueError: The skill is not valid, or the folder has a link or something else than files and folders.
            OSError: A file can't be read.
        """
        root = Path(path).absolute()
        places = _files_in(root)
        _check_size(places)
        skill = cls.from_files({place.relative_to(root).as_posix(): place.read_bytes() for place in places})
        _check_folder(root.name, skill)
        return skill

    @classmethod
    def from_package(cls, package: str, path: str) -> Skill:
        """Return the skill in a folder of an installed package; raise ValueError if there is none."""
        root = files_of_package(package).joinpath(*checked_path(path).split("/"))
        if not root.is_dir():
            raise ValueError(f"Skill package path is not a directory: {package}:{path}")
        contents: dict[str, str | bytes] = {}

        def visit(folder: Any, prefix: str) -> None:
            for entry in folder.iterdir():
                if entry.is_dir():
                    visit(entry, f"{prefix}{entry.name}/")
                elif entry.is_file():
                    contents[f"{prefix}{entry.name}"] = entry.read_bytes()

        visit(root, "")
        skill = cls.from_files(contents)
        _check_folder(root.name, skill)
        return skill

    def to_directory(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the files into a folder, which has the skill's name, and return the folder.

        Args:
            path: The folder.
            overwrite: Whether a folder that exists is replaced with all that is in it.

        Raises:
            FileExistsError: The folder exists, and *overwrite* is false.
            ValueError: The folder has another name, or is a link or a file.
        """
        root = Path(path)
        _check_folder(root.name, self)
        if root.is_symlink() or (root.exists() and not root.is_dir()):
            raise ValueError(f"Skill folder is not a directory: {root}")
        if root.exists() and not overwrite:
            raise FileExistsError(f"Skill directory already exists: {root}. Use overwrite=True to replace.")
        root.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{root.name}-", dir=root.parent) as staging:
            for name, content in self.files.items():
                target = Path(staging, "new", name)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
            if root.exists():
                shutil.move(root, Path(staging, "previous"))
            Path(staging, "new").rename(root)
        return root

    @property
    def frontmatter(self) -> SkillFrontmatter:
        """The frontmatter."""
        return SkillFrontmatter(frontmatter_of(self.files[MANIFEST]))

    @property
    def name(self) -> str:
        """The name."""
        return self.frontmatter.name

    @property
    def description(self) -> str:
        """The description."""
        return self.frontmatter.description

    @property
    def manifest(self) -> SkillManifest:
        """The skill without the contents of its files."""
        files = {name: SkillFile(digest=digest_of(data), size=len(data)) for name, data in self.files.items()}
        return SkillManifest(frontmatter=self.frontmatter, files=files)

    def to_mcp_skill(self, path: str | None = None) -> MCPSkill:
        """Return the entry of the skill, as `SkillManifest.to_mcp_skill` does."""
        return self.manifest.to_mcp_skill(path)


def _files_in(root: Path) -> list[Path]:
    """Return the files in a folder and below it; raise ValueError for a link, or for something else than a file."""
    if root.is_symlink() or not root.is_dir():
        raise ValueError("skill root must be a directory, not a symlink")
    places: list[Path] = []
    for place in sorted(root.rglob("*")):
        if place.is_symlink():
            raise ValueError(f"skill contains a symlink: {place.relative_to(root)}")
        if place.is_file():
            places.append(place)
        elif not place.is_dir():
            raise ValueError(f"skill contains a non-regular file: {place.relative_to(root)}")
    return places


def _check_size(places: list[Path]) -> None:
    """Raise ValueError if a skill with these files is too large, before they are read."""
    if len(places) > MAX_FILES or sum(place.stat().st_size for place in places) > MAX_BYTES:
        raise ValueError(f"A skill may contain at most {MAX_FILES} files and {MAX_BYTES} bytes")


def _check_folder(name: str, skill: Skill) -> None:
    if name != skill.name:
        raise ValueError(f"Skill folder {name!r} must match its SKILL.md name {skill.name!r}")
