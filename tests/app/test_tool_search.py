"""`MCPServer.tool_search`: a short list, a search by words, and calls of what it finds."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from funcmcp import Context, Header, MCPError, MCPServer, Principal, ProtocolOptions, RegistrationError, ToolError
from funcmcp._app.tool_search import MAX_RESULTS, MIN_CHARACTERS
from funcmcp._serving.composition import runtime_of
from funcmcp.auth import APIKeys, Auth
from funcmcp.providers import Provider, tool_from_schema
from funcmcp.testing import Client, MemoryRequest, accept
from tests import schemas

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp.middleware import CallNext, Reply, RequestContext

pytestmark = pytest.mark.branches("What a caller finds and calls.")

EVERY_REVISION = pytest.mark.parametrize("revision", schemas.REVISIONS)
KEY = "a-key-of-16-characters"
CLIENT = "funcmcp"


def orders(**options: Any) -> MCPServer:
    mcp = MCPServer("orders", **options)

    @mcp.tool(read_only=True, open_world=False)
    def get_order(order_id: int) -> str:
        """Look up one purchase.

        Args:
            order_id: The number on the invoice.
        """
        return f"order {order_id}"

    @mcp.tool(destructive=True, tags={"cleanup"})
    def delete_order(order_id: int, mode: Literal["archive", "shred"] = "archive") -> str:
        """Remove a purchase."""
        raise ToolError(f"{order_id} can't be removed: {mode}.")

    @mcp.tool
    async def ask_user(context: Context) -> str:
        """Confirm with the customer."""
        answer = await context.elicit_url("Pay", "https://example.com/pay")
        await context.report_progress(1, 1)
        return answer.action

    @mcp.tool(tags={"core"})
    def help() -> str:  # noqa: A001 - a name that tools have
        """Explain the server."""
        return "help"

    return mcp


def searched(search: dict[str, Any] | None = None, **options: Any) -> MCPServer:
    mcp = orders(**options)
    mcp.tool_search(**(search or {}))
    return mcp


async def found(mcp: MCPServer, query: str, **options: Any) -> list[str]:
    result = await mcp.call_tool("search_tools", {"query": query}, **options)
    assert result.structured_content is not None
    assert json.loads(result.text) == result.structured_content
    return [tool["name"] for tool in result.structured_content["tools"]]


async def listed(mcp: MCPServer, **options: Any) -> dict[str, Any]:
    async with Client(mcp, **options) as client:
        return {tool.name: tool for tool in await client.list_tools()}


# The list


@EVERY_REVISION
async def test_the_list_has_the_two_tools_and_those_that_are_pinned(revision: str) -> None:
    mcp = searched({"always_visible": {"help"}})
    tools = await listed(mcp, revision=revision)
    assert list(tools) == ["help", "search_tools", "call_tool"]
    mcp = searched({"always_visible_tags": ["core", "cleanup"]})
    assert list(await listed(mcp, revision=revision)) == ["delete_order", "help", "search_tools", "call_tool"]


@EVERY_REVISION
async def test_the_list_has_less_than_two_kilobytes_however_many_tools_there_are(revision: str) -> None:
    mcp = MCPServer("many")
    for number in range(300):
        mcp.tool(name=f"tool_{number}")(lambda: "done")
    mcp.tool_search()
    async with Client(mcp, revision=revision) as client:
        assert len(json.dumps(await client.list_items("tools/list", "tools"))) < 2_000


@EVERY_REVISION
async def test_a_tool_that_is_not_listed_is_called_by_its_name(revision: str) -> None:
    async with Client(searched(), revision=revision) as client:
        assert (await client.call_tool("get_order", {"order_id": 3})).text == "order 3"


@EVERY_REVISION
async def test_a_client_that_the_author_names_gets_the_list_of_all_tools(revision: str) -> None:
    tools = await listed(searched({"whole_list_clients": {CLIENT}}), revision=revision)
    assert list(tools) == ["get_order", "delete_order", "ask_user", "help"]
    tools = await listed(searched({"whole_list_clients": {"other"}}), revision=revision)
    assert list(tools) == ["search_tools", "call_tool"]


@pytest.mark.parametrize(("clients", "scope"), [((), "public"), (("other",), "private")])
async def test_caches_do_not_share_a_list_that_depends_on_the_client(clients: tuple[str, ...], scope: str) -> None:
    async with Client(searched({"whole_list_clients": clients}), revision="2026-07-28") as client:
        assert (await client.request("tools/list"))["cacheScope"] == scope


async def test_the_author_gets_all_tools_and_a_principal_the_short_list() -> None:
    mcp = searched()
    assert len(await mcp.list_tools()) == 6
    assert [tool.name for tool in await mcp.list_tools(principal=Principal("ada"))] == ["search_tools", "call_tool"]


async def test_a_short_list_has_pages() -> None:
    mcp = searched({"always_visible": {"help"}}, protocol=ProtocolOptions(page_size=2))
    assert list(await listed(mcp)) == ["help", "search_tools", "call_tool"]


async def test_a_name_that_is_pinned_and_does_not_exist_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    mcp = searched({"always_visible": {"halp"}})
    with caplog.at_level(logging.WARNING, "funcmcp"):
        await listed(mcp)
        await listed(mcp)
    assert [record.getMessage() for record in caplog.records] == ["always_visible names tools that do not exist: halp."]


# The search


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("delete_order", "delete_order"),
        ("deleting orders", "delete_order"),
        ("remove", "delete_order"),
        ("purchases to look up", "get_order"),
        ("invoice", "get_order"),
        ("shred", "delete_order"),
        ("cleanup", "delete_order"),
        ("confirming", "ask_user"),
    ],
)
async def test_words_of_all_texts_of_a_tool_find_it(query: str, name: str) -> None:
    assert (await found(searched(), query))[0] == name


async def test_a_search_returns_what_a_call_needs() -> None:
    result = await searched().call_tool("search_tools", {"query": "invoice"})
    assert result.structured_content == {
        "tools": [
            {
                "name": "get_order",
                "title": "Get Order",
                "description": "Look up one purchase.",
                "inputSchema": {
                    "type": "object",
                    "properties": {"order_id": {"type": "integer", "description": "The number on the invoice."}},
                    "required": ["order_id"],
                },
                "annotations": {"readOnlyHint": True, "openWorldHint": False},
            }
        ]
    }


async def test_a_search_finds_neither_itself_nor_tools_in_the_list() -> None:
    mcp = searched({"always_visible": {"help"}})
    assert await found(mcp, "explain the server") == []
    assert not {"search_tools", "call_tool", "help"} & set(await found(mcp, "search_tools call_tool find call tools"))
    result = await mcp.call_tool("search_tools", {"query": "zebra"})
    assert result.structured_content == {
        "tools": [],
        "hint": "No tool matches. Use other words for what the tool does or works with.",
    }


async def test_every_tool_whose_name_is_in_the_query_is_found() -> None:
    mcp = MCPServer("many")
    for number in range(30):
        mcp.tool(name=f"get_{number}")(lambda: "done")
    mcp.tool_search(max_results=3)
    names = [f"get_{number}" for number in (7, 3, 29, 11, 5)]
    assert await found(mcp, f"`{names[0]}`, {names[1]}; {' '.join(names[2:])}") == names
    assert len(await found(mcp, " ".join(f"get_{number}" for number in range(30)))) == 20


async def test_a_name_that_is_a_plain_word_counts_if_it_is_the_whole_query() -> None:
    mcp = orders()
    mcp.tool(name="from", description="Grep.")(lambda: "done")
    mcp.tool_search()
    assert await found(mcp, "from") == ["from"]
    assert "from" not in await found(mcp, "a purchase from last year")


async def test_a_search_returns_as_many_tools_as_the_author_wants() -> None:
    mcp = MCPServer("many")
    for number in range(30):
        mcp.tool(name=f"get_{number}")(lambda: "done")
    mcp.tool_search(max_results=7)
    assert len(await found(mcp, "get")) == 7


async def test_the_search_follows_the_tools() -> None:
    mcp = searched()
    assert await found(mcp, "zebra") == []
    mcp.tool(name="zebra")(lambda: "stripes")
    assert await found(mcp, "zebra") == ["zebra"]
    mcp.disable({"zebra"})
    assert await found(mcp, "zebra") == []
    mcp.enable({"zebra"})
    assert await found(mcp, "zebra") == ["zebra"]
    mcp.remove_tool("zebra")
    mcp.tool(name="zebra", description="A horse.")(lambda: "stripes")
    assert await found(mcp, "horse") == ["zebra"]
    mcp.remove_tool("zebra")
    assert await found(mcp, "horse zebra") == []


async def test_a_pinned_tool_comes_and_goes() -> None:
    mcp = searched({"always_visible": {"zebra"}})
    mcp.tool(name="zebra")(lambda: "stripes")
    assert list(await listed(mcp)) == ["zebra", "search_tools", "call_tool"]
    mcp.remove_tool("zebra")
    assert list(await listed(mcp)) == ["search_tools", "call_tool"]


async def test_a_change_reads_one_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    mcp = searched()
    await found(mcp, "order")
    read: list[str] = []

    def texts_of(definition: dict[str, Any], _tags: object) -> list[tuple[str, int]]:
        read.append(definition["name"])
        return []

    monkeypatch.setattr("funcmcp._server.tool_search.texts_of", texts_of)
    mcp.tool(name="zebra")(lambda: "stripes")
    await found(mcp, "order")
    await found(mcp, "order")
    assert read == ["zebra"]


async def test_rules_of_visibility_do_not_hide_the_search() -> None:
    mcp = searched()
    mcp.enable(tags={"core"}, only=True)
    assert list(await listed(mcp)) == ["search_tools", "call_tool"]
    assert await found(mcp, "order") == []
    assert await found(mcp, "explain") == ["help"]


async def test_a_tool_without_a_valid_definition_is_not_found_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    mcp = searched()

    @mcp.tool
    def broken(value: "Missing") -> None:  # type: ignore[name-defined]  # noqa: F821, UP037
        """Break."""

    with caplog.at_level(logging.ERROR, "funcmcp"):
        assert await found(mcp, "break order") == ["get_order", "delete_order"]
        mcp.remove_tool("broken")
        mcp.tool(broken)
        assert await found(mcp, "break order") == ["get_order", "delete_order"]
    assert caplog.text.count("The tool broken is left out of search_tools.") == 1


# Sizes


def wide(description: str = "word " * 100, arguments: int = 5) -> MCPServer:
    mcp = MCPServer("wide")
    for number in range(5):
        properties = {
            f"argument_{place}": {
                "type": "object",
                "description": "text " * 50,
                "properties": {"inner": {"type": "string", "enum": ["a", "b"]}},
            }
            for place in range(arguments)
        }
        mcp.tool(
            name=f"get_{number}",
            description=description,
            input_schema={"type": "object", "properties": properties, "required": ["argument_0"]},
        )(lambda arguments: "done")
    return mcp


@pytest.mark.parametrize("characters", [MIN_CHARACTERS, 2_000, 4_000, 12_000])
@pytest.mark.parametrize("arguments", [0, 5, 100])
@pytest.mark.parametrize("description", ["", "word " * 2_000, "ж" * 900])
async def test_a_result_has_no_more_characters_than_the_limit(
    characters: int, arguments: int, description: str
) -> None:
    mcp = wide(description, arguments)
    mcp.tool_search(result_characters=characters)
    result = await mcp.call_tool("search_tools", {"query": "get"})
    assert len(result.text) <= characters
    assert result.structured_content is not None
    assert len(result.structured_content["tools"]) == 5


async def test_the_best_match_is_the_most_complete() -> None:
    mcp = wide()
    mcp.tool_search(result_characters=4_000)
    result = await mcp.call_tool("search_tools", {"query": "get"})
    assert result.structured_content is not None
    sizes = [len(json.dumps(tool)) for tool in result.structured_content["tools"]]
    assert sizes == sorted(sizes, reverse=True)
    assert "text" in result.structured_content["tools"][0]["inputSchema"]["properties"]["argument_0"]["description"]
    second = result.structured_content["tools"][1]["inputSchema"]["properties"]["argument_0"]
    assert second["type"] == "object"
    assert "description" not in second


async def test_a_result_says_that_schemas_are_left_out() -> None:
    mcp = wide(arguments=100)
    mcp.tool_search(result_characters=1_500)
    result = await mcp.call_tool("search_tools", {"query": "get"})
    assert result.structured_content is not None
    assert "search for their names" in result.structured_content["hint"]


# Calls


@EVERY_REVISION
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("get_order", {"order_id": 3}),
        ("get_order", {"order_id": "x"}),
        ("get_order", {"colour": "red"}),
        ("delete_order", {"order_id": 3}),
        ("ask_user", {}),
    ],
)
async def test_a_call_has_the_result_of_the_tool_that_is_called(
    revision: str, name: str, arguments: dict[str, Any]
) -> None:
    progress: list[Any] = []
    async with Client(
        searched(), revision=revision, elicit=accept({}, {}), on_progress=lambda *values: progress.append(values)
    ) as client:
        direct = await client.call_tool(name, arguments)
        direct_progress = list(progress)
        progress.clear()
        assert await client.call_tool("call_tool", {"name": name, "arguments": arguments}) == direct
        assert progress == direct_progress


@pytest.mark.parametrize("lax", [False, True])
async def test_arguments_may_be_a_text_on_a_lax_server_only(lax: bool) -> None:
    mcp = searched(lax=lax)
    result = await mcp.call_tool("call_tool", {"name": "get_order", "arguments": '{"order_id": 3}'})
    assert result.text == ("order 3" if lax else "arguments: must be an object, not a string")
    for wrong in ({"name": "get_order", "arguments": "{"}, {"name": 3}):
        assert (await mcp.call_tool("call_tool", wrong)).is_error


async def test_the_arguments_may_be_absent() -> None:
    assert (await searched().call_tool("call_tool", {"name": "help"})).text == "help"
    assert (await searched().call_tool("call_tool", {"name": "help", "arguments": None})).text == "help"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "name: is required"),
        ({"name": 3}, "name: must be a string"),
        ({"name": "get_order", "arguments": []}, "arguments: must be an object"),
        ({"name": "get_order", "order_id": 3}, "order_id: is not an argument"),
    ],
)
async def test_wrong_arguments_of_the_calling_tool_are_an_error(arguments: dict[str, Any], text: str) -> None:
    result = await searched().call_tool("call_tool", arguments)
    assert (result.is_error, text in result.text) == (True, True)


async def test_arguments_that_are_not_an_object_are_an_error_of_the_protocol() -> None:
    async with Client(searched()) as client:
        with pytest.raises(MCPError, match="must be an object"):
            await client.request("tools/call", {"name": "call_tool", "arguments": [1]})


async def test_a_server_that_ignores_unknown_arguments_ignores_those_of_the_calling_tool() -> None:
    mcp = searched(unknown_arguments="ignore")
    arguments = {"name": "get_order", "arguments": {"order_id": 3}, "session": "x"}
    assert (await mcp.call_tool("call_tool", arguments)).text == "order 3"
    close = await mcp.call_tool("call_tool", {"name": "get_order", "argument": {"order_id": 3}})
    assert close.is_error


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("get_ordr", "Unknown tool: 'get_ordr'. Did you mean get_order?"),
        ("zebra", "Unknown tool: 'zebra'. search_tools finds the names of tools."),
        ("z\n\x1b[31m", "Unknown tool: 'z\\n\\x1b[31m'. search_tools"),
        ("call_tool", "call_tool is in the list of tools. Call it by its own name."),
        ("search_tools", "search_tools is in the list of tools."),
        ("help", "help is in the list of tools."),
    ],
)
async def test_a_name_that_the_calling_tool_does_not_call_is_an_error_for_the_model(name: str, text: str) -> None:
    result = await searched({"always_visible": {"help"}}).call_tool("call_tool", {"name": name})
    assert (result.is_error, result.text[: len(text)]) == (True, text)


async def test_middleware_and_the_log_see_the_tool_that_is_called() -> None:
    seen: list[Any] = []

    async def look(context: RequestContext, call_next: CallNext) -> Reply:
        feature = context.feature
        seen.append((context.request.params.get("name"), None if feature is None else feature.key))
        reply = await call_next(context)
        seen.append(type(context.error))
        return reply

    mcp = searched(middleware=[look])
    names: list[tuple[str, str]] = []
    runtime_of(mcp).log_requests(lambda entry: names.append((entry.request.name, entry.request.outcome)))
    await mcp.call_tool("call_tool", {"name": "delete_order", "arguments": {"order_id": 1}})
    await mcp.call_tool("call_tool", {"name": "zebra"})
    assert seen == [("delete_order", "delete_order"), ToolError, ("call_tool", None), ToolError]
    assert names == [("delete_order", "tool error"), ("call_tool", "tool error")]


async def test_a_span_has_the_name_of_the_tool_that_is_called() -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    mcp = searched()
    mcp.trace(provider)
    await mcp.call_tool("call_tool", {"name": "get_order", "arguments": {"order_id": 3}})
    [span] = exporter.get_finished_spans()
    assert span.name == "tools/call get_order"
    assert span.attributes is not None
    assert span.attributes["gen_ai.tool.name"] == "get_order"


async def test_the_time_limit_is_that_of_the_tool_that_is_called() -> None:
    mcp = searched()

    @mcp.tool(timeout=0.01)
    async def wait() -> None:
        await asyncio.Event().wait()

    result = await mcp.call_tool("call_tool", {"name": "wait"})
    assert (result.is_error, "(timeout=)" in result.text) == (True, True)


async def test_a_call_becomes_a_task_as_the_tool_that_is_called() -> None:
    mcp = searched()

    @mcp.tool(task="required")
    async def report() -> str:
        """Write a report."""
        return "written"

    async with Client(mcp, revision="2026-07-28") as client:
        result = await client.call_tool("call_tool", {"name": "report"})
        assert result.text == "written"
        assert (await client.call_tool("call_tool", {"name": "get_order", "arguments": {"order_id": 1}})).text


async def test_the_calling_tool_does_not_offer_tasks() -> None:
    mcp = searched()

    @mcp.tool(task="required")
    async def report() -> str:
        return "written"

    async with Client(mcp, revision="2025-11-25") as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        assert "execution" not in tools["call_tool"]
        with pytest.raises(MCPError, match="runs only as a task"):
            await client.call_tool("call_tool", {"name": "report"})


# Hints


HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


async def hints(mcp: MCPServer, **options: Any) -> tuple[bool, ...]:
    tools = await listed(mcp, **options)
    return tuple(tools["call_tool"]["annotations"][hint] for hint in HINTS)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], (False, True, False, True)),
        ([{"read_only": True, "open_world": False}], (True, False, True, False)),
        ([{"read_only": True}], (True, False, True, True)),
        ([{"read_only": True}, {"destructive": False}], (False, False, False, True)),
        ([{"destructive": False, "idempotent": True, "open_world": False}], (False, False, True, False)),
        ([{"read_only": True}, {}], (False, True, False, True)),
    ],
)
async def test_the_calling_tool_has_the_hints_of_the_most_dangerous_tool(
    options: list[dict[str, Any]], expected: tuple[bool, ...]
) -> None:
    mcp = MCPServer("hints")
    for number, chosen in enumerate(options):
        mcp.tool(name=f"tool_{number}", **chosen)(lambda: "done")
    mcp.tool_search()
    assert await hints(mcp) == expected


async def test_the_hints_follow_the_tools_and_do_not_count_pinned_ones() -> None:
    mcp = MCPServer("hints")
    mcp.tool(name="safe", read_only=True)(lambda: "done")
    mcp.tool_search(always_visible={"pinned"})
    mcp.tool(name="pinned", destructive=True)(lambda: "done")
    assert (await hints(mcp))[0]
    mcp.tool(name="dangerous")(lambda: "done")
    assert not (await hints(mcp))[0]
    mcp.remove_tool("dangerous")
    assert (await hints(mcp))[0]


# Rights


def guarded(**search: Any) -> MCPServer:
    mcp = orders(auth=Auth(APIKeys({"ada": KEY, "eve": KEY[::-1]}, scopes={"ada": ["admin"]})))
    mcp.tool(name="open_door", allow_anonymous=True, read_only=True, open_world=False)(lambda: "open")
    mcp.tool(name="shut_door", scopes=["admin"])(lambda: "shut")
    mcp.tool(name="lock_door", authorize=lambda principal: principal.subject == "ada")(lambda: "locked")
    mcp.tool_search(allow_anonymous=True, **search)
    return mcp


CALLERS: dict[str, tuple[str | None, set[str]]] = {
    "admin": (KEY, {"open_door", "shut_door", "lock_door"}),
    "principal": (KEY[::-1], {"open_door"}),
    "anonymous": (None, {"open_door"}),
}


def headers_of(caller: str) -> dict[str, str]:
    key = CALLERS[caller][0]
    return {} if key is None else {"x-api-key": key}


@EVERY_REVISION
@pytest.mark.parametrize("caller", CALLERS)
async def test_a_caller_finds_what_it_may_use(caller: str, revision: str) -> None:
    async with Client(guarded(), revision=revision, headers=headers_of(caller)) as client:
        result = await client.call_tool("search_tools", {"query": "door shut_door lock_door"})
        assert {tool["name"] for tool in json.loads(result.text)["tools"]} == CALLERS[caller][1]


async def test_tools_of_others_do_not_change_the_order_of_the_matches() -> None:
    """The word "red" is rare in what the anonymous caller may use, whatever the other tools are."""
    queries = ("red door", "red", "door", "blue red door")
    results = []
    for description in ("red " * 50, "door " * 50, "nothing"):
        mcp = MCPServer("doors", auth=Auth(APIKeys({"ada": KEY})))
        for name, text in {"a": "red door", "b": "blue door", "c": "red", "d": "door door"}.items():
            mcp.tool(name=name, description=text, allow_anonymous=True)(lambda: "done")
        for number in range(20):
            mcp.tool(name=f"secret_{number}", description=description)(lambda: "done")
        mcp.tool_search(allow_anonymous=True)
        async with Client(mcp) as client:
            results.append([(await client.call_tool("search_tools", {"query": query})).text for query in queries])
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("caller", ["principal", "anonymous"])
async def test_an_unknown_name_suggests_only_what_the_caller_may_use(caller: str) -> None:
    async with Client(guarded(), headers=headers_of("principal")) as client:
        for name in ("shut_dor", "lock_dor"):
            assert "_door" not in (await client.call_tool("call_tool", {"name": name})).text.replace("open_door", "")


async def refusal(mcp: MCPServer, name: str, arguments: dict[str, Any], **headers: str) -> tuple[int, Any, Any]:
    """Return the status, the challenge and the error of a call over HTTP."""
    params = {
        "name": name,
        "arguments": arguments,
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    fields = {
        "host": "127.0.0.1",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": name,
        **{key.replace("_", "-"): value for key, value in headers.items()},
    }
    pairs = [(key.encode(), value.encode()) for key, value in fields.items()]
    response = await runtime_of(mcp).exchange(MemoryRequest("POST", "/mcp", pairs, json.dumps(body).encode()))
    assert isinstance(response.body, bytes)
    message = json.loads(response.body)
    return response.status, dict(response.headers).get("www-authenticate"), message.get("error", message.get("result"))


@pytest.mark.parametrize("key", [None, KEY, KEY[::-1]])
@pytest.mark.parametrize("name", ["open_door", "shut_door", "lock_door", "get_order", "help"])
async def test_a_caller_is_refused_as_for_the_tool_that_is_called(key: str | None, name: str) -> None:
    mcp = guarded()
    headers = {} if key is None else {"x_api_key": key}
    direct = await refusal(mcp, name, {}, **headers)
    assert await refusal(mcp, "call_tool", {"name": name, "arguments": {}}, **headers) == direct


@pytest.mark.parametrize("search", [{}, {"always_visible": {"shut_door"}}])
async def test_an_anonymous_caller_gets_one_refusal_for_all_names(search: dict[str, Any]) -> None:
    mcp = guarded(**search)
    refusals = [await refusal(mcp, "call_tool", {"name": name}) for name in ("shut_door", "get_order", "zebra")]
    assert refusals[0] == refusals[1] == refusals[2]
    assert refusals[0][0] == 401


async def test_a_list_for_one_caller_has_the_hints_of_its_tools() -> None:
    mcp = guarded()
    assert await hints(mcp) == (True, False, True, False)
    assert (await hints(mcp, headers=headers_of("admin")))[:2] == (False, True)


async def test_an_anonymous_caller_may_not_search_unless_the_author_says_so() -> None:
    mcp = orders(auth=Auth(APIKeys({"ada": KEY})))
    mcp.tool(name="open_door", allow_anonymous=True)(lambda: "open")
    mcp.tool_search(always_visible={"open_door", "help"})
    assert list(await listed(mcp)) == ["open_door"]
    assert (await refusal(mcp, "search_tools", {"query": "order"}))[0] == 401


# Headers of 2026-07-28


async def test_headers_of_the_tool_that_is_called_may_be_absent_but_must_agree() -> None:
    mcp = MCPServer("regions")

    @mcp.tool
    def regional(region: Annotated[str, Header("Region")]) -> str:
        return region

    mcp.tool_search()
    call = {"name": "regional", "arguments": {"region": "eu"}}
    assert (await refusal(mcp, "call_tool", call))[0] == 200
    assert (await refusal(mcp, "call_tool", call, mcp_param_region="eu"))[0] == 200
    assert (await refusal(mcp, "call_tool", call, mcp_param_region="us"))[0] == 400
    assert (await refusal(mcp, "call_tool", call, mcp_name="regional"))[0] == 400
    assert (await refusal(mcp, "regional", {"region": "eu"}))[0] == 400


# Mounted servers


async def test_tools_of_a_mounted_server_are_found_and_called() -> None:
    mcp = MCPServer("shop")
    mcp.tool_search()
    mcp.mount(orders(), "billing")
    assert await found(mcp, "purchase") == ["billing_get_order", "billing_delete_order"]
    arguments = {"name": "billing_get_order", "arguments": {"order_id": 3}}
    assert (await mcp.call_tool("call_tool", arguments)).text == "order 3"


async def test_the_search_of_a_mounted_server_is_its_own() -> None:
    mcp, mounted = MCPServer("shop"), searched()
    mcp.mount(mounted, "billing")
    assert len(await listed(mcp)) == 4
    assert list(await listed(mounted)) == ["search_tools", "call_tool"]
    late = orders()
    mcp.mount(late, "late")
    late.tool_search()
    assert len(await listed(mcp)) == 8


# Options


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"max_results": 0}, f"max_results must be from 1 to {MAX_RESULTS}; got 0."),
        ({"max_results": True}, "max_results must be"),
        ({"result_characters": 10}, "result_characters must be at least 1,000; got 10."),
        ({"always_visible": "help"}, "always_visible must be a set of texts"),
        ({"always_visible_tags": [1]}, "always_visible_tags must be a set of texts"),
        ({"whole_list_clients": "x"}, "whole_list_clients must be a set of texts"),
        ({"search_tool_name": "a b"}, "'a b' is not a valid name"),
        ({"call_tool_name": "help"}, "Duplicate tool name 'help'"),
        ({"call_tool_name": "search_tools"}, "Duplicate tool name 'search_tools'"),
        ({"allow_anonymous": 1}, "allow_anonymous of search_tools must be True or False"),
    ],
)
async def test_a_wrong_option_is_refused_and_leaves_the_server_as_it_was(options: dict[str, Any], text: str) -> None:
    mcp = orders()
    with pytest.raises(RegistrationError) as caught:
        mcp.tool_search(**options)
    assert str(caught.value).startswith(text)
    assert len(await listed(mcp)) == 4


def test_a_server_has_one_search() -> None:
    mcp = searched()
    with pytest.raises(RegistrationError, match="has a search already"):
        mcp.tool_search(search_tool_name="other", call_tool_name="another")


async def test_the_tools_have_the_names_that_the_author_chooses() -> None:
    mcp = searched({"search_tool_name": "find", "call_tool_name": "use"})
    tools = await listed(mcp)
    assert list(tools) == ["find", "use"]
    assert "Call them with use." in tools["find"].description
    assert (await mcp.call_tool("use", {"name": "help"})).text == "help"
    assert (await mcp.call_tool("use", {"name": "find"})).is_error


@pytest.mark.parametrize("make", [lambda mcp: mcp.tool(name="call_tool"), lambda mcp: mcp.tool(name="Search_Tools")])
def test_a_tool_can_not_have_the_name_of_one_of_the_two(make: Callable[[MCPServer], Any]) -> None:
    with pytest.raises(RegistrationError, match="Duplicate tool name"):
        make(searched())(lambda: "done")


async def test_what_a_session_hides_is_not_found_and_not_called() -> None:
    mcp = searched({"always_visible": {"help"}}, sessions="memory")

    @mcp.tool
    async def hide(context: Context, name: str) -> None:
        await context.disable({name})

    async with Client(mcp, revision="2025-11-25") as client, Client(mcp, revision="2025-11-25") as other:
        await client.call_tool("hide", {"name": "get_order"})
        await client.call_tool("hide", {"name": "help"})
        assert [tool.name for tool in await client.list_tools()] == ["search_tools", "call_tool"]
        query = {"query": "look up a purchase"}
        names = [
            [tool["name"] for tool in (await user.call_tool("search_tools", query)).structured_content["tools"]]
            for user in (client, other)
        ]
        assert "get_order" not in names[0]
        assert "get_order" in names[1]
        call = {"name": "get_order", "arguments": {"order_id": 3}}
        assert (await other.call_tool("call_tool", call)).text == "order 3"
        with pytest.raises(MCPError, match="Unknown tool"):
            await client.call_tool("call_tool", call)


class Widgets(Provider):
    """Has one more tool each time that it is asked, before each request."""

    is_quick = True
    refresh = 1e-9

    def __init__(self) -> None:
        self.count = 0

    async def list(self, caller: Principal | None) -> list[Any]:
        async def run(arguments: dict[str, Any]) -> str:
            return "turned"

        self.count += 1
        schema = {"type": "object"}
        return [tool_from_schema(f"turn_widget_{number + 1}", run, schema) for number in range(self.count)]


def with_widgets() -> MCPServer:
    mcp = MCPServer("Widgets")
    mcp.add_provider(Widgets())
    mcp.tool_search()
    return mcp


async def test_a_search_finds_tools_of_a_provider_before_its_list_is_needed() -> None:
    assert await found(with_widgets(), "widget") == ["turn_widget_1"]


async def test_tools_of_a_provider_are_called_before_its_list_is_needed_and_after_it_has_changed() -> None:
    mcp = with_widgets()
    for number in (1, 2, 3):
        call = {"name": f"turn_widget_{number}", "arguments": {}}
        status, _, result = await refusal(mcp, "call_tool", call)
        assert (status, result["content"][0]["text"]) == (200, "turned")
    assert "Unknown tool" in (await mcp.call_tool("call_tool", {"name": "zebra"})).text


async def test_a_call_names_a_version_of_the_tool_that_it_stands_for() -> None:
    mcp = MCPServer("Prices")
    for version in ("1.0", "2.0"):
        mcp.tool("price", version=version)(lambda version=version: version)
    mcp.tool_search()
    async with Client(mcp) as client:
        for version, text in (("1.0", "1.0"), ("2", "2.0"), ("3", "Unknown tool: 'price'. search_tools")):
            params = {"name": "call_tool", "arguments": {"name": "price"}, "_meta": {"fastmcp": {"version": version}}}
            result = await client.request("tools/call", params)
            assert result["content"][0]["text"].startswith(text)
        assert (await client.call_tool("call_tool", {"name": "price"})).text == "2.0"


async def test_a_session_has_tools_that_are_shown_to_it_in_its_list_and_is_told_nothing_of_hidden_ones() -> None:
    mcp = orders(sessions="memory")
    mcp.disable({"get_order"})

    @mcp.tool
    async def unlock(context: Context) -> None:
        await context.enable({"get_order"})
        await context.disable({"delete_order"})

    mcp.tool_search()
    async with Client(mcp, revision="2025-11-25") as client, Client(mcp, revision="2025-11-25") as other:
        await client.call_tool("call_tool", {"name": "unlock"})
        assert [tool.name for tool in await client.list_tools()] == ["search_tools", "call_tool", "get_order"]
        assert [tool.name for tool in await other.list_tools()] == ["search_tools", "call_tool"]
        assert (await client.call_tool("get_order", {"order_id": 7})).text == "order 7"
        text = (await client.call_tool("call_tool", {"name": "delete_orders"})).text
        assert text == "Unknown tool: 'delete_orders'. search_tools finds the names of tools."
        with pytest.raises(MCPError, match="Unknown tool"):
            await client.call_tool("call_tool", {"name": "delete_order", "arguments": {"order_id": 7}})


async def test_the_author_gets_the_whole_result_of_a_tool_of_a_provider() -> None:
    class Texts(Provider):
        async def list(self, caller: Principal | None) -> list[Any]:
            async def run(arguments: dict[str, Any]) -> str:
                return "One sentence. " * 1000

            return [replace(tool_from_schema("read_text", run, {"type": "object"}), result_characters=2000)]

    mcp = MCPServer("Texts")
    mcp.add_provider(Texts())
    mcp.tool_search()
    assert len((await mcp.call_tool("call_tool", {"name": "read_text"})).text) == 14_000


async def test_tools_that_a_provider_has_for_each_caller_stay_in_the_list() -> None:
    class Tools(Provider):
        per_caller = True

        async def list(self, caller: Principal | None) -> list[Any]:
            del caller
            return [tool_from_schema("mend", lambda _arguments: "mended", {"type": "object"}, description="Mend it.")]

    mcp = searched()
    mcp.add_provider(Tools())
    assert list(await listed(mcp)) == ["search_tools", "call_tool", "mend"]
    assert await found(mcp, "mend") == []
