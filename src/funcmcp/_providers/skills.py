"""Skills from folders: what `MCPServer.add_skills` registers.

How it works: a folder with a SKILL.md is a skill, and its files, with those of the folders below it, are resources. All
of them are read once, for their digests. Nothing of them is kept: a client that reads a file gets it as it is then, if
its bytes still fit the digest in the entry of the skill. Otherwise the file is not served, because a client would
reject it, or a model would follow instructions that nobody has approved.

With ``reload`` the folder is looked through again before a list is sent and before a file is read, at most once in a
second. A file whose time and size are those of the last time is not read again. A skill that is not valid any more
stays in the list as it was, while its author edits it, and the changes of all others are served.
"""

from __future__ import annotations

import asyncio
import logging
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from funcmcp._adapters.skill_frontmatter import ambiguous_names, frontmatter_of
from funcmcp._authoring.features.folder_resources import FileOptions, Folder, file_rules
from funcmcp._authoring.features.options import checked_options
from funcmcp._authoring.features.permissions import AccessOptions
from funcmcp._authoring.features.resources import make_resource
from funcmcp._authoring.results.content import Contents, contents_of_file
from funcmcp._objects.mappings import only, without, without_none
from funcmcp._protocol.errors import InvalidParams, ResourceNotFound
from funcmcp._protocol.media_types import BINARY, media_type_of_name
from funcmcp._protocol.skills import MANIFEST, MANIFEST_TYPE, MAX_BYTES, MAX_FILES, META_PREFIX, SCHEME, digest_of
from funcmcp._providers.provider import Provider
from funcmcp._providers.python_files import RELOAD_SECONDS
from funcmcp._server.catalog.features import Resource, Skill
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._server.log import logger
from funcmcp._server.log import quote as quoted

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from typing import TypeAlias

    from funcmcp._auth.principal import Principal
    from funcmcp._authoring.calling.services import Services
    from funcmcp._protocol.uri_template import Values
    from funcmcp._server.calls.context import RequestContext

    Stamps: TypeAlias = Mapping[PurePosixPath, tuple[int, int]]
    """Times and sizes of files."""

_SEGMENT = re.compile(r"[A-Za-z0-9._~-]+")
_META_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")


class SkillOptions(AccessOptions, total=False):
    """The options of skills.

    Attributes:
        prefix: Segments of the URIs before the names of the skills, such as ``"team"`` for
            ``skill://team/deploy/SKILL.md``.
        ignore: Patterns of files and folders that are left out, such as ``["drafts", "*.tmp"]``.
        hidden: Whether names that begin with a dot are served, too.
        tags: Words by which `MCPServer.enable` and `MCPServer.disable` find the skills.
        enabled: Whether clients see the skills. False hides them until `MCPServer.enable` shows them.
        skip_invalid: Whether a skill that is not valid is left out, which is logged. Otherwise it is an error.
        reload: Whether changes of the folder are served without a new start of the server.
    """

    prefix: str
    ignore: str | Sequence[str]
    hidden: bool
    tags: Collection[str]
    enabled: bool
    skip_invalid: bool
    reload: bool


_READER = f"{SCHEME}{{digest}}/{{path*}}"
"""The template of the function that reads all files. It is not registered: each file is a resource."""

_FILE_OPTIONS = ("ignore", "hidden")
_FEATURE_OPTIONS = frozenset({*AccessOptions.__annotations__, "tags", "enabled"})


class _File(NamedTuple):
    """A file that was read.

    Attributes:
        stamp: Its time and size before that.
        resource: The resource. Only that of a skill's SKILL.md is listed.
        entry: Its URI, digest and size.
        frontmatter: That of a SKILL.md; None for other files, and for one that is not valid.
        problem: What is wrong with the frontmatter; "" if nothing is.
    """

    stamp: tuple[int, int]
    resource: Resource
    entry: Mapping[str, Any]
    frontmatter: dict[str, Any] | None = None
    problem: str = ""


