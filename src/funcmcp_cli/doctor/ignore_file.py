"""The files that an ignore file such as .funcignore excludes from a deployment.

Source: "gitignore - Pattern format", which Core Tools and azd apply to .funcignore.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import PurePosixPath
from typing import NamedTuple


class _Pattern(NamedTuple):
    """A line of an ignore file.

    Attributes:
        line: The line as it is written.
        segments: The parts of the path, with ``**`` for any number of them.
        excludes: Whether the line excludes files. A line that begins with ``!`` includes them again.
        only_folders: Whether the line is for folders alone, because it ends with a slash.
    """

    line: str
    segments: list[str]
    excludes: bool
    only_folders: bool


def excluding_line(text: str, path: str) -> str | None:
    """Return the line of an ignore file that excludes a file. Return None if the file is included.

    Args:
        text: The ignore file's text.
        path: The file, relative to the ignore file's folder, with slashes.
    """
    patterns = [_pattern(line.rstrip()) for line in text.splitlines() if line.strip() and not line.startswith("#")]
    file = PurePosixPath(path)
    folders = [parent for parent in reversed(file.parents) if parent.name]
    for place in (*folders, file):  # no pattern includes a file again whose folder is excluded
        line = None
        for pattern in patterns:
            if pattern.only_folders and place == file:
                continue
            if _matches(pattern.segments, list(place.parts)):
                line = pattern.line if pattern.excludes else None
        if line is not None:
            return line
    return None


def _pattern(line: str) -> _Pattern:
    excludes = not line.startswith("!")
    path = line.removeprefix("!").removeprefix("\\")
    only_folders = path.endswith("/")
    path = path.rstrip("/")
    if "/" in path:
        segments = path.removeprefix("/").split("/")
    else:
        segments = ["**", path]
    segments = [part for part, following in pairwise([*segments, ""]) if part != "**" or following != "**"]
    return _Pattern(line, segments, excludes, only_folders)


def _matches(segments: list[str], parts: list[str]) -> bool:
    """Return whether segments of a pattern match a complete path."""
    if not segments:
        return not parts
    if segments[0] == "**":
        if len(segments) == 1:
            return bool(parts)
        return any(_matches(segments[1:], parts[start:]) for start in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], segments[0]) and _matches(segments[1:], parts[1:])
