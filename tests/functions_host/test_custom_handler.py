"""Custom handlers: programs of an app that answer HTTP requests, behind the functions host."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
import uuid
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from funcmcp._client.http_messages import MemoryRequest
from funcmcp.client import Client
from funcmcp_host.app_rules.model import read_app
from funcmcp_host.custom_handler import CustomHandlerHost, read_custom_handler
from funcmcp_host.folder import FolderError
from funcmcp_host.served import HostSettings
from funcmcp_host.workers.worker import LoadFailed
from tests import nodejs
from tests.cli.forking import funcmcp, running
from tests.cli.processes import FUNCMCP, Running
from tests.functions_host.test_served import Post
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from funcmcp._transports.http.messages import HttpResponse

_SLOW = pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")

SERVER = '''
import asyncio
import os

from funcmcp import MCPServer, Context

mcp = MCPServer("Handled", sessions="memory")


@mcp.tool
async def count(n: int, context: Context) -> int:
    """Count, and report each step."""
    for number in range(n):
        await context.report_progress(number, n)
    return os.getpid()


if __name__ == "__main__":
    mcp.run("http", port=int(os.environ["FUNCTIONS_CUSTOMHANDLER_PORT"]))
'''
ECHO = """
import json
import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
        if "hang" in self.path:
            with open("begun", "a") as file:
                file.write("x")
            time.sleep(600)
        headers = {name.lower(): text for name, text in self.headers.items()}
        answer = {"path": self.path, "headers": headers, "size": len(body), "pid": os.getpid(), "version": 1}
        answer = json.dumps(answer)
        self.send_response(201)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.send_header("x-own", "1")
        self.end_headers()
        self.wfile.write(answer.encode())

    do_GET = do_POST

    def log_message(self, *arguments):
        pass


