"""A part of the tests of FastMCP and the official SDK: those that pass on funcmcp, and no others.

A test that passes now, or no longer, changes the file with the names: run ``make peers``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.peers.prepared import SOURCES, suites
from tests.peers.run import PART, PYTHON, outcomes, part_of
from tests.requirements import require

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow("The tests of other libraries run, twice.")

EXPECTED = json.loads(PART.read_text("utf-8"))


@pytest.mark.parametrize("name", suites())
def test_the_same_tests_pass_as_before(name: str, tmp_path: Path) -> None:
    is_installed = PYTHON.exists() and (SOURCES / ".ready").exists()
    require("The environment .servers/peers, which `make peers` installs,", is_installed)
    suite = suites()[name]
    found = part_of(suite, outcomes(suite, tmp_path / "suite", on_funcmcp=True, names=suite.part))
    assert found["failed"] == EXPECTED[name]["failed"]
    assert found["passed"] == EXPECTED[name]["passed"]
