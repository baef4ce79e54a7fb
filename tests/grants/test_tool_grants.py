"""Tools that need a grant of their user at another service."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.grants.desk import Desk

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(monkeypatch)


async def test_a_user_is_asked_once_before_the_tool_runs(desk: Desk) -> None:
    browser = desk.browser()
    assert await desk.call(browser=browser) == "starred mcp"
    assert await desk.call() == "starred mcp"
    assert desk.received == ["token-1", "token-1"]
    (request,) = desk.authorizations
    assert request["scope"] == "repo"
    assert request["redirect_uri"] == "https://orders.example.com/grants/github/callback"
    assert "Github is connected" in browser.pages[-1].text
