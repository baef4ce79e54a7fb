"""Function apps in Microsoft's worker library: cold start, and plain functions that wait.

The library is for Python 3.13, so it has a virtual environment of its own, `benchmarks/.venv-3.13`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from targets import SERVER_CORE, SERVERS, environment, rotated
from traffic import PER_REQUEST, request

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plan import Plan

HERE = Path(__file__).parent
PYTHON = HERE / ".venv-3.13" / "bin" / "python"
BARE = "bare"
APPS = (BARE, "mcp_tool", "funcmcp_triggers", "funcmcp_http", "fastmcp_asgi")
SECONDS = 60


@dataclass(frozen=True)
class Start:
    """How one start went, in seconds.

    Attributes:
        ready: from the start of the process to the first answer.
        cpu: what the process had computed by then.
        together: 32 calls at once of a plain function that waits 50 ms.
    """

    ready: float
    cpu: float
    together: float


def function_apps(plan: Plan) -> list[dict[str, Any]]:
    """Measure each app in turn, in a process of its own for each start."""
    if not _install():
        print("No rows of Azure: they need Python 3.13, which the worker library is for.", file=sys.stderr)
        return []
    starts: dict[str, list[Start]] = {name: [] for name in APPS}
    for turn in range(plan.starts + 1):
        for name in rotated(APPS, turn):
            measured = _start(name)
            if turn:
                starts[name].append(measured)
    cold = {
        name: {
            "until the first answer": _ms(start.ready for start in starts[name]),
            "CPU until then": _ms(start.cpu for start in starts[name]),
            "CPU beyond bare": _ms(
                start.cpu - bare.cpu for start, bare in zip(starts[name], starts[BARE], strict=True)
            ),
        }
        for name in APPS
    }
    together = {name: {"until all have answered": _ms(start.together for start in starts[name])} for name in APPS}
    rows = [
        {"row": "cold start in the worker library", "apps": cold},
        {"row": "32 calls at once of a plain function that waits 50 ms", "apps": together},
    ]
    for row in rows:
        plan.show(row)
    return rows


def _ms(seconds: Iterable[float]) -> float:
    return round(median(seconds) * 1000, 1)


def _start(name: str) -> Start:
    arguments: dict[str, dict[str, Any]] = {"add": {"a": 17, "b": 4}, "nap": {}}
    messages = {
        tool: vars(request(PER_REQUEST, "tools/call", {"name": tool, "arguments": values}))
        for tool, values in arguments.items()
    }
    command = ["taskset", "-c", str(SERVER_CORE), str(PYTHON), str(SERVERS / "worker_library.py")]
    began = time.perf_counter()
    with subprocess.Popen(
        [*command, str(SERVERS / "apps" / name)],
        env=environment({"BENCH_MESSAGES": json.dumps(messages)}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        ready = time.perf_counter() - began
        output, errors = process.communicate(timeout=SECONDS)
    if process.returncode or not output:
        raise RuntimeError(f"{name}: {errors}")
    first, last = json.loads(line), json.loads(output)
    if "21" not in first["answer"] or "true" not in last["answer"]:
        raise RuntimeError(f"{name} answered {first['answer']} and {last['answer']}.")
    return Start(ready, first["cpu_seconds"], last["seconds"])


def _install() -> bool:
    """Make the virtual environment if need be; return False where there is no Python 3.13 for it."""
    expected = (HERE / "requirements-azure.txt").read_text()
    mark = PYTHON.parent.parent / ".ready"
    if mark.exists() and mark.read_text() == expected:
        return True
    completed = subprocess.run(
        [HERE.parent / "scripts" / "find-python.sh", "v == (3, 13)", "python3.13", *_of_pyenv()],
        capture_output=True,
        text=True,
        check=False,
    )
    if completed.returncode:
        return False
    subprocess.run([completed.stdout.strip(), "-m", "venv", "--clear", PYTHON.parent.parent], check=True)
    install = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    requirements = str(HERE / "requirements-azure.txt")
    subprocess.run([*install, "-r", requirements, "-e", f"{HERE.parent}[azure]"], check=True)
    mark.write_text(expected)
    return True


def _of_pyenv() -> list[str]:
    return [str(path) for path in Path.home().glob(".pyenv/versions/3.13.*/bin/python")]
