"""Results of tools within their budgets, whatever makes the result and whoever reads it."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema_rs import Draft202012Validator
from pydantic import BaseModel, Field
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from funcmcp import Context, Limits, MCPServer, ProtocolOptions, RegistrationError, ToolError
from funcmcp._server.catalog.features import Tool
from funcmcp._serving.composition import runtime_of
from funcmcp._state.key_values import StateFullError
from funcmcp.auth import APIKeys
from funcmcp.compat import FastMCP
from funcmcp.content import Image, JSONRPCResponse, ToolResult
from funcmcp.testing import Client
from tests import schemas
from tests.server.budgets.test_cut_values import PROSE, VALUES

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from funcmcp.middleware import CallNext, RequestContext

pytestmark = pytest.mark.branches("Results that are too long are shortened, stored and read.")

EVERY_REVISION = pytest.mark.parametrize("revision", schemas.REVISIONS)
STRUCTURED = ("2025-06-18", "2025-11-25", "2026-07-28")
BUDGET = 3000
READ_ON = re.compile(r"call read_result with id=(\w+) and offset=(\d+)\.")


OPERATION = {"operationId": "get", "responses": {"200": {"description": "The rows."}}}


class Row(BaseModel):
    id: int
    name: str


class Rows(BaseModel):
    total: int
    rows: list[Row]


ROWS = [Row(id=index, name=f"row {index}") for index in range(400)]
PLAIN_ROWS = [row.model_dump() for row in ROWS]


def server(function: Callable[..., Any] | None = None, **options: Any) -> MCPServer:
    """Return a server with a budget for all its tools, and with a tool `get`."""
    mcp = MCPServer("Shop", limits=Limits(result_characters=BUDGET), **options)
    if function is not None:
        mcp.tool("get")(function)
    return mcp


def characters_of(result: dict[str, Any]) -> int:
    """Return what a model reads of a result at most: all texts and links, or the structured content."""
    blocks = [block for block in result["content"] if block["type"] != "image"]
    texts = sum(len(block["text"]) if block["type"] == "text" else len(json.dumps(block)) for block in blocks)
    structured = result.get("structuredContent")
    return max(texts, len(json.dumps(structured, ensure_ascii=False, separators=(",", ":"))))


def text_of(result: dict[str, Any]) -> str:
    return "\n".join(block["text"] for block in result["content"] if block["type"] == "text")


def arguments_in(result: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of `read_result` that a result names."""
    structured = result.get("structuredContent") or {}
    match = READ_ON.search(structured.get("_truncated", "") or text_of(result))
    assert match is not None, result
    return {"id": match[1], "offset": int(match[2])}


async def rest_of(client: Client, arguments: dict[str, Any]) -> str:
    """Return what is read with `read_result` from an offset on."""
    pages = []
    while True:
        result = await client.call_tool("read_result", arguments)
        assert not result.is_error, result
        assert characters_of(result) <= BUDGET
        pages.append(result["content"][0]["text"])
        following = re.search(r"The next part has the offset (\d+)", text_of(result))
        if following is None:
            return "".join(pages)
        arguments = {**arguments, "offset": int(following[1])}


async def full_text_of(client: Client, result: dict[str, Any]) -> str:
    """Return the whole of a shortened result, which the tool, the link and its parts all lead to."""
    arguments = arguments_in(result)
    text = await rest_of(client, {"id": arguments["id"]})
    uri = f"result://{arguments['id']}"
    (contents,) = (await client.read_resource(uri))["contents"]
    assert contents["text"] == text
    assert await rest_of(client, arguments) == text[arguments["offset"] :]
    (part,) = (await client.read_resource(f"{uri}/{arguments['offset']}"))["contents"]
    assert text[arguments["offset"] :].startswith(part["text"])
    if client.revision in STRUCTURED:
        assert result["content"][-1]["uri"] == uri
    return text


async def called(client: Client, **arguments: Any) -> dict[str, Any]:
    """Return the result of `get`, which is within the budget and valid."""
    result = dict(await client.call_tool("get", arguments))
    assert characters_of(result) <= BUDGET
    definition = next(tool for tool in await client.list_tools() if tool.name == "get")
    if definition.output_schema is not None and not result.get("isError"):
        assert Draft202012Validator(dict(definition.output_schema)).is_valid(result["structuredContent"])
    return result


