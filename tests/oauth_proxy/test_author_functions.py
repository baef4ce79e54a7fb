"""Functions of the author that fail or hang: an outage, one traceback a minute, and nobody is signed out."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._oauth_proxy import author_functions
from funcmcp.state import MemorySignIns
from tests.oauth_proxy.stage import Stage

if TYPE_CHECKING:
    from funcmcp.auth import User


class Database:
    """What a function asks.

    Attributes:
        is_away: Whether it raises an error.
        hangs: Whether it does not answer.
    """

    def __init__(self) -> None:
        self.is_away = self.hangs = False

    async def allow(self, user: User) -> bool:
        if self.hangs:
            await asyncio.sleep(600)
        if self.is_away:
            raise OSError(f"no route to the database for {user.subject}")
        return True

    async def claims(self, user: User) -> dict[str, Any]:
        return {"allowed": await self.allow(user)}


@pytest.fixture
def database() -> Database:
    return Database()


@pytest.mark.parametrize("option", ["allow", "claims"])
async def test_a_function_that_fails_is_an_outage_with_one_traceback_a_minute(
    option: str, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    stage = await Stage(**{option: getattr(database, option)}).with_client()
    database.is_away = True
    for _ in range(3):
        answer = await stage.exchange(await stage.code())
        assert (answer.status, answer.json["error"]) == (503, "temporarily_unavailable")
        assert "database" not in answer.text
    lines = [record for record in caplog.records if f"event=oauth_{option}_failed" in record.getMessage()]
    errors = [record for record in lines if record.levelno == logging.ERROR and record.exc_info is not None]
    assert len(errors) == 1
    assert "no route to the database" in caplog.text


async def test_a_decision_that_hangs_is_an_outage(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(author_functions, "_SECONDS", 0.01)
    stage = await Stage(allow=database.allow).with_client()
    database.hangs = True
    assert (await stage.exchange(await stage.code())).status == 503


@pytest.mark.parametrize("has_store", [False, True])
@pytest.mark.parametrize("option", ["allow", "claims"])
async def test_a_function_that_fails_at_a_refresh_signs_nobody_out(
    option: str, has_store: bool, database: Database
) -> None:
    store = MemorySignIns() if has_store else None
    stage = await Stage(store=store, **{option: getattr(database, option)}).with_client()
    stage.upstream.rotates = True
    token = (await stage.tokens())["refresh_token"]
    database.is_away = True
    assert [(await stage.refresh(token)).status for _ in range(2)] == [503, 503]
    database.is_away = False
    renewed = await stage.refresh(token)
    assert renewed.status == 200
    assert (await stage.refresh(renewed.json["refresh_token"])).status == 200
