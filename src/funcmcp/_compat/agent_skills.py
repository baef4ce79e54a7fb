"""Providers of skills that clients list: the names of ``fastmcp.skills.provider``.

How it works: the files of a skill are resources of the provider. `funcmcp._compat.provider_features` asks the provider
for the entries of its skills, and makes features of those whose files the server serves as they are listed.
"""

from __future__ import annotations

import asyncio
import json
import logging
import mimetypes
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

from funcmcp._compat.components import Resource
from funcmcp._compat.content import ResourceContent, ResourceResult
from funcmcp._compat.context import context_variable
from funcmcp._compat.provider import Provider
from funcmcp._compat.skills import Skill, checked_path, entry_of, uri_of_file
from funcmcp._objects.public_names import public
from funcmcp._protocol.media_types import BINARY, media_type_of_name
from funcmcp._protocol.skills import MANIFEST, MAX_NAME, SCHEME

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

    from funcmcp._compat.skills import MCPSkill, SkillFile, SkillManifest

T = TypeVar("T")

_logger = logging.getLogger("funcmcp.compat")
_LIST = "_manifest"
"""The file with the list of a skill's files, for clients that do not know skills."""


class SkillFileResource(Resource):
    """A file of a skill, which the provider reads when a client does.

    Args:
        provider: The provider.
        skill_path: The path of the skill.
        file_path: The path of the file in the skill.
        file: Its digest and size.
        description: The description of the skill, for its SKILL.md.
    """

    def __init__(
        self, provider: SkillManifestProvider, skill_path: str, file_path: str, file: SkillFile, description: str | None
    ) -> None:
        media_type = media_type_of_name(file_path) or mimetypes.guess_type(file_path)[0] or BINARY
        uri = uri_of_file(skill_path, file_path)
        options = {"mime_type": media_type, "description": description}
        super().__init__(None, uri, f"{skill_path}/{file_path}", **options)
        self.provider = provider
        self.skill_path = skill_path
        self.file_path = file_path
        self.file = file

    async def read(self) -> ResourceResult:
        """Return the contents: a text if the media type is that of one, and else bytes."""
        contents: str | bytes = await self.provider.read_file(self)
        if self.mime_type.startswith("text/") and isinstance(contents, bytes):
            with suppress(UnicodeDecodeError):
                contents = contents.decode()
        return ResourceResult([ResourceContent(contents, self.mime_type)])


def _list_of_files(path: str, manifest: SkillManifest) -> Resource:
    """Return the resource with the list of a skill's files."""
    name = manifest.frontmatter.name
    files = [{"path": item, "size": file.size, "hash": file.digest} for item, file in manifest.files.items()]
    text = json.dumps({"skill": name, "files": files}, indent=2)
    options = {"description": f"File listing for {name}", "mime_type": "application/json"}
    return Resource(lambda: text, uri_of_file(path, _LIST), f"{path}/{_LIST}", **options)


@public("funcmcp.compat")
class SkillManifestProvider(Provider):
    """Serves skills whose files are read one by one, such as those of a database.

    A subclass overrides `load_manifests`, which is called once in each request, and `read_file`.
    """

    def required_extensions(self) -> Sequence[Any]:
        """Return the extension for skills."""
        from funcmcp._compat.extensions import SkillsExtension  # noqa: PLC0415 - of servers that have such providers

        return [SkillsExtension()]

    async def load_manifests(self) -> Mapping[str, SkillManifest]:
        """Return the skills without the contents of their files, by path."""
        raise NotImplementedError(f"{type(self).__name__} has no method load_manifests.")

    async def read_file(self, resource: SkillFileResource) -> bytes:
        """Return the contents of a file that a client reads."""
        raise NotImplementedError(f"{type(self).__name__} has no method read_file.")

    async def _manifests(self) -> Mapping[str, SkillManifest]:
        async def load() -> Mapping[str, SkillManifest]:
            manifests = {checked_path(path): manifest for path, manifest in (await self.load_manifests()).items()}
            _check_paths({path: manifest.frontmatter.name for path, manifest in manifests.items()})
            return manifests

        return await _once_in_request(self, "manifests", load)

    def _file(self, path: str, manifest: SkillManifest, file_path: str) -> Resource:
        description = manifest.frontmatter.description if file_path == MANIFEST else None
        return SkillFileResource(self, path, file_path, manifest.files[file_path], description)

    async def _list_resources(self) -> Sequence[Any]:
        resources: list[Any] = []
        for path, manifest in (await self._manifests()).items():
            resources += [self._file(path, manifest, file_path) for file_path in manifest.files]
            resources.append(_list_of_files(path, manifest))
        return resources

    async def _get_resource(self, uri: str, version: Any = None) -> Any:
        del version
        place = _place_in(uri, await self._manifests())
        if place is None:
            return None
        path, manifest, file_path = place
        if file_path == _LIST:
            return _list_of_files(path, manifest)
        return self._file(path, manifest, file_path) if file_path in manifest.files else None

    # The entries, under FastMCP's names

    def _owns_skill_resource(self, uri: str) -> bool:
        """Return whether a cache must not serve a resource, because its contents have to fit the entry."""
        return uri.startswith(SCHEME)

    async def _list_skill_entries(self, context: Any) -> Sequence[MCPSkill]:
        del context
        return [entry_of(path, manifest) for path, manifest in (await self._manifests()).items()]

    async def _get_skill_entry(self, uri: str, context: Any) -> MCPSkill | None:
        entries = await self._list_skill_entries(context)
        return next((entry for entry in entries if entry.uri == uri), None)


