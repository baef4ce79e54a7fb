"""Custom handlers that get invocations as JSON, served by the functions host."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp.testing import Client
from funcmcp_host.app_rules.model import read_app
from funcmcp_host.folder import FolderError
from funcmcp_host.handler_program import read_program
from funcmcp_host.served import PATH, FunctionsHost, HostSettings
from funcmcp_host.workers import handler_worker
from funcmcp_host.workers.handler_payload import _named_response, _returned_response
from funcmcp_host.workers.worker import FunctionFailed, LoadFailed, Value
from tests import nodejs
from tests.cli.forking import funcmcp
from tests.functions_host.test_served import Post
from tests.functions_host.workers.running import running_pids
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from funcmcp._transports.http.messages import HttpRequest, HttpResponse

# The form of Microsoft's sample in Go: one handler for each path, and a struct with Outputs, Logs and ReturnValue.
_SLOW = pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")

PROGRAM = """
import json
import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT = int(os.environ["FUNCTIONS_CUSTOMHANDLER_PORT"])


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        with open("requests.jsonl", "a") as file:
            record = {"path": self.path, "headers": dict(self.headers), "body": body.decode()}
            file.write(json.dumps(record) + "\\n")
        name = self.path.strip("/")
        if name.lower().endswith("slow"):
            time.sleep(600)
        if name.startswith("api/"):
            return self.answer(201, "text/plain", f"{self.command} {self.path}".encode())
        arguments = json.loads(body)["Metadata"].get("mcptoolargs", {})
        mode = arguments.get("mode", "")
        if mode == "hang":
            time.sleep(600)
        if mode == "end":
            os._exit(3)
        if mode == "cut":
            return self.connection.shutdown(2)
        if name == "Odd":
            content = json.loads(arguments["answer"])
            return self.answer(content["status"], content["type"], content["body"].encode())
        context = json.loads(json.loads(body)["Data"].get("context", "null"))
        context = json.loads(context) if isinstance(context, str) else None
        answers = {
            "Echo": {"Outputs": {"copy": "kept: é"}, "Logs": ["line one", "two\\nforged"], "ReturnValue": context},
            "Text": {"ReturnValue": "abcd"},
            "File": {"returnValue": "a file"},
            "Ask": {"RETURNVALUE": "Hello"},
            "Page": {
                "Outputs": {"res": {"statusCode": "202", "body": {"a": 1}, "headers": {"x-own": "1"}}, "q": "aGk="},
                "ReturnValue": "queued!",
            },
            "Return": {"ReturnValue": {"status": 203, "body": "plain"}},
        }
        self.answer(200, "application/json; charset=utf-8", json.dumps(answers[name]).encode())

    do_GET = do_POST

    def answer(self, status, content_type, body):
        self.send_response(status)
        if content_type:
            self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
