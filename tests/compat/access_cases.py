"""Prints what callers see and may do: ``python -m tests.compat.access_cases`` needs FastMCP.

Each case is a server, and requests to it over HTTP. An outcome has the answer to each of them: sorted names for a list
(none for one that is refused), the text for a feature, "refused" for an error, and the status for a refusal of HTTP.
"""

# mypy: disable-error-code="untyped-decorator"
# ruff: noqa: B008 - dependencies are defaults in these frameworks

from __future__ import annotations

import asyncio
import json
import logging
import warnings
from typing import Any, NamedTuple

import httpx2

URL = "http://127.0.0.1:8000"
HEADERS = {
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2025-11-25",
    "User-Agent": "test",
    "Authorization": "Bearer reader",
    "Cookie": "session=secret",
    "X-Shop": "1",
    "Proxy-Authorization": "Basic secret",
    "TE": "trailers",
    "Expect": "nothing",
    "Keep-Alive": "timeout=5",
    "Proxy-Connection": "close",
    "Proxy-Authenticate": "Basic",
    "X-Api-Key": "key",
    "X-Forwarded-For": "203.0.113.7",
}
LISTS = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")
TOKENS: dict[str, dict[str, Any]] = {
    "reader": {"client_id": "app", "scopes": ["read"], "sub": "ann", "role": "user", "level": 3},
    "admin": {"client_id": "app", "scopes": ["write", "read"], "sub": "bob", "role": "admin", "expires_at": 4102444800},
    "nameless": {"client_id": "robot", "scopes": ["read"]},
    "weak": {"client_id": "app", "scopes": []},
}


class Names(NamedTuple):
    """What a framework has."""

    server: Any
    middleware: Any
    tool_error: Any
    verifier: Any
    dependencies: Any


class Request(NamedTuple):
    """A request, and the headers in which it differs from the others."""

    method: str
    params: dict[str, Any]
    headers: dict[str, str | None] = {}  # noqa: RUF012 - of a tuple


def call(tool: str, headers: dict[str, str | None] | None = None, **arguments: Any) -> Request:
    return Request("tools/call", {"name": tool, "arguments": arguments}, headers or {})


def read(uri: str) -> Request:
    return Request("resources/read", {"uri": uri})


def get(name: str) -> Request:
    return Request("prompts/get", {"name": name})


SHOP_REQUESTS = (
    *(Request(method, {}) for method in LISTS),
    *(call("notes"), call("other"), call("versioned")),
    *(read("data://notes"), read("data://other"), read("shop://notes"), read("shop://free")),
    *(read("item://notes"), read("item://5")),
    *(get("notes"), get("other")),
    Request(
        "completion/complete", {"ref": {"type": "ref/prompt", "name": "notes"}, "argument": {"name": "a", "value": ""}}
    ),
)


def shop(names: Names, **options: Any) -> Any:  # noqa: C901 - one function for each feature
    """Return a server with features of equal names, and a template that matches the URI of a resource."""
    mcp = names.server("shop", **options)

    @mcp.tool(name="notes", tags={"private"})
    def tool() -> str:
        return "tool notes"

    @mcp.tool(name="other", tags={"public"})
    def other() -> str:
        return "tool other"

    @mcp.tool(name="versioned", version="1.0", tags={"private", "public"})
    def versioned() -> str:
        return "tool versioned"

    @mcp.resource("data://notes", name="notes", tags={"private"})
    def resource() -> str:
        return "resource"

    @mcp.resource("data://other", name="other", tags={"public"})
    def other_resource() -> str:
        return "resource"

    @mcp.resource("shop://notes", name="shop_notes", tags={"private"})
    def below_template() -> str:
        return "resource"

    @mcp.resource("shop://{item}", name="shop_template", tags={"public"})
    def template(item: str) -> str:
        return f"template {item}"

    @mcp.resource("item://{item}", name="notes", tags={"private"})
    def items(item: str) -> str:
        return f"template {item}"

    @mcp.prompt(name="notes", tags={"private"})
    def prompt() -> str:
        return "prompt"

    @mcp.prompt(name="other", tags={"public"})
    def other_prompt() -> str:
        return "prompt"

    return mcp


