"""What comes back to the functions host: every kind of returned value in an envelope that it can read."""

from __future__ import annotations

import asyncio
import json
import threading
from base64 import b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from funcmcp import InvalidParams, Limits, MCPServer, ToolError, content
from tests.azure.host import HostError, read_prompt, read_resource, read_tool
from tests.azure.triggers import Triggers
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.every_python("Python 3.13 has another azure-functions."),
    pytest.mark.lowest("azure-functions has the classes of functions and bindings."),
]

PNG = b"\x89PNG"


class Point(BaseModel):
    x: int
    y: float


@dataclass
class Size:
    width: int


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


async def result_of(function: Callable[..., Any]) -> tuple[str, dict[str, Any]]:
    """Return the type of the envelope in which a tool's result goes, and the result as the host sends it."""
    mcp = MCPServer("one")
    mcp.tool("one")(function)
    value = await Triggers(mcp).call("one")
    return json.loads(value)["type"], read_tool(value)


def a_str() -> str:
    return "grüß <b>"


def an_int() -> int:
    return 3


def a_bool() -> bool:
    return True


def nothing() -> None:
    return


def a_dict() -> dict[str, int]:
    return {"a": 1}


def a_list() -> list[int]:
    return [1, 2]


def an_empty_list() -> list[content.Text]:
    return []


def a_dataclass() -> Size:
    return Size(7)


def a_model() -> Point:
    return Point(x=1, y=0.5)


async def an_async_model() -> Point:
    return Point(x=1, y=0.5)


def some_bytes() -> bytes:
    return PNG


def unannotated():  # type: ignore[no-untyped-def]
    return {"a": [1, None]}


def an_image() -> content.Image:
    return content.Image(PNG, annotations={"audience": ["user"]})


def a_sound() -> content.Audio:
    return content.Audio(b"RIFF")


def a_link() -> content.ResourceLink:
    return content.ResourceLink("order://7", "seven", mime_type="text/plain", size=3)


def a_full_link() -> content.ResourceLink:
    icon = content.Icon("https://example.com/7.png", sizes=["48x48"])
    return content.ResourceLink("order://7", "seven", title="Seven", icons=[icon], meta={"a": {}})


def an_embedded_text() -> content.EmbeddedResource:
    return content.EmbeddedResource("order://7", text="x")


def an_embedded_blob() -> content.EmbeddedResource:
    return content.EmbeddedResource("order://7", blob=PNG)


def an_embedded() -> content.EmbeddedResource:
    return content.EmbeddedResource("order://7", text="x", mime_type="text/plain")


def several() -> list[str | content.Content]:
    return ["look", content.Image(PNG)]


def a_whole_result() -> content.ToolResult:
    return content.ToolResult(["look"], structured_content={"n": 1}, meta={"trace": "7"})


def blocks_and_structure() -> content.ToolResult:
    return content.ToolResult(["one", "two"], structured_content={"n": 1})


def an_error() -> content.ToolResult:
    return content.ToolResult("no", is_error=True)


def an_error_with_a_full_link() -> content.ToolResult:
    return content.ToolResult([a_full_link(), an_embedded_text()], is_error=True)


def a_response(request: content.JSONRPCRequest) -> content.JSONRPCResponse:
    return {"jsonrpc": "2.0", "id": request.id, "result": {"content": [text("raw")]}}


DATA = b64encode(PNG).decode()
POINT = {"content": [text('{"x":1,"y":0.5}')], "structuredContent": {"x": 1, "y": 0.5}}
RESOURCE = {"uri": "tool://one/result", "mimeType": "application/octet-stream", "blob": DATA}
LINK = {"type": "resource_link", "uri": "order://7", "name": "seven", "mimeType": "text/plain", "size": 3}
SHORT_LINK = {"type": "resource_link", "uri": "order://7", "name": "seven"}
EMBEDDED = {"type": "resource", "resource": {"uri": "order://7", "mimeType": "text/plain", "text": "x"}}
IMAGE = {"type": "image", "data": DATA, "mimeType": "image/png"}
SOUND = {"type": "audio", "data": b64encode(b"RIFF").decode(), "mimeType": "audio/wav"}

