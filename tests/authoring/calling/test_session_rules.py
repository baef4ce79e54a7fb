"""Features that are hidden and shown in one session."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp import Completion, Context, MCPError, MCPServer, Principal, ToolError
from funcmcp._authoring.calling import session_rules
from funcmcp.auth import APIKeys, Auth
from funcmcp.providers import Provider
from funcmcp.testing import Client
from tests.server.parts import tool as plain_tool
from tests.transports.talk import talk

pytestmark = pytest.mark.branches("Sessions see more and less than other clients.")


def shop(**options: Any) -> MCPServer:
    mcp = MCPServer("shop", **{"sessions": "memory", **options})
    mcp.tool("public", tags={"public"})(lambda: "public")
    mcp.tool("secret", tags={"admin"}, enabled=False)(lambda: "secret")
    mcp.tool("price", version="1")(lambda: "old")
    mcp.tool("price", version="2", tags={"beta"})(lambda: "new")
    mcp.resource("data://info", name="info", tags={"admin"}, enabled=False)(lambda: "info")
    complete = {"day": lambda value: Completion([value])}
    mcp.resource("data://days/{day}", name="day", tags={"admin"}, enabled=False, completions=complete)(lambda day: day)
    mcp.prompt("greet", tags={"public"}, completions={"name": lambda value: Completion([value])})(lambda name: name)

    @mcp.tool
    async def show(context: Context, tags: list[str], only: bool = False) -> None:
        await context.enable(tags=tags, only=only)

    @mcp.tool
    async def hide(context: Context, names: list[str], tools_only: bool = False) -> None:
        await context.disable(names, components={"tool"} if tools_only else None)

    @mcp.tool
    async def reset(context: Context) -> None:
        await context.reset_visibility()

    return mcp


async def names(client: Client) -> list[str]:
    return [item.name for item in await client.list_tools()]


ALL = ["public", "price", "show", "hide", "reset"]


async def test_a_session_sees_what_others_do_not_see() -> None:
    mcp = shop()
    async with Client(mcp, revision="2025-11-25") as client, Client(mcp, revision="2025-11-25") as other:
        with pytest.raises(MCPError, match="Unknown tool: secret"):
            await client.call_tool("secret")
        assert not (await client.call_tool("show", {"tags": ["admin"]})).is_error
        assert await names(client) == ["public", "secret", "price", "show", "hide", "reset"]
        assert (await client.call_tool("secret")).text == "secret"
        assert (await client.read_resource("data://info")).text == "info"
        assert (await client.read_resource("data://days/x")).text == "x"
        assert [item.uri for item in await client.list_resources()] == ["data://info"]
        reference = {"type": "ref/resource", "uri": "data://days/{day}"}
        assert (await client.complete(reference, "day", "x")).values == ["x"]
        assert await names(other) == ALL
        with pytest.raises(MCPError, match="Unknown tool: secret"):
            await other.call_tool("secret")
        await client.call_tool("hide", {"names": ["price"]})
        assert "price" not in await names(client)
        await client.call_tool("reset")
        assert await names(client) == ALL


async def test_a_session_does_not_see_what_others_see() -> None:
    mcp = shop()
    async with Client(mcp, revision="2025-11-25") as client, Client(mcp, revision="2025-11-25") as other:
        await client.call_tool("hide", {"names": ["public", "greet"]})
        assert await names(client) == ["price", "show", "hide", "reset"]
        with pytest.raises(MCPError, match="Unknown tool: public"):
            await client.call_tool("public")
        with pytest.raises(MCPError, match="Unknown prompt: greet"):
            await client.get_prompt("greet", {"name": "Ada"})
        with pytest.raises(MCPError):
            await client.complete({"type": "ref/prompt", "name": "greet"}, "name", "A")
        for uri in ("data://none", "data://days/..", "data://days/x"):
            with pytest.raises(MCPError):
                await client.read_resource(uri)
        await client.request("ping", {})
        malformed: list[tuple[str, dict[str, Any]]] = [("tools/call", {"name": 1}), ("completion/complete", {"ref": 1})]
        for method, params in malformed:
            with pytest.raises(MCPError):
                await client.request(method, params)
        assert (await other.call_tool("public")).text == "public"


async def test_a_resource_that_is_hidden_in_a_session_is_not_read_through_a_template() -> None:
    mcp = shop()
    mcp.resource("data://days/today", name="today")(lambda: "today")
    mcp.enable(["data://days/{day}"])
    async with Client(mcp, revision="2025-11-25") as client:
        assert (await client.read_resource("data://days/today")).text == "today"
        await client.call_tool("hide", {"names": ["data://days/today"]})
        with pytest.raises(MCPError, match="Resource not found"):
            await client.read_resource("data://days/today")
        assert (await client.read_resource("data://days/x")).text == "x"


async def test_a_session_gets_the_newest_version_that_it_sees() -> None:
    mcp = shop()
    mcp.disable(tags={"beta"})
    async with Client(mcp, revision="2025-11-25") as client:
        assert (await client.call_tool("price")).text == "old"
        await client.call_tool("show", {"tags": ["beta"]})
        assert (await client.call_tool("price")).text == "new"
        params = {"name": "price", "_meta": {"fastmcp": {"version": "1"}}}
        assert (await client.request("tools/call", params))["content"][0]["text"] == "old"
        await client.call_tool("show", {"tags": ["public"], "only": True})
        assert await names(client) == ["public"]


async def test_only_the_client_of_the_session_is_notified() -> None:
    notes: list[tuple[str, str]] = []
    mcp = shop()

    def note(name: str) -> Any:
        return lambda message: notes.append((name, message["method"]))

    async with (
        Client(mcp, revision="2025-11-25", on_notification=note("own")) as client,
        Client(mcp, revision="2025-11-25", on_notification=note("other")),
    ):
        await client.call_tool("hide", {"names": ["public"], "tools_only": True})
        assert notes == [("own", "notifications/tools/list_changed")]
        await client.call_tool("reset")
        assert len(notes) == 4
        assert {name for name, _ in notes} == {"own"}


@pytest.mark.parametrize("options", [{"sessions": "signed"}, {"sessions": None}])
async def test_a_server_that_keeps_no_rules_says_so(options: dict[str, Any]) -> None:
    async with Client(shop(**options), revision="2025-11-25") as client:
        result = await client.call_tool("hide", {"names": ["public"]})
        assert result.is_error
        assert 'They need MCPServer(sessions="memory")' in result.text
        assert "public" in await names(client)


async def test_clients_without_sessions_are_told_so() -> None:
    async with Client(shop(), revision="2026-07-28") as client:
        result = await client.call_tool("show", {"tags": ["admin"]})
        assert (result.is_error, "clients of 2026-07-28 have none" in result.text) == (True, True)
    with pytest.raises(ToolError, match="clients of 2026-07-28 have none"):
        await shop().call_tool("reset", raise_on_error=True)


async def test_the_rules_of_a_session_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_rules, "MAX_RULES", 2)
    async with Client(shop(), revision="2025-11-25") as client:
        for name in ("a", "b"):
            assert not (await client.call_tool("hide", {"names": [name]})).is_error
        assert "has 2 rules of visibility" in (await client.call_tool("hide", {"names": ["c"]})).text


async def test_a_session_can_show_a_feature_that_its_caller_may_not_use() -> None:
    key = "a-key-of-16-characters"
    mcp = shop(auth=Auth(APIKeys({"ada": key})))
    mcp.tool("paid", tags={"admin"}, enabled=False, scopes=["paid"])(lambda: "paid")
    async with Client(mcp, revision="2025-11-25", headers={"x-api-key": key}) as client:
        await client.call_tool("show", {"tags": ["admin"]})
        assert (await client.call_tool("secret")).text == "secret"
        with pytest.raises(MCPError, match="More scopes are needed"):
            await client.call_tool("paid")


async def test_features_of_a_caller_follow_the_rules_of_the_session() -> None:
    class Mine(Provider):
        per_caller = True

        async def list(self, caller: Principal | None) -> Any:
            return [plain_tool("mine"), plain_tool("other")]

    mcp = shop()
    mcp.add_provider(Mine())
    async with Client(mcp, revision="2025-11-25") as client:
        await client.call_tool("hide", {"names": ["mine"]})
        assert (await names(client))[-1] == "other"
        assert (await client.call_tool("other")).text == "other"
        with pytest.raises(MCPError, match="Unknown tool: mine"):
            await client.call_tool("mine")


async def test_a_connection_is_a_session() -> None:
    client = await talk()
    app = client.offering.app

    @app.tool
    async def hide(context: Context) -> None:
        await context.disable({"add"})

    await client.say(client.call("hide", id="hide"))
    heard = [await client.hear() for _ in range(4)]
    assert "notifications/tools/list_changed" in [message.get("method") for message in heard]
    await client.say(client.call("add", {"a": 1, "b": 2}, id="add"))
    answers = [await client.hear()]
    while answers[-1].get("id") != "add":
        answers.append(await client.hear())
    assert answers[-1]["error"]["message"] == "Unknown tool: add"


async def test_a_batch_follows_the_rules_of_its_session() -> None:
    client = await talk("2025-03-26")

    @client.offering.app.tool
    async def hide(context: Context) -> None:
        await context.disable({"add"}, components={"tool"})

    await client.say(client.call("hide", id="hide"))
    while (await client.hear()).get("id") != "hide":
        pass
    await client.say([client.call("add", {"a": 1, "b": 2}, id="add")])
    [answer] = await client.hear()
    assert answer["error"]["message"] == "Unknown tool: add"