RULES: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "no rule": [],
    "disable names": [("disable", {"names": {"notes"}})],
    "disable names that are URIs": [("disable", {"names": {"data://notes", "item://{item}"}})],
    "disable a URI that a template matches": [("disable", {"names": {"shop://notes"}})],
    "disable names of resources": [("disable", {"names": {"notes"}, "components": {"resource"}})],
    "disable names of templates": [("disable", {"names": {"notes"}, "components": {"template"}})],
    "disable the name of a template": [("disable", {"names": {"shop_template"}})],
    "disable tags": [("disable", {"tags": {"private"}})],
    "disable tags of prompts": [("disable", {"tags": {"private"}, "components": {"prompt"}})],
    "disable tags and names": [("disable", {"tags": {"private"}, "names": {"notes", "other"}})],
    "disable names with empty tags": [("disable", {"names": {"notes"}, "tags": set()})],
    "disable names of no kind": [("disable", {"names": {"notes"}, "components": set()})],
    "disable components": [("disable", {"components": {"resource", "prompt"}})],
    "disable keys": [("disable", {"keys": {"tool:notes@", "resource:shop://notes@", "template:item://{item}@"}})],
    "disable a key of a version": [("disable", {"keys": {"tool:versioned@1.0"}})],
    "disable keys and names": [("disable", {"keys": {"tool:notes@", "tool:other@"}, "names": {"notes"}})],
    "disable keys and components": [("disable", {"keys": {"tool:notes@", "prompt:notes@"}, "components": {"tool"}})],
    "disable keys and tags": [("disable", {"keys": {"tool:notes@", "tool:other@"}, "tags": {"private"}})],
    "disable an unknown name": [("disable", {"names": {"nothing"}})],
    "disable an empty set of names": [("disable", {"names": set()})],
    "disable nothing": [("disable", {})],
    "enable nothing again": [("disable", {"tags": {"private"}}), ("enable", {})],
    "enable empty names again": [("disable", {"tags": {"private"}}), ("enable", {"names": set()})],
    "enable empty tags again": [("disable", {"tags": {"private"}}), ("enable", {"tags": set()})],
    "enable names again": [("disable", {"tags": {"private"}}), ("enable", {"names": {"notes"}})],
    "enable a key again": [("disable", {"tags": {"private"}}), ("enable", {"keys": {"tool:notes@"}})],
    "enable a key of another version": [
        ("disable", {"tags": {"private"}}),
        ("enable", {"keys": {"tool:versioned@2.0"}}),
    ],
    "enable a key without a version": [("disable", {"tags": {"private"}}), ("enable", {"keys": {"tool:versioned@"}})],
    "enable a key of its version": [("disable", {"tags": {"private"}}), ("enable", {"keys": {"tool:versioned@1.0"}})],
    "enable an incomplete key": [("disable", {"tags": {"private"}}), ("enable", {"keys": {"tool:notes"}})],
    "enable names only": [("enable", {"names": {"notes"}, "only": True})],
    "enable URIs only": [("enable", {"names": {"data://notes", "shop://{item}"}, "only": True})],
    "enable tags only": [("enable", {"tags": {"public"}, "only": True})],
    "enable keys only": [("enable", {"keys": {"tool:notes@", "resource:data://notes@"}, "only": True})],
    "enable components only": [("enable", {"components": {"tool"}, "only": True})],
    "enable names of tools only": [("enable", {"names": {"notes"}, "components": {"tool"}, "only": True})],
    "enable nothing only": [("enable", {"only": True})],
    "enable empty names only": [("enable", {"names": set(), "only": True})],
    "enable empty tags only": [("enable", {"tags": set(), "only": True})],
    "enable only, then disable": [("enable", {"tags": {"private"}, "only": True}), ("disable", {"names": {"notes"}})],
    "enable only twice": [
        ("enable", {"tags": {"private"}, "only": True}),
        ("enable", {"tags": {"public"}, "only": True}),
    ],
    "disable, then enable only": [("disable", {"names": {"notes"}}), ("enable", {"tags": {"private"}, "only": True})],
    "disable, enable, disable": [
        ("disable", {"tags": {"private"}}),
        ("enable", {"names": {"notes"}}),
        ("disable", {"components": {"template", "resource"}}),
    ],
}
"""Calls of ``mcp.enable`` and ``mcp.disable``."""


