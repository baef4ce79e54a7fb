"""An API made with FastAPI, whose operations are tools as well: one application serves both.

Run it with ``uvicorn samples.fastapi_tools.app:app``. The API is at /orders, its documentation at /docs, and the MCP
endpoint at /mcp.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import FastAPI, HTTPException, Path
from pydantic import BaseModel, Field
from starlette.routing import Route

from funcmcp import MCPServer

mcp = MCPServer("orders", instructions="Read and place orders of the shop.")
app = FastAPI(
    title="Orders",
    lifespan=mcp.lifespan,  # FastAPI does not run the lifespan of an application in it
    generate_unique_id_function=lambda route: route.name,  # the names of functions become names of tools
)


class NewOrder(BaseModel):
    """What somebody orders."""

    dish: str = Field(description="The name of the dish", min_length=1)
    pieces: int = Field(default=1, description="How many of it", ge=1)


class Order(NewOrder):
    """An order."""

    number: int = Field(description="The number of the order")


orders: dict[int, Order] = {}
Number = Annotated[int, Path(description="The number of the order")]


@app.get("/orders/{number}", tags=["orders"])
async def get_order(number: Number) -> Order:
    """Return an order."""
    if number not in orders:
        raise HTTPException(404, "There is no such order.")
    return orders[number]


@app.post("/orders", tags=["orders"], status_code=201)
async def place_order(new: NewOrder) -> Order:
    """Place an order."""
    order = Order(number=len(orders) + 1, **new.model_dump())
    orders[order.number] = order
    return order


@app.delete("/orders", tags=["staff"], status_code=204)
async def delete_all_orders() -> None:
    """Delete all orders. It is not a tool."""
    orders.clear()


mcp.tools_from_asgi(app, exclude=["staff"])


@mcp.tool(read_only=True)
def busiest_dish() -> str:
    """Return the dish that was ordered most often. It is a tool, and not a part of the API."""
    pieces: dict[str, int] = {}
    for order in orders.values():
        pieces[order.dish] = pieces.get(order.dish, 0) + order.pieces
    return max(pieces, key=pieces.__getitem__, default="none")


app.router.routes.extend(Route(path, mcp) for path in mcp.paths)
