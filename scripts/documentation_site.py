"""An extension of Sphinx: passages for the search of the site, pages as Markdown, llms.txt, and dark pictures.

docs/conf.py loads it. `docs/_static/search.js` ranks the passages. The descriptions of pages in llms.txt are those in
the index of their folder.
"""

from __future__ import annotations

import functools
import itertools
import json
import posixpath
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from markdown_it.token import Token

DOCS = Path(__file__).parents[1] / "docs"
_MARKDOWN = MarkdownIt("commonmark").enable("table")
_SUMMARY = (
    "A Python library for servers of the Model Context Protocol (MCP): tools, resources and prompts are typed Python "
    "functions, served over Streamable HTTP on any ASGI server, stdio, HTTP+SSE, WebSocket and Azure Functions."
)
_SECTIONS = {
    "Tutorial": "tutorial/",
    "Guides": "guides/",
    "Deployment": "deploy/",
    "Reference": "reference/",
    "Explanation": "explanation/",
}
"""The sections of llms.txt, and the folders of their pages."""
_OPTIONAL = ("development/", "reference/api/")
"""Folders of pages for the developers of funcmcp, and of lists of signatures."""
_REPOSITORY = "https://github.com/funcmcp/funcmcp/blob/main"
_OUTER_LINK = re.compile(r"\]\((\.\./[^)\s#]+\.md)")
_ATTRIBUTES = {
    '<p class="caption" role="heading"': ' aria-level="2"',
    '<aside class="toc-drawer"': ' aria-label="On this page"',
    '<div class="table-wrapper colwidths-auto docutils container"': ' tabindex="0"',
    "<pre": ' tabindex="0"',
}
"""What the tags of the theme lack: levels of headings, names of landmarks, and the focus of what scrolls."""
_ACCESSIBLE = re.compile(f"({'|'.join(map(re.escape, _ATTRIBUTES))})(?=>)")
_LIGHT = re.compile(r"-light(\.\w+)$")


class _Builder(Protocol):
    format: str


class _Environment(Protocol):
    docname: str


class Sphinx(Protocol):
    """What this extension uses of Sphinx, which is not installed beside the tests."""

    srcdir: str
    outdir: str
    builder: _Builder
    env: _Environment

    def connect(self, event: str, callback: Callable[..., None], priority: int = 500) -> int:
        """Call a function at an event. Functions with a lower priority are called first."""


@dataclass(frozen=True)
class Passage:
    """The text under one heading.

    Attributes:
        page: Path of the page below docs, without its suffix.
        title: Title of the page.
        heading: Heading of the passage; that of the page for its beginning.
        anchor: Anchor of the heading; empty for the beginning of the page.
        text: Text without Markdown, with the code of blocks.
    """

    page: str
    title: str
    heading: str
    anchor: str
    text: str


def anchor_of(heading: str) -> str:
    """Return the anchor that GitHub and MyST give to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@dataclass
class _Section:
    """The text under one heading of a page.

    Attributes:
        heading: The heading without Markdown.
        source: The heading as it is written, which determines its anchor.
        lines: Paragraphs, rows of tables and lines of code, without Markdown.
    """

    heading: str
    source: str
    lines: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The lines that are not empty."""
        return "\n".join(filter(None, self.lines))


def _text_of(inline: Token) -> str:
    """Return the text of a paragraph, a heading or a cell without Markdown, on one line."""
    parts = []
    for token in inline.children or []:
        if token.type in ("softbreak", "hardbreak"):
            parts.append(" ")
        elif token.type in ("text", "code_inline", "image"):
            parts.append(token.content)
    return "".join(parts).strip()


def _sections_of(markdown: str) -> list[_Section]:
    """Return the sections of a page. Each page begins with a heading."""
    sections: list[_Section] = []
    cells: list[str] = []
    tokens = iter(_MARKDOWN.parse(markdown))
    in_row = False
    for token in tokens:
        if token.type == "heading_open":
            heading = next(tokens)
            sections.append(_Section(_text_of(heading), heading.content))
        elif token.type in ("tr_open", "tr_close"):
            in_row = token.type == "tr_open"
            if not in_row:
                sections[-1].lines.append("  ".join(filter(None, cells)))
                cells = []
        elif token.type == "inline":
            (cells if in_row else sections[-1].lines).append(_text_of(token))
        elif token.type in ("fence", "code_block") and not token.info.startswith("{"):
            sections[-1].lines += token.content.splitlines()
    return sections


def passages_of(path: Path, docs: Path = DOCS) -> list[Passage]:
    """Return the passages of a page."""
    page = path.relative_to(docs).with_suffix("").as_posix()
    first, *others = _sections_of(path.read_text(encoding="utf-8"))
    passages = [Passage(page, first.heading, first.heading, "", first.text)]
    passages += [Passage(page, first.heading, other.heading, anchor_of(other.source), other.text) for other in others]
    return passages


def pages(docs: Path = DOCS) -> list[Path]:
    """Return the Markdown files of the site."""
    return sorted(docs.rglob("*.md"))


def passages(docs: Path = DOCS) -> Iterator[list[str]]:
    """Return all passages, as search.js reads them."""
    for path in pages(docs):
        for each in passages_of(path, docs):
            yield [each.page, each.title, each.heading, each.anchor, each.text]


def _names(docs: Path) -> list[str]:
    """Return the paths of all pages below docs, without the indexes of folders."""
    return [path.relative_to(docs).as_posix() for path in pages(docs) if path.name != "index.md"]


