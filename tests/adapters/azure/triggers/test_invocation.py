"""What a function may know of a call from the functions host, in every spelling that the host has had."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from funcmcp import Context, Elicit, MCPServer
from tests.azure.host import read_prompt, read_resource, read_tool
from tests.azure.triggers import Triggers

pytestmark = [
    pytest.mark.every_python("Python 3.13 has another azure-functions."),
    pytest.mark.lowest("azure-functions has the classes of functions and bindings."),
]

HEADERS = {"Host": "shop.azurewebsites.net", "X-Forwarded-Proto": "https", "Cookie": "a=1", "X-Name": "Grüße"}
TODAY = {
    "sessionid": "token-1",
    "clientinfo": {"name": "inspector", "version": "1"},
    "transport": {"name": "http-streamable", "sessionId": "token-1", "properties": {"headers": HEADERS}},
}
TYPO = {"transport": {"name": "http-sse", "sesssionId": "token-1", "properties": {"headers": HEADERS}}}
UPPER = {"SessionId": "token-1", "ClientInfo": TODAY["clientinfo"], "Transport": {"Name": "unknown", "Properties": {}}}
NULLS = {"sessionid": None, "clientinfo": None, "transport": None}

mcp = MCPServer("contexts")


def told(context: Context) -> dict[str, Any]:
    http = context.http_request
    return {
        "session": context.session_id,
        "client": dict(context.client_info),
        "revision": context.protocol_version,
        "meta": dict(context.meta),
        "principal": context.principal,
        "http": http and [http.method, http.url, http.headers.get("x-name"), dict(http.cookies)],
    }


@mcp.tool("tell")
def tell_tool(context: Context) -> dict[str, Any]:
    return {**told(context), "name": context.name, "arguments": dict(context.arguments)}


@mcp.resource("a://{name}", name="tell")
async def tell_resource(name: str, context: Context) -> dict[str, Any]:
    return {**told(context), "name": name, "uri": context.uri}


@mcp.prompt("tell")
async def tell_prompt(context: Context, word: str = "") -> str:
    return json.dumps({**told(context), "name": context.name, "arguments": dict(context.arguments)})


@pytest.fixture(scope="module")
def triggers() -> Triggers:
    return Triggers(mcp)


STREAMABLE = ["POST", "https://shop.azurewebsites.net/runtime/webhooks/mcp", "Grüße", {"a": "1"}]
SSE = ["GET", "https://shop.azurewebsites.net/runtime/webhooks/mcp/sse", "Grüße", {"a": "1"}]
ALL = {"session": "token-1", "client": TODAY["clientinfo"], "revision": "2025-06-18", "meta": {}, "principal": None}


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        (TODAY, {**ALL, "http": STREAMABLE}),
        (TYPO, {**ALL, "client": {}, "http": SSE}),
        (UPPER, {**ALL, "http": None}),
        (NULLS, {**ALL, "session": None, "client": {}, "http": None}),
        ({}, {**ALL, "session": None, "client": {}, "http": None}),
    ],
    ids=["today", "typo", "upper-case", "nulls", "nothing"],
)
async def test_a_context_tells_what_the_host_tells(
    triggers: Triggers, members: dict[str, Any], expected: dict[str, Any]
) -> None:
    tool = read_tool(await triggers.call("tell", None, **members))["structuredContent"]
    assert tool == {**expected, "name": "tell", "arguments": {}}
    function = triggers.functions["resource_tell"]
    resource = read_resource(await function(context=json.dumps({"uri": "a://x", **members})), "a://x")
    assert json.loads(resource["text"]) == {**expected, "name": "x", "uri": "a://x"}


@pytest.mark.parametrize("form", ["text", "bytes", "dict", "library"])
async def test_a_context_may_come_as_text_bytes_an_object_or_what_the_library_makes_of_it(
    triggers: Triggers, form: str
) -> None:
    from azure.functions.mcp import PromptInvocationContext

    context = {"name": "TELL", "arguments": {"word": "a"}, "sessionid": "token-1", "transport": TODAY["transport"]}
    as_text = json.dumps(context)
    forms = {
        "text": as_text,
        "bytes": as_text.encode(),
        "dict": context,
        "library": PromptInvocationContext(as_text),
    }
    value = await triggers.functions["prompt_tell"](context=forms[form])
    said = json.loads(read_prompt(value)["messages"][0]["content"]["text"])
    assert said == {**ALL, "client": {}, "http": STREAMABLE, "name": "tell", "arguments": {"word": "a"}}


@pytest.mark.parametrize("context", ["", "no JSON", "[]", b"\xff"])
async def test_what_is_no_context_is_a_failed_invocation(triggers: Triggers, context: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        await triggers.functions["tool_tell"](context=context)


async def test_a_context_of_a_later_host_with_more_members_is_read_all_the_same(triggers: Triggers) -> None:
    context = SimpleNamespace(name="tell", arguments=None, sessionid="s", transport={"name": "quic", "properties": 3})
    value = await triggers.functions["tool_tell"](context=context)
    assert read_tool(value)["structuredContent"]["session"] == "s"


async def test_what_needs_a_way_back_to_the_client_says_that_there_is_none() -> None:
    server = MCPServer("asking")

    @server.tool
    async def ask(context: Context) -> str:
        assert not context.can("elicitation")
        await context.report_progress(1, 2)
        await context.log("info", "here")
        await context.close_stream()
        await context.ask({"x": Elicit("Who?", {"type": "object", "properties": {"name": {"type": "string"}}})})
        return "never"

    result = read_tool(await Triggers(server).call("ask"))
    assert result["isError"] is True
    assert result["content"][0]["text"] == (
        "Nobody can be asked here: Azure's MCP triggers have no way back to the client."
    )


@pytest.mark.parametrize(
    ("policy", "text"), [("refuse", "dayz: is not an argument. Did you mean days?"), ("drop", "1")]
)
async def test_unknown_arguments_of_a_trigger_follow_the_server(policy: Any, text: str) -> None:
    server = MCPServer("unknown", unknown_arguments=policy)

    @server.tool
    def count(days: int = 1) -> str:
        return str(days)

    result = read_tool(await Triggers(server).call("count", {"dayz": 2}))
    assert (result["content"][0]["text"], result.get("isError", False)) == (text, policy == "refuse")
