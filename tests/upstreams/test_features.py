"""Features of other servers: lists, links, completion, capabilities that are needed, and servers that are away."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import MCPError, MCPServer
from funcmcp._client.notifications import Change
from funcmcp._providers import provided
from funcmcp._upstreams import features, status
from funcmcp._upstreams.definitions import UpstreamLists
from funcmcp.client import Client
from funcmcp.transforms import ArgumentChange, Hide, ToolChange, ToolTransform
from funcmcp.upstreams import Upstream
from tests import schemas
from tests.patience import PATIENCE
from tests.upstreams.scripted_lists import CAPABILITIES, Scripted, tool

if TYPE_CHECKING:
    from pathlib import Path

EVERY_REVISION = pytest.mark.parametrize("revision", schemas.REVISIONS)


def gateway(upstream: Scripted, prefix: str | None = "up", **options: Any) -> MCPServer:
    mcp = MCPServer("gateway")
    mcp.mount(Upstream(upstream, name="docs", **options), prefix=prefix)
    return mcp


def read(params: Any) -> dict[str, Any]:
    return {"contents": [{"uri": params["uri"], "text": f"text of {params['uri']}"}]}


@EVERY_REVISION
async def test_each_uri_that_a_client_gets_can_be_read(revision: str) -> None:
    links = [
        {"type": "resource_link", "uri": "memo:today", "name": "today"},
        {"type": "resource_link", "uri": "data://days/monday", "name": "monday"},
        {"type": "resource_link", "uri": "session://only/named", "name": "named"},
        {"type": "resource", "resource": {"uri": "data://days/friday", "text": "inside"}},
    ]
    upstream = Scripted(
        {
            "tools/list": {"tools": [tool("links")]},
            "prompts/list": {"prompts": [{"name": "page"}]},
            "resources/list": {"resources": [{"uri": "memo:today", "name": "today"}]},
            "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "data://days/{day}", "name": "day"}]},
            "tools/call": {"content": links},
            "prompts/get": {"messages": [{"role": "user", "content": links[3]}]},
            "resources/read": read,
        }
    )
    async with Client(gateway(upstream), revision=revision) as client:
        listed = [item.uri for item in await client.list_resources()]
        assert listed == ["up+memo:today"]
        assert [item.uri_template for item in await client.list_resource_templates()] == ["data://up/days/{day}"]
        message = (await client.get_prompt("up_page")).messages[0]
        assert message["content"]["resource"]["uri"] == "data://up/days/friday"
        for uri in listed:
            assert (await client.read_resource(uri)).text == "text of memo:today"
        content = (await client.call_tool("up_links")).content
        assert content[3]["resource"]["uri"] == "data://up/days/friday"
        if content[0]["type"] == "resource_link":
            uris = [block["uri"] for block in content[:3]]
            assert uris == ["up+memo:today", "data://up/days/monday", "session://up/only/named"]
            texts = [(await client.read_resource(uri)).text for uri in uris]
            assert texts == ["text of memo:today", "text of data://days/monday", "text of session://only/named"]
    with pytest.raises(MCPError, match="Resource not found"):
        await gateway(upstream).read_resource("session://other/only/named")


async def test_pages_of_apps_keep_their_scheme() -> None:
    """The faults of envoyproxy/ai-gateway PR 2412: a page that is not under ``ui://``, or a link that leads nowhere."""
    meta = {"ui": {"resourceUri": "ui://clock/view"}, "ui/resourceUri": "ui://clock/view"}
    upstream = Scripted(
        {
            "tools/list": {"tools": [tool("clock", _meta={**meta, "openai/outputTemplate": "ui://clock/view"})]},
            "resources/list": {"resources": [{"uri": "ui://clock/view", "name": "view"}]},
            "resources/read": read,
        }
    )
    async with Client(gateway(upstream)) as client:
        meta = (await client.list_tools())[0]["_meta"]
        assert meta == {
            "ui": {"resourceUri": "ui://up/clock/view"},
            "ui/resourceUri": "ui://up/clock/view",
            "openai/outputTemplate": "ui://up/clock/view",
        }
        assert (await client.read_resource("ui://up/clock/view")).text == "text of ui://clock/view"


