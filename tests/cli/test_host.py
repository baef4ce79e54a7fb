"""``funcmcp host``: a function app served to official clients, and how the command ends."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx2
import pytest
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from funcmcp._protocol.loopback import is_loopback
from funcmcp_cli import host as host_module
from funcmcp_cli.targets import function_app_in
from tests.cli.forking import funcmcp, running
from tests.cli.processes import FUNCMCP, PYTHON
from tests.functions_host.apps import KINDS, write_app
from tests.functions_host.test_custom_handler import ECHO, PROFILE
from tests.functions_host.workers.test_process import is_running
from tests.nodejs import node, package
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.processes import Running

_SLOW = pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")

KEY = "k" * 16
PROGRAM = Path(__file__).parents[1] / "functions_host" / "workers" / "rpc_program.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_app(tmp_path_factory.mktemp("app"), KINDS)


@pytest.fixture(scope="module")
def host(folder: Path) -> Iterator[tuple[Running, str]]:
    """Run the command; return the process and the URL of its endpoint."""
    with running([*FUNCMCP, "host", str(folder), "--port", "0", "--engine", "library"]) as process:
        yield process, process.endpoint()


@_SLOW
@pytest.mark.parametrize("as_text", [False, True])
def test_local_settings_name_the_port_unless_the_command_does(as_text: bool, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    content = {"Host": {"localHttpPort": str(port) if as_text else port}}
    write_app(tmp_path, KINDS)
    (tmp_path / "local.settings.json").write_text(json.dumps(content), encoding="utf-8")
    with running([*FUNCMCP, "host", str(tmp_path), "--engine", "library"]) as process:
        assert process.endpoint() == f"http://127.0.0.1:{port}/runtime/webhooks/mcp"
    with running([*FUNCMCP, "host", str(tmp_path), "--engine", "library", "--port", "0"]) as process:
        assert f":{port}/" not in process.endpoint()


@pytest.mark.parametrize("port", [70000, -1, "x", 1.5])
def test_a_port_in_local_settings_that_is_not_valid_is_named(port: Any, tmp_path: Path) -> None:
    write_app(tmp_path, KINDS)
    (tmp_path / "local.settings.json").write_text(json.dumps({"Host": {"LocalHttpPort": port}}), encoding="utf-8")
    ended = funcmcp("host", str(tmp_path))
    assert ended.returncode != 0
    assert ended.stderr == 'local.settings.json: "LocalHttpPort" must be a port, such as 7071.\n'


@pytest.mark.parametrize(
    ("option", "file", "variables", "expected"),
    [
        (1, 3, {"FUNCMCP_PORT": "2", "PORT": "4"}, (1, "")),
        (None, 3, {"FUNCMCP_PORT": "2", "PORT": "4"}, (2, "FUNCMCP_PORT")),
        (None, 3, {"PORT": "4"}, (3, "")),
        (None, None, {"PORT": "4"}, (4, "PORT")),
        (None, None, {}, (7071, "")),
    ],
)
def test_the_port_is_that_of_the_option_the_variable_the_file_or_the_platform(
    option: int | None,
    file: int | None,
    variables: dict[str, str],
    expected: tuple[int, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if file is not None:
        (tmp_path / "local.settings.json").write_text(json.dumps({"Host": {"LocalHttpPort": file}}), encoding="utf-8")
    for name, value in {"FUNCMCP_HOST": "0.0.0.0", **variables}.items():
        monkeypatch.setenv(name, value)
    address = host_module._address_of(tmp_path, None, option)
    assert (address.port, address.port_variable) == expected
    assert (address.host, address.host_variable) == ("0.0.0.0", "FUNCMCP_HOST")


def test_an_invalid_port_in_the_environment_is_one_line(tmp_path: Path) -> None:
    ended = funcmcp("host", str(tmp_path), env={"PORT": "abc"})
    assert (ended.returncode, ended.stderr) == (2, "PORT must be a port, a number from 0 to 65535; got 'abc'.\n")


async def check(read: Any, write: Any) -> None:
    async with ClientSession(read, write) as session:
        await session.initialize()
        assert "echo" in {tool.name for tool in (await session.list_tools()).tools}
        result = await session.call_tool("add", {"a": 40})
        assert result.content[0].model_dump(exclude_none=True) == {"type": "text", "text": "42"}
        resource = await session.read_resource("note://one")
        assert resource.contents[0].model_dump()["text"] == "# One"
        prompt = await session.get_prompt("review", {"code": "x"})
        assert prompt.messages[0].content.model_dump()["text"] == "Review: x"


async def test_the_official_python_client_over_each_transport(host: tuple[Running, str], folder: Path) -> None:
    url = host[1]
    assert url.endswith("/runtime/webhooks/mcp")
    async with streamable_http_client(url) as streams:
        await check(streams[0], streams[1])
    async with sse_client(f"{url}/sse") as streams:
        await check(*streams)
    command = StdioServerParameters(
        command=FUNCMCP[0], args=[*FUNCMCP[1:], "host", str(folder), "--stdio", "--engine", "library"]
    )
    async with stdio_client(command) as streams:
        await check(*streams)


TYPESCRIPT = """
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const client = new Client({ name: "c", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[2])));
const tools = (await client.listTools()).tools.map((tool) => tool.name);
const result = await client.callTool({ name: "rich", arguments: { kind: "structured" } });
const resource = await client.readResource({ uri: "note://raw" });
const templates = (await client.listResourceTemplates()).resourceTemplates;
const prompt = await client.getPrompt({ name: "chat" });
console.log(JSON.stringify({ tools, result, resource, templates, prompt }));
await client.close();
"""


@_SLOW
def test_the_official_typescript_client(host: tuple[Running, str], tmp_path: Path) -> None:
    modules = package("@modelcontextprotocol").parent
    script = modules / ".cache" / "functions_host_client.mjs"
    script.parent.mkdir(exist_ok=True)
    script.write_text(TYPESCRIPT)
    found = subprocess.run([node(), script, host[1]], capture_output=True, text=True, timeout=PATIENCE, check=True)
    answers = json.loads(found.stdout)
    assert "echo" in answers["tools"]
    assert answers["result"]["structuredContent"] == {"a": 1}
    assert answers["resource"]["contents"][0]["blob"] == "AP8="
    assert answers["templates"][0]["uriTemplate"] == "note://{user-id}/{name}"
    assert [message["role"] for message in answers["prompt"]["messages"]] == ["user", "assistant"]


def test_it_says_what_is_served_and_what_is_left_out(host: tuple[Running, str]) -> None:
    output = host[0].output
    assert "17 tools, 3 resources, 1 template, 2 prompts (Python 3" in output
    assert "tick is left out: Its trigger timerTrigger is not supported by funcmcp host." in output
    assert "malformed is left out: toolProperties is not valid JSON" in output


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_with_code_0_and_leaves_no_process(number: signal.Signals, folder: Path) -> None:
    with running([*FUNCMCP, "host", str(folder), "--port", "0", "--engine", "library"]) as process:
        url = process.endpoint()
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "where"}}
        answer = httpx2.post(url, json=call, headers={"accept": "*/*"}).json()
        pid = json.loads(answer["result"]["content"][0]["text"])[1]
        children = Path(f"/proc/{process.process.pid}/task/{process.process.pid}/children")
        assert [int(child) for child in children.read_text().split()] == [pid]  # one worker
        process.process.send_signal(number)
        assert process.ended() == 0
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@_SLOW
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_language_worker_ends_with_the_command(number: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "host.json").write_text("{}")
    worker = shlex.join([PYTHON, str(PROGRAM)])
    with running([*FUNCMCP, "host", str(tmp_path), "--port", "0", "--worker", worker]) as process:
        url = process.endpoint()
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "print"}}
        answer = httpx2.post(url, json=call, headers={"accept": "*/*"}).json()
        pid = int(answer["result"]["content"][0]["text"])
        assert is_running(pid)
        process.process.send_signal(number)
        assert process.ended() == (0 if number == signal.SIGTERM else -number)
        deadline = time.monotonic() + PATIENCE
        while is_running(pid) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not is_running(pid)


@_SLOW
def test_two_apps_run_on_one_machine(host: tuple[Running, str], folder: Path) -> None:
    with running([*FUNCMCP, "host", str(folder), "--port", "0", "--engine", "library"]) as process:
        assert process.endpoint() != host[1]


@_SLOW
@pytest.mark.parametrize(
    ("code", "options", "line"),
    [
        ("import nowhere_at_all", (), "The function app can't be loaded. function_app.py, line 1: ModuleNotFoundError"),
        ("", (), "has no FunctionApp at its top level"),
        (KINDS, ("--host", "0.0.0.0"), "Other machines can reach 0.0.0.0, so the app needs keys."),
        (KINDS, ("--python", "no-such-python"), "no-such-python can't be started"),
    ],
)
def test_what_goes_wrong_is_one_line(code: str, options: tuple[str, ...], line: str, tmp_path: Path) -> None:
    write_app(tmp_path, code)
    result = funcmcp("host", str(tmp_path), "--port", "0", "--engine", "library", *options)
    assert result.returncode == 1
    assert line in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("name", ["FUNCMCP_KEYS", "FUNCMCP_HOST_KEYS"])
def test_a_key_that_is_too_short_is_one_line(name: str, folder: Path) -> None:
    result = funcmcp("host", str(folder), "--port", "0", env={name: "default=short"})
    assert result.returncode == 1
    assert name in result.stderr
    assert "short" not in result.stderr
    assert "Traceback" not in result.stderr


def test_a_folder_without_an_app_is_one_line(tmp_path: Path) -> None:
    result = funcmcp("host", str(tmp_path))
    assert result.returncode == 1
    assert result.stderr.strip().endswith("has no host.json, so it is not a function app. Name the folder of the app.")


@_SLOW
def test_an_address_of_other_machines_needs_a_key(folder: Path) -> None:
    command = [*FUNCMCP, "host", str(folder), "--host", "0.0.0.0", "--port", "0", "--engine", "library"]
    with running(command, env={"FUNCMCP_HOST_KEYS": f"mcp_extension={KEY}"}) as process:
        url = process.endpoint()
        message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        assert httpx2.post(url, json=message).status_code == 401
        assert httpx2.post(f"{url}?code={KEY}", json=message).json() == {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert KEY not in process.output


GUARDED = """
import azure.functions as func

