"""The search of the site finds, for what users of MCP servers ask, a page that answers it.

The questions are in questions.toml. A question counts if one of the first three pages that the search shows contains
each of its answer's texts, regardless of case.
"""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from scripts.documentation_site import DOCS, passages
from tests.nodejs import node
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow("Sphinx builds the whole site.")

QUESTIONS = tomllib.loads((Path(__file__).parent / "questions.toml").read_text(encoding="utf-8"))["questions"]
SHOWN = 3
MINIMUM = 95


def answers(page: str, texts: list[str]) -> bool:
    """Return whether a page contains each of the texts, or one of those with `|` between them."""
    content = " ".join((DOCS / f"{page}.md").read_text(encoding="utf-8").casefold().split())
    return all(any(choice.casefold() in content for choice in text.split("|")) for text in texts)


@pytest.fixture(scope="module")
def results() -> list[list[str]]:
    """Return the first pages for each question."""
    data = {
        "script": str(DOCS / "_static" / "search.js"),
        "passages": list(passages()),
        "queries": [question["search"] for question in QUESTIONS],
        "results": SHOWN,
    }
    script = Path(__file__).with_name("search.cjs")
    run = subprocess.run(
        [node(), str(script)], input=json.dumps(data), capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    return list(json.loads(run.stdout))


def test_there_are_100_questions_each_with_its_source() -> None:
    assert len(QUESTIONS) == 100
    for question in QUESTIONS:
        assert re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+", question["asked_in"])
        assert question["question"].endswith("?")
        assert question["search"]
        assert question["answer"]


def test_the_first_search_finds_an_answer(results: list[list[str]]) -> None:
    missing = [
        f"{question['search']!r} shows {', '.join(pages)}; the answer needs {question['answer']}"
        for question, pages in zip(QUESTIONS, results, strict=True)
        if not any(answers(page, question["answer"]) for page in pages)
    ]
    assert len(QUESTIONS) - len(missing) >= MINIMUM, "\n".join(missing)
