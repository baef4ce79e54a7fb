"""Skills: folders with instructions for a model, and with the files that these name.

Source: extension `io.modelcontextprotocol/skills` (SEP-2640), ext-skills `specification/stable/skills.mdx`; Agent
Skills (agentskills.io/specification), for names and frontmatter.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEME = "skill://"
MANIFEST = "SKILL.md"
"""The file of a skill with its frontmatter and its instructions."""

MANIFEST_TYPE = "text/markdown"
FOLDER_TYPE = "inode/directory"
META_PREFIX = "io.modelcontextprotocol.skills/"
"""What the names of frontmatter begin with in the `_meta` of the resource of a skill."""

DYNAMIC = "dynamic"
"""What stands for the files of a skill whose contents have no stable digests."""

MAX_FILES = 512
MAX_BYTES = 16 * 1024 * 1024
MAX_NAME = 64
MAX_DESCRIPTION = 1024
MAX_COMPATIBILITY = 500
MAX_FRONTMATTER_BYTES = 64 * 1024

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_FRONTMATTER = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?\n)?---[ \t]*(?:\r?\n|\Z)", re.DOTALL)


def digest_of(data: bytes) -> str:
    """Return the digest of a file as skills have it."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def is_name(name: object) -> bool:
    """Return whether a value is a valid name of a skill."""
    if not isinstance(name, str) or len(name) > MAX_NAME or "--" in name:
        return False
    return _NAME.fullmatch(name) is not None


def frontmatter_in(text: str) -> str | None:
    """Return the YAML between the lines ``---`` at the beginning of a SKILL.md; None if there is none."""
    match = _FRONTMATTER.match(text)
    return None if match is None else match[1] or ""


def frontmatter_error(frontmatter: object) -> str | None:
    """Return what is wrong with the frontmatter of a skill; None if it is valid."""
    if not isinstance(frontmatter, dict):
        return "its frontmatter is not a mapping with name and description"
    name, description = frontmatter.get("name"), frontmatter.get("description")
    if name is None:
        return "its frontmatter has no name"
    if not is_name(name):
        return f"its name must have 1 to {MAX_NAME} lower-case letters, digits and single hyphens; got {name!r:.80}"
    if not isinstance(description, str) or not description.strip():
        return "its frontmatter has no description"
    if len(description) > MAX_DESCRIPTION:
        return f"its description has more than {MAX_DESCRIPTION:,} characters"
    return _optional_member_error(frontmatter)


def _optional_member_error(frontmatter: dict[Any, Any]) -> str | None:
    """Return which optional member is wrong. FastMCP's client rejects a whole list for one of them."""
    if not isinstance(frontmatter.get("license", ""), str):
        return "its license is not a text"
    compatibility = frontmatter.get("compatibility", "any")
    if not isinstance(compatibility, str) or not 0 < len(compatibility) <= MAX_COMPATIBILITY:
        return f"its compatibility is not a text of 1 to {MAX_COMPATIBILITY} characters"
    if not isinstance(frontmatter.get("metadata", {}), dict):
        return "its metadata is not a mapping"
    tools = frontmatter.get("allowed-tools", "")
    if not isinstance(tools, str) and not (isinstance(tools, list) and all(isinstance(tool, str) for tool in tools)):
        return "its allowed-tools are neither a text nor a list of texts"
    return None


def folder_of(uri: str) -> str | None:
    """Return the URI of the folder of a skill, without a slash at its end; None if the URI names no SKILL.md."""
    folder, slash, name = uri.rpartition("/")
    return folder if slash and name == MANIFEST and "://" in folder else None


def entry_error(entry: Mapping[str, Any]) -> str | None:
    """Return why an entry of `skills/list` or `skills/get` must not be used; None if it is valid."""
    uri, frontmatter = entry.get("uri"), entry.get("frontmatter")
    folder = folder_of(uri) if isinstance(uri, str) else None
    if folder is None:
        return f"its URI does not end with /{MANIFEST}"
    if not isinstance(frontmatter, dict) or not isinstance(frontmatter.get("description"), str):
        return "it has no frontmatter with name and description"
    if not is_name(frontmatter.get("name")) or folder.rpartition("/")[2] != frontmatter["name"]:
        return "the name in its frontmatter is not that of its folder"
    resources = entry.get("resources")
    if resources == DYNAMIC:
        return None
    if not isinstance(resources, list):
        return f'its resources are neither an array nor "{DYNAMIC}"'
    return _files_error(resources, str(uri), folder)


def _files_error(resources: list[Any], uri: str, folder: str) -> str | None:
    """Return what is wrong with the files of an entry."""
    if len(resources) > MAX_FILES:
        return f"it has more than {MAX_FILES} files"
    uris: set[str] = set()
    total = 0
    for file in resources:
        if not isinstance(file, dict) or not is_in_folder(file.get("uri"), folder):
            return "one of its files is not in its folder"
        size = file.get("size")
        if type(size) is not int or size < 0 or not _is_digest(file.get("digest")):
            return "one of its files has no size or no digest"
        if file["uri"] in uris:
            return "one of its files is there twice"
        uris.add(file["uri"])
        total += size
    if total > MAX_BYTES:
        return f"its files have more than {MAX_BYTES:,} bytes"
    return None if uri in uris else f"its {MANIFEST} is not among its files"


def is_in_folder(uri: object, folder: str) -> bool:
    """Return whether a URI names a file in a folder or below it."""
    if not isinstance(uri, str) or not uri.startswith(f"{folder}/") or "?" in uri or "#" in uri:
        return False
    segments = unquote(uri.removeprefix(f"{folder}/")).replace("\\", "/").split("/")
    return not any(segment in {"", ".", ".."} for segment in segments)


def _is_digest(value: object) -> bool:
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None
