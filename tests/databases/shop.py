"""A shop whose tools write to a database through a session of their own, for funcmcp and for FastMCP.

Each function writes one line and then ends in its own way. A session commits if the call succeeds and rolls back if it
fails. `FAILING` and `SUCCEEDING` name the functions.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from sqlalchemy import Column, ForeignKey, MetaData, String, Table, event, select
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sqlalchemy.ext.asyncio import AsyncEngine

TABLES = MetaData()
ITEMS = Table("items", TABLES, Column("name", String, primary_key=True))
LINES = Table(
    "lines",
    TABLES,
    Column("text", String, nullable=False),
    # Checked at the commit, so that a commit can fail.
    Column("item", String, ForeignKey("items.name", deferrable=True, initially="DEFERRED")),
)


class Database:
    """A database and the sessions that are open.

    Args:
        url: The URL for SQLAlchemy.

    Attributes:
        no_sessions: Is set while no session is open.
        entered: Is set when a function waits to be cancelled.
    """

    def __init__(self, url: str) -> None:
        self.engine: AsyncEngine = create_async_engine(url)
        self.no_sessions = asyncio.Event()
        self.no_sessions.set()
        self._open_sessions = 0
        self.entered = asyncio.Event()
        if url.startswith("sqlite"):
            event.listen(self.engine.sync_engine, "connect", _check_foreign_keys)

    async def create(self) -> None:
        """Create the tables and one item."""
        async with self.engine.begin() as connection:
            await connection.run_sync(TABLES.create_all)
            await connection.execute(ITEMS.insert(), {"name": "tea"})

    async def texts(self) -> list[str]:
        """Return the texts of all lines, in order, after all sessions have ended."""
        await self.no_sessions.wait()
        async with self.engine.connect() as connection:
            return sorted((await connection.scalars(select(LINES.c.text))).all())

    @asynccontextmanager
    async def session(self) -> AsyncIterator[AsyncSession]:
        """Open a session that commits if the block succeeds, and rolls back if it raises."""
        self._open_sessions += 1
        self.no_sessions.clear()
        try:
            async with AsyncSession(self.engine) as session, session.begin():
                yield session
        finally:
            self._open_sessions -= 1
            if self._open_sessions == 0:
                self.no_sessions.set()


async def add(session: AsyncSession, text: str, item: str = "tea") -> None:
    """Write one line."""
    await session.execute(LINES.insert(), {"text": text, "item": item})


def _check_foreign_keys(connection: Any, _record: object) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()
