"""FastMCP's routes that enable and disable components."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from funcmcp.compat import FastMCP, StaticTokenVerifier
from funcmcp.compat.fastmcp.contrib.component_manager import set_up_component_manager

TOKENS = {"a": {"client_id": "ada", "scopes": ["admin"]}, "b": {"client_id": "bob", "scopes": []}}


def shop(scopes: list[str] | None = None, path: str = "/", **options: Any) -> tuple[FastMCP, TestClient]:
    mcp = FastMCP("shop", **options)

    @mcp.tool
    def buy() -> str:
        return "bought"

    @mcp.resource("shop://menu")
    def menu() -> str:
        return "tea"

    @mcp.resource("shop://items/{name}")
    def item(name: str) -> str:
        return name

    @mcp.prompt
    def greet() -> str:
        return "Hello"

    set_up_component_manager(mcp, path, scopes)
    return mcp, TestClient(mcp.http_app(), base_url="http://127.0.0.1:8000")


async def names_of(mcp: FastMCP) -> list[str]:
    tools, prompts = await mcp.list_tools(), await mcp.list_prompts()
    resources, templates = await mcp.list_resources(), await mcp.list_resource_templates()
    uris = [str(item.uri) for item in resources] + [item.uri_template for item in templates]
    return [*(tool.name for tool in tools), *(prompt.name for prompt in prompts), *uris]


@pytest.mark.parametrize("path", ["/", "/admin"])
@pytest.mark.parametrize(
    ("route", "kind"),
    [
        ("tools/buy", "tool"),
        ("prompts/greet", "prompt"),
        ("resources/shop://menu", "resource"),
        ("resources/shop://items/{name}", "resource"),
    ],
)
async def test_a_component_is_disabled_and_enabled(path: str, route: str, kind: str) -> None:
    mcp, http = shop(path=path)
    name = route.partition("/")[2]
    prefix = path.rstrip("/")
    answer = http.post(f"{prefix}/{route}/disable")
    assert (answer.status_code, answer.json()) == (200, {"message": f"Disabled {kind}: {name}"})
    assert name not in await names_of(mcp)
    answer = http.post(f"{prefix}/{route}/enable")
    assert (answer.status_code, answer.json()) == (200, {"message": f"Enabled {kind}: {name}"})
    assert name in await names_of(mcp)


@pytest.mark.parametrize(
    ("scopes", "token", "status"),
    [
        (None, None, 401),
        (None, "b", 200),
        ([], None, 401),
        ([], "b", 200),
        (["admin"], None, 401),
        (["admin"], "b", 403),
        (["admin"], "a", 200),
    ],
)
async def test_callers_need_what_the_endpoint_needs(scopes: list[str] | None, token: str | None, status: int) -> None:
    mcp, http = shop(scopes, auth=StaticTokenVerifier(TOKENS))
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    assert http.post("/tools/buy/disable", headers=headers).status_code == status
    assert ("buy" in await names_of(mcp)) is (status != 200)


@pytest.mark.parametrize(("scopes", "status"), [(None, 200), ([], 401), (["admin"], 401)])
def test_scopes_without_a_sign_in_accept_nobody(scopes: list[str] | None, status: int) -> None:
    assert shop(scopes)[1].post("/tools/buy/disable").status_code == status
