"""A kitchen's order board over MCP, with a page for clients that show MCP Apps.

Run it with ``funcmcp run samples/apps/server.py``, or over stdio with ``python samples/apps/server.py``. The model
places orders and reads the board; where the client has the extension, the board is the page ``board.html``, and its
buttons call ``advance_order``. The orders live in this process's memory.

Source: extension ``io.modelcontextprotocol/ui`` (SEP-1865), revision 2026-01-26.
"""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import Annotated, Literal
from urllib.parse import quote

from pydantic import BaseModel, Field

from funcmcp import MCPServer, ServerInfo, ToolError
from funcmcp.content import UI, UIResource

Step = Literal["waiting", "cooking", "ready", "served"]
NEXT: dict[Step, Step] = {"waiting": "cooking", "cooking": "ready", "ready": "served"}

PAGE = Path(__file__).with_name("board.html")
BOARD = "ui://kitchen/board.html"


class Order(BaseModel):
    """What a table ordered, and how far the kitchen is."""

    number: int = Field(description="Number of the order, counted from 1")
    table: int = Field(description="Number of the table")
    dishes: list[str] = Field(description="Names of the dishes")
    note: str | None = Field(description="What the guest wishes")
    step: Step = Field(description="How far the kitchen is")


class Board(BaseModel):
    """All orders of today, oldest first."""

    orders: list[Order] = Field(description="The orders, oldest first")


class Kitchen:
    """The orders, safe to use from several threads."""

    def __init__(self) -> None:
        self._orders: dict[int, Order] = {}
        self._lock = Lock()

    def board(self) -> Board:
        """Return all orders as they are now."""
        with self._lock:
            return Board(orders=list(self._orders.values()))

    def place(self, table: int, dishes: list[str], note: str | None) -> Order:
        """Add an order at the end."""
        with self._lock:
            order = Order(number=len(self._orders) + 1, table=table, dishes=dishes, note=note, step="waiting")
            self._orders[order.number] = order
            return order

    def advance(self, number: int, shown: Step) -> Order:
        """Take an order one step on; raise ToolError if its step is no longer the one that was shown."""
        with self._lock:
            order = self._orders.get(number)
            if order is None:
                raise ToolError(f"There is no order {number}.")
            if order.step != shown:
                raise ToolError(f"Order {number} is {order.step}, not {shown}.")
            if shown not in NEXT:
                raise ToolError(f"Order {number} is {shown}; nothing comes after that.")
            self._orders[number] = order.model_copy(update={"step": NEXT[shown]})
            return self._orders[number]


POT = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path d="M2 6h12v8H2z" fill="#567"/></svg>'

mcp = MCPServer(
    "kitchen",
    version="1.0.0",
    instructions="Place orders and show the kitchen's board.",
    info=ServerInfo(
        title="Kitchen",
        website_url="https://restaurant.example.com/kitchen",
        icons=[{"src": f"data:image/svg+xml,{quote(POT)}", "mimeType": "image/svg+xml", "sizes": ["any"]}],
    ),
)
mcp.services.register_factory(Kitchen, Kitchen, scope="app")


@mcp.tool(read_only=True, ui=BOARD)
def order_board(kitchen: Kitchen) -> Board:
    """Show today's orders."""
    return kitchen.board()


@mcp.tool(destructive=False, idempotent=False)
def place_order(
    table: Annotated[int, Field(description="Number of the table", ge=1)],
    dishes: Annotated[list[str], Field(description="Names of the dishes", min_length=1)],
    kitchen: Kitchen,
    note: Annotated[str | None, Field(description="What the guest wishes", max_length=200)] = None,
) -> Order:
    """Place an order."""
    return kitchen.place(table, dishes, note)


@mcp.tool(destructive=False, idempotent=False, ui=UI(BOARD, visibility=["app"]))
def advance_order(
    number: Annotated[int, Field(description="Number of the order")],
    shown: Annotated[Step, Field(description="The step that the cook saw: two cooks who press at once count once")],
    kitchen: Kitchen,
) -> Order:
    """Take an order one step on."""
    return kitchen.advance(number, shown)


@mcp.resource(BOARD, ui=UIResource(prefers_border=True))
def board_page() -> str:
    """The board as a page; it loads nothing from anywhere, so that it needs no ``csp``."""
    return PAGE.read_text(encoding="utf-8")


if __name__ == "__main__":
    mcp.run()
