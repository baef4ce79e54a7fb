"""The pages of a documentation: Markdown files, kept in memory and searched with SQLite's full-text search."""

from __future__ import annotations

import posixpath
import re
import sqlite3
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

SCHEME = "docs"
WEIGHTS = {"development/": 0.5, "reference/api/": 0.6}
"""Folders for few readers, whose pages come after others that match as well."""

MAX_PASSAGE = 3_000
"""Characters of a passage in a list of results."""

_FENCE = re.compile(r"\s*(```+|~~~+)")
_HEADING = re.compile(r"(#{1,6}) +(.+?)\s*$")
_LINK = re.compile(r"\]\(([^)\s:#]+\.md)(#[^)\s]*)?\)")
_CREATE = (
    "CREATE VIRTUAL TABLE passages USING fts5(page UNINDEXED, title, heading, text, tokenize = 'porter unicode61')"
)
_SEARCH = """
SELECT page, title, heading, text FROM passages WHERE passages MATCH :words
ORDER BY bm25(passages, 0, 2, 3, 1) * {weight} LIMIT :limit
"""


class Passage(BaseModel):
    """The text under one heading of a page."""

    page: str = Field(description="Name of the page, for read_page")
    title: str = Field(description="Title of the page")
    heading: str = Field(description="Heading of the passage, for read_page")
    uri: str = Field(description="URI of the page as a resource")
    text: str = Field(description="The passage in Markdown")


@dataclass(frozen=True)
class Part:
    """A heading with the text below it, up to the next heading.

    Attributes:
        level: Level of the heading, from 1 to 6.
        heading: The heading.
        text: The part with its heading.
    """

    level: int
    heading: str
    text: str


@dataclass(frozen=True)
class Page:
    """A page.

    Attributes:
        name: Its path below the folder, without its suffix.
        parts: Its parts from top to bottom. The first one has the title.
    """

    name: str
    parts: tuple[Part, ...]

    @property
    def title(self) -> str:
        """The first heading, or the name."""
        return self.parts[0].heading if self.parts else self.name

    @property
    def uri(self) -> str:
        """The URI of the page as a resource."""
        return f"{SCHEME}://{self.name}"

    @property
    def text(self) -> str:
        """The page in Markdown."""
        return "".join(part.text for part in self.parts)

    def below(self, heading: str) -> str | None:
        """Return the text under a heading with all lower headings; None if there is no such heading."""
        wanted = heading.strip("# ").casefold()
        start = next((index for index, part in enumerate(self.parts) if part.heading.casefold() == wanted), None)
        if start is None:
            return None
        texts = [self.parts[start].text]
        for part in self.parts[start + 1 :]:
            if part.level <= self.parts[start].level:
                break
            texts.append(part.text)
        return "".join(texts)


class Library:
    """All pages of a folder.

    Args:
        folder: The folder. Markdown files in all folders below it are pages.
    """

    def __init__(self, folder: Path) -> None:
        files = {path.relative_to(folder).with_suffix("").as_posix(): path for path in sorted(folder.rglob("*.md"))}
        self.pages: dict[str, Page] = {}
        for name, path in files.items():
            text = _with_uris(path.read_text(encoding="utf-8", errors="replace"), name, files.keys())
            self.pages[name] = Page(name, tuple(_parts(text)))
        self._index = sqlite3.connect(":memory:", check_same_thread=False)
        self._index.execute(_CREATE)
        rows = ((page.name, page.title, part.heading, part.text) for page in self.pages.values() for part in page.parts)
        self._index.executemany("INSERT INTO passages VALUES (?, ?, ?, ?)", rows)

    def search(self, query: str, limit: int) -> list[Passage]:
        """Return the passages that match most words of a query, the best first."""
        words = " OR ".join(f'"{word}"' for word in sorted(set(re.findall(r"\w+", query.casefold()))))
        if not words:
            return []
        cases = " ".join(f"WHEN page LIKE '{folder}%' THEN {weight}" for folder, weight in WEIGHTS.items())
        rows = self._index.execute(
            _SEARCH.format(weight=f"CASE {cases} ELSE 1 END"), {"words": words, "limit": limit}
        ).fetchall()
        return [
            Passage(page=page, title=title, heading=heading, uri=self.pages[page].uri, text=_shortened(text))
            for page, title, heading, text in rows
        ]

    def similar(self, name: str) -> str | None:
        """Return the name of the page that looks most like a name."""
        return next(iter(get_close_matches(name, self.pages, n=1, cutoff=0.5)), None)


def _shortened(text: str) -> str:
    """Return the beginning of a passage, so that a search has room for others."""
    if len(text) <= MAX_PASSAGE:
        return text
    return f"{text[:MAX_PASSAGE]}\n\n(The passage goes on: call read_page with its heading.)"


def _parts(text: str) -> Iterator[Part]:
    """Return the parts of a page. A line that begins with # in a block of code is not a heading."""
    level, heading, lines = 1, "", list[str]()
    fence = ""
    for line in text.splitlines(keepends=True):
        opening = _FENCE.match(line)
        if opening:
            fence = "" if fence and line.strip().startswith(fence) else fence or opening[1]
        started = None if fence else _HEADING.match(line)
        if started:
            if "".join(lines).strip():
                yield Part(level, heading, "".join(lines))
            level, heading, lines = len(started[1]), started[2].replace("`", ""), []
        lines.append(line)
    if "".join(lines).strip():
        yield Part(level, heading, "".join(lines))


def _with_uris(text: str, name: str, names: Collection[str]) -> str:
    """Return a page whose links to other pages are the URIs of resources."""

    def uri(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), match[1].removesuffix(".md")))
        return f"]({SCHEME}://{target}{match[2] or ''})" if target in names else match[0]

    return _LINK.sub(uri, text)
