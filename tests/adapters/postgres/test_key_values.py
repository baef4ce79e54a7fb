"""Sign-ins and state in a real PostgreSQL."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import psycopg
import pytest

from funcmcp._adapters.postgres.key_values import _CREATE, PostgresSignIns, PostgresState
from funcmcp._adapters.postgres.presence import LOCKS
from funcmcp.state import StoreUnavailableError
from funcmcp.testing import state_store_tests
from tests.patience import PATIENCE
from tests.state import sign_in_stores as stores
from tests.state.key_value_stores import check_state

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from funcmcp.state import StateStore
    from tests.postgres_server import PostgresServer


URLS: list[str] = []
"""The URL of the running server."""


@pytest.fixture(scope="module", autouse=True)
def url(server: PostgresServer) -> None:
    URLS[:] = [server.url]


@asynccontextmanager
async def state_stores() -> AsyncIterator[Callable[[], StateStore]]:
    (url,) = URLS
    yield lambda: PostgresState(url, timeout=PATIENCE)


TestPostgresState = state_store_tests(state_stores)


@pytest.mark.slow("It takes half a second or longer with a real store.")
async def test_a_store_behaves_as_every_store_does_and_removes_what_has_expired(server: PostgresServer) -> None:
    pair = [PostgresSignIns(server.url, timeout=PATIENCE) for _ in range(2)]
    await stores.check_values(*pair)
    await stores.check_repeated_writes(pair[0])
    await stores.check_races(*pair)
    await stores.check_records_of_version_0_1(pair[0])
    await stores.check_records_of_a_later_version(pair[0])
    await stores.check_expiry(pair[0], asyncio.sleep)
    await pair[1].take(stores.KEYS[10], "c1.first", 60)
    for store in pair:
        assert store.shared
        await store.aclose()
    with psycopg.connect(server.url) as connection:
        rows = connection.execute("SELECT count(*) FROM funcmcp_sign_ins_1 WHERE expires <= now()").fetchall()
    assert rows == [(0,)]


@pytest.mark.slow("It takes half a second or longer with a real store.")
async def test_state_is_as_in_every_store(server: PostgresServer) -> None:
    states = [PostgresState(server.url, timeout=PATIENCE) for _ in range(2)]
    await check_state(*states)
    for store in states:
        assert store.shared
        await store.aclose()


async def test_two_processes_create_the_table_at_the_same_time(server: PostgresServer) -> None:
    store = PostgresState(server.url, timeout=PATIENCE)
    waiting = (
        "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'funcmcp %' AND wait_event_type = 'Lock'"
    )
    with (
        psycopg.connect(server.url, autocommit=True) as other,
        psycopg.connect(server.url, autocommit=True) as observer,
    ):
        other.execute("DROP TABLE IF EXISTS funcmcp_state_1")
        with other.transaction():
            other.execute("SELECT pg_advisory_xact_lock(%s, 0)", (LOCKS,))
            for statement in _CREATE.format(table="funcmcp_state_1").split(";")[:-1]:
                other.execute(statement)
            reading = asyncio.create_task(store.get("key"))
            while observer.execute(waiting).fetchall() == [(0,)]:  # noqa: ASYNC110 - another process changes it
                await asyncio.sleep(0.01)
    assert await reading is None
    await store.aclose()


async def test_a_database_that_can_not_be_reached_is_an_error_that_names_the_store(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    store = PostgresSignIns(f"postgresql:///app?host={tmp_path}", timeout=PATIENCE)
    with pytest.raises(StoreUnavailableError, match="The store of sign-ins of the server is unavailable now"):
        await store.get(stores.KEYS[0])
    assert "Requests that need the store of sign-ins are answered with 503." in caplog.text
    with pytest.raises(ValueError, match="A store in PostgreSQL needs a URL"):
        PostgresSignIns("unknown=1")