@EVERY_REVISION
async def test_an_object_is_shortened_between_the_items_of_its_list(revision: str) -> None:
    def get() -> Rows:
        return Rows(total=400, rows=ROWS)

    async with Client(server(get), revision=revision) as client:
        result = await called(client)
        shown = json.loads(result["content"][0]["text"])
        count = len(shown["rows"])
        assert 20 < count < 400
        assert shown["rows"] == PLAIN_ROWS[:count]
        if revision in STRUCTURED:
            assert result["structuredContent"] == shown
        else:
            assert f"the first {count} of 400 items of rows" in text_of(result)
        text = await full_text_of(client, result)
        assert json.loads(text) == {"total": 400, "rows": PLAIN_ROWS}
        remaining = await rest_of(client, arguments_in(result))
        assert remaining.startswith(json.dumps(PLAIN_ROWS[count], separators=(",", ":")))


@EVERY_REVISION
async def test_a_list_is_shortened_between_its_items(revision: str) -> None:
    async def get() -> list[Row]:
        await asyncio.sleep(0)
        return ROWS

    async with Client(server(get), revision=revision) as client:
        result = await called(client)
        shown = json.loads(result["content"][0]["text"])
        assert shown == PLAIN_ROWS[: len(shown)]
        if revision in STRUCTURED:
            assert result["structuredContent"]["result"] == shown
        assert f"Shown: the first {len(shown)} of 400 items. The whole result has " in text_of(result)
        full_text = json.loads(await full_text_of(client, result))
        assert full_text == ({"result": PLAIN_ROWS} if revision in STRUCTURED else PLAIN_ROWS)


@EVERY_REVISION
async def test_a_text_is_shortened_after_a_paragraph(revision: str) -> None:
    def get() -> str:
        return PROSE * 10

    async with Client(server(get), revision=revision) as client:
        result = await called(client)
        assert result["content"][0]["text"].endswith("one.\n\n")
        assert await full_text_of(client, result) == PROSE * 10


@EVERY_REVISION
async def test_results_within_the_budget_do_not_change(revision: str) -> None:
    def get(kind: str) -> Any:
        answers = {
            "text": "é" * (BUDGET - 1),  # has more bytes than characters
            "object": {"a": "x" * (BUDGET - 10)},
            "list": ["x" * 900] * 3,
            "image": [Image(b"x" * 9000), "short"],
            "error": ToolResult("x" * BUDGET, is_error=True),
            "none": None,
        }
        return answers[kind]

    plain = MCPServer("Shop")
    plain.tool("get")(get)
    async with Client(server(get), revision=revision) as client, Client(plain, revision=revision) as other:
        for kind in ("text", "object", "list", "image", "error", "none"):
            assert await client.call_tool("get", {"kind": kind}) == await other.call_tool("get", {"kind": kind})


async def test_characters_count_and_not_the_bytes_of_their_json() -> None:
    def get() -> str:
        return '"é"' * 900

    async with Client(server(get)) as client:
        assert text_of(await called(client)) == '"é"' * 900


async def test_json_that_fits_without_its_white_space_is_not_shortened() -> None:
    def get() -> str:
        return json.dumps(PLAIN_ROWS[:50], indent=40)

    async with Client(server(get)) as client:
        result = await called(client)
        assert json.loads(result["content"][0]["text"]) == PLAIN_ROWS[:50]
        assert len(result["content"]) == 1


@EVERY_REVISION
async def test_complete_results_and_errors_are_shortened(revision: str) -> None:
    def get(kind: str) -> Any:
        if kind == "raises":
            raise ToolError(PROSE * 10)
        return ToolResult(PROSE * 10, structured_content={"rows": PLAIN_ROWS}, is_error=True, meta={"a": 1})

    async with Client(server(get), revision=revision) as client:
        for kind in ("raises", "returns"):
            result = await called(client, kind=kind)
            assert result["isError"]
            assert result["content"][0]["text"].startswith("One sentence.")
            assert "structuredContent" not in result
            assert (await full_text_of(client, result)).startswith(PROSE * 10)
        assert result["_meta"]["a"] == 1


async def test_json_rpc_responses_of_a_tool_are_shortened() -> None:
    def get(context: Context) -> JSONRPCResponse:
        result = {"content": [{"type": "text", "text": PROSE * 10}]}
        return JSONRPCResponse(jsonrpc="2.0", id=context.request_id, result=result)

    async with Client(server(get), revision="2025-11-25") as client:
        assert await full_text_of(client, await called(client)) == PROSE * 10