ThreadingHTTPServer.request_queue_size = 128
ThreadingHTTPServer(("127.0.0.1", int(os.environ["FUNCTIONS_CUSTOMHANDLER_PORT"])), Handler).serve_forever()
"""
DESCRIPTION = {"defaultExecutablePath": "python", "arguments": ["server.py"]}
PROFILE: dict[str, Any] = {
    "version": "2.0",
    "ConfigurationProfile": "MCP-custom-handler",
    "customHandler": {"Description": DESCRIPTION, "http": {"DefaultAuthorizationLevel": "anonymous"}},
}
PROXYING: dict[str, Any] = {
    "version": "2.0",
    "extensions": {"http": {"routePrefix": ""}},
    "customHandler": {"description": DESCRIPTION, "enableProxyingHttpRequest": True},
}


def app(folder: Path, host: dict[str, Any], code: str, **levels: str) -> Path:
    """Write an app. Levels are those of HTTP triggers, by the name of the function, which is its route."""
    folder.mkdir(exist_ok=True)
    (folder / "host.json").write_text(json.dumps(host))
    (folder / "server.py").write_text(code)
    for name, level in levels.items():
        (folder / name).mkdir()
        route = f"{name}/{{*path}}"
        binding = {"type": "httpTrigger", "direction": "in", "name": "req", "authLevel": level, "route": route}
        (folder / name / "function.json").write_text(json.dumps({"bindings": [binding]}))
    return folder


@asynccontextmanager
async def hosted(folder: Path, settings: HostSettings | None = None, **env: str) -> AsyncIterator[CustomHandlerHost]:
    host = CustomHandlerHost(folder, {**os.environ, **env}, settings or HostSettings())
    try:
        await host.start()
        yield host
    finally:
        await host.aclose()


async def answer(served: CustomHandlerHost, path: str, query: str = "", **headers: str) -> tuple[HttpResponse, Any]:
    """Return the response to a POST, and its JSON."""
    request = Post({"a": 1}, path, query, **headers)
    response = await served.exchange(request)
    body = response.body if isinstance(response.body, bytes) else b"".join([part async for part in response.body])
    return response, json.loads(body)


@_SLOW
@pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28"])
def test_a_server_behind_the_profile_is_listed_and_called_with_its_streams(revision: str, tmp_path: Path) -> None:
    folder = app(tmp_path / "app", PROFILE, SERVER)
    with running([*FUNCMCP, "host", str(folder), "--port", "0", "--python", sys.executable]) as process:
        origin = origin_of(process)

        async def use() -> tuple[list[str], list[float]]:
            seen: list[float] = []
            async with Client(f"{origin}/mcp", revision=revision) as client:
                tools = [tool["name"] for tool in await client.list_tools()]
                await client.call_tool("count", {"n": 3}, on_progress=lambda update: seen.append(update.progress))
            return tools, seen

        assert asyncio.run(use()) == (["count"], [0, 1, 2])


async def test_requests_are_handed_on_without_keys_and_headers_of_the_front_end(tmp_path: Path) -> None:
    folder = app(tmp_path / "app", PROXYING, ECHO, open="anonymous", locked="function")
    keys = {"FUNCMCP_HOST_KEYS": f"default={'k' * 16}"}
    async with hosted(folder, None, **keys) as host:
        response, seen = await answer(host, "/open/a b", "x=1", **{"x-ms-client-principal": "forged", "x-custom": "1"})
        assert (response.status, seen["path"], seen["size"]) == (201, "/open/a%20b?x=1", 8)
        assert ("x-own", "1") in response.headers
        assert seen["headers"]["x-custom"] == "1"
        assert seen["headers"]["x-forwarded-host"] == "localhost:7071"
        assert uuid.UUID(seen["headers"]["x-azure-functions-invocationid"])
        assert seen["headers"]["host"].startswith("127.0.0.1:")
        assert "x-ms-client-principal" not in seen["headers"]
        refused, _ = await answer(host, "/locked/a")
        assert refused.status == 401
        for query, headers in ((f"code={'k' * 16}&y=2", {}), ("y=2", {"x-functions-key": "k" * 16})):
            response, seen = await answer(host, "/locked/a", query, **headers)
            assert (response.status, seen["path"]) == (201, "/locked/a?y=2")
            assert "x-functions-key" not in seen["headers"]
        missing, _ = await answer(host, "/other")
        assert missing.status == 404
        request = Post({}, "/")
        request.method = "GET"
        home = await host.exchange(request)
        assert (home.status, dict(home.headers)["content-type"]) == (200, "text/html; charset=utf-8")
        other_name, _ = await answer(host, "/open/a", host="attacker.example")
        assert other_name.status == 421
        cross_site, _ = await answer(host, "/open/a", **{"sec-fetch-site": "cross-site"})
        assert cross_site.status == 403
        other_origin, _ = await answer(host, "/open/a", origin="https://attacker.example")
        assert other_origin.status == 403


class Sent(Post):
    """A POST with the path as a client has sent it."""

    @property
    def raw_path(self) -> str:
        return self.path


async def test_no_path_passes_the_key_of_another_route(tmp_path: Path) -> None:
    folder = app(tmp_path / "app", PROXYING, ECHO, open="anonymous", adm="admin")
    keys = {"FUNCMCP_HOST_KEYS": f"default={'k' * 16},_master={'m' * 16}"}
    async with hosted(folder, None, **keys) as host:

        async def status(path: str, query: str = "") -> tuple[int, str]:
            response = await host.exchange(Sent({}, path, query))
            body = (
                response.body if isinstance(response.body, bytes) else b"".join([part async for part in response.body])
            )
            return response.status, json.loads(body).get("path", "")

        for closed in ("../adm", "%2e%2e/adm", "x/../../adm", "x/%2E./.%2e/adm", "./../adm/", "../ADM", "../%61dm"):
            assert await status(f"/open/{closed}") == (401, "")
        for rejected in ("..%2fadm", "..%5cadm", "..;/adm", "x%2f..%2f..%2fadm", "%00/../../adm"):
            assert await status(f"/open/{rejected}") == (400, "")
        for missing in ("/open//../../adm/../x", "//adm", "/open//adm"):
            assert await status(missing) == (404, "")
        assert await status("/adm/../open/%2e%2e%20a%2Fb;c", "code=%2e&x=/../y") == (
            201,
            "/open/..%20a%252Fb;c?code=%2e&x=/../y",
        )
        assert await status("/open/a/../%252e%252e/b%ff") == (201, "/open/%252e%252e/b%25ff")
        assert await status("/adm/../adm/x", f"code={'m' * 16}&CODE={'m' * 16}&y=1") == (201, "/adm/x?y=1")


@_SLOW
async def test_paths_of_the_host_reach_no_custom_handler_and_shadowed_functions_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = app(tmp_path / "app", PROXYING, ECHO, a="anonymous", b="anonymous")
    for name, route in (("a", "{*rest}"), ("b", "b")):
        binding = {"type": "httpTrigger", "direction": "in", "name": "req", "authLevel": "anonymous", "route": route}
        (folder / name / "function.json").write_text(json.dumps({"bindings": [binding]}))
    paths = ("/x", "/admin/x", "/Admin", "//x")
    for content in (PROXYING, PROFILE):
        (folder / "host.json").write_text(json.dumps(content))
        async with hosted(folder) as host:
            assert [(await answer(host, path))[0].status for path in paths] == [201, 404, 404, 404]
    assert "The function a ({*rest}) gets the requests of the function b (b)" in caplog.text


@pytest.mark.parametrize("route", ["a/{b", "a/{b:foo}", "admin/x"])
def test_a_route_that_azure_rejects_is_an_error_of_its_file(route: str, tmp_path: Path) -> None:
    folder = app(tmp_path / "app", PROXYING, ECHO, a="anonymous")
    binding = {"type": "httpTrigger", "direction": "in", "name": "req", "route": route}
    (folder / "a" / "function.json").write_text(json.dumps({"bindings": [binding]}))
    with pytest.raises(FolderError, match=r"a/function\.json: The route"):
        read_custom_handler(read_app(folder, {}))


@pytest.mark.parametrize("profile", [{}, {"configurationProfile": "mcp-custom-handler"}])
async def test_routes_of_host_json_need_the_key_of_the_most_literal_one(
    profile: dict[str, str], tmp_path: Path
) -> None:
    routes = [{"route": "{*route}"}, {"route": "admin2/{*route}", "AuthorizationLevel": "admin"}]
    http = {"defaultAuthorizationLevel": "anonymous", "routes": routes}
    handler = {"description": DESCRIPTION, "http": http, "enableProxyingHttpRequest": not profile}
    content = {"version": "2.0", "customHandler": handler, **profile}
    folder = app(tmp_path / "app", content, ECHO)
    prefix = "" if profile else "/api"
    keys = "default=defaultdefault16,_master=mastermaster1616"
    async with hosted(folder, HostSettings(host="0.0.0.0"), FUNCMCP_HOST_KEYS=keys) as host:
        paths = [f"{prefix}/mcp", f"{prefix}/admin2/a", f"{prefix}/ADMIN2/a", f"{prefix}/x/../admin2/a"]
        assert [(await answer(host, path))[0].status for path in paths] == [201, 401, 401, 401]
        if prefix:
            assert (await answer(host, "/mcp"))[0].status == 404


@pytest.mark.parametrize("routes", [[{"route": "a/{b"}], [{"route": "a"}, {"route": "A"}]])
def test_routes_of_host_json_that_azure_rejects_are_an_error(routes: list[Any], tmp_path: Path) -> None:
    handler = {"description": DESCRIPTION, "enableForwardingHttpRequest": True, "http": {"routes": routes}}
    host = {"version": "2.0", "customHandler": handler}
    with pytest.raises(FolderError, match=r"host\.json: customHandler\.http\.routes: "):
        read_custom_handler(read_app(app(tmp_path / "app", host, ECHO), {}))


async def test_a_program_that_refuses_connections_is_tried_ten_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    delays: list[float] = []

    async def sleep(seconds: float) -> None:
        delays.append(seconds)

    async with hosted(app(tmp_path / "app", PROXYING, ECHO, open="anonymous")) as host:
        with socket.create_server(("127.0.0.1", 0)) as unused:
            port = unused.getsockname()[1]
        monkeypatch.setattr(host, "_url", f"http://127.0.0.1:{port}")
        with monkeypatch.context() as patched:
            patched.setattr("funcmcp_host.custom_handler._sleep", sleep)
            response, error = await answer(host, "/open/a")
    assert response.status == 502
    assert error["error"]["message"].startswith("The custom handler runs and refuses connections.")
    assert delays == [0.05, 0.1, 0.2, *[0.25] * 6]
    assert "The custom handler refuses connections. POST was not answered." in caplog.text


async def test_a_length_beside_transfer_encoding_is_dropped(tmp_path: Path) -> None:
    code = ECHO.replace(
        "self.end_headers()\n        self.wfile.write(answer.encode())",
        'self.send_header("transfer-encoding", "chunked"); self.end_headers()\n'
        '        self.wfile.write(b"%x\\r\\n%b\\r\\n0\\r\\n\\r\\n" % (len(answer), answer.encode()))',
    ).replace("str(len(answer))", '"3"')
    async with hosted(app(tmp_path / "app", PROXYING, code, open="anonymous")) as host:
        response, seen = await answer(host, "/open/a")
    assert (response.status, seen["path"]) == (201, "/open/a")
    assert {"content-length", "transfer-encoding"}.isdisjoint(dict(response.headers))


async def test_a_route_has_the_methods_of_its_trigger(tmp_path: Path) -> None:
    folder = app(tmp_path / "app", PROXYING, ECHO, open="anonymous")
    file = folder / "open" / "function.json"
    content = json.loads(file.read_text())
    content["bindings"][0]["methods"] = ["put", "post"]
    file.write_text(json.dumps(content))
    async with hosted(folder) as host:
        request = Post({}, "/open/a")
        request.method = "DELETE"
        refused = await host.exchange(request)
        assert (refused.status, dict(refused.headers)["allow"]) == (405, "PUT, POST")
        response, _ = await answer(host, "/open/a")
        assert response.status == 201


async def test_the_host_is_ready_while_the_program_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def probe(path: str) -> int:
        return (await host.exchange(MemoryRequest("GET", path, [(b"host", b"10.0.0.7")], b""))).status

    host = CustomHandlerHost(app(tmp_path / "app", PROXYING, ECHO, open="anonymous"), os.environ, HostSettings())
    assert (await probe("/livez"), await probe("/readyz")) == (200, 503)
    await host.aclose()
    async with hosted(tmp_path / "app") as host:
        assert await probe("/readyz") == 200
        monkeypatch.setenv("FUNCMCP_HEALTH", "off")
        assert await probe("/readyz") == 421
        monkeypatch.delenv("FUNCMCP_HEALTH")
        host.drain()
        assert (await probe("/livez"), await probe("/readyz")) == (200, 503)


async def test_requests_that_have_not_begun_wait_for_the_next_process(tmp_path: Path) -> None:
    async with hosted(app(tmp_path / "app", PROXYING, ECHO, open="anonymous")) as host:
        _, first = await answer(host, "/open/a")
        os.kill(first["pid"], signal.SIGKILL)
        await asyncio.to_thread(wait_for_end, first["pid"])
        answers = await asyncio.gather(*(answer(host, "/open/a") for _ in range(30)))
        assert {response.status for response, _ in answers} == {201}
        assert first["pid"] not in {seen["pid"] for _, seen in answers}


@_SLOW
async def test_a_request_that_has_begun_is_an_error_and_is_not_repeated(tmp_path: Path) -> None:
    folder = app(tmp_path / "app", PROXYING, ECHO, open="anonymous")
    async with hosted(folder) as host:
        _, first = await answer(host, "/open/a")
        hanging = asyncio.create_task(answer(host, "/open/hang"))
        await asyncio.to_thread(wait_for_file, folder / "begun")
        os.kill(first["pid"], signal.SIGKILL)
        response, error = await hanging
        assert response.status == 502
        assert "may have had an effect" in error["error"]["message"]
        assert (await answer(host, "/open/a"))[0].status == 201
        assert (folder / "begun").read_text() == "x"


@_SLOW
async def test_a_program_that_does_not_answer_is_started_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = app(tmp_path / "app", PROXYING, ECHO, open="anonymous")
    async with hosted(folder, HostSettings(timeout=0.5)) as host:
        _, first = await answer(host, "/open/a")
        response, error = await answer(host, "/open/hang")
        assert response.status == 504
        assert error["error"]["message"].startswith("The custom handler did not answer in time. It is started again.")
        response, second = await answer(host, "/open/a")
        assert (response.status, second["pid"] == first["pid"]) == (201, False)
        assert (folder / "begun").read_text() == "x"
    assert "The custom handler did not answer POST in 0.5 s. It is ended." in caplog.text


@pytest.mark.parametrize(
    "line", ["self.send_response(999)", 'self.send_response(200); self.send_header("x", "a\\x01b")']
)
async def test_a_response_that_cannot_be_sent_is_an_error(
    line: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    code = ECHO.replace("self.send_response(201)", line)
    async with hosted(app(tmp_path / "app", PROXYING, code, open="anonymous")) as host:
        for _ in range(2):
            response, error = await answer(host, "/open/a")
            assert response.status == 502
            assert "a status or header that can't be sent" in error["error"]["message"]
    assert "The response of the custom handler can't be sent: " in caplog.text


@_SLOW
async def test_a_changed_file_starts_the_program_again(tmp_path: Path) -> None:
    folder = app(tmp_path / "app", PROXYING, ECHO, open="anonymous")
    async with hosted(folder, HostSettings(reload=True)) as host:
        seen: Any = {"version": 1}
        async with asyncio.timeout(PATIENCE):
            while seen["version"] == 1:
                (folder / "server.py").write_text(ECHO.replace('"version": 1', '"version": 2'))
                await asyncio.sleep(0.5)
                _, seen = await answer(host, "/open/a")
        assert seen["version"] == 2


async def test_the_program_ends_with_the_host(tmp_path: Path) -> None:
    async with hosted(app(tmp_path / "app", PROXYING, ECHO, open="anonymous")) as host:
        _, seen = await answer(host, "/open/a")
    await asyncio.to_thread(wait_for_end, seen["pid"])


@pytest.mark.parametrize(
    ("code", "program", "reason"),
    [
        ("raise SystemExit(3)", "python", r"ended before it listened on port \d+ \(exit code 3\)"),
        ("", "no-such-program", "no-such-program can't be started: No such file"),
    ],
)
async def test_a_program_that_does_not_start_is_an_error(code: str, program: str, reason: str, tmp_path: Path) -> None:
    host = {**PROFILE, "customHandler": {"description": {**DESCRIPTION, "defaultExecutablePath": program}}}
    with pytest.raises(LoadFailed, match=reason):
        async with hosted(app(tmp_path / "app", host, code)):
            pass


SLOW = """
import os
import time

