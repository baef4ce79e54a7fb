"""Skills of a server: their entries, and files that are verified against these.

How it works: a `Skill` is an entry as the server sends it, with the connection that it came from, because the same URI
is another skill at another server. A file is read when the program asks for it, and never before. Its size, its digest
and, for SKILL.md, its frontmatter are compared with the entry. What differs is an error, and the program gets nothing
of it. Members of the frontmatter such as ``allowed-tools`` are data: nothing here acts on them.

Source: extension `io.modelcontextprotocol/skills`, ext-skills `specification/stable/skills.mdx`, "Integrity and
Verification".
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from funcmcp._client.errors import one_line
from funcmcp._objects.public_names import public
from funcmcp._protocol.errors import InvalidResponseError
from funcmcp._protocol.extensions import SKILLS, declared_settings
from funcmcp._protocol.objects import WireObject
from funcmcp._protocol.skills import DYNAMIC, MAX_BYTES, digest_of, entry_error, folder_of, is_in_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp._client.requests import Requests
    from funcmcp._protocol.objects import ReadResourceResult

_log = logging.getLogger("funcmcp")
_MAX_LINES = 10
"""Lines in the log about the entries of one list, because a server may send very many."""


@public("funcmcp.client")
class SkillError(InvalidResponseError):
    """A skill or one of its files is not what the server has listed. Get the skill again: it may have changed."""


@public("funcmcp.client")
class Skill(WireObject):
    """A skill in a list: its frontmatter, and the sizes and digests of its files.

    Everything in it comes from the server, and none of it is a permission. Show a person what is in it before a model
    follows its instructions.
    """

    _requests: Requests

    @property
    def uri(self) -> str:
        """The URI of the skill's SKILL.md. It identifies the skill at this server only."""
        return self._required("uri", str)

    @property
    def name(self) -> str:
        """The name in the frontmatter. Several skills may have the same name."""
        return str(self.frontmatter["name"])

    @property
    def description(self) -> str:
        """The description in the frontmatter."""
        return str(self.frontmatter["description"])

    @property
    def frontmatter(self) -> dict[str, Any]:
        """The frontmatter of the SKILL.md."""
        return self._required("frontmatter", dict)

    @property
    def is_dynamic(self) -> bool:
        """Whether the server makes the files up as they are read, so that nothing can be verified."""
        return bool(self["resources"] == DYNAMIC)

    @property
    def files(self) -> list[str]:
        """The paths of the files below the skill's folder; empty if they are not listed."""
        if self.is_dynamic:
            return []
        folder = f"{folder_of(self.uri)}/"
        return [file["uri"].removeprefix(folder) for file in self["resources"]]


@public("funcmcp.client")
class SkillFile(NamedTuple):
    """A file of a skill.

    Attributes:
        uri: The URI.
        data: The bytes.
        mime_type: The media type; None if the server sent none.
        is_verified: Whether size and digest are those of the entry; False for a file of a skill without digests.
    """

    uri: str
    data: bytes
    mime_type: str | None
    is_verified: bool

    @property
    def text(self) -> str:
        """The file as a text in UTF-8; raises UnicodeDecodeError for another file."""
        return self.data.decode()


def has_skills(capabilities: Mapping[str, Any]) -> bool:
    """Return whether a server declares skills."""
    return declared_settings(capabilities, SKILLS) is not None


def lists_folders(capabilities: Mapping[str, Any]) -> bool:
    """Return whether a server declares that it lists folders."""
    settings = declared_settings(capabilities, SKILLS)
    return settings is not None and settings.get("directoryRead") is True


def skill_of(entry: object, requests: Requests) -> Skill:
    """Return the skill of an entry; raise SkillError if it must not be used."""
    error = entry_error(entry) if isinstance(entry, dict) else "it is not an object"
    if error is not None or not isinstance(entry, dict):
        uri = entry.get("uri") if isinstance(entry, dict) else entry
        raise SkillError(f"The skill {one_line(uri)} can't be used: {error}.")
    skill = Skill(entry)
    skill._requests = requests  # noqa: SLF001 - see above
    return skill


