"""Tasks of real HTTP callers at three instances of ``funcmcp run``, while instances, stores and connections fail.

``make soak-tasks`` runs the storm that SOAK_STORM names, or all of them, with SOAK_TASKS (300) calls each, and the
rolling restart (``rolling``). It prints a row of the table in docs/development/storms.md for each, and exits with 1 if
something went wrong.

How it works: `storms.callers` calls tools as tasks, answers their questions and cancels some; more than a hundred tasks
run at once. Each run writes a line to a file when it begins, and the line has the number of the call. When all tasks
have ended and the faults are over, the file and what the callers know must agree: a run that began did so at most
`attempts` times for each part of a task that a question ends, and each task that was completed ran. A task that failed
because its process stopped has begun, unless the storm ends or suspends processes or the store. No task is lost, is
stuck, or changes after its end.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import tempfile
from collections import Counter, defaultdict
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import httpx2

from tests.cluster.proxy import proxied
from tests.cluster.storms.callers import REQUEST_SECONDS, TOOLS, Call, Callers, Lost
from tests.cluster.storms.instances import Instance
from tests.cluster.storms.places import Place, place_of
from tests.cluster.storms.storms import STORMS, Storm
from tests.cluster.task_worker import Ledger, Step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.cluster.storms.faults import Fault

INSTANCES = 3
PLACES = 50
STOPPED = "The server was stopped while the tool ran. Part of its work may be done."
UNRUN = "failed without a run"
FIRST_PAUSE = (0.0, 0.2)
"""Seconds before the first fault. A call takes longer, so that the shortest storm has a fault."""

KINDS = ["ran too often", "lost", "stuck", UNRUN, "other"]


@dataclass
class Trial:
    """What happened in a storm.

    Attributes:
        storm: Its name.
        callers: The callers, with their calls.
        steps: Of the runs.
        seconds: How long it took.
        faults: How often each fault happened.
        cuts: What the port before Redis did.
        problems: In words; each begins with its kind and a colon.
        unrun: How many tasks failed as interrupted and had not begun.
    """

    storm: Storm
    callers: Callers
    steps: list[Step] = field(default_factory=list)
    seconds: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    cuts: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    unrun: int = 0

    def counts(self) -> Counter[str]:
        """Return what the columns of the table count."""
        kinds = [problem.partition(":")[0] for problem in self.problems]
        counts = Counter(kind if kind in KINDS else "other" for kind in kinds)
        counts[UNRUN] = self.unrun
        return counts

    def most_running(self) -> int:
        """Return how many runs that came to their end ran at once."""
        begins = {(step.task_id, step.process): step.time for step in self.steps if step.kind == "begin"}
        changes = []
        for step in self.steps:
            if step.kind == "end" and (step.task_id, step.process) in begins:
                changes += [(begins[step.task_id, step.process], 1), (step.time, -1)]
        return max(accumulate(change for _, change in sorted(changes)), default=0)

    def outcomes(self) -> Counter[str]:
        """Return how many tasks had each outcome, as their callers know it."""
        return Counter(_outcome(call) for call in self.callers.calls)


def _outcome(call: Call) -> str:
    if call.end is None:
        return "unknown" if call.unknown else "none"
    if call.end["status"] == "failed" and _message(call) == STOPPED:
        return "interrupted"
    status: str = call.end["status"]
    return status


def _message(call: Call) -> str | None:
    assert call.end is not None
    message: str | None = call.end.get("error", {}).get("message")
    return message


async def run(storm: Storm, tasks: int, *, most_callers: int = 1000) -> Trial:
    """Run a storm."""
    callers = min(storm.callers, most_callers)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soak-")))
        place = stack.enter_context(place_of(storm))
        ledger = Ledger(folder / "runs")
        variables = {"LEDGER": str(ledger.path), "PLACES": str(PLACES), **storm.variables()}
        instances = [Instance(folder, place, variables, drain=storm.drain) for _ in range(INSTANCES)]
        for instance in instances:
            stack.callback(instance.stop)
        await asyncio.gather(*(instance.start() for instance in instances))
        url = None
        if storm.proxied:
            url = stack.enter_context(proxied([instance.url for instance in instances], folder))
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=callers)
        async with httpx2.AsyncClient(timeout=REQUEST_SECONDS, limits=limits, trust_env=False) as http:
            trial = Trial(storm, Callers(instances, http, storm.seconds, url))
            begin = monotonic()
            over = asyncio.Event()
            disturbing = [disturb(trial, storm.of_processes, [instance], place, over) for instance in instances]
            disturbing.append(disturb(trial, storm.of_store, instances, place, over))
            faults = asyncio.gather(*disturbing)
            await asyncio.gather(*(trial.callers.play(tasks) for _ in range(callers)))
            over.set()
            await faults
            trial.cuts = place.cuts()
            await asyncio.sleep(storm.lease)
            trial.steps = ledger.steps()
            await check(trial)
            trial.seconds = monotonic() - begin
        for instance in instances:
            note_tracebacks(trial, instance)
    return trial


async def disturb(
    trial: Trial, faults: Sequence[Fault], instances: Sequence[Instance], place: Place, over: asyncio.Event
) -> None:
    """Let one thing fail after the other, until all calls are over; the first one before the first calls can be."""
    pause = FIRST_PAUSE
    while faults and not over.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), random.uniform(*pause))
            return
        pause = trial.storm.pause
        fault = random.choice(faults)
        trial.faults[getattr(fault, "__name__", "").replace("_", " ")] += 1
        await fault(instances, place)


async def check(trial: Trial) -> None:
    """Compare what the callers know with the file of the runs."""
    trial.problems += trial.callers.problems
    begins: dict[int, Counter[str]] = defaultdict(Counter)
    for step in trial.steps:
        begins[step.call][step.kind] += 1
    tasks: dict[int, set[str]] = defaultdict(set)
    for step in trial.steps:
        tasks[step.call].add(step.task_id)
    for call in trial.callers.calls:
        problems = problems_of(call, begins[call.number], len(tasks[call.number]))
        unrun = [problem for problem in problems if problem.startswith(UNRUN)]
        trial.unrun += len(unrun)
        trial.problems += [problem for problem in problems if problem not in unrun or not trial.storm.loses_claims]
    if trial.storm.proxied:
        trial.problems += [f"other: {count} requests: {kind}" for kind, count in trial.callers.refused.items()]
        interrupted = [call.number for call in trial.callers.calls if _outcome(call) == "interrupted"]
        trial.problems += [f"other: call {number} was interrupted" for number in interrupted]
    for call in trial.callers.calls:
        if call.task_id and call.end is None:
            trial.problems.append(await later(trial, call))
    ended = [call for call in trial.callers.calls if call.end is not None]
    trial.problems += [problem for call in ended if (problem := await change_of(trial, call))]


def problems_of(call: Call, steps: Counter[str], tasks: int) -> list[str]:
    """Return what is wrong with the runs and the outcome of a call, in words."""
    problems = []
    allowed = TOOLS[call.tool]
    name = f"call {call.number} ({call.tool}, {'with' if call.key else 'without'} a key)"
    if tasks > 1 or steps["begin"] > allowed * (call.answers + 1) or steps["answered"] > allowed:
        problems.append(f"ran too often: {name} began {steps['begin']} times in {tasks} tasks, {call.answers} answers")
    outcome = _outcome(call)
    if outcome == "completed" and not steps["end"]:
        problems.append(f"other: {name} is completed without a run")
    if outcome == "interrupted" and not steps["begin"]:
        problems.append(f"{UNRUN}: {name}")
    if outcome == "failed":
        problems.append(f"other: {name} failed: {_message(call)}")
    if outcome == "completed" and call.end is not None and call.end["result"].get("isError"):
        problems.append(f"other: {name} has the result {call.end['result']}")
    if outcome == "cancelled" and not call.cancelled:
        problems.append(f"other: {name} was cancelled by nobody")
    return problems


async def later(trial: Trial, call: Call) -> str:
    """Return in words what became of a task on which its caller has given up."""
    try:
        task = await trial.callers.get(call)
    except Lost:
        task = {"status": "not there any more"}
    steps = [(step.kind, step.process, round(step.time, 1)) for step in trial.steps if step.call == call.number]
    return f"stuck: call {call.number} ({call.tool}) was {call.status or 'not read'}, is {task} now; steps: {steps}"


async def change_of(trial: Trial, call: Call) -> str | None:
    """Return in words how a task has changed after its end."""
    try:
        task = await trial.callers.get(call)
    except Lost:
        evicts = len(trial.callers.calls) > trial.storm.kept
        return None if evicts else f"lost: the task of call {call.number} ({call.tool}), after its end"
    return None if task == call.end else f"other: the task of call {call.number} ({call.tool}) changed after its end"


def note_tracebacks(trial: Trial, instance: Instance) -> None:
    """Note faults that an instance has logged."""
    log = instance.log.read_text(encoding="utf-8")
    if "Traceback" in log:
        trial.problems.append(f"other: an instance has logged a traceback:\n{log[log.index('Traceback') :][:3000]}")


def row_of(trial: Trial) -> str:
    """Return the row of the table."""
    counts = trial.counts()
    faults = ", ".join(f"{count} x {name}" for name, count in sorted(trial.faults.items()))
    if trial.cuts:
        cuts = sum(sum(places.values()) for places in trial.cuts["cuts"].values())
        port = f"{cuts} replies lost, {trial.cuts['delays']} late, {trial.cuts['resets']} connections reset"
        faults = ", ".join([faults, port] if faults else [port])
    cells = [
        f"`{trial.storm.key}`",
        trial.storm.name,
        trial.storm.store,
        faults,
        str(len(trial.callers.calls)),
        *(str(counts[kind]) for kind in KINDS),
        str(trial.outcomes()["interrupted"] - counts[UNRUN]),
    ]
    return " | ".join(["", *cells, ""]).strip()


def print_summary(trial: Trial) -> None:
    """Print what was done and what went wrong."""
    lines = [
        f"time:     {trial.seconds:.0f} s",
        "tasks:    " + ", ".join(f"{name} {count}" for name, count in sorted(trial.outcomes().items())),
        f"runs:     {sum(step.kind == 'begin' for step in trial.steps)}, {trial.most_running()} of them at once",
        "refused:  " + ", ".join(f"{name} {count}" for name, count in sorted(trial.callers.refused.items())),
    ]
    for name, places in trial.cuts.get("cuts", {}).items():
        lines.append(f"cuts:     {name} {sum(places.values())}, after {len(places)} different numbers of replies")
    lines += [f"problems: {len(trial.problems)}", *trial.problems[:30], row_of(trial), ""]
    sys.stdout.write("\n".join(lines))
    sys.stdout.flush()


async def main(names: list[str], tasks: int) -> bool:
    """Run storms one after the other; return whether all went well."""
    well = True
    for name in names:
        sys.stdout.write(f"\n{name}\n")
        trial = await run(STORMS[name], tasks)
        print_summary(trial)
        well = well and not trial.problems
    return well


if __name__ == "__main__":
    storms = os.environ.get("SOAK_STORM", "").split() or [*STORMS]
    sys.exit(0 if asyncio.run(main(storms, int(os.environ.get("SOAK_TASKS", "300")))) else 1)
