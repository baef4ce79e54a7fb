"""Random tools and calls against JSON Schema, pydantic and FastMCP; `make differential` makes more of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.differential.comparison import CHECKED, CONVERSION, PLAIN, TYPED, compared
from tests.differential.differences import RULES
from tests.differential.judges import FASTMCP, NODE
from tests.requirements import require

pytestmark = pytest.mark.slow("Thousands of random inputs are compared.")

GUIDE = Path(__file__).parents[2] / "docs/guides/tools.md"
SEED = 20261125
CALLS = 600


def test_the_guide_has_a_row_for_each_rule() -> None:
    section = GUIDE.read_text(encoding="utf-8").partition("### Differences from pydantic")[2].partition("\n### ")[0]
    names = re.findall(r"^\| \*\*(.+?)\*\* \|", section, re.MULTILINE)
    assert names == [*(rule.name for rule in RULES), CHECKED, CONVERSION, PLAIN, TYPED]


async def test_no_disagreement_is_without_a_rule() -> None:
    report = await compared(SEED, CALLS)
    assert report.calls >= CALLS
    assert report.accepted > CALLS // 2
    assert not report.unexplained, "\n\n".join([*report.unexplained[:5], f"{len(report.unexplained)} in all"])


@pytest.mark.parametrize(
    ("judge", "program"),
    [("ajv in tests/node", NODE), ("FastMCP of scripts/setup-differential.sh", FASTMCP)],
    ids=["ajv", "FastMCP"],
)
def test_a_judge_that_may_be_absent_is_installed(judge: str, program: Path) -> None:
    require(judge, program.exists())