async def test_links_that_clients_load_themselves_stay_as_they_are() -> None:
    links = [
        {"type": "resource_link", "uri": uri, "name": "a"}
        for uri in ("https://example.com/a", "https://docs.example/known", "data:text/plain,a")
    ]
    upstream = Scripted(
        {
            "tools/list": {"tools": [tool("links")]},
            "resources/list": {"resources": [{"uri": "https://docs.example/known", "name": "known"}]},
            "tools/call": {"content": links},
        }
    )
    async with Client(gateway(upstream)) as client:
        assert [block["uri"] for block in (await client.call_tool("up_links")).content] == [
            "https://example.com/a",
            "https://up/docs.example/known",
            "data:text/plain,a",
        ]


async def test_texts_and_structured_content_stay_as_they_are() -> None:
    result = {"content": [{"type": "text", "text": "see memo:today"}], "structuredContent": {"uri": "memo:today"}}
    upstream = Scripted({"tools/list": {"tools": [tool("text")]}, "tools/call": result})
    async with Client(gateway(upstream)) as client:
        answer = await client.call_tool("up_text")
        assert (answer.text, answer.structured_content) == ("see memo:today", {"uri": "memo:today"})


async def test_completion_is_asked_for_under_the_names_of_the_upstream() -> None:
    upstream = Scripted(
        {
            "prompts/list": {"prompts": [{"name": "greet", "arguments": [{"name": "who"}, {"name": "how"}]}]},
            "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "data://{day}", "name": "day"}]},
            "completion/complete": {"completion": {"values": ["Ada"], "total": 7, "hasMore": True}},
        }
    )
    async with Client(gateway(upstream)) as client:
        prompt = {"type": "ref/prompt", "name": "up_greet"}
        template = {"type": "ref/resource", "uri": "data://up/{day}"}
        completion = await client.complete(prompt, "who", "A", context={"how": "warmly"})
        assert (completion.values, completion.total, completion.has_more) == (["Ada"], 7, True)
        await client.complete(template, "day", "m")
    asked = [
        {name: params[name] for name in params if name != "_meta"} for params in upstream.asked("completion/complete")
    ]
    assert asked == [
        {
            "ref": {"type": "ref/prompt", "name": "greet"},
            "argument": {"name": "who", "value": "A"},
            "context": {"arguments": {"how": "warmly"}},
        },
        {"ref": {"type": "ref/resource", "uri": "data://{day}"}, "argument": {"name": "day", "value": "m"}},
    ]


def by_capabilities(params: Any) -> dict[str, Any]:
    """List what some clients can use: as server-everything does."""
    capabilities = params["_meta"][CAPABILITIES]
    tools = [tool("echo")]
    if "sampling" in capabilities:
        tools.append(tool("sample"))
    if "url" in capabilities.get("elicitation", {}):
        tools.append(tool("open"))
    if "sampling" in capabilities and "roots" in capabilities:
        tools.append(tool("both"))
    if "sampling" in capabilities or "roots" in capabilities:
        tools.append(tool("either"))
    if not capabilities.get("elicitation"):
        tools.append(tool("plain"))
    return {"tools": tools, "ttlMs": 3_600_000}


@EVERY_REVISION
async def test_a_client_gets_the_tools_that_it_can_use(revision: str) -> None:
    mcp = gateway(Scripted({"tools/list": by_capabilities, "tools/call": {"content": []}}))

    async def answer(_params: dict[str, Any]) -> dict[str, Any]:
        return {"action": "decline"}

    async with Client(mcp, revision=revision) as client:
        assert [item.name for item in await client.list_tools()] == ["up_echo", "up_plain"]
        with pytest.raises(MCPError, match="Unknown tool: up_sample"):
            await client.call_tool("up_sample")
    async with Client(mcp, revision=revision, sample=answer) as client:
        names = [item.name for item in await client.list_tools()]
        assert names == ["up_echo", "up_sample", "up_plain"]
        await client.call_tool("up_sample")
    async with Client(mcp, revision=revision, sample=answer, elicit=answer, roots=[]) as client:
        names = [item.name for item in await client.list_tools()]
        assert names == ["up_echo", "up_sample", "up_open", "up_both", "up_either", "up_plain"]


async def test_lists_that_do_not_depend_on_the_client_are_read_twice_and_later_once() -> None:
    upstream = Scripted({"tools/list": {"tools": [tool("a")]}})
    served = Upstream(upstream)
    mcp = MCPServer("gateway")
    mcp.mount(served)
    await mcp.list_tools()
    assert len(upstream.asked("tools/list")) == 2
    await served.list(None)
    assert len(upstream.asked("tools/list")) == 3


