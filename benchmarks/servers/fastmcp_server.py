"""FastMCP: stateless, JSON answers."""

from __future__ import annotations

from typing import Any

from fastmcp import FastMCP
from models import Customer, Line, Receipt, dish_of, receipt_of, review_of
from settings import PLAIN, TOOLS, filler

server = FastMCP("bench", version="1.0.0")

if PLAIN:

    @server.tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool
    def create_order(customer: Customer, lines: list[Line]) -> Receipt:
        """Place an order."""
        return receipt_of(customer, lines)

else:

    @server.tool(name="add")
    async def async_add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool(name="create_order")
    async def async_create_order(customer: Customer, lines: list[Line]) -> Receipt:
        """Place an order."""
        return receipt_of(customer, lines)


@server.resource("menu://dishes/{number}", mime_type="application/json")
async def dish(number: int) -> dict[str, Any]:
    """Show a dish."""
    return dish_of(number)


@server.prompt
async def review(code: str) -> str:
    """Review code."""
    return review_of(code)


for number in range(TOOLS - 2):

    def fill(a: int, b: str, c: float = 1.0, number_: int = number) -> str:
        """Stand for one of many tools that nobody calls."""
        return filler(number_, a, b, c)

    server.tool(name=f"tool_{number}")(fill)

app = server.http_app(stateless_http=True, json_response=True)
