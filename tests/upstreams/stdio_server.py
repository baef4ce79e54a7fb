"""A server of 2025-11-25 on stdio without a library, so that it starts at once. It counts its calls."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

TOOLS = ("count", "pid", "silent", "crash", "noise", "child", "variable", "slow_answer")
FOLDER = os.environ.get("CHANGING_FOLDER")
"""A folder with a file of the names of the tools; None for all of them, whose changes are not announced."""

_lock = threading.Lock()
_waiting: list[Any] = []
_counter = itertools.count(1)


def write(message: dict[str, Any]) -> None:
    with _lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def answer(request_id: Any, text: str) -> None:
    write({"id": request_id, "result": {"content": [{"type": "text", "text": text}]}})


def stay_silent(request_id: Any, arguments: dict[str, Any], meta: dict[str, Any]) -> None:
    _waiting.append(request_id)
    if "progressToken" in meta:
        params = {"progressToken": meta["progressToken"], "progress": 1}
        write({"method": "notifications/progress", "params": params})
    if "file" in arguments:
        with Path(arguments["file"]).open("a", encoding="utf-8") as file:
            file.write("called\n")


def answer_all() -> str:
    """Answer all calls of `silent`, the last one first."""
    for waiting in reversed(_waiting):
        answer(waiting, "late")
    _waiting.clear()
    return "done"


def list_tools() -> list[str]:
    """Return the names of the tools; leave the number of the process in the folder that has them."""
    if FOLDER is None:
        return list(TOOLS)
    Path(FOLDER, f"listed-{os.getpid()}").touch()
    return Path(FOLDER, "tools").read_text(encoding="utf-8").split()


def write_noise(lines: int) -> str:
    sys.stderr.write(("x" * 100 + "\n") * lines + "\x1b[31mred\n")
    sys.stderr.flush()
    return "written"


def start_child() -> str:
    child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    return str(child.pid)


def call(request_id: Any, name: str, arguments: dict[str, Any], meta: dict[str, Any]) -> None:
    count = next(_counter)
    if name == "silent":
        stay_silent(request_id, arguments, meta)
        return
    texts = {
        "count": lambda: str(count),
        "pid": lambda: str(os.getpid()),
        "crash": lambda: os._exit(7),
        "noise": lambda: write_noise(arguments["lines"]),
        "child": start_child,
        "variable": lambda: os.environ.get(arguments["name"], "missing"),
        "slow_answer": answer_all,
    }
    answer(request_id, texts[name]())


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        method, request_id, params = message.get("method"), message.get("id"), message.get("params") or {}
        if method == "initialize":
            info = {"name": "counting", "version": "1"}
            capabilities = {"tools": {} if FOLDER is None else {"listChanged": True}}
            result = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info}
            write({"id": request_id, "result": result})
        elif method == "tools/list":
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in list_tools()]
            write({"id": request_id, "result": {"tools": tools}})
        elif method == "tools/call":
            call(request_id, params["name"], params.get("arguments") or {}, params.get("_meta") or {})
        elif method == "ping":
            write({"id": request_id, "result": {}})
        elif request_id is not None:
            write({"id": request_id, "error": {"code": -32601, "message": "Method not found"}})


main()
