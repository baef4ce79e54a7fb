"""An extension of Sphinx: passages for the search of the site, pages as Markdown, llms.txt, and dark pictures.

docs/conf.py loads it. `docs/_static/search.js` ranks the passages.
"""

from __future__ import annotations

import json
import posixpath
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

DOCS = Path(__file__).parents[1] / "docs"
_FENCE = re.compile(r"^```(\{?\w*\}?)\s*$")
_HEADING = re.compile(r"^(#+) (.+)$")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_SUMMARY = (
    "A Python library for servers of the Model Context Protocol (MCP): tools, resources and prompts are typed Python "
    "functions, served over Streamable HTTP on any ASGI server, stdio, HTTP+SSE, WebSocket and Azure Functions."
)
_MAX_DESCRIPTION = 200
_EMPHASIS = re.compile(r"\*{1,2}([^*\s][^*]*)\*{1,2}")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
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


def _plain(line: str) -> str:
    """Return a line without the signs of Markdown."""
    line = _EMPHASIS.sub(r"\1", _LINK.sub(r"\1", line)).replace("`", "")
    if line.startswith("|"):
        line = re.sub(r"(?<!\\)\|", " ", line).replace("\\|", "|")
        line = "" if set(line) <= set(" -:") else line
    return line.strip()


def passages_of(path: Path, docs: Path = DOCS) -> list[Passage]:
    """Return the passages of a page."""
    page = path.relative_to(docs).with_suffix("").as_posix()
    title, heading, anchor = "", "", ""
    lines: list[str] = []
    passages: list[Passage] = []
    fence = ""
    for line in _COMMENT.sub("", path.read_text(encoding="utf-8")).splitlines():
        opening = _FENCE.match(line)
        if fence:
            fence = "" if line.rstrip() == "```" else fence
            if fence and not fence.startswith("{"):
                lines.append(line)
            continue
        if opening:
            fence = opening[1] or "text"
            continue
        started = _HEADING.match(line)
        if started is None:
            lines.append(_plain(line))
            continue
        if heading:
            passages.append(Passage(page, title, heading, anchor, "\n".join(filter(None, lines))))
        heading, lines = _plain(started[2]), []
        title, anchor = (heading, "") if not title else (title, anchor_of(started[2]))
    passages.append(Passage(page, title, heading, anchor, "\n".join(filter(None, lines))))
    return passages


def pages(docs: Path = DOCS) -> list[Path]:
    """Return the Markdown files of the site."""
    return sorted(docs.rglob("*.md"))


def passages(docs: Path = DOCS) -> Iterator[list[str]]:
    """Return all passages, as search.js reads them."""
    for path in pages(docs):
        for each in passages_of(path, docs):
            yield [each.page, each.title, each.heading, each.anchor, each.text]


def llms_txt(docs: Path = DOCS) -> str:
    """Return llms.txt (llmstxt.org): a list of the pages as Markdown, with what each is about.

    Pages for the developers of funcmcp and lists of signatures are in the section *Optional*.
    """
    lines = [
        "# funcmcp",
        "",
        f"> {_SUMMARY}",
    ]
    sections = {
        "Tutorial": "tutorial/",
        "Guides": "guides/",
        "Deployment": "deploy/",
        "Reference": "reference/",
        "Explanation": "explanation/",
    }
    optional = ("development/", "reference/api/")
    names = [path.relative_to(docs).as_posix() for path in pages(docs) if path.name != "index.md"]
    for section, folder in sections.items():
        chosen = [name for name in names if name.startswith(folder) and not name.startswith(optional)]
        if chosen:
            lines += ["", f"## {section}", "", *_entries(chosen, docs)]
    lines += ["", "## Optional", "", *_entries((name for name in names if name.startswith(optional)), docs)]
    return "\n".join(lines) + "\n"


def _entries(names: Iterable[str], docs: Path) -> Iterator[str]:
    for name in names:
        first = passages_of(docs / name, docs)[0]
        sentence = re.split(r"(?<=[.:])\s", first.text.replace("\n", " "), maxsplit=1)[0].rstrip(":")
        sentence = "" if len(sentence) > _MAX_DESCRIPTION else sentence
        yield f"- [{first.title}]({name}): {sentence}" if sentence else f"- [{first.title}]({name})"


def _write(app: Sphinx, exception: Exception | None) -> None:
    """Write the files of the site that Sphinx does not write."""
    if exception is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir)
    text = json.dumps(list(passages()), ensure_ascii=False, separators=(",", ":"))
    (folder / "_static" / "passages.js").write_text(f"const PASSAGES = {text};\n", encoding="utf-8")
    (folder / "llms.txt").write_text(llms_txt(), encoding="utf-8")
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
