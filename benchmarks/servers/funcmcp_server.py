"""funcmcp with its default settings, but for the share of memory of its only client."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from models import Customer, Line, Receipt, dish_of, receipt_of, review_of
from settings import JWK, PLAIN, REVISIONS, STREAMS, TOOLS, filler

from funcmcp import Limits, MCPServer, ProtocolOptions

if TYPE_CHECKING:
    from funcmcp.auth import Authenticator


def authenticator() -> Authenticator | None:
    """Return what finds out who calls, where that is measured."""
    if JWK is None:
        return None
    from funcmcp.auth import BearerTokens, StaticKeys

    keys = StaticKeys(json.loads(JWK))
    return BearerTokens("https://login.example.com", "https://bench.example.com/mcp", keys=keys)


# One client holds thousands of streams, which is more than the share of a caller.
LIMITS = Limits(memory_bytes_per_principal=256 * 1024 * 1024)

PROTOCOL = ProtocolOptions(revisions=REVISIONS) if REVISIONS else None

app = MCPServer("bench", version="1.0.0", auth=authenticator(), limits=LIMITS, protocol=PROTOCOL)

if PLAIN:

    @app.tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @app.tool
    def create_order(customer: Customer, lines: list[Line]) -> Receipt:
        """Place an order."""
        return receipt_of(customer, lines)

else:

    @app.tool(name="add")
    async def async_add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @app.tool(name="create_order")
    async def async_create_order(customer: Customer, lines: list[Line]) -> Receipt:
        """Place an order."""
        return receipt_of(customer, lines)


@app.resource("menu://dishes/{number}")
async def dish(number: int) -> dict[str, Any]:
    """Show a dish."""
    return dish_of(number)


@app.prompt
async def review(code: str) -> str:
    """Review code."""
    return review_of(code)


if STREAMS:

    @app.tool
    async def change() -> None:
        """Tell all who listen that the dish has changed."""
        app.notify_resource_updated("menu://dishes/7")


for number in range(TOOLS - 2):

    def fill(a: int, b: str, c: float = 1.0, number_: int = number) -> str:
        """Stand for one of many tools that nobody calls."""
        return filler(number_, a, b, c)

    app.tool(f"tool_{number}")(fill)