def with_rules(names: Names, rules: list[tuple[str, dict[str, Any]]]) -> Any:
    mcp = shop(names)
    for method, conditions in rules:
        getattr(mcp, method)(**conditions)
    return mcp


MOUNTED_REQUESTS = (
    *(Request(method, {}) for method in LISTS),
    *(call("p_notes"), call("p_other"), read("data://p/notes"), read("data://p/other"), read("shop://p/notes")),
    *(read("shop://p/free"), read("item://p/5"), get("p_notes"), get("p_other")),
)

MOUNTED_RULES: dict[str, tuple[str, tuple[str, dict[str, Any]]]] = {
    "mounted, nothing": ("child", ("disable", {"names": {"nothing"}})),
    "mounted, disable names": ("child", ("disable", {"names": {"notes"}})),
    "mounted, disable tags": ("child", ("disable", {"tags": {"private"}})),
    "mounted, disable a URI": ("child", ("disable", {"names": {"shop://notes"}})),
    "mounted, enable names only": ("child", ("enable", {"names": {"notes"}, "only": True})),
    "mounted, disable names with the prefix": ("parent", ("disable", {"names": {"p_notes"}})),
    "mounted, disable names without the prefix": ("parent", ("disable", {"names": {"notes"}})),
    "mounted, disable tags above": ("parent", ("disable", {"tags": {"private"}})),
    "mounted, disable a URI above": ("parent", ("disable", {"names": {"shop://p/notes"}})),
    "mounted, disable a key above": ("parent", ("disable", {"keys": {"tool:p_notes@"}})),
    "mounted, enable names only above": ("parent", ("enable", {"names": {"p_notes", "data://p/notes"}, "only": True})),
    "mounted, enable tags only above": ("parent", ("enable", {"tags": {"public"}, "only": True})),
}
"""A rule of a mounted server, or of the one that mounts it."""


def mounted(names: Names, where: str, rule: tuple[str, dict[str, Any]]) -> Any:
    servers = {"child": shop(names), "parent": names.server("parent")}
    servers["parent"].mount(servers["child"], namespace="p")
    method, conditions = rule
    getattr(servers[where], method)(**conditions)
    return servers["parent"]


def headers(names: Names) -> Any:
    mcp, parts = names.server("headers"), names.dependencies

    @mcp.tool
    def without() -> str:
        return json.dumps(shown(parts.get_http_headers()))

    @mcp.tool
    def everything() -> str:
        return json.dumps(shown(parts.get_http_headers(include_all=True)))

    @mcp.tool
    def some() -> str:
        return json.dumps(shown(parts.get_http_headers(include={"Authorization", "mcp-session-id", "host"})))

    @mcp.tool
    def current(current: dict[str, str] = parts.CurrentHeaders()) -> str:
        return json.dumps(shown(current))

    @mcp.tool
    def request() -> str:
        request = parts.get_http_request()
        return json.dumps([request.method, request.url.path, *request.client, shown(request.headers)])

    @mcp.tool
    def current_request(current: Any = parts.CurrentRequest()) -> str:
        return json.dumps([current.cookies, current.client.host, current.headers["x-shop"]])

    return mcp


def shown(values: Any) -> dict[str, str]:
    return dict(sorted((name.lower(), value) for name, value in values.items() if name.lower() != "content-length"))


HEADER_REQUESTS = tuple(
    call(name) for name in ("without", "everything", "some", "current", "request", "current_request")
)


