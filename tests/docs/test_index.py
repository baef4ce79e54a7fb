"""The index of each folder lists its pages, and links and mentions of pages lead to files that exist."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FOLDERS = ["tutorial", "guides", "deploy", "reference", "reference/api", "explanation", "development"]
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
MENTION = re.compile(r"(?<![\w/.-])docs/[\w/-]+\.md")
EXTERNAL = re.compile(r"[a-z]+:")
TEXT_FILES = {".md", ".py", ".toml", ".sh", ".txt", ""}


def tracked_files() -> list[Path]:
    """Return the text files that git tracks, without the inputs of the fuzzers."""
    output = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [Path(line) for line in output.splitlines() if not line.startswith("fuzz/corpus/")]
    return [path for path in paths if path.suffix in TEXT_FILES and (ROOT / path).is_file()]


DOCUMENTS = [path for path in tracked_files() if path.suffix == ".md"]


def anchors(path: Path) -> set[str]:
    """Return the anchors that GitHub gives to a document's headings."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", path.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("folder", FOLDERS)
def test_an_index_lists_each_page_of_its_folder(folder: str) -> None:
    index = DOCS / folder / "index.md"
    pages = {path.name for path in index.parent.glob("*.md")} - {"index.md"}
    assert pages
    assert {target for target in LINK.findall(index.read_text(encoding="utf-8")) if "/" not in target} >= pages


def test_pages_are_in_the_folders_of_the_index() -> None:
    folders = {path.parent for path in DOCS.rglob("*.md")}
    assert folders == {DOCS, *(DOCS / folder for folder in FOLDERS)}
    assert [path.name for path in DOCS.glob("*.md")] == ["index.md"]
    links = LINK.findall((DOCS / "index.md").read_text(encoding="utf-8"))
    assert {f"{folder}/index.md" for folder in FOLDERS if "/" not in folder} <= set(links)


def is_broken(document: Path, target: str) -> bool:
    """Return whether a relative link of a document leads to no file, or to no heading."""
    name, _, anchor = target.partition("#")
    path = Path(os.path.normpath(ROOT / document.parent / name)) if name else ROOT / document
    return not path.exists() or (bool(anchor) and anchor not in anchors(path))


def test_relative_links_lead_to_files_and_headings() -> None:
    broken = []
    for document in DOCUMENTS:
        text = FENCE.sub("", (ROOT / document).read_text(encoding="utf-8"))
        targets = [target for target in LINK.findall(text) if not EXTERNAL.match(target)]
        broken += [f"{document} links to {target}" for target in targets if is_broken(document, target)]
    assert not broken


def test_pages_that_texts_and_code_mention_exist() -> None:
    missing = [
        f"{path}: {mention}"
        for path in tracked_files()
        for mention in MENTION.findall((ROOT / path).read_text(encoding="utf-8"))
        if not (ROOT / mention).exists()
    ]
    assert missing == []
