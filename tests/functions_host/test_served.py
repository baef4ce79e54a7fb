"""A served function app, as clients of both eras and of the Functions host see it."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from funcmcp._protocol.errors import MCPError
from funcmcp.testing import Client
from funcmcp_host.keys import KeysError
from funcmcp_host.served import PATH, FunctionsHost, HostSettings
from funcmcp_host.workers.supervised import RestartPolicy
from tests.functions_host.apps import KINDS, write_app
from tests.functions_host.host_requests import HostRequest
from tests.functions_host.workers.running import running_pids

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from funcmcp._transports.http.messages import HttpRequest, HttpResponse

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.every_python("Python 3.13 has another azure-functions."),
]

HOST = {"version": "2.0", "extensions": {"mcp": {"serverName": "Kinds", "instructions": "Be brief."}}}
KEY = "k" * 16
STRICT_ERRORS = (
    'name: must be a string, not a number\ntags[1]: must be one of "a" or "b"\nratio: must be a number, not a string'
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def host(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[FunctionsHost]:
    folder = write_app(tmp_path_factory.mktemp("kinds"), KINDS, host=HOST)
    host = FunctionsHost(folder, dict(os.environ), HostSettings(engine="library"))
    await host.start()
    try:
        yield host
    finally:
        await host.aclose()


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["2024-11-05", "2025-06-18", "2026-07-28"])
async def client(host: FunctionsHost, request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    async def exchange(http: HttpRequest) -> HttpResponse:
        http.path = PATH
        return await host.exchange(http)

    async with Client(exchange, revision=request.param) as client:
        yield client


class Post(HostRequest):
    """A POST as a client of the Functions host sends it."""

    def __init__(self, message: object, path: str = PATH, query: str = "", **headers: str) -> None:
        fields = {"content-type": "application/json", "accept": "*/*", **headers}
        super().__init__("POST", path, query, json.dumps(message).encode(), **fields)


def request_of(method: str, params: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}


async def answer(host: FunctionsHost, request: HttpRequest) -> Any:
    response: HttpResponse = await host.exchange(request)
    assert response.status == 200
    assert isinstance(response.body, bytes)
    return json.loads(response.body)


async def test_lists_have_all_that_the_bindings_say(client: Client) -> None:
    tools = {tool["name"]: tool for tool in await client.list_tools()}
    assert tools["echo"]["inputSchema"] == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Who"},
            "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "description": ""},
            "ratio": {"type": "number", "description": ""},
        },
        "required": ["name"],
    }
    if client.revision != "2024-11-05":
        assert tools["echo"]["_meta"] == {"author": {"id": 1}}
    resources = {resource["uri"]: resource for resource in await client.list_resources()}
    assert resources["note://one"]["size"] == 5
    assert [template["uriTemplate"] for template in await client.list_resource_templates()] == [
        "note://{user-id}/{name}"
    ]
    prompts = {prompt["name"]: prompt for prompt in await client.list_prompts()}
    assert prompts["review"]["arguments"][0] == {"name": "code", "description": "The code", "required": True}
    if client.revision == "2026-07-28":
        assert prompts["review"]["icons"] == [{"src": "https://example.com/i.png", "sizes": ["48x48"]}]


async def test_the_server_is_what_host_json_says(client: Client) -> None:
    assert client.server_info["name"] == "Kinds"
    assert client.instructions == "Be brief."


async def test_tools_are_called(client: Client) -> None:
    result = await client.call_tool("echo", {"name": "Ada"})
    context = json.loads(result["content"][0]["text"])
    assert context["arguments"] == {"name": "Ada"}
    assert ("sessionid" in context) is (client.revision != "2026-07-28")
    assert (await client.call_tool("add", {"a": 40}))["content"] == [{"type": "text", "text": "42"}]
    assert (await client.call_tool("generic", {"first": 5}))["content"] == [{"type": "text", "text": '"5"'}]


async def test_a_function_that_returns_nothing_has_no_content(client: Client) -> None:
    for name in ("nothing", "nothing_either"):
        assert (await client.call_tool(name))["content"] == []


async def test_rich_results(client: Client) -> None:
    async def blocks(kind: str) -> list[dict[str, Any]]:
        content: list[dict[str, Any]] = (await client.call_tool("rich", {"kind": kind}))["content"]
        return content

    text, image = {"type": "text", "text": "hello"}, {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    assert await blocks("text") == [text]
    assert await blocks("many") == await blocks("older") == [text, image]
    assert (await blocks("flat"))[0]["resource"] == {"uri": "file://a", "mimeType": "text/plain", "text": "t"}
    whole = await client.call_tool("rich", {"kind": "whole"})
    assert (whole["isError"], whole["_meta"]["k"]) == (True, 1)
    structured = await client.call_tool("rich", {"kind": "structured"})
    listed = await client.call_tool("rich", {"kind": "list"})
    assert structured["content"][1] == {"type": "text", "text": '{"a": 1}'}
    if client.revision == "2025-06-18":
        assert structured["structuredContent"] == {"a": 1}
        assert listed["structuredContent"] == {"result": [1, 2]}
    elif client.revision == "2026-07-28":
        assert listed["structuredContent"] == [1, 2]


async def test_a_missing_argument_is_refused_before_the_call(client: Client) -> None:
    for arguments in ({}, {"name": None}):
        with pytest.raises(MCPError) as error:
            await client.call_tool("echo", arguments)
        assert error.value.code == -32602
        assert str(error.value) == ("One or more required tool properties are missing values. Please provide: name")


async def test_a_failure_is_a_result_without_its_text(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    result = await client.call_tool("fail")
    assert result["isError"] is True
    assert result["content"] == [{"type": "text", "text": "An error occurred invoking 'fail'."}]
    assert "the secret of the house" in caplog.text
    bad = await client.call_tool("rich", {"kind": "bad"})
    assert (bad["isError"], bad["content"][0]["text"]) == (True, "An error occurred invoking 'rich'.")
    assert "The function rich failed. A part of the result is not valid JSON. It returned (string): no" in caplog.text


async def test_a_function_with_a_binding_that_is_not_served_says_so(client: Client, host: FunctionsHost) -> None:
    result = await client.call_tool("document", {"name": "n"})
    assert result["isError"] is True
    assert "Its input binding cosmosDB is not supported by funcmcp host" in result["content"][0]["text"]
    reasons = {item.function: item.reason for item in host.left_out}
    assert reasons.keys() == {"document", "tick", "malformed"}
    assert "timerTrigger" in reasons["tick"]
    assert "toolProperties is not valid JSON" in reasons["malformed"]


async def test_resources_are_read(client: Client) -> None:
    assert (await client.read_resource("note://one"))["contents"] == [
        {"uri": "note://one", "mimeType": "text/markdown", "text": "# One"}
    ]
    assert (await client.read_resource("note://raw"))["contents"][0]["blob"] == "AP8="
    text = (await client.read_resource("note://a%20b/c"))["contents"][0]["text"]
    assert json.loads(text)["uri"] == "note://a%20b/c"
    with pytest.raises(MCPError) as error:
        await client.read_resource("note://broken")
    assert (error.value.code, str(error.value)) == (-32603, "An error occurred.")


async def test_prompts_are_rendered(client: Client) -> None:
    result = await client.get_prompt("review", {"code": "x = 1"})
    assert result["messages"] == [{"role": "user", "content": {"type": "text", "text": "Review: x = 1"}}]
    chat = await client.get_prompt("chat")
    assert (chat["description"], [message["role"] for message in chat["messages"]]) == ("A chat", ["user", "assistant"])
    with pytest.raises(MCPError, match=r"required prompt arguments are missing values\. Please provide: code"):
        await client.get_prompt("review")


async def test_blobs_and_queues(client: Client, host: FunctionsHost) -> None:
    assert (await client.call_tool("load", {"name": client.revision}))["content"][0]["text"] == "nothing"
    await client.call_tool("save", {"name": client.revision, "text": "kept"})
    assert (await client.call_tool("load", {"name": client.revision}))["content"][0]["text"] == "kept"
    refused = await client.call_tool("load", {"name": "../../up"})
    assert (refused["isError"], "is not allowed" in refused["content"][0]["text"]) == (True, True)
    for tool, verb in (("load", "read"), ("save", "written")):
        refused = await client.call_tool(
            tool, {"name": "n" * 300, "text": "t"} if tool == "save" else {"name": "n" * 300}
        )
        assert refused["isError"] is True
        assert refused["content"][0]["text"].endswith(f" can't be {verb}: File name too long.")
    await client.call_tool("order", {"item": client.revision})
    queue = host.folder.path / ".funcmcp" / "storage" / "Files" / "queues" / "jobs.jsonl"
    assert client.revision in queue.read_text()


@pytest.mark.parametrize("path", [PATH, f"{PATH}/", f"{PATH}/message", f"{PATH}/deep/er"])
async def test_requests_without_initialize_are_answered(host: FunctionsHost, path: str) -> None:
    listed = await answer(host, Post(request_of("tools/list"), path))
    assert "echo" in {tool["name"] for tool in listed["result"]["tools"]}
    result = await answer(host, Post(request_of("tools/call", {"name": "echo", "arguments": {"name": "A"}}), path))
    context = json.loads(result["result"]["content"][0]["text"])
    assert (context["arguments"], "sessionid" in context, "clientinfo" in context) == ({"name": "A"}, False, False)


@pytest.mark.parametrize(
    ("headers", "has_structure"),
    [({}, True), ({"mcp-protocol-version": "2025-06-18"}, True), ({"mcp-protocol-version": "2025-03-26"}, False)],
)
async def test_a_request_that_names_no_revision_is_answered_in_that_of_the_extension(
    host: FunctionsHost, headers: dict[str, str], has_structure: bool
) -> None:
    listed = await answer(host, Post(request_of("tools/list"), **headers))
    tools = {tool["name"]: tool for tool in listed["result"]["tools"]}
    assert ("_meta" in tools["echo"]) is has_structure
    call = request_of("tools/call", {"name": "rich", "arguments": {"kind": "structured"}})
    result = (await answer(host, Post(call, **headers)))["result"]
    assert ("structuredContent" in result) is has_structure


async def test_the_usual_names_of_this_machine_are_accepted(host: FunctionsHost) -> None:
    for name in ("localhost:7071", "127.0.0.1:7071", "0.0.0.0:7071"):
        assert (await host.exchange(Post(request_of("ping"), host=name))).status == 200
    assert (await host.exchange(Post(request_of("ping"), host="evil.example:7071"))).status == 421


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_an_app_without_functions_lists_nothing_and_is_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    code = "import azure.functions as func\napp = func.FunctionApp()\n"
    host = FunctionsHost(write_app(tmp_path, code), dict(os.environ), HostSettings(engine="library"))
    await host.start()
    try:
        for method, member in (("tools/list", "tools"), ("resources/list", "resources"), ("prompts/list", "prompts")):
            assert await answer(host, Post(request_of(method))) == {"jsonrpc": "2.0", "id": 1, "result": {member: []}}
        assert host.summary.startswith("no functions (Python 3")
        assert (
            caplog.text.count(
                "The app has no function that funcmcp host can serve. Run funcmcp doctor to find the reason."
            )
            == 1
        )
    finally:
        await host.aclose()


def keyed_host(folder: Path, keys: str, host: Any = None) -> FunctionsHost:
    environment = {**os.environ, "FUNCMCP_HOST_KEYS": keys}
    return FunctionsHost(write_app(folder, KINDS, host=host), environment)


async def test_keys_protect_the_endpoint(tmp_path: Path) -> None:
    host = keyed_host(tmp_path, f"mcp_extension={KEY}")
    ping = request_of("ping")
    assert (await host.exchange(Post(ping))).status == 401
    assert (await host.exchange(Post(ping, **{"x-functions-key": "wrong"}))).status == 401
    assert (await host.exchange(Post(ping, **{"x-functions-key": KEY}))).status == 200
    assert (await host.exchange(Post(ping, query=f"code={KEY}"))).status == 200
    assert (await host.exchange(Post(ping, f"{PATH}/sse", query="session_id=guess"))).status == 404
    assert not host.needs_keys
    await host.aclose()


ANONYMOUS = {"extensions": {"mcp": {"system": {"webhookAuthorizationLevel": "Anonymous"}}}}


@pytest.mark.parametrize(
    ("keys", "status"),
    [
        (f"default={KEY}", 200),  # opens HTTP triggers only, so the endpoint has no key
        (f"mcp_extension={KEY}", 401),
        (f"_master={KEY}", 401),
    ],
)
async def test_host_json_opens_the_endpoint_only_where_no_key_for_it_is_set(
    keys: str, status: int, tmp_path: Path
) -> None:
    host = keyed_host(tmp_path, keys, ANONYMOUS)
    assert (await host.exchange(Post(request_of("ping")))).status == status
    if status == 401:
        assert (await host.exchange(Post(request_of("ping"), **{"x-functions-key": KEY}))).status == 200
    await host.aclose()


async def test_without_keys_the_app_is_for_this_machine(host: FunctionsHost, tmp_path: Path) -> None:
    assert not host.needs_keys
    folder = write_app(tmp_path, KINDS)
    for address, needs_keys in (("127.0.0.2", False), ("localhost", False), ("::1", False), ("", True), ("::", True)):
        assert FunctionsHost(folder, dict(os.environ), HostSettings(host=address)).needs_keys is needs_keys
    with pytest.raises(KeysError):
        keyed_host(tmp_path, "mcp_extension=short")


async def test_the_host_key_does_not_reach_the_app(host: FunctionsHost, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    message = request_of("tools/call", {"name": "echo", "arguments": {"name": "A"}})
    request = Post(message, query=f"code={KEY}", **{"x-functions-key": KEY, "x-custom": "1"})
    text = (await answer(host, request))["result"]["content"][0]["text"]
    assert json.loads(text)["transport"]["properties"]["headers"]["X-Custom"] == "1"
    assert KEY not in text
    assert KEY not in caplog.text


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_an_app_that_stays_away_is_503(tmp_path: Path) -> None:
    restart = RestartPolicy(first_delay=30, wait_seconds=0.1)
    settings = HostSettings(engine="library", restart=restart)
    host = FunctionsHost(write_app(tmp_path, KINDS), dict(os.environ), settings)
    await host.start()
    try:
        (tmp_path / "function_app.py").write_text("broken")
        os.kill(running_pids(host.worker)[0], signal.SIGKILL)
        result = await answer(host, Post(request_of("tools/call", {"name": "aecho"})))
        text = "The function app is not running. The call had no effect."
        assert result["result"] == {"content": [{"type": "text", "text": text}], "isError": True}
        await asyncio.sleep(0.2)
        refused = await host.exchange(Post(request_of("tools/list")))
        assert (refused.status, dict(refused.headers)["retry-after"]) == (503, "5")
    finally:
        await host.aclose()


async def test_the_sample_is_served(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    shutil.copytree(Path(__file__).parents[2] / "samples/azure/mcp_triggers", folder)
    host = FunctionsHost(folder, dict(os.environ))

    async def exchange(http: HttpRequest) -> HttpResponse:
        http.path = PATH
        return await host.exchange(http)

    await host.start()
    try:
        async with Client(exchange) as client:
            assert client.server_info["name"] == "Notes"
            assert (await client.call_tool("save_note", {"name": "a", "text": "hi"}))["content"][0][
                "text"
            ] == "Saved a."
            assert (await client.call_tool("load_note", {"name": "a"}))["content"][0]["text"] == "hi"
            assert (await client.call_tool("load_note", {"name": "b"}))["content"][0]["text"] == "There is no note b."
            assert (await client.read_resource("notes://a"))["contents"][0]["text"] == "hi"
            prompt = await client.get_prompt("summarize_note", {"name": "a"})
            assert "Load the note a" in prompt["messages"][0]["content"]["text"]
    finally:
        await host.aclose()


async def test_strict_checks_arguments_before_the_call(tmp_path: Path) -> None:
    bad_schema = """
