"""What some tests need beside Python packages: missing on a newcomer's machine they skip, in CI they fail."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TypeVar

import pytest

T = TypeVar("T")


def require(what: str, found: T | None) -> T:
    """Return what was found; skip the test if it is missing, or fail it where `CI=true`."""
    if found is not None and found is not False:
        return found
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what} is missing, and CI must have it.")
    pytest.skip(f"{what} is missing.")


def require_history() -> None:
    """Skip the test in a copy of the newest commit alone (`git clone --depth 1`), which has no earlier versions."""
    shallow = subprocess.run(
        ["git", "rev-parse", "--is-shallow-repository"],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    if shallow.stdout.strip() == "true":
        pytest.skip("This clone has no earlier commits.")
