"""Workers for Node apps: Microsoft's own library in Node, in a process of its own."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from funcmcp.testing import Client
from funcmcp_host.served import PATH, FunctionsHost, HostSettings
from funcmcp_host.workers.node_command import node_worker
from funcmcp_host.workers.supervised import RestartPolicy, Supervised
from funcmcp_host.workers.worker import (
    FunctionFailed,
    Invocation,
    LoadFailed,
    Outcome,
    Value,
    WorkerGone,
)
from tests.functions_host.apps import write_node_app
from tests.nodejs import node, package
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from funcmcp._transports.http.messages import HttpRequest, HttpResponse
    from funcmcp_host.workers.process import ProcessWorker

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.asyncio(loop_scope="module")

KINDS = """
const { app, arg, output } = require("@azure/functions");

function tool(name, handler, more = {}) {
    app.mcpTool(name, { toolName: name, description: name, toolProperties: {}, handler, ...more });
}

const calls = [];
app.hook.appStart(() => calls.push("start"));
app.hook.preInvocation((context) => {
    if (context.invocationContext.functionName === "hooked") context.inputs[0] = { changed: true };
});
app.hook.postInvocation((context) => {
    if (context.invocationContext.functionName === "hooked") context.result += " after";
});

tool("text", async () => "hi");
tool("object", async () => ({ a: 1 }));
tool("context", async (input, context) => JSON.stringify([input, context.triggerMetadata, context.functionName]));
tool("nothing", async () => undefined);
tool("fail", async () => { throw new TypeError("the secret of the house"); });
tool("sync", () => "plain");
const waiting = [];
tool("together", () => new Promise((resolve) => {
  waiting.push(resolve);
  if (waiting.length === 10) waiting.forEach((answer) => answer("together"));
}));
tool("large", (input) => "x".repeat(input.arguments.size));
tool("hooked", async (input) => JSON.stringify([input, calls]));
tool("log", async (_, context) => { context.warn("logged"); console.log("printed"); return String(process.pid); });
tool("die", async () => process.exit(3));
tool("spin", async () => { for (;;) {} });
tool("where", async () => JSON.stringify([process.cwd(), process.env.SETTING]));
const blob = output.storageBlob({ connection: "Files", path: "box/{mcptoolargs.name}" });
function save(_, context) {
    context.extraOutputs.set(blob, "content");
    return "saved";
}
tool("save", save, { extraOutputs: [blob] });

app.mcpResource("text resource", { uri: "note://text", resourceName: "t", handler: async () => "text" });
app.mcpResource("bytes resource", {
    uri: "note://bytes",
    resourceName: "b",
    handler: async () => Buffer.from([0, 255]),
});
app.mcpPrompt("prompt", {
    promptName: "prompt",
    promptArguments: [{ name: "code", description: "d", required: true }],
    handler: async (prompt) => "Review " + prompt.arguments.code,
});
app.http("orders", {
    route: "orders/{id}",
    methods: ["POST"],
    handler: async (request) => ({
        status: 201,
        jsonBody: [request.method, request.url, request.query.get("q"), request.params.id, await request.text()],
        headers: { "x-b": "2" },
        cookies: [{ name: "a", value: "1", path: "/", httpOnly: true, sameSite: "Lax" }],
    }),
});
"""


@asynccontextmanager
async def running(folder: Path, **variables: str) -> AsyncIterator[ProcessWorker]:
    worker = node_worker(folder, {**os.environ, **variables}, node=str(node()))
    await worker.start()
    try:
        yield worker
    finally:
        await worker.aclose()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def kinds(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ProcessWorker]:
    """Run the app with all kinds of functions."""
    async with running(write_node_app(tmp_path_factory.mktemp("kinds"), {"index.js": KINDS}), SETTING="s") as worker:
        yield worker


def invocation(worker: ProcessWorker | Supervised, function: str, **arguments: Any) -> Invocation:
    info = next(info for info in worker.functions if info.name == function)
    trigger = next(json.loads(text)["name"] for text in info.bindings if "Trigger" in text)
    text = Value("string", json.dumps({"name": function, "arguments": arguments}))
    return Invocation(function, {trigger: text}, {"mcptoolargs": Value("json", json.dumps(arguments))})


async def call(worker: ProcessWorker, function: str, **arguments: Any) -> Value:
    return (await worker.invoke(invocation(worker, function, **arguments), 10)).value


async def text_of(worker: ProcessWorker, function: str, **arguments: Any) -> str:
    """Return the text in the envelope that the library makes of a tool's value."""
    text: str = json.loads(json.loads((await call(worker, function, **arguments)).data)["content"])["text"]
    return text


