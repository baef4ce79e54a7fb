"""A shop whose products and orders are in a database: one engine for the server, one session for each call.

Run it with ``funcmcp run samples/database/server.py``. DATABASE_URL names the database; without it the shop is in the
SQLite file ``shop.db``.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import ForeignKey, func, insert, select, update
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from funcmcp import MCPServer, ToolError

STOCK = {"tea": 10, "coffee": 3}


class Base(DeclarativeBase):
    """The tables."""


class ProductRow(Base):
    """A product, and how much of it there is."""

    __tablename__ = "products"
    name: Mapped[str] = mapped_column(primary_key=True)
    stock: Mapped[int]


class OrderRow(Base):
    """An order of one product."""

    __tablename__ = "orders"
    number: Mapped[int] = mapped_column(primary_key=True)
    product: Mapped[str] = mapped_column(ForeignKey("products.name"))
    pieces: Mapped[int]


class Product(BaseModel):
    """A product of the shop."""

    model_config = ConfigDict(from_attributes=True)
    name: str = Field(description="The name")
    stock: int = Field(description="Pieces that can be ordered")


class Order(BaseModel):
    """An order."""

    model_config = ConfigDict(from_attributes=True)
    number: int = Field(description="The number of the order")
    product: str = Field(description="The name of the product")
    pieces: int = Field(description="How many pieces were ordered")


async def open_engine() -> AsyncIterator[AsyncEngine]:
    """Create the engine with its pool, and the tables if they are missing."""
    engine = create_async_engine(os.environ.get("DATABASE_URL", "sqlite+aiosqlite:///shop.db"), pool_pre_ping=True)
    try:
        for attempts_left in (3, 2, 1, 0):  # one for each table and for the stock, which another process may create now
            try:
                await create_tables(engine)
                break
            except DBAPIError:
                if not attempts_left:
                    raise
        yield engine
    finally:
        await engine.dispose()


async def create_tables(engine: AsyncEngine) -> None:
    """Create the tables that are missing, and the stock, in one transaction."""
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
        if await connection.scalar(select(func.count()).select_from(ProductRow)) == 0:
            await connection.execute(insert(ProductRow), [{"name": name, "stock": n} for name, n in STOCK.items()])


async def open_session(engine: AsyncEngine) -> AsyncIterator[AsyncSession]:
    """Open the session of a call: it is committed after a success, and rolled back after an exception."""
    async with AsyncSession(engine) as session, session.begin():
        yield session


mcp = MCPServer("shop", instructions="Look at the products, then place orders.")
mcp.services.register_factory(AsyncEngine, open_engine, scope="app")
mcp.services.register_factory(AsyncSession, open_session)


@mcp.tool(read_only=True)
async def list_products(session: AsyncSession) -> list[Product]:
    """List the products of the shop."""
    rows = await session.scalars(select(ProductRow).order_by(ProductRow.name))
    return [Product.model_validate(row) for row in rows]


@mcp.tool(destructive=False)
async def place_order(
    product: Annotated[str, Field(description="The name of a product", max_length=100, pattern=r"^[\w .-]+$")],
    pieces: Annotated[int, Field(description="How many pieces", ge=1, le=1000)],
    session: AsyncSession,
) -> Order:
    """Order pieces of a product."""
    row = OrderRow(product=product, pieces=pieces)
    taken = await session.execute(
        update(ProductRow)
        .where(ProductRow.name == product, ProductRow.stock >= pieces)  # two calls at once can't take the same piece
        .values(stock=ProductRow.stock - pieces)
        .returning(ProductRow.name)
    )
    if taken.one_or_none() is None:
        raise ToolError(f"There are not {pieces} pieces of {product!r}. Look at the products.")
    session.add(row)
    await session.flush()  # the database chooses the number
    return Order.model_validate(row)


if __name__ == "__main__":
    mcp.run()