def identity(names: Names) -> Any:
    parts = names.dependencies
    mcp = names.server("identity", auth=names.verifier(TOKENS, required_scopes=["read"]))

    @mcp.tool
    def token() -> str:
        token = parts.get_access_token()
        return json.dumps([token.token, token.client_id, sorted(token.scopes), token.claims, token.expires_at])

    @mcp.tool
    def current(token: Any = parts.CurrentAccessToken()) -> str:
        return str(token.claims.get("role"))

    @mcp.tool
    def claim(role: str = parts.TokenClaim("role")) -> str:
        return role

    @mcp.tool
    def level(level: Any = parts.TokenClaim("level")) -> str:
        return repr(level)

    @mcp.tool
    def client(ctx: Any = parts.CurrentContext()) -> str:
        return str(ctx.client_id)

    return mcp


IDENTITY_REQUESTS = tuple(
    call(name, {"Authorization": authorization})
    for authorization in ("Bearer reader", "Bearer admin", "Bearer nameless", "Bearer weak", "Bearer x", "reader", None)
    for name in ("token", "current", "claim", "level", "client")
)


def anonymous(names: Names) -> Any:
    parts = names.dependencies
    mcp = names.server("anonymous")

    @mcp.tool
    def token() -> str:
        return str(parts.get_access_token())

    @mcp.tool
    def current(token: Any = parts.CurrentAccessToken()) -> str:
        return str(token)

    @mcp.tool
    def claim(role: str = parts.TokenClaim("role")) -> str:
        return role

    return mcp


def routes(names: Names) -> Any:
    """Return a server with a sign-in and a custom route."""
    mcp = names.server("routes", auth=names.verifier(TOKENS))

    @mcp.custom_route("/health", methods=["GET"])
    async def health(request: Any) -> Any:
        from starlette.responses import PlainTextResponse

        return PlainTextResponse("healthy")

    return mcp


ROUTE_REQUESTS = tuple(
    Request(f"GET {path}", {}, {"Authorization": authorization})
    for path in ("/health", "/mcp", "/other")
    for authorization in (None, "Bearer x", "Bearer admin")
)


def guarded(names: Names) -> Any:  # noqa: C901 - one function for each hook
    """Return a server whose middleware hides, refuses and redirects."""
    middleware = names.middleware

    class Guard(middleware):  # type: ignore[misc,valid-type] # of either framework
        async def on_call_tool(self, context: Any, call_next: Any) -> Any:
            if context.message.name == "notes":
                raise names.tool_error("forbidden")
            if context.message.name == "other":
                context.message.name = "versioned"
            return await call_next(context)

        async def on_list_tools(self, context: Any, call_next: Any) -> Any:
            return [tool for tool in await call_next(context) if "private" not in tool.tags]

        async def on_list_resources(self, context: Any, call_next: Any) -> Any:
            return [item for item in await call_next(context) if "private" not in item.tags]

        async def on_list_prompts(self, context: Any, call_next: Any) -> Any:
            return [item for item in await call_next(context) if "private" not in item.tags]

        async def on_read_resource(self, context: Any, call_next: Any) -> Any:
            if "notes" in str(context.message.uri):
                raise PermissionError
            return await call_next(context)

        async def on_get_prompt(self, context: Any, call_next: Any) -> Any:
            if context.message.name == "notes":
                raise PermissionError
            return await call_next(context)

    mcp = shop(names)
    mcp.add_middleware(Guard())
    return mcp


def direct(names: Names) -> Any:
    """Return a server whose tools use its other features."""
    mcp = shop(names)
    mcp.disable(tags={"private"})

    @mcp.tool
    async def relay(name: str, ctx: Any = names.dependencies.CurrentContext()) -> str:
        result = await ctx.fastmcp.call_tool(name, {})
        if getattr(result, "is_error", False):
            raise names.tool_error("refused")
        return "".join(block.text for block in result.content)

    @mcp.tool
    async def listing(ctx: Any = names.dependencies.CurrentContext()) -> str:
        return json.dumps(sorted(tool.name for tool in await ctx.fastmcp.list_tools()))

    @mcp.tool
    async def reading(uri: str, ctx: Any = names.dependencies.CurrentContext()) -> str:
        await ctx.read_resource(uri)
        return "read"

    return mcp


