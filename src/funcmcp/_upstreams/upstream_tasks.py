"""Calls that an upstream runs as tasks.

How it works: a client gets a task of this server, with an id, a time to live and an owner of its own (`task_options`).
Its run in a worker calls the tool of the upstream, and stores the answer: the id of the upstream's task. So a later
run, also in another process, goes on with this task and never starts another one. The run asks for the state of the
upstream's task until it has ended. Its status message becomes that of the task here, its questions become questions of
the task here, and if the client cancels the task here, the upstream's task is cancelled.

- An upstream of 2025-11-25 says for each tool whether its calls can be tasks. Its questions come in the stream of
  ``tasks/result``.
- With the extension of 2026-07-28 the upstream decides for each call. The call begins without a task, and becomes one
  when the upstream answers with a task. Questions are in the state of the task.

Source: 2025-11-25 "basic/utilities/tasks"; the tasks extension (SEP-2663).
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from funcmcp._client.messages import result_of
from funcmcp._objects.mappings import without
from funcmcp._protocol.errors import ClientError, InvalidResponseError, MCPError, ToolError
from funcmcp._protocol.objects import Task
from funcmcp._protocol.tasks import CANCELLED, EXTENSION, INPUT_REQUIRED
from funcmcp._server.calls.task_call import CANCELLED_BY_CLIENT, STATUS
from funcmcp._server.catalog.task_options import TaskOptions
from funcmcp._upstreams.questions import ask_at_once, checked_questions
from funcmcp._upstreams.running import RunningRequest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from funcmcp._server.calls.context import RequestContext
    from funcmcp._upstreams.upstream_request import UpstreamRequest

_DEFAULT_POLL, _LEAST_POLL, _MOST_POLL = 1.0, 0.05, 60.0
"""Seconds between two requests for the state of a task: what an upstream may choose, and the default."""

_CANCEL_SECONDS = 5.0


def task_options(definition: Mapping[str, Any], capabilities: Mapping[str, Any]) -> TaskOptions | None:
    """Return when a call of an upstream's tool becomes a task here; None if it never does.

    Args:
        definition: The tool's definition.
        capabilities: The capabilities of the upstream.
    """
    extensions = capabilities.get("extensions")
    if isinstance(extensions, dict) and isinstance(extensions.get(EXTENSION), dict):
        return TaskOptions("optional", detaches=True, attempts=_ATTEMPTS)
    execution = definition.get("execution")
    support = execution.get("taskSupport") if isinstance(execution, dict) else None
    if support not in ("optional", "required") or not _runs_calls(capabilities):
        return None
    return TaskOptions(support, attempts=_ATTEMPTS)


_ATTEMPTS = 3
"""Runs of a task. A later run goes on with the task of the upstream."""


def _runs_calls(capabilities: Mapping[str, Any]) -> bool:
    """Return whether an upstream of 2025-11-25 runs calls of tools as tasks."""
    value: Any = capabilities
    for name in ("tasks", "requests", "tools", "call"):
        value = value.get(name) if isinstance(value, dict) else None
    return isinstance(value, dict)


async def follow(
    request: UpstreamRequest,
    context: RequestContext,
    created: Mapping[str, Any],
    result: Callable[[UpstreamRequest, RunningRequest, RequestContext], Awaitable[dict[str, Any]]],
) -> dict[str, Any]:
    """Return the result of a task of an upstream, when it has ended.

    Args:
        request: The call that has become the task.
        context: The task here.
        created: The upstream's answer to the call.
        result: Sends ``tasks/result`` of 2025-11-25, during which the upstream may ask the client.

    Raises:
        InputRequired: The upstream asks, and another run has the answers.
        MCPError: The task has failed with an error.
        ToolError: The upstream has cancelled the task.
    """
    task = Task(created)
    if not task.task_id:
        raise InvalidResponseError("The other server began a task without an id.")
    followed = _FollowedTask(request, context, task)
    try:
        if request.link.revision.per_request:
            return await followed.result_in_state()
        await followed.wait_until(INPUT_REQUIRED)
        running = RunningRequest(context, None, ask_at_once)
        return await result(followed.request("tasks/result"), running, context)
    except asyncio.CancelledError as error:
        if CANCELLED_BY_CLIENT in error.args:
            await followed.cancel()
        raise


class _FollowedTask:
    """A task of an upstream.

    Args:
        request: The call that has become the task.
        context: The task here.
        task: The state of the task.
    """

    def __init__(self, request: UpstreamRequest, context: RequestContext, task: Task) -> None:
        self._request = request
        self._context = context
        self._task = task
        self._id = task.task_id
        self._message: str | None = None

    def request(self, method: str, **members: Any) -> UpstreamRequest:
        """Return a request about the task."""
        return self._request._replace(method=method, params={"taskId": self._id, **members}, mirrored=None)

    async def wait_until(self, *statuses: str) -> None:
        """Wait until the task has ended, or has one of these states."""
        while True:
            self._task = Task(await self.request("tasks/get").send_plain())
            await self._report()
            if self._task.has_ended or self._task.status in statuses:
                return
            seconds = self._task.poll_seconds
            await asyncio.sleep(min(max(_DEFAULT_POLL if seconds is None else seconds, _LEAST_POLL), _MOST_POLL))

    async def result_in_state(self) -> dict[str, Any]:
        """Return the result of a task of the extension; ask the questions in its state."""
        answered: set[str] = set()
        while True:
            await self.wait_until(INPUT_REQUIRED)
            if self._task.status == CANCELLED:
                raise ToolError("The other server has cancelled the task.")
            if self._task.has_ended:
                return result_of(self._task, "tasks/get")
            questions = without(self._task.input_requests, *answered)
            if questions:
                await self._answer(checked_questions(questions))
                answered.update(questions)
            else:
                await asyncio.sleep(_LEAST_POLL)  # the upstream has not handled the answers yet

    async def _answer(self, questions: dict[str, Mapping[str, Any]]) -> None:
        """Send the answers of the client, once also if a later run gets here again."""
        answers = await self._context.ask(questions)

        async def update() -> bool:
            await self.request("tasks/update", inputResponses=answers).send_plain()
            return True

        await self._context.once(f"{self._id} {' '.join(sorted(answers))}"[:200], update)

    async def cancel(self) -> None:
        """Cancel the task at the upstream, because the client has cancelled the task here."""
        with suppress(MCPError, ClientError, TimeoutError):
            async with asyncio.timeout(_CANCEL_SECONDS):
                await self.request("tasks/cancel").send_plain()

    async def _report(self) -> None:
        """Copy the status message of the upstream's task to the task here."""
        message = self._task.status_message
        if message and message != self._message:
            self._message = message
            await self._context.notify(STATUS, {"statusMessage": message})
