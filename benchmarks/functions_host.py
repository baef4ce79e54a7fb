"""Measure `funcmcp host` beside Microsoft's worker library: calls a second, and the median time of a call.

`python benchmarks/functions_host.py` takes less than two minutes. It writes the table to `results/functions_host.md`
and into the guide of the functions host. The Python app runs in `.venv-3.13`, which has the worker library: called in
its own process, by the worker process of the host, and over HTTP. The Node app needs `node` and
`tests/node/node_modules`. Load generator, host and worker share the machine. Rows alternate in rounds, and ratios are
computed within a round.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from funcmcp_host.workers.node_command import node_worker  # noqa: E402 - of this checkout
from funcmcp_host.workers.python_command import python_worker  # noqa: E402
from funcmcp_host.workers.worker import Invocation, Value  # noqa: E402
from scripts.generated_part import with_part  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from funcmcp_host.workers.process import ProcessWorker

RESULTS = ROOT / "benchmarks" / "results" / "functions_host.md"
GUIDE = ROOT / "docs" / "guides" / "functions-host.md"
COMMAND = "python benchmarks/functions_host.py"
LIBRARY_PYTHON = ROOT / ".venv-3.13" / "bin" / "python"
ROUNDS, SECONDS = 3, 1.5
CONCURRENT = 32
PYTHON_APP = """
import azure.functions as func

app = func.FunctionApp()


@app.mcp_tool_trigger(arg_name="context", tool_name="echo", description="Echo", tool_properties="[]")
async def echo(context: str) -> str:
    return "hello"
