"""Plain functions run in threads of `funcmcp._authoring.calling.threads`, not in those of asyncio."""

from __future__ import annotations

import re
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "funcmcp"
_OTHER_THREADS = re.compile(r"asyncio\.to_thread|run_in_executor|ThreadPoolExecutor\(")

ALLOWED = {
    "_serving.py": "closes the port of the metrics, once for each server",
    "_state/tasks/sqlite_file.py": "a connection belongs to a thread: one for reads, one for writes",
    "_adapters/asgi/openapi_tools.py": "runs the event loop that reads a document while a server is made",
    "_client/sign_in.py": "opens a browser, once for each sign-in",
    "_cli/connect.py": "opens a browser, once for each command",
    "_cli/host.py": "imports modules while the host starts",
    "_cli/migrate/plan.py": "reads a project in a command",
    "_functions_host/workers/python_main.py": "runs in the app's process, which has no modules of funcmcp",
    "_functions_host/workers/rpc.py": "one at a time: checks who has opened a connection",
}
"""Modules with other threads, and why calls can't use up the threads of each other there."""


def test_only_named_modules_have_other_threads() -> None:
    modules = {
        module.relative_to(SOURCE).as_posix()
        for module in SOURCE.rglob("*.py")
        if _OTHER_THREADS.search(module.read_text(encoding="utf-8"))
    }
    assert modules == ALLOWED.keys()
