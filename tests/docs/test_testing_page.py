"""pytest passes the tests of docs/guides/testing.md, in files of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.docs.pages import block_of, run_python

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow("pytest starts for each case.")

PAGE = "guides/testing.md"


@pytest.mark.parametrize(
    ("heading", "passed"),
    [
        ("A test as a signed-in user", 3),
        ("pytest", 2),
        ('"Event loop is closed", and loop scopes', 2),
        ("TestClient", 2),
        ("A server on a real port", 1),
    ],
)
def test_pytest_passes_the_tests_of_the_page(heading: str, passed: int, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(block_of(PAGE, "pytest", "toml"))
    (tmp_path / "test_shop.py").write_text(block_of(PAGE, heading))
    run = run_python("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_shop.py", folder=tmp_path)
    assert f"{passed} passed" in run.stdout, run.stdout
    assert "error" not in run.stdout