async def test_values_have_their_kinds(kinds: ProcessWorker) -> None:
    assert kinds.description.startswith("Node 22.")
    assert "@azure/functions 4.16.5" in kinds.description
    assert await text_of(kinds, "text") == "hi"
    assert json.loads(await text_of(kinds, "object")) == {"a": 1}
    assert await text_of(kinds, "sync") == "plain"
    assert await call(kinds, "nothing") == Value("null")
    assert await call(kinds, "text resource") == Value("string", "text")
    assert await call(kinds, "bytes resource") == Value("bytes", b"\x00\xff")
    assert await call(kinds, "prompt", code="x") == Value("string", "Review x")


async def test_functions_get_the_context_and_the_trigger_metadata(kinds: ProcessWorker) -> None:
    context, metadata, name = json.loads(await text_of(kinds, "context", a=1, b="ä"))
    assert context["arguments"] == metadata["mcptoolargs"] == {"a": 1, "b": "ä"}
    assert name == "context"


async def test_calls_run_side_by_side(kinds: ProcessWorker) -> None:
    assert await asyncio.gather(*(text_of(kinds, "together") for _ in range(10))) == ["together"] * 10


async def test_a_failure_has_the_text_and_the_stack(kinds: ProcessWorker) -> None:
    with pytest.raises(FunctionFailed, match="TypeError: the secret of the house") as failure:
        await call(kinds, "fail")
    assert "index.js" in failure.value.trace


async def test_hooks_of_the_app_run(kinds: ProcessWorker) -> None:
    assert await text_of(kinds, "hooked") == '[{"changed":true},["start"]] after'


async def test_outputs_come_beside_the_value(kinds: ProcessWorker) -> None:
    outcome = await kinds.invoke(invocation(kinds, "save", name="n"), 10)
    assert list(outcome.outputs.values()) == [Value("string", "content")]


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_large_values_pass_in_both_directions(kinds: ProcessWorker) -> None:
    assert len(await text_of(kinds, "large", size=5_000_000)) == 5_000_000
    assert len(await text_of(kinds, "context", text="x" * 5_000_000)) > 10_000_000


async def test_log_records_and_output_arrive(kinds: ProcessWorker, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "funcmcp.app")
    assert await text_of(kinds, "log") == str(kinds.pid)
    await asyncio.sleep(0.1)
    record = next(record for record in caplog.records if record.message == "logged")
    assert (record.levelname, record.__dict__["function"]) == ("WARNING", "log")
    assert "printed" in caplog.text
    assert json.loads(await text_of(kinds, "where")) == [str(kinds._child._command.folder), "s"]


async def test_http_requests_reach_functions(kinds: ProcessWorker) -> None:
    request = {
        "method": "POST",
        "url": "http://localhost/api/orders/7?q=1",
        "headers": {"content-type": "text/plain"},
        "query": {"q": "1"},
        "params": {"id": "7"},
        "body": b"hi",
    }
    info = next(info for info in kinds.functions if info.name == "orders")
    trigger = next(json.loads(text)["name"] for text in info.bindings if "Trigger" in text)
    response = (await kinds.invoke(Invocation("orders", {trigger: Value("http", request)}), 10)).value.data
    assert json.loads(response["body"]) == ["POST", request["url"], "1", "7", "hi"]
    headers = [tuple(pair) for pair in response["headers"]]
    assert response["status"] == 201
    assert ("x-b", "2") in headers
    assert ("set-cookie", "a=1; Path=/; HttpOnly; SameSite=Lax") in headers


