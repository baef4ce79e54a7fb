from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

from tests.postgres_server import postgres_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.postgres_server import PostgresServer


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as running:
        yield running


@pytest.fixture
def database(server: PostgresServer) -> str:
    """The URL of a database without tables."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS funcmcp_tasks_1")
    return server.url
