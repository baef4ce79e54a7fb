"""The pages in docs/reference/api are those that `make reference` writes, and have every public name."""

from __future__ import annotations

import importlib
import re

import pytest

from scripts.reference import FOLDER, MODULES, write_reference
from tests.architecture.test_public_names import PUBLIC_MODULES

PAGES = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}


def test_the_pages_are_up_to_date() -> None:
    assert write_reference() == PAGES, "Run: make reference"


def test_there_is_a_page_for_each_public_module() -> None:
    assert set(MODULES) == PUBLIC_MODULES
    assert set(PAGES) == {"index.md", *(f"{module}.md" for module in PUBLIC_MODULES)}


@pytest.mark.parametrize("module", MODULES)
def test_each_public_name_has_an_entry_with_a_text(module: str) -> None:
    entries = dict(re.findall(r"^## (\S+)\n(.*?)(?=^##|\Z)", PAGES[f"{module}.md"], re.MULTILINE | re.DOTALL))
    for name in importlib.import_module(module).__all__:
        without_code = re.sub(r"```.*?```", "", entries[f"{module}.{name}"], flags=re.DOTALL)
        assert without_code.strip(), name


def test_the_index_links_to_each_name_once() -> None:
    links = re.findall(r"\]\((\S+#\S+)\)", PAGES["index.md"])
    entries = []
    for page, text in PAGES.items():
        for title in re.findall(r"^## (\S+)$", text, re.MULTILINE):
            anchor = title.replace(".", "").lower()
            entries.append(f"{page}#{anchor}")
    assert links
    assert sorted(links) == sorted(entries)