async def test_a_call_that_ends_the_process_has_begun(tmp_path: Path) -> None:
    async with running(write_node_app(tmp_path, {"index.js": KINDS})) as worker:
        with pytest.raises(WorkerGone) as gone:
            await call(worker, "die")
        assert gone.value.begun


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_a_blocked_loop_answers_no_ping_and_is_ended(tmp_path: Path) -> None:
    async with running(write_node_app(tmp_path, {"index.js": KINDS})) as worker:
        assert await worker.ping(5)
        with pytest.raises(TimeoutError):
            await worker.invoke(invocation(worker, "spin"), 0.2)
        assert not await worker.ping(0.2)
        await worker.aclose()


WITHOUT_HOOKS = """
const { app } = require("@azure/functions");

app.mcpTool("text", { toolName: "text", description: "", toolProperties: {}, handler: async () => "hi" });
app.mcpTool("spin", { toolName: "spin", description: "", toolProperties: {}, handler: async () => { for (;;) {} } });
"""


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_calls_behind_one_that_blocks_go_to_the_next_process(tmp_path: Path) -> None:
    folder = write_node_app(tmp_path, {"index.js": WITHOUT_HOOKS})
    worker = Supervised(
        lambda: node_worker(folder, dict(os.environ), node=str(node())),
        RestartPolicy(ping_seconds=0.3, wait_seconds=PATIENCE),
    )
    await worker.start()
    try:
        first = worker.pid
        calls = [invocation(worker, "spin"), *(invocation(worker, "text") for _ in range(5))]
        blocked, *answers = await asyncio.gather(*(worker.invoke(call, 2) for call in calls), return_exceptions=True)
        assert isinstance(blocked, TimeoutError)
        assert [answer.value.kind for answer in answers if isinstance(answer, Outcome)] == ["string"] * 5
        assert worker.pid != first
    finally:
        await worker.aclose()


@pytest.mark.parametrize(
    ("files", "main", "manifest"),
    [
        ({"dist/a.js": "TOOL a", "dist/b.js": "TOOL b", "dist/c.txt": ""}, "dist/*.js", {}),
        ({"dist/x/a.js": "TOOL a", "dist/b.js": "TOOL b"}, "dist/{b.js,x/*.js}", {}),
        ({"src/x/y/a.js": "TOOL a", "src/b.js": "TOOL b"}, "src/**/*.js", {}),
        ({"src/index.mjs": 'IMPORT\nimport "./b.mjs";\nTOOL a', "src/b.mjs": "IMPORT\nTOOL b"}, "src/index.mjs", {}),
        ({"a.js": "IMPORT\nTOOL a", "b.js": "IMPORT\nTOOL b"}, "{a,b}.js", {"type": "module"}),
    ],
)
async def test_the_main_of_an_app_may_be_a_pattern_or_a_module(
    files: dict[str, str], main: str, manifest: dict[str, str], tmp_path: Path
) -> None:
    def code(text: str) -> str:
        lines = []
        for line in text.splitlines():
            if line == "IMPORT":
                lines.append('import { app } from "@azure/functions";')
            elif line.startswith("TOOL "):
                name = line.removeprefix("TOOL ")
                if "IMPORT" not in text:
                    lines.append('const { app } = require("@azure/functions");')
                options = f'toolName: "{name}", description: "", toolProperties: {{}}, handler: () => "{name}"'
                lines.append(f'app.mcpTool("{name}", {{ {options} }});')
            else:
                lines.append(line)
        return "\n".join(lines)

    folder = write_node_app(tmp_path, {name: code(text) for name, text in files.items()}, main, **manifest)
    async with running(folder) as worker:
        assert {info.name for info in worker.functions} == {"a", "b"}
        assert await text_of(worker, "b") == "b"


