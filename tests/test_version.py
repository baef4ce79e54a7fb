"""The version of funcmcp."""

from __future__ import annotations

import funcmcp
from funcmcp._version import VERSION


def test_the_package_and_its_modules_have_the_same_version() -> None:
    assert funcmcp.__version__ == VERSION