class SkillFolder:
    """The skills of a folder.

    Args:
        folder: A folder with a SKILL.md, or one with such folders in it or below it.
        options: The options.
        services: The server's services.

    Raises:
        RegistrationError: The folder does not exist, or an option is not valid.
    """

    def __init__(self, folder: str | os.PathLike[str], options: SkillOptions, services: Services) -> None:
        options = checked_options(options, SkillOptions)
        self.place = Path(folder).expanduser().absolute()
        if not self.place.is_dir():
            raise RegistrationError(f"{self.place} is not a folder. Pass a skill, or a folder of skills.")
        for name in ("reload", "skip_invalid"):
            if type(options.get(name, False)) is not bool:
                raise RegistrationError(f"{name} of add_skills must be True or False.")
        prefix = options.get("prefix", "")
        if prefix and not _is_path(prefix):
            raise RegistrationError(f"prefix of add_skills must be a path such as 'team/tools'; got {prefix!r:.80}.")
        is_skill = (self.place / MANIFEST).is_file()
        segments = [prefix] * bool(prefix) + [quote(self.place.name)] * is_skill
        file_options: FileOptions = only(options, _FILE_OPTIONS)  # type: ignore[assignment]  # names of FileOptions
        rules = file_rules({**file_options, "file_bytes": MAX_BYTES})
        self._folder = Folder(self.place, f"{SCHEME}{'/'.join(segments)}", rules)
        self._skips_invalid = options.get("skip_invalid", False)
        self._reloads = options.get("reload", False)
        shared: Any = {"name": "skills", **only(options, _FEATURE_OPTIONS)}
        self._reader = make_resource(self._read, uri=_READER, options=shared, services=services)
        self._files: dict[PurePosixPath, _File] = {}
        self._skills: dict[str, Skill] = {}
        self._was_read = False
        self._logged: set[str] = set()

    def features(self) -> list[Skill | Resource]:
        """Look through the folder, and return its skills and their files. Those without a change are the same objects.

        Raises:
            RegistrationError: A skill is not valid at the first time, or the folder has too many files.
            OSError: The folder can't be read.
        """
        stamps = {path: (status.st_mtime_ns, status.st_size) for path, status in self._folder.files()}
        if self._folder.is_cut:
            raise RegistrationError(f"{self.place} has too many files and folders. Use ignore= of add_skills.")
        problems: list[str] = []
        skills: dict[str, Skill] = {}
        remaining: dict[str, Skill] = {}
        files: dict[PurePosixPath, _File] = {}
        by_skill = _by_skill(stamps)
        for folder, members in by_skill.items():
            try:
                skill = self._skill_of(folder, members, files)
            except ValueError as error:
                problems.append(f"{self.place / folder}: {error}.")
                previous = self._skills.get(self._folder.uri(folder / MANIFEST))
                if previous is not None and not self._skips_invalid:
                    remaining[previous.uri] = previous
                continue
            skills[skill.uri] = skill
        self._report(problems)
        self._was_read = True
        self._files, self._skills = files, {**skills, **remaining}
        resources = {file.uri: file for skill in (*remaining.values(), *skills.values()) for file in skill.files}
        self._warn_of_missing_files(is_empty=not by_skill)
        return [*resources.values(), *self._skills.values()]

    def _report(self, problems: list[str]) -> None:
        """Raise RegistrationError for skills that are not valid, or log each of them once."""
        if problems and not self._skips_invalid and not self._was_read:
            raise RegistrationError("\n".join(["Not valid as skills; skip_invalid=True leaves them out:", *problems]))
        effect = "A skill is left out." if self._skips_invalid else "A skill remains as it was, or is left out."
        for problem in problems:
            self._log_once(logging.ERROR, f"{effect} {problem}")

    def _warn_of_missing_files(self, *, is_empty: bool) -> None:
        """Log the links that are left out, and a folder without skills."""
        for link in self._folder.links:
            place = self.place / link
            advice = " Pass the folder that has it to add_skills." if (place / MANIFEST).is_file() else ""
            self._log_once(
                logging.WARNING,
                f"{place} is a link to a folder, or leads out of the folder, and is left out.{advice}",
            )
        if is_empty:
            self._log_once(logging.WARNING, f"{self.place} has no skills: no {MANIFEST} is in it or below it.")

    def _log_once(self, level: int, text: str) -> None:
        if text not in self._logged:
            self._logged.add(text)
            logger.log(level, "%s", quoted(text, 600))

    def _skill_of(self, folder: PurePosixPath, stamps: Stamps, files: dict[PurePosixPath, _File]) -> Skill:
        """Return a skill, and add its files; raise ValueError if it is not valid."""
        _check_limits(len(stamps), sum(size for _, size in stamps.values()))
        members: list[_File] = []
        for path, stamp in stamps.items():
            file = files.get(path) or self._file_of(path, stamp)
            if file is not None:
                files[path] = file
                members.append(file)
        _check_limits(len(members), sum(file.entry["size"] for file in members))
        first = files.get(folder / MANIFEST)
        if first is None:
            raise ValueError(f"its {MANIFEST} has just been removed")
        if first.frontmatter is None:
            raise ValueError(first.problem)
        name = folder.name or self.place.name
        if first.frontmatter["name"] != name:
            raise ValueError(f"its name is {first.frontmatter['name']!r}, and its folder is {name!r:.80}. Rename one")
        resources = tuple(file.resource for file in members)
        uri = first.resource.uri
        previous = self._skills.get(uri)
        if previous is not None and previous.files == resources:
            return previous
        entry = {"uri": uri, "frontmatter": first.frontmatter, "resources": [file.entry for file in members]}
        shared = first.resource
        return Skill(uri, lambda: entry, resources, access=shared.access, tags=shared.tags, enabled=shared.enabled)

    def _file_of(self, path: PurePosixPath, stamp: tuple[int, int]) -> _File | None:
        """Return a file, which is read if it has changed; None if it has been removed.

        Raises:
            ValueError: The file can't be read.
        """
        known = self._files.get(path)
        if known is not None and known.stamp == stamp:
            return known
        try:
            data = self._folder.read_bytes(path)
        except (OSError, InvalidParams) as error:
            raise ValueError(f"{path.name} can't be read: {error}") from None
        if data is None:
            return None
        entry = {"uri": self._folder.uri(path), "digest": digest_of(data), "size": len(data)}
        if "\\" in path.name or ":" in path.name:
            self._log_once(
                logging.WARNING,
                f"{entry['uri']}: some clients reject the skill, because no file of Windows has this name. Rename it.",
            )
        if path.name != MANIFEST:
            return _File(stamp, self._resource_of(path, entry, {}), entry)
        try:
            frontmatter = frontmatter_of(data)
        except ValueError as error:
            return _File(stamp, self._resource_of(path, entry, {}), entry, problem=str(error))
        names = ambiguous_names(data)
        if names:
            self._log_once(
                logging.WARNING,
                f"{entry['uri']}: some clients read another value of {', '.join(names)}, and reject the skill. "
                "Put words such as no, and dates, in quotes.",
            )
        return _File(stamp, self._resource_of(path, entry, frontmatter), entry, frontmatter)

    def _resource_of(self, path: PurePosixPath, entry: Mapping[str, Any], frontmatter: dict[str, Any]) -> Resource:
        """Return the resource of a file; that of a skill's SKILL.md has what the frontmatter says."""
        name = frontmatter.get("name", path.name)
        members = {
            "uri": entry["uri"],
            "name": name,
            "title": name,
            "description": frontmatter.get("description"),
            "mimeType": _media_type_of(path) or BINARY,
            "size": entry["size"],
            "_meta": _meta_of(frontmatter) or None,
        }
        definition = without_none(members)
        values = {"digest": entry["digest"], "path": list(path.parts)}
        shared = self._reader

        async def read(context: RequestContext, uri: str, _values: Values) -> Any:
            return await shared.handler(context, uri, values)

        return Resource(
            entry["uri"],
            lambda: definition,
            read,
            access=shared.access,
            tags=shared.tags,
            enabled=shared.enabled,
            is_listed=bool(frontmatter),
        )

    def _read(self, digest: str, path: str) -> Contents:
        """Return a file, if its bytes still fit the digest."""
        relative = PurePosixPath(path)
        try:
            data = self._folder.read_bytes(relative)
        except InvalidParams:  # it is larger than any file of a skill
            data = None
        if data is None or digest_of(data) != digest:
            uri = self._folder.uri(relative)
            if not self._reloads:  # otherwise the file is read again within a second
                self._log_once(
                    logging.WARNING,
                    f"{uri} has changed since the server has read it, and is not served. Use reload=True, or restart.",
                )
            raise ResourceNotFound(uri, "The file has changed since its skill was listed.")
        return contents_of_file(data, _media_type_of(relative))


