"""The restaurant behind the server: a menu, orders and sales, kept in a SQLite file.

The file is ``orders.db`` in this folder, or what the environment variable ORDERS_DB names; it is made, with a menu in
it, when it is first needed. Prices are in euros.
"""

from __future__ import annotations

import os
import sqlite3
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer
from pydantic.alias_generators import to_camel
from pydantic_core import to_json

from funcmcp import Format, ToolError

# What goes over the wire: names in camelCase, amounts of money as numbers.

Category = Literal["starter", "main", "dessert", "drink"]
Priority = Literal["low", "normal", "high", "urgent"]
Status = Literal["placed", "cancelled"]
Money = Annotated[Decimal, PlainSerializer(float, return_type=float)]


def _without_docstring(schema: dict[str, Any]) -> None:
    """Keep a model's docstring, which is for readers of this file, out of its schema."""
    schema.pop("description", None)


class Model(BaseModel):
    """A model whose fields are snake_case in Python and camelCase in JSON."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, json_schema_extra=_without_docstring)


class MenuItem(Model):
    """A dish or a drink."""

    item_id: str = Field(description="Menu item ID")
    name: str = Field(description="Name on the menu")
    category: Category = Field(description="Part of the menu")
    price: Money = Field(description="Price in euros")


class OrderItem(Model):
    """A line of an order as the customer gives it."""

    item_id: str = Field(description="Menu item ID")
    quantity: int = Field(description="Quantity to order", ge=1, le=100)
    modifications: str | None = Field(None, description="Special modifications")


class CreateOrder(Model):
    """What a customer orders: its fields are the arguments of ``create_order``."""

    customer_id: str = Field(description="The customer's unique identifier")
    items: list[OrderItem] = Field(description="Order line items")
    notes: str | None = Field(None, description="Special instructions or notes", max_length=500)
    priority: Priority = Field("normal", description="Order priority level")
    delivery_date: date | None = Field(None, description="Requested delivery date")
    notification_email: Annotated[str, Format("email")] | None = Field(
        None, description="Customer email for notifications"
    )
    discount_percent: Decimal | None = Field(None, description="Discount percentage", ge=0, le=100)


class OrderLine(Model):
    """A line of an order with what it costs."""

    item_id: str = Field(description="Menu item ID")
    name: str = Field(description="Name on the menu")
    quantity: int = Field(description="Quantity ordered")
    price: Money = Field(description="Price of one in euros, when it was ordered")
    modifications: str | None = Field(description="Special modifications")


class Order(Model):
    """An order as it is kept."""

    order_id: str = Field(description="Order ID")
    customer_id: str = Field(description="The customer's unique identifier")
    status: Status = Field(description="Whether the order stands")
    placed_at: datetime = Field(description="When it was placed, in UTC")
    priority: Priority = Field(description="Order priority level")
    lines: list[OrderLine] = Field(description="What was ordered")
    discount_percent: Money = Field(description="Discount percentage")
    total: Money = Field(description="Price of all lines in euros, after the discount")
    delivery_date: date | None = Field(description="Requested delivery date")
    notification_email: str | None = Field(description="Customer email for notifications")
    notes: str | None = Field(description="Special instructions or notes")


class DaySales(Model):
    """What one day brought in; cancelled orders do not count."""

    day: date = Field(description="The day, in UTC")
    orders: int = Field(description="Orders of that day")
    revenue: Money = Field(description="Their total in euros")


class SalesReport(Model):
    """Sales day by day, and in sum."""

    days: list[DaySales] = Field(description="Each day of the report, the first one first")
    orders: int = Field(description="Orders of all days")
    revenue: Money = Field(description="Their total in euros")


def as_json(value: Any) -> str:
    """Return a model, or a list of them, as the JSON text that goes over the wire."""
    return to_json(value, by_alias=True).decode()


# Where it is kept: amounts are whole cents, because SQLite has no decimals.

SCHEMA = """
CREATE TABLE IF NOT EXISTS menu (item_id TEXT PRIMARY KEY, name TEXT, category TEXT, cents INTEGER) STRICT;
CREATE TABLE IF NOT EXISTS orders (
    order_id TEXT PRIMARY KEY, customer_id TEXT, status TEXT, placed_at TEXT, priority TEXT, discount_percent TEXT,
    total_cents INTEGER, delivery_date TEXT, notification_email TEXT, notes TEXT
) STRICT;
CREATE TABLE IF NOT EXISTS lines (
    order_id TEXT REFERENCES orders, item_id TEXT REFERENCES menu, quantity INTEGER, cents INTEGER, modifications TEXT
) STRICT;
CREATE INDEX IF NOT EXISTS lines_by_order ON lines (order_id);
CREATE INDEX IF NOT EXISTS orders_by_day ON orders (substr(placed_at, 1, 10))
"""
MENU = (
    ("bruschetta", "Bruschetta", "starter", 650),
    ("minestrone", "Minestrone", "starter", 720),
    ("margherita", "Pizza Margherita", "main", 990),
    ("diavola", "Pizza Diavola", "main", 1190),
    ("lasagne", "Lasagne al forno", "main", 1250),
    ("risotto", "Risotto ai funghi", "main", 1380),
    ("tiramisu", "Tiramisù", "dessert", 590),
    ("panna-cotta", "Panna cotta", "dessert", 550),
    ("lemonade", "Lemonade", "drink", 350),
    ("espresso", "Espresso", "drink", 240),
)
CENT = Decimal("0.01")
BUSY_SECONDS = 10.0
"""How long a writer waits for another one."""


class OrderService:
    """The restaurant's orders in a SQLite file. Any number of threads and processes may use the file at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._connection() as database:
            _switch_to_wal(database)
        with self._transaction() as database:  # of several processes that start at once, one at a time is in here
            for statement in SCHEMA.split(";"):
                database.execute(statement)
            if not database.execute("SELECT 1 FROM menu").fetchone():
                database.executemany("INSERT INTO menu VALUES (?, ?, ?, ?)", MENU)

    @classmethod
    def connect(cls) -> OrderService:
        """Open the file that ORDERS_DB names, or the one beside this module."""
        return cls(Path(os.environ.get("ORDERS_DB") or Path(__file__).with_name("orders.db")))

    def search(
        self, query: str = "", category: Category | None = None, max_price: Decimal | None = None
    ) -> list[MenuItem]:
        """Return the items whose name contains the query, cheapest first."""
        with self._connection() as database:
            rows = database.execute("SELECT * FROM menu ORDER BY cents, item_id").fetchall()
        items = [MenuItem(**dict(row), price=_money(row["cents"])) for row in rows]
        return [
            item
            for item in items
            if query.casefold() in item.name.casefold()
            and category in {None, item.category}
            and (max_price is None or item.price <= max_price)
        ]

    def item(self, item_id: str) -> MenuItem | None:
        """Return an item of the menu, or None if there is none of this ID."""
        return next((item for item in self.search() if item.item_id == item_id), None)

    def find(self, order_id: str) -> Order | None:
        """Return an order, or None if there is none of this ID."""
        with self._connection() as database:
            return _found(database, order_id)

    def get(self, order_id: str) -> Order:
        """Return an order; raise ToolError if there is none of this ID."""
        with self._connection() as database:
            return _order(database, order_id)

    def latest(self, count: int) -> list[Order]:
        """Return the orders that were placed last, the newest first."""
        with self._connection() as database:
            rows = database.execute("SELECT order_id FROM orders ORDER BY rowid DESC LIMIT ?", (count,)).fetchall()
            return [_order(database, row["order_id"]) for row in rows]

    def create(self, request: CreateOrder) -> Order:
        """Place an order: all of it, or, if anything in it is not on the menu, nothing."""
        order_id, discount = str(uuid.uuid4()), request.discount_percent or Decimal(0)
        with self._transaction() as database:
            prices = dict(database.execute("SELECT item_id, cents FROM menu").fetchall())
            unknown = sorted({item.item_id for item in request.items} - prices.keys())
            if unknown or not request.items:
                named = f"Not on the menu: {', '.join(unknown)}." if unknown else "An order needs at least one item."
                raise ToolError(f"{named} Find item IDs with search_menu.")
            gross = sum(prices[item.item_id] * item.quantity for item in request.items)
            net = (gross * (100 - discount) / 100).quantize(Decimal(1), ROUND_HALF_UP)
            now = datetime.now(UTC).isoformat(timespec="seconds")
            delivery = request.delivery_date.isoformat() if request.delivery_date else None
            paid = (str(discount), int(net))
            rest = (delivery, request.notification_email, request.notes)
            order = (order_id, request.customer_id, "placed", now, request.priority, *paid, *rest)
            database.execute("INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", order)
            for item in request.items:
                line = (order_id, item.item_id, item.quantity, prices[item.item_id], item.modifications)
                database.execute("INSERT INTO lines VALUES (?, ?, ?, ?, ?)", line)
            return _order(database, order_id)

    def cancel(self, order_id: str) -> Order:
        """Cancel an order; raise ToolError if there is none, or if it was cancelled before."""
        with self._transaction() as database:
            if _order(database, order_id).status == "cancelled":
                raise ToolError(f"Order {order_id} is cancelled already.")
            database.execute("UPDATE orders SET status = 'cancelled' WHERE order_id = ?", (order_id,))
            return _order(database, order_id)

    def sales(self, day: date) -> DaySales:
        """Return what was sold on one day (UTC)."""
        with self._connection() as database:
            orders, cents = database.execute(
                "SELECT count(*), coalesce(sum(total_cents), 0) FROM orders "
                "WHERE status = 'placed' AND substr(placed_at, 1, 10) = ?",
                (day.isoformat(),),
            ).fetchone()
        return DaySales(day=day, orders=orders, revenue=_money(cents))

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """Open a connection for one piece of work; what it did not commit is undone when it closes."""
        database = sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            database.row_factory = sqlite3.Row
            database.execute("PRAGMA foreign_keys = ON")
            yield database
        finally:
            database.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Do everything in the block or nothing. IMMEDIATE: what is read in it can't change before it is written."""
        with self._connection() as database:
            database.execute("BEGIN IMMEDIATE")
            yield database
            database.execute("COMMIT")


def _switch_to_wal(database: sqlite3.Connection) -> None:
    """Allow reads during a write. SQLite itself does not wait here for other processes that start just now."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _money(cents: int) -> Decimal:
    return cents * CENT


def _order(database: sqlite3.Connection, order_id: str) -> Order:
    order = _found(database, order_id)
    if order is None:
        raise ToolError(f"There is no order {order_id!r}.")
    return order


def _found(database: sqlite3.Connection, order_id: str) -> Order | None:
    row = database.execute("SELECT * FROM orders WHERE order_id = ?", (order_id,)).fetchone()
    if row is None:
        return None
    lines = database.execute(
        "SELECT lines.*, name FROM lines JOIN menu USING (item_id) WHERE order_id = ? ORDER BY lines.rowid", (order_id,)
    )
    kept = [OrderLine(**dict(line), price=_money(line["cents"])) for line in lines]
    return Order(**dict(row), total=_money(row["total_cents"]), lines=kept)
