"""Pinned definitions: what an upstream offered when somebody last reviewed it.

How it works: ``funcmcp pin`` writes a file with each definition and its hash, SHA-256 over its canonical JSON (RFC
8785) with all members. `Upstream(pinned=...)` compares the definitions of each list with the hashes. A definition that
has changed, or is new, is hidden until the file is written again; each is one line in the log. The definitions are in
the file for reviews and for the comparison of ``funcmcp pin --check``. They must match their hashes, so a file that was
edited by hand is refused.

The file is ASCII: characters that a reader would not see are escapes. Its members and definitions are sorted.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._state.line_limit import LineOfEach
from funcmcp._text.canonical_json import canonical
from funcmcp._text.visible import visible_line
from funcmcp._upstreams.definitions import KINDS, UpstreamLists

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from funcmcp._upstreams.definitions import Kind, ListWork
    from funcmcp._upstreams.features import ServerFacts

VERSION = 1
"""The version of the file's format."""

_INSTRUCTIONS = "instructions"


class Change(NamedTuple):
    """A difference between pinned definitions and those that an upstream has.

    Attributes:
        subject: What differs, such as "tool search" or "instructions".
        pinned: The pinned definition; None if it is new.
        current: The definition that the upstream has; None if it was removed.
    """

    subject: str
    pinned: Any
    current: Any

    @property
    def word(self) -> str:
        """What has happened: "new", "removed" or "changed"."""
        if self.pinned is None:
            return "new"
        return "removed" if self.current is None else "changed"


def hash_of(definition: Any) -> str:
    """Return the hash of a definition, or of instructions, as in the file."""
    return "sha256:" + hashlib.sha256(canonical(definition)).hexdigest()


def pin_file(target: str, facts: ServerFacts, lists: UpstreamLists) -> dict[str, Any]:
    """Return the content of the file for what an upstream has.

    Args:
        target: The target of the command, without secrets.
        facts: What the upstream says about itself.
        lists: Its definitions.
    """
    info = {name: facts.info[name] for name in ("name", "version") if isinstance(facts.info.get(name), str)}
    content: dict[str, Any] = {"pins": VERSION, "target": target, "server": info}
    if facts.instructions is not None:
        content[_INSTRUCTIONS] = _entry(facts.instructions)
    for kind in KINDS:
        definitions = lists.definitions.get(kind, {})
        content[kind.member] = {key: _entry(definitions[key]) for key in sorted(definitions)}
    return content


def text_of(content: Mapping[str, Any]) -> str:
    """Return the content of a file as text."""
    return json.dumps(content, indent=2) + "\n"


def read_pins(path: str | Path) -> dict[str, Any]:
    """Return the content of a file.

    Raises:
        OSError: The file can't be read.
        ValueError: The file is not one of ``funcmcp pin``, is newer than this version, or was edited.
    """
    command = f"funcmcp pin TARGET -o {path}"
    try:
        content = json.loads(Path(path).read_bytes())
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} does not exist. Write it first: {command}") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not a file of funcmcp pin: {error}. Write another one: {command}") from None
    pins: dict[str, Any] = content if isinstance(content, dict) else {}
    version = pins.get("pins")
    if version != VERSION:
        is_newer = isinstance(version, int) and version > VERSION
        if is_newer:
            raise ValueError(f"{path} was written by a newer version of funcmcp. Update funcmcp.")
        raise ValueError(f"{path} is not a file of funcmcp pin. Write another one: {command}")
    for subject, entry in entries_in(pins).items():
        if not isinstance(entry, dict) or hash_of(entry.get("definition")) != entry.get("hash"):
            text = f"{path}: the hash of {visible_line(subject)} is wrong: the file was edited by hand."
            raise ValueError(f"{text} Restore it, or remove it and write it again: {command}")
    return pins


