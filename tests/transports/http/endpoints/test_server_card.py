"""The server card: what it says, who may read it, and caches."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from jsonschema import Draft202012Validator

import funcmcp.azure
from funcmcp import HTTPOptions, MCPServer, ProtocolOptions, ServerInfo
from funcmcp._client.http_messages import MemoryRequest
from funcmcp._serving.composition import runtime_of
from funcmcp.auth import APIKeys, Auth, ProtectedResource
from funcmcp.content import Icon
from funcmcp.http import Response, ServerCard
from funcmcp.state import MemoryRates
from funcmcp.testing import REVISIONS, Client

if TYPE_CHECKING:
    from funcmcp._transports.http.messages import HttpResponse
    from funcmcp.http import Request

PATH = "/mcp/server-card"
CARD = ServerCard("com.example/shop")
INFO = ServerInfo(
    title="The shop",
    description="Sells bread.",
    icons=[Icon("https://example.com/icon.png", mime_type="image/png", sizes=["48x48"])],
    website_url="https://example.com",
)

TEXT = {"type": "string", "minLength": 1, "maxLength": 100}
REMOTE = {
    "type": "object",
    "required": ["type", "url"],
    "properties": {
        "type": {"enum": ["sse", "streamable-http"]},
        "url": {"type": "string", "pattern": r"^https?://[^\s{}]+$"},
        "supportedProtocolVersions": {"type": "array", "items": {"enum": list(REVISIONS)}},
    },
    "additionalProperties": False,
}
SCHEMA = Draft202012Validator(
    {
        "type": "object",
        "required": ["$schema", "name", "version", "description"],
        "properties": {
            "$schema": {"const": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"},
            "name": {"type": "string", "maxLength": 200, "pattern": "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$"},
            "version": {"type": "string", "maxLength": 255},
            "title": TEXT,
            "description": TEXT,
            "websiteUrl": {"type": "string"},
            "icons": {"type": "array", "items": {"type": "object", "required": ["src"]}},
            "remotes": {"type": "array", "items": REMOTE},
        },
        "additionalProperties": False,
    }
)
"""What the published schema requires of the members that a card may have, and that there are no others."""


def server(card: ServerCard | None = CARD, *, name: str = "shop", auth: Any = None, **options: Any) -> MCPServer:
    info, protocol = options.pop("info", INFO), options.pop("protocol", None)
    http = HTTPOptions(server_card=card, **options)
    mcp = MCPServer(name, version="1.2.0", info=info, http=http, auth=auth, protocol=protocol)

    @mcp.tool
    def secret_tool() -> str:
        """Return what is not in the card."""
        return "x"

    return mcp


async def get(mcp: MCPServer, path: str = PATH, method: str = "GET", **fields: str) -> HttpResponse:
    lines = {"host": "127.0.0.1:8000", **fields}
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in lines.items()]
    return await runtime_of(mcp).exchange(MemoryRequest(method, path, pairs, b""))


async def card_of(mcp: MCPServer, path: str = PATH, **fields: str) -> dict[str, Any]:
    response = await get(mcp, path, **fields)
    assert response.status == 200, response.body
    assert isinstance(response.body, bytes)
    card: dict[str, Any] = json.loads(response.body)
    SCHEMA.validate(card)
    return card


async def test_a_card_says_what_the_server_says_when_a_client_connects() -> None:
    mcp = server()
    card = await card_of(mcp)
    assert card == {
        "$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
        "name": "com.example/shop",
        "version": "1.2.0",
        "title": "The shop",
        "description": "Sells bread.",
        "icons": [{"src": "https://example.com/icon.png", "mimeType": "image/png", "sizes": ["48x48"]}],
        "websiteUrl": "https://example.com",
        "remotes": [
            {
                "type": "streamable-http",
                "url": "http://127.0.0.1:8000/mcp",
                "supportedProtocolVersions": sorted(REVISIONS, reverse=True),
            }
        ],
    }
    async with Client(mcp) as client:
        info = client.server_info
        discovered = await client.request("server/discover")
    same = {name for name in info if name != "name"}
    assert {name: card[name] for name in same} == {name: info[name] for name in same}
    assert discovered["supportedVersions"] == card["remotes"][0]["supportedProtocolVersions"]


@pytest.mark.parametrize(
    ("url", "vary"), [(None, {"vary": "host, x-forwarded-proto"}), ("https://shop.example/mcp", {})]
)
async def test_the_response_is_for_pages_of_all_origins_and_for_caches(url: str | None, vary: dict[str, str]) -> None:
    mcp = server(ServerCard("com.example/shop", url=url))
    response = await get(mcp, origin="https://catalogue.example", host="127.0.0.1:8000")
    headers = dict(response.headers)
    etag = headers.pop("etag")
    assert headers == {
        "content-type": "application/mcp-server-card+json",
        "access-control-allow-origin": "*",
        "access-control-expose-headers": "ETag",
        "cache-control": "public, max-age=3600",
        "x-content-type-options": "nosniff",
        **vary,
    }
    assert dict((await get(mcp, if_none_match=etag)).headers).get("vary") == vary.get("vary")
    assert re.fullmatch('"[0-9a-f]{32}"', etag)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("form", ["{}", "W/{}", '"other", {}', "*"])
async def test_a_card_that_the_client_has_is_not_sent_again(form: str, method: str) -> None:
    mcp = server()
    etag = dict((await get(mcp)).headers)["etag"]
    response = await get(mcp, method=method, if_none_match=form.format(etag))
    assert (response.status, response.body, dict(response.headers)["etag"]) == (304, b"", etag)
    assert dict(response.headers)["access-control-allow-origin"] == "*"


async def test_the_entity_tag_changes_with_the_card() -> None:
    etags = {dict((await get(server(name=name, info=ServerInfo()))).headers)["etag"] for name in ("a", "b")}
    assert len(etags) == 2
    response = await get(server(), if_none_match=etags.pop())
    assert response.status == 200


async def test_preflight_requests_and_other_methods() -> None:
    preflight = {"origin": "https://catalogue.example", "access_control_request_method": "GET"}
    response = await get(server(), method="OPTIONS", **preflight)
    assert (response.status, dict(response.headers)["access-control-allow-headers"]) == (
        204,
        "Content-Type, If-None-Match",
    )
    refused = await get(server(), method="POST")
    assert (refused.status, dict(refused.headers)["allow"]) == (405, "GET, HEAD, OPTIONS")


async def test_allowed_origins_and_a_required_one_change_nothing() -> None:
    mcp = server(allowed_origins=["https://app.example"], require_origin=True)
    for fields in ({}, {"origin": "https://app.example"}, {"origin": "https://other.example"}):
        headers = dict((await get(mcp, **fields)).headers)
        assert (headers["access-control-allow-origin"], headers["access-control-expose-headers"]) == ("*", "ETag")


async def test_without_the_option_there_is_no_card() -> None:
    assert (await get(server(None))).status == 404
    locked = server(None, auth=Auth(APIKeys({"ada": "k" * 32})))
    assert (await get(locked)).status == 404


async def test_callers_without_credentials_get_the_card_and_no_feature() -> None:
    resource = ProtectedResource(resource="https://shop.example/mcp", authorization_servers=["https://id.example"])
    mcp = server(auth=Auth(APIKeys({"ada": "k" * 32}), resource=resource))
    card = await card_of(mcp)
    assert card["remotes"][0]["url"] == "https://shop.example/mcp"
    assert "secret_tool" not in json.dumps(card)
    assert (await get(mcp, "/mcp", "POST", content_type="application/json")).status == 401


async def test_host_and_rate_are_checked() -> None:
    assert (await get(server(), host="attacker.example")).status == 421
    mcp = server(rates=MemoryRates(0.001, 1))
    assert [(await get(mcp)).status for _ in range(2)] == [200, 429]


@pytest.mark.parametrize(
    ("options", "fields", "urls"),
    [
        ({"card": ServerCard("com.example/shop", url="https://shop.example/mcp")}, {}, ["https://shop.example/mcp"]),
        ({"allowed_hosts": ["shop.example"]}, {"host": "shop.example"}, ["http://shop.example/mcp"]),
        ({"allowed_hosts": ["*"]}, {"host": 'a"b\\c'}, None),
        ({"allowed_hosts": ["*"]}, {"host": "{tenant}.example"}, None),
        ({"proxies": 1}, {"x_forwarded_proto": "https"}, None),
        ({}, {"x_forwarded_proto": "https"}, None),
        ({}, {"x_forwarded_proto": "http"}, ["http://127.0.0.1:8000/mcp"]),
        ({"path": "/"}, {}, ["http://127.0.0.1:8000/"]),
        ({"sse": "/events"}, {}, ["http://127.0.0.1:8000/mcp", "http://127.0.0.1:8000/events"]),
    ],
    ids=["option", "allowed host", "quotes", "template", "proxy", "undeclared proxy", "no TLS", "the root", "HTTP+SSE"],
)
async def test_the_url_is_that_of_the_option_or_of_the_request_where_it_is_known(
    options: dict[str, Any], fields: dict[str, str], urls: list[str] | None
) -> None:
    path = options.get("path", "/mcp").rstrip("/") + "/server-card"
    card = await card_of(server(**options), path, **fields)
    assert [remote["url"] for remote in card["remotes"]] == urls if urls else "remotes" not in card


async def test_a_mounted_application_has_its_url() -> None:
    transport = httpx2.ASGITransport(app=server(), root_path="/the shop")
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        response = await client.get("/the%20shop/mcp/server-card")
    card = response.json()
    SCHEMA.validate(card)
    assert card["remotes"][0]["url"] == "http://127.0.0.1/the%20shop/mcp"


@pytest.mark.parametrize(
    ("info", "title", "description"),
    [
        (ServerInfo(), "shop", "shop"),
        (ServerInfo(title="T"), "T", "T"),
        (
            ServerInfo(title="t" * 300, description="many words " * 30),
            "t" * 97 + "...",
            ("many words " * 9)[:-7] + "...",
        ),
    ],
)
async def test_texts_fit_and_there_is_a_description(info: ServerInfo, title: str, description: str) -> None:
    card = await card_of(server(info=info))
    assert (card["title"], card["description"]) == (title, description)


async def test_only_the_revisions_that_are_served_are_in_the_card() -> None:
    oldest, newest = REVISIONS[0], REVISIONS[-1]
    card = await card_of(server(protocol=ProtocolOptions(revisions=[oldest, newest])))
    assert card["remotes"][0]["supportedProtocolVersions"] == [newest, oldest]


WELL_KNOWN = [
    "mcp/server-card.json",
    "mcp/server-card",
    "mcp-server-card",
    "mcp-server-card/mcp",
    "mcp.json",
    "mcp",
    "mcp/catalog.json",
    "ai-catalog.json",
]
"""What other servers and crawlers use or have used; a table in docs/guides/server-cards.md."""


async def test_other_places_are_free_for_custom_routes() -> None:
    mcp = server()
    assert {(await get(mcp, f"/.well-known/{name}")).status for name in WELL_KNOWN} == {404}

    @mcp.custom_route("/.well-known/mcp/server-card.json", methods=["GET"], allow_anonymous=True)
    async def card(_request: Request) -> Response:
        return Response(None, 308, {"location": PATH})

    response = await get(mcp, "/.well-known/mcp/server-card.json")
    assert (response.status, dict(response.headers)["location"]) == (308, PATH)
    with pytest.raises(ValueError, match="endpoint"):
        mcp.custom_route(PATH, ["GET"])(card)


async def test_a_function_app_has_the_card_without_a_key() -> None:
    func = pytest.importorskip("azure.functions")
    app: Any = funcmcp.azure.http_app(server(), route="shop")
    [function] = [f for f in app.get_functions() if f.get_function_name() == "shop_card"]
    trigger = function.get_trigger()
    assert (trigger.route, trigger.auth_level.value) == ("shop/server-card", "anonymous")
    url = "http://localhost:7071/api/shop/server-card"
    fields = {"host": "localhost:7071", "x-forwarded-proto": "https"}
    request = func.HttpRequest("GET", url, headers=fields, params={}, body=b"")
    response = await function.get_user_function()(request)
    card = json.loads(response.get_body())
    SCHEMA.validate(card)
    assert card["remotes"][0]["url"] == "https://localhost:7071/api/shop"
    names = {f.get_function_name() for f in funcmcp.azure.http_app(server(None), route="shop").get_functions()}
    assert "shop_card" not in names


WRONG: list[Any] = ["com.example/shop", True]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: ServerCard("shop"), ValueError, "such as 'com.example/orders'; got 'shop'"),
        (lambda: ServerCard("com.example/shop", url="shop.example"), ValueError, "absolute URL"),
        (partial(HTTPOptions, server_card=WRONG[0]), TypeError, r"ServerCard\('com.example/orders'\)"),
        (partial(HTTPOptions, server_card=WRONG[1]), TypeError, "got True"),
    ],
)
def test_wrong_options_are_errors(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()