@pytest.mark.parametrize("tools", [1, 50])
async def test_the_names_in_lists_that_differ_are_collected_once(tools: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """An upstream may list other names each time, so the work must not grow with their square."""
    numbers = count()
    collected: list[UpstreamLists] = []
    keys = UpstreamLists.keys

    def counted(lists: UpstreamLists) -> set[Any]:
        collected.append(lists)
        return keys(lists)

    def renamed(_params: Any) -> dict[str, Any]:
        return {"tools": [tool(f"t{next(numbers)}") for _ in range(tools)]}

    monkeypatch.setattr(UpstreamLists, "keys", counted)
    assert len(list(await Upstream(Scripted({"tools/list": renamed})).list(None))) == 2 * tools
    assert len(collected) == 5 + len(features._PARTS)


async def test_lists_are_not_remembered_if_they_change_while_they_are_read() -> None:
    def changing(_params: Any) -> dict[str, Any]:
        if len(upstream.asked("tools/list")) == 1:
            served._features.forget()
        return {"tools": [tool("a")]}

    upstream = Scripted({"tools/list": changing})
    served = Upstream(upstream)
    for requests in (2, 4, 5):
        await served.list(None)
        assert len(upstream.asked("tools/list")) == requests


async def test_all_lists_are_read_again_after_the_upstream_has_announced_a_change() -> None:
    asking: list[dict[str, Any]] = []

    def listed(params: Any) -> dict[str, Any]:
        return {"tools": [tool("plain"), *(asking if "roots" in params["_meta"][CAPABILITIES] else [])]}

    upstream = Upstream(Scripted({"tools/list": listed}))
    mcp = MCPServer("Gateway")
    mcp.mount(upstream)
    async with Client(mcp, roots=[]) as client:
        assert [item.name for item in await client.list_tools()] == ["plain"]
        asking.append(tool("asking"))
        upstream._changes.report(Change("tools"))
        assert [item.name for item in await client.list_tools(refresh=True)] == ["plain", "asking"]


async def test_a_feature_that_has_not_changed_is_the_same_object() -> None:
    upstream = Scripted({"tools/list": {"tools": [tool("a"), tool("b")]}})
    served = Upstream(upstream)
    first = list(await served.list(None))
    upstream.answers["tools/list"] = {"tools": [tool("a"), tool("b", description="Other.")]}
    second = list(await served.list(None))
    assert first[0] is second[0]
    assert first[1] is not second[1]


async def test_transforms_apply_to_the_tools_of_an_upstream() -> None:
    """The argument is renamed, hidden with a value, and repeated in a header under the upstream's rule."""
    schema = {
        "type": "object",
        "properties": {"q": {"type": "string", "x-mcp-header": "Q"}, "index": {"type": "string"}},
    }
    upstream = Scripted(
        {
            "tools/list": {"tools": [tool("search", inputSchema=schema), tool("delete")]},
            "tools/call": lambda params: {"content": [{"type": "text", "text": str(params["arguments"])}]},
        }
    )
    arguments = {"q": ArgumentChange("query"), "index": ArgumentChange(hide=True, default="public")}
    mcp = MCPServer("gateway")
    change = ToolTransform({"search": ToolChange("find", description="Find.", arguments=arguments)})
    mcp.mount(Upstream(upstream), prefix="up", transforms=[change, Hide({"delete"})])
    async with Client(mcp) as client:
        (found,) = await client.list_tools()
        assert (found.name, found.description) == ("up_find", "Find.")
        assert found.input_schema["properties"] == {"query": {"type": "string", "x-mcp-header": "Q"}}
        assert (await client.call_tool("up_find", {"query": "a"})).text == "{'index': 'public', 'q': 'a'}"
        with pytest.raises(MCPError, match="Unknown tool"):
            await client.call_tool("up_delete")


async def test_the_first_of_two_features_with_one_name_stays(caplog: pytest.LogCaptureFixture) -> None:
    mcp = MCPServer("gateway")
    mcp.tool("up_a")(lambda: "local")
    for number in (1, 2):
        answers = {
            "tools/list": {"tools": [tool("a"), tool("b")]},
            "tools/call": {"content": [{"type": "text", "text": f"upstream {number}"}]},
        }
        mcp.mount(Upstream(Scripted(answers), name=f"docs {number}"), prefix="up")
    async with Client(mcp) as client:
        assert [item.name for item in await client.list_tools()] == ["up_a", "up_b"]
        assert (await client.call_tool("up_a")).text == "local"
        assert (await client.call_tool("up_b")).text == "upstream 1"
    assert caplog.text.count("docs 1: a is left out. Duplicate tool name 'up_a'.") == 1
    assert caplog.text.count("docs 2: b is left out. Duplicate tool name 'up_b'.") == 1
    assert caplog.text.count("The first one is that of docs 1.") == 1


async def test_a_resource_of_two_servers_without_a_prefix_is_not_guessed() -> None:
    mcp = MCPServer("gateway")
    for _ in range(2):
        mcp.mount(Upstream(Scripted({"resources/read": read})))
    with pytest.raises(MCPError, match="Resource not found"):
        await mcp.read_resource("memo:unlisted")


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_only_the_capabilities_of_the_server_are_declared(revision: str) -> None:
    upstream = Scripted({"tools/list": {"tools": [tool("a")]}}, capabilities={"tools": {}})
    inner = gateway(upstream)
    outer = MCPServer("outer")
    outer.mount(inner, prefix="in")
    for mcp in (inner, outer):
        async with Client(mcp, revision=revision) as client:
            assert {"tools", "resources", "prompts", "completions"} & client.capabilities.keys() == {"tools"}
            assert await client.list_prompts() == []
    assert upstream.asked("prompts/list") == []
    everything = Scripted({"tools/list": {"tools": [tool("a")]}})
    async with Client(gateway(everything), revision=revision) as client:
        assert {"tools", "resources", "prompts", "completions"} <= client.capabilities.keys()


@pytest.mark.parametrize("reports", [False, True])
async def test_subscriptions_are_declared_if_a_resource_has_them(reports: bool) -> None:
    uri = "data://days/monday"
    upstream = Scripted(
        {"resources/list": {"resources": [{"uri": uri, "name": "monday"}]}},
        capabilities={"resources": {"subscribe": True} if reports else {}},
    )
    inner = gateway(upstream)
    outer = MCPServer("outer")
    outer.mount(inner, prefix="in")
    for mcp in (inner, outer):
        await mcp.list_resources()
        async with Client(mcp) as client:
            assert ("subscribe" in client.capabilities["resources"]) is reports
    inner.resource("data://own", name="own")(lambda: "own")
    for mcp in (inner, outer):
        async with Client(mcp) as client:
            assert client.capabilities["resources"]["subscribe"] is True


async def test_instructions_are_added_with_the_name_of_the_server() -> None:
    mcp = MCPServer("gateway", instructions="Ours.")
    mcp.mount(Upstream(Scripted(instructions="Use UTC."), name="time", instructions=True))
    mcp.mount(Upstream(Scripted(instructions="Never added."), name="other"))
    mcp.mount(Upstream(Scripted(), name="silent", instructions=True))
    async with Client(mcp) as client:
        assert client.instructions == "Ours.\n\nInstructions of the server time:\n\nUse UTC."


@pytest.mark.parametrize("optional", [False, True])
async def test_a_session_begins_without_the_instructions_of_slow_servers(
    monkeypatch: pytest.MonkeyPatch, optional: bool
) -> None:
    monkeypatch.setattr(provided, "FIRST_LIST_SECONDS", 0.01)
    monkeypatch.setattr(provided, "SETTLE_SECONDS", 0.5)
    mcp = MCPServer("gateway", instructions="Ours.")
    mcp.mount(Upstream(Scripted(instructions="Use UTC."), name="time", instructions=True))
    for number in range(2):
        mcp.mount(Upstream(Silent(), name=f"silent {number}", instructions=True, optional=optional))
    async with asyncio.timeout(PATIENCE), Client(mcp, revision="2025-11-25") as client:
        assert client.instructions == "Ours.\n\nInstructions of the server time:\n\nUse UTC."


class Silent(Scripted):
    """A server that answers nothing."""

    async def request(self, message: Any, headers: Any) -> Any:
        del message, headers
        await asyncio.Event().wait()


async def test_only_one_session_waits_for_a_server_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provided, "FIRST_LIST_SECONDS", 0.01)
    monkeypatch.setattr(provided, "SETTLE_SECONDS", 0.01)
    mcp = MCPServer("gateway")
    mcp.mount(Upstream(Silent(), name="silent", instructions=True))
    async with asyncio.timeout(PATIENCE), Client(mcp, revision="2025-11-25"):
        monkeypatch.setattr(provided, "FIRST_LIST_SECONDS", None)
        monkeypatch.setattr(provided, "SETTLE_SECONDS", None)
        for revision in schemas.REVISIONS:
            async with Client(mcp, revision=revision) as client:
                assert client.instructions is None


