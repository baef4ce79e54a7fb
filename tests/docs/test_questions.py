"""The search of the site finds, for what users of MCP servers ask, a page that answers it.

The questions are in questions.toml and passages.toml. One of questions.toml counts if one of the first three pages that
the search shows contains each of its answer's texts, regardless of case. One of passages.toml counts if the page of its
passage is among the first six. The passage itself has the answer's texts.
"""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from scripts.documentation_site import DOCS, passages, passages_of
from tests.nodejs import node
from tests.patience import PATIENCE

FOLDER = Path(__file__).parent
QUESTIONS = tomllib.loads((FOLDER / "questions.toml").read_text(encoding="utf-8"))["questions"]
WITH_PASSAGES = tomllib.loads((FOLDER / "passages.toml").read_text(encoding="utf-8"))["questions"]
SHOWN = 3
SHOWN_WITH_PASSAGES = 6
MINIMUM = 95


def has_texts(content: str, texts: list[str]) -> bool:
    """Return whether a text contains each of some texts, or one of those with `|` between them."""
    content = " ".join(content.casefold().split())
    return all(any(choice.casefold() in content for choice in text.split("|")) for text in texts)


def passage(address: str) -> str:
    """Return the text of a passage, such as `guides/tools.md#options`; that of the whole page without an anchor."""
    page, _, anchor = address.partition("#")
    sections = [each for each in passages_of(DOCS / page) if anchor in ("", each.anchor)]
    return "\n".join(f"{each.heading}\n{each.text}" for each in sections)


def pages_for(questions: list[dict[str, Any]], shown: int) -> list[list[str]]:
    """Return the first pages that the search shows for each question."""
    data = {
        "script": str(DOCS / "_static" / "search.js"),
        "passages": list(passages()),
        "queries": [question["search"] for question in questions],
        "results": shown,
    }
    run = subprocess.run(
        [node(), str(FOLDER / "search.cjs")],
        input=json.dumps(data),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    return list(json.loads(run.stdout))


def test_there_are_100_questions_each_with_its_source() -> None:
    assert len(QUESTIONS) == 100
    for question in QUESTIONS + WITH_PASSAGES:
        assert re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+", question["asked_in"])
        assert question.get("question", "?").endswith("?")
        assert question["search"]
        assert question["answer"]


@pytest.mark.slow("All pages are read.")
def test_the_first_search_finds_an_answer() -> None:
    missing = [
        f"{question['search']!r} shows {', '.join(pages)}; the answer needs {question['answer']}"
        for question, pages in zip(QUESTIONS, pages_for(QUESTIONS, SHOWN), strict=True)
        if not any(has_texts((DOCS / f"{page}.md").read_text(encoding="utf-8"), question["answer"]) for page in pages)
    ]
    assert len(QUESTIONS) - len(missing) >= MINIMUM, "\n".join(missing)


@pytest.mark.parametrize("question", WITH_PASSAGES, ids=lambda question: question["search"])
def test_a_passage_has_the_answer(question: dict[str, Any]) -> None:
    text = passage(question["passage"])
    assert text, f"{question['passage']} does not exist"
    assert has_texts(text, question["answer"]), text


@pytest.mark.slow("All pages are read.")
def test_the_search_finds_the_page_of_each_passage() -> None:
    missing = [
        f"{question['search']!r} shows {', '.join(pages)}; the answer is {question['passage']}"
        for question, pages in zip(WITH_PASSAGES, pages_for(WITH_PASSAGES, SHOWN_WITH_PASSAGES), strict=True)
        if question["passage"].partition(".md")[0] not in pages
    ]
    assert not missing, "\n".join(missing)
