"""One server object in the event loops of test frameworks, threads and notebooks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from jupyter_client.manager import start_new_kernel

from tests.patience import PATIENCE

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")

FILES = Path(__file__).parent / "files"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(FILES)}


def run(*command: str) -> str:
    """Run Python in a process of its own, without the settings of this project; return its output."""
    ended = subprocess.run(
        [sys.executable, *command],
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
        cwd=FILES,
        env=ENVIRONMENT,
    )
    assert ended.returncode == 0, ended.stdout
    return ended.stdout


@pytest.mark.slow("Test frameworks and a notebook start.")
@pytest.mark.parametrize(
    ("file", "plugins", "count"),
    [
        ("pytest_asyncio_loops.py", ["-p", "no:anyio", "-o", "asyncio_default_fixture_loop_scope=function"], 4),
        ("pytest_asyncio_compat.py", ["-p", "no:anyio", "-o", "asyncio_default_fixture_loop_scope=function"], 4),
        ("anyio_loops.py", ["-p", "no:asyncio"], 2),
        ("starlette_loops.py", ["-p", "no:asyncio", "-p", "no:anyio"], 2),
    ],
)
def test_each_loop_of_a_test_framework_has_its_own_lifespan(file: str, plugins: list[str], count: int) -> None:
    options = [
        "-q",
        "-c",
        os.devnull,
        "--rootdir",
        ".",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-p",
        "no:cov",
        "--noconftest",
    ]
    output = run("-m", "pytest", *options, *plugins, "-W", "error", file)
    assert f"{count} passed" in output


@pytest.mark.slow("Test frameworks and a notebook start.")
def test_each_test_of_unittest_has_its_own_lifespan() -> None:
    assert run("-W", "error", "unittest_loops.py").rstrip().endswith("OK")


@pytest.mark.slow("Test frameworks and a notebook start.")
def test_each_thread_has_its_own_lifespan() -> None:
    assert run("-W", "error", "threads.py") == "done\n"


NOTEBOOK = [
    "from shop import mcp\nfrom funcmcp.testing import Client",
    "async with Client(mcp) as client:\n    print((await client.call_tool('use')).text)",
    "import asyncio\nserving = asyncio.create_task(mcp.run_async('http', port=0))\nawait asyncio.sleep(0.5)",
    "async with Client(mcp) as client:\n    print((await client.call_tool('use_in_a_thread')).text)",
    "serving.cancel()\ntry:\n    await serving\nexcept asyncio.CancelledError:\n    print('cancelled')",
    "serving = asyncio.create_task(mcp.run_async('http', port=0))\nawait asyncio.sleep(0.5)",
    "mcp.stop()\nawait serving\nprint('stopped')",
    "async with mcp.lifespan():\n    print((await mcp.call_tool('use')).text)",
]


@pytest.mark.slow("Test frameworks and a notebook start.")
def test_a_notebook_uses_starts_and_stops_the_server() -> None:
    kernel, client = start_new_kernel(startup_timeout=PATIENCE, env=ENVIRONMENT, cwd=str(FILES))
    printed = ""
    try:
        for cell in NOTEBOOK:
            messages: list[dict[str, object]] = []
            reply = client.execute_interactive(cell, timeout=PATIENCE, output_hook=messages.append)
            assert reply["content"]["status"] == "ok", reply["content"]
            for message in messages:
                if message["msg_type"] == "stream" and message["content"]["name"] == "stdout":  # type: ignore[index]
                    printed += message["content"]["text"]  # type: ignore[index]
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)
    assert printed.splitlines() == ["open open", "open open", "cancelled", "stopped", "open open"]