async def test_a_call_of_an_unknown_name_does_not_wait_for_long_for_an_optional_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(provided, "FIRST_LIST_SECONDS", 0.01)
    mcp = gateway(Silent(), optional=True)
    mcp.mount(Upstream(Scripted({"tools/list": {"tools": [tool("a")]}}), name="other"), prefix="other")
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(MCPError, match=r"up_a is unknown\. docs has not answered yet\."):
            await mcp.call_tool("up_a")
        with pytest.raises(MCPError, match="Unknown tool"):
            await mcp.call_tool("other_b")


async def test_a_server_that_is_away_is_one_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    upstream = Scripted({"tools/list": {"tools": [tool("a")]}})
    upstream.is_away = True
    assert await gateway(upstream, optional=True).list_tools() == []
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["The server 'docs' is away"]


async def test_clients_that_listen_hear_of_a_server_that_comes_without_a_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(provided, "RETRY_SECONDS", 0.01)
    upstream = Scripted({"tools/list": {"tools": [tool("a")]}})
    upstream.is_away = True
    mcp = gateway(upstream, optional=True)
    async with asyncio.timeout(PATIENCE), Client(mcp, revision="2026-07-28") as client:
        assert await client.list_tools() == []
        async with client.listen(tools_list_changed=True) as changes:
            assert await client.list_tools() == []
            upstream.is_away = False
            assert (await anext(changes)).kind == "tools"
            assert [tool.name for tool in await client.list_tools()] == ["up_a"]


