"""``funcmcp tasks``: what operators see of the tasks of a server, and change.

The commands name a task by the digest of its id that logs and traces have. With the id itself a reader could use the
task of a caller without credentials.
"""

# ruff: noqa: PLC0415 - what a command needs is imported when it runs

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from time import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from funcmcp._protocol.tasks import FAILED, STATUSES
from funcmcp_cli.commands import Target, app
from funcmcp_cli.failure import Failure
from funcmcp_cli.output import write_json, write_line, write_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from funcmcp._server.tasks.service import Tasks
    from funcmcp.tasks import TaskRecord, UnreadableTask

Names = Annotated[
    list[str],
    typer.Argument(
        metavar="TASK...", help="The name that `list` shows, or at least its first 6 characters.", show_default=False
    ),
]
AsJSON = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]

_RUNNING = "running"
_STATUSES = sorted([*STATUSES, _RUNNING])
_NOT_FAILED = "Only tasks that have failed can be retried."
_LOST_CALL = "Its arguments were not kept: an earlier version ended it, or it was removed meanwhile."
_BY_NEWER_VERSION = "written by a newer version of the server"
_SHORTEST_NAME = 6
_POLL_SECONDS = 0.5

tasks_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Show and change the tasks of a server. Its task store must be one that other processes reach.",
)
app.add_typer(tasks_app, name="tasks")


@tasks_app.command("list")
def list_tasks(  # noqa: PLR0913 - one for each option of the command
    target: Target,
    *,
    status: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Only tasks with this status ({', '.join(_STATUSES)}); may be repeated.", show_default=False
        ),
    ] = None,
    tool: Annotated[str | None, typer.Option(help="Only tasks of this tool.", show_default=False)] = None,
    queue: Annotated[str | None, typer.Option(help="Only tasks of this queue.", show_default=False)] = None,
    owner: Annotated[
        str | None, typer.Option(help="Only tasks of the owner with this mark.", show_default=False)
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="The number of tasks, the newest first.")] = 100,
    as_json: AsJSON = False,
) -> None:
    """List the tasks of TARGET with owner, age, attempt and error, the newest first."""
    for name in status or ():
        if name not in _STATUSES:
            raise typer.BadParameter(f"--status {name!r} is not one of {', '.join(_STATUSES)}.")

    def is_chosen(record: TaskRecord) -> bool:
        return (
            (not status or _status(record) in status or (record.claimed and _RUNNING in status))
            and tool in (None, record.tool)
            and queue in (None, record.queue)
            and owner in (None, record.key.owner or "anonymous")
        )

    readable, unreadable = _run(target, _all_tasks)
    records = sorted(filter(is_chosen, readable), key=lambda record: record.created, reverse=True)
    if unreadable:
        write_line(f"{_count_text(len(unreadable), 'was', 'were')} {_BY_NEWER_VERSION}", error=True)
    if as_json:
        write_json([_members(record) for record in records[:limit]])
        return
    _print_table(records[:limit])
    if len(records) > limit:
        write_line(f"and {len(records) - limit:,} more; --limit shows them")


@tasks_app.command()
def show(
    target: Target,
    name: Annotated[str, typer.Argument(metavar="TASK", help="As in `list`.", show_default=False)],
    *,
    as_json: AsJSON = False,
) -> None:
    """Show one task of TARGET, with its questions and its result."""
    from funcmcp._protocol.codec import decode

    async def find(tasks: Tasks) -> list[TaskRecord]:
        return await _find(tasks, [name])

    (record,) = _run(target, find)
    members = _members(record)
    members["questions"] = [dict(question.request) for question in record.questions.values()]
    members["outcome"] = None if record.outcome is None else decode(record.outcome.text, _RESULT_NESTING)
    if as_json:
        write_json(members)
        return
    for member, value in members.items():
        if value not in (None, []):
            write_text(f"{member}: {value}")


@tasks_app.command()
def cancel(target: Target, names: Names) -> None:
    """Cancel tasks of TARGET. Their runs end at once, or within five seconds. The exit code is 1 if one had ended."""

    async def cancel_all(tasks: Tasks) -> list[tuple[str, bool]]:
        records = await _find(tasks, names)
        return [(_digest(record), await tasks.cancel_elsewhere(record) is not None) for record in records]

    outcomes = _run(target, cancel_all)
    for digest, is_cancelled in outcomes:
        if is_cancelled:
            write_line(f"Cancelled {digest}")
        else:
            write_line(f"{digest} had already ended.", error=True)
    if not all(is_cancelled for _, is_cancelled in outcomes):
        raise typer.Exit(1)


