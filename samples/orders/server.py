"""A restaurant that takes orders over MCP.

Serve HTTP with ``funcmcp run samples/orders/server.py``. A client that starts its server runs
``python -m samples.orders.server`` in the repository's folder, and talks to it over stdio. ``restaurant.py`` has the
restaurant itself.
"""

from __future__ import annotations

import asyncio
from datetime import date, timedelta
from decimal import Decimal
from typing import Annotated, Literal
from urllib.parse import quote

from pydantic import Field

from funcmcp import Arguments, Context, InvalidParams, MCPServer, ServerInfo, ToolError, content

from .restaurant import Category, CreateOrder, MenuItem, Model, Order, OrderService, SalesReport, as_json

TITLE = "Restaurant orders"
INSTRUCTIONS = "Find item IDs with search_menu before you place an order. Prices are in euros, days in UTC."
WEBSITE = "https://restaurant.example.com"
PLATE = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">'
    '<circle cx="8" cy="8" r="7" fill="#ddd"/><circle cx="8" cy="8" r="4" fill="#c43"/></svg>'
)
ICON = {"src": f"data:image/svg+xml,{quote(PLATE)}", "mimeType": "image/svg+xml", "sizes": ["any"]}

mcp = MCPServer(
    "orders",
    version="1.0.0",
    instructions=INSTRUCTIONS,
    info=ServerInfo(title=TITLE, website_url=WEBSITE, icons=[ICON]),
)
mcp.services.register_factory(OrderService, OrderService.connect, scope="app")

OrderID = Annotated[str, Field(description="Order ID")]
JSON = "application/json"
LONGEST_REPORT = 366
LISTED = 100
"""Orders that clients see in lists; older ones can still be read."""


class Confirmation(Model):
    """The form that ``cancel_order`` shows to the user."""

    confirm: bool = Field(description="Really cancel this order?")


# Tools


@mcp.tool(read_only=True)
def search_menu(
    orders: OrderService,
    query: Annotated[str, Field(description="Part of the name; everything if empty")] = "",
    category: Annotated[Category | None, Field(description="Only this part of the menu")] = None,
    max_price: Annotated[Decimal | None, Field(description="Highest price in euros", ge=0)] = None,
) -> Annotated[list[MenuItem], Field(description="Dishes and drinks, cheapest first")]:
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
    context: Context,
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
    cancelled = await asyncio.to_thread(orders.cancel, order_id)
    mcp.notify_resource_updated(f"order://{order_id}")
    return cancelled


@mcp.tool(read_only=True)
async def sales_report(
    first_day: Annotated[date, Field(description="First day of the report")],
    last_day: Annotated[date, Field(description="Last day of the report")],
    orders: OrderService,
    context: Context,
) -> SalesReport:
    """Report sales day by day."""
    count = (last_day - first_day).days + 1
    if not 1 <= count <= LONGEST_REPORT:
        raise ToolError(f"A report has 1 to {LONGEST_REPORT} days; this would be {count}.")
    days = []
    for number in range(count):
        days.append(await asyncio.to_thread(orders.sales, first_day + timedelta(days=number)))
        await context.report_progress(number + 1, total=count, message=f"{days[-1].day}")
    return SalesReport(
        days=days, orders=sum(day.orders for day in days), revenue=sum((day.revenue for day in days), Decimal(0))
    )


# Completions: what clients suggest while the user writes


def item_ids(begun: str, orders: OrderService) -> list[str]:
    """Complete the ID of a dish or a drink."""
    return [item.item_id for item in orders.search() if item.item_id.startswith(begun.casefold())]


def item_names(begun: str, orders: OrderService) -> list[str]:
    """Find the names of dishes and drinks by a part of them."""
    return [item.name for item in orders.search(begun)]


def order_ids(begun: str, orders: OrderService) -> list[str]:
    """Complete the ID of an order, the newest first."""
    return [order.order_id for order in orders.latest(LISTED) if order.order_id.startswith(begun.casefold())]


# Resources: what an application can show or give its model without calling a tool


@mcp.resource("menu://today", mime_type=JSON)
def menu(orders: OrderService) -> list[MenuItem]:
    """The whole menu, cheapest first."""
    return orders.search()


@mcp.resource("menu://categories/{category}", mime_type=JSON)
def menu_category(category: Category, orders: OrderService) -> list[MenuItem]:
    """One part of the menu, cheapest first."""
    return orders.search(category=category)


@mcp.resource("menu://items/{item_id}", mime_type=JSON, completions={"item_id": item_ids})
def menu_item(item_id: str, orders: OrderService) -> MenuItem | None:
    """A dish or a drink."""
    return orders.item(item_id)


@mcp.resource_lister("menu")
def list_menu(orders: OrderService) -> list[content.ResourceInfo]:
    """List every dish and drink."""
    return [
        content.ResourceInfo(
            f"menu://items/{item.item_id}",
            item.item_id,
            title=item.name,
            description=f"{item.name}: a {item.category} for {item.price} euros",
            mime_type=JSON,
        )
        for item in orders.search()
    ]


@mcp.resource("order://{order_id}", mime_type=JSON, completions={"order_id": order_ids})
def order(order_id: str, orders: OrderService) -> Order | None:
    """An order; those who subscribe to it hear when it is cancelled."""
    return orders.find(order_id)


@mcp.resource_lister("order")
def list_orders(orders: OrderService) -> list[content.ResourceInfo]:
    """List the newest orders."""
    return [
        content.ResourceInfo(
            f"order://{order.order_id}",
            order.order_id,
            title=f"Order of {order.customer_id} over {order.total} euros",
            description=f"An order with {len(order.lines)} lines, {order.status}",
            mime_type=JSON,
            annotations={"lastModified": order.placed_at.isoformat()},
        )
        for order in orders.latest(LISTED)
    ]


# Prompts: what the user can pick from a menu of the application


@mcp.prompt(completions={"dish": item_names})
def suggest_meal(
    guests: Annotated[int, Field(description="How many people eat", ge=1, le=20)],
    orders: OrderService,
    dish: Annotated[str | None, Field(description="A dish that has to be part of it")] = None,
    budget: Annotated[Decimal | None, Field(description="The most that it may cost, in euros", gt=0)] = None,
) -> list[str | content.EmbeddedResource]:
    """Put a meal together from the menu."""
    items = orders.search()
    if dish is not None and dish not in {item.name for item in items}:
        raise InvalidParams(f"Not on the menu: {dish}.")
    wishes = [f"Suggest a meal for {guests} from this menu."]
    if dish is not None:
        wishes.append(f"{dish} has to be part of it.")
    if budget is not None:
        wishes.append(f"It may cost at most {budget} euros in all.")
    return [content.EmbeddedResource("menu://today", text=as_json(items), mime_type=JSON), " ".join(wishes)]


@mcp.prompt(completions={"order_id": order_ids})
def explain_order(
    order_id: OrderID,
    orders: OrderService,
    language: Annotated[
        Literal["English", "French", "German", "Italian"], Field(description="Language of the explanation")
    ] = "English",
) -> list[str | content.EmbeddedResource]:
    """Explain an order to the customer."""
    found = orders.find(order_id)
    if found is None:
        raise InvalidParams(f"There is no order {order_id!r}.")
    resource = content.EmbeddedResource(f"order://{order_id}", text=as_json(found), mime_type=JSON)
    return [resource, f"Explain this order and its state to the customer, in {language}."]


if __name__ == "__main__":
    mcp.run()