async def test_facts_of_the_server_are_there_after_connect() -> None:
    upstream = Upstream(Scripted(instructions="Use UTC."))
    assert (upstream.server_info, upstream.server_capabilities, upstream.server_instructions) == ({}, {}, None)
    await upstream.connect()
    assert upstream.server_instructions == "Use UTC."
    assert "completions" in upstream.server_capabilities


async def test_lists_say_how_long_they_may_be_cached() -> None:
    mcp = gateway(Scripted({"tools/list": {"tools": [], "ttlMs": 3_000, "cacheScope": "private"}}))
    async with Client(mcp, revision="2026-07-28") as client:
        result = await client.request("tools/list", {})
        assert (result["ttlMs"], result["cacheScope"]) == (3_000, "private")


async def test_an_empty_list_is_an_error_while_a_server_has_never_answered() -> None:
    upstream = Scripted({"tools/list": {"tools": [tool("a")]}})
    upstream.is_away = True
    mcp = gateway(upstream)
    async with Client(mcp) as client:
        with pytest.raises(MCPError, match=r"There is no list\. docs has not answered yet\."):
            await client.list_tools()
    with pytest.raises(MCPError, match=r"up_a is unknown\. docs has not answered yet\."):
        await mcp.call_tool("up_a")
    with pytest.raises(MCPError, match="Unknown tool"):
        await mcp.call_tool("other_a")


async def test_an_optional_server_that_is_away_hides_nothing() -> None:
    upstream = Scripted({"tools/list": {"tools": [tool("a")]}})
    upstream.is_away = True
    mcp = gateway(upstream, optional=True)
    assert await mcp.list_tools() == []
    mcp.tool("local")(lambda: "local")
    assert [item.name for item in await mcp.list_tools()] == ["local"]
    assert (await mcp.call_tool("local")).text == "local"


async def test_a_list_after_a_change_is_the_new_one() -> None:
    tools: list[Any] = [tool("a")]
    reading, answers = asyncio.Event(), asyncio.Event()

    class Slow(Scripted):
        async def request(self, message: Any, headers: Any) -> Any:
            if len(tools) > 1 and message["method"] == "tools/list":
                reading.set()
                await answers.wait()
            return await super().request(message, headers)

    served = Upstream(Slow({"tools/list": {"tools": tools}}), name="docs")
    mcp = MCPServer("gateway")
    mcp.mount(served, prefix="up")
    async with Client(mcp) as client:
        assert [item.name for item in await client.list_tools()] == ["up_a"]
        for count, name in enumerate(("b", "c"), 2):
            tools.append(tool(name))
            served._changes.report(Change("tools"))
            await reading.wait()
            listing = asyncio.create_task(mcp.list_tools())
            await asyncio.sleep(0)
            answers.set()
            assert len(await listing) == count
            reading.clear()
            answers.clear()