def changes_between(pinned: Mapping[str, Any], current: Mapping[str, Any]) -> list[Change]:
    """Return the differences between the contents of two files, in the order of the lists."""
    before, after = entries_in(pinned), entries_in(current)
    changes = []
    for subject in sorted({*before, *after}, key=_order_of):
        old, new = before.get(subject, {}), after.get(subject, {})
        if old.get("hash") != new.get("hash"):
            changes.append(Change(subject, old.get("definition"), new.get("definition")))
    return changes


class Pins:
    """The pinned definitions of one upstream.

    Args:
        path: The file.
        upstream: The name of the upstream, for the log.

    Raises:
        OSError: The file can't be read.
        ValueError: The file is not one of ``funcmcp pin``, is newer than this version, or was edited.
    """

    def __init__(self, path: str | Path, upstream: str) -> None:
        self._path = str(path)
        self._upstream = upstream
        self._hashes = {subject: entry["hash"] for subject, entry in entries_in(read_pins(path)).items()}
        self._lines = LineOfEach()

    async def allowed(
        self, lists: UpstreamLists, is_used: Callable[[str], bool], work: ListWork
    ) -> tuple[UpstreamLists, list[str]]:
        """Return the definitions that are as pinned, and what differs. The log gets each difference once.

        Args:
            lists: The definitions that the upstream has and that are used.
            is_used: Returns whether a name or URI would be used.
            work: The work on the lists.
        """
        allowed: dict[Kind, dict[str, Mapping[str, Any]]] = {}
        missing = {subject for subject in self._hashes if subject != _INSTRUCTIONS and is_used(_key_in(subject))}
        differences = []
        for kind, definitions in lists.definitions.items():
            allowed[kind] = {}
            async for key, definition in work.parts(definitions.items()):
                subject = f"{kind.name} {key}"
                missing.discard(subject)
                if self._is_pinned(subject, definition):
                    allowed[kind][key] = definition
                else:
                    differences.append(subject)
        for subject in sorted(missing):
            differences.append(subject)
            self._report(subject, "", "was removed since it was pinned")
        return lists._replace(definitions=allowed), differences

    def allows_instructions(self, text: str) -> bool:
        """Return whether the instructions of the upstream are as pinned."""
        return self._is_pinned(_INSTRUCTIONS, text)

    def _is_pinned(self, subject: str, definition: Any) -> bool:
        current = hash_of(definition)
        pinned = self._hashes.get(subject)
        if pinned == current:
            return True
        word = "is not pinned" if pinned is None else "has changed since it was pinned"
        self._report(subject, current, f"{word}, and is hidden")
        return False

    def _report(self, subject: str, current: str, problem: str) -> None:
        text = "%s: %s %s. Review it with funcmcp pin --check -o %s."
        shown = visible_line(subject)[:200]
        self._lines.write((subject, current), text, self._upstream, shown, problem, self._path)


def _entry(definition: Any) -> dict[str, Any]:
    """Return the entry of a definition, with its members in one order, so that files differ where definitions do."""
    return {"hash": hash_of(definition), "definition": json.loads(canonical(definition))}


def entries_in(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the pinned definitions in the content of a file by subject, such as "tool search"."""
    entries: dict[str, Any] = {}
    if _INSTRUCTIONS in content:
        entries[_INSTRUCTIONS] = content[_INSTRUCTIONS]
    for kind in KINDS:
        members = content.get(kind.member)
        if isinstance(members, dict):
            entries |= {f"{kind.name} {key}": entry for key, entry in members.items()}
    return entries


def _key_in(subject: str) -> str:
    """Return the name or URI in a subject."""
    kind = max((kind.name for kind in KINDS if subject.startswith(f"{kind.name} ")), key=len)
    return subject[len(kind) + 1 :]


def _order_of(subject: str) -> tuple[int, str]:
    names = [kind.name for kind in KINDS]
    places = [place for place, name in enumerate(names) if subject.startswith(f"{name} ")]
    return max(places, default=-1), subject
