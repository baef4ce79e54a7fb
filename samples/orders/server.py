"""A restaurant that takes orders over MCP: a menu, orders and sales, kept in a SQLite file.

Run it with ``funcmcp run samples/orders/server.py``. The file is ``orders.db`` in this folder, or what the environment
variable ORDERS_DB names; it is made, with a menu in it, when it is first needed. Prices are in euros.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer
from pydantic.alias_generators import to_camel

from funcmcp import Arguments, Format, MCPServer, ToolContext, ToolError

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

    item_id: str
    name: str
    category: Category
    price: Money


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

    item_id: str
    name: str
    quantity: int
    price: Money
    modifications: str | None


class Order(Model):
    """An order as it is kept."""

    order_id: str
    customer_id: str
    status: Status
    placed_at: datetime
    priority: Priority
    lines: list[OrderLine]
    discount_percent: Money
    total: Money
    delivery_date: date | None
    notification_email: str | None
    notes: str | None


class DaySales(Model):
    """What one day brought in; cancelled orders do not count."""

    day: date
    orders: int
    revenue: Money


class SalesReport(Model):
    """Sales day by day, and in sum."""

    days: list[DaySales]
    orders: int
    revenue: Money


class Confirmation(Model):
    """The form that ``cancel_order`` shows to the user."""

    confirm: bool = Field(description="Really cancel this order?")


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

    def search(self, query: str, category: Category | None, max_price: Decimal | None) -> list[MenuItem]:
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

    def get(self, order_id: str) -> Order:
        """Return an order; raise ToolError if there is none of this ID."""
        with self._connection() as database:
            return _order(database, order_id)

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
    """Let readers go on while one writes. SQLite itself does not wait here for other processes that start just now."""
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
    row = database.execute("SELECT * FROM orders WHERE order_id = ?", (order_id,)).fetchone()
    if row is None:
        raise ToolError(f"There is no order {order_id!r}.")
    lines = database.execute(
        "SELECT lines.*, name FROM lines JOIN menu USING (item_id) WHERE order_id = ? ORDER BY lines.rowid", (order_id,)
    )
    kept = [OrderLine(**dict(line), price=_money(line["cents"])) for line in lines]
    return Order(**dict(row), total=_money(row["total_cents"]), lines=kept)


# The server.

mcp = MCPServer(
    "orders",
    version="1.0.0",
    title="Restaurant orders",
    instructions="Find item IDs with search_menu before you place an order. Prices are in euros, days in UTC.",
)
mcp.services.register_factory(OrderService, OrderService.connect, scope="app")

OrderID = Annotated[str, Field(description="Order ID")]
LONGEST_REPORT = 366


@mcp.tool(read_only=True)
def search_menu(
    orders: OrderService,
    query: Annotated[str, Field(description="Part of the name; everything if empty")] = "",
    category: Annotated[Category | None, Field(description="Only this part of the menu")] = None,
    max_price: Annotated[Decimal | None, Field(description="Highest price in euros", ge=0)] = None,
) -> list[MenuItem]:
    """Find dishes and drinks on the menu, cheapest first."""
    return orders.search(query, category, max_price)


@mcp.tool(read_only=True)
def get_order(order_id: OrderID, orders: OrderService) -> Order:
    """Get an order with its lines, total and status."""
    return orders.get(order_id)


@mcp.tool(destructive=False, idempotent=False)
def create_order(request: Arguments[CreateOrder], orders: OrderService) -> Order:
    """Place an order."""
    return orders.create(request)


@mcp.tool(destructive=True, idempotent=False)
async def cancel_order(
    order_id: OrderID,
    orders: OrderService,
    context: ToolContext,
    *,
    confirmed: Annotated[
        bool, Field(description="True once the user has agreed; counts only where the client can't ask the user")
    ] = False,
) -> Order:
    """Cancel an order, after asking the user."""
    order = await asyncio.to_thread(orders.get, order_id)
    if context.can("elicitation"):
        question = f"Cancel the order of {order.customer_id} over {order.total} euros?"
        answer = await context.elicit(question, Confirmation)
        confirmed = answer.content is not None and answer.content.confirm
        if not confirmed:
            raise ToolError("The user did not agree: the order stands.")
    if not confirmed:
        raise ToolError("Ask the user whether to cancel this order, then call again with confirmed=true.")
    return await asyncio.to_thread(orders.cancel, order_id)


@mcp.tool(read_only=True)
async def sales_report(
    first_day: Annotated[date, Field(description="First day of the report")],
    last_day: Annotated[date, Field(description="Last day of the report")],
    orders: OrderService,
    context: ToolContext,
) -> SalesReport:
    """Report sales day by day."""
    count = (last_day - first_day).days + 1
    if not 1 <= count <= LONGEST_REPORT:
        raise ToolError(f"A report has 1 to {LONGEST_REPORT} days; this would be {count}.")
    days = []
    for number in range(count):
        days.append(await asyncio.to_thread(orders.sales, first_day + timedelta(days=number)))
        await context.progress(number + 1, total=count, message=f"{days[-1].day}")
    return SalesReport(
        days=days, orders=sum(day.orders for day in days), revenue=sum((day.revenue for day in days), Decimal(0))
    )