"""
NODE = """
const http = require('http');
http.createServer((request, response) => {
  let text = '';
  request.on('data', (part) => { text += part; });
  request.on('end', () => {
    const { Data, Metadata } = JSON.parse(text);
    const context = JSON.parse(JSON.parse(Data.context));
    const ReturnValue = `${context.arguments.a} ${Metadata.mcptoolargs.a}`;
    const answer = { Outputs: {}, Logs: ['from node'], ReturnValue };
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify(answer));
  });
}).listen(process.env.FUNCTIONS_CUSTOMHANDLER_PORT, '127.0.0.1');
"""
HOST: dict[str, Any] = {
    "version": "2.0",
    "customHandler": {"description": {"defaultExecutablePath": "python", "arguments": ["handler.py"]}},
}
FORWARDING = {**HOST, "customHandler": {**HOST["customHandler"], "enableForwardingHttpRequest": True}}
MODE = json.dumps([{"propertyName": "mode", "propertyType": "string", "description": "What to do"}])


def tool(name: str, **members: Any) -> dict[str, Any]:
    binding = {"type": "mcpToolTrigger", "direction": "in", "name": "context", "toolName": name, "description": name}
    return {**binding, "toolProperties": MODE, **members}


def output(kind: str, name: str, **members: Any) -> dict[str, Any]:
    return {"type": kind, "direction": "out", "name": name, "connection": "AzureWebJobsStorage", **members}


def http_trigger(route: str) -> dict[str, Any]:
    return {"type": "httpTrigger", "direction": "in", "name": "req", "authLevel": "anonymous", "route": route}


FUNCTIONS: dict[str, list[dict[str, Any]]] = {
    "Echo": [
        tool("echo"),
        {"type": "mcpToolProperty", "direction": "in", "name": "mode", "propertyName": "mode"},
        output("blob", "copy", path="copies/one.txt"),
    ],
    "Text": [tool("text")],
    "Odd": [tool("odd")],
    "File": [
        {"type": "mcpResourceTrigger", "direction": "in", "name": "context", "uri": "file://a", "resourceName": "a"}
    ],
    "Ask": [{"type": "mcpPromptTrigger", "direction": "in", "name": "context", "promptName": "ask"}],
    "Page": [
        http_trigger("page/{id}"),
        output("http", "res"),
        output("queue", "q", queueName="first"),
        output("queue", "$return", queueName="second"),
    ],
    "Return": [http_trigger("return"), output("http", "$return")],
}


def write_app(
    folder: Path, host: Mapping[str, Any] = HOST, functions: Mapping[str, Any] = FUNCTIONS, code: str = PROGRAM
) -> Path:
    folder.mkdir()
    (folder / "host.json").write_text(json.dumps(host))
    (folder / "handler.py").write_text(code)
    for name, bindings in functions.items():
        (folder / name).mkdir()
        (folder / name / "function.json").write_text(json.dumps({"bindings": bindings}))
    return folder


@asynccontextmanager
async def hosted(folder: Path, **settings: Any) -> AsyncIterator[FunctionsHost]:
    host = FunctionsHost(folder, dict(os.environ), HostSettings(python=sys.executable, **settings))
    try:
        await host.start()
        yield host
    finally:
        await host.aclose()


def client_of(host: FunctionsHost, revision: str = "2025-06-18") -> Client:
    async def exchange(http: HttpRequest) -> HttpResponse:
        http.path = PATH
        return await host.exchange(http)

    return Client(exchange, revision=revision)


def requests_in(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "requests.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28"])
async def test_tools_resources_and_prompts_of_a_program_are_served(
    revision: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "funcmcp.app")
    async with hosted(write_app(tmp_path / "app")) as host, client_of(host, revision) as client:
        assert {listed["name"] for listed in await client.list_tools()} == {"echo", "text", "odd"}
        echoed = await client.call_tool("echo", {"mode": 'a "b"'})
        assert json.loads(echoed["content"][0]["text"])["arguments"] == {"mode": 'a "b"'}
        # A tool has no output binding $return, so its text is not taken for base64.
        assert (await client.call_tool("text"))["content"] == [{"type": "text", "text": "abcd"}]
        assert (await client.read_resource("file://a"))["contents"][0]["text"] == "a file"
        assert (await client.get_prompt("ask"))["messages"][0]["content"]["text"] == "Hello"
        assert host.summary.startswith("3 tools, 1 resource, 1 prompt, 2 HTTP triggers (custom handler 'python ")
    storage = tmp_path / "app" / ".funcmcp" / "storage"
    assert [file.read_text() for file in storage.rglob("one.txt")] == ["kept: é"]
    messages = [record.getMessage() for record in caplog.records if record.name == "funcmcp.app"]
    assert "line one" in messages
    assert not any(message == "forged" for message in messages)


async def test_a_program_gets_the_path_the_headers_and_the_json_of_the_functions_host(tmp_path: Path) -> None:
    async with hosted(write_app(tmp_path / "app")) as host, client_of(host) as client:
        await client.call_tool("echo", {"mode": "é"})
    (request,) = requests_in(tmp_path / "app")
    headers = {name.lower(): text for name, text in request["headers"].items()}
    body = json.loads(request["body"])
    assert request["path"] == "/Echo"
    assert headers["content-type"] == "application/json; charset=utf-8"
    assert headers["user-agent"].startswith("Azure-Functions-Host/4.")
    assert len(headers["x-azure-functions-invocationid"]) == 36
    assert headers["x-azure-functions-hostversion"].startswith("4.")
    context = json.loads(json.loads(body["Data"]["context"]))
    assert (context["name"], context["arguments"]) == ("echo", {"mode": "é"})
    assert body["Data"]["mode"] == '"é"'
    metadata = body["Metadata"]
    assert metadata["mcptoolargs"] == {"mode": "é"}
    assert (metadata["name"], metadata["arguments"]) == ('"echo"', {"mode": "é"})
    assert metadata["transport"]["name"] == "http-streamable"
    assert metadata["sys"]["MethodName"] == "Echo"
    assert "mcptoolcontext" not in metadata


async def test_http_requests_are_json_and_outputs_are_responses_and_messages(tmp_path: Path) -> None:
    async with hosted(write_app(tmp_path / "app")) as host:
        page = await host.exchange(Post({"a": 1}, "/api/page/7", "x=1", **{"x-custom": "c"}))
        returned = await host.exchange(Post({}, "/api/return"))
    assert (page.status, json.loads(page.body)) == (202, {"a": 1})  # type: ignore[arg-type]
    assert ("x-own", "1") in page.headers
    assert (returned.status, returned.body) == (203, b"plain")
    request = json.loads(requests_in(tmp_path / "app")[0]["body"])
    sent = request["Data"]["req"]
    assert (sent["Method"], sent["Url"]) == ("POST", "http://localhost:7071/api/page/7?x=1")
    assert (sent["Params"], sent["Query"], sent["Body"]) == ({"id": "7"}, {"x": "1"}, '{"a": 1}')
    assert sent["Headers"]["X-Custom"] == ["c"]
    assert request["Metadata"]["id"] == '"7"'
    storage = tmp_path / "app" / ".funcmcp" / "storage"
    queues = {file.stem: json.loads(file.read_text())["message"] for file in storage.rglob("*.jsonl")}
    assert queues == {"first": "hi", "second": "queued!"}  # the first one is base64


async def test_requests_of_functions_with_nothing_but_http_are_forwarded_if_host_json_says_so(tmp_path: Path) -> None:
    functions = {
        "Text": FUNCTIONS["Text"],
        "Plain": [http_trigger("plain/{*rest}"), output("http", "res")],
        "Page": FUNCTIONS["Page"],
    }
    async with hosted(write_app(tmp_path / "app", FORWARDING, functions)) as host, client_of(host) as client:
        plain = await host.exchange(Post({"a": 1}, "/api/plain/x y", "b=2", **{"x-custom": "c"}))
        page = await host.exchange(Post({}, "/api/page/1"))
        assert (await client.call_tool("text"))["content"][0]["text"] == "abcd"
    assert (plain.status, plain.body) == (201, b"POST /api/plain/x%20y?b=2")
    assert page.status == 202
    forwarded, invoked, _ = requests_in(tmp_path / "app")
    headers = {name.lower(): text for name, text in forwarded["headers"].items()}
    assert (forwarded["body"], headers["x-custom"]) == ('{"a": 1}', "c")
    assert "x-azure-functions-invocationid" in headers
    assert invoked["path"] == "/Page"


@pytest.mark.parametrize(
    ("status", "content_type", "body", "reason"),
    [
        (500, "application/json", '{"ReturnValue": "a"}', "answered with the status 500"),
        (302, "application/json", "{}", "answered with the status 302"),
        (200, "application/json", "", "answer is empty"),
        (200, "text/html", "{}", "has the content type 'text/html'. Set Content-Type to application/json"),
        (200, "", "{}", "has the content type ''"),
        (200, "application/json", "{", "is not valid JSON"),
        (200, "application/json", "[" * 100_000, "is not valid JSON"),
        (200, "application/json", '{"ReturnValue": NaN}', "is not valid JSON"),
        (200, "application/json", "[]", "must be an object with Outputs, Logs and ReturnValue"),
        (200, "application/json", '{"Outputs": []}', "Outputs in the custom handler's answer must be an object"),
        (200, "application/json", '{"Logs": "a"}', "Logs in the custom handler's answer must be an array of strings"),
    ],
)
async def test_an_answer_that_azure_does_not_read_fails_the_call(
    status: int, content_type: str, body: str, reason: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    answer = json.dumps({"status": status, "type": content_type, "body": body})
    async with hosted(write_app(tmp_path / "app")) as host, client_of(host) as client:
        result = await client.call_tool("odd", {"answer": answer})
    assert result["isError"]
    assert "custom handler" not in result["content"][0]["text"]  # only the log has the reason
    assert reason in caplog.text


async def test_an_answer_without_any_member_is_empty_and_named_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    answer = json.dumps({"status": 200, "type": "text/json", "body": '{"result": 1}'})
    async with hosted(write_app(tmp_path / "app")) as host, client_of(host) as client:
        for _ in range(2):
            assert (await client.call_tool("odd", {"answer": answer}))["content"] == []
    assert caplog.text.count("has none of Outputs, Logs and ReturnValue") == 1


@_SLOW
async def test_an_answer_that_is_too_large_fails_the_call(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler_worker, "_MAX_ANSWER", 20)
    async with hosted(write_app(tmp_path / "app")) as host, client_of(host) as client:
        assert (await client.call_tool("echo"))["isError"]
    assert "has more than 20 bytes" in caplog.text


@_SLOW
@pytest.mark.parametrize("mode", ["hang", "end", "cut"])
async def test_a_program_that_hangs_or_ends_is_started_again_and_the_call_is_not_repeated(
    mode: str, tmp_path: Path
) -> None:
    async with hosted(write_app(tmp_path / "app")) as host, client_of(host) as client:
        host._features.seconds = 1 if mode == "hang" else PATIENCE
        first = running_pids(host.worker)
        result = await client.call_tool("echo", {"mode": mode})
        assert result["isError"]
        assert ("in time" in result["content"][0]["text"]) is (mode == "hang")
        host._features.seconds = PATIENCE
        assert (await client.call_tool("text"))["content"][0]["text"] == "abcd"
        assert (running_pids(host.worker) == first) is (mode == "cut")
    bodies = [json.loads(request["body"]) for request in requests_in(tmp_path / "app")]
    assert sum(body["Metadata"].get("mcptoolargs") == {"mode": mode} for body in bodies) == 1


@_SLOW
@pytest.mark.parametrize("host_json", [HOST, FORWARDING], ids=["invoked", "forwarded"])
async def test_an_http_trigger_whose_program_hangs_is_answered_with_504(
    host_json: dict[str, Any], tmp_path: Path
) -> None:
    functions = {"Slow": [http_trigger("slow"), output("http", "res")], "Text": FUNCTIONS["Text"]}
    async with hosted(write_app(tmp_path / "app", host_json, functions)) as host, client_of(host) as client:
        first = running_pids(host.worker)
        host._triggers.seconds = 1
        answer = await host.exchange(Post({}, "/api/slow"))
        assert answer.status == 504
        assert b"It may have had an effect." in answer.body  # type: ignore[operator]
        assert (await client.call_tool("text"))["content"][0]["text"] == "abcd"
        assert running_pids(host.worker) != first
    assert sum("slow" in request["path"].lower() for request in requests_in(tmp_path / "app")) == 1


def _wait_for_file(path: Path) -> None:
    end = time.monotonic() + PATIENCE
    while not path.exists():
        assert time.monotonic() < end, f"{path} never came"
        time.sleep(0.05)


async def test_a_program_that_refuses_connections_fails_the_call_and_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler_worker, "_PAUSES", (0.0, 0.0))
    code = PROGRAM.replace("ThreadingHTTPServer((", "server = ThreadingHTTPServer((").replace(
        "Handler).serve_forever()",
        "Handler)\nserver.handle_request()\nserver.server_close()\nopen('closed', 'w').close()\ntime.sleep(600)",
    )
    folder = write_app(tmp_path / "app", code=code)
    async with hosted(folder) as host, client_of(host) as client:
        await asyncio.to_thread(_wait_for_file, folder / "closed")
        assert (await client.call_tool("text"))["isError"]
        assert running_pids(host.worker) != [None]
    assert "runs and refuses connections" in caplog.text


@_SLOW
async def test_a_reload_lets_calls_finish_and_uses_the_new_program(tmp_path: Path) -> None:
    folder = write_app(tmp_path / "app")
    async with hosted(folder) as host, client_of(host) as client:
        first = running_pids(host.worker)
        (folder / "handler.py").write_text(PROGRAM.replace('"abcd"', '"new"'))
        await host.worker.replace()
        assert (await client.call_tool("text"))["content"][0]["text"] == "new"
        assert running_pids(host.worker) != first


async def test_a_function_json_that_is_not_valid_leaves_its_function_out(tmp_path: Path) -> None:
    async with hosted(write_app(tmp_path / "app", functions={**FUNCTIONS, "Broken": []})) as host:
        assert [(left_out.function, left_out.reason) for left_out in host.left_out] == [
            ("Broken", "function.json has no bindings. Add a list with a trigger.")
        ]


@_SLOW
@pytest.mark.parametrize(
    ("code", "handler", "reason"),
    [
        ("raise SystemExit(7)", {}, r"ended before it listened on port \d+ \(exit code 7\)"),
        ("import time; time.sleep(600)", {"initializationTimeout": "00:00:01"}, "does not listen on 127.0.0.1:"),
        (PROGRAM, {"description": {}}, "customHandler has no description.defaultExecutablePath"),
    ],
)
async def test_a_program_that_does_not_start_is_an_error(
    code: str, handler: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    host = {**HOST, "customHandler": {**HOST["customHandler"], **handler}}
    with pytest.raises(LoadFailed, match=reason):
        async with hosted(write_app(tmp_path / "app", host, code=code)):
            pass


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system says that it can't be started")
@pytest.mark.parametrize("content", [b"no program", b"#!/no/such/interpreter\n"], ids=["data", "interpreter"])
async def test_an_executable_file_that_is_no_program_is_named(
    content: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "funcmcp.app")
    handler = {"description": {"defaultExecutablePath": "handler"}}
    folder = write_app(tmp_path / "app", {**HOST, "customHandler": handler})
    (folder / "handler").write_bytes(content)
    (folder / "handler").chmod(0o755)
    with pytest.raises(LoadFailed, match=r"ended before it listened on port \d+ \(exit code 1\)"):
        async with hosted(folder):
            pass
    [line] = [record.getMessage() for record in caplog.records if record.name == "funcmcp.app"]
    assert "handler can't be started: " in line
    assert "name its interpreter in its first line" in line


async def test_a_port_that_another_program_listens_on_is_an_error(tmp_path: Path) -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        host = {**HOST, "customHandler": {**HOST["customHandler"], "port": server.sockets[0].getsockname()[1]}}
        with pytest.raises(LoadFailed, match="Another program listens on port"):
            async with hosted(write_app(tmp_path / "app", host)):
                pass


def test_a_program_of_an_app_without_a_custom_handler_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match=r"has no customHandler in host\.json"):
        read_program(read_app(write_app(tmp_path / "app", {"version": "2.0"}), {}))


async def test_a_program_of_node_is_served(tmp_path: Path) -> None:
    handler = {"description": {"defaultExecutablePath": "node", "arguments": ["server.js"]}}
    folder = write_app(tmp_path / "app", {"version": "2.0", "customHandler": handler}, {"Add": [tool("add")]})
    (folder / "server.js").write_text(NODE)
    async with hosted(folder, node=str(nodejs.node())) as host, client_of(host) as client:
        assert (await client.call_tool("add", {"a": 3}))["content"][0]["text"] == "3 3"


@_SLOW
def test_commands_of_the_client_and_stdio_serve_such_an_app(tmp_path: Path) -> None:
    result = funcmcp("call", str(write_app(tmp_path / "app")), "text")
    assert (result.returncode, result.stdout.strip()) == (0, "abcd")


def test_texts_in_an_answer_that_are_nested_too_deep_are_not_read() -> None:
    deep = "[" * 100_000
    assert _returned_response(Value("string", deep)) == Value("string", deep)
    with pytest.raises(FunctionFailed, match="must be an object with statusCode and body"):
        _named_response("res", deep)
