"""Sign-ins and state in a SQLite file."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import stat
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from funcmcp._state.tasks.sqlite_file import SQLiteFile
from funcmcp.state import SQLiteSignIns, SQLiteState, StoreUnavailableError
from funcmcp.testing import state_store_tests
from tests.clock import Clock
from tests.state import sign_in_stores as stores
from tests.state.key_value_stores import check_state

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from funcmcp.state import StateStore

pytestmark = pytest.mark.every_python("Python's own SQLite, dataclasses, JSON or character tables decide it.")


TIME = Clock()


@contextlib.asynccontextmanager
async def state_stores() -> AsyncIterator[Callable[[], StateStore]]:
    with tempfile.TemporaryDirectory(prefix="state-") as folder:
        yield partial(SQLiteState, Path(folder) / "state.db", clock=TIME)


async def wait(seconds: float) -> None:
    TIME.now += seconds


TestSQLiteState = state_store_tests(state_stores, wait=wait)


@pytest.fixture
async def pair(tmp_path: Path, clock: Clock) -> AsyncIterator[list[SQLiteSignIns]]:
    pair = [SQLiteSignIns(tmp_path / "sign-ins.db", clock=clock) for _ in range(2)]
    yield pair
    for store in pair:
        await store.aclose()


async def test_a_store_behaves_as_every_store_does(pair: list[SQLiteSignIns], clock: Clock) -> None:
    async def wait(seconds: float) -> None:
        clock.now += seconds

    await stores.check_values(*pair)
    await stores.check_repeated_writes(pair[0])
    await stores.check_races(*pair)
    await stores.check_records_of_version_0_1(pair[0])
    await stores.check_records_of_a_later_version(pair[0])
    await stores.check_expiry(pair[0], wait)
    assert pair[0].shared


async def test_state_is_as_in_every_store_and_may_be_in_the_file_of_sign_ins(
    pair: list[SQLiteSignIns], tmp_path: Path
) -> None:
    await pair[0].take(stores.KEYS[0], "c1.first", 60)
    states = [SQLiteState(tmp_path / "sign-ins.db") for _ in range(2)]
    await check_state(*states)
    assert await states[0].get(stores.KEYS[0]) is None
    assert states[0].shared
    for store in states:
        await store.aclose()


async def test_the_file_survives_a_restart_and_only_its_user_can_read_it(
    pair: list[SQLiteSignIns], tmp_path: Path
) -> None:
    here, later = pair
    await here.take(stores.KEYS[0], "c1.first", 60)
    await here.aclose()
    assert await later.get(stores.KEYS[0]) == "c1.first"
    assert stat.S_IMODE((tmp_path / "sign-ins.db").stat().st_mode) == 0o600


async def test_expired_records_do_not_stay_in_the_file(pair: list[SQLiteSignIns], tmp_path: Path, clock: Clock) -> None:
    for number in range(30):
        await pair[0].take(f"{number:064}", "c1.first", 60)
    clock.now += 61
    await pair[0].take(stores.KEYS[1], "c1.first", 60)
    with contextlib.closing(sqlite3.connect(tmp_path / "sign-ins.db")) as connection:
        assert connection.execute("SELECT count(*) FROM funcmcp_sign_ins_1").fetchone() == (1,)


async def test_a_file_that_can_not_be_used_is_an_error_and_one_line_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    path = tmp_path / "notes.txt"
    path.write_text("no database " * 1000, encoding="utf-8")
    store = SQLiteSignIns(path)
    for _ in range(2):
        with pytest.raises(StoreUnavailableError, match=r"The store of sign-ins of the server can't be used") as caught:
            await store.get(stores.KEYS[0])
        assert caught.value.retry_after is None
    (line,) = [record.message for record in caplog.records]
    assert line.startswith(f"The store of sign-ins {path} can't be used (")
    path.unlink()
    assert await store.take(stores.KEYS[0], "c1.first", 60)
    assert caplog.messages[-1] == f"The store of sign-ins {path} can be used again."
    await store.aclose()


async def test_a_read_does_not_end_an_outage_of_writes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "sign-ins.db"
    store = SQLiteSignIns(path)
    with monkeypatch.context() as patch:
        patch.setattr(SQLiteFile, "write", full_disk)
        for _ in range(3):  # as readiness checks do
            assert await store.get(stores.KEYS[0]) is None
            with pytest.raises(StoreUnavailableError):
                await store.check_writable()
    assert await store.get(stores.KEYS[0]) is None
    [line] = caplog.messages
    assert "(database or disk is full)" in line
    await store.check_writable()
    assert caplog.messages[1:] == [f"The store of sign-ins {path} can be used again."]
    await store.aclose()


async def full_disk(_file: object, _work: object) -> None:
    raise sqlite3.OperationalError("database or disk is full")