app = func.FunctionApp()


@app.mcp_tool()
def hello() -> str:
    return "hello"


@app.route(route="guarded", auth_level=func.AuthLevel.FUNCTION)
def guarded(req: func.HttpRequest) -> str:
    return "in"


@app.route(route="master", auth_level=func.AuthLevel.ADMIN)
def master(req: func.HttpRequest) -> str:
    return "in"


@app.route(route="public", auth_level=func.AuthLevel.ANONYMOUS)
def public(req: func.HttpRequest) -> str:
    return "in"
"""
ANONYMOUS = {"extensions": {"mcp": {"system": {"webhookAuthorizationLevel": "Anonymous"}}}}


@_SLOW
def test_an_endpoint_that_host_json_opens_leaves_the_levels_closed(tmp_path: Path) -> None:
    write_app(tmp_path, GUARDED, host=ANONYMOUS)
    command = [*FUNCMCP, "host", str(tmp_path), "--host", "0.0.0.0", "--port", "0", "--engine", "library"]
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    with running(command) as process:
        url = process.endpoint()
        assert httpx2.post(url, json=message).status_code == 200
        for path, status in (("guarded", 401), ("master", 401), ("public", 200)):
            assert httpx2.get(url.replace("/runtime/webhooks/mcp", f"/api/{path}")).status_code == status
        assert "The MCP endpoint is open to every machine that reaches 0.0.0.0" in process.output
        assert "open to every machine that reaches the app: public." in process.output
        assert "guarded (level function) answers every request with 401. Set FUNCMCP_HOST_KEYS=default=KEY." in (
            process.output
        )
        assert "master (level admin) answers every request with 401. Set FUNCMCP_HOST_KEYS=_master=KEY." in (
            process.output
        )
        addresses = re.findall(r"Other machines reach it at http://([\d.]+):(\d+)/runtime/webhooks/mcp", process.output)
        for address, port in addresses:  # none on a machine without a network
            assert not is_loopback(address)
            assert f":{port}/" in url


@_SLOW
def test_keys_count_although_host_json_opens_the_endpoint(tmp_path: Path) -> None:
    write_app(tmp_path, GUARDED, host=ANONYMOUS)
    command = [*FUNCMCP, "host", str(tmp_path), "--port", "0", "--engine", "library"]
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    with running(command, env={"FUNCMCP_HOST_KEYS": f"mcp_extension={KEY}"}) as process:
        url = process.endpoint()
        assert httpx2.post(url, json=message).status_code == 401
        assert httpx2.post(url, json=message, headers={"x-functions-key": KEY}).status_code == 200
        assert httpx2.get(url.replace("/runtime/webhooks/mcp", "/api/guarded")).status_code == 401
        assert "Other machines" not in process.output


def seen_headers(client: httpx2.Client, url: str, headers: dict[str, str]) -> dict[str, str]:
    """Return the headers of a call that a tool sees."""
    params = {"name": "echo", "arguments": {"name": "a"}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    result = client.post(url, json=call, headers={"accept": "*/*", **headers}).json()["result"]
    seen: dict[str, str] = json.loads(result["content"][0]["text"])["transport"]["properties"]["headers"]
    return seen


@_SLOW
def test_a_client_can_not_say_who_it_is(host: tuple[Running, str], folder: Path) -> None:
    forged = {"x-ms-client-principal-name": "admin", "X-MS-CLIENT-PRINCIPAL": "e30=", "x-ms-token-aad-id-token": "t"}
    with httpx2.Client() as client:  # one connection, on which a header is parsed once
        for _ in range(3):
            seen = seen_headers(client, host[1], {**forged, "x-custom": "1"})
            assert seen["X-Custom"] == "1"
            assert not [name for name in seen if name.startswith("X-MS-")]
        assert "X-MS-CLIENT-PRINCIPAL" not in seen_headers(client, f"{host[1]}?code=x", forged)
    command = [*FUNCMCP, "host", str(folder), "--port", "0", "--engine", "library", "--trust-proxy"]
    with running(command) as process, httpx2.Client() as client:
        assert seen_headers(client, process.endpoint(), forged)["X-MS-CLIENT-PRINCIPAL-NAME"] == "admin"


@_SLOW
def test_a_client_that_starts_the_app_itself_needs_no_key(tmp_path: Path) -> None:
    write_app(tmp_path, GUARDED)
    result = funcmcp("call", str(tmp_path), "hello", env={"FUNCMCP_HOST_KEYS": f"mcp_extension={KEY}"})
    assert (result.returncode, result.stdout.strip(), result.stderr) == (0, "hello", "")


RESPONSES = """
import azure.functions as func

