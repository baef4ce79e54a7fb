"""Function apps behind language workers: a worker of these tests, and Microsoft's Python worker."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from funcmcp.testing import Client
from funcmcp_host.served import PATH, FunctionsHost, HostSettings
from funcmcp_host.workers.worker import LoadFailed
from tests.functions_host.test_served import Post
from tests.functions_host.workers.microsofts import MICROSOFTS_COMMAND, microsofts_environment, write_function_json
from tests.functions_host.workers.running import running_pids
from tests.functions_host.workers.test_rpc import COMMAND, app_folder
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from funcmcp._transports.http.messages import HttpRequest, HttpResponse

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.every_python("Python 3.13 has another azure-functions."),
]
_SLOW = pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")


@asynccontextmanager
async def client_of(host: FunctionsHost) -> AsyncIterator[Client]:
    async def exchange(request: HttpRequest) -> HttpResponse:
        request.path = PATH
        return await host.exchange(request)

    async with Client(exchange) as client:
        yield client


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def host(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[FunctionsHost]:
    folder = app_folder(tmp_path_factory.mktemp("served"))
    (folder / "local.settings.json").write_text('{"Values": {"FUNCTIONS_WORKER_RUNTIME": "dotnet-isolated"}}')
    settings = HostSettings(worker=COMMAND, timeout=5)
    host = FunctionsHost(folder, {**os.environ, "SCENARIO": ""}, settings)
    await host.start()
    try:
        yield host
    finally:
        await host.aclose()


async def test_tools_resources_and_prompts_are_served(host: FunctionsHost) -> None:
    assert host.summary.startswith("28 tools, 2 resources, 1 template, 1 prompt, 2 HTTP triggers (test 1.2, worker 3)")
    assert {row.function: row.reason for row in host.left_out} == {
        "tick": "Its trigger timerTrigger is not supported by funcmcp host.",
        "unloadable": "It is broken.",
        "unreadable": "It has no entry point.",
    }
    async with client_of(host) as client:
        assert (await client.call_tool("string"))["content"] == [{"type": "text", "text": "text"}]
        assert (await client.call_tool("double"))["content"] == [{"type": "text", "text": "0.5"}]
        assert (await client.call_tool("nothing"))["content"] == []
        numbers = await client.call_tool("collection_sint64")
        assert numbers["content"] == [{"type": "text", "text": "[\n  -1,\n  2\n]"}]
        rich = await client.call_tool("rich")
        assert (rich["content"], rich["structuredContent"]) == ([{"type": "text", "text": "rich"}], {"a": 1})
        failed = await client.call_tool("fail")
        assert failed["isError"]
        assert "secret" not in failed["content"][0]["text"]
        assert (await client.read_resource("note://text"))["contents"][0]["text"] == "# Text"
        assert (await client.read_resource("note://binary"))["contents"][0]["blob"] == "AP8="
        request = json.loads((await client.read_resource("note://ada/one"))["contents"][0]["text"])
        assert request["metadata"]["user"] == ["string", "ada"]
        assert (await client.get_prompt("review"))["messages"][0]["content"]["text"] == "Review this."


async def test_blobs_are_written_and_read(host: FunctionsHost) -> None:
    async with client_of(host) as client:
        missing = await client.call_tool("load", {"name": "a"})
        assert json.loads(missing["content"][0]["text"])[1] == [None, None]
        await client.call_tool("save", {"name": "a", "text": "hi"})
        read = await client.call_tool("load", {"name": "a"})
        assert json.loads(read["content"][0]["text"])[1] == ["bytes", "hi"]
    assert (host.folder.path / ".funcmcp/storage/Files/box/a").read_text() == "hi"


async def test_a_worker_that_dies_in_a_call_answers_the_client(host: FunctionsHost) -> None:
    async with client_of(host) as client:
        died = await client.call_tool("die")
        text = "The function app stopped while it ran the function. The call may have had an effect."
        assert (died["isError"], died["content"][0]["text"]) == (True, text)
        assert (await client.call_tool("string"))["content"][0]["text"] == "text"


async def test_http_triggers_are_served(host: FunctionsHost, tmp_path: Path) -> None:
    request = Post({"a": 1}, "/api/orders/7", "q=x&empty=", **{"x-sent": "there"})
    response = await host.exchange(request)
    assert response.status == 201
    headers = list(response.headers)
    assert ("x-made", "here") in headers
    assert ("content-type", "application/json; charset=utf-8") in headers
    cookie = "a=b%20c; Max-Age=60; Domain=example.com; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT; HttpOnly; Secure"
    assert ("set-cookie", f"{cookie}; SameSite=Strict") in headers
    assert ("set-cookie", "plain=1") in headers
    assert isinstance(response.body, bytes)
    body = json.loads(response.body)
    assert (body["method"], body["params"]) == ("POST", {"id": ["nullable", "7"]})
    assert body["query"] == {"q": ["nullable", "x"], "empty": ["nullable", ""]}
    assert body["headers"]["x-sent"] == ["nullable", "there"]
    assert (body["body"], body["raw"]) == (["bytes", '{"a": 1}'], [None, None])
    assert (await host.exchange(Post({}, "/api/bad"))).status == 500


FUNCTION_JSON: dict[str, Any] = {
    "hello": {
        "scriptFile": "__init__.py",
        "bindings": [
            {"name": "context", "type": "mcpToolTrigger", "direction": "in", "toolName": "hello"},
            {"name": "$return", "type": "queue", "direction": "out", "queueName": "jobs", "connection": "Files"},
        ],
    },
    "orders": {
        "bindings": [
            {"name": "req", "type": "httpTrigger", "direction": "in", "route": "orders/{id}", "authLevel": "anonymous"},
            {"name": "$return", "type": "http", "direction": "out"},
        ]
    },
    "broken": {"bindings": [{"name": "context", "type": "mcpToolTrigger", "direction": "in", "toolName": "broken"}]},
}
CODE = {
    "hello": """
