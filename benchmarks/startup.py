"""Time of import, time from process start to the first answered call, and memory."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from statistics import median
from typing import TYPE_CHECKING, Any

from targets import FRAMEWORKS, LOAD_CORE, SERVER_CORE, SERVERS, Target, environment, rotated, running
from traffic import ERAS, PER_REQUEST, Request, call, check_call, initialize, load, many, open_session

if TYPE_CHECKING:
    from plan import Plan

Row = dict[str, Any]
MEASURED = (*FRAMEWORKS, "floor")


def imports(plan: Plan) -> list[Row]:
    """Measure the import of a module with two tools, with and without compiled files."""
    rows = []
    for compiled in (True, False):
        times: dict[str, list[float]] = {name: [] for name in (*MEASURED, "python")}
        for turn in range(plan.starts + 1):
            for name in rotated(tuple(times), turn):
                took = _import_time(name, compiled=compiled)
                if turn:
                    times[name].append(took)
        rows.append({"row": "import", "compiled_files": compiled, **_medians(times)})
        plan.show(rows[-1])
    return rows


def _import_time(name: str, *, compiled: bool) -> float:
    code = "pass" if name == "python" else f"import {name}_server"
    with tempfile.TemporaryDirectory() as empty:
        nothing = {} if compiled else {"PYTHONPYCACHEPREFIX": empty, "PYTHONDONTWRITEBYTECODE": "1"}
        command = ["taskset", "-c", str(SERVER_CORE), sys.executable, "-c", code]
        started = time.perf_counter()
        subprocess.run(command, cwd=SERVERS, env=environment(nothing), check=True, timeout=120)
        return time.perf_counter() - started


def first_calls(plan: Plan) -> list[Row]:
    """Measure the time from process start to the first answered call of 2026-07-28."""
    rows = []
    for tools in (2, max(plan.tools)):
        times: dict[str, list[float]] = {name: [] for name in MEASURED}
        for turn in range((plan.starts if tools == 2 else max(1, plan.starts // 3)) + 1):
            for name in rotated(MEASURED, turn):
                target = Target(name, BENCH_TOOLS=tools)
                try:
                    target.wait()
                    check_call(target.port, call(PER_REQUEST, "add"), "add")
                    took = time.perf_counter() - target.started
                finally:
                    target.stop()
                if turn:
                    times[name].append(took)
        rows.append({"row": "start to first call", "tools": tools, **_medians(times)})
        plan.show(rows[-1])
    return rows


def _medians(times: dict[str, list[float]]) -> Row:
    medians = {name: median(values) for name, values in times.items()}
    return {
        "milliseconds": {name: round(value * 1000, 1) for name, value in medians.items()},
        "times_the_floor": {
            name: round(median(a / b for a, b in zip(times[name], times["floor"], strict=True)), 2)
            for name in FRAMEWORKS
        },
    }


def memory(plan: Plan) -> list[Row]:
    """Measure resident memory while requests go by, and for each session of the handshake era."""
    rows = []
    for era in ERAS:
        with running(MEASURED) as targets:
            kib: dict[str, list[int]] = {}
            for name, target in targets.items():
                session = open_session(target.port) if era != PER_REQUEST and name != "floor" else None
                kib[name] = _growth(target, call(era, "add", session), plan.requests)
        grown = {name: round((marks[2] / marks[1] - 1) * 100, 2) for name, marks in kib.items()}
        labels = {"row": "memory", "era": era, "after_requests": [0, *plan.requests]}
        rows.append({**labels, "resident_kib": kib, "growth_percent_after_the_first": grown})
        plan.show(rows[-1])
    rows.append(_sessions(plan))
    plan.show(rows[-1])
    return rows


def _growth(target: Target, message: Request, requests: tuple[int, int]) -> list[int]:
    marks = [target.memory()]
    for count in (requests[0], requests[1] - requests[0]):
        sent = 0.0
        while sent < count:
            round_load = load(target.port, message, connections=16, seconds=1, core=LOAD_CORE)
            sent += round_load.rate
        marks.append(target.memory())
    return marks


def _sessions(plan: Plan) -> Row:
    """Open many sessions. The peers run without sessions here, so this is about funcmcp alone."""
    message = initialize()
    with running(("funcmcp",)) as targets:
        target = targets["funcmcp"]
        many(target.port, message, 200)
        before = target.memory()
        many(target.port, message, plan.sessions)
        return {"row": "memory per session", "kib": round((target.memory() - before) / plan.sessions, 2)}
