"""docs/reference.md is what `make docs` writes, and has every public name."""

from __future__ import annotations

import importlib
import re

import pytest

from scripts.reference import FILE, MODULES, write_reference
from tests.architecture.test_public_names import PUBLIC_MODULES

TEXT = FILE.read_text(encoding="utf-8")


def test_the_page_is_up_to_date() -> None:
    assert write_reference() == TEXT, "Run: make docs"


def test_the_page_has_all_public_modules() -> None:
    assert set(MODULES) == PUBLIC_MODULES


@pytest.mark.parametrize("module", MODULES)
def test_each_public_name_has_an_entry_with_a_text(module: str) -> None:
    entries = dict(re.findall(r"^### (\S+)\n(.*?)(?=^##|\Z)", TEXT, re.MULTILINE | re.DOTALL))
    for name in importlib.import_module(module).__all__:
        without_code = re.sub(r"```.*?```", "", entries[f"{module}.{name}"], flags=re.DOTALL)
        assert without_code.strip(), name


def test_every_link_leads_to_an_entry() -> None:
    titles = re.findall("^#+ (.*)$", TEXT, re.MULTILINE)
    headings = [re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles]
    links = set(re.findall(r"\]\(#([^)]*)\)", TEXT))
    assert links
    assert links <= set(headings)
    assert len([heading for heading in headings if heading in links]) == len(links)