@tasks_app.command()
def retry(target: Target, names: Names, *, as_json: AsJSON = False) -> None:
    """Create a new task for each of these tasks of TARGET that have failed, with the same arguments and owner.

    A client needs the id of the new task, which --json prints, to read it. A task is retried once: if the new task
    fails as well, retry that one. The exit code is 1 if one can't be retried.
    """
    from funcmcp.tasks import TasksFullError

    async def retry_all(tasks: Tasks) -> list[tuple[TaskRecord, TaskRecord | None, str]]:
        outcomes: list[tuple[TaskRecord, TaskRecord | None, str]] = []
        for record in await _find(tasks, names):
            refusal = await _refusal_of_retry(tasks, record)
            if refusal is not None:
                outcomes.append((record, None, refusal))
                continue
            try:
                outcomes.append((record, await tasks.retry(record), _LOST_CALL))
            except TasksFullError as full:
                outcomes.append((record, None, f"{full}."))
        return outcomes

    outcomes = _run(target, retry_all)
    if as_json:
        write_json([_retried(*outcome) for outcome in outcomes])
    else:
        for record, new, reason in outcomes:
            if new is None:
                write_line(f"{_digest(record)} can't be retried. {reason}", error=True)
            else:
                write_line(f"Created {_digest(new)} for {_digest(record)}")
    if any(new is None for _, new, _ in outcomes):
        raise typer.Exit(1)


async def _refusal_of_retry(tasks: Tasks, record: TaskRecord) -> str | None:
    """Return why a task can't be retried; None if it may be."""
    if not record.failed:
        return _NOT_FAILED
    if not tasks.has_tool(record.tool):
        return f"The server has no tool {record.tool!r}: add it under this name until its old tasks have ended."
    earlier = await tasks.retried(record)
    if earlier is not None:
        return f"It was retried before, as {_digest(earlier)}, which is {_status(earlier)}."
    return None


def _retried(record: TaskRecord, new: TaskRecord | None, reason: str) -> dict[str, Any]:
    """Return what `retry --json` prints of a task."""
    if new is None:
        return {"task": _digest(record), "new": None, "id": None, "error": reason}
    return {"task": _digest(record), "new": _digest(new), "id": new.key.task_id, "error": None}


@tasks_app.command()
def drain(
    target: Target,
    *,
    timeout: Annotated[
        float | None, typer.Option(min=0, metavar="SECONDS", help="How long to wait.", show_default="for ever")
    ] = None,
) -> None:
    """Wait until no task of TARGET runs or waits for a worker. The exit code is 1 if that takes too long.

    Tasks that wait for an answer of their client are not counted. New tasks are: stop what creates them first. So are
    tasks of a newer version of the server that have not ended, because this version can't read what they wait for.
    """

    async def wait(tasks: Tasks) -> int:
        end = None if timeout is None else time() + timeout
        before: int | None = None
        while True:
            readable, unreadable = await _all_tasks(tasks)
            of_newer = sum(not task.over for task in unreadable)
            count = of_newer + sum(record.status == "working" for record in readable)
            if count != before and count:
                write_line(f"{_count_text(count, 'has', 'have')} not ended", error=True)
            if of_newer and before is None:
                write_line(f"{_count_text(of_newer, 'was', 'were')} {_BY_NEWER_VERSION}", error=True)
            before = count
            if not count or (end is not None and time() >= end):
                return count
            await asyncio.sleep(_POLL_SECONDS)

    if _run(target, wait):
        raise typer.Exit(1)


def _run(target: str, work: Callable[[Tasks], Awaitable[Any]]) -> Any:
    """Return what a function makes of the tasks of a server."""
    from funcmcp._serving.composition import runtime_of
    from funcmcp.state import StoreUnavailableError
    from funcmcp.tasks import UnreadableTaskError
    from funcmcp_cli.targets import load, open_tasks

    runtime = runtime_of(load(target))
    tasks = open_tasks(runtime)
    if not tasks.store.shared:
        raise Failure(f"{runtime.name} stores tasks in the memory of its process, which other commands can't read.")

    async def run() -> Any:
        try:
            return await work(tasks)
        except UnreadableTaskError as error:
            raise Failure(f"The task has since been {_BY_NEWER_VERSION}. Use the command of that version.") from error
        except StoreUnavailableError as error:
            raise Failure("The task store can't be reached. The reason is above.") from error
        finally:
            await tasks.store.aclose()
            await runtime.server.bus.aclose()

    return asyncio.run(run())