@public("funcmcp.compat")
class SkillCatalogProvider(SkillManifestProvider):
    """Serves skills. A subclass may override `load_skills`, which is called once in each request.

    Args:
        skills: The skills, or skills by path. The last part of a path is the name of the skill.

    Raises:
        TypeError: A value is not a `Skill`.
        ValueError: A path is not valid, or two skills have the same name.
    """

    def __init__(self, skills: Mapping[str, Skill] | Iterable[Skill] | None = None) -> None:
        super().__init__()
        self._static = _by_path(skills or ())

    async def load_skills(self) -> Mapping[str, Skill] | Iterable[Skill]:
        """Return the skills."""
        return self._static

    async def load_manifests(self) -> Mapping[str, SkillManifest]:
        """Return the skills without the contents of their files, by path."""
        return {path: skill.manifest for path, skill in (await self._catalog()).items()}

    async def read_file(self, resource: SkillFileResource) -> bytes:
        """Return the contents of a file."""
        return (await self._catalog())[resource.skill_path].files[resource.file_path]

    async def _catalog(self) -> dict[str, Skill]:
        async def load() -> dict[str, Skill]:
            return _by_path(await self.load_skills())

        return await _once_in_request(self, "catalog", load)

    def _owns_skill_resource(self, uri: str) -> bool:
        if type(self).load_skills is SkillCatalogProvider.load_skills:
            return _place_in(uri, self._static) is not None
        return uri.startswith(SCHEME)


class SkillsDirectoryProvider(SkillCatalogProvider):
    """Serves the skills in folders: each folder below with a SKILL.md, under its path.

    Args:
        roots: One or several folders. The first skill of a path counts. A folder that does not exist has no skills.
        reload: Whether the folders are read again in each request. A folder that is not valid any more is logged, and
            the skills remain as they were.

    Raises:
        ValueError: A skill is not valid. The text says how to mend each one.
    """

    def __init__(self, roots: str | Path | Sequence[str | Path], *, reload: bool = False) -> None:
        folders = [roots] if isinstance(roots, str | os.PathLike) else roots
        self._roots = [Path(folder).expanduser().absolute() for folder in folders]
        self._reload = reload
        super().__init__(self._read_folders())

    def __repr__(self) -> str:
        return f"SkillsDirectoryProvider(roots={self._roots!r}, reload={self._reload})"

    async def load_skills(self) -> Mapping[str, Skill]:
        """Return the skills by path."""
        if self._reload:
            try:
                self._static = await asyncio.to_thread(self._read_folders)
            except ValueError as error:
                _logger.error("The skills remain as they were: %s", error)  # noqa: TRY400 - the text says all
        return self._static

    def _owns_skill_resource(self, uri: str) -> bool:
        return uri.startswith(SCHEME) if self._reload else _place_in(uri, self._static) is not None

    def _read_folders(self) -> dict[str, Skill]:
        skills: dict[str, Skill] = {}
        problems: list[str] = []
        for root in self._roots:
            for path, folder in _skill_folders(root):
                if path in skills:
                    continue
                if any(path.startswith(f"{other}/") or other.startswith(f"{path}/") for other in skills):
                    _logger.warning("The skill %s is left out: it is inside of another one.", path)
                    continue
                try:
                    skill = Skill.from_directory(folder)
                    if skill.name != path.rpartition("/")[2]:
                        raise ValueError(f"folder name must match its {MANIFEST} name {skill.name!r}")
                    skills[path] = skill
                except (OSError, ValueError) as error:
                    problems.append(_advice(root / path, error))
        if problems:
            raise ValueError("\n".join([f"{len(problems)} skill folder(s) are not valid Agent Skills:", *problems]))
        return skills