async def test_a_list_remains_while_the_server_is_away() -> None:
    upstream = Scripted({"tools/list": {"tools": [tool("a")]}})
    served = Upstream(upstream, name="docs")
    mcp = MCPServer("gateway")
    mcp.mount(served, prefix="up")
    assert [item.name for item in await mcp.list_tools()] == ["up_a"]
    upstream.is_away = True
    served.changed()
    assert [item.name for item in await mcp.list_tools()] == ["up_a"]
    async with asyncio.timeout(PATIENCE):
        while served.status.list_error is None:  # noqa: ASYNC110 - the status has no event
            await asyncio.sleep(0)


async def test_a_slow_optional_server_delays_a_list_for_a_time_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provided, "FIRST_LIST_SECONDS", 0.0)
    answers = asyncio.Event()

    class Slow(Scripted):
        async def request(self, message: Any, headers: Any) -> Any:
            await answers.wait()
            return await super().request(message, headers)

    mcp = gateway(Slow({"tools/list": {"tools": [tool("a")]}}), optional=True)
    mcp.tool("local")(lambda: "local")
    changes = mcp._runtime.server.hub.add(lambda _: True)
    assert [item.name for item in await mcp.list_tools()] == ["local"]
    monkeypatch.setattr(provided, "FIRST_LIST_SECONDS", None)
    async with asyncio.timeout(PATIENCE):  # only the first list waits
        assert [item.name for item in await mcp.list_tools()] == ["local"]
    answers.set()
    async with asyncio.timeout(PATIENCE):
        async for change in changes:
            if "tools" in change.method:
                break
    assert [item.name for item in await mcp.list_tools()] == ["local", "up_a"]


async def test_the_skills_of_an_upstream_are_passed_on_where_the_author_chooses_that(tmp_path: Path) -> None:
    folder = tmp_path / "deploy"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: deploy\ndescription: Deploy.\n---\n# Deploy\n")
    (folder / "notes.md").write_text("Notes")
    upstream = MCPServer("upstream")
    upstream.add_skills(folder)
    with_skills, without = MCPServer("with"), MCPServer("without")
    with_skills.mount(Upstream(upstream, skills=True), prefix="up")
    without.mount(Upstream(upstream))
    async with Client(with_skills) as client:
        (skill,) = await client.list_skills()
        assert skill.uri == "skill://up/deploy/SKILL.md"
        assert (await client.read_skill(skill)).is_verified
    async with Client(without) as client:
        await client.list_resources()
        assert "extensions" not in client.capabilities


@pytest.mark.parametrize("renames", [False, True])
async def test_an_upstream_of_a_mounted_server_that_has_never_answered_is_named_and_asked_again(
    monkeypatch: pytest.MonkeyPatch, renames: bool
) -> None:
    monkeypatch.setattr(status, "_FIRST_PAUSE", 0.0)
    upstream = Scripted({"tools/list": {"tools": [tool("a")]}, "tools/call": {"content": []}})
    upstream.is_away = True
    mcp, middle = MCPServer("above"), MCPServer("middle")
    mcp.mount(middle, prefix="mid", transforms=[lambda feature: feature] if renames else [])
    middle.mount(gateway(upstream))
    async with Client(mcp) as client:
        with pytest.raises(MCPError, match=r"There is no list\. docs has not answered yet\."):
            await client.list_tools()
    with pytest.raises(MCPError, match=r"mid_up_a is unknown\. docs has not answered yet\."):
        await mcp.call_tool("mid_up_a")
    with pytest.raises(MCPError, match=r"mid\+up\+memo:x is unknown\. docs has not answered yet\."):
        await mcp.read_resource("mid+up+memo:x")
    for name in ("other_a",) if renames else ("other_a", "mid_a"):  # a function may rename mid_up_a to mid_a
        with pytest.raises(MCPError, match="Unknown tool"):
            await mcp.call_tool(name)
    upstream.is_away = False
    assert not (await mcp.call_tool("mid_up_a")).is_error  # although the list is not due
