"""Sign-ins and state in PostgreSQL, which all instances of a server share.

Needs ``pip install "funcmcp[postgres]"``. While PostgreSQL can't be reached, every method raises StoreUnavailableError
in a bounded time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._adapters.postgres.link import PostgresLink
from funcmcp._adapters.postgres.presence import LOCKS
from funcmcp._objects.public_names import public
from funcmcp._state.key_values import SIGN_INS, STATE

if TYPE_CHECKING:
    from funcmcp._adapters.postgres.link import Connection
    from funcmcp._state.key_values import Purpose

_CREATE = """
CREATE TABLE IF NOT EXISTS {table} (
  key text PRIMARY KEY, value text NOT NULL, expires timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS {table}_expires ON {table} (expires);
"""
_IS_COMPLETE = "SELECT to_regclass('{table}_expires') IS NOT NULL"
_GET = "SELECT value FROM {table} WHERE key = %s AND expires > now()"
_TAKE = """
INSERT INTO {table} AS record (key, value, expires) VALUES (%s, %s, now() + make_interval(secs => %s))
ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires = excluded.expires
WHERE record.expires <= now() OR record.value = excluded.value
"""
_REPLACE = """
UPDATE {table} SET value = %(new)s, expires = now() + make_interval(secs => %(seconds)s)
WHERE key = %(key)s AND value IN (%(old)s, %(new)s) AND expires > now()
"""
_REMOVE_EXPIRED = """
DELETE FROM {table} WHERE key IN (
  SELECT key FROM {table} WHERE expires <= now() LIMIT 100 FOR UPDATE SKIP LOCKED
)
"""
_REMOVE = "DELETE FROM {table} WHERE key = %s"


class PostgresKeyValues:
    """Values of all instances that share a database. The table is created if it does not exist.

    Args:
        url: A URL or a connection string of libpq, such as ``"postgresql://localhost/app"``.
        timeout: Seconds that one step may take, connecting included.

    Raises:
        ValueError: The URL is not valid.
    """

    shared: bool = True
    _purpose: Purpose

    def __init__(self, url: str, *, timeout: float = 5.0) -> None:
        self._link = PostgresLink(url, timeout=timeout, prepare=self._create_table, store=self._purpose.store)

    async def get(self, key: str) -> str | None:
        """See `StateStore.get`."""

        async def read(connection: Connection) -> str | None:
            row = await (await connection.execute(self._statement(_GET), (key,))).fetchone()
            return None if row is None else str(row[0])

        return await self._link.do(read)

    async def take(self, key: str, value: str, seconds: float) -> bool:
        """See `StateStore.take`."""

        async def write(connection: Connection) -> bool:
            await connection.execute(self._statement(_REMOVE_EXPIRED))
            return (await connection.execute(self._statement(_TAKE), (key, value, seconds))).rowcount > 0

        return await self._link.do(write)

    async def replace(self, key: str, old: str, new: str, seconds: float) -> bool:
        """See `StateStore.replace`."""
        values = {"key": key, "old": old, "new": new, "seconds": seconds}

        async def write(connection: Connection) -> bool:
            return (await connection.execute(self._statement(_REPLACE), values)).rowcount > 0

        return await self._link.do(write)

    async def remove(self, key: str) -> None:
        """See `StateStore.remove`."""

        async def write(connection: Connection) -> None:
            await connection.execute(self._statement(_REMOVE), (key,))

        await self._link.do(write)

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self._link.aclose()

    async def _create_table(self, connection: Connection) -> None:
        """Create the table and its index. Complete ones need no right to do so."""
        row = await (await connection.execute(self._statement(_IS_COMPLETE))).fetchone()
        if row == (True,):
            return
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock(%s, 0)", (LOCKS,))  # two of them at once fail
            for statement in self._statement(_CREATE).split(";")[:-1]:
                await connection.execute(statement)

    def _statement(self, template: str) -> str:
        return template.format(table=self._purpose.table)


@public("funcmcp.postgres")
class PostgresSignIns(PostgresKeyValues):
    """Sign-ins of all instances that share a database. The table is created if it does not exist.

    Args:
        url: A URL or a connection string of libpq, such as ``"postgresql://localhost/app"``.
        timeout: Seconds that one step may take, connecting included.

    Raises:
        ValueError: The URL is not valid.
    """

    _purpose = SIGN_INS


@public("funcmcp.postgres")
class PostgresState(PostgresKeyValues):
    """The state of callers, for all instances that share a database. The table is created if it does not exist.

    Args:
        url: A URL or a connection string of libpq, such as ``"postgresql://localhost/app"``.
        timeout: Seconds that one step may take, connecting included.

    Raises:
        ValueError: The URL is not valid.
    """

    _purpose = STATE
