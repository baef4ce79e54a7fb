"""The orders sample for callers who have signed in: reading takes one scope, placing and cancelling orders another.

Run it in the folder of the repository with ``funcmcp run samples.signin.server:mcp``; see README.md.
"""

from __future__ import annotations

import functools
from typing import Any

from funcmcp import MCPServer, ServerInfo
from funcmcp.auth import JWKS, Auth, BearerTokens, ProtectedResource
from samples.orders import server as orders
from samples.orders.restaurant import Order, OrderService

from .settings import ISSUER, READ, SCOPES, URL, WRITE


def signed_in(url: str, issuer: str) -> MCPServer:
    """Return an orders server that accepts the tokens of an issuer.

    Args:
        url: The URL of the server, as clients use it. It is the audience of the tokens.
        issuer: The URL of the authorization server.
    """
    return with_auth(
        Auth(
            BearerTokens(issuer=issuer, audience=url, keys=JWKS(f"{issuer}/keys")),
            ProtectedResource(resource=url, authorization_servers=[issuer], scopes=SCOPES, name="Restaurant orders"),
            scopes=[READ],  # of all features; some require further scopes
        )
    )


def with_auth(auth: Auth) -> MCPServer:
    """Return an orders server with authentication."""
    mcp = MCPServer(
        "orders",
        version="1.0.0",
        instructions=orders.INSTRUCTIONS,
        auth=auth,
        info=ServerInfo(
            title=orders.TITLE,
            website_url=orders.WEBSITE,
            icons=[orders.ICON],
        ),
    )
    mcp.services.register_factory(OrderService, OrderService.connect, scope="app")
    _add_tools(mcp)
    _add_resources(mcp)
    mcp.prompt(completions={"dish": orders.item_names})(orders.suggest_meal)
    mcp.prompt(completions={"order_id": orders.order_ids})(orders.explain_order)
    return mcp


def _add_tools(mcp: MCPServer) -> None:
    for function in (orders.search_menu, orders.get_order, orders.sales_report):
        mcp.tool(read_only=True)(function)
    mcp.tool(destructive=False, idempotent=False, scopes=[WRITE])(orders.create_order)

    @mcp.tool(destructive=True, idempotent=False, scopes=[WRITE])
    @functools.wraps(orders.cancel_order)
    async def cancel_order(order_id: str, **arguments: Any) -> Order:
        cancelled = await orders.cancel_order(order_id, **arguments)
        mcp.notify_resource_updated(f"order://{order_id}")
        return cancelled


def _add_resources(mcp: MCPServer) -> None:
    mcp.resource("menu://today", mime_type=orders.JSON)(orders.menu)
    mcp.resource("menu://categories/{category}", mime_type=orders.JSON)(orders.menu_category)
    mcp.resource("menu://items/{item_id}", mime_type=orders.JSON, completions={"item_id": orders.item_ids})(
        orders.menu_item
    )
    mcp.resource_lister("menu")(orders.list_menu)
    mcp.resource("order://{order_id}", mime_type=orders.JSON, completions={"order_id": orders.order_ids})(orders.order)
    mcp.resource_lister("order")(orders.list_orders)


mcp = signed_in(URL, ISSUER)
