"""FastMCP's settings of the process."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from funcmcp.compat import FastMCP
from funcmcp.compat.fastmcp import settings
from funcmcp.compat.fastmcp.settings import Settings
from funcmcp.compat.fastmcp.utilities.tests import temporary_settings
from funcmcp.testing import Client


def test_a_change_holds_for_servers_that_are_made_afterwards() -> None:
    before = FastMCP("before")
    with temporary_settings(port=9000, streamable_http_path="/orders", stateless_http=True):
        changed = FastMCP("changed")
        own = FastMCP("own", port=9001)
    after = FastMCP("after")
    assert [server.settings.port for server in (before, changed, own, after)] == [8000, 9000, 9001, 8000]
    assert [server.settings.streamable_http_path for server in (changed, after)] == ["/orders", "/mcp"]
    assert [server.settings.stateless_http for server in (changed, after)] == [True, False]


@pytest.mark.parametrize(("masked", "shown"), [(True, False), (False, True)])
async def test_details_of_errors_are_masked_by_a_setting(masked: bool, shown: bool) -> None:
    with temporary_settings(mask_error_details=masked):
        mcp = FastMCP("shop")

    @mcp.tool
    def fail() -> str:
        raise ValueError("the password is 123")

    async with Client(mcp) as client:
        result = await client.call_tool("fail", {})
    assert ("password" in result.text) is shown


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("PORT", "9000", 9000),
        ("LOG_LEVEL", "debug", "DEBUG"),
        ("HTTP_ALLOWED_HOSTS", "a.example, b.example", ["a.example", "b.example"]),
        ("HTTP_SESSION_IDLE_TIMEOUT", "none", None),
        ("HTTP_HOST_ORIGIN_PROTECTION", "auto", "auto"),
    ],
)
def test_variables_are_the_defaults(name: str, text: str, expected: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"FASTMCP_{name}", text)
    assert Settings().get_setting(name.lower()) == expected


def test_invalid_settings_are_refused() -> None:
    with pytest.raises(ValidationError):
        Settings(http_session_idle_timeout=0)
    with pytest.raises(ValidationError):
        settings.transport = "pigeon"  # type: ignore[assignment] # what is refused
    with pytest.raises(AttributeError, match="Setting colour does not exist"):
        settings.set_setting("colour", "red")