def skills_of(entries: list[Any], requests: Requests) -> list[Skill]:
    """Return the skills of a list. One that must not be used is left out, which is logged for the first of them."""
    skills, left_out = [], 0
    for entry in entries:
        try:
            skills.append(skill_of(entry, requests))
        except SkillError as error:
            left_out += 1
            if left_out <= _MAX_LINES:
                _log.warning("%s", error)
    if left_out > _MAX_LINES:
        _log.warning("%d more skills can't be used.", left_out - _MAX_LINES)
    return skills


def uri_of_file(skill: Skill, file: str, requests: Requests) -> str:
    """Return the URI of a file of a skill.

    Args:
        skill: The skill.
        file: The file's path below the skill's folder, or its URI.
        requests: Those of the client that reads it.

    Raises:
        ValueError: The skill is one of another client.
        SkillError: The entry of the skill does not list the file.
    """
    if getattr(skill, "_requests", None) is not requests:
        raise ValueError("The skill belongs to another client. Get it from the client that reads it.")
    folder = str(folder_of(skill.uri))
    candidates = (file, f"{folder}/{file}", f"{folder}/{quote(file)}")
    for uri in candidates:
        if skill.is_dynamic and is_in_folder(uri, folder):
            return uri
        if _entry_of(skill, uri) is not None:
            return uri
    raise SkillError(f"The skill {one_line(skill.uri)} does not list the file {one_line(file)}.")


def verified_file(skill: Skill, uri: str, result: ReadResourceResult) -> SkillFile:
    """Return the file in a result; raise SkillError if it is not the one that the entry of its skill describes."""
    data, mime_type = _bytes_in(result, uri)
    entry = _entry_of(skill, uri)
    if entry is None and len(data) > MAX_BYTES:
        raise SkillError(f"{one_line(uri)} has {len(data):,} bytes, which is too much for a skill.")
    if entry is not None and len(data) != entry["size"]:
        raise SkillError(f"{one_line(uri)} has {len(data):,} bytes, and its skill lists {entry['size']:,}.")
    if entry is not None and digest_of(data) != entry["digest"]:
        raise SkillError(f"{one_line(uri)} has another digest than its skill lists.")
    if uri == skill.uri:
        _check_frontmatter(skill, data)
    return SkillFile(uri, data, mime_type, is_verified=entry is not None)


def _check_frontmatter(skill: Skill, data: bytes) -> None:
    from funcmcp._adapters.skill_frontmatter import fits  # noqa: PLC0415 - loads PyYAML

    try:
        is_equal = fits(data, skill.frontmatter)
    except ValueError as error:
        raise SkillError(f"{one_line(skill.uri)} can't be used: {one_line(error)}") from None
    if not is_equal:
        raise SkillError(f"The frontmatter of {one_line(skill.uri)} differs from the one that is listed.")


def _bytes_in(result: ReadResourceResult, uri: str) -> tuple[bytes, str | None]:
    """Return the bytes and the media type of the only contents in a result."""
    contents = result.contents
    if len(contents) != 1 or contents[0].uri != uri:
        raise SkillError(f"The server has answered {one_line(uri)} with something else than this file.")
    text = contents[0].text
    data = contents[0].data
    if (text is None) == (data is None):
        raise SkillError(f"The contents of {one_line(uri)} are neither a text nor bytes.")
    if text is None:
        return data or b"", contents[0].mime_type
    try:
        return text.encode(), contents[0].mime_type
    except UnicodeEncodeError:
        raise SkillError(f"The text of {one_line(uri)} is not valid Unicode.") from None


def _entry_of(skill: Skill, uri: str) -> dict[str, Any] | None:
    """Return what a skill says of a file; None if it does not list it."""
    if skill.is_dynamic:
        return None
    return next((file for file in skill["resources"] if file["uri"] == uri), None)