@app.generic_trigger(
    arg_name="context",
    type="mcpToolTrigger",
    toolName="bad",
    useWorkerInputSchema=True,
    inputSchema='{"type": "object", "minProperties": "x"}',
)
def bad(context) -> str:
    return "never"
"""
    host = FunctionsHost(
        write_app(tmp_path, KINDS + bad_schema), dict(os.environ), HostSettings(engine="library", strict=True)
    )
    await host.start()
    try:
        reasons = {item.function: item.reason for item in host.left_out}
        assert reasons["bad"].startswith("The input schema of bad is not a valid JSON schema: ")

        async def call(arguments: Any) -> Any:
            message = request_of("tools/call", {"name": "echo", "arguments": arguments})
            return await answer(host, Post(message))

        assert (await call({"name": "a", "tags": ["a", "b"], "ratio": 1}))["result"]["content"]
        assert (await call({"tags": []}))["error"]["message"] == (
            "One or more required tool properties are missing values. Please provide: name"
        )
        result = (await call({"name": 5, "tags": ["a", "c"], "ratio": "1"}))["result"]
        assert result == {"content": [{"type": "text", "text": STRICT_ERRORS}], "isError": True}
        result = (await answer(host, Post(request_of("tools/call", {"name": "aecho"}))))["result"]
        assert "isError" not in result
    finally:
        await host.aclose()
