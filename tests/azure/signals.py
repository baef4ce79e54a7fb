"""A fixture for tests that call the functions of a function app in this process."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def restore_sigterm() -> Iterator[None]:
    """Restore the SIGTERM handler: a function app replaces it with its first request."""
    handler = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, handler)