with open("starts", "a") as file:
    file.write("x")
{before}
exec(open("echo.py").read())
"""


def slow_app(folder: Path, before: str, timeout: str = "00:00:01") -> Path:
    """Write an app whose program does something before it listens."""
    handler = {**PROXYING["customHandler"], "initializationTimeout": timeout}
    app(folder, {**PROXYING, "customHandler": handler}, SLOW.format(before=before), open="anonymous")
    (folder / "echo.py").write_text(ECHO)
    return folder


@_SLOW
async def test_the_time_until_a_program_listens_is_that_of_host_json(tmp_path: Path) -> None:
    folder = slow_app(tmp_path / "app", "time.sleep(600)")
    reason = r"The custom handler 'python server\.py' does not listen on 127\.0\.0\.1:\d+ after 1 s\. .*initializationT"
    with pytest.raises(LoadFailed, match=reason):
        async with hosted(folder):
            pass


@_SLOW
async def test_a_program_that_starts_too_slowly_after_a_crash_gets_more_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = slow_app(tmp_path / "app", "if open('starts').read() != 'x': time.sleep(0.3)", "00:10:00")
    async with hosted(folder) as host:
        _, first = await answer(host, "/open/a")
        monkeypatch.setattr(host, "_start_seconds", 0.2)
        os.kill(first["pid"], signal.SIGKILL)
        await asyncio.to_thread(wait_for_end, first["pid"])
        response, _ = await answer(host, "/open/a")
        assert response.status == 201
    assert len((folder / "starts").read_text()) > 2
    assert "after 0.2 s. It is ended." in caplog.text


async def test_a_request_that_waits_for_the_program_is_answered_when_the_host_stops(tmp_path: Path) -> None:
    folder = slow_app(tmp_path / "app", "if open('starts').read() != 'x': time.sleep(600)", "00:10:00")
    async with hosted(folder) as host:
        _, first = await answer(host, "/open/a")
        os.kill(first["pid"], signal.SIGKILL)
        await asyncio.to_thread(wait_for_end, first["pid"])
        waiting = asyncio.create_task(answer(host, "/open/a"))
        await asyncio.to_thread(wait_for_start, folder, 2)
        assert not waiting.done()
        host.drain()
        response, error = await waiting
    assert (response.status, dict(response.headers)["retry-after"]) == (503, "5")
    assert error["error"]["message"].startswith("The server is stopping")


@_SLOW
def test_sigterm_during_the_first_start_ends_the_program_with_the_host(tmp_path: Path) -> None:
    folder = slow_app(tmp_path / "app", "open('pid', 'w').write(str(os.getpid())); time.sleep(600)", "00:10:00")
    with running([*FUNCMCP, "host", str(folder), "--port", "0", "--python", sys.executable]) as process:
        wait_for_file(folder / "pid")
        process.process.send_signal(signal.SIGTERM)
        assert process.process.wait(PATIENCE) == 0
        assert process_state(int((folder / "pid").read_text())) in {"", "Z"}


async def test_a_port_that_another_program_listens_on_is_an_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        host = {**PROFILE, "customHandler": {"description": DESCRIPTION, "port": str(port)}}
        with pytest.raises(LoadFailed, match=f"Another program listens on port {port}"):
            async with hosted(app(tmp_path / "app", host, ECHO)):
                pass


@pytest.mark.parametrize(
    ("handler", "reason"),
    [
        ({}, "customHandler has no description.defaultExecutablePath"),
        ({"description": DESCRIPTION}, "customHandler does not receive the requests"),
        (
            {"description": DESCRIPTION, "enableForwardingHttpRequest": True},
            "function.json is missing: without an HTTP",
        ),
        ({"description": DESCRIPTION, "port": "x"}, "customHandler.port is 'x', which is not the number"),
        ({"description": DESCRIPTION, "port": 65536}, "customHandler.port is 65536, which is not the number of a port"),
        ({"description": DESCRIPTION, "port": "9" * 5000}, "customHandler.port is '9999"),
        ({"description": DESCRIPTION, "initializationTimeout": "90"}, "initializationTimeout is '90'. Write it as"),
        ({"description": DESCRIPTION, "initializationTimeout": "00:00:00"}, "initializationTimeout is '00:00:00'"),
    ],
)
def test_what_is_wrong_with_host_json_is_said(handler: dict[str, Any], reason: str, tmp_path: Path) -> None:
    folder = app(tmp_path / "app", {"version": "2.0", "customHandler": handler}, "")
    with pytest.raises(FolderError, match=reason):
        read_custom_handler(read_app(folder, {}))
    result = funcmcp("host", str(folder), "--port", "0")
    assert result.returncode != 0
    assert "Traceback" not in result.stderr


@_SLOW
def test_other_machines_need_keys_unless_every_route_is_anonymous(tmp_path: Path) -> None:
    locked = {**PROFILE, "customHandler": {"description": DESCRIPTION}}
    result = funcmcp("host", str(app(tmp_path / "app", locked, ECHO)), "--host", "0.0.0.0", "--port", "0")
    assert "so it needs keys. Set FUNCMCP_HOST_KEYS=default=KEY" in result.stderr
    assert "served over HTTP only" in funcmcp("host", str(tmp_path / "app"), "--stdio").stderr


@_SLOW
def test_a_new_project_that_hosts_itself_is_served(tmp_path: Path) -> None:
    created = funcmcp("new", "desk", "--hosting", "self-hosted", folder=tmp_path)
    assert created.returncode == 0, created.stderr
    host = json.loads((tmp_path / "desk" / "host.json").read_text())
    del host["customHandler"]["port"]  # of this machine, where other tests run
    (tmp_path / "desk" / "host.json").write_text(json.dumps(host))
    with running([*FUNCMCP, "host", "desk", "--port", "0"], folder=tmp_path) as process:
        result = funcmcp("inspect", f"{origin_of(process)}/mcp", "--json")
        assert json.loads(result.stdout)["tools"], result.stderr


async def test_a_handler_that_is_open_to_other_machines_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = HostSettings(host="0.0.0.0")
    async with hosted(app(tmp_path / "app", PROXYING, ECHO, open="anonymous"), settings):
        assert "The custom handler is open to every machine that reaches 0.0.0.0." in caplog.text


@_SLOW
def test_a_program_of_node_is_served(tmp_path: Path) -> None:
    code = "const http = require('http');\n"
    code += (
        "http.createServer((req, res) => res.end('node ' + req.url)).listen(process.env.FUNCTIONS_CUSTOMHANDLER_PORT);"
    )
    host = {
        **PROFILE,
        "customHandler": {
            "description": {"defaultExecutablePath": "node", "arguments": ["server.js"]},
            "http": {"defaultAuthorizationLevel": "anonymous"},
        },
    }
    folder = app(tmp_path / "app", host, "")
    (folder / "server.js").write_text(code)
    with running([*FUNCMCP, "host", str(folder), "--port", "0", "--node", str(nodejs.node())]) as process:
        origin = origin_of(process)
        assert httpx2.get(f"{origin}/mcp?a=1").text == "node /mcp?a=1"


def origin_of(process: Running) -> str:
    return process.line_with("is served at").partition("is served at ")[2].split()[0]


def wait_for_end(pid: int) -> None:
    while (state := process_state(pid)) not in {"", "Z"}:
        assert state


def process_state(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:  # noqa: PTH123 - read and closed at once
            return file.read().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # the latter if it ends between the two
        return ""


def wait_for_start(folder: Path, number: int) -> None:
    while len((folder / "starts").read_text()) < number:
        pass


def wait_for_file(file: Path) -> None:
    while not file.exists() or not file.read_text():
        pass


SHOW = """
import json
import os
import sys

