"""Tasks in a real Redis, run by several processes, one of which is killed."""

from __future__ import annotations

import asyncio
import collections
import sys
from typing import TYPE_CHECKING, Any

from funcmcp.serving import serving_of
from tests.cluster.task_worker import make_server
from tests.redis_server import redis_server
from tests.server.task_parts import create, get
from tests.serving import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

TASKS = 40
PATIENCE = 30.0
STOPPED = "The server was stopped while the tool ran. Part of its work may be done."


async def start(url: str, runs: Path) -> asyncio.subprocess.Process:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.cluster.task_worker", url, str(runs)),
        cwd=REPOSITORY,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert await asyncio.wait_for(process.stdout.readline(), PATIENCE) == b"ready\n"
    return process


async def test_tasks_of_a_killed_process_run_again_only_if_they_may_and_each_ends_once(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    with redis_server() as redis:
        client = make_server(redis.url, runs, concurrency=0)
        server = serving_of(client).server
        killed, surviving = await start(redis.url, runs), await start(redis.url, runs)
        tools = {await create(server, name): name for name in ["again", "once"] * (TASKS // 2)}
        await asyncio.sleep(0.3)
        running = set(runs.read_text(encoding="utf-8").split())
        killed.kill()
        await killed.wait()
        ended: dict[str, dict[str, Any]] = {}
        async with asyncio.timeout(PATIENCE):
            while len(ended) < TASKS:
                await asyncio.sleep(0.1)
                for task_id in tools.keys() - ended.keys():
                    task = await get(server, task_id)
                    if task["status"] != "working":
                        ended[task_id] = task
        surviving.terminate()
        await surviving.wait()
        assert {task_id: await get(server, task_id) for task_id in tools} == ended
        await serving_of(client).aclose()
    counts = collections.Counter(runs.read_text(encoding="utf-8").split())
    failed = {task_id for task_id, task in ended.items() if task["status"] == "failed"}
    assert len(running) > 10
    assert failed
    assert {tools[task_id] for task_id in failed} == {"once"}
    assert {ended[task_id]["error"]["message"] for task_id in failed} == {STOPPED}
    assert {counts[task_id] for task_id, name in tools.items() if name == "once"} == {1}
    again = {task_id for task_id, count in counts.items() if count == 2}
    assert again
    assert {tools[task_id] for task_id in again} == {"again"}
