"""The sign-ins of an `OAuthProxy` in PostgreSQL, which all instances of a server share.

Needs ``pip install "funcmcp[postgres]"``. While PostgreSQL can't be reached, every method raises StoreUnavailableError
in a bounded time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._adapters.postgres.link import PostgresLink
from funcmcp._public_names import public
from funcmcp._state.sign_ins import STORE

if TYPE_CHECKING:
    from funcmcp._adapters.postgres.link import Connection

_CREATE = """
CREATE TABLE IF NOT EXISTS funcmcp_sign_ins_1 (
  key text PRIMARY KEY, value text NOT NULL, expires timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS funcmcp_sign_ins_1_expires ON funcmcp_sign_ins_1 (expires);
"""
_GET = "SELECT value FROM funcmcp_sign_ins_1 WHERE key = %s AND expires > now()"
_TAKE = """
INSERT INTO funcmcp_sign_ins_1 AS record (key, value, expires) VALUES (%s, %s, now() + make_interval(secs => %s))
ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires = excluded.expires
WHERE record.expires <= now() OR record.value = excluded.value
"""
_REPLACE = """
UPDATE funcmcp_sign_ins_1 SET value = %(new)s, expires = now() + make_interval(secs => %(seconds)s)
WHERE key = %(key)s AND value IN (%(old)s, %(new)s) AND expires > now()
"""
_REMOVE_EXPIRED = """
DELETE FROM funcmcp_sign_ins_1 WHERE key IN (
  SELECT key FROM funcmcp_sign_ins_1 WHERE expires <= now() LIMIT 100 FOR UPDATE SKIP LOCKED
)
"""


@public("funcmcp.postgres")
class PostgresSignIns:
    """Sign-ins of all instances that share a database. The table is created if it does not exist.

    Args:
        url: A URL or a connection string of libpq, such as ``"postgresql://localhost/app"``.
        timeout: Seconds that one step may take, connecting included.

    Raises:
        ValueError: The URL is not valid.
    """

    shared: bool = True

    def __init__(self, url: str, *, timeout: float = 5.0) -> None:
        self._link = PostgresLink(url, timeout=timeout, prepare=_create_table, store=STORE)

    async def get(self, key: str) -> str | None:
        """See `SignInStore.get`."""

        async def read(connection: Connection) -> str | None:
            row = await (await connection.execute(_GET, (key,))).fetchone()
            return None if row is None else str(row[0])

        return await self._link.do(read)

    async def take(self, key: str, value: str, seconds: float) -> bool:
        """See `SignInStore.take`."""

        async def write(connection: Connection) -> bool:
            await connection.execute(_REMOVE_EXPIRED)
            return (await connection.execute(_TAKE, (key, value, seconds))).rowcount > 0

        return await self._link.do(write)

    async def replace(self, key: str, old: str, new: str, seconds: float) -> bool:
        """See `SignInStore.replace`."""
        values = {"key": key, "old": old, "new": new, "seconds": seconds}

        async def write(connection: Connection) -> bool:
            return (await connection.execute(_REPLACE, values)).rowcount > 0

        return await self._link.do(write)

    async def remove(self, key: str) -> None:
        """See `SignInStore.remove`."""

        async def write(connection: Connection) -> None:
            await connection.execute("DELETE FROM funcmcp_sign_ins_1 WHERE key = %s", (key,))

        await self._link.do(write)

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self._link.aclose()


async def _create_table(connection: Connection) -> None:
    for statement in _CREATE.split(";")[:-1]:
        await connection.execute(statement)