async def test_questions_to_the_client_and_errors_of_the_protocol_pass() -> None:
    async def get(context: Context, kind: str) -> str:
        if kind == "ask":
            return (await context.elicit_url("Pay", "https://example.com/pay")).action
        raise LookupError("secret")

    mcp = server(get)

    @mcp.tool
    def error(context: Context) -> JSONRPCResponse:
        return JSONRPCResponse(jsonrpc="2.0", id=context.request_id, error={"code": 1, "message": "x" * 9000})

    async def accept(_params: dict[str, Any]) -> dict[str, Any]:
        return {"action": "accept"}

    async with Client(mcp, revision="2026-07-28", elicit=accept) as client:
        assert text_of(await called(client, kind="ask")) == "accept"
        assert "error id" in text_of(await called(client, kind="raise"))
        with pytest.raises(Exception, match="xxxx"):
            await client.call_tool("error")


@EVERY_REVISION
async def test_results_of_middleware_are_shortened(revision: str) -> None:
    async def stand_in(context: RequestContext, call_next: CallNext) -> Any:
        if context.request.method == "tools/call" and context.request.params["name"] == "get":
            return ToolResult(PROSE * 10)
        return await call_next(context)

    def get() -> str:
        return "short"

    async with Client(server(get, middleware=[stand_in]), revision=revision) as client:
        assert await full_text_of(client, await called(client)) == PROSE * 10


@pytest.mark.parametrize("has_middleware", [False, True])
async def test_the_results_of_mounted_tools_are_stored_by_the_server_above(*, has_middleware: bool) -> None:
    async def passing(context: RequestContext, call_next: CallNext) -> Any:
        return await call_next(context)

    mounted = MCPServer("Rows", limits=Limits(result_characters=BUDGET), middleware=[passing] * has_middleware)

    @mounted.tool("get")
    def get() -> list[Row]:
        return ROWS

    above = MCPServer("Shop")
    above.mount(mounted, prefix=None)
    async with Client(above) as client:
        assert [tool.name for tool in await client.list_tools()] == ["get", "read_result"]
        assert json.loads(await full_text_of(client, await called(client))) == {"result": PLAIN_ROWS}


async def test_the_stored_result_of_a_task_is_within_the_budget() -> None:
    mcp = server()

    @mcp.tool("get", task="required")
    async def get() -> Rows:
        return Rows(total=400, rows=ROWS)

    async with Client(mcp) as client:
        result = await called(client)
        assert result["structuredContent"]["total"] == 400
        assert json.loads(await full_text_of(client, result))["rows"] == PLAIN_ROWS


async def test_tools_of_an_application_and_of_fastmcp_have_the_budget() -> None:
    async def rows(_request: Request) -> JSONResponse:
        return JSONResponse(PLAIN_ROWS)

    document = {"openapi": "3.1.0", "info": {"title": "Rows", "version": "1"}, "paths": {"/rows": {"get": OPERATION}}}
    from_asgi = server()
    from_asgi.tools_from_asgi(Starlette(routes=[Route("/rows", rows)]), document)
    compat = FastMCP("Shop", limits=Limits(result_characters=BUDGET))
    compat.tool(lambda: ROWS, name="get")
    for mcp in (from_asgi, compat):
        async with Client(mcp) as client:
            full_text = json.loads(await full_text_of(client, await called(client)))
            assert full_text in ({"result": PLAIN_ROWS}, PLAIN_ROWS)


async def test_an_option_of_a_tool_precedes_that_of_the_server() -> None:
    async def repeat(context: RequestContext, call_next: CallNext) -> Any:
        reply = await call_next(context)
        return reply if context.request.method != "tools/call" else reply.result()

    mcp = server(middleware=[repeat])

    @mcp.tool(result_characters=None)
    def unlimited() -> str:
        return "x" * 9000

    @mcp.tool(result_characters=5000)
    def longer() -> str:
        return PROSE * 10

    async with Client(mcp) as client:
        assert text_of(await client.call_tool("unlimited")) == "x" * 9000
        assert BUDGET < characters_of(dict(await client.call_tool("longer"))) <= 5000


async def test_a_server_without_budgets_has_no_tool_that_reads_results() -> None:
    mcp = MCPServer("Shop")

    @mcp.tool
    def get() -> str:
        return "x" * 9000

    assert runtime_of(mcp).server.budgets is None
    async with Client(mcp) as client:
        assert [tool.name for tool in await client.list_tools()] == ["get"]
        mcp.tool("other", result_characters=BUDGET)(get)
        assert {tool.name for tool in await client.list_tools()} == {"get", "other", "read_result"}
        mcp.remove_tool("other")
        assert text_of(await client.call_tool("get")) == "x" * 9000
        assert [template["uriTemplate"] for template in await client.list_resource_templates()] == [
            "result://{id}",
            "result://{id}/{offset}",
        ]