def _names_by_section(docs: Path) -> dict[str, list[str]]:
    """Return the paths of the pages in each section of llms.txt, without those that are optional."""
    names = [name for name in _names(docs) if not name.startswith(_OPTIONAL)]
    sections = {title: [name for name in names if name.startswith(folder)] for title, folder in _SECTIONS.items()}
    return {title: chosen for title, chosen in sections.items() if chosen}


def llms_txt(docs: Path = DOCS) -> str:
    """Return llms.txt (llmstxt.org): a list of the pages as Markdown, with what each is about.

    Pages for the developers of funcmcp and lists of signatures are in the section *Optional*.
    """
    lines = ["# funcmcp", "", f"> {_SUMMARY}"]
    for section, names in _names_by_section(docs).items():
        lines += ["", f"## {section}", "", *_entries(names, docs)]
    lines += ["", "## Optional", "", *_entries((name for name in _names(docs) if name.startswith(_OPTIONAL)), docs)]
    return "\n".join(lines) + "\n"


def llms_full_txt(docs: Path = DOCS) -> str:
    """Return llms-full.txt: the pages of llms.txt one after the other, without those that are optional."""
    texts = [f"> {_SUMMARY}"]
    for names in _names_by_section(docs).values():
        texts += [f"Source: {name}\n\n{(docs / name).read_text(encoding='utf-8').strip()}" for name in names]
    return "\n\n---\n\n".join(texts) + "\n"


def _entries(names: Iterable[str], docs: Path) -> Iterator[str]:
    for name in names:
        yield f"- [{passages_of(docs / name, docs)[0].title}]({name}): {description_of(name, docs)}"


def description_of(name: str, docs: Path = DOCS) -> str:
    """Return what a page is about: its row or its item in the index of its folder.

    A page of names, whose item in the index is a list of names, is described by its first sentence.
    """
    folder = posixpath.dirname(name)
    if folder == "reference/api":
        first = passages_of(docs / name, docs)[0].text.split("\n")[0]
        return re.split(r"(?<=[.])\s", first, maxsplit=1)[0].rstrip(".")
    return _descriptions_in(docs / folder / "index.md")[posixpath.basename(name)]


@functools.cache
def _descriptions_in(index: Path) -> dict[str, str]:
    """Return the descriptions of pages in an index, by the names of their files.

    A row of a table has the link in its first cell and the description in its second one. An item of a list has the
    description behind the link and a colon.
    """
    descriptions: dict[str, str] = {}
    target = ""
    for opening, token in itertools.pairwise(_MARKDOWN.parse(index.read_text(encoding="utf-8"))):
        if token.type != "inline" or opening.type not in ("td_open", "paragraph_open") or opening.level == 0:
            continue
        text = _text_of(token)
        if target:
            descriptions[target] = text
        target = _target_of(token)
        if target and opening.type == "paragraph_open":
            descriptions[target] = text.partition(": ")[2]
            target = ""
    return descriptions


def _target_of(inline: Token) -> str:
    """Return the target of the link with which a text begins; an empty text if it begins with none."""
    children = inline.children or []
    return str(children[0].attrGet("href")) if children and children[0].type == "link_open" else ""


def _write(app: Sphinx, exception: Exception | None) -> None:
    """Write the files of the site that Sphinx does not write."""
    if exception is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir)
    text = json.dumps(list(passages()), ensure_ascii=False, separators=(",", ":"))
    (folder / "_static" / "passages.js").write_text(f"const PASSAGES = {text};\n", encoding="utf-8")
    (folder / "llms.txt").write_text(llms_txt(), encoding="utf-8")
    (folder / "llms-full.txt").write_text(llms_full_txt(), encoding="utf-8")
    for path in set(folder.rglob("*.html")) - set((folder / "_downloads").rglob("*.html")):
        text = path.read_text(encoding="utf-8")
        path.write_text(_ACCESSIBLE.sub(lambda match: match[0] + _ATTRIBUTES[match[1]], text), encoding="utf-8")
    for path in pages():
        target = folder / path.relative_to(DOCS)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


def _link_to_repository(_: Sphinx, page: str, source: list[str]) -> None:
    """Point links to Markdown files outside of docs to the repository on the web: the site does not have them."""
    folder = posixpath.dirname(page)

    def address(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(DOCS.name, folder, match[1]))
        return match[0] if target.startswith(f"{DOCS.name}/") else f"]({_REPOSITORY}/{target}"

    source[0] = _OUTER_LINK.sub(address, source[0])


def _add_dark_pictures(app: Sphinx, document: Any) -> None:
    """Add ``name-dark.svg`` beside each picture ``name-light.svg``. Furo shows the one for the reader's theme.

    Sphinx copies the pictures that are in the document at the default priority.
    """
    folder = (Path(app.srcdir) / app.env.docname).parent
    for picture in list(document.findall(lambda node: node.tagname == "image")):
        dark = _LIGHT.sub(r"-dark\1", picture["uri"])
        if dark == picture["uri"] or not (folder / dark).is_file():
            continue
        twin = picture.deepcopy()
        twin["uri"] = dark
        twin["classes"].append("only-dark")
        picture["classes"].append("only-light")
        picture.parent.insert(picture.parent.index(picture) + 1, twin)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.connect("source-read", _link_to_repository)
    app.connect("doctree-read", _add_dark_pictures, priority=400)
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