def _media_type_of(path: PurePosixPath) -> str | None:
    return MANIFEST_TYPE if path.name == MANIFEST else media_type_of_name(path.name)


def _meta_of(frontmatter: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `_meta` of a SKILL.md: members of the frontmatter that have none of their own in a resource."""
    meta = without(frontmatter, "name", "description")
    return {META_PREFIX + name: value for name, value in meta.items() if _META_NAME.fullmatch(name)}


def _is_path(prefix: object) -> bool:
    """Return whether a prefix has segments that a URI can have as they are."""
    if not isinstance(prefix, str):
        return False
    return all(_SEGMENT.fullmatch(segment) and segment not in {".", ".."} for segment in prefix.split("/"))


def _by_skill(stamps: Stamps) -> dict[PurePosixPath, Stamps]:
    """Return the files of each skill, by its folder. The files of a skill in another one belong to both."""
    skills: dict[PurePosixPath, dict[PurePosixPath, tuple[int, int]]] = {
        path.parent: {} for path in stamps if path.name == MANIFEST
    }
    for path, stamp in stamps.items():
        for folder in path.parents:
            if folder in skills:
                skills[folder][path] = stamp
    return {**skills}


def _check_limits(count: int, size: int) -> None:
    """Raise ValueError for a skill that is too large for clients."""
    if count > MAX_FILES:
        raise ValueError(f"it has {count:,} files, and a skill has {MAX_FILES} at most")
    if size > MAX_BYTES:
        raise ValueError(f"its files have {size:,} bytes, and those of a skill have {MAX_BYTES:,} at most")


class SkillsProvider(Provider):
    """The skills of a folder whose changes are served.

    Args:
        folder: The folder.
    """

    refresh: float | None = RELOAD_SECONDS
    is_quick = True
    components = frozenset({"resource", "skill"})

    def __init__(self, folder: SkillFolder) -> None:
        self._folder = folder

    async def list(self, caller: Principal | None) -> Iterable[Any]:
        """Return the skills and their files."""
        del caller
        return await asyncio.to_thread(self._folder.features)
