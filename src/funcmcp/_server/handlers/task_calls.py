"""`tools/call` for tools with ``task=``, and for clients that ask for a task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._protocol.errors import METHOD_NOT_FOUND, MCPError
from funcmcp._protocol.tasks import created, declares
from funcmcp._server.calls.rounds import Rounds
from funcmcp._server.calls.task_call import DetachableContext, Detached
from funcmcp._server.catalog.task_options import TaskOptions
from funcmcp._server.limits import LimitReachedError
from funcmcp._server.tasks.service import requested_ttl, require_extension, rules_of, status_of

if TYPE_CHECKING:
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.calls.feature_call import FeatureCalls
    from funcmcp._server.catalog.features import Tool
    from funcmcp._server.handlers.tools import ToolAnswer, ToolCalls
    from funcmcp._server.tasks.service import Tasks
    from funcmcp._state.tasks.record import TaskRecord


class TaskCalls:
    """Creates tasks for calls.

    Args:
        tasks: The tasks of the server.
        tool_calls: Runs tools within a call.
        calls: Asks the client the questions of tools.
    """

    def __init__(self, tasks: Tasks, tool_calls: ToolCalls, calls: FeatureCalls) -> None:
        self._tasks = tasks
        self._tool_calls = tool_calls
        self._calls = calls

    async def call(self, context: RequestContext, tool: Tool, arguments: dict[str, Any]) -> ToolAnswer:
        """Create a task for a call if it becomes one, else run the tool."""
        options, rules, params = tool.task, context.client.revision.tasks, context.request.params
        if rules is not None and rules.extension:
            if options is not None and options.mode == "required":
                require_extension(context, need="This tool runs only as a task, which needs")
            if options is not None and declares(context.client.capabilities):
                if options.detaches:
                    return await self._run_until_detached(context, tool, arguments)
                answer = self._invalid_arguments(context, tool, arguments) or await self._create(context, options)
                if answer is not None:
                    return answer
        elif rules is not None and "task" in params:
            if options is None:
                raise MCPError(METHOD_NOT_FOUND, "This tool does not run as a task.")
            ttl = requested_ttl(params, options, rules)
            return _created(await self._tasks.create(context, options, ttl=ttl), context)
        elif options is not None and options.mode == "required":
            raise MCPError(METHOD_NOT_FOUND, "This tool runs only as a task, for clients that support tasks.")
        self._calls.open_rounds(context, tool)
        return await self._tool_calls.run(context, tool, arguments, tool.time_limit)

    async def _create(self, context: RequestContext, options: TaskOptions) -> dict[str, Any] | None:
        """Create a task and return the result of the call; None if others take all room and the tool needs no task."""
        try:
            return _created(await self._tasks.create(context, options), context)
        except LimitReachedError as error:
            if options.mode == "required" or error.is_caller_limit:
                raise
            return None

    async def _run_until_detached(self, context: RequestContext, tool: Tool, arguments: dict[str, Any]) -> ToolAnswer:
        """Run a tool within the call, and create a task if the tool detaches."""
        repeated = await self._tasks.repeated(context)
        if repeated is not None:
            return _created(repeated, context)
        detachable = DetachableContext(context.routed, context.client, context.channel, context.http)
        self._calls.open_rounds(detachable, tool)
        try:
            return await self._tool_calls.run(detachable, tool, arguments, tool.time_limit)
        except Detached:
            channel = detachable.channel
            answers = channel.answered if isinstance(channel, Rounds) else {}
            record = await self._tasks.create(detachable, tool.task or TaskOptions(), answers=answers)
            return _created(record, detachable)
        finally:
            context.set_error(detachable.error)

    def _invalid_arguments(
        self, context: RequestContext, tool: Tool, arguments: dict[str, Any]
    ) -> dict[str, Any] | None:
        """Return the result of a call whose arguments the tool rejects; None if it accepts them, or can't tell."""
        try:
            if tool.check is not None:
                tool.check(arguments)
        except BaseException as error:  # noqa: BLE001 - `outcome_of` raises what is not a failure again
            return self._tool_calls.outcome_of(error, tool, context)
        return None


def _created(record: TaskRecord, context: RequestContext) -> dict[str, Any]:
    return created(status_of(record, record.created), rules_of(context))
