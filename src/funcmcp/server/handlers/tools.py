"""`tools/call`: within the request, or as a task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from funcmcp.protocol import adaptation
from funcmcp.protocol.errors import METHOD_NOT_FOUND, InvalidParams, MCPError
from funcmcp.protocol.tasks import created, declares
from funcmcp.server.calls.feature_call import FeatureFailedError
from funcmcp.server.calls.rounds import Rounds
from funcmcp.server.calls.task_call import DetachableContext, Detached
from funcmcp.server.calls.time_limit import within
from funcmcp.server.catalog.features import JSONResult, RawResponse
from funcmcp.server.catalog.task_options import TaskOptions
from funcmcp.server.run import Waiting, begin
from funcmcp.server.tasks.service import requested_ttl, require_extension, rules_of, status_of

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from funcmcp.server.calls.context import RequestContext
    from funcmcp.server.calls.feature_call import FeatureCalls
    from funcmcp.server.catalog.features import Tool
    from funcmcp.server.results import Results
    from funcmcp.server.tasks.service import Tasks
    from funcmcp.state.tasks.record import TaskRecord

    ToolAnswer: TypeAlias = dict[str, Any] | bytes | RawResponse
    ToolResult: TypeAlias = dict[str, Any] | JSONResult | RawResponse


class ToolCalls:
    """Calls tools.

    Args:
        calls: Runs the tools' handlers.
        results: Completes their results.
        tasks: The tasks of the server; None if it has none.
    """

    def __init__(self, calls: FeatureCalls, results: Results, tasks: Tasks | None = None) -> None:
        self._calls = calls
        self._results = results
        self._tasks = tasks

    def call(self, context: RequestContext) -> ToolAnswer | Awaitable[ToolAnswer]:
        """Answer `tools/call`: at once, or with an awaitable if the tool waits."""
        tool: Tool = context.routed.require_feature()
        params = context.request.params
        arguments = params.get("arguments", {})
        if type(arguments) is not dict:
            raise InvalidParams('"arguments" must be an object.')
        if self._tasks is not None and (tool.task is not None or "task" in params):
            return self._call_or_create(context, tool, arguments, self._tasks)
        if tool.interactive:
            self._calls.open_rounds(context, tool)
        return self._begin(context, tool, arguments, tool.timeout)

    async def run(
        self, context: RequestContext, tool: Tool, arguments: dict[str, Any], seconds: float | None
    ) -> ToolAnswer:
        """Run a tool, within so many seconds, and return its result; raise MCPError or Detached."""
        answer = self._begin(context, tool, arguments, seconds)
        return answer if isinstance(answer, (bytes, dict, RawResponse)) else await answer

    def _begin(
        self, context: RequestContext, tool: Tool, arguments: dict[str, Any], seconds: float | None
    ) -> ToolAnswer | Awaitable[ToolAnswer]:
        """Run a tool up to its first wait. Most tools never wait."""
        try:
            result = begin(tool.handler(context, arguments))
        except BaseException as error:  # noqa: BLE001 - `outcome_of` raises what is not a failure again
            return self._outcome_of(error, tool)
        if isinstance(result, Waiting):
            return self._wait_for(result, context, tool, seconds)
        return self._answer(result, context)

    async def _wait_for(
        self, work: Waiting[ToolResult], context: RequestContext, tool: Tool, seconds: float | None
    ) -> ToolAnswer:
        """Wait for a tool that has begun, at most so many seconds."""
        try:
            result = await within(seconds, work)
        except BaseException as error:  # noqa: BLE001 - as in `_begin`
            return self._outcome_of(error, tool)
        return self._answer(result, context)

    def _answer(self, result: ToolResult, context: RequestContext) -> ToolAnswer:
        """Return the result of a tool as the client's revision has it."""
        revision = context.client.revision
        if isinstance(result, JSONResult):
            return self._results.tool(result, revision)
        return result if isinstance(result, RawResponse) else adaptation.tool_result(result, revision)

    async def _call_or_create(
        self, context: RequestContext, tool: Tool, arguments: dict[str, Any], tasks: Tasks
    ) -> ToolAnswer:
        """Create a task for a call if it becomes one, else run the tool."""
        options, rules, params = tool.task, context.client.revision.tasks, context.request.params
        if rules is not None and rules.extension:
            if options is not None and options.mode == "required":
                require_extension(context)
            if options is not None and declares(context.client.capabilities):
                if options.detaches:
                    return await self._run_until_detached(context, tool, arguments, tasks)
                return self._invalid_arguments(tool, arguments) or _created(
                    await tasks.create(context, options), context
                )
        elif rules is not None and "task" in params:
            if options is None:
                raise MCPError(METHOD_NOT_FOUND, "This tool does not run as a task.")
            ttl = requested_ttl(params, options, rules)
            return _created(await tasks.create(context, options, ttl=ttl), context)
        elif options is not None and options.mode == "required":
            raise MCPError(METHOD_NOT_FOUND, "This tool runs only as a task, for clients that support tasks.")
        self._calls.open_rounds(context, tool)
        return await self.run(context, tool, arguments, tool.timeout)

    async def _run_until_detached(
        self, context: RequestContext, tool: Tool, arguments: dict[str, Any], tasks: Tasks
    ) -> ToolAnswer:
        """Run a tool within the call, and create a task if the tool detaches."""
        context = DetachableContext(context.routed, context.client, context.channel, context.http)
        self._calls.open_rounds(context, tool)
        try:
            return await self.run(context, tool, arguments, tool.timeout)
        except Detached:
            channel = context.channel
            answers = channel.answered if isinstance(channel, Rounds) else {}
            return _created(await tasks.create(context, tool.task or TaskOptions(), answers=answers), context)

    def _invalid_arguments(self, tool: Tool, arguments: dict[str, Any]) -> dict[str, Any] | None:
        """Return the result of a call whose arguments the tool rejects; None if it accepts them, or can't tell."""
        try:
            if tool.check is not None:
                tool.check(arguments)
        except BaseException as error:  # noqa: BLE001 - as in `run`
            return self._outcome_of(error, tool)
        return None

    def _outcome_of(self, error: BaseException, tool: Tool) -> dict[str, Any]:
        """Return the result of a call that raised: a failure of the tool is for the model, not a JSON-RPC error."""
        try:
            return self._calls.outcome_of(error, tool)
        except FeatureFailedError as failure:
            text = failure.text
            if text is None:
                text = f"The tool failed. The server's log has the details under error id {failure.error_id}."
            return {"content": [{"type": "text", "text": text}], "isError": True}


def _created(record: TaskRecord, context: RequestContext) -> dict[str, Any]:
    return created(status_of(record, record.created), rules_of(context))
