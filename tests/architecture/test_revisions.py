"""Code reads the tables of the protocol in place of comparing revisions, so a revision touches few files."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

from funcmcp._protocol.revisions import NEWEST, NEWEST_HANDSHAKE, REVISIONS, released
from tests.client.next_revision import changes

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
DOCS = ROOT / "docs"
TABLES = {f"funcmcp/_protocol/{name}.py" for name in ("content_blocks", "extensions", "methods", "revisions")}
"""The modules that name revisions, beside the script of the page, which is a client of one revision."""

ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
DATES = {"date", "protocol_version"}
"""Attributes that are the date of a revision."""

OLDEST = min(REVISIONS)


def trees(pattern: str) -> dict[str, ast.AST]:
    """Return the parsed modules whose text has a pattern, by their paths."""
    texts = {path.relative_to(SOURCE).as_posix(): path.read_text("utf-8") for path in SOURCE.rglob("*.py")}
    return {name: ast.parse(text) for name, text in texts.items() if re.search(pattern, text)}


def named_revisions(tree: ast.AST) -> Iterator[str]:
    """Yield the dates of revisions that code has as values."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in REVISIONS:
            yield f"line {node.lineno}: {node.value}"


def compared_revisions(tree: ast.AST) -> Iterator[str]:
    """Yield the places that compare dates of revisions, or choose one by its age."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and any(isinstance(operator, ORDERS) for operator in node.ops):
            sides = (node.left, *node.comparators)
            if any(isinstance(side, ast.Attribute) and side.attr in DATES for side in sides):
                yield f"line {node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.Call) and re.match(r"(max|min|sorted)\(.*\bREVISIONS\b", ast.unparse(node)):
            yield f"line {node.lineno}: {ast.unparse(node)}"


def test_only_the_tables_name_revisions() -> None:
    quoted = r"[\"']20\d\d-\d\d-\d\d[\"']"
    naming = {name: places for name, tree in trees(quoted).items() if (places := list(named_revisions(tree)))}
    assert naming.keys() == TABLES, naming


def test_no_code_outside_of_the_protocol_compares_revisions() -> None:
    candidates = trees(rf"\.({'|'.join(DATES)})\b|\bREVISIONS\b")
    comparing = {name: places for name, tree in candidates.items() if (places := list(compared_revisions(tree)))}
    assert not {name: places for name, places in comparing.items() if not name.startswith("funcmcp/_protocol/")}


def test_the_page_of_the_architecture_lists_the_files_that_a_revision_touches() -> None:
    text = (DOCS / "development" / "architecture.md").read_text("utf-8")
    section = text.partition("### What a revision touches\n")[2].partition("\n## ")[0]
    listed = re.findall(r"^\| `(\S+)`", section, re.MULTILINE)
    touched = {f"{change.module.removeprefix('funcmcp.').replace('.', '/')}.py" for change in changes()}
    assert sorted(listed) == sorted({*touched, "_server/handlers/"})
    assert len(listed) <= 5


def test_the_documents_name_the_newest_revision() -> None:
    texts = {path: path.read_text("utf-8") for path in [ROOT / "README.md", *DOCS.rglob("*.md")]}
    every_text = "\n".join(texts.values())
    newest = re.findall(rf"(?:newest revision,|\| protocol revisions \| {OLDEST} to) (20[\d-]{{8}})", every_text)
    last = re.findall(rf"handshake era(?::| \() ?{OLDEST} to (20[\d-]{{8}})", every_text)
    assert (set(newest), set(last)) == ({NEWEST}, {NEWEST_HANDSHAKE})
    table = re.findall(r"^\| (20[\d-]{8}) \|", texts[DOCS / "reference" / "revisions.md"], re.MULTILINE)
    (row,) = re.findall(r"^\| revision \|.*", texts[DOCS / "reference" / "glossary.md"], re.MULTILINE)
    assert table == re.findall(r"20[\d-]{8}", row) == released(REVISIONS)