app = func.FunctionApp(http_auth_level=func.AuthLevel.ANONYMOUS)
HEADERS = [("x-a", "b\\r\\nx-evil: 1"), ("x a", "b"), ("x-a", "\\u0142"), ("x-a", "b\\0"), ("", "b")]


@app.route(route="status/{value}")
def status(req: func.HttpRequest) -> func.HttpResponse:
    return func.HttpResponse("a body", status_code=eval(req.route_params["value"]))


@app.route(route="header/{index:int}")
def header(req: func.HttpRequest) -> func.HttpResponse:
    name, value = HEADERS[int(req.route_params["index"])]
    return func.HttpResponse("a body", headers={name: value})


async def asgi(scope, receive, send):
    await send({"type": "http.response.start", "status": int(scope["path"].rpartition("/")[2]), "headers": []})
    await send({"type": "http.response.body", "body": b"a body"})


@app.route(route="asgi/{value}")
async def through_asgi(req: func.HttpRequest) -> func.HttpResponse:
    return await func.AsgiMiddleware(asgi).handle_async(req)
"""


@pytest.fixture(scope="module")
def responses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, int]]:
    """Run an app whose functions answer with any status; return the process and its port."""
    folder = write_app(tmp_path_factory.mktemp("responses"), RESPONSES)
    with running([*FUNCMCP, "host", str(folder), "--port", "0", "--engine", "library"]) as process:
        yield process, int(process.endpoint().split(":")[2].partition("/")[0])


def answers_of(port: int, method: str, path: str) -> bytes:
    """Return what is sent for a request and for a second one behind it on the same connection."""
    lines = f"{method} /api/{path} HTTP/1.1\r\nHost: localhost\r\n\r\n"
    lines += "GET /api/status/201 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        connection.sendall(lines.encode())
        return b"".join(iter(lambda: connection.recv(65536), b""))


FAILED = b'{"jsonrpc":"2.0","error":{"code":-32603,"message":"The function failed."}}'


@pytest.mark.parametrize(
    ("method", "path", "status", "body"),
    [
        *(("GET", f"status/{value}", 500, FAILED) for value in (100, 101, 103, 199, 0, -1, 600, 99999, 10**30)),
        *(("GET", f"status/{value}", 500, FAILED) for value in ("True", "200.5", "'abc'", "'٢٠٠x'")),
        *(("GET", f"asgi/{value}", 500, FAILED) for value in (100, 99999)),
        *(("GET", f"header/{index}", 500, FAILED) for index in range(5)),
        ("GET", "status/599", 599, b"a body"),
        ("GET", "status/None", 200, b"a body"),  # the library's default
        ("GET", "status/204", 204, b""),
        ("GET", "status/205", 205, b""),
        ("GET", "status/304", 304, b""),
        ("GET", "asgi/204", 204, b""),
        ("HEAD", "status/200", 200, b""),
        ("HEAD", "status/204", 204, b""),
        ("HEAD", "status/100", 500, b""),
    ],
)
def test_each_response_can_be_sent_and_the_connection_goes_on(
    responses: tuple[Running, int], method: str, path: str, status: int, body: bytes
) -> None:
    process, port = responses
    first, separator, second = answers_of(port, method, quote(path)).partition(b"HTTP/1.1 201 Created\r\n")
    head, _, content = first.partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ".encode())
    assert content == body
    assert separator
    assert second.endswith(b"\r\n\r\na body")
    if status == 500:
        name = path.partition("/")[0].replace("asgi", "through_asgi")
        process.line_with(f"The function {name} failed. ")
        assert "Traceback" not in process.output


@_SLOW
def test_the_commands_of_clients_take_the_folder_of_a_function_app(folder: Path) -> None:
    inspected = funcmcp("inspect", str(folder), "--json")
    assert inspected.returncode == 0
    facts = json.loads(inspected.stdout)
    assert "echo" in {tool["name"] for tool in facts["tools"]}
    assert "tick is left out: Its trigger timerTrigger is not supported by funcmcp host." in inspected.stderr
    assert funcmcp("call", str(folder), "add", "a=40").stdout.strip() == "42"
    assert funcmcp("read", str(folder), "note://one").stdout.strip() == "# One"
    assert "Review: x" in funcmcp("prompt", str(folder), "review", "code=x").stdout
    failed = funcmcp("call", str(folder), "nosuch")
    assert failed.returncode == 1
    assert "The server has no tool 'nosuch'" in failed.stderr


SCHEMAS = """
import json