class Points(BaseModel):
    points: list[int] = Field(min_length=2000)
    names: list[str]


class Pair(BaseModel):
    pair: tuple[str, str]


class Choice(BaseModel):
    kind: Literal["a"]
    data: str


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (Points(points=list(range(2000)), names=["a"]), "it has a part of 8,.* characters that can't be divided"),
        (Pair(pair=("x" * 2000, "y" * 2000)), "it has a part of 4,.* characters that can't be divided"),
        (Choice(kind="a", data="x" * 4000), "it has a part of 4,.* characters that can't be divided"),
    ],
)
@pytest.mark.parametrize("revision", STRUCTURED)
async def test_a_result_that_can_not_be_shortened_is_an_error_that_leads_to_the_whole(
    value: BaseModel, reason: str, revision: str
) -> None:
    def get() -> Any:
        return value

    get.__annotations__["return"] = type(value)
    async with Client(server(get), revision=revision) as client:
        result = await called(client)
        assert result["isError"]
        assert re.search(rf"get returns 3,000 at most, and this result can't be shortened: {reason}", text_of(result))
        assert json.loads(await full_text_of(client, result)) == value.model_dump(mode="json")


@pytest.mark.parametrize(
    ("schema", "is_error"),
    [
        ({"additionalProperties": False}, False),
        ({"additionalProperties": {"type": "array"}}, False),
        ({"unevaluatedProperties": False}, False),
        ({"additionalProperties": False, "properties": {"rows": {}, "_truncated": {"type": "string"}}}, False),
        ({"propertyNames": {"const": "rows"}}, True),
    ],
)
async def test_the_output_schema_has_a_place_for_the_note(*, schema: dict[str, Any], is_error: bool) -> None:
    mcp = server()
    written = {"type": "object", "properties": {"rows": {"type": "array"}}, **schema}

    @mcp.tool("get", output_schema=written)
    def get() -> dict[str, Any]:
        return {"rows": PLAIN_ROWS}

    async with Client(mcp) as client:
        result = await called(client)
        assert result.get("isError", False) is is_error
        if is_error:
            assert "its output schema has no room for the note '_truncated' about what is missing" in text_of(result)
        assert json.loads(await full_text_of(client, result)) == {"rows": PLAIN_ROWS}
        mcp.tool("other", output_schema=written, result_characters=None)(get)
        other = next(tool for tool in await client.list_tools() if tool.name == "other")
        assert other.output_schema == written


async def test_a_dict_of_lists_has_a_place_for_the_note() -> None:
    def get() -> dict[str, list[int]]:
        return {"numbers": list(range(1000))}

    async with Client(server(get)) as client:
        result = await called(client)
        assert result["structuredContent"]["_truncated"].startswith("Shown: the first ")


async def test_a_structured_list_has_no_room_for_the_note() -> None:
    mcp = server()

    @mcp.tool("get", output_schema={"type": "array"})
    def get() -> list[Any]:
        return PLAIN_ROWS

    async with Client(mcp, revision="2026-07-28") as client:
        assert (await called(client))["isError"]
    async with Client(mcp, revision="2025-11-25") as client:  # which has no lists as structured content
        result = await called(client)
        assert "isError" not in result
        assert json.loads(await full_text_of(client, result)) == PLAIN_ROWS


async def test_a_value_that_is_nested_too_deep_is_an_error() -> None:
    def get() -> dict[str, Any]:
        value: Any = ["x" * 9000]
        for _ in range(100):
            value = [value]
        return {"value": value}

    async with Client(server(get)) as client:
        assert (await client.call_tool("get")).is_error


