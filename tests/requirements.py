"""What some tests need beside Python packages: missing on a newcomer's machine they skip, in CI they fail."""

from __future__ import annotations

import os
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