import logging

def main(context: str) -> str:
    logging.warning("greeting")
    return "hi " + context
""",
    "orders": """
import azure.functions as func

def main(req: func.HttpRequest) -> func.HttpResponse:
    text = req.route_params["id"] + req.params["q"] + req.get_body().decode() + req.headers["x-sent"]
    return func.HttpResponse(text, status_code=201, headers={"x-made": "here"})
""",
    "broken": "raise ValueError('broken by its author')",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def microsofts(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[FunctionsHost]:
    folder = app_folder(tmp_path_factory.mktemp("microsofts"))
    write_function_json(folder, {name: (content, CODE[name]) for name, content in FUNCTION_JSON.items()})
    environment = {**os.environ, **microsofts_environment(folder)}
    host = FunctionsHost(folder, environment, HostSettings(worker=MICROSOFTS_COMMAND, timeout=10))
    await host.start()
    try:
        yield host
    finally:
        await host.aclose()


async def test_microsofts_worker_serves_an_app_with_function_json_files(
    microsofts: FunctionsHost, caplog: pytest.LogCaptureFixture
) -> None:
    assert [(row.function, row.reason) for row in microsofts.left_out] == [
        ("broken", "ValueError: broken by its author")
    ]
    async with client_of(microsofts) as client:
        assert [tool["name"] for tool in await client.list_tools()] == ["hello"]
        result = await client.call_tool("hello", {"name": "Ada"})
    text = result["content"][0]["text"]
    assert text.startswith('hi {"name":"hello","arguments":{"name":"Ada"}')
    assert ("greeting", "hello") in [(row.message, getattr(row, "function", "")) for row in caplog.records]
    queue = microsofts.folder.path / ".funcmcp/storage/Files/queues/jobs.jsonl"
    assert json.loads(queue.read_text())["message"] == text


async def test_microsofts_worker_answers_http_requests(microsofts: FunctionsHost) -> None:
    response = await microsofts.exchange(Post("body", "/api/orders/7", "q=x", **{"x-sent": "!"}))
    assert (response.status, response.body) == (201, b'7x"body"!')
    assert ("x-made", "here") in list(response.headers)


@_SLOW
async def test_microsofts_worker_is_started_again(microsofts: FunctionsHost) -> None:
    process = running_pids(microsofts.worker)[0]
    os.kill(process, signal.SIGKILL)
    async with asyncio.timeout(PATIENCE):
        while running_pids(microsofts.worker) in ([], [process]):  # noqa: ASYNC110 - the supervisor has no event for it
            await asyncio.sleep(0.02)
    async with client_of(microsofts) as client:
        assert (await client.call_tool("hello"))["content"][0]["text"].startswith("hi ")


@_SLOW
@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [("__init__.py", "def main(", "SyntaxError"), ("function.json", '{"bindings": [', "line")],
)
async def test_a_change_that_breaks_a_function_leaves_the_process_before(
    file: str, text: str, reason: str, microsofts: FunctionsHost
) -> None:
    path = microsofts.folder.path / "hello" / file
    content = path.read_text()
    path.write_text(text)
    try:
        with pytest.raises(LoadFailed, match=rf"^hello: .*{reason}"):
            await microsofts.worker.replace()
    finally:
        path.write_text(content)
    async with client_of(microsofts) as client:
        assert (await client.call_tool("hello"))["content"][0]["text"].startswith("hi ")


# Without --worker and without the extra.


@_SLOW
async def test_the_host_loads_grpc_only_for_a_language_worker() -> None:
    code = "import sys; import funcmcp_host.served; print(sorted({'grpc', 'google'} & sys.modules.keys()))"
    program = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=subprocess.PIPE)
    output, _ = await program.communicate()
    assert output == b"[]\n"


async def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "funcmcp_host.workers.rpc", None)
    host = FunctionsHost(app_folder(tmp_path), dict(os.environ), HostSettings(worker=COMMAND))
    with pytest.raises(LoadFailed, match=r'A language worker needs: pip install "funcmcp\[host-rpc\]"'):
        await host.start()
    await host.aclose()