ROWS = [
    (a_str, "text", {"content": [text("grüß <b>")]}),
    (an_int, "text", {"content": [text("3")], "structuredContent": {"result": 3}}),
    (a_bool, "text", {"content": [text("true")], "structuredContent": {"result": True}}),
    (nothing, "call_tool_result", {"content": []}),
    (an_empty_list, "call_tool_result", {"content": []}),
    (a_dict, "text", {"content": [text('{"a":1}')], "structuredContent": {"a": 1}}),
    (a_list, "text", {"content": [text("[1,2]")], "structuredContent": {"result": [1, 2]}}),
    (a_dataclass, "text", {"content": [text('{"width":7}')], "structuredContent": {"width": 7}}),
    (a_model, "text", POINT),
    (an_async_model, "text", POINT),
    (some_bytes, "resource", {"content": [{"type": "resource", "resource": RESOURCE}]}),
    (unannotated, "text", {"content": [text('{"a":[1,null]}')], "structuredContent": {"a": [1, None]}}),
    (an_image, "image", {"content": [{**IMAGE, "annotations": {"audience": ["user"]}}]}),
    (a_sound, "audio", {"content": [SOUND]}),
    (a_link, "resource_link", {"content": [LINK]}),
    (an_embedded, "resource", {"content": [EMBEDDED]}),
    (a_full_link, "resource_link", {"content": [SHORT_LINK]}),
    (an_embedded_text, "resource", {"content": [EMBEDDED]}),
    (
        an_embedded_blob,
        "resource",
        {"content": [{"type": "resource", "resource": {**RESOURCE, "uri": "order://7"}}]},
    ),
    (several, "multi_content_result", {"content": [text("look"), IMAGE]}),
    (
        blocks_and_structure,
        "multi_content_result",
        {"content": [text("one"), text("two")], "structuredContent": {"n": 1}},
    ),
    (
        a_whole_result,
        "call_tool_result",
        {"content": [text("look")], "structuredContent": {"n": 1}, "_meta": {"trace": "7"}},
    ),
    (an_error, "call_tool_result", {"content": [text("no")], "isError": True}),
    (an_error_with_a_full_link, "call_tool_result", {"content": [SHORT_LINK, EMBEDDED], "isError": True}),
    (a_response, "text", {"content": [text("raw")]}),
]


@pytest.mark.parametrize(("function", "kind", "expected"), ROWS, ids=[row[0].__name__ for row in ROWS])
async def test_a_returned_value_is_what_the_host_sends(
    function: Callable[..., Any], kind: str, expected: dict[str, Any]
) -> None:
    assert await result_of(function) == (kind, expected)


async def test_what_fails_is_a_result_with_words_and_not_a_failed_invocation(
    caplog: pytest.LogCaptureFixture,
) -> None:
    mcp = MCPServer("failing")

    @mcp.tool
    def add(a: int, b: int) -> int:
        return a + b

    @mcp.tool
    def refuse() -> str:
        raise ToolError("The shop is closed.")

    @mcp.tool
    def wrong() -> str:
        raise InvalidParams("No such thing.")

    @mcp.tool
    def broken() -> str:
        raise KeyError("secret")

    @mcp.tool(timeout=0.01)
    async def slow() -> str:
        await asyncio.Event().wait()
        return ""

    triggers = Triggers(mcp)

    async def words(tool: str, arguments: Any = None) -> str:
        result = read_tool(await triggers.call(tool, arguments))
        assert result.keys() == {"content", "isError"}
        assert result["isError"] is True
        return str(result["content"][0]["text"])

    both = await words("add", {"a": "1", "c": 2})
    assert "a: must be an integer" in both
    assert "b: is required" in both
    assert await words("add", [1]) == '"arguments" must be an object.'
    assert await words("refuse") == "The shop is closed."
    assert await words("wrong") == "No such thing."
    assert await words("slow") == "It did not finish within 0.01 seconds (timeout=)."
    said = await words("broken")
    assert "secret" not in said
    assert said.removesuffix(".").rpartition(" ")[2] in caplog.text


async def test_arguments_are_refused_in_the_same_words_as_over_http() -> None:
    from funcmcp.testing import Client

    mcp = MCPServer("same")

    @mcp.tool
    def add(a: int, b: list[int]) -> int:
        return a + sum(b)

    for arguments in ({}, {"a": 1.5, "b": ["x"]}, {"a": True, "b": None, "c": 1}):
        async with Client(mcp, revision="2025-06-18") as client:
            there = await client.call_tool("add", arguments)
        assert read_tool(await Triggers(mcp).call("add", arguments)) == there


