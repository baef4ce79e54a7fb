"""Measure `funcmcp host`: the start of a worker, its calls, and tools/call over HTTP.

`python benchmarks/functions_host.py [--node FILE]` prints a table. The apps are those of `samples/azure`; a Node app
needs `node_modules` in its folder. Load generator, host and worker share the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from funcmcp_host.workers.node_command import node_worker
from funcmcp_host.workers.python_command import python_worker
from funcmcp_host.workers.worker import Invocation, Value

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from funcmcp_host.workers.process import ProcessWorker

ROOT = Path(__file__).parents[1]
SECONDS = 3.0
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


async def measure(call: Callable[[int], Awaitable[object]]) -> tuple[float, float]:
    """Return the median time of calls one after the other, in milliseconds, and calls a second, 32 at once."""
    times = []
    end = time.perf_counter() + SECONDS
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
    end = begin + SECONDS
    await asyncio.gather(*(repeat(number) for number in range(CONCURRENT)))
    return sorted(times)[len(times) // 2] * 1000, count / (time.perf_counter() - begin)


async def measure_worker(worker: ProcessWorker) -> tuple[float, float, float]:
    """Return the seconds of a start, and what `measure` returns for calls of the worker."""
    begin = time.perf_counter()
    await worker.start()
    start = time.perf_counter() - begin
    trigger = json.loads(worker.functions[0].bindings[0])["name"]
    context = Value("string", json.dumps({"name": "echo", "arguments": {"text": "hello"}}))
    invocation = Invocation("echo", {trigger: context})
    try:
        return (start, *await measure(lambda _: worker.invoke(invocation, 30)))
    finally:
        await worker.aclose()


async def measure_http(folder: Path, *options: str) -> tuple[float, float]:
    """Return what `measure` returns for tools/call over HTTP."""
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
                return await measure(call)
            finally:
                for _, writer in connections:
                    writer.close()
        finally:
            process.terminate()


async def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--node", help="the program that runs the Node app; without it that row is left out")
    node = parser.parse_args().node
    print("| app | start | worker call, p50 | worker calls/s, 32 | HTTP call, p50 | HTTP calls/s, 32 |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "host.json").write_text('{"version": "2.0"}')
        (folder / "function_app.py").write_text(PYTHON_APP)
        await print_row("Python", folder, python_worker(folder, os.environ))
        if node:
            (folder / "function_app.py").unlink()
            (folder / "package.json").write_text('{"main": "index.js"}')
            (folder / "index.js").write_text(NODE_APP)
            with contextlib.suppress(FileExistsError):
                (folder / "node_modules").symlink_to(ROOT / "tests/node/node_modules")
            await print_row("Node", folder, node_worker(folder, os.environ, node=node), "--node", node)


async def print_row(app: str, folder: Path, worker: ProcessWorker, *options: str) -> None:
    """Measure one app, and print its row."""
    start, call_time, call_rate = await measure_worker(worker)
    http_time, http_rate = await measure_http(folder, *options)
    print(f"| {app} | {start:.2f} s | {call_time:.2f} ms | {call_rate:,.0f} | {http_time:.2f} ms | {http_rate:,.0f} |")


if __name__ == "__main__":
    asyncio.run(main())