async def _all_tasks(tasks: Tasks) -> tuple[list[TaskRecord], list[UnreadableTask]]:
    """Return the tasks that this version can read, and the other ones."""
    from funcmcp.tasks import UnreadableTask

    readable: list[TaskRecord] = []
    unreadable: list[UnreadableTask] = []
    async for task in tasks.store.scan():
        if isinstance(task, UnreadableTask):
            unreadable.append(task)
        else:
            readable.append(task)
    return readable, unreadable


def _count_text(count: int, singular: str, plural: str) -> str:
    """Return "1 task has" or "2 tasks have"."""
    return f"{count:,} task {singular}" if count == 1 else f"{count:,} tasks {plural}"


async def _find(tasks: Tasks, names: Sequence[str]) -> list[TaskRecord]:
    """Return the tasks with these names; raise Failure unless each name is that of one task."""
    for name in names:
        if len(name) < _SHORTEST_NAME:
            raise Failure(f"{name!r} is too short. Write at least {_SHORTEST_NAME} characters of the task's name.")
    records_by_name: dict[str, list[TaskRecord]] = {name: [] for name in names}
    readable, unreadable = await _all_tasks(tasks)
    for record in readable:
        digest = _digest(record)
        for name, records in records_by_name.items():
            if digest.startswith(name):
                records.append(record)
    for name, records in records_by_name.items():
        if any(_digest(task).startswith(name) for task in unreadable):
            raise Failure(f"The task {name!r} was {_BY_NEWER_VERSION}. Use the command of that version.")
        if not records:
            raise Failure(f"There is no task {name!r}. `funcmcp tasks list` shows all tasks.")
        if len(records) > 1:
            raise Failure(f"{len(records)} tasks begin with {name!r}. Write more characters.")
    return [records[0] for records in records_by_name.values()]


def _digest(record: TaskRecord | UnreadableTask) -> str:
    from funcmcp._server.tasks.service import task_digest

    return task_digest(record.key.task_id)


def _members(record: TaskRecord) -> dict[str, Any]:
    """Return what the commands show of a task."""
    return {
        "task": _digest(record),
        "tool": record.tool,
        "queue": record.queue,
        "status": _status(record),
        "owner": record.key.owner or "anonymous",
        "created": _date(record.created),
        "updated": _date(record.updated),
        "age": round(max(0.0, time() - record.created), 3),
        "running": record.claimed,
        "attempt": record.starts,
        "attempts": record.attempts,
        "failures": record.failures,
        "message": _message(record),
        "error": _error(record),
        "expires": _date(record.expires),
        "removed": _date(record.removed),
    }


def _message(record: TaskRecord) -> str | None:
    """Return the message of a task, or why it waits."""
    if record.returned and not record.claimed and not record.over:
        return f"Waits for a worker that has its tool: {record.returned} deliveries to workers without it."
    return record.message


def _status(record: TaskRecord) -> str:
    """Return the status for operators: a task whose tool failed has failed, although 2026-07-28 calls it completed."""
    return FAILED if record.failed else record.status


def _error(record: TaskRecord) -> str | None:
    """Return why a task has failed; None if it has not."""
    outcome = record.outcome
    if outcome is None or not (outcome.is_error or outcome.tool_failed):
        return None
    return outcome.message or "The tool returned an error."


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def _print_table(records: Sequence[TaskRecord]) -> None:
    from rich.table import Table

    from funcmcp._state.tasks.queues import DEFAULT_QUEUE
    from funcmcp_cli.console import SafeConsole

    console = SafeConsole()
    if not records:
        console.print("No tasks")
        return
    has_queues = any(record.queue != DEFAULT_QUEUE for record in records)
    table = Table("Task", "Tool", *(["Queue"] if has_queues else []), "Status", "Owner", "Age", "Attempt", "Message")
    for record in records:
        members = _members(record)
        table.add_row(
            members["task"],
            record.tool,
            *([record.queue] if has_queues else []),
            _RUNNING if record.claimed else members["status"],
            members["owner"],
            str(timedelta(seconds=int(members["age"]))),
            f"{members['attempt']} of {members['attempts']}",
            members["error"] or members["message"] or "",
        )
    console.print(table)


_RESULT_NESTING = 200
"""Levels of nesting in a result, which are as many as its author likes."""
