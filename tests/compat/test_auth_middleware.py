"""FastMCP's middleware that checks the authorization of all components."""

from __future__ import annotations

from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from funcmcp.compat import (
    AuthContext,
    AuthMiddleware,
    AuthorizationError,
    FastMCP,
    StaticTokenVerifier,
    require_scopes,
    restrict_tag,
)
from funcmcp.testing import Client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

TOKENS: dict[str, dict[str, Any]] = {
    "admin": {"client_id": "app", "scopes": ["api", "admin", "audit"]},
    "reader": {"client_id": "app", "scopes": ["api"]},
}
HEADERS = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}


def refuse_audit(context: AuthContext) -> bool:
    if context.component.name == "audit":
        raise AuthorizationError("never")
    return True


def shop(**options: Any) -> FastMCP:
    mcp = FastMCP(
        "shop",
        middleware=[
            AuthMiddleware(require_scopes("api")),
            AuthMiddleware([restrict_tag("admin", scopes=["admin"])]),
            AuthMiddleware(restrict_tag("admin", scopes=["audit"])),
            AuthMiddleware(refuse_audit),
        ],
        **options,
    )
    mcp.tool(lambda: "soup", name="menu")
    mcp.tool(lambda: "closed", name="close", tags={"admin"})
    mcp.tool(lambda: "never", name="audit")
    mcp.resource("data://open", name="open")(lambda: "open")
    mcp.resource("data://closed", name="closed", tags={"admin"})(lambda: "closed")
    mcp.resource("item://{name}", name="item", tags={"admin"})(_item)
    mcp.prompt(lambda: "hi", name="greet", tags={"admin"})

    @mcp.completion
    async def complete(reference: Any, argument: Any, context: Any) -> Any:
        return SimpleNamespace(values=["soup"], total=None, has_more=False)

    return mcp


def _item(name: str) -> str:
    return name


@asynccontextmanager
async def sender(token: str) -> AsyncIterator[Callable[..., Any]]:
    """Yield a function that sends a request with a token, and returns the result, or the text of the error."""
    mcp: Any = shop(auth=StaticTokenVerifier(TOKENS), stateless_http=True)
    headers = {**HEADERS, "authorization": f"Bearer {token}"}
    transport = httpx2.ASGITransport(app=mcp)
    async with mcp.lifespan(), httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:

        async def send(method: str, **params: Any) -> Any:
            message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            answer = (await http.post("/mcp", json=message, headers=headers)).json()
            return answer["result"] if "result" in answer else answer["error"]["message"]

        yield send


LISTS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}


@pytest.mark.parametrize(
    ("token", "names"),
    [
        ("admin", [["menu", "close"], ["open", "closed"], ["item"], ["greet"]]),
        ("reader", [["menu"], ["open"], [], []]),
    ],
)
async def test_lists_have_what_all_checks_allow(token: str, names: list[list[str]]) -> None:
    async with sender(token) as send:
        for (method, member), expected in zip(LISTS.items(), names, strict=True):
            assert [item["name"] for item in (await send(method))[member]] == expected


async def test_calls_of_others_are_refused() -> None:
    missing = "insufficient scope (required: admin, audit)"
    async with sender("reader") as send:
        assert (await send("tools/call", name="menu"))["content"][0]["text"] == "soup"
        for name, reason in (("close", missing), ("nothing", "not found or not authorized"), ("audit", "never")):
            result = await send("tools/call", name=name)
            assert result["isError"]
            assert result["content"][0]["text"].endswith(reason)
        for uri in ("data://closed", "item://tea"):
            assert await send("resources/read", uri=uri) == f"Authorization failed for resource '{uri}': {missing}"
        assert await send("prompts/get", name="greet") == f"Authorization failed for prompt 'greet': {missing}"
    async with sender("admin") as send:
        assert (await send("resources/read", uri="item://tea"))["contents"][0]["text"] == "tea"
        assert (await send("prompts/get", name="greet"))["messages"][0]["content"]["text"] == "hi"


@pytest.mark.parametrize(("token", "values"), [("admin", ["soup"]), ("reader", [])])
async def test_arguments_of_refused_components_are_not_completed(token: str, values: list[str]) -> None:
    async with sender(token) as send:
        reference = {"type": "ref/resource", "uri": "item://{name}"}
        result = await send("completion/complete", ref=reference, argument={"name": "name", "value": "s"})
    assert result["completion"]["values"] == values


async def test_a_client_without_a_token_has_nothing() -> None:
    async with Client(shop()) as client:
        assert await client.list_tools() == []
        assert (await client.call_tool("menu")).is_error
