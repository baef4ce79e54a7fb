"""Plain functions run in threads of `funcmcp._authoring.calling.threads`, not in those of asyncio."""

from __future__ import annotations

import re
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
_OTHER_THREADS = re.compile(r"asyncio\.to_thread|run_in_executor|ThreadPoolExecutor\(")

ALLOWED = {
    "funcmcp/_compat/resource_kinds.py": "reads a file of the author outside of a request",
    "funcmcp/_compat/agent_skills.py": "reads the skills of a folder again, once in a request",
    "funcmcp/_compat/file_provider.py": "imports files of the author again, one request at a time",
    "funcmcp/_compat/sdk_components.py": "reads a file of the author outside of a request",
    "funcmcp/_providers/python_files.py": "looks for files that have changed, at most once in a second",
    "funcmcp/_serving/composition.py": "closes the port of the metrics, once for each server",
    "funcmcp/_state/tasks/sqlite_file.py": "a connection belongs to a thread: one for reads, one for writes",
    "funcmcp/_state/uploads.py": "writes files of callers, one part at a time for each request",
    "funcmcp/_adapters/asgi/openapi_tools.py": "runs the event loop that reads a document while a server is made",
    "funcmcp/_providers/skills.py": "looks for skills that have changed, at most once in a second",
    "funcmcp/_oauth_proxy/upstream.py": "imports httpx2, once for each process",
    "funcmcp/_client/token_file.py": "reads the key of the file from the keyring, once for each file",
    "funcmcp/_client/sign_in.py": "opens a browser, once for each sign-in",
    "funcmcp/testing/_state_stores.py": "runs event loops of their own in a test",
    "funcmcp_cli/connect.py": "opens a browser, once for each command",
    "funcmcp_cli/host.py": "imports modules while the host starts",
    "funcmcp_cli/migrate/plan.py": "reads a project in a command",
    "funcmcp_host/workers/python_main.py": "runs in the app's process, which has no modules of funcmcp",
    "funcmcp_host/workers/rpc.py": "one at a time: checks who has opened a connection",
}
"""Modules with other threads, and why calls can't use up the threads of each other there."""


def test_only_named_modules_have_other_threads() -> None:
    modules = {
        module.relative_to(SOURCE).as_posix()
        for module in SOURCE.rglob("*.py")
        if _OTHER_THREADS.search(module.read_text(encoding="utf-8"))
    }
    assert modules == ALLOWED.keys()