variables = {name: value for name, value in os.environ.items() if name.startswith("FUNCTIONS_")}
with open("shown.json", "w") as file:
    json.dump([sys.argv[1:], variables, os.getcwd()], file)
exec(open("echo.py").read())
"""


async def test_a_program_gets_the_arguments_and_variables_of_the_functions_host(tmp_path: Path) -> None:
    """Source: azure-functions-host, DefaultWorkerProcessFactory and HttpWorkerProcess."""
    description = {
        "defaultExecutablePath": "python",
        "arguments": ["show.py", "--port", "%FUNCTIONS_CUSTOMHANDLER_PORT%", "a%UNSET_BY_ALL%b", "%COLOUR%/100%"],
        "defaultWorkerPath": "worker",
        "workerArguments": ["last"],
    }
    content = {**PROFILE, "customHandler": {**PROFILE["customHandler"], "Description": description}}
    (tmp_path / "host.json").write_text(json.dumps(content), encoding="utf-8")
    (tmp_path / "local.settings.json").write_text(json.dumps({"Values": {"COLOUR": "red"}}), encoding="utf-8")
    (tmp_path / "show.py").write_text(SHOW, encoding="utf-8")
    (tmp_path / "echo.py").write_text(ECHO, encoding="utf-8")
    async with hosted(tmp_path) as served:
        response, _ = await answer(served, "/mcp")
        assert response.status == 201
    arguments, variables, directory = json.loads((tmp_path / "shown.json").read_text(encoding="utf-8"))
    port = variables["FUNCTIONS_CUSTOMHANDLER_PORT"]
    assert arguments == ["--port", port, "ab", "red/100%", "worker", "last"]
    assert variables["FUNCTIONS_HTTPWORKER_PORT"] == port
    assert variables["FUNCTIONS_HTTPWORKER_ID"] == variables["FUNCTIONS_CUSTOMHANDLER_WORKER_ID"]
    assert variables["FUNCTIONS_APP_ROOT_PATH"] == directory == str(tmp_path)
