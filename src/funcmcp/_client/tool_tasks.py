"""Calls of tools that the server runs as tasks.

How it works: the server answers a call with the id of a task, or with the result. `TaskClient` asks for the state of a
task until it has ended, at the interval that the server chooses, and at once after a notification about the task.
Questions go to the same callbacks as those of other calls. The two forms of tasks differ:

- The extension of 2026-07-28: the server alone decides which calls become tasks. ``tasks/get`` returns questions and
  the result, and ``tasks/update`` sends the answers.
- 2025-11-25: the client asks for a task. ``tasks/get`` returns the status. ``tasks/result`` waits for the end and
  returns the result. The server sends its questions to the client while that request waits.

Source: the tasks extension (SEP-2663); 2025-11-25 "basic/utilities/tasks".
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from funcmcp._client.errors import ConnectionFailedError, TaskCancelledError
from funcmcp._client.messages import result_of
from funcmcp._objects.mappings import without
from funcmcp._objects.public_names import public
from funcmcp._protocol.errors import ClientError, InvalidResponseError, MCPError
from funcmcp._protocol.objects import CallToolResult, Task
from funcmcp._protocol.tasks import CANCELLED, INPUT_REQUIRED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from funcmcp._client.requests import Requests

_DEFAULT_POLL = 1.0
"""Seconds between two requests for the state if the server does not choose."""

_MIN_POLL, _MAX_POLL = 0.02, 300.0
_MAX_ROUNDS = 20
_CANCEL_SECONDS = 2.0
"""Seconds that the cancellation of a task may take after its call has failed."""


class TaskClient:
    """Follows the tasks of one client.

    Args:
        requests: Sends requests.
        on_task: Receives each new state of a task. None for no callback.
    """

    def __init__(self, requests: Requests, on_task: Callable[[Task], None] | None) -> None:
        self.requests = requests
        self.on_task = on_task
        self._changes: dict[str, set[asyncio.Event]] = {}

    @property
    def uses_extension(self) -> bool:
        """Whether the revision has tasks in the form of the extension."""
        rules = self.requests.revision.tasks
        return rules is not None and rules.extension

    async def asks_for_task(self, name: str) -> bool:
        """Return whether a call has to ask for a task: in 2025-11-25, if server and tool support it."""
        rules = self.requests.revision.tasks
        if rules is None or rules.extension or not _supports_tasks(self.requests.capabilities):
            return False
        tool = await self.requests.tool(name)
        return tool is not None and tool.task_support in {"optional", "required"}

    def started(self, result: dict[str, Any], timeout: float | None) -> ToolTask:
        """Return the handle for the result of `tools/call`, which is a task or the tool's result."""
        rules = self.requests.revision.tasks
        if rules is None:
            return ToolTask(self, None, timeout, CallToolResult(result))
        if rules.extension and result.get("resultType") == "task":
            return ToolTask(self, self._task(result), timeout)
        if not rules.extension and isinstance(result.get("task"), dict):
            return ToolTask(self, self._task(result["task"]), timeout)
        return ToolTask(self, None, timeout, CallToolResult(result))

    async def get(self, task_id: str, seconds: float | None) -> Task:
        """Return the state of a task. Raise ClientError if the revision has no tasks."""
        if self.requests.revision.tasks is None:
            raise ClientError(f"The revision {self.requests.date} has no tasks.")
        result = await self.requests.send_checked("tasks/get", {"taskId": task_id}, seconds, "task")
        task = self._task(result)
        if task.task_id != task_id:
            raise InvalidResponseError("The result of tasks/get is another task.")
        return task

    def notified(self, params: Mapping[str, Any]) -> None:
        """Look at a task at once, because its state has changed."""
        for event in self._changes.get(str(params.get("taskId")), ()):
            event.set()

    async def wait(self, task: Task, other: asyncio.Task[Any] | None) -> None:
        """Wait until the state of a task has to be requested again, or until another asyncio task has ended."""
        changed = asyncio.Event()
        events = self._changes.setdefault(task.task_id, set())
        events.add(changed)
        waiting: set[asyncio.Task[Any]] = {asyncio.create_task(changed.wait())}
        try:
            seconds = task.poll_seconds
            if seconds is None:
                seconds = _DEFAULT_POLL
            others = set() if other is None else {other}
            await asyncio.wait(
                waiting | others,
                timeout=min(max(seconds, _MIN_POLL), _MAX_POLL),
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            await _end(waiting)
            events.discard(changed)
            if not events:
                self._changes.pop(task.task_id, None)

    def _task(self, value: dict[str, Any]) -> Task:
        task = Task(value)
        if not task.task_id or not task.status:
            raise InvalidResponseError("The server sent a task without an id.")
        return task


@public("funcmcp.client")
class ToolTask:
    """A call of a tool that runs as a task.

    A server may answer a call at once. The handle then has no `task_id`, and `result` returns the answer.

    Attributes:
        task_id: The id of the task. None if the server answered without a task.
        state: The last state that the server sent.
    """

    def __init__(
        self, tasks: TaskClient, state: Task | None, timeout: float | None, result: CallToolResult | None = None
    ) -> None:
        self._tasks = tasks
        self._timeout = timeout
        self._result = result
        self._answered: set[str] = set()
        self.task_id: str | None = None if state is None else state.task_id
        self.state: Task = Task(status="completed") if state is None else state
        if state is not None:
            self._report()

    @property
    def status(self) -> str:
        """The last status that the server sent: working, input_required, completed, failed or cancelled."""
        return self.state.status

    async def get(self) -> Task:
        """Request the state of the task, and return it.

        Raises:
            MCPError: The server does not have the task any more.
            ClientError: The request failed.
        """
        if self.task_id is not None:
            state = await self._tasks.get(self.task_id, self._seconds)
            has_changed = _visible_part(state) != _visible_part(self.state)
            self.state = state
            if has_changed:
                self._report()
        return self.state

    async def result(self, *, raise_on_error: bool = False) -> CallToolResult:
        """Wait for the end of the task, and return the tool's result.

        The callbacks of the client answer the questions of the task. If the caller stops waiting, the task goes on.

        Args:
            raise_on_error: Raise ToolError if the tool failed. By default the result has `is_error` set.

        Raises:
            MCPError: The task failed with an error, or the server does not have it any more.
            TaskCancelledError: The task was cancelled.
            ToolError: The tool failed, and *raise_on_error* is set.
            ClientError: A request failed.
        """
        if self._result is None:
            if self._tasks.uses_extension:
                self._result = await self._follow()
            else:
                self._result = await self._follow_handshake()
        if self._result.is_error and raise_on_error:  # an isError that is not a boolean is an error either way
            self._result.raise_for_error()
        return self._result

    async def answer(self, responses: Mapping[str, Mapping[str, Any]]) -> None:
        """Send answers to questions of the task, which are in ``state.input_requests``. Only in 2026-07-28.

        Args:
            responses: A result for each question, by its key, such as ``{"name.1": {"action": "decline"}}``. The server
                goes on when all questions are answered.

        Raises:
            MCPError: The server rejects an answer.
            ClientError: The request failed, or the revision has no such request.
        """
        if not self._tasks.uses_extension:
            raise ClientError("In 2025-11-25 the callbacks of the client answer questions while result() waits.")
        if self.task_id is None:
            return
        params = {"taskId": self.task_id, "inputResponses": {key: dict(value) for key, value in responses.items()}}
        await self._tasks.requests.send_checked("tasks/update", params, self._seconds)
        self._answered.update(responses)

    async def cancel(self) -> None:
        """Cancel the task. Do nothing if it has ended.

        Raises:
            MCPError: The server does not have the task any more.
            ClientError: The request failed.
        """
        if self.state.has_ended:
            return
        params = {"taskId": self.task_id}
        try:
            await self._tasks.requests.send_checked("tasks/cancel", params, self._seconds)
        except MCPError:
            if not (await self.get()).has_ended:  # in 2025-11-25 a task that has ended cannot be cancelled
                raise
        else:
            await self.get()

    async def cancel_quietly(self) -> None:
        """Cancel the task after its call has failed. Errors and servers that do not answer are ignored."""
        with suppress(ClientError, MCPError, TimeoutError):
            async with asyncio.timeout(_CANCEL_SECONDS):
                await self.cancel()

    @property
    def _seconds(self) -> float | None:
        return self._tasks.requests.seconds(self._timeout)

    def _report(self) -> None:
        if self._tasks.on_task is not None:
            self._tasks.on_task(self.state)

    async def _follow(self) -> CallToolResult:
        """Return the result of a task of the extension."""
        rounds = 0
        while not self.state.has_ended:
            questions = self.state.input_requests
            unanswered = without(questions, *self._answered)
            if unanswered:
                rounds += 1
                if rounds > _MAX_ROUNDS:
                    raise InvalidResponseError(f"The task asked for input more than {_MAX_ROUNDS} times.")
                await self.answer(await self._answers_to(unanswered))
            else:
                await self._tasks.wait(self.state, None)
            await self.get()
        if self.status == CANCELLED:
            raise TaskCancelledError
        if "result" not in self.state and "error" not in self.state:
            await self.get()  # the task ended with the response that created it
        return CallToolResult(result_of(self.state, "tasks/get"))

    async def _answers_to(self, questions: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        answers = {}
        for key, question in questions.items():
            if not isinstance(question, dict):
                raise InvalidResponseError("A member of 'inputRequests' of the task is not an object.")
            answers[key] = await self._tasks.requests.answers.to(question)
        return answers

    async def _follow_handshake(self) -> CallToolResult:
        """Return the result of a task of 2025-11-25.

        While the task asks for input, ``tasks/result`` waits at the server, which sends the questions there. Gateways
        may end a request that waits for long. The client then polls again.
        """
        waiting: asyncio.Task[dict[str, Any]] | None = None
        try:
            while not self.state.has_ended:
                if waiting is None and self.status == INPUT_REQUIRED:
                    waiting = asyncio.create_task(self._request_result(None))
                await self._tasks.wait(self.state, waiting)
                if waiting is not None and waiting.done():
                    if not isinstance(waiting.exception(), ConnectionFailedError):
                        result = waiting.result()
                        await self.get()
                        return CallToolResult(result)
                    waiting = None
                await self.get()
            if self.status == CANCELLED:
                raise TaskCancelledError
            if waiting is not None:
                return CallToolResult(await waiting)
            return CallToolResult(await self._request_result(self._seconds))
        finally:
            if waiting is not None:
                await _end({waiting})

    async def _request_result(self, seconds: float | None) -> dict[str, Any]:
        return await self._tasks.requests.send("tasks/result", {"taskId": self.task_id}, seconds)


def _visible_part(state: Task) -> tuple[str, str | None, dict[str, Any]]:
    """Return what a new state has to differ in: not the polling interval, which grows with the age of the task."""
    return state.status, state.status_message, state.input_requests


def _supports_tasks(capabilities: Mapping[str, Any]) -> bool:
    """Return whether a server of 2025-11-25 runs calls of tools as tasks."""
    value: Any = capabilities
    for name in ("tasks", "requests", "tools", "call"):
        value = value.get(name) if isinstance(value, dict) else None
    return isinstance(value, dict)


async def _end(tasks: set[asyncio.Task[Any]]) -> None:
    """Cancel asyncio tasks, and wait for their end."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