import azure.functions as func

app = func.FunctionApp()
SCHEMA = '{"type": "object", "properties": {"b": {"type": "integer"}}, "required": ["b"]}'
OPTIONS = {"arg_name": "context", "description": "d", "tool_properties": "[]", "output_schema": SCHEMA}


@app.mcp_tool_trigger(tool_name="text", **OPTIONS)
def text(context) -> str:
    return '{"b": 1}'


@app.mcp_tool_trigger(tool_name="wrong", use_result_schema=True, **OPTIONS)
def wrong(context) -> str:
    block = json.dumps({"type": "text", "text": "x"})
    return json.dumps({"type": "text", "content": block, "structuredContent": '{"b": "x"}'})
"""


@_SLOW
def test_inspect_names_results_that_clients_refuse_because_of_an_output_schema(tmp_path: Path) -> None:
    folder = write_app(tmp_path / "app", SCHEMAS)
    inspected = funcmcp("inspect", str(folder), "--clients", "--json")
    assert inspected.returncode == 1
    problems = [problem for problem in json.loads(inspected.stdout)["problems"] if problem["loss"] != "detail"]
    assert [(problem["key"], problem["rule"]) for problem in problems] == [("text", "unstructured-result")]
    calls = tmp_path / "calls.json"
    calls.write_text('[{"tool": "wrong"}]')
    shown = funcmcp("inspect", str(folder), "--clients", "--calls", str(calls))
    assert "tool text\n    - outputSchema, and useResultSchema is not set" in shown.stdout
    assert "tool wrong\n    - structuredContent b must be an integer, not a string" in shown.stdout


@_SLOW
def test_a_command_of_a_client_does_not_warn_of_pages_that_cannot_reach_it(tmp_path: Path) -> None:
    folder = write_app(tmp_path / "app", KINDS)
    settings = json.loads((folder / "local.settings.json").read_text())
    (folder / "local.settings.json").write_text(json.dumps({**settings, "Host": {"CORS": "*"}}))
    assert "CORS" not in funcmcp("inspect", str(folder)).stderr


def test_a_function_app_of_funcmcp_is_loaded_as_a_server() -> None:
    assert function_app_in("samples/azure/own_endpoint") is None
    assert function_app_in("samples/azure/mcp_triggers") is not None
    assert function_app_in("samples/azure/mcp_triggers_node") is not None
    assert function_app_in("samples/orders") is None


HTTP_ONLY = """
import azure.functions as func

