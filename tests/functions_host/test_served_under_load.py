"""A crash, a hang, a restart and an edit under constant calls: no call that had not begun is lost, none runs twice."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from funcmcp._adapters.asgi.application import ClientDisconnectedError
from funcmcp_host.custom_handler import CustomHandlerHost
from funcmcp_host.served import PATH, FunctionsHost, HostSettings
from funcmcp_host.workers.supervised import RestartPolicy
from tests.functions_host.apps import write_app, write_node_app
from tests.functions_host.test_custom_handler import PROFILE
from tests.functions_host.test_served import Post
from tests.functions_host.workers.microsofts import MICROSOFTS_COMMAND, microsofts_environment, write_function_json
from tests.functions_host.workers.running import running_pids
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from funcmcp._adapters.asgi.application import HTTPRuntime

pytestmark = pytest.mark.slow("An app crashes, hangs and restarts under constant calls.")

PYTHON = """
import asyncio
import os
import time

import azure.functions as func

app = func.FunctionApp()
VERSION = 1


@app.mcp_tool()
async def record(number: int, kind: str) -> str:
    with open(os.environ["CALLS"], "a") as file:
        file.write(f"{number}\\n")
    if kind == "crash":
        os._exit(3)
    if kind == "hang":
        time.sleep(600)
    await asyncio.sleep(0.01)
    return f"{number} {VERSION}"
"""
NODE = """
const fs = require("fs");
const { app, arg } = require("@azure/functions");
const VERSION = 1;
app.mcpTool("record", {
    toolName: "record",
    description: "Record a call.",
    toolProperties: { number: arg.integer(), kind: arg.string() },
    handler: async (_, context) => {
        const { number, kind } = context.triggerMetadata.mcptoolargs;
        fs.appendFileSync(process.env.CALLS, `${number}\\n`);
        if (kind === "crash") process.exit(3);
        if (kind === "hang") for (;;);
        await new Promise((resolve) => setTimeout(resolve, 10));
        return `${number} ${VERSION}`;
    },
});
"""
HANDLER = """
import json
import os
import signal
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

VERSION = 1
LOCK = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path == "/record":
            call = json.loads(json.loads(body["Data"]["context"]))["arguments"]
        else:
            call = body["params"]["arguments"]
        with LOCK, open(os.environ["CALLS"], "a") as file:
            file.write(f"{call['number']}\\n")
        if call["kind"] == "crash":
            os._exit(3)
        if call["kind"] == "hang":
            os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(0.01)
        text = f"{call['number']} {VERSION}"
        result = {"content": [{"type": "text", "text": text}]}
        answer = json.dumps({"ReturnValue": text} if self.path == "/record" else {"result": result}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments):
        pass


ThreadingHTTPServer.request_queue_size = 128
ThreadingHTTPServer(("127.0.0.1", int(os.environ["FUNCTIONS_CUSTOMHANDLER_PORT"])), Handler).serve_forever()
"""
RPC = """
import json
import os
import signal
import time

VERSION = 1


def main(context: str) -> str:
    arguments = json.loads(context)["arguments"]
    with open(os.environ["CALLS"], "a") as file:
        file.write(f"{arguments['number']}\\n")
    if arguments["kind"] == "crash":
        os._exit(3)
    if arguments["kind"] == "hang":
        os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(0.01)
    return f"{arguments['number']} {VERSION}"
