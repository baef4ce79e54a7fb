"""The servers that the fuzzer talks to: something of every kind, and one of them wants to know its callers."""

from __future__ import annotations

import base64
import datetime as dt  # noqa: TC003 - read at run time
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, Field

from funcmcp import Context, HTTPOptions, MCPServer, ProtocolOptions, ToolError
from funcmcp._auth.api_key import APIKeys
from funcmcp._auth.authenticator import first_of
from funcmcp._auth.easy_auth import EasyAuth
from funcmcp._auth.policy import Auth
from funcmcp._auth.protected_resource import ProtectedResource
from funcmcp._auth.tokens.bearer import BearerTokens
from funcmcp._auth.tokens.claims import TokenRules
from funcmcp._auth.tokens.keys import StaticKeys
from funcmcp._authoring.results.content import ResourceInfo
from funcmcp._server.limits import Limits
from funcmcp._serving.composition import runtime_of
from funcmcp.state import KeyRing, MemorySessions, SignedSessions

if TYPE_CHECKING:
    from funcmcp._transports.http.messages import Exchange, HttpRequest, HttpResponse

KEY = "a-good-key-of-the-fuzzer"
PAGE = "https://app.example.com"
_MOST_BYTES = 3000
_RESOURCE = ProtectedResource(
    resource="https://orders.example.com/guarded", authorization_servers=["https://login.example.com"], scopes=["read"]
)
_FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
_MIRRORED = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
    },
}


class Order(BaseModel):
    """What somebody orders."""

    item: Annotated[str, Field(min_length=1, pattern="^[a-z ]+$")]
    day: dt.date
    pieces: Annotated[int, Field(ge=1, le=9)] = 1
    notes: dict[str, list[float]] = {}


def serving() -> Exchange:
    """Return the exchange of two new servers."""
    keys = KeyRing([b"k" * 32])
    free = MCPServer(
        "Free",
        sessions=MemorySessions(keys=keys),
        protocol=ProtocolOptions(page_size=2),
        http=HTTPOptions(sse="/sse"),
        limits=Limits(message_bytes=_MOST_BYTES),
    )
    guarded = MCPServer(
        "Guarded",
        sessions=SignedSessions(keys),
        auth=_auth(),
        http=HTTPOptions(path="/guarded", allowed_origins=[PAGE]),
    )
    for server in (free, guarded):
        _add_tools(server)
        _add_resources(server)
        _add_prompts(server)

    async def serve(request: HttpRequest) -> HttpResponse:
        is_guarded = request.path.startswith(("/guarded", "/.well-known"))
        return await runtime_of(guarded if is_guarded else free).exchange(request)

    return serve


def _auth() -> Auth:
    secret = base64.urlsafe_b64encode(b"s" * 32).rstrip(b"=").decode("ascii")
    bearer = BearerTokens(
        "https://login.example.com",
        _RESOURCE.resource,
        keys=StaticKeys({"kty": "oct", "k": secret}),
        rules=TokenRules(algorithms=["HS256"]),
    )
    keys = APIKeys({"bob": KEY}, header="authorization", scopes={"bob": ["read"]})
    platform = EasyAuth(trust_platform=True, environ={"WEBSITE_AUTH_ENABLED": "true"})
    return Auth(first_of(keys, platform, bearer), _RESOURCE, lists="filtered")


def _add_tools(mcp: MCPServer) -> None:
    @mcp.tool(allow_anonymous=True)
    async def add(a: int, b: int) -> int:
        return a + b

    @mcp.tool(scopes=["read"])
    async def order(order: Order, when: dt.datetime | None = None, way: Literal["post", "van"] = "post") -> Order:
        return order

    @mcp.tool(input_schema=_MIRRORED, allow_anonymous=True)
    async def region(arguments: dict[str, Any]) -> dict[str, Any]:
        return arguments

    @mcp.tool(scopes=["write"])
    async def cancel(number: int) -> str:
        raise ToolError("This order is on its way.")

    @mcp.tool(allow_anonymous=True)
    async def ask(context: Context, a: int = 0, b: int = 0) -> str:
        answer = await context.elicit("Your name?", _FORM, key="name")
        return f"{answer.action} {a} {b}"

    @mcp.tool(allow_anonymous=True)
    async def report(context: Context, steps: Annotated[int, Field(ge=0, le=3)] = 1) -> str:
        for step in range(steps):
            await context.report_progress(step, steps)
            await context.log("warning", {"step": step})
        return "reported"


def _add_resources(mcp: MCPServer) -> None:
    @mcp.resource("shop://today", allow_anonymous=True)
    async def today() -> dict[str, Any]:
        return {"open": True}

    @mcp.resource("shop://orders/{number}{?lang,tag*}")
    async def order_page(number: int, lang: str = "en", tag: list[str] | None = None) -> str:
        return f"{number} {lang} {tag}"

    @mcp.resource("shop://files/{path*}/raw", completions={"path": lambda value: [value + "/a"]})
    async def raw(path: list[str], context: Context) -> bytes:
        return "/".join(path).encode()

    @mcp.resource_lister("shop")
    async def listed() -> list[ResourceInfo]:
        return [ResourceInfo(f"shop://orders/{number}", f"order {number}") for number in range(3)]


def _add_prompts(mcp: MCPServer) -> None:
    @mcp.prompt(allow_anonymous=True, completions={"who": lambda value: [value + "!"]})
    async def greet(who: str, way: Literal["short", "long"] = "short") -> str:
        return f"{way} {who}"

    @mcp.prompt
    async def plan(day: dt.date, people: int, context: Context) -> str:
        return f"{day} {people}"
