"""``funcmcp tasks`` on a server whose tasks are in PostgreSQL."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from funcmcp._server.tasks.service import task_digest
from funcmcp.tasks import NewTask, PostgresTasks, TaskKey
from tests.cli.forking import funcmcp
from tests.patience import PATIENCE
from tests.postgres_server import postgres_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow("Workers and a database start.")

SERVER = """
from funcmcp import MCPServer
from funcmcp.tasks import PostgresTasks

mcp = MCPServer("Reports", tasks=PostgresTasks({url!r}, timeout=100))
"""


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with postgres_server() as server:
        (tmp_path / "server.py").write_text(SERVER.format(url=server.url))
        yield server.url


def test_an_operator_lists_shows_cancels_and_drains(url: str, tmp_path: Path) -> None:
    async def create() -> None:
        store = PostgresTasks(url, timeout=PATIENCE)
        store.bind("Reports")
        await store.create(NewTask(TaskKey("a" * 32, "1" * 44), "export", b"{}"))
        await store.aclose()

    asyncio.run(create())
    name = task_digest("1" * 44)
    listed = json.loads(funcmcp("tasks", "list", "server.py", "--json", folder=tmp_path).stdout)
    assert [(task["task"], task["tool"], task["status"]) for task in listed] == [(name, "export", "working")]
    waiting = funcmcp("tasks", "drain", "server.py", "--timeout", "0.1", folder=tmp_path)
    assert waiting.returncode == 1
    assert funcmcp("tasks", "cancel", "server.py", name, folder=tmp_path).returncode == 0
    shown = json.loads(funcmcp("tasks", "show", "server.py", name, "--json", folder=tmp_path).stdout)
    assert shown["status"] == "cancelled"
    assert funcmcp("tasks", "drain", "server.py", "--timeout", "5", folder=tmp_path).returncode == 0
