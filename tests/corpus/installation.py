"""The installation of published servers for a test."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.corpus.run import InstallError, install

if TYPE_CHECKING:
    from tests.corpus.run import Server


def install_or_skip(servers: list[Server]) -> None:
    """Install the servers of a test. Where that is impossible, skip the test, or fail with CI=true."""
    try:
        install(servers)
    except InstallError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"pip could not install the servers: {error}")