@pytest.mark.parametrize(
    ("parameters", "arguments", "remedy"),
    [
        ({"offset": 0}, {}, "call get with offset={shown}."),
        ({"offset": 0, "limit": 10}, {"offset": 50}, "call get with offset={next}."),
        ({"skip": None}, {}, None),
        ({"cursor": "", "limit": 100}, {}, "call get with limit={shown} or less."),
        ({"page": 1, "limit": 100}, {}, None),
        ({"limit": 100}, {}, None),
        ({"cursor": ""}, {}, None),
        ({"offset": ""}, {}, None),
    ],
)
async def test_the_note_names_the_arguments_with_which_the_tool_returns_the_missing_items(
    parameters: dict[str, Any], arguments: dict[str, Any], remedy: str | None
) -> None:
    mcp = server()

    types = {int: "integer", str: "string", type(None): "integer"}
    properties = {name: {"type": types[type(default)], "default": default} for name, default in parameters.items()}

    @mcp.tool("get", input_schema={"type": "object", "properties": properties})
    def get(_all_arguments: dict[str, Any]) -> list[Row]:
        return ROWS

    async with Client(mcp) as client:
        result = await called(client, **arguments)
        shown = len(result["structuredContent"]["result"])
        note = result["structuredContent"]["_truncated"]
        if remedy is None:
            assert await full_text_of(client, result)
        else:
            expected = remedy.format(shown=shown, next=shown + arguments.get("offset", 0))
            assert note.endswith(expected)
            assert [block["type"] for block in result["content"]] == ["text", "text"]


@pytest.mark.parametrize(
    "value",
    [
        {"facets": list(range(2000)), "items": []},
        {"page": {"items": list(range(2000))}},
        {"first": list(range(2000)), "second": list(range(2000))},
    ],
)
async def test_the_offset_is_not_named_if_it_may_belong_to_another_list(value: dict[str, Any]) -> None:
    def get(offset: int = 0) -> dict[str, Any]:
        return {**value, "offset": offset}

    async with Client(server(get)) as client:
        assert json.loads(await full_text_of(client, await called(client))) == {**value, "offset": 0}


async def test_the_offset_is_named_for_a_list_in_a_text() -> None:
    def get(offset: int = 0) -> str:
        return json.dumps(PLAIN_ROWS[offset:])

    async with Client(server(get)) as client:
        assert re.search(r"with offset=\d\d\.", text_of(await called(client)))


async def test_a_call_of_a_destructive_tool_is_not_repeated() -> None:
    mcp = server()

    @mcp.tool("get", destructive=True)
    def get(offset: int = 0) -> list[Row]:
        return ROWS[offset:]

    async with Client(mcp) as client:
        assert await full_text_of(client, await called(client))


async def test_an_optional_offset_is_an_offset() -> None:
    def get(offset: int | None = 0) -> list[Row]:
        return ROWS

    async with Client(server(get)) as client:
        assert re.search(r"with offset=\d\d\.", text_of(await called(client)))
        assert re.search(r"with offset=1\d\d\.", text_of(await called(client, offset=100)))


async def test_a_note_names_a_few_places_and_the_number_of_the_others() -> None:
    def get() -> ToolResult:
        lists = {f'a "{index}" \u202e{"x" * 80}': list(range(300)) for index in range(6)}
        return ToolResult(["Title"], structured_content=lists)

    async with Client(server(get)) as client:
        note = (await called(client))["structuredContent"]["_truncated"]
        assert "parts of 3 more lists" in note
        assert "\u202e" not in note


async def test_a_note_says_how_many_blocks_are_left_out() -> None:
    def get() -> list[str | Image]:
        return [PROSE * 10, "two", "three", Image(b"png")]

    async with Client(server(get)) as client:
        result = await called(client)
        assert [block["type"] for block in result["content"]] == ["text", "image", "text", "resource_link"]
        assert " Left out: the last 2 content blocks. The whole result has " in text_of(result)


async def test_a_result_that_can_not_be_stored_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    mcp = server()

    @mcp.tool("get")
    def get(*, is_indivisible: bool = False) -> str:
        return json.dumps(["x" * 9000]) if is_indivisible else PROSE * 10

    async def full(*_arguments: object) -> None:
        raise StateFullError("There is no room.", is_owner_limit=True)

    monkeypatch.setattr(runtime_of(mcp).open_values(), "put", full)
    async with Client(mcp) as client:
        result = await called(client)
        assert [block["type"] for block in result["content"]] == ["text", "text"]
        assert text_of(result).endswith("The whole is not stored, because there is no room for it. Ask for less.")
        result = await called(client, is_indivisible=True)
        assert result["isError"]
        assert [block["type"] for block in result["content"]] == ["text"]
    [record] = caplog.records  # of both, in one minute
    assert (record.levelno, "get" in record.getMessage()) == (logging.WARNING, True)


async def test_a_result_that_the_server_would_not_send_as_a_whole_is_not_stored() -> None:
    mcp = MCPServer("Shop", limits=Limits(result_characters=BUDGET, result_bytes=10_000))

    @mcp.tool("get")
    def get() -> str:
        return PROSE * 10

    async with Client(mcp) as client:
        assert "The whole is not stored" in text_of(await called(client))


