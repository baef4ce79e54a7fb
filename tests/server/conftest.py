"""Fixtures of the tests of the log."""

from __future__ import annotations

import logging

import pytest


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> logging.Logger:
    """A log without the handlers of the test run."""
    replacement = logging.Logger("funcmcp")  # noqa: LOG001 - one without a parent, whose handlers are not seen
    for module in ("log", "log_output"):
        monkeypatch.setattr(f"funcmcp._server.{module}.logger", replacement)
    return replacement
