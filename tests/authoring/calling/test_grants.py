"""Tools with `grant=`: when their user is asked, and what the option can be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from funcmcp import Context, MCPServer
from funcmcp._authoring.calling.grants import checked_grants, granted, grants_of
from funcmcp._authoring.calling.services import Services
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._serving.composition import runtime_of
from funcmcp.auth import Grant, Principal
from tests.grants.desk import Desk
from tests.oauth_proxy.stage import ISSUER
from tests.server.task_parts import DECLARED, HTTP, ask, create, until

if TYPE_CHECKING:
    from typing import Any

GITHUB = Grant("github")


def test_the_option_is_one_grant_or_several() -> None:
    assert checked_grants("star", GITHUB) == (GITHUB,)
    assert checked_grants("star", [GITHUB, Grant("files")]) == (GITHUB, Grant("files"))
    with pytest.raises(RegistrationError, match="grant of star must be"):
        checked_grants("star", "github")


def test_functions_without_a_server_have_no_grants() -> None:
    for services in (Services(), MCPServer("Desk").services):
        with pytest.raises(RuntimeError, match="Grants need MCPServer"):
            grants_of(services)


async def test_the_tool_runs_after_all_grants_and_with_valid_arguments_only() -> None:
    steps: list[str] = []

    class Grants:
        async def token(self, _context: Any, grant: Grant, _refused: str | None = None) -> str:
            steps.append(grant.provider)
            return "token"

    class Runtime:
        grants = Grants()

        @property
        def top(self) -> Runtime:
            return self

    def check(arguments: dict[str, Any]) -> None:
        if not arguments:
            raise ValueError("missing")

    async def run(_context: Any, _arguments: dict[str, Any]) -> Any:
        steps.append("run")

    services = Services()
    services.runtime = Runtime()
    handler = granted(run, check, [GITHUB, Grant("files")], services)
    context: Any = None
    with pytest.raises(ValueError, match="missing"):
        await handler(context, {})
    assert steps == []
    await handler(context, {"a": 1})
    assert steps == ["github", "files", "run"]


async def test_a_confirmation_comes_after_the_grant(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(monkeypatch)

    @desk.mcp.tool(grant=GITHUB, confirm="Delete everything?")
    async def delete(context: Context) -> str:
        return await context.grant_token("github")

    text = await desk.call("delete", browser=desk.browser(), content={"confirm": True})
    assert text == "token-1"
    assert desk.questions == ["grant-github", "funcmcp/confirmation"]


async def test_a_plain_function_gets_its_token_in_its_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(monkeypatch)

    @desk.mcp.tool(grant=GITHUB)
    def count(context: Context) -> str:
        return str(context.wait(context.grant_token("github")))

    assert await desk.call("count", browser=desk.browser()) == "token-1"


async def test_a_call_of_the_author_has_the_account_of_its_principal(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(monkeypatch)
    await desk.call(browser=desk.browser())
    principal = Principal("ada", "https://orders.example.com")
    result = await desk.mcp.call_tool("star", {"repository": "x"}, principal=principal)
    assert result.text == "starred x"
    assert "needs to know who calls" in (await desk.mcp.call_tool("star", {"repository": "x"})).text


async def test_a_task_uses_the_account_and_asks_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(monkeypatch)

    @desk.mcp.tool(grant=GITHUB, task="optional")
    async def archive(context: Context) -> str:
        return await context.grant_token("github")

    server = runtime_of(desk.mcp).server
    caller = HTTP(Principal("ada", ISSUER))
    declared = {**DECLARED, "elicitation": {"form": {}, "url": {}}}
    task = await create(server, "archive", http=caller, capabilities=declared)
    waiting = await until(server, task, "input_required", http=caller, capabilities=declared)
    (question,) = waiting["inputRequests"].values()
    await desk.browser().connect(question["params"]["url"])
    answers = {key: {"action": "accept"} for key in waiting["inputRequests"]}
    params = {"taskId": task, "inputResponses": answers}
    await ask(server, "tasks/update", params, http=caller, capabilities=declared)
    done = await until(server, task, "completed", "failed", http=caller, capabilities=declared)
    assert done["result"]["content"][0]["text"] == "token-1"
    second = await create(server, "archive", http=caller)
    done = await until(server, second, "completed", "failed", http=caller)
    assert done["result"]["content"][0]["text"] == "token-1"
    assert len(desk.authorizations) == 1
    assert server.tasks is not None
    await server.tasks.stop(1)
