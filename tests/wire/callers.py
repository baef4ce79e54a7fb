"""A server that wants to know its callers, and callers with keys: what the wire tests of identity talk with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from funcmcp import Context, MCPServer
from funcmcp._auth.api_key import APIKeys
from funcmcp._auth.policy import Auth, Lists
from funcmcp._auth.protected_resource import ProtectedResource
from funcmcp._authoring.results.content import ResourceInfo
from tests.server_options import grouped
from tests.wire.peer import HANDSHAKE, Answer, Peer, exchange, initialize

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp._auth.principal import Principal

ALICE, BOB, BOBS_NEXT, CAROL = ("key-of-" + name * 4 for name in ("alice", "bobby", "bob2", "carol"))
METADATA = "https://orders.example.com/.well-known/oauth-protected-resource/mcp"
RESOURCE = ProtectedResource(
    resource="https://orders.example.com/mcp",
    authorization_servers=["https://login.example.com"],
    scopes=["orders.read", "orders.write"],
)
KEYS = APIKeys(
    {"alice": ALICE, "bob": [BOB, BOBS_NEXT], "carol": CAROL},
    header="authorization",
    scopes={"alice": ["orders.read", "mail"], "bob": ["orders.read", "orders.write"]},
)
"""Alice may read, Bob may write, too, and Carol has nothing but a key."""


@dataclass
class Shop:
    """A server with something for everybody, and a list of what has run."""

    mcp: MCPServer
    ran: list[str] = field(default_factory=list)

    def caller(self, key: str | None = None, revision: str = HANDSHAKE) -> Caller:
        """Return a caller without a session."""
        return Caller(self.mcp, revision, key=key)

    async def connected(self, key: str | None = None, revision: str = HANDSHAKE) -> Caller:
        """Return a caller with a session, where the era has them."""
        caller = self.caller(key, revision)
        if not caller.per_request:
            answer = await caller.post(initialize(revision))
            assert answer.status == 200, answer
            caller.session_id = answer.header("mcp-session-id")
        return caller


@dataclass
class Caller(Peer):
    """A peer with a key."""

    key: str | None = None

    def headers(self, message: object) -> dict[str, str]:
        """Return the headers that go with a message, with the key."""
        headers = super().headers(message)
        return headers if self.key is None else {**headers, "authorization": f"Bearer {self.key}"}

    async def get(self, headers: Mapping[str, str | None] | None = None, *, path: str = "/mcp") -> Answer:
        """Send GET, for what answers at once."""
        chosen = {**self.headers(None), "accept": "text/event-stream", **(headers or {})}
        pairs = [(name, value) for name, value in chosen.items() if value is not None]
        return await exchange(self.app, "GET", pairs, path=path).answer()


def open_shop(
    lists: Lists = "closed",
    *,
    anonymous: bool = True,
    scopes: tuple[str, ...] = (),
    origins: tuple[str, ...] = (),
    **options: Any,
) -> Shop:
    """Return a shop.

    Args:
        lists: who gets lists.
        anonymous: whether there is something for callers without a key.
        scopes: that every principal needs.
        origins: of pages that may call.
        options: of the server.
    """
    auth = Auth(KEYS, RESOURCE, lists=lists, scopes=scopes)
    shop = Shop(MCPServer("Shop", auth=auth, **grouped(allowed_origins=origins, **options)))
    _add_tools(shop, anonymous=anonymous)
    _add_resources(shop, anonymous=anonymous)
    _add_prompts(shop, anonymous=anonymous)
    return shop


def _name(principal: Principal | None) -> str:
    return "nobody" if principal is None else principal.subject


def _add_tools(shop: Shop, *, anonymous: bool) -> None:
    mcp, ran = shop.mcp, shop.ran

    @mcp.tool(allow_anonymous=anonymous)
    async def hours(context: Context) -> str:
        ran.append("hours")
        return _name(context.principal)

    @mcp.tool
    async def whoami(context: Context) -> str:
        ran.append("whoami")
        return _name(context.principal)

    @mcp.tool(scopes=["orders.write"])
    async def cancel() -> str:
        ran.append("cancel")
        return "cancelled"

    @mcp.tool(scopes=["orders.read"], authorize=_is_bob)
    async def audit() -> str:
        ran.append("audit")
        return "audited"

    @mcp.tool(allow_anonymous=anonymous)
    async def ask(context: Context) -> str:
        ran.append("ask")
        answer = await context.elicit("What is your name?", {"type": "object", "properties": {}})
        return f"{_name(context.principal)} {answer.action}"


async def _is_bob(principal: Principal) -> bool:
    return principal.subject == "bob"


def _add_resources(shop: Shop, *, anonymous: bool) -> None:
    mcp, ran = shop.mcp, shop.ran

    @mcp.resource("shop://hours", allow_anonymous=anonymous)
    async def hours_page(context: Context) -> str:
        ran.append("shop://hours")
        return _name(context.principal)

    @mcp.resource("shop://staff", scopes=["orders.write"])
    async def staff() -> str:
        ran.append("shop://staff")
        return "staff"

    @mcp.resource("shop://orders/secret/{number}", scopes=["orders.write"])
    async def secret_order(number: str) -> str:
        ran.append("secret")
        return number

    @mcp.resource("shop://orders/{+path}", allow_anonymous=anonymous, completions={"path": lambda _: ["a"]})
    async def order(path: str) -> str:
        ran.append("order")
        return path

    @mcp.resource_lister("shop")
    async def orders() -> list[ResourceInfo]:
        ran.append("list")
        return [ResourceInfo(f"shop://orders/{name}", name.replace("/", " ")) for name in ("1", "secret/2")]


def _add_prompts(shop: Shop, *, anonymous: bool) -> None:
    mcp, ran = shop.mcp, shop.ran

    @mcp.prompt(allow_anonymous=anonymous, completions={"who": lambda value: [value + "!"]})
    async def greet(who: str, context: Context) -> str:
        ran.append("greet")
        return f"{who} {_name(context.principal)}"

    @mcp.prompt(scopes=["orders.write"], completions={"order": lambda _: ["secret-1"]})
    async def complain(order: str) -> str:
        ran.append("complain")
        return order