async def test_contents_of_resources_come_as_text_or_blob_with_their_own_media_type() -> None:
    mcp = MCPServer("resources")
    page = content.Contents("<p>", mime_type="text/html", meta={"ui": {"csp": {}}})
    mcp.resource("a://text")(named("plain", "hello"))
    mcp.resource("a://json", mime_type="application/vnd.x+json")(named("data", {"content": '{"text":"x"}'}))
    mcp.resource("a://bytes", mime_type="image/png")(named("picture", PNG))
    mcp.resource("a://page")(named("page", page))
    triggers = Triggers(mcp)

    async def read(name: str, uri: str) -> dict[str, Any]:
        return read_resource(await triggers.read(name, uri), uri)

    assert await read("plain", "a://text") == {"uri": "a://text", "mimeType": "text/plain", "text": "hello"}
    assert await read("data", "a://json") == {
        "uri": "a://json",
        "mimeType": "application/vnd.x+json",
        "text": '{"content":"{\\"text\\":\\"x\\"}"}',
    }
    assert await read("picture", "a://bytes") == {"uri": "a://bytes", "mimeType": "image/png", "blob": DATA}
    assert await read("page", "a://page") == {
        "uri": "a://page",
        "mimeType": "text/html",
        "text": "<p>",
        "_meta": {"ui": {"csp": {}}},
    }


def named(name: str, value: Any) -> Callable[[], Any]:
    def function():  # type: ignore[no-untyped-def]
        return value

    function.__name__ = name
    return function


async def test_a_template_reads_its_variables_and_a_uri_in_another_case_reads_its_resource() -> None:
    mcp = MCPServer("resources")

    @mcp.resource("order://{number}/lines/{line}")
    def line(number: int, line: str) -> str:
        return f"{number + 1} {line}"

    mcp.resource("menu://Today")(named("menu", "soup"))
    triggers = Triggers(mcp)
    read = read_resource(await triggers.read("line", "order://7/lines/caf%C3%A9"), "")
    assert (read["uri"], read["text"]) == ("order://7/lines/caf%C3%A9", "8 café")
    assert read_resource(await triggers.read("menu", "MENU://TODAY"), "")["text"] == "soup"


async def test_a_query_that_only_the_host_takes_as_a_variable_is_a_failed_invocation() -> None:
    mcp = MCPServer("resources")
    mcp.resource("menu://today?{query}", name="search")(lambda query: query)
    triggers = Triggers(mcp)
    assert read_resource(await triggers.read("search", "menu://today?a%2Fb"), "")["text"] == "a/b"
    with pytest.raises(RuntimeError, match=r"menu://today\?\{query\}: Resource not found"):
        await triggers.read("search", "menu://today?a/b")


async def test_a_resource_that_is_not_there_or_fails_is_a_failed_invocation_that_says_why() -> None:
    mcp = MCPServer("resources")
    mcp.resource("a://none")(named("none", None))
    mcp.resource("a://two")(named("two", [content.Contents("1"), content.Contents("2")]))

    @mcp.resource("a://{number}/x")
    def typed(number: int) -> str:
        raise ToolError("It is closed.")

    triggers = Triggers(mcp)
    for name, uri, words in (
        ("none", "a://none", "a://none: Resource not found"),
        ("two", "a://two", "2 contents, and Azure's MCP triggers carry one"),
        ("typed", "a://x/x", "The URI does not fit: number: must be an integer"),
        ("typed", "a://1/x", "a://{number}/x: It is closed."),
    ):
        with pytest.raises(RuntimeError, match=words.replace("{", r"\{")):
            await triggers.read(name, uri)


@pytest.mark.parametrize("extension", ["1.5.0", "1.6.0"])
async def test_prompts_reach_clients_through_both_releases_of_the_extension(extension: str) -> None:
    mcp = MCPServer("prompts")
    mcp.prompt(named("simple", "Hello"))
    mcp.prompt(named("mixed", ["Look:", content.Message(content.Image(PNG), role="assistant")]))
    mcp.prompt(named("whole", content.PromptResult(["Hi"], description="Greets", meta={"a": 1})))

    mcp.prompt(named("blocks", [a_full_link(), an_embedded_text()]))
    mcp.prompt(named("silent", content.PromptResult([])))

    @mcp.prompt
    def typed(number: int, flag: bool = False, names: list[str] | None = None, word: str | None = None) -> str:
        return f"{number + 1} {flag} {names} {word}"

    triggers = Triggers(mcp)

    async def get(prompt: str, arguments: Any = None) -> dict[str, Any]:
        return read_prompt(await triggers.get(prompt, arguments), extension)

    def user(words: str) -> dict[str, Any]:
        return {"role": "user", "content": text(words)}

    assert await get("simple") == {"messages": [user("Hello")]}
    assert await get("mixed") == {"messages": [user("Look:"), {"role": "assistant", "content": IMAGE}]}
    assert await get("whole") == {"description": "Greets", "messages": [user("Hi")], "_meta": {"a": 1}}
    assert await get("blocks") == {"messages": [{"role": "user", "content": block} for block in (SHORT_LINK, EMBEDDED)]}
    assert (await get("silent"))["messages"] == []
    # The host passes any JSON value on, whatever the specification says of texts.
    for arguments in (
        {"number": "2", "flag": "true", "names": '["a"]'},
        {"number": 2, "flag": True, "names": ["a"], "word": None},
    ):
        assert await get("typed", arguments) == {"messages": [user("3 True ['a'] None")]}
    for wrong, words in (({}, "number: is required"), ({"number": "x"}, "must be an integer"), ([], "must be an")):
        with pytest.raises(RuntimeError, match=words):
            await triggers.get("typed", wrong)