@pytest.mark.parametrize(
    ("files", "manifest", "reason"),
    [
        ({}, {"scripts": {"build": "tsc"}}, 'no such file. Run "npm run build" in'),
        ({}, {}, 'no such file. Correct "main" in package.json'),
        ({"index.js": "const x = 1;"}, {}, "registers no function with @azure/functions 4"),
        ({"index.js": 'require("nowhere-at-all");'}, {}, "Cannot find module 'nowhere-at-all'. Run npm install in"),
        ({"index.js": "\nthrow new Error('broken');"}, {}, r"index\.js, line 2: Error: broken\."),
        (
            {"index.js": 'require("./lib/a");', "lib/a.js": '\n\nrequire("./gone");'},
            {},
            r"lib/a\.js, line 3: Error: Cannot find module '\./gone'\. Correct the path: the app has no such file\.",
        ),
        (
            {"index.mjs": 'import "./lib/a.mjs";', "lib/a.mjs": '\nimport { x } from "./gone.mjs";'},
            {"main": "index.mjs"},
            r"lib/a\.mjs, line 2: Error: Cannot find module '.*gone\.mjs' imported from .*\. Correct the path",
        ),
        (
            {"index.mjs": 'import zod from "nowhere-at-all";'},
            {"main": "index.mjs"},
            r"index\.mjs, line 1: Error: Cannot find package 'nowhere-at-all' imported from .*\. Run npm install in",
        ),
        ({"index.js": "const x = 1;\nconst = 2;"}, {}, r"index\.js, line 2: SyntaxError: Unexpected token"),
        ({"index.js": "process.exit(4);"}, {}, r"ended before the app was loaded \(exit code 4\)"),
    ],
)
async def test_an_app_that_cannot_be_loaded_is_an_error_in_one_line(
    files: dict[str, str], manifest: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    worker = node_worker(write_node_app(tmp_path, files, **manifest), os.environ, node=str(node()))
    with pytest.raises(LoadFailed, match=reason) as failure:
        await worker.start()
    assert "\n" not in str(failure.value)


async def test_a_program_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    worker = node_worker(tmp_path, os.environ, node="no-such-node")
    with pytest.raises(LoadFailed, match="no-such-node can't be started"):
        await worker.start()


HOST = """
import asyncio, os, sys
from pathlib import Path
from funcmcp_host.workers.node_command import node_worker
from funcmcp_host.workers.worker import Invocation, Value

async def main():
    worker = node_worker(Path(sys.argv[1]), os.environ, node=sys.argv[2])
    await worker.start()
    print(worker.pid, flush=True)
    spin = next(info for info in worker.functions if info.name == "spin")
    binding = json.loads(spin.bindings[0])["name"]
    await worker.invoke(Invocation("spin", {binding: Value("string", "{}")}), 60)

import json
asyncio.run(main())
"""


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a blocked loop ends when its call does")
async def test_a_worker_with_a_blocked_loop_ends_with_the_host(tmp_path: Path) -> None:
    folder = write_node_app(tmp_path, {"index.js": KINDS})
    command = [sys.executable, "-c", HOST, str(folder), str(node())]
    host = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, cwd=ROOT)
    assert host.stdout is not None
    pid = int(await host.stdout.readline())
    await asyncio.sleep(0.3)
    host.send_signal(signal.SIGKILL)
    await host.communicate()  # waits for the end of the process and of its pipe
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        await asyncio.sleep(0.02)
    raise AssertionError("the worker runs on")


async def test_the_sample_is_served(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    shutil.copytree(ROOT / "samples/azure/mcp_triggers_node", folder)
    (folder / "node_modules").symlink_to(package("@azure/functions").parents[1])
    host = FunctionsHost(folder, dict(os.environ), HostSettings(node=str(node())))

    async def exchange(http: HttpRequest) -> HttpResponse:
        http.path = PATH
        return await host.exchange(http)

    await host.start()
    try:
        async with Client(exchange) as client:
            assert client.server_info["name"] == "Notes"
            saved = await client.call_tool("save_note", {"name": "a", "text": "hi"})
            assert saved["content"] == [{"type": "text", "text": "Saved a."}]
            assert (await client.call_tool("load_note", {"name": "a"}))["content"][0]["text"] == "hi"
            assert (await client.call_tool("load_note", {"name": "b"}))["content"][0]["text"] == "There is no note b."
            assert (await client.read_resource("notes://a"))["contents"][0]["text"] == "hi"
            prompt = await client.get_prompt("summarize_note", {"name": "a"})
            assert "Load the note a" in prompt["messages"][0]["content"]["text"]
    finally:
        await host.aclose()
