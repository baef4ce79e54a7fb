"""A published server answers as before after ``funcmcp migrate --write``; `make corpus` migrates all of them."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("libcst")

from tests.corpus.installation import install_or_skip
from tests.corpus.migration import Trial, compared, eligible, page, reason_of

QUICK = [server for server in eligible() if server.options.get("quick")][:1]
pytestmark = [
    pytest.mark.skipif(Path(sys.prefix).name != ".venv", reason="make test runs the corpus on one Python, in .venv"),
    pytest.mark.timeout(600),
    pytest.mark.slow("Published servers are installed and compared."),
]


def test_a_migrated_server_answers_as_before() -> None:
    install_or_skip(QUICK)
    trial = compared(QUICK[0])
    assert (trial.files, trial.unexplained) == (1, [])
    assert trial.calls > 0


def test_the_page_names_each_difference_without_a_reason() -> None:
    counts = {"breaking": 1, "compatible": 0, "wording": 2}
    trial = Trial(QUICK[0], 1, ["the option auth"], 3, counts, Counter(), ["tool a | b: removed"])
    text = page([(QUICK[0], trial), (QUICK[0], "no answer")])
    assert " | 1 | 3 | 1 | 0 | 2 |  |" in text
    assert "not compared: no answer" in text
    assert "tool a \\| b: removed" in text
    assert "| the option auth | 1 |" in text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("result result: removed", "plain dict"),
        ("result other: removed", ""),
        ("error code changed from 0 to -32603", "error code"),
        ("error code changed from -32602 to -32603", ""),
        ('description changed from "  a" to "a"', "description"),
        ("additionalProperties: added", "unknown arguments"),
        ("results no longer have a schema and structured content", ""),
        ("removed", ""),
    ],
)
def test_only_the_difference_itself_has_the_reason(text: str, reason: str) -> None:
    assert reason_of({"subject": "tool a", "text": text}, []) == reason