def levels(count: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(count - 1):
        value = {"in": value}
    return value


@pytest.mark.parametrize("is_error", [False, True])
async def test_a_result_of_64_levels_is_carried_and_a_deeper_one_is_an_error_in_words(is_error: bool) -> None:
    mcp = MCPServer("deep")

    @mcp.tool
    def nest(count: int) -> content.ToolResult:
        return content.ToolResult("x", structured_content=levels(count), is_error=is_error)

    triggers = Triggers(mcp)
    carried = read_tool(await triggers.call("nest", {"count": 62}))  # within the result, within the JSON-RPC response
    assert carried["structuredContent"] == levels(62)
    for count in (63, 210):
        refused = read_tool(await triggers.call("nest", {"count": count}))
        assert refused["isError"] is True
        assert refused["content"][0]["text"] == (
            "Azure's MCP triggers can't carry the result. The JSON is nested more than 64 levels deep."
        )


async def test_a_resource_or_prompt_with_deeper_metadata_is_a_failed_invocation_that_says_why() -> None:
    mcp = MCPServer("deep")
    mcp.resource("a://deep")(named("deep", content.Contents("x", meta=levels(64))))
    mcp.prompt(named("deep", content.PromptResult(["x"], meta=levels(64))))
    triggers = Triggers(mcp)
    pattern = r"deep: Azure's MCP triggers can't carry the result\. .* 64 levels deep"
    with pytest.raises(RuntimeError, match=pattern):
        await triggers.read("deep", "a://deep")
    with pytest.raises(RuntimeError, match=pattern):
        await triggers.get("deep")


async def test_plain_functions_run_beside_the_event_loop_and_beside_each_other() -> None:
    mcp = MCPServer("parallel")
    together = threading.Barrier(8)

    @mcp.tool
    def meet() -> int:
        return together.wait(PATIENCE)  # passes only if eight calls are in here at once

    triggers = Triggers(mcp)
    values = await asyncio.wait_for(asyncio.gather(*(triggers.call("meet") for _ in range(8))), PATIENCE)
    assert sorted(read_tool(value)["structuredContent"]["result"] for value in values) == list(range(8))


@pytest.mark.parametrize(
    "value",
    [
        "hello",
        None,
        '{"type":"text"}',
        '{"type":"text","content":{"type":"text","text":"x"}}',
        '{"type":"multiContent","content":"[]"}',
        '{"type":"multi_content_result","content":"[]"}',
        '{"type":"text","content":"{\\"type\\":\\"text\\"}"}',
        '{"type":"text","content":"{\\"type\\":\\"text\\",\\"text\\":\\"x\\",\\"icons\\":[]}"}',
        '{"type":"resource","content":"{\\"type\\":\\"resource\\",\\"resource\\":{\\"uri\\":\\"a:b\\",\\"text\\":\\"x\\"}}"}',
        '{"type":"text","content":"{\\"type\\":\\"text\\",\\"text\\":\\"x\\"}","structuredContent":{}}',
    ],
)
def test_the_reader_of_these_tests_refuses_what_the_host_refuses(value: Any) -> None:
    with pytest.raises((HostError, ValueError)):
        read_tool(value)


async def test_a_shortened_result_goes_with_its_note_and_its_link_and_leads_to_the_whole() -> None:
    mcp = MCPServer("one", limits=Limits(result_characters=2000))

    @mcp.tool
    def one() -> dict[str, list[int]]:
        return {"numbers": list(range(1000))}

    triggers = Triggers(mcp)
    result = read_tool(await triggers.call("one"))
    shown = result["structuredContent"]
    assert json.loads(result["content"][0]["text"]) == shown
    assert 0 < len(shown["numbers"]) < 1000
    uri = result["content"][1]["uri"]
    whole = read_resource(await triggers.read("result", uri), uri)["text"]
    assert json.loads(whole) == {"numbers": list(range(1000))}
    part = read_tool(await triggers.call("read_result", {"id": uri.removeprefix("result://"), "offset": 100}))
    assert whole[100:].startswith(part["content"][0]["text"])
    part = read_resource(await triggers.read("result_part", f"{uri}/100"), f"{uri}/100")
    assert whole[100:].startswith(part["text"])
