"""Write the version of a release, and give its changes a section of the changelog: ``python -m scripts.release 0.2.0``.

``scripts/release.sh`` runs it, commits the changes and builds the distributions.
"""

from __future__ import annotations

import re
import sys
import tomllib
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from packaging.version import Version

ROOT = Path(__file__).parents[1]
VERSIONED = {
    Path("pyproject.toml"): ('version = "{}"\n', '=={}"'),
    Path("distributions/funcmcp/pyproject.toml"): ('version = "{}"\n', '=={}"'),
    Path("src/funcmcp/_version.py"): ('VERSION = "{}"\n',),
    Path("src/funcmcp/__init__.py"): ('__version__ = "{}"\n',),
    Path("src/funcmcp_cli/main.py"): ('_VERSION = "{}"\n',),
}
"""The files that contain the version, and the texts around it."""

CHANGELOG = Path("CHANGELOG.md")
SECTIONS = ("Upgrade", "Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
UNRELEASED = "## [Unreleased]\n"
_COMPARISON = re.compile(r"^\[Unreleased\]: (?P<url>\S+/compare/)(?P<last>\S+)\.\.\.main$", re.MULTILINE)
_VERSION = re.compile(r"\d+\.\d+\.\d+")
_LONG_LINE = 60


class ReleaseError(Exception):
    """The release can't be made; the message says what to do."""


def version_of(folder: Path = ROOT) -> str:
    """Return the version of a checkout.

    Raises:
        ReleaseError: The files that contain it don't agree.
    """
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = str(project["version"])
    wrong = [str(path) for path, texts in VERSIONED.items() if not _has(folder / path, texts, version)]
    if wrong:
        raise ReleaseError(f"pyproject.toml has version {version}. Write it in: {', '.join(wrong)}.")
    return version


def _has(path: Path, texts: tuple[str, ...], version: str) -> bool:
    content = path.read_text(encoding="utf-8")
    return all(text.format(version) in content for text in texts)


def set_version(version: str, folder: Path = ROOT) -> None:
    """Write a version into all files that contain it."""
    last = version_of(folder)
    for path, texts in VERSIONED.items():
        content = (folder / path).read_text(encoding="utf-8")
        for text in texts:
            content = content.replace(text.format(last), text.format(version))
        (folder / path).write_text(content, encoding="utf-8")


def problems_of(changelog: str) -> list[str]:
    """Return what is wrong with the unreleased changes: sections and entries that are repeated or not in order."""
    section = _unreleased(changelog)
    headings = re.findall(r"^### (.+)$", section, re.MULTILINE)
    problems = []
    if headings != [heading for heading in SECTIONS if heading in headings]:
        problems.append(f"The sections are {', '.join(headings)}. Write each once, in the order {', '.join(SECTIONS)}.")
    entries = [" ".join(entry.split()) for entry in re.split(r"^- |^###+ .+$", section, flags=re.MULTILINE)[1:]]
    texts = sorted(filter(None, entries))
    problems += [f"Write this entry once: {text}" for text, following in pairwise(texts) if text == following]
    problems += [f"End this entry with a full stop: {text}" for text in texts if not text.endswith(".")]
    lines = sorted(line for line in section.splitlines() if len(line) > _LONG_LINE)
    problems += [f"Two entries have this line: {line}" for line, following in pairwise(lines) if line == following]
    return problems


def entries_without_part(changelog: str) -> list[str]:
    """Return the unreleased entries above the first part of a section that has parts. Changes are added there."""
    entries: list[str] = []
    for section in re.split(r"^### ", _unreleased(changelog), flags=re.MULTILINE)[1:]:
        above, part, _ = section.partition("\n#### ")
        if part:
            entries += re.findall(r"^- (.+)$", above, re.MULTILINE)
    return entries


def released(changelog: str, version: str, date: str) -> str:
    """Return the changelog with the unreleased changes as the section of a version.

    Raises:
        ReleaseError: There are no changes, or they are not in order.
    """
    if not _unreleased(changelog).startswith("\n### Upgrade\n"):
        raise ReleaseError("Begin the unreleased changes with the section Upgrade: what users have to do.")
    problems = problems_of(changelog)
    problems += [f"Move this entry into a part of its section: {entry}" for entry in entries_without_part(changelog)]
    if problems:
        raise ReleaseError("\n".join(problems))
    changelog = changelog.replace(UNRELEASED, f"{UNRELEASED}\n## [{version}] - {date}\n", 1)
    return _COMPARISON.sub(
        rf"[Unreleased]: \g<url>v{version}...main\n[{version}]: \g<url>\g<last>...v{version}", changelog, count=1
    )


def _unreleased(changelog: str) -> str:
    return changelog.partition(UNRELEASED)[2].partition("\n## ")[0]


def prepare(version: str, folder: Path = ROOT) -> None:
    """Write the version and the section of the changelog, with the date of today.

    Raises:
        ReleaseError: The version is not a new one, or the changelog is not in order.
    """
    last = version_of(folder)
    if not _VERSION.fullmatch(version) or Version(version) <= Version(last):
        raise ReleaseError(f"{version} is not a version after {last}. Write one such as 1.2.3.")
    path = folder / CHANGELOG
    changelog = released(path.read_text(encoding="utf-8"), version, datetime.now(UTC).date().isoformat())
    set_version(version, folder)
    path.write_text(changelog, encoding="utf-8")


if __name__ == "__main__":
    try:
        prepare(sys.argv[1])
    except ReleaseError as error:
        sys.exit(str(error))