async def test_a_server_without_resources_sends_no_link() -> None:
    def get() -> str:
        return PROSE * 10

    async with Client(server(get, protocol=ProtocolOptions(offer_resources=False))) as client:
        result = await called(client)
        assert [block["type"] for block in result["content"]] == ["text", "text"]
        assert await rest_of(client, arguments_in(result)) == (PROSE * 10)[arguments_in(result)["offset"] :]


async def test_what_reads_results_is_not_hidden() -> None:
    def get() -> str:
        return PROSE * 10

    mcp = server(get)
    mcp.enable(names=["get"], only=True)
    async with Client(mcp) as client:
        assert await full_text_of(client, await called(client)) == PROSE * 10


@pytest.mark.parametrize("comes_first", [False, True])
async def test_what_reads_results_is_not_transformed(*, comes_first: bool) -> None:
    def rename(feature: Any) -> Any:
        return replace(feature, name=f"my_{feature.name}") if isinstance(feature, Tool) else None

    mcp = server()
    if comes_first:
        mcp.add_transform(rename)

    @mcp.tool("get")
    def get() -> list[Row]:
        return ROWS

    if not comes_first:
        mcp.add_transform(rename)
    async with Client(mcp) as client:
        assert {tool.name for tool in runtime_of(mcp).server.catalog.tools} == {"my_get", "read_result"}
        result = dict(await client.call_tool("my_get"))
        assert json.loads(await full_text_of(client, result)) == {"result": PLAIN_ROWS}


@pytest.mark.parametrize("comes_first", [False, True])
async def test_the_tool_is_in_the_list_of_a_server_with_a_search(*, comes_first: bool) -> None:
    mcp = server() if comes_first else MCPServer("Shop")
    if comes_first:
        mcp.tool_search()

    @mcp.tool("get", result_characters=BUDGET)
    def get() -> dict[str, list[int]]:
        return {"numbers": list(range(1000))}

    if not comes_first:
        mcp.tool_search(always_visible=["get"])
    async with Client(mcp) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        assert "read_result" in tools
        name, arguments = ("call_tool", {"name": "get", "arguments": {}}) if comes_first else ("get", {})
        result = dict(await client.call_tool(name, arguments))
        assert json.loads(await full_text_of(client, result)) == {"numbers": list(range(1000))}
        if not comes_first:
            assert "_truncated" in (tools["get"].output_schema or {})["properties"]


def test_the_name_of_the_tool_that_reads_results_is_taken() -> None:
    mcp = server()
    with pytest.raises(RegistrationError, match="the server offers a tool 'read_result' of its own"):
        mcp.tool("read_result")(lambda: "mine")
    mcp = MCPServer("Shop")
    mcp.tool("read_result")(lambda: "mine")
    with pytest.raises(RegistrationError, match="Tools have a budget for their results"):
        mcp.tool("get", result_characters=BUDGET)(lambda: "long")
    assert [tool.name for tool in runtime_of(mcp).server.catalog.tools] == ["read_result"]


async def test_callers_without_credentials_read_results_if_they_may_call_a_tool_with_a_budget() -> None:
    keys = APIKeys({"ada": "a-key-of-16-characters"})
    mcp = server(auth=keys)

    @mcp.tool
    def secret() -> str:
        return PROSE * 10

    async with Client(mcp, headers={"x-api-key": "a-key-of-16-characters"}) as client:
        assert {tool.name for tool in await client.list_tools()} == {"secret", "read_result"}
    assert not runtime_of(mcp).server.catalog.has_anonymous
    mcp.tool("get", allow_anonymous=True)(secret)
    async with Client(mcp) as client:
        assert await full_text_of(client, await called(client)) == PROSE * 10


@given(st.lists(VALUES, min_size=1, max_size=10))
@settings(max_examples=20, deadline=None)
def test_every_shortened_result_leads_to_the_whole(some: list[Any]) -> None:
    values = some * 60

    def get() -> ToolResult:
        return ToolResult(structured_content={"values": values})

    async def check() -> None:
        async with Client(server(get)) as client:
            result = await called(client)
            if "_truncated" in result.get("structuredContent", {}) or result.get("isError"):
                assert json.loads(await full_text_of(client, result)) == {"values": values}
            else:
                assert result["structuredContent"] == {"values": values}

    asyncio.run(check())
