"""Callers see and may do the same as on FastMCP: rules of visibility, mounted servers, headers, tokens, middleware."""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import JSONResponse

from funcmcp import MCPError, MCPServer, compat
from funcmcp.compat import FastMCP
from funcmcp.testing import Client
from tests.compat import access_cases
from tests.patience import PATIENCE
from tests.requirements import require

REPOSITORY = Path(__file__).parents[2]
FASTMCP = REPOSITORY / ".servers/fastmcp/bin/python"


@pytest.fixture(scope="module")
def answers_of_fastmcp() -> dict[str, dict[str, Any]]:
    python = require("FastMCP (scripts/setup-fastmcp.sh)", str(FASTMCP) if FASTMCP.exists() else None)
    command = [python, "-m", "tests.compat.access_cases"]
    ended = subprocess.run(command, capture_output=True, check=True, text=True, timeout=PATIENCE, cwd=REPOSITORY)
    answers: dict[str, dict[str, Any]] = json.loads(ended.stdout)
    return answers


@pytest.mark.slow("The original answers the same calls.")
async def test_callers_see_and_may_do_the_same_as_on_fastmcp(answers_of_fastmcp: dict[str, dict[str, Any]]) -> None:
    assert await access_cases.outcomes(access_cases.compat()) == answers_of_fastmcp


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("server", [FastMCP, MCPServer])
async def test_a_hidden_resource_is_not_read_through_a_template(server: Any, revision: str) -> None:
    child, parent = server("child"), server("parent")

    @child.resource("shop://secret", tags=["secret"])
    def secret() -> str:
        return "secret"

    @child.resource("shop://{item}")
    def item(item: str) -> str:
        return item

    parent.mount(child, prefix="p")
    child.disable(tags={"secret"})
    for mcp, prefix in ((child, ""), (parent, "p/")):
        async with Client(mcp, revision=revision) as client:
            assert (await client.read_resource(f"shop://{prefix}tea")).text == "tea"
            with pytest.raises(MCPError, match="not found"):
                await client.read_resource(f"shop://{prefix}secret")
    child.enable(tags={"secret"})
    async with Client(parent, revision=revision) as client:
        assert (await client.read_resource("shop://p/secret")).text == "secret"


@pytest.mark.parametrize(
    ("conditions", "error"),
    [
        ({"names": "notes"}, TypeError),
        ({"tags": "private"}, TypeError),
        ({"keys": "tool:notes@"}, TypeError),
        ({"keys": {"notes@"}}, ValueError),
        ({"components": {"tols"}}, ValueError),
        ({"version": "1.0"}, TypeError),
        ({"match_all": True}, TypeError),
    ],
)
def test_what_is_not_a_condition_is_refused(conditions: dict[str, Any], error: type[Exception]) -> None:
    mcp = FastMCP("shop")
    with pytest.raises(error):
        mcp.disable(**conditions)
    with pytest.raises(error):
        mcp.enable(**conditions, only=True)


async def test_a_feature_that_middleware_names_instead_is_checked_for_the_caller() -> None:
    class Redirect(compat.Middleware):
        async def on_call_tool(self, context: Any, call_next: Any) -> Any:
            context.message.name = context.message.arguments.pop("to")
            return await call_next(context)

    tokens: dict[str, dict[str, Any]] = {
        "ann": {"client_id": "app", "sub": "ann", "scopes": ["read", "write"]},
        "bob": {"client_id": "app", "sub": "bob", "scopes": ["read"]},
    }
    mcp = FastMCP("shop", auth=compat.StaticTokenVerifier(tokens), middleware=[Redirect()])

    @mcp.tool
    def public(to: str = "") -> str:
        return "public"

    @mcp.tool(scopes=["write"])
    def private() -> str:
        return "private"

    def requests(token: str) -> tuple[access_cases.Request, ...]:
        headers: dict[str, str | None] = {"Authorization": f"Bearer {token}"}
        return tuple(access_cases.call("public", headers, to=name) for name in ("public", "private", "nothing"))

    assert await access_cases.answers(mcp, requests("ann")) == ["public", "private", "refused"]
    assert await access_cases.answers(mcp, requests("bob")) == ["public", "refused", "refused"]
    assert (await mcp.call_tool("public", {"to": "private"})).text == "private"


async def test_the_token_of_a_verifier_is_unchanged_and_cannot_be_changed_for_other_calls() -> None:
    tokens: dict[str, dict[str, Any]] = {"ann": {"client_id": "app", "scopes": ["b", "a"], "expires_at": 4102444800}}
    mcp = FastMCP("shop", auth=compat.StaticTokenVerifier(tokens))

    @mcp.tool
    def token() -> str:
        token = compat.get_access_token()
        assert token is not None
        seen = json.dumps([token.token, token.scopes, token.expires_at, token.claims.get("role")])
        token.claims["role"] = "admin"
        token.scopes.append("admin")
        return seen

    request = access_cases.call("token", {"Authorization": "Bearer ann"})
    seen = await access_cases.answers(mcp, (request, request))
    assert seen == [json.dumps(["ann", ["b", "a"], 4102444800, None])] * 2


async def test_a_custom_route_has_no_token_as_it_needs_none() -> None:
    # FastMCP reads the token of a caller who sends one.
    mcp = FastMCP("shop", auth=compat.StaticTokenVerifier({"ann": {"client_id": "app"}}))

    @mcp.custom_route("/token", methods=["GET"])
    async def token(request: Any) -> Any:
        return JSONResponse(compat.get_access_token())

    request = access_cases.Request("GET /token", {}, {"Authorization": "Bearer ann"})
    assert await access_cases.answers(mcp, (request,)) == [[200, "null"]]
