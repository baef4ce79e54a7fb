"""Requests a second and latencies of calls, reads, prompts and lists."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from targets import FRAMEWORKS, LOAD_CORE, RUN, Target, rotated, running
from traffic import (
    ERAS,
    GETS,
    HANDSHAKE,
    VARYING,
    Load,
    Request,
    call,
    check_call,
    check_get,
    check_list,
    load,
    open_session,
    request,
    variants,
    write_body,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plan import Plan

Row = dict[str, Any]
MEASURED = (*FRAMEWORKS, RUN)


def calls(plan: Plan) -> list[Row]:
    """Measure `tools/call` of both tools, in both eras, at each concurrency, as async and as plain functions."""
    rows = []
    for plain in (False, True):
        with running((*MEASURED, "floor"), BENCH_PLAIN=int(plain)) as targets:
            for era in ERAS:
                for tool in ("add", "create_order"):
                    messages = {name: _call(target, era, tool) for name, target in targets.items()}
                    answer = check_call(targets["funcmcp"].port, messages["funcmcp"], tool)
                    for connections in plan.concurrency:
                        labels = {"row": "tools/call", "tool": tool, "era": era, "connections": connections}
                        labels["function"] = "plain" if plain else "async"
                        rows.append({**labels, **_compare(plan, targets, messages, answer, connections)})
                        plan.show(rows[-1])
    return rows


def varied(plan: Plan) -> list[Row]:
    """Measure `tools/call` of requests that differ: in nothing, in their ids and arguments, or in their traceparent."""
    rows = []
    with running((*MEASURED, "floor")) as targets:
        for era in ERAS:
            for varying in VARYING:
                messages = {}
                for name, target in targets.items():
                    session = _session(target, era)
                    messages[name] = variants(era, varying, session)
                    check_call(target.port, call(era, "add", session), "add")
                answer = check_call(targets["funcmcp"].port, call(era, "add", _session(targets["funcmcp"], era)), "add")
                labels = {"row": "tools/call", "tool": "add", "era": era, "varies": varying, "connections": 16}
                rows.append({**labels, **_compare(plan, targets, messages, answer, 16)})
                plan.show(rows[-1])
    return rows


def resources(plan: Plan) -> list[Row]:
    """Measure `resources/read` of a template with one typed variable."""
    return _gets(plan, "resources/read")


def prompts(plan: Plan) -> list[Row]:
    """Measure `prompts/get` with one argument and one message."""
    return _gets(plan, "prompts/get")


def _gets(plan: Plan, method: str) -> list[Row]:
    rows = []
    with running((*MEASURED, "floor")) as targets:
        for era in ERAS:
            messages = {
                name: request(era, method, GETS[method][0], _session(target, era)) for name, target in targets.items()
            }
            answers = {name: check_get(targets[name].port, message, method) for name, message in messages.items()}
            if len(answers["floor"]) != len(answers["funcmcp"]):
                raise RuntimeError(f"The floor's answer has another size: {answers['floor']!r}, {answers['funcmcp']!r}")
            for connections in plan.concurrency:
                labels = {"row": method, "era": era, "function": "async", "connections": connections}
                rows.append({**labels, **_compare(plan, targets, messages, answers["funcmcp"], connections)})
                plan.show(rows[-1])
    return rows


def many_tools(plan: Plan) -> list[Row]:
    """Measure `tools/list` with 10, 100 and 1,000 tools, and `tools/call` with 10 and 1,000."""
    rows = []
    for tools in plan.tools:
        with running(FRAMEWORKS, BENCH_TOOLS=tools) as targets:
            for era in ERAS:
                for method in ("tools/list", "tools/call"):
                    labels = {"row": method, "tools": tools, "era": era, "connections": 1}
                    messages, answer = _prepare(targets, era, method, tools)
                    rows.append({**labels, **_compare(plan, targets, messages, answer, 1)})
                    plan.show(rows[-1])
    return rows


def _prepare(targets: dict[str, Target], era: str, method: str, tools: int) -> tuple[dict[str, Request], bytes]:
    if method == "tools/call":
        messages = {name: _call(target, era, "add") for name, target in targets.items()}
        return messages, check_call(targets["funcmcp"].port, messages["funcmcp"], "add")
    messages = {name: request(era, method, {}, _session(target, era)) for name, target in targets.items()}
    answers = {name: check_list(targets[name].port, message, tools) for name, message in messages.items()}
    return messages, answers["funcmcp"]


def _session(target: Target, era: str) -> str | None:
    if era == HANDSHAKE and target.name in MEASURED:
        return open_session(target.port)
    return None


def _call(target: Target, era: str, tool: str) -> Request:
    message = call(era, tool, _session(target, era))
    check_call(target.port, message, tool)
    return message


def _compare(
    plan: Plan,
    targets: dict[str, Target],
    messages: Mapping[str, Request | list[Request]],
    answer: bytes,
    connections: int,
) -> Row:
    """Load every target in turn, round after round; `const` answers what funcmcp answered."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        const = stack.enter_context(running(("const",), BENCH_BODY=write_body(answer, folder, "answer.json")))
        everyone = {**targets, **const}
        messages = {**messages, "const": messages["funcmcp"]}
        rounds: list[dict[str, Load]] = []
        processor_times: list[dict[str, float]] = []
        for turn in range(plan.rounds + 1):
            seconds = plan.seconds if turn else plan.warm_up
            loads, microseconds = {}, {}
            for name in rotated(tuple(everyone), turn):
                target, before = everyone[name], everyone[name].cpu()
                loads[name] = load(
                    target.port, messages[name], connections=connections, seconds=seconds, core=LOAD_CORE
                )
                microseconds[name] = (target.cpu() - before) / loads[name].requests * 1e6
            if turn:  # the first one only warms up
                rounds.append(loads)
                processor_times.append(microseconds)
    times = {name: round(median(turn[name] for turn in processor_times), 1) for name in processor_times[0]}
    return {**summary(rounds), "cpu_microseconds": times}


def summary(rounds: list[dict[str, Load]]) -> Row:
    """Return medians for each target, and medians of its share of each limit in the same round."""
    row: Row = {"answers_per_second": {}, "p50_ms": {}, "p99_ms": {}}
    for name in rounds[0]:
        row["answers_per_second"][name] = round(median(loads[name].rate for loads in rounds))
        row["p50_ms"][name] = round(median(loads[name].p50 for loads in rounds), 3)
        row["p99_ms"][name] = round(median(loads[name].p99 for loads in rounds), 3)
    for limit in ("floor", "const"):
        if limit in rounds[0]:
            row[f"share_of_{limit}"] = {
                name: round(median(loads[name].rate / loads[limit].rate for loads in rounds), 3)
                for name in MEASURED
                if name in rounds[0]
            }
    return row
