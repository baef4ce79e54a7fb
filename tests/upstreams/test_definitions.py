"""Lists of an upstream: bounds, and definitions that are not valid."""

from __future__ import annotations

import asyncio
import gc
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import MCPError, MCPServer
from funcmcp._state import line_limit
from funcmcp._upstreams import definitions, features, pins
from funcmcp._upstreams.definitions import PROMPTS, RESOURCES, TEMPLATES, TOOLS, Kind, ListWork, fault_of
from funcmcp._upstreams.names import tool_name
from funcmcp._upstreams.pins import pin_file, text_of
from funcmcp.upstreams import Upstream, UpstreamError
from tests.clock import Clock
from tests.upstreams.scripted_lists import Scripted, tool

if TYPE_CHECKING:
    from pathlib import Path


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def schema(**members: Any) -> dict[str, Any]:
    return tool("a", inputSchema={"type": "object", **members})


INVALID: list[tuple[Kind, Any, str]] = [
    (TOOLS, 1, "it is not an object"),
    (TOOLS, {"inputSchema": {"type": "object"}}, "'name' must be a text"),
    (TOOLS, tool(""), "'name' must be a text"),
    (TOOLS, tool("a" * 3000), "'name' must be a text"),
    (TOOLS, tool("a", description=1), "'description' has the wrong type int"),
    (TOOLS, tool("a", title=["x"]), "'title' has the wrong type list"),
    (TOOLS, tool("a", annotations={"readOnlyHint": "yes"}), "'readOnlyHint' is not true or false"),
    (TOOLS, tool("a", icons=[{"url": "x"}]), "an icon has no 'src'"),
    (TOOLS, {"name": "a"}, "'inputSchema' must be a JSON schema"),
    (TOOLS, tool("a", inputSchema={"type": "string"}), "'inputSchema' must be a JSON schema"),
    (TOOLS, schema(properties=3), "'inputSchema' is not a valid JSON schema"),
    (TOOLS, schema(required="x"), "'inputSchema' is not a valid JSON schema"),
    (TOOLS, tool("a", outputSchema={"type": "strin"}), "'outputSchema' is not a valid JSON schema"),
    (TOOLS, schema(properties={"a": {"type": "object", "x-mcp-header": "A"}}), "x-mcp-header"),
    (TOOLS, schema(**nested(60)), "it is nested more than 48 levels deep"),
    (TOOLS, tool("a", description="a" * 600_000), "it has 600,"),
    (RESOURCES, {"uri": "no scheme", "name": "a"}, "'uri' has no scheme"),
    (RESOURCES, {"uri": "memo:a"}, "'name' is missing"),
    (RESOURCES, {"uri": "memo:a", "name": "a", "size": True}, "'size' has the wrong type bool"),
    (TEMPLATES, {"uriTemplate": "{a}", "name": "a"}, "'uriTemplate' has no scheme"),
    (PROMPTS, {"name": "a", "arguments": [1]}, "an argument has no name"),
    (PROMPTS, {"name": "a", "arguments": [{"name": "a", "title": 1}]}, "an argument has a title"),
    (PROMPTS, {"name": "a", "arguments": [{"name": "a", "required": "yes"}]}, "'required' of an argument"),
]


@pytest.mark.parametrize(("kind", "definition", "fault"), INVALID)
def test_a_definition_that_clients_refuse_is_not_valid(kind: Kind, definition: Any, fault: str) -> None:
    assert fault in str(fault_of(kind, definition))


@pytest.mark.parametrize(
    ("kind", "definition"),
    [
        (TOOLS, tool("a", title=None, outputSchema=None, annotations=None, icons=None)),
        (TOOLS, schema(**{"$schema": "http://example.com/unknown", "properties": 3})),
        (TOOLS, schema(**{"$schema": "http://json-schema.org/draft-07/schema#"})),
        (TOOLS, schema(properties={"a": {"type": "string", "x-mcp-header": "A"}})),
        (RESOURCES, {"uri": "memo:a", "name": "a", "size": 1.5}),
        (PROMPTS, {"name": "a", "arguments": [{"name": "a", "required": None}]}),
    ],
)
def test_a_definition_of_the_specification_is_valid(kind: Kind, definition: Any) -> None:
    assert fault_of(kind, definition) is None


async def names(upstream: Scripted) -> list[str]:
    mcp = MCPServer("gateway")
    mcp.mount(Upstream(upstream, name="docs"))
    return [item.name for item in await mcp.list_tools()]


async def test_what_is_not_valid_is_left_out_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    tools = [tool("a"), tool("b", description=1), tool("a", description="Again."), {"x": 1}, tool("c")]
    assert await names(Scripted({"tools/list": {"tools": tools}})) == ["a", "c"]
    assert caplog.text.count("docs: the tool b is left out: 'description' has the wrong type int.") == 1
    assert caplog.text.count("docs: the tool a is left out: another one has the same name or URI.") == 1
    assert caplog.text.count("docs: the tool number 4 is left out: 'name' must be") == 1