app = func.FunctionApp()


@app.route("mcp", methods=["POST", "GET"], auth_level="anonymous")
def mcp(req: func.HttpRequest) -> str:
    return ""


@app.route("files/{*rest}", auth_level="function")
def files(req: func.HttpRequest) -> str:
    return ""
"""
OUTPUT = """
import azure.functions as func

app = func.FunctionApp()


@app.mcp_tool_trigger(arg_name="context", tool_name="out", description="d", output_schema='{"type": "object"}')
def out(context) -> str:
    return ""
"""


@_SLOW
def test_an_app_with_http_triggers_only_names_their_urls(tmp_path: Path) -> None:
    folder = write_app(tmp_path, HTTP_ONLY)
    with running([*FUNCMCP, "host", str(folder), "--port", "0", "--engine", "library"]) as process:
        line = process.line_with("/api/files/{*rest}").rstrip()
        origin = line.partition("HTTP trigger: ")[2].partition("/api")[0]
        assert line.endswith("/api/files/{*rest} (all methods)")
        assert f"HTTP trigger: {origin}/api/mcp (POST, GET)" in "\n".join(process.lines)
        assert "warning access: needs no key (mcp: anonymous)." in "\n".join(process.lines)
        assert not [line for line in process.lines if "/runtime/webhooks/mcp" in line]


@_SLOW
def test_the_app_that_azure_yaml_deploys_is_served(tmp_path: Path) -> None:
    (tmp_path / "api").mkdir()
    write_app(tmp_path / "api", HTTP_ONLY)
    (tmp_path / "azure.yaml").write_text("services:\n  api:\n    project: ./api\n    host: function\n")
    with running([*FUNCMCP, "host", str(tmp_path), "--port", "0", "--engine", "library"]) as process:
        assert process.line_with("api is served at")
    (tmp_path / "azure.yaml").unlink()
    result = funcmcp("host", str(tmp_path), "--port", "0")
    assert result.returncode == 1
    assert "has no host.json. Its function app is in api. Name the folder of the app." in result.stderr


@_SLOW
def test_inspect_names_output_schemas_without_results(tmp_path: Path) -> None:
    result = funcmcp("inspect", str(write_app(tmp_path, OUTPUT)), "--clients")
    assert "warning out: has an outputSchema, but without useResultSchema its results" in result.stderr


@_SLOW
@pytest.mark.parametrize("is_handler", [False, True])
def test_an_address_in_use_is_named(is_handler: bool, tmp_path: Path) -> None:
    if is_handler:
        (tmp_path / "host.json").write_text(json.dumps(PROFILE))
        (tmp_path / "server.py").write_text(ECHO)
    else:
        write_app(tmp_path, KINDS)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        completed = funcmcp("host", str(tmp_path), "--port", str(port))
    assert completed.returncode == 1
    text = f"Can't listen on 127.0.0.1:{port}: it is in use by another program. Choose another address"
    assert text in completed.stderr
    assert "Traceback" not in completed.stderr
