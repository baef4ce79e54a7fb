"""Sign-ins in a real PostgreSQL."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import psycopg
import pytest

from funcmcp._adapters.postgres.sign_ins import PostgresSignIns
from funcmcp.state import StoreUnavailableError
from tests.patience import PATIENCE
from tests.state import sign_in_stores as stores

if TYPE_CHECKING:
    from pathlib import Path

    from tests.postgres_server import PostgresServer


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
