"""`tasks/get`, `tasks/update`, `tasks/cancel`, `tasks/result` and `tasks/list`.

Source: the tasks extension (2026-07-28); 2025-11-25 "basic/utilities/tasks".
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from time import time
from typing import TYPE_CHECKING, Any

from funcmcp._auth.owner import lists_tasks, owner_of
from funcmcp._protocol.answers import read_answer
from funcmcp._protocol.codec import decode, encode
from funcmcp._protocol.errors import INTERNAL_ERROR, METHOD_NOT_FOUND, InvalidParams, MCPError, ToolError
from funcmcp._protocol.tasks import COMPLETED, FAILED, INPUT_REQUIRED, RELATED_TASK, members
from funcmcp._server.handlers.lists import cursor_of
from funcmcp._server.tasks.service import change_of, limit_reached_by, require_extension, rules_of, status_of
from funcmcp._state.tasks.record import interrupted
from funcmcp._state.tasks.store import TasksFullError, position

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from funcmcp._auth.principal import Principal
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.connections.hub import Change, Hub, Listener
    from funcmcp._server.load import Load
    from funcmcp._server.results import Results
    from funcmcp._server.tasks.service import Tasks
    from funcmcp._state.tasks.record import TaskRecord

PAGE_SIZE = 50
CURSOR = re.compile(r"[0-9]{14}\.[A-Za-z0-9_-]{44}")
RESULT_NESTING = 200
"""Levels of nesting in a result, which are as many as its author likes."""

_LOOK_INTERVAL = 2.0
"""Seconds between two looks at a task for which a client waits: a published change may be lost."""


class TaskMethods:
    """Answers requests about tasks.

    Args:
        tasks: The tasks.
        results: Completes results.
        hub: Publishes their changes.
        load: Counts requests that wait.
    """

    def __init__(self, tasks: Tasks, results: Results, *, hub: Hub, load: Load) -> None:
        self._tasks = tasks
        self._results = results
        self._hub = hub
        self._load = load

    async def get(self, context: RequestContext) -> dict[str, Any] | bytes:
        """Answer `tasks/get`."""
        record = await self._tasks.find(context)
        revision, rules = context.client.revision, rules_of(context)
        shown = members(status_of(record, time()), rules)
        return self._detailed(shown, record, context) if rules.extension else self._results.complete(shown, revision)

    async def update(self, context: RequestContext) -> dict[str, Any]:
        """Answer `tasks/update`: take the answers to outstanding questions."""
        record = await self._tasks.find(context)
        responses = context.request.params.get("inputResponses")
        if type(responses) is not dict:
            raise InvalidParams('"inputResponses" must be an object.')
        await self.take(record, responses)
        return {}

    async def cancel(self, context: RequestContext) -> dict[str, Any]:
        """Answer `tasks/cancel`."""
        record = await self._tasks.find(context)
        cancelled = await self._tasks.cancel(record)
        rules = rules_of(context)
        if rules.cancels_ended:
            return {}
        if cancelled is None:
            raise InvalidParams("The task has ended and can't be cancelled.")
        return members(status_of(cancelled, time()), rules)

    async def list(self, context: RequestContext) -> dict[str, Any]:
        """Answer `tasks/list`: the tasks of the caller, the oldest first."""
        if not lists_tasks(context.principal):
            raise MCPError(METHOD_NOT_FOUND, "Tasks are listed only for callers whose credentials name a subject.")
        cursor = cursor_of(context)
        if cursor is not None and not CURSOR.fullmatch(cursor):
            raise InvalidParams("The cursor is invalid.")
        records, next_cursor = await self.page(context.principal, cursor, PAGE_SIZE)
        now, rules = time(), rules_of(context)
        result: dict[str, Any] = {"tasks": [members(status_of(record, now), rules) for record in records]}
        if next_cursor is not None:
            result["nextCursor"] = next_cursor
        return result

    async def page(
        self, principal: Principal | None, cursor: str | None, size: int
    ) -> tuple[Sequence[TaskRecord], str | None]:
        """Return so many tasks of a principal, and the cursor of the next page; None on the last one."""
        records = await self._tasks.store.page(owner_of(principal), cursor, size + 1)
        return records[:size], position(records[size - 1]) if len(records) > size else None

    async def result(self, context: RequestContext) -> bytes:
        """Answer `tasks/result`: wait for the end of a task, and ask the client the questions of the task."""
        record = await self._tasks.find(context)
        if record.over:
            return _outcome(record)
        if context.http is not None and not context.http.can_stream:
            raise MCPError(
                INTERNAL_ERROR,
                "This platform can't wait for the end of a task. Poll tasks/get until the task has ended.",
            )
        load, caller = self._load, context.caller
        load.streams.check(caller)
        change = change_of(record.key)
        with load.streams.counting(caller), load.runs.without(caller):
            await self._tasks.store.watch(record.key)
            with self._hub.listening(lambda published: published == change, lambda: [change]) as changes:
                return _outcome(await self._wait(context, changes))

    def require_extension(self, context: RequestContext) -> None:
        """Raise MissingClientCapability unless the client has declared the extension."""
        require_extension(context)

    async def watch(self, context: RequestContext, task_ids: Iterable[str]) -> dict[Change, str]:
        """Make the store publish changes of tasks; return the ids of those that the caller may use, by change."""
        watched: dict[Change, str] = {}
        for task_id in task_ids:
            record = await self._tasks.find_id(context, task_id)
            if record is not None:
                await self._tasks.store.watch(record.key)
                watched[change_of(record.key)] = task_id
        return watched

    async def state(self, context: RequestContext, task_id: str) -> dict[str, Any] | None:
        """Return a DetailedTask; None if the caller may not use the task any more, or it was removed."""
        record = await self._tasks.find_id(context, task_id)
        if record is None:
            return None
        task = members(status_of(record, time()), rules_of(context))
        if record.status == INPUT_REQUIRED:
            task["inputRequests"] = _requests(record)
        outcome = record.outcome
        if outcome is not None and record.status in (COMPLETED, FAILED):
            task["error" if outcome.is_error else "result"] = decode(outcome.text, RESULT_NESTING)
        return task

    async def _wait(self, context: RequestContext, changes: Listener) -> TaskRecord:
        """Return a task that has ended."""
        while True:
            record = await self._tasks.find(context)
            if record.over:
                return record
            if record.status == INPUT_REQUIRED:
                await self._ask(context, record, changes)
            else:
                await self.next_change(changes)

    async def _ask(self, context: RequestContext, record: TaskRecord, changes: Listener) -> None:
        """Ask the client the outstanding questions, and take the answers.

        Return without answers if the task needs them no longer: it was cancelled, its time is up, or the answers came
        by another request.
        """
        meta = {RELATED_TASK: {"taskId": record.key.task_id}}
        requests = {
            key: {**question.request, "params": {**question.request.get("params", {}), "_meta": meta}}
            for key, question in record.questions.items()
        }
        asking = asyncio.ensure_future(context.channel.ask(requests))
        settling = asyncio.ensure_future(self._settled(context, requests.keys(), changes))
        try:
            await asyncio.wait((asking, settling), return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                await self.take(record, asking.result())
            else:
                settling.result()
        except ToolError as error:
            raise MCPError(INTERNAL_ERROR, str(error)) from None
        finally:
            asking.cancel()
            settling.cancel()
            await asyncio.gather(asking, settling, return_exceptions=True)

    async def _settled(self, context: RequestContext, questions: Collection[str], changes: Listener) -> None:
        """Wait until the task has none of these questions open."""
        record = await self._tasks.find(context)
        while record.questions.keys() & set(questions):
            await self.next_change(changes)
            record = await self._tasks.find(context)

    @staticmethod
    async def next_change(changes: Listener) -> None:
        """Wait for a change, but not for long; raise MCPError if the server stops."""
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_INTERVAL):
                    await anext(changes)
        except StopAsyncIteration:
            raise MCPError(INTERNAL_ERROR, "The server stops. Send the request again.") from None

    async def take(self, record: TaskRecord, responses: dict[str, Any]) -> None:
        """Store the answers to outstanding questions.

        Raises:
            InvalidParams: An answer does not fit its question.
            LimitReachedError: There is no room for the answers.
        """
        answers: dict[str, dict[str, Any]] = {}
        for key, question in record.questions.items():
            if key not in responses:
                continue
            answer = read_answer(question.request, responses[key])
            if answer is None:
                raise InvalidParams(f"The answer {key!r} does not fit its question.")
            answers[key] = answer
        if answers:
            try:
                changed = await self._tasks.store.answer(record.key, answers)
            except TasksFullError as error:
                raise limit_reached_by(error) from None
            if changed is not None:
                self._tasks.changed(changed)

    def _detailed(self, shown: dict[str, Any], record: TaskRecord, context: RequestContext) -> bytes:
        """Return a DetailedTask."""
        if record.status == INPUT_REQUIRED:
            shown["inputRequests"] = _requests(record)
        text = encode(self._results.complete(shown, context.client.revision))
        outcome = record.outcome
        if outcome is None or record.status not in (COMPLETED, FAILED):
            return text
        return b'%b,"%b":%b}' % (text[:-1], b"error" if outcome.is_error else b"result", outcome.text)


def _requests(record: TaskRecord) -> dict[str, Any]:
    """Return the requests of the outstanding questions, by their keys on the wire."""
    return {key: question.request for key, question in record.questions.items()}


def _outcome(record: TaskRecord) -> bytes:
    """Return what the call would have returned without a task; raise the MCPError that it would have raised."""
    outcome = record.outcome or interrupted()  # a task that has ended has an outcome
    if outcome.is_error:
        error: dict[str, Any] = decode(outcome.text)
        raise MCPError(error["code"], error["message"], error.get("data"))
    meta = encode({RELATED_TASK: {"taskId": record.key.task_id}})
    if b'"_meta"' not in outcome.text:
        return b'{"_meta":%b,%b' % (meta, outcome.text[1:])
    result: dict[str, Any] = decode(outcome.text, RESULT_NESTING)
    result["_meta"] = {**result.get("_meta", {}), **decode(meta)}
    return encode(result)