async def test_hidden_characters_are_reported_once_and_arrive(caplog: pytest.LogCaptureFixture) -> None:
    texts = {
        "clean": "Adds two numbers.",
        "emoji": "Ships \U0001f469\u200d\U0001f4bb \U0001f3f3\ufe0f\u200d\U0001f308 \u0928\u092e",
        "tagged": "Adds\U000e0072.",
        "ansi": "a\x1b[2J",
    }
    tools = [tool(name, description=text) for name, text in texts.items()]
    upstream = Upstream(Scripted({"tools/list": {"tools": tools}}), name="docs")
    mcp = MCPServer("gateway")
    mcp.mount(upstream)
    assert {item.name: item.description for item in await mcp.list_tools()} == texts
    upstream.changed()
    await mcp.list_tools()
    assert [record.getMessage() for record in caplog.records] == [
        "docs: the tool tagged has hidden characters in description: U+E0072.",
        "docs: the tool ansi has hidden characters in description: U+001B.",
    ]


async def test_members_that_are_null_are_absent() -> None:
    upstream = Scripted({"tools/list": {"tools": [tool("a", title=None)]}})
    mcp = MCPServer("gateway")
    mcp.mount(Upstream(upstream))
    assert "title" not in (await mcp.list_tools())[0]


@pytest.mark.parametrize("method", ["resources/templates/list", "prompts/list"])
async def test_a_list_that_the_upstream_does_not_have_takes_nothing_away(method: str) -> None:
    def refuse(_params: Any) -> dict[str, Any]:
        raise MCPError(-32601, "Method not found")

    assert await names(Scripted({"tools/list": {"tools": [tool("a")]}, method: refuse})) == ["a"]


async def test_a_list_that_fails_is_an_error() -> None:
    def fail(_params: Any) -> dict[str, Any]:
        raise MCPError(-32603, "Broken")

    with pytest.raises(MCPError, match="has not answered yet"):
        await names(Scripted({"tools/list": {"tools": [tool("a")]}, "prompts/list": fail}))


async def test_all_pages_are_read() -> None:
    def page(params: Any) -> dict[str, Any]:
        number = int(params.get("cursor", 0))
        return {"tools": [tool(f"t{number}")], **({} if number == 3 else {"nextCursor": str(number + 1)})}

    assert await names(Scripted({"tools/list": page})) == ["t0", "t1", "t2", "t3"]


async def test_a_cursor_that_repeats_ends_the_list(caplog: pytest.LogCaptureFixture) -> None:
    upstream = Scripted({"tools/list": {"tools": [tool("a")], "nextCursor": "again"}})
    assert await names(upstream) == ["a"]
    assert len(upstream.asked("tools/list")) == 4  # for clients with capabilities, and without
    assert caplog.text.count("docs: the end of the list of tools is left out: its list repeats a cursor.") == 1


