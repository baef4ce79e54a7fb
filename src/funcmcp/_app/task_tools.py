"""Tasks as tools, for clients that have no tasks: `MCPServer.task_tools`.

How it works: each tool with ``task=`` gets a second one, ``start_<name>``, with the same arguments. It creates a task
as a client with tasks would, and returns the id. The tools `task_status`, `task_result`, `cancel_task`, `answer_task`
and `list_tasks` do what the requests about tasks do. They find a task under the same rules: that of another caller does
not exist, and neither does one whose tool the caller may not use. Anonymous callers have the id alone, which is
unguessable.

A person's confirmation (``confirm=``) is asked for before the task is created, and its answer is stored with the task.
Other questions of a task go to the user of a client that can ask one, within `task_result`. Other clients read them in
the status, and answer them with `answer_task`.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast

from typing_extensions import TypedDict

from funcmcp._auth.owner import lists_tasks
from funcmcp._authoring.features.tools import make_tool
from funcmcp._objects.mappings import without, without_none
from funcmcp._protocol.codec import decode, encode
from funcmcp._protocol.errors import InvalidParams, ToolError
from funcmcp._protocol.jsonrpc import Request
from funcmcp._protocol.tasks import INPUT_REQUIRED, timestamp
from funcmcp._server.calls.context import missing_capability
from funcmcp._server.calls.feature import DEFAULT_TIME_LIMIT
from funcmcp._server.calls.rounds import CONFIRMATION
from funcmcp._server.calls.task_call import question_digest
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._server.connections.client import ConnectedClient
from funcmcp._server.handlers.tasks import CURSOR, RESULT_NESTING, TaskMethods
from funcmcp._server.limits import LimitReachedError
from funcmcp._server.tasks.service import change_of
from funcmcp._state.sessions.store import StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from typing import TypeAlias

    from funcmcp._authoring.calling.services import Services
    from funcmcp._authoring.features.tools import ToolOptions
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.catalog.features import Tool
    from funcmcp._server.catalog.task_options import TaskOptions
    from funcmcp._server.dispatch import Server
    from funcmcp._server.tasks.service import Tasks
    from funcmcp._state.tasks.record import Question, TaskRecord

    Run: TypeAlias = Callable[..., Coroutine[Any, Any, dict[str, Any]]]
    Answers: TypeAlias = Mapping[str, tuple[str, Mapping[str, Any]]]

PAGE_SIZE = 50
LONGEST_WAIT = 300.0

_MAX_NAME = 128
_NOT_FOUND = "There is no task with this id. It was removed, or it is not yours."


class FormField(TypedDict):
    """A field that the user has filled in. Some clients accept no object with names of its own as an argument."""

    name: str
    value: str


class TaskQuestion(TypedDict):
    """A question of a task."""

    key: str
    message: str
    schema: dict[str, Any]


class TaskState(TypedDict, total=False):
    """What the tools say of a task."""

    task_id: str
    tool: str
    arguments: str
    status: Literal["working", "input_required", "completed", "failed", "cancelled"]
    message: str
    created_at: str
    questions: list[TaskQuestion]


class TaskPage(TypedDict, total=False):
    """A page of tasks, and the cursor of the next one."""

    tasks: list[TaskState]
    next_cursor: str


def task_status(task_id: str) -> TaskState:  # type: ignore[empty-body] # the signature and the docstring of a tool
    """Return the state of a task that a start tool has started, and its questions to the user.

    Args:
        task_id: The id that the start tool has returned.
    """


def task_result(task_id: str, wait_seconds: float | None = None) -> Any:
    """Wait for the end of a task, and return the result of its tool.

    If the task has not ended in time, the text says so: call this tool again.

    Args:
        task_id: The id that the start tool has returned.
        wait_seconds: The longest time to wait.
    """


def cancel_task(task_id: str) -> TaskState:  # type: ignore[empty-body] # as above
    """Cancel a task that has not ended.

    Args:
        task_id: The id that the start tool has returned.
    """


def answer_task(  # type: ignore[empty-body] # as above
    task_id: str,
    key: str,
    action: Literal["accept", "decline", "cancel"],
    fields: list[FormField] | None = None,
) -> TaskState:
    """Answer a question of a task, whose status is input_required, with what the user says. Ask the user first.

    Args:
        task_id: The id that the start tool has returned.
        key: The key of the question.
        action: accept, decline or cancel: the user answers, says no, or closes the question.
        fields: If the user answers, the fields of the question's schema, each with its name and its value: texts as
            they are, other values as JSON, such as true or 5.
    """


def list_tasks(cursor: str | None = None) -> TaskPage:  # type: ignore[empty-body] # as above
    """List your tasks, the oldest first.

    Args:
        cursor: The next_cursor of the page before.
    """


_HINTS: dict[Callable[..., Any], ToolOptions] = {
    task_status: {"read_only": True, "open_world": False},
    task_result: {"read_only": True, "open_world": False},
    cancel_task: {"destructive": True, "idempotent": True, "open_world": False},
    answer_task: {"destructive": False, "open_world": False},
    list_tasks: {"read_only": True, "open_world": False},
}


def add_task_tools(server: Server, services: Services, wait: float) -> None:
    """Add the tools, now and for each tool with ``task=`` that is added later.

    Args:
        server: The server.
        services: Those of its functions.
        wait: The seconds that `task_result` waits at most.

    Raises:
        ValueError: The wait is not a number of seconds from 0 to `LONGEST_WAIT`.
        RegistrationError: The server has no tasks, or has task tools already, or a name is taken.
    """
    if isinstance(wait, bool) or not isinstance(wait, int | float) or not 0 <= wait <= LONGEST_WAIT:
        raise ValueError(f"wait must be a number of seconds from 0 to {LONGEST_WAIT:g}; got {wait!r:.60}.")
    tasks = server.open_tasks()
    if tasks is None:
        raise RegistrationError("The server has no tasks (tasks=None), so it can't offer them as tools.")
    if any(isinstance(getattr(listener, "__self__", None), TaskTools) for listener in server.catalog.tools.listeners):
        raise RegistrationError("The server has task tools already. Call mcp.task_tools once.")
    task_tools = TaskTools(server, tasks, services, wait)
    for tool in server.catalog.tools:
        task_tools.follow(tool, 1)
    server.catalog.tools.listeners.append(task_tools.follow)


class TaskTools:
    """The tools of one server.

    Args:
        server: The server.
        tasks: Its tasks.
        services: Those of its functions.
        wait: The seconds that `task_result` waits at most.
    """

    def __init__(self, server: Server, tasks: Tasks, services: Services, wait: float) -> None:
        self._server = server
        self._tasks = tasks
        self._services = services
        self._wait = wait
        self._methods = TaskMethods(tasks, server.results, hub=server.hub, load=server.load)
        self._started: dict[str, Tool] = {}  # the start tools, by the names of their tools
        self._general: list[Tool] = []

    def follow(self, tool: Tool, count: int) -> None:
        """Add or remove the start tool of a tool with ``task=``, and the general ones with the first and the last."""
        if tool.task is None:
            return
        catalog = self._server.catalog
        if count > 0:
            start = self._start_tool(tool, tool.task)
            catalog.add_derived(start)
            self._started[tool.name] = start
        elif tool.name in self._started:
            catalog.remove_derived(self._started.pop(tool.name))
        self._update_general()

    def _update_general(self) -> None:
        """Offer the general tools as long as there is a start tool, to anonymous callers if one is for them."""
        allow_anonymous = any(tool.access.allow_anonymous for tool in self._started.values())
        if self._general and self._started and self._general[0].access.allow_anonymous == allow_anonymous:
            return
        for tool in self._general:
            self._server.catalog.remove_derived(tool)
        self._general = []
        if not self._started:
            return
        runs: dict[Callable[..., Any], Run] = {
            task_status: self._status,
            task_result: self._result,
            cancel_task: self._cancel,
            answer_task: self._answer,
            list_tasks: self._list,
        }
        for function, run in runs.items():
            tool = _general_tool(function, run, self._services, allow_anonymous=allow_anonymous)
            self._server.catalog.add_derived(tool)
            self._general.append(tool)

    def _start_tool(self, tool: Tool, options: TaskOptions) -> Tool:
        """Return the tool that starts a task of another one."""
        name = f"start_{tool.name}"
        if len(name) > _MAX_NAME:
            raise RegistrationError(f"The name {name} of the tool that starts a task has more than 128 characters.")

        async def start(context: RequestContext, arguments: dict[str, Any]) -> dict[str, Any]:
            if tool.check is not None:
                tool.check(arguments)
            answers: Answers = {}
            if tool.confirmation is not None:
                confirmed = await tool.confirmation.ask(context, arguments)
                if confirmed is not None:
                    answers = {CONFIRMATION: (question_digest(confirmed.question), confirmed.answer)}
            record = await self._tasks.create(_call_of(tool, context, arguments), options, answers=answers)
            text = f"Started the task {record.key.task_id}. Call task_result with this task_id for the result."
            return {"content": [{"type": "text", "text": text}], "structuredContent": _state_of(record)}

        return replace(
            tool,
            name=name,
            describe=partial(_start_definition, tool, name),
            handler=_explaining(start),
            time_limit=DEFAULT_TIME_LIMIT,
            interactive=tool.confirmation is not None,
            task=None,
            task_time_limit=None,
            left_out=tuple,
        )

    async def _status(self, context: RequestContext, task_id: str) -> dict[str, Any]:
        return _structured(_state_of(await self._find(context, task_id)))

    async def _result(self, context: RequestContext, task_id: str, wait_seconds: float | None = None) -> dict[str, Any]:
        """Return the result of a task that ends in time; otherwise a text that says how to go on."""
        seconds = self._wait if wait_seconds is None else min(max(wait_seconds, 0.0), self._wait)
        record = await self._wait_for(context, await self._find(context, task_id), seconds)
        while record.status == INPUT_REQUIRED and _can_ask(context, record.questions):
            requests = {key: question.request for key, question in record.questions.items()}
            await self._methods.take(record, await context.ask(requests))
            record = await self._wait_for(context, record, seconds)
        if record.over:
            return _outcome_of(record)
        text = _next_step(record, context)
        return {"content": [{"type": "text", "text": text}]}

    async def _wait_for(self, context: RequestContext, record: TaskRecord, seconds: float) -> TaskRecord:
        """Return a task when it has ended or asks, or when the time is up."""
        change = change_of(record.key)
        await self._tasks.store.watch(record.key)
        with (
            self._server.hub.listening(lambda published: published == change, lambda: [change]) as changes,
            contextlib.suppress(TimeoutError),
        ):
            async with asyncio.timeout(seconds):
                while True:
                    record = await self._find(context, record.key.task_id)
                    if record.over or record.status == INPUT_REQUIRED:
                        break
                    await self._methods.next_change(changes)
        return record

    async def _cancel(self, context: RequestContext, task_id: str) -> dict[str, Any]:
        cancelled = await self._tasks.cancel(await self._find(context, task_id))
        if cancelled is None:
            raise ToolError("The task has ended. Call task_result for its result.")
        return _structured(_state_of(cancelled))

    async def _answer(
        self, context: RequestContext, task_id: str, key: str, action: str, fields: list[FormField] | None = None
    ) -> dict[str, Any]:
        record = await self._find(context, task_id)
        question = record.questions.get(key)
        if question is None:
            raise ToolError(f"The task has no open question with the key {key!r:.100}. See task_status.")
        if question.key == CONFIRMATION or _can_ask(context, {key: question}):
            raise ToolError("This question is not for the model. The client answers it, when task_result asks.")
        schema = question.request["params"].get("requestedSchema", {})
        answer: dict[str, Any] = {"action": action}
        if fields is not None:
            answer["content"] = _content_of(fields, schema)
        try:
            await self._methods.take(record, {key: answer})
        except InvalidParams:
            raise ToolError(f"The fields do not fit the schema of the question: {encode(schema).decode()}") from None
        return _structured(_state_of(await self._find(context, task_id)))

    async def _list(self, context: RequestContext, cursor: str | None = None) -> dict[str, Any]:
        if not lists_tasks(context.principal):
            raise ToolError("Tasks are listed only for callers whose credentials name a subject. Keep the task ids.")
        if cursor is not None and not CURSOR.fullmatch(cursor):
            raise ToolError("The cursor is invalid. Call list_tasks without one.")
        records, next_cursor = await self._methods.page(context.principal, cursor, PAGE_SIZE)
        listed: dict[str, Any] = {"tasks": [_state_of(record) for record in records]}
        if next_cursor is not None:
            listed["next_cursor"] = next_cursor
        return _structured(listed)

    async def _find(self, context: RequestContext, task_id: str) -> TaskRecord:
        record = await self._tasks.find_id(context, task_id)
        if record is None:
            raise ToolError(_NOT_FOUND)
        return record


def _general_tool(function: Callable[..., Any], run: Run, services: Services, *, allow_anonymous: bool) -> Tool:
    """Return a tool with the signature and the docstring of a function, which runs with the context of its request."""
    options = cast("ToolOptions", {**_HINTS[function], "allow_anonymous": allow_anonymous})
    tool = make_tool(function, options, services)
    read = cast("Callable[[dict[str, Any]], dict[str, Any]]", tool.check)

    async def handler(context: RequestContext, arguments: dict[str, Any]) -> dict[str, Any]:
        return await run(context, **read(arguments))

    return replace(tool, handler=_explaining(handler), interactive=function is task_result)


def _explaining(handler: Run) -> Run:
    """Return a handler whose errors of limits and stores are texts for the model."""

    async def explained(context: RequestContext, arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            return await handler(context, arguments)
        except LimitReachedError as error:
            raise ToolError(f"{error.message} Try again in {error.retry_after} seconds.") from None
        except StoreUnavailableError as error:
            raise ToolError(str(error)) from None

    return explained


def _start_definition(tool: Tool, name: str) -> Mapping[str, Any]:
    """Return the definition of a start tool: that of its tool, with another description and another result."""
    definition = tool.describe()
    title, description = definition.get("title", tool.name), definition.get("description", "")
    return {
        **without(dict(definition), "execution", "_meta", "outputSchema"),
        "name": name,
        "title": f"Start {title}",
        "description": f"{description}\n\nStarts a task, and returns its task_id at once: for long work.",
        "outputSchema": {
            "type": "object",
            "properties": {name: {"type": "string"} for name in ("task_id", "tool", "status", "created_at")},
            "required": ["task_id", "tool", "status", "created_at"],
        },
    }


def _call_of(tool: Tool, context: RequestContext, arguments: dict[str, Any]) -> RequestContext:
    """Return the request that a client with tasks would have sent, and that can answer questions later."""
    client = context.client
    call = copy.copy(context)
    members = {"name": tool.name, "arguments": arguments, "_meta": without(dict(context.meta), "progressToken")}
    call.request = Request(context.request.id, "tools/call", members)
    forms = {**(client.capabilities.get("elicitation") or {}), "form": {}}
    call.client = ConnectedClient(client.revision, {**client.capabilities, "elicitation": forms}, client.info)
    return call


def _can_ask(context: RequestContext, questions: Mapping[str, Question]) -> bool:
    """Return whether the client of a request can be asked all questions."""
    return not any(missing_capability(context.client, question.request) for question in questions.values())


def _state_of(record: TaskRecord) -> dict[str, Any]:
    state = {
        "task_id": record.key.task_id,
        "tool": record.tool,
        "arguments": record.arguments or None,
        "status": record.status,
        "message": record.message,
        "created_at": timestamp(record.created),
        "questions": _questions_of(record) or None,
    }
    return without_none(state)


def _questions_of(record: TaskRecord) -> list[dict[str, Any]]:
    """Return the open questions of a task."""
    if record.status != INPUT_REQUIRED:
        return []
    questions = []
    for key, question in record.questions.items():
        params = question.request.get("params", {})
        questions.append(
            {"key": key, "message": params.get("message", ""), "schema": params.get("requestedSchema", {})}
        )
    return questions


def _next_step(record: TaskRecord, context: RequestContext) -> str:
    """Return what the model has to do about a task that has not ended."""
    questions = record.questions
    if record.status != INPUT_REQUIRED or _can_ask(context, questions):
        message = "" if record.message is None else f" Its last message: {record.message}"
        return f"The task has not ended.{message} Call task_result again with the same task_id."
    if any(question.key == CONFIRMATION for question in questions.values()):
        return "The task waits for a person's confirmation, and this client can't ask for it. Call cancel_task."
    return f"The task asks the user. Ask the user, and call answer_task: {encode(_questions_of(record)).decode()}"


def _content_of(fields: list[FormField], schema: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a form with the types of its schema. A value that is not JSON stays a text."""
    content: dict[str, Any] = {}
    for field in fields:
        name, value = field["name"], field["value"]
        content[name] = value
        if schema.get("properties", {}).get(name, {}).get("type") != "string":
            with contextlib.suppress(ValueError):
                content[name] = decode(value.encode())
    return content


def _outcome_of(record: TaskRecord) -> dict[str, Any]:
    """Return the result of a task that has ended; raise ToolError if it has none."""
    outcome = record.outcome
    if outcome is None or outcome.is_error:
        raise ToolError(f"The task has {record.status}. {record.message or ''}".rstrip())
    result: dict[str, Any] = decode(outcome.text, RESULT_NESTING)
    return without(result, "resultType")


def _structured(content: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": encode(content).decode()}], "structuredContent": content}
