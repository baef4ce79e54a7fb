"""HTTP triggers of a Node app with `enableHttpStream`, through the process that `funcmcp host` runs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2
import pytest
import pytest_asyncio

from tests.cli.forking import running
from tests.cli.processes import FUNCMCP
from tests.functions_host.apps import write_node_app
from tests.nodejs import node
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tests.cli.processes import Running

APP = """
const { app, output } = require("@azure/functions");

app.setup({ enableHttpStream: true });

app.http("echo", {
    authLevel: "anonymous",
    methods: ["GET", "POST"],
    route: "echo/{name}/{*rest}",
    handler: async (request) => {
        const headers = { "x-name": request.params.name, "set-cookie": "a=1", connection: "x-name-2", "x-name-2": "2" };
        const seen = [
            request.method, request.url, request.params, Object.fromEntries(request.query),
            Object.fromEntries(request.headers), await request.text(),
        ];
        return { status: 201, headers, jsonBody: seen, cookies: [{ name: "b", value: "2", path: "/" }] };
    },
});
app.http("count", {
    authLevel: "anonymous",
    handler: async (request) => {
        async function* numbers() {
            for (let number = 0; ; number++) {
                yield Buffer.from(`${number}\\n`);
                await new Promise((resolve) => setTimeout(resolve, 20));
            }
        }
        return { body: require("stream").Readable.from(numbers()), headers: { "content-type": "text/plain" } };
    },
});
app.http("status", { authLevel: "anonymous", route: "status/{value:int}", handler: async (request) => ({
    status: Number(request.params.value), body: Number(request.params.value) === 204 ? undefined : "a body",
}) });
app.http("large", { authLevel: "anonymous", handler: async () => ({ body: Buffer.alloc(20000000, "x") }) });
app.http("nothing", { authLevel: "anonymous", handler: async () => undefined });
app.http("fail", { authLevel: "anonymous", handler: async () => { throw new Error("the secret of the house"); } });
app.http("wait", { authLevel: "anonymous", handler: () => new Promise(() => {}) });
app.http("die", { authLevel: "anonymous", handler: () => process.kill(process.pid, "SIGKILL") });
app.http("guarded", {
    authLevel: "function",
    handler: async (request) => ({ jsonBody: [request.url, Object.fromEntries(request.headers)] }),
});
app.http("note", {
    authLevel: "anonymous",
    route: "notes/{name}",
    extraOutputs: [output.storageBlob({ path: "notes/{name}", connection: "Files" })],
    handler: async (request, context) => {
        context.extraOutputs.set(context.options.extraOutputs[0], await request.text());
        return { status: 204 };
    },
});
app.mcpTool("pid", {
    toolName: "pid",
    description: "The worker's process",
    toolProperties: [],
    handler: async () => String(process.pid),
});
"""
FUNCTION_KEY = "f" * 16
KEYS = {"FUNCMCP_HOST_KEYS": f"default={FUNCTION_KEY},mcp_extension={'m' * 16}"}
LISTENING, ESTABLISHED = "0A", "01"
HOST = {"version": "2.0", "functionTimeout": "00:00:02"}

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = write_node_app(tmp_path_factory.mktemp("app"), {"index.js": APP})
    (folder / "host.json").write_text(json.dumps(HOST))
    command = [*FUNCMCP, "host", str(folder), "--port", "0", "--node", str(node())]
    with running(command, env=KEYS) as process:
        process.folder = folder  # type: ignore[attr-defined]
        process.origin = process.endpoint().partition("/runtime")[0]  # type: ignore[attr-defined]
        yield process


@pytest_asyncio.fixture(loop_scope="module")
async def http(process: Running) -> AsyncIterator[httpx2.AsyncClient]:
    origin: str = process.origin  # type: ignore[attr-defined]
    async with httpx2.AsyncClient(base_url=f"{origin}/api", timeout=PATIENCE, trust_env=False) as client:
        yield client


async def call_pid(http: httpx2.AsyncClient) -> int:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "pid"}}
    url = str(http.base_url.join("/runtime/webhooks/mcp"))
    response = await http.post(url, json=message, headers={"accept": "*/*", "x-functions-key": "m" * 16})
    return int(response.json()["result"]["content"][0]["text"])


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_requests_and_responses_with_all_their_parts(http: httpx2.AsyncClient) -> None:
    content = b"body \xc3\xa9"
    headers = {"x-sent": "1", "x-functions-key": FUNCTION_KEY, "x-forwarded-host": "evil.example", "te": "trailers"}
    response = await http.post("echo/J%20P/a/b", params={"a": "1 2"}, content=content, headers=headers)
    assert response.status_code == 201
    method, url, params, query, seen, text = response.json()
    origin = str(http.base_url).removesuffix("/api/")
    assert (method, url, text) == ("POST", f"{origin}/api/echo/J%20P/a/b?a=1+2", "body é")
    assert params == {"name": "J P", "rest": "a/b"}
    assert query == {"a": "1 2"}
    assert seen["x-sent"] == "1"
    assert {"x-functions-key"}.isdisjoint(seen)
    assert response.headers["x-name"] == "J P"
    assert response.headers.get_list("set-cookie") == ["b=2; Path=/"]
    assert {"x-name-2", "x-ms-invocation-id"}.isdisjoint(response.headers)
    assert "date" in response.headers


async def test_the_worker_gets_the_canonical_path(http: httpx2.AsyncClient) -> None:
    """httpx2 would remove dot segments itself, so the request is written to a socket."""

    async def sent(target: str) -> bytes:
        reader, writer = await asyncio.open_connection(http.base_url.host, http.base_url.port)
        writer.write(f"GET {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode())
        answer = await reader.read()
        writer.close()
        return answer

    answer = await sent("/api/none/../%65cho/a%2Fb/x/%2e%2e/y?z=/../%2e")
    method, url, params, query, _, _ = json.loads(answer.partition(b"\r\n\r\n")[2].split(b"\r\n")[1])
    assert (method, url) == ("GET", "http://localhost/api/echo/a%252Fb/y?z=/../%2e")
    assert params == {"name": "a%2Fb", "rest": "y"}
    assert query == {"z": "/../."}
    assert (await sent("/api/echo/a/..%2f..%2fguarded")).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    ("path", "status", "size"),
    [
        ("nothing", 204, 0),
        ("large", 200, 20_000_000),
        ("fail", 500, None),
        ("status/100", 500, None),
        ("status/999", 500, None),
        ("status/599", 599, 6),
        ("status/204", 204, 0),
    ],
)
async def test_responses(http: httpx2.AsyncClient, path: str, status: int, size: int | None) -> None:
    response = await http.get(path)
    assert response.status_code == status
    assert b"secret" not in response.content
    assert size is None or len(response.content) == size


async def test_parts_arrive_as_they_are_written_and_a_client_may_leave(http: httpx2.AsyncClient) -> None:
    async with http.stream("GET", "count") as response:
        parts = aiter(response.aiter_text())
        assert (await anext(parts)).startswith("0\n")
        assert await anext(parts)  # the function has not returned yet, and never will
        pid = await call_pid(http)  # MCP triggers work meanwhile
        (port,) = (address.rpartition(":")[2] for address in sockets(pid, LISTENING))
        before = len(sockets(pid, ESTABLISHED, port))
    for _ in range(100):
        if len(sockets(pid, ESTABLISHED, port)) < before:
            break
        await asyncio.sleep(0.05)
    assert len(sockets(pid, ESTABLISHED, port)) == before - 1  # the host reads the body no longer


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_a_client_that_leaves_before_the_response(http: httpx2.AsyncClient) -> None:
    with pytest.raises(httpx2.ReadTimeout):
        await http.get("wait", timeout=0.3)
    assert (await http.get("nothing")).status_code == 204


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_calls_that_take_too_long(http: httpx2.AsyncClient) -> None:
    async def stream() -> None:
        async with http.stream("GET", "count") as response:
            assert response.status_code == 200
            await response.aread()

    waited, streamed = await asyncio.gather(http.get("wait"), stream(), return_exceptions=True)
    assert isinstance(waited, httpx2.Response)
    assert waited.status_code == 504
    assert isinstance(streamed, httpx2.RemoteProtocolError)  # an incomplete body, not a short one


async def test_keys_are_checked_and_do_not_reach_the_app(http: httpx2.AsyncClient) -> None:
    assert (await http.get("guarded")).status_code == 401
    for query, headers in (("?a=1", {"x-functions-key": FUNCTION_KEY}), (f"?a=1&code={FUNCTION_KEY}", {})):
        response = await http.get(f"guarded{query}", headers={**headers, "x-ms-client-principal": "forged"})
        assert response.status_code == 200
        url, received = response.json()
        assert url.endswith("/api/guarded?a=1")
        assert {"x-functions-key", "x-ms-client-principal"}.isdisjoint(received)
        assert FUNCTION_KEY not in response.text


async def test_outputs_are_stored(http: httpx2.AsyncClient, process: Running) -> None:
    assert (await http.put("notes/n", content=b"text")).status_code == 405
    assert (await http.post("notes/n", content=b"text")).status_code == 204
    folder: Path = process.folder  # type: ignore[attr-defined]
    file = folder / ".funcmcp/storage/Files/notes/n"
    for _ in range(100):  # they are stored after the response
        if file.exists():
            break
        await asyncio.sleep(0.05)
    assert file.read_text() == "text"


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_a_worker_that_ends(http: httpx2.AsyncClient) -> None:
    assert (await http.get("die")).status_code == 500
    assert (await http.get("nothing")).status_code == 204  # by the next process, at its own port
    pid = await call_pid(http)
    async with http.stream("GET", "count") as response:
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(httpx2.RemoteProtocolError):
            await response.aread()
    await asyncio.to_thread(wait_for_end, pid)  # until then, it may accept a connection, and lose the request
    responses = await asyncio.gather(*(http.post("echo/n/r", content=b"x" * 100_000) for _ in range(30)))
    assert {(response.status_code, len(response.json()[5])) for response in responses} == {(201, 100_000)}
    assert await call_pid(http) != pid


def wait_for_end(pid: int) -> None:
    while Path(f"/proc/{pid}").exists():
        time.sleep(0.01)


async def test_the_port_of_the_worker_is_on_loopback(http: httpx2.AsyncClient) -> None:
    (address,) = sockets(await call_pid(http), LISTENING)
    assert address.startswith("127.0.0.1:")


def sockets(pid: int, state: str, port: str = "") -> list[str]:
    """Return the local addresses of a process's TCP sockets in a state, on a port if one is named."""
    folder = Path(f"/proc/{pid}")
    inodes = set()
    for link in (folder / "fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it was closed meanwhile
            inodes.add(str(link.readlink()))
    addresses = []
    for table in ("tcp", "tcp6"):
        for line in (folder / "net" / table).read_text().splitlines()[1:]:
            row = line.split()
            if row[3] == state and f"socket:[{row[9]}]" in inodes:
                address, _, hexadecimal = row[1].partition(":")
                text = socket.inet_ntoa(bytes.fromhex(address[:8])[::-1]) if len(address) == 8 else address
                addresses.append(f"{text}:{int(hexadecimal, 16)}")
    return [address for address in addresses if address.endswith(f":{port}") or not port]