def _advice(folder: Path, error: Exception) -> str:
    """Return what is wrong with the folder of a skill, and how to mend it."""
    reason = str(error).partition("\n")[0].rstrip(".") or type(error).__name__
    if isinstance(error, OSError) or any(word in reason for word in ("symlink", "non-regular", "at most")):
        return f"- {folder}: {reason}"
    name = re.sub(r"[^a-z0-9]+", "-", folder.name.lower()).strip("-")[:MAX_NAME] or "my-skill"
    rename = "" if name == folder.name else f"rename the folder to {name!r} and "
    return (
        f"- {folder}: {reason}. Fix: {rename}start {MANIFEST} with '---\\nname: {name}\\ndescription: <what it does "
        "and when to use it>\\n---'"
    )


def _skill_folders(root: Path, prefix: str = "") -> Iterator[tuple[str, Path]]:
    """Yield the folders of skills below a folder, with their paths. Hidden folders, and links to others, have none."""
    try:
        entries = sorted(root.iterdir()) if prefix or root.is_dir() else []
    except OSError as error:
        _logger.warning("The folder %s can't be read: %s", root, error)
        return
    for entry in entries:
        path = f"{prefix}{entry.name}"
        try:
            if entry.name.startswith(".") or not entry.is_dir():
                continue
            is_skill = (entry / MANIFEST).is_file()
        except OSError as error:
            _logger.warning("The folder %s can't be read: %s", entry, error)
            continue
        if is_skill:
            yield path, entry.resolve()
        elif not entry.is_symlink():
            yield from _skill_folders(entry, f"{path}/")


def _by_path(skills: Mapping[str, Skill] | Iterable[Skill]) -> dict[str, Skill]:
    """Return skills by path; raise TypeError or ValueError for those that can't be served together."""
    catalog: dict[str, Skill] = {}
    if isinstance(skills, Mapping):
        catalog = {checked_path(path): skill for path, skill in skills.items()}
    else:
        for skill in skills:
            if _checked_skill(skill).name in catalog:
                raise ValueError(f"Duplicate skill name: {skill.name!r}")
            catalog[skill.name] = skill
    _check_paths({path: _checked_skill(skill).name for path, skill in catalog.items()})
    return catalog


def _checked_skill(value: Any) -> Any:
    """Return a value that is a skill; that of an installed FastMCP counts as well, which its client returns."""
    if isinstance(value, Skill) or all(hasattr(value, name) for name in ("files", "manifest", "to_directory")):
        return value
    raise TypeError(f"Expected a Skill, got {type(value).__name__}")


def _check_paths(names: Mapping[str, str]) -> None:
    """Raise ValueError for a path that does not end with the name of its skill, or is inside of another one."""
    for path, name in names.items():
        if path.rpartition("/")[2] != name:
            raise ValueError(f"Skill path {path!r} must end with the skill's name {name!r}")
        parts = path.split("/")
        if any("/".join(parts[:depth]) in names for depth in range(1, len(parts))):
            raise ValueError(f"Skill path {path!r} is nested inside another skill")


def _place_in(uri: str, catalog: Mapping[str, T]) -> tuple[str, T, str] | None:
    """Return the path and the skill that have a file, and the path of the file; None if no skill has it."""
    if not uri.startswith(SCHEME):
        return None
    text = unquote(uri.removeprefix(SCHEME))
    for path, skill in catalog.items():
        if text.startswith(f"{path}/"):
            return path, skill, text.removeprefix(f"{path}/")
    return None


async def _once_in_request(provider: Provider, name: str, load: Callable[[], Awaitable[T]]) -> T:
    """Return what a function returns, which is called once in each request."""
    context = context_variable.get()
    if context is None:
        return await load()
    state = context._request_state  # noqa: SLF001 - a part of Context
    key = f"skills {name} of {id(provider)}"
    if key not in state:
        state[key] = asyncio.ensure_future(load())
    loaded: T = await asyncio.shield(state[key])
    return loaded