DIRECT_REQUESTS = (
    *(call("relay", name=name) for name in ("notes", "other", "versioned")),
    call("listing"),
    *(call("reading", uri=uri) for uri in ("data://notes", "data://other", "shop://notes", "item://5")),
)


def cases(names: Names) -> dict[str, tuple[Any, tuple[Request, ...]]]:
    """Return a server and requests to it for each case."""
    return {
        **{name: (with_rules(names, rules), SHOP_REQUESTS) for name, rules in RULES.items()},
        **{name: (mounted(names, *rule), MOUNTED_REQUESTS) for name, rule in MOUNTED_RULES.items()},
        "headers": (headers(names), HEADER_REQUESTS),
        "identity": (identity(names), IDENTITY_REQUESTS),
        "anonymous": (anonymous(names), tuple(call(name) for name in ("token", "current", "claim"))),
        "routes": (routes(names), ROUTE_REQUESTS),
        "middleware": (guarded(names), SHOP_REQUESTS),
        "direct calls": (direct(names), DIRECT_REQUESTS),
    }


def answer_of(response: httpx2.Response) -> Any:
    """Return an answer in a form that both frameworks share."""
    if response.status_code != 200:
        return response.status_code
    text = response.text
    if response.headers["content-type"].startswith("text/event-stream"):
        text = next(line for line in text.splitlines() if line.startswith("data: {")).removeprefix("data: ")
    result = json.loads(text).get("result")
    if result is None or result.get("isError"):
        return "refused"
    for member, name in {
        "tools": "name",
        "resources": "uri",
        "resourceTemplates": "uriTemplate",
        "prompts": "name",
    }.items():
        if member in result:
            return sorted(item[name] for item in result[member])
    if "messages" in result:
        return result["messages"][0]["content"]["text"]
    if "completion" in result:
        return result["completion"]["values"]
    return result.get("contents", result.get("content"))[0]["text"]


async def answers(server: Any, requests: tuple[Request, ...]) -> list[Any]:
    """Return the answers of a server."""
    app = server.http_app(stateless_http=True, json_response=True)
    transport = httpx2.ASGITransport(app=app, client=("192.0.2.9", 0))
    results: list[Any] = []
    async with app.lifespan(app), httpx2.AsyncClient(transport=transport, base_url=URL) as client:
        for number, request in enumerate(requests):
            sent = {name: value for name, value in {**HEADERS, **request.headers}.items() if value is not None}
            if request.method.startswith("GET "):
                response = await client.get(request.method.removeprefix("GET "), headers=sent)
                results.append([response.status_code, response.text if response.status_code == 200 else ""])
                continue
            body = {"jsonrpc": "2.0", "id": number, "method": request.method, "params": request.params}
            answer = answer_of(await client.post("/mcp", json=body, headers=sent))
            results.append([] if request.method in LISTS and answer == "refused" else answer)
    return results


async def outcomes(names: Names) -> dict[str, dict[str, Any]]:
    """Return the answer to each request, by case."""
    return {
        case: {
            f"{request.method} {json.dumps([request.params, request.headers])}": answer
            for request, answer in zip(requests, await answers(server, requests), strict=True)
        }
        for case, (server, requests) in cases(names).items()
    }


def originals() -> Names:
    from fastmcp import FastMCP
    from fastmcp.exceptions import ToolError
    from fastmcp.server import dependencies
    from fastmcp.server.auth import StaticTokenVerifier
    from fastmcp.server.middleware import Middleware

    return Names(FastMCP, Middleware, ToolError, StaticTokenVerifier, dependencies)


def compat() -> Names:
    from funcmcp import compat

    return Names(compat.FastMCP, compat.Middleware, compat.ToolError, compat.StaticTokenVerifier, compat)


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    print(json.dumps(asyncio.run(outcomes(originals()))))
