"""Connections to a real PostgreSQL, and what happens when they fail."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from time import monotonic
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from funcmcp._adapters.postgres.link import PostgresLink
from funcmcp._state.sessions.store import StoreUnavailableError
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from funcmcp._adapters.postgres.link import Connection
    from tests.postgres_server import PostgresServer

pytestmark = pytest.mark.lowest("psycopg sends the queries.")


async def no_tables(connection: Connection) -> None:
    pass


@pytest.fixture
async def link(server: PostgresServer) -> AsyncIterator[PostgresLink]:
    link = PostgresLink(server.url, timeout=PATIENCE, prepare=no_tables)
    yield link
    await link.aclose()


async def value(connection: Connection, query: str) -> Any:
    cursor = await connection.execute(query)
    row = await cursor.fetchone()
    return None if row is None else row[0]


async def one(connection: Connection) -> Any:
    return await value(connection, "SELECT 1")


async def pid(connection: Connection) -> Any:
    return await value(connection, "SELECT pg_backend_pid()")


@pytest.mark.slow("It takes half a second or longer with a real store.")
async def test_event_loops_of_several_threads_have_connections_of_their_own(link: PostgresLink) -> None:
    async def in_another_loop() -> tuple[int, int]:
        pids = await link.do(pid), await link.do(pid)
        await link.aclose()
        return pids

    async def step(connection: Connection) -> tuple[int, tuple[int, int]]:
        return await pid(connection), await asyncio.to_thread(asyncio.run, in_another_loop())

    here, (first, second) = await link.do(step)
    assert first == second != here
    assert await link.do(pid) == here


@pytest.mark.slow("It takes half a second or longer with a real store.")
async def test_a_step_that_takes_too_long_fails_and_others_have_other_connections(server: PostgresServer) -> None:
    link = PostgresLink(server.url, timeout=0.5, prepare=no_tables)
    with pytest.raises(StoreUnavailableError) as refused:
        await link.do(lambda connection: value(connection, "SELECT pg_sleep(100)"))
    assert refused.value.nothing_written is False
    link.timeout = PATIENCE
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'")
    await asyncio.sleep(link._paused_until - monotonic() + 0.01)
    assert await link.do(one) == 1
    await link.aclose()


async def test_a_step_on_a_connection_that_broke_while_it_was_idle_is_done_on_another(
    link: PostgresLink, server: PostgresServer
) -> None:
    assert await link.do(one) == 1
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name ~ '^funcmcp '"
        )
    assert await link.do(one) == 1


async def test_the_first_attempt_of_a_step_has_ended_before_the_second_one_begins(
    link: PostgresLink, server: PostgresServer
) -> None:
    names: list[str] = []
    states: list[int] = []

    async def step(connection: Connection) -> None:
        count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{}'"
        states.extend([await value(connection, count.format(name)) for name in names])
        names.append(str(connection.info.parameter_status("application_name")))
        if len(names) == 1:
            await connection.execute("SELECT pg_advisory_lock(1)")
            # The server is busy with a statement, so it does not notice that the connection has ended.
            sleeping = asyncio.ensure_future(connection.execute("SELECT pg_sleep(1000)"))
            with psycopg.connect(server.url, autocommit=True) as other:
                query = "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(1000)'"
                while other.execute(query).fetchone() != (1,):
                    assert not sleeping.done()
                    await asyncio.sleep(0.01)
            with socket.socket(fileno=socket.dup(connection.fileno())) as copy:
                copy.shutdown(socket.SHUT_RDWR)
            await sleeping

    await link.do(step)
    assert (len(set(names)), states) == (2, [0])


async def test_a_statement_that_the_server_refuses_has_written_nothing_and_is_a_lasting_error(
    link: PostgresLink, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        with pytest.raises(StoreUnavailableError) as refused:
            await link.do(lambda connection: value(connection, "SELECT * FROM missing"))
        assert (refused.value.retry_after, refused.value.nothing_written) == (None, True)
    assert await link.do(one) == 1
    assert [message.partition(". ")[0] for message in caplog.messages] == [
        'PostgreSQL fails (relation "missing" does not exist)',
        "PostgreSQL is back.",
    ]


@pytest.mark.slow("It takes half a second or longer with a real store.")
async def test_transactions_that_block_each_other_are_repeated(link: PostgresLink) -> None:
    await link.do(lambda connection: value(connection, "SELECT pg_advisory_unlock_all()"))
    began = asyncio.Barrier(2)
    attempts = 0

    async def step(connection: Connection, first: int, second: int) -> None:
        nonlocal attempts
        attempts += 1
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock(7, %s)", (first,))
            if attempts <= 2:
                await began.wait()
            await connection.execute("SELECT pg_advisory_xact_lock(7, %s)", (second,))

    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(link.do(lambda c: step(c, 1, 2)), link.do(lambda c: step(c, 2, 1)))
    assert attempts == 3


async def test_a_server_that_is_missing_fails_at_once_and_then_without_an_attempt(tmp_path: Any) -> None:
    link = PostgresLink(f"postgresql:///app?host={tmp_path}", timeout=PATIENCE, prepare=no_tables)
    for _ in range(2):
        with pytest.raises(StoreUnavailableError) as refused:
            await link.do(one)
        assert (refused.value.retry_after, refused.value.nothing_written) == (1, True)


def test_a_link_works_in_one_event_loop_after_another(server: PostgresServer) -> None:
    link = PostgresLink(server.url, timeout=PATIENCE, prepare=no_tables)

    async def use() -> Any:
        try:
            return await link.do(one)
        finally:
            await link.aclose()

    assert [asyncio.run(use()) for _ in range(2)] == [1, 1]


def test_the_error_without_the_package_says_how_to_install_it() -> None:
    code = "import sys; sys.modules['psycopg'] = None; import funcmcp.tasks; funcmcp.tasks.PostgresTasks"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert 'ModuleNotFoundError: PostgreSQL needs: pip install "funcmcp[postgres]"' in run.stderr


@pytest.mark.parametrize("statement", ["PREPARE again AS SELECT 1", "EXECUTE missing"])
async def test_errors_of_a_pooler_that_mixes_connections_name_the_remedy(
    statement: str, link: PostgresLink, caplog: pytest.LogCaptureFixture
) -> None:
    async def step(connection: Connection) -> None:
        await connection.execute("PREPARE again AS SELECT 1")
        await connection.execute(statement)

    with pytest.raises(StoreUnavailableError):
        await link.do(step)
    (message,) = caplog.messages
    assert "Use it in session mode, or connect to the server itself" in message
