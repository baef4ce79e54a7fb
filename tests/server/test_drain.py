"""The time in which a server process ends."""

from __future__ import annotations

import pytest

from funcmcp import MCPServer
from funcmcp._server.drain import DEFAULT_SECONDS, VARIABLE, Drain, drain_seconds

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")


def test_the_environment_says_how_long_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert drain_seconds() == DEFAULT_SECONDS
    monkeypatch.setenv(VARIABLE, "25")
    assert drain_seconds() == 25
    assert Drain().remaining() == 25


@pytest.mark.parametrize("text", ["-1", "2.5", "long", "٣"])
def test_another_text_is_a_clear_error(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(ValueError, match=f"FUNCMCP_DRAIN_SECONDS must be a number of whole seconds; got {text!r}"):
        MCPServer("Shop")


def test_the_time_runs_from_the_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("funcmcp._server.drain.monotonic", lambda: now)
    drain = Drain()
    drain.seconds = 10
    assert drain.remaining() == 10
    drain.begin()
    now = 103.0
    drain.begin()
    assert drain.remaining() == 7
    now = 200.0
    assert drain.remaining() == 0
    now = 101.0
    drain.hurry()
    assert drain.remaining() == 0
    drain.reset()
    assert drain.remaining() == 10