"""
FILES = {
    "python": "function_app.py",
    "node": "index.js",
    "forwarding": "server.py",
    "invoked": "server.py",
    "rpc": "record/__init__.py",
}
CALLERS = 6
RECORD = {
    "bindings": [
        {"name": "context", "type": "mcpToolTrigger", "direction": "in", "toolName": "record"},
        # The worker of 2020 takes a return value for this binding only; the host sends it to the client as well.
        {"name": "$return", "type": "queue", "direction": "out", "queueName": "results", "connection": "Files"},
    ]
}
SETTINGS = HostSettings(reload=True, timeout=2, restart=RestartPolicy(ping_seconds=1))


def write(folder: Path, kind: str) -> Path:
    if kind == "python":
        return write_app(folder, PYTHON)
    if kind == "node":
        return write_node_app(folder, {"index.js": NODE})
    folder.mkdir()
    if kind == "rpc":
        return write_function_json(folder, {"record": (RECORD, RPC)})
    (folder / "server.py").write_text(HANDLER)
    if kind == "forwarding":
        (folder / "host.json").write_text(json.dumps(PROFILE))
        return folder
    write_function_json(folder, {"record": ({"bindings": RECORD["bindings"][:1]}, "")})
    handler = {"description": {"defaultExecutablePath": "python", "arguments": ["server.py"]}}
    (folder / "host.json").write_text(json.dumps({"version": "2.0", "customHandler": handler}))
    (folder / "local.settings.json").write_text('{"Values": {"FUNCTIONS_WORKER_RUNTIME": "custom"}}')
    return folder


@asynccontextmanager
async def served(folder: Path, kind: str, calls: Path) -> AsyncIterator[FunctionsHost | CustomHandlerHost]:
    environment, settings = {**os.environ, "CALLS": str(calls)}, SETTINGS
    host: FunctionsHost | CustomHandlerHost
    if kind == "forwarding":
        host = CustomHandlerHost(folder, environment, settings)
    elif kind == "rpc":
        environment |= microsofts_environment(folder)
        host = FunctionsHost(folder, environment, replace(settings, worker=MICROSOFTS_COMMAND))
    else:
        host = FunctionsHost(folder, environment, settings)
    try:
        await host.start()
        yield host
    finally:
        await host.aclose()


async def call(host: HTTPRuntime, number: int, kind: str = "") -> str | Failure:
    """Return the text of a result, or how the call failed."""
    arguments = {"number": number, "kind": kind}
    request = {"jsonrpc": "2.0", "id": number, "method": "tools/call"}
    request["params"] = {"name": "record", "arguments": arguments}
    response = await host.exchange(Post(request, PATH if isinstance(host, FunctionsHost) else "/mcp"))
    try:
        body = response.body if isinstance(response.body, bytes) else b"".join([part async for part in response.body])
    except ClientDisconnectedError:
        return INCOMPLETE
    answer: dict[str, Any] = json.loads(body)
    if "error" in answer:
        return Failure(response.status, answer["error"]["message"])
    text: str = answer["result"]["content"][0]["text"]
    return Failure(response.status, text) if answer["result"].get("isError") else text


class Failure(NamedTuple):
    """What the client sees of a call that failed."""

    status: int
    text: str


INCOMPLETE = Failure(200, "The answer is incomplete, so the call may have had an effect.")


@dataclass
class Traffic:
    """Constant calls, each with a number of its own."""

    host: HTTPRuntime
    numbers: itertools.count[int] = field(default_factory=itertools.count)
    answered: list[int] = field(default_factory=list)
    failures: dict[int, Failure] = field(default_factory=dict)
    versions: set[str] = field(default_factory=set)

    async def keep_calling(self, until: asyncio.Event) -> None:
        while not until.is_set():
            await self.call(next(self.numbers))
            await asyncio.sleep(0)  # a refusal at once must not keep others from running

    async def call(self, number: int, kind: str = "") -> None:
        text = await call(self.host, number, kind)
        if isinstance(text, Failure):
            self.failures[number] = text
            return
        repeated, version = text.split()
        assert int(repeated) == number
        self.answered.append(number)
        self.versions.add(version)

    async def reach(self, is_reached: Callable[[], bool]) -> None:
        while not is_reached():  # noqa: ASYNC110 - what is reached is several counts
            await asyncio.sleep(0.01)


async def crash(traffic: Traffic, folder: Path, file: str) -> None:
    await traffic.call(-1, "crash")


async def hang(traffic: Traffic, folder: Path, file: str) -> None:
    await traffic.call(-1, "hang")


async def restart(traffic: Traffic, folder: Path, file: str) -> None:
    """End the process from outside."""
    host = traffic.host
    pid = running_pids(host.worker)[0] if isinstance(host, FunctionsHost) else host.pid  # type: ignore[attr-defined]
    os.kill(pid, signal.SIGKILL)


async def edit(traffic: Traffic, folder: Path, file: str) -> None:
    path = folder / file
    # Python takes compiled code for current if the source has the same size and was changed in the same second.
    path.write_text(path.read_text().replace("VERSION = 1", "VERSION = 222"))
    await traffic.reach(lambda: "222" in traffic.versions)


STATUSES = {"crash": {502}, "restart": {502}, "hang": {502, 504}}
"""By event, the statuses of calls that failed, of a custom handler that gets requests."""


@pytest.mark.parametrize("event", [crash, hang, restart, edit])
@pytest.mark.parametrize("kind", ["python", "node", "forwarding", "invoked", "rpc"])
async def test_no_call_is_lost_that_had_not_begun(
    kind: str, event: Callable[[Traffic, Path, str], Awaitable[None]], tmp_path: Path
) -> None:
    folder = write(tmp_path / "app", kind)
    calls = tmp_path / "calls"
    calls.touch()
    async with served(folder, kind, calls) as host, asyncio.timeout(PATIENCE):
        traffic = Traffic(host)
        end = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            for _ in range(CALLERS):
                tasks.create_task(traffic.keep_calling(end))
            await traffic.reach(lambda: len(traffic.answered) > 30)
            await event(traffic, folder, FILES[kind])
            before = len(traffic.answered)
            await traffic.reach(lambda: len(traffic.answered) > before + 30)
            end.set()
    begun = [int(line) for line in calls.read_text().split()]
    assert len(begun) == len({*begun})
    assert {*traffic.answered} <= {*begun}
    if event is edit:
        assert traffic.failures == {}
    # The process had accepted each call that failed, so it may have begun, and the client reads this.
    assert all(text.endswith(" may have had an effect.") for _, text in traffic.failures.values())
    statuses = {failure.status for failure in traffic.failures.values() if failure is not INCOMPLETE}
    assert statuses <= (STATUSES.get(event.__name__, set()) if kind == "forwarding" else {200})
    if kind in {"python", "node"} and event in {crash, hang}:
        # These workers report the begin of a call immediately before the function's first line.
        assert traffic.failures.keys() <= {*begun}
    else:
        # Of each caller, and of the event's own call, at most the one that was on its way when the process ended.
        assert len(traffic.failures) <= CALLERS + 1
