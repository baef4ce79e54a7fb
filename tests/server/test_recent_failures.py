"""The tracebacks of the last failures."""

from __future__ import annotations

import pytest

from funcmcp._server.log import log_failure
from funcmcp._server.recent_failures import RecentFailures
from tests.server.failures import parse_failure

pytestmark = pytest.mark.every_python("Exceptions and tracebacks have other texts.")


def test_only_the_last_failures_are_kept_and_of_each_the_end() -> None:
    failures = RecentFailures()
    for number in range(60):
        failures.add(f"id{number}", f"{number} " + "x" * 30_000 + " end")
    assert failures.text_of("id9") is None
    texts = [failures.text_of(f"id{number}") or "" for number in range(10, 60)]
    assert all(text.endswith("x end") and len(text) == 20_000 for text in texts)


def test_a_failure_is_kept_only_if_a_server_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    failures = RecentFailures()
    monkeypatch.setattr("funcmcp._server.log.recent_failures", failures)
    log_failure(parse_failure("x"), "ab12", "get_order")
    assert failures.text_of("ab12") is None
    failures.is_kept = True
    log_failure(parse_failure("x\x1b"), "ab12", "get_order")
    log_failure(parse_failure("x"), "", "lifespan")
    text = failures.text_of("ab12")
    assert text is not None
    assert text.endswith(r"RuntimeError: bad input: x\x1b")
    assert "json/decoder.py" not in text
    assert failures.text_of("") is None