async def test_pages_and_definitions_are_bounded(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(definitions, "MAX_PAGES", 5)
    monkeypatch.setattr(definitions, "MAX_DEFINITIONS", 12)
    numbers = count()

    def endless(_params: Any) -> dict[str, Any]:
        number = next(numbers)
        return {"tools": [tool(f"t{number}")], "nextCursor": f"c{number}"}

    upstream = Scripted({"tools/list": endless})
    await names(upstream)
    assert len(upstream.asked("tools/list")) == 2 * 5  # not again without each capability, although the lists differ
    assert "more than 5 pages" in caplog.text
    many = Scripted({"tools/list": {"tools": [tool(f"t{number}") for number in range(100)]}})
    assert await names(many) == [f"t{number}" for number in range(12)]


async def test_the_connection_of_a_server_that_nobody_refers_to_is_not_destroyed_at_work(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert await names(Scripted()) == []
    gc.collect()
    assert caplog.text == ""  # of asyncio: "Task was destroyed but it is pending!"


async def test_the_bytes_of_a_list_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(definitions, "MAX_LIST_BYTES", 1_000)
    many = Scripted({"tools/list": {"tools": [tool(f"t{number}", description="d" * 300) for number in range(100)]}})
    assert await names(many) == ["t0", "t1"]


async def test_a_list_without_its_member_is_an_error_of_the_upstream(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(Exception, match="docs has not answered yet"):
        await names(Scripted({"tools/list": {}}))
    assert "has no list 'tools'" in caplog.text


async def test_the_shortest_time_and_the_strictest_scope_hold_for_all_lists() -> None:
    answers: dict[str, dict[str, Any]] = {
        "tools/list": {"tools": [tool("a")], "ttlMs": 5_000, "cacheScope": "public"},
        "prompts/list": {"prompts": [], "ttlMs": 2_000, "cacheScope": "private"},
        "resources/list": {"resources": [], "ttlMs": "soon", "cacheScope": ["private"]},
    }
    upstream = Upstream(Scripted(answers))
    mcp = MCPServer("gateway")
    mcp.mount(upstream)
    await mcp.list_tools()
    assert (upstream.caching.ttl, upstream.caching.scope, upstream.refresh) == (2_000, "private", 2.0)


async def test_a_long_cursor_ends_the_list(caplog: pytest.LogCaptureFixture) -> None:
    numbers = count()

    def endless(_params: Any) -> dict[str, Any]:
        return {"tools": [], "nextCursor": f"{next(numbers)}{'c' * definitions.MAX_CURSOR}"}

    upstream = Scripted({"tools/list": endless})
    assert await names(upstream) == []
    assert len(upstream.asked("tools/list")) == 2
    assert "its list has a cursor of more than 16,384 characters" in caplog.text


@pytest.mark.parametrize(("ttl", "time"), [(10**400, None), (5, 5)])
async def test_a_time_that_is_too_large_for_arithmetic_is_none(ttl: int, time: int | None) -> None:
    upstream = Upstream(Scripted({"tools/list": {"tools": [], "ttlMs": ttl, "cacheScope": "public"}}))
    assert (await upstream.definitions())[1].caching.ttl == time


@pytest.mark.parametrize(
    "description",
    [{"instructions": "i" * 1024 * 1024}, {"capabilities": {"tools": {}, "experimental": {"x": "x" * 64 * 1024}}}],
)
async def test_what_an_upstream_says_about_itself_is_bounded(description: dict[str, Any]) -> None:
    handshake = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}, **description}
    with pytest.raises(UpstreamError, match="not valid"):
        await Upstream(Scripted({"initialize": handshake}, **description)).connect()


async def test_what_is_not_valid_and_changes_without_end_is_reported_within_bounds(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_limit, "MAX_SUBJECTS", 3)
    reader = definitions.DefinitionReader("docs", ListWork())
    for number in range(10):
        reader.log("tool", f"t{number}", "it is not an object")
    reader.report_hidden_characters(TOOLS, "a", tool("a", description="Adds\U000e0072."))
    assert len(caplog.records) == 3 + 1


async def test_other_work_gets_its_turn_while_definitions_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(definitions, "PART_SECONDS", 0)
    numbers = count()
    upstream = Scripted({"tools/list": {"tools": [tool(f"t{number}") for number in range(20)]}})
    served = Upstream(upstream)
    file = tmp_path / "docs.lock.json"
    file.write_text(text_of(pin_file("docs", *await served.definitions())))
    turns: dict[str, set[int]] = {"checked": set(), "compared": set(), "made": set()}
    turn = [0]

    def noting(step: str, function: Any) -> Any:
        def call(*args: Any) -> Any:
            turns[step].add(turn[0])
            return function(*args)

        return call

    monkeypatch.setattr(definitions, "fault_of", noting("checked", definitions.fault_of))
    monkeypatch.setattr(pins, "hash_of", noting("compared", pins.hash_of))
    monkeypatch.setattr(features, "tool_name", noting("made", tool_name))

    async def take_turns() -> None:
        while True:
            turn[0] = next(numbers)
            await asyncio.sleep(0)

    mcp = MCPServer("gateway")
    mcp.mount(Upstream(upstream, pinned=file))
    others = asyncio.create_task(take_turns())
    assert len(await mcp.list_tools()) == 20
    others.cancel()
    assert {step for step, taken in turns.items() if len(taken) >= 20} == turns.keys()


async def test_work_is_counted_without_that_of_other_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(definitions, "perf_counter", clock)
    work = ListWork()

    async def others() -> None:
        while True:
            clock.now += 100
            await asyncio.sleep(0)

    running = asyncio.create_task(others())
    await asyncio.sleep(0)
    async for _ in work.parts(range(4)):
        clock.now += 1
    running.cancel()
    assert work.seconds == 4


@pytest.mark.parametrize(("seconds", "pause"), [(0.01, 0), (0.5, 10), (2, 40), (100, definitions.LONGEST_PAUSE)])
def test_more_work_has_a_longer_pause(seconds: float, pause: float) -> None:
    work = ListWork()
    work.seconds = seconds
    assert work.pause_after(0.0) == pause
    assert work.pause_after(seconds) == 0


async def test_a_list_that_is_much_work_is_used_for_longer_than_the_upstream_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(definitions, "QUICK_SECONDS", 0)
    monkeypatch.setattr(definitions, "PAUSE_FACTOR", 1e9)
    upstream = Upstream(Scripted({"tools/list": {"tools": [tool("a")], "ttlMs": 0}}))
    mcp = MCPServer("gateway")
    mcp.mount(upstream)
    await mcp.list_tools()
    assert upstream.refresh == definitions.LONGEST_PAUSE