"""
NODE_APP = """
const { app } = require("@azure/functions");
app.mcpTool("echo", { toolName: "echo", description: "Echo", toolProperties: {}, handler: async () => "hello" });
"""


class Speed(NamedTuple):
    """How fast calls are.

    Attributes:
        milliseconds: The median time of calls one after the other.
        rate: Calls a second, 32 at once.
    """

    milliseconds: float
    rate: float


async def measure(call: Callable[[int], Awaitable[object]], seconds: float) -> Speed:
    """Call a function for some seconds, one after the other, and then 32 at once."""
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        await call(0)
        times.append(time.perf_counter() - begin)
    count = 0

    async def repeat(number: int) -> None:
        nonlocal count
        while time.perf_counter() < end:
            await call(number)
            count += 1

    begin = time.perf_counter()
    end = begin + seconds
    await asyncio.gather(*(repeat(number) for number in range(CONCURRENT)))
    return Speed(median(times) * 1000, count / (time.perf_counter() - begin))


def measure_library(folder: Path, seconds: float) -> Speed:
    """Measure the worker library in its own process, without a host and without MCP."""
    program = ROOT / "benchmarks" / "servers" / "worker_library.py"
    completed = subprocess.run(
        [LIBRARY_PYTHON, program, folder, str(seconds)], capture_output=True, text=True, check=True
    )
    figures = json.loads(completed.stdout)
    return Speed(figures["milliseconds"], figures["rate"])


async def measure_worker(worker: ProcessWorker, seconds: float) -> Speed:
    """Measure calls of the worker process of `funcmcp host`, without HTTP and MCP."""
    await worker.start()
    trigger = json.loads(worker.functions[0].bindings[0])["name"]
    context = Value("string", json.dumps({"name": "echo", "arguments": {}}))
    invocation = Invocation("echo", {trigger: context})
    try:
        return await measure(lambda _: worker.invoke(invocation, 30), seconds)
    finally:
        await worker.aclose()


async def measure_http(folder: Path, seconds: float, *options: str) -> Speed:
    """Measure tools/call over HTTP."""
    command = [sys.executable, "-m", "funcmcp", "host", str(folder), "--port", "0", "--no-reload", *options]
    with subprocess.Popen(  # noqa: ASYNC220 - nothing else runs meanwhile
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            line = next(text for text in process.stdout or () if "is served" in text)
            port = int(line.partition("127.0.0.1:")[2].partition("/")[0])
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": {}}}
            body = json.dumps(message).encode()
            head = f"POST /runtime/webhooks/mcp HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\naccept: */*\r\n"
            head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
            request = head.encode() + body
            connections = [await asyncio.open_connection("127.0.0.1", port) for _ in range(CONCURRENT)]

            async def call(number: int) -> None:
                reader, writer = connections[number]
                writer.write(request)
                header = await reader.readuntil(b"\r\n\r\n")
                length = int(header.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
                answer = await reader.readexactly(length)
                if b'"hello"' not in answer:
                    raise RuntimeError(f"tools/call was answered {answer[:200]!r}")

            try:
                return await measure(call, seconds)
            finally:
                for _, writer in connections:
                    writer.close()
        finally:
            process.terminate()


async def run_round(folders: Mapping[str, Path], node: str | None, seconds: float) -> dict[str, Speed]:
    """Measure each row of the table once."""
    app, python = folders["Python"], str(LIBRARY_PYTHON)
    worker = python_worker(app, os.environ, python=python)
    speeds = {
        "Python, the worker library in its own process": measure_library(app, seconds),
        "Python, the worker process of `funcmcp host`": await measure_worker(worker, seconds),
        "Python, `tools/call` over HTTP": await measure_http(app, seconds, "--python", python),
    }
    if node is not None:
        app = folders["Node"]
        worker = node_worker(app, os.environ, node=node)
        speeds["Node, the worker process of `funcmcp host`"] = await measure_worker(worker, seconds)
        speeds["Node, `tools/call` over HTTP"] = await measure_http(app, seconds, "--node", node)
    return speeds


def table(rounds: list[dict[str, Speed]]) -> str:
    """Return the table of medians. Ratios are those of calls a second to the first row of the same round."""
    lines = ["| called | p50 | calls/s, 32 at once | beside the library |", "|---|---|---|---|"]
    library = next(iter(rounds[0]))
    for name in rounds[0]:
        milliseconds = median(speeds[name].milliseconds for speeds in rounds)
        rate = median(speeds[name].rate for speeds in rounds)
        ratio = median(speeds[name].rate / speeds[library].rate for speeds in rounds)
        beside = f"{ratio:.2f}" if name.startswith("Python") else "-"
        lines.append(f"| {name} | {milliseconds:.2f} ms | {rate:,.0f} | {beside} |")
    return "\n".join(lines)


def machine(node: str | None) -> str:
    """Return a sentence about what was measured."""
    versions = f"Python {platform.python_version()} for the host, 3.13 with azure-functions-runtime 1.3.0 for the app"
    if node is not None:
        version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip()
        versions += f", Node {version.removeprefix('v')}"
    return f"{platform.machine()}, {os.cpu_count()} cores, {versions}, load {os.getloadavg()[0]:.1f} at the start."


def write_results(text: str, sentence: str) -> None:
    """Write the table to the results, and into the guide."""
    about = "`echo` returns a text. Medians of rounds; load generator, host and worker share the machine."
    RESULTS.write_text(f"# funcmcp host beside the worker library\n\n`{COMMAND}`. {sentence}\n{about}\n\n{text}\n")
    page = GUIDE.read_text(encoding="utf-8")
    GUIDE.write_text(with_part(page, "speed", text, writer=COMMAND), encoding="utf-8")


async def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--node", default=shutil.which("node"), help="the program that runs the Node app")
    parser.add_argument("--quick", action="store_true", help="one short round, which is printed and not written")
    options = parser.parse_args()
    sentence = machine(options.node)
    with tempfile.TemporaryDirectory() as temporary:
        folders = {name: Path(temporary, name) for name in ("Python", "Node")}
        for folder in folders.values():
            folder.mkdir()
            (folder / "host.json").write_text('{"version": "2.0"}')
        (folders["Python"] / "function_app.py").write_text(PYTHON_APP)
        (folders["Node"] / "package.json").write_text('{"main": "index.js"}')
        (folders["Node"] / "index.js").write_text(NODE_APP)
        (folders["Node"] / "node_modules").symlink_to(ROOT / "tests/node/node_modules")
        count, seconds = (1, 0.3) if options.quick else (ROUNDS, SECONDS)
        rounds = [await run_round(folders, options.node, seconds) for _ in range(count)]
    text = table(rounds)
    print(f"{sentence}\n\n{text}")
    if not options.quick:
        write_results(text, sentence)


if __name__ == "__main__":
    asyncio.run(main())
