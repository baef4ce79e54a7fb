"""Runs the tool of a claimed task, and makes an outcome of its result."""

from __future__ import annotations

import asyncio
import os
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from funcmcp._protocol.codec import encode
from funcmcp._protocol.errors import INTERNAL_ERROR, MCPError
from funcmcp._server.calls.task_call import MAX_MESSAGE, StoredResults, TaskChannel, decode_call, stored_questions
from funcmcp._server.catalog.features import RawResponse
from funcmcp._server.log import log_failure
from funcmcp._server.tasks.worker import NoOutcome, Retrying
from funcmcp._state.tasks.record import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from funcmcp._protocol.revisions import Revision
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.calls.feature import TimeLimit
    from funcmcp._server.calls.task_call import TaskContext
    from funcmcp._server.catalog.catalog import Catalog
    from funcmcp._server.catalog.features import Tool
    from funcmcp._server.results import Results
    from funcmcp._server.tasks.worker import RunEnd
    from funcmcp._state.tasks.record import Claim, TaskRecord
    from funcmcp._state.tasks.store import TaskStore

    ToolAnswer: TypeAlias = dict[str, Any] | bytes | RawResponse
    CallTool: TypeAlias = Callable[
        [RequestContext, Tool, dict[str, Any], TimeLimit | None], Coroutine[Any, Any, ToolAnswer]
    ]


class TaskTracer(Protocol):
    """Traces the runs of tasks."""

    def traceparent(self) -> str | None:
        """Return the current span, as the header `traceparent` names it; None without a span."""

    async def trace(self, context: TaskContext, claim: Claim, run: Callable[[], Coroutine[Any, Any, RunEnd]]) -> RunEnd:
        """Run the tool of a task within a span.

        Args:
            context: The call of the tool.
            claim: The task.
            run: Runs the tool.
        """


class TaskMeter(Protocol):
    """Measures tasks. Names of tools are those of the server, or of a store that other versions of it use as well."""

    def created(self, record: TaskRecord) -> None:
        """Count a task that this process has created."""

    async def measure(self, claim: Claim, run: Callable[[], Coroutine[Any, Any, RunEnd]]) -> RunEnd:
        """Run the tool of a task, and count the run and how it ended.

        Args:
            claim: The task.
            run: Runs the tool.
        """

    def ended(self, record: TaskRecord) -> None:
        """Count a task that this process has ended."""


class TaskRuns:
    """Runs the tools of tasks.

    Args:
        catalog: The tools.
        results: Completes their results.
        call: Runs a tool with its arguments, within a time limit, and returns what `tools/call` returns.
        store: The tasks.

    Attributes:
        tracer: Traces the runs. None: they are not traced.
        meter: Measures the runs. None: they are not measured.
    """

    def __init__(self, catalog: Catalog, results: Results, call: CallTool, store: TaskStore) -> None:
        self._catalog = catalog
        self._results = results
        self._call = call
        self._store = store
        self._result_bytes = store.limits.result_bytes
        self.tracer: TaskTracer | None = None
        self.meter: TaskMeter | None = None

    async def run(self, claim: Claim, report: Callable[[str], None]) -> RunEnd:
        """Run the tool of a task.

        Args:
            claim: The task.
            report: Is called with each new status message.
        """
        record = claim.record
        tool = self._catalog.tools.get(record.tool)
        if tool is None:
            return NoOutcome.UNKNOWN
        channel = TaskChannel(record.answers, report, StoredResults(record.results, partial(self._store.note, claim)))
        context = decode_call(claim.call, tool, task_id=record.key.task_id, channel=channel)
        if context is None:
            return NoOutcome.UNKNOWN
        context.run_limit = tool.task_time_limit
        context.task_end = asyncio.get_running_loop().time() + record.expires - claim.now
        run = partial(self._run_attempt, context, tool, claim)
        if self.tracer is not None:
            run = partial(self.tracer.trace, context, claim, run)
        if self.meter is not None:
            return await self.meter.measure(claim, run)
        return await run()

    async def _run_attempt(self, context: TaskContext, tool: Tool, claim: Claim) -> RunEnd:
        """Run a tool; if it fails and may be run again, return when."""
        began = monotonic()
        end = await self._run(context, tool)
        retry = None if tool.task is None else tool.task.retry
        if retry is None or context.error is None or not isinstance(end, Outcome) or not end.failed:
            return end
        attempt = claim.record.failures + 1
        delay = retry.delay_after(attempt)
        left = claim.record.expires - claim.now - (monotonic() - began)
        if attempt >= retry.attempts or not retry.applies_to(context.error) or delay >= left:
            return end
        message = f"Attempt {attempt} of {retry.attempts} failed: {end.message or 'The tool failed.'}"
        return Retrying(delay, message[:MAX_MESSAGE])

    async def _run(self, context: TaskContext, tool: Tool) -> RunEnd:
        try:
            return await self._end_of(context, tool)
        except Exception as error:  # noqa: BLE001 - a fault of the server, or a result or an error that can't be encoded
            error_id = os.urandom(8).hex()
            context.set_error(error)
            log_failure(error, error_id, tool.key, context.request.method)
            return _failed(MCPError(INTERNAL_ERROR, "Internal error", {"errorId": error_id}))

    async def _end_of(self, context: TaskContext, tool: Tool) -> RunEnd:
        """Run a tool; raise ValueError if its result or its error can't be encoded."""
        try:
            arguments = context.request.params.get("arguments", {})
            result = await self._call(context, tool, arguments, tool.task_time_limit)
            if isinstance(result, dict) and result.get("resultType") == "input_required":
                return stored_questions(result["inputRequests"])
            return self._outcome_of(result, context.client.revision)
        except MCPError as error:
            return _failed(error)

    def _outcome_of(self, answer: ToolAnswer, revision: Revision) -> Outcome:
        if isinstance(answer, bytes):
            return self._limited(Outcome(answer), revision)
        if isinstance(answer, RawResponse):
            error = answer.message.get("error")
            if error is not None:
                return Outcome(encode(error), is_error=True, message=str(error.get("message", ""))[:MAX_MESSAGE])
            result: dict[str, Any] = answer.message["result"]
        else:
            result = answer
        tool_failed = result.get("isError") is True
        message = _text_of(result) if tool_failed else None
        text = encode(self._results.complete(result, revision))
        return self._limited(Outcome(text, tool_failed=tool_failed, message=message), revision)

    def _limited(self, outcome: Outcome, revision: Revision) -> Outcome:
        """Return an outcome, or the error of one that is too large."""
        size = len(outcome.text)
        if size <= self._result_bytes:
            return outcome
        message = f"The result has {size} bytes; {self._result_bytes} fit."
        result = {"content": [{"type": "text", "text": message}], "isError": True}
        return Outcome(encode(self._results.complete(result, revision)), tool_failed=True, message=message)


def _failed(error: MCPError) -> Outcome:
    return Outcome(encode(error.payload()), is_error=True, message=error.message[:MAX_MESSAGE])


def _text_of(result: dict[str, Any]) -> str | None:
    for block in result.get("content", ()):
        if block.get("type") == "text":
            return str(block["text"])[:MAX_MESSAGE]
    return None
