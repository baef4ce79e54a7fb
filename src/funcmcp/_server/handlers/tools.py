"""`tools/call`: within the request, or as a task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from funcmcp._protocol.errors import InvalidParams
from funcmcp._server.calls.feature_call import FeatureFailedError
from funcmcp._server.calls.time_limit import within
from funcmcp._server.catalog.features import RawResponse
from funcmcp._server.run import Waiting, begin

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from funcmcp._protocol.revisions import Revision
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.calls.feature import TimeLimit
    from funcmcp._server.calls.feature_call import FeatureCalls
    from funcmcp._server.catalog.features import JSONResult, Tool
    from funcmcp._server.results import Results

    ToolAnswer: TypeAlias = dict[str, Any] | bytes | RawResponse
    ToolResult: TypeAlias = dict[str, Any] | JSONResult | RawResponse

    class Budgets(Protocol):
        """Keeps results within the budgets of their tools."""

        def answer(
            self, result: ToolResult, context: RequestContext, tool: Tool, arguments: dict[str, Any]
        ) -> ToolAnswer | Awaitable[ToolAnswer]:
            """Return the answer with the result of a tool, or an awaitable of that if the result is too long."""

        def tool_definition(self, definition: Mapping[str, Any], revision: Revision) -> dict[str, Any]:
            """Return a Tool in the form of the revision, with a place for the note about what is missing."""

    class CallsAsTasks(Protocol):
        """Answers calls that may become tasks."""

        def call(self, context: RequestContext, tool: Tool, arguments: dict[str, Any]) -> Awaitable[ToolAnswer]:
            """Create a task for a call if it becomes one, else run the tool."""


class ToolCalls:
    """Calls tools.

    Args:
        calls: Runs the tools' handlers.
        results: Completes their results.
    """

    def __init__(self, calls: FeatureCalls, results: Results) -> None:
        self._calls = calls
        self._results = results
        self._task_calls: CallsAsTasks | None = None
        self._budgets: Budgets | None = None

    def add_tasks(self, task_calls: CallsAsTasks) -> None:
        """Pass calls that may become tasks to *task_calls*."""
        self._task_calls = task_calls

    def limit_with(self, budgets: Budgets) -> None:
        """Keep results within the budgets of their tools."""
        self._budgets = budgets

    def call(self, context: RequestContext) -> ToolAnswer | Awaitable[ToolAnswer]:
        """Answer `tools/call`: at once, or with an awaitable if the tool waits."""
        tool: Tool = context.routed.require_feature()
        params = context.request.params
        arguments = params.get("arguments", {})
        if type(arguments) is not dict:
            raise InvalidParams('"arguments" must be an object.')
        if self._task_calls is not None and (tool.task is not None or "task" in params):
            return self._task_calls.call(context, tool, arguments)
        if tool.interactive:
            self._calls.open_rounds(context, tool)
        return self._begin(context, tool, arguments, tool.time_limit)

    async def run(
        self, context: RequestContext, tool: Tool, arguments: dict[str, Any], limit: TimeLimit | None
    ) -> ToolAnswer:
        """Run a tool, within a time limit, and return its result; raise MCPError or Detached."""
        answer = self._begin(context, tool, arguments, limit)
        return answer if isinstance(answer, (bytes, dict, RawResponse)) else await answer

    def _begin(
        self, context: RequestContext, tool: Tool, arguments: dict[str, Any], limit: TimeLimit | None
    ) -> ToolAnswer | Awaitable[ToolAnswer]:
        """Run a tool up to its first wait. Most tools never wait."""
        try:
            result = begin(tool.handler(context, arguments))
        except BaseException as error:  # noqa: BLE001 - `outcome_of` raises what is not a failure again
            outcome = self.outcome_of(error, tool, context)
            return outcome if self._budgets is None else self._budgets.answer(outcome, context, tool, arguments)
        if isinstance(result, Waiting):
            return self._wait_for(result, context, tool, arguments, limit)
        if self._budgets is not None:
            return self._budgets.answer(result, context, tool, arguments)
        return self._results.tool(result, context.client.revision)

    async def _wait_for(
        self,
        work: Waiting[ToolResult],
        context: RequestContext,
        tool: Tool,
        arguments: dict[str, Any],
        limit: TimeLimit | None,
    ) -> ToolAnswer:
        """Wait for a tool that has begun, within its time limit."""
        try:
            result = await within(limit, work, context)
        except BaseException as error:  # noqa: BLE001 - as in `_begin`
            outcome = self.outcome_of(error, tool, context)
            if self._budgets is None:
                return outcome
            result = outcome
        if self._budgets is None:
            return self._results.tool(result, context.client.revision)
        answer = self._budgets.answer(result, context, tool, arguments)
        return answer if isinstance(answer, (bytes, dict, RawResponse)) else await answer

    def outcome_of(self, error: BaseException, tool: Tool, context: RequestContext) -> dict[str, Any]:
        """Return the result of a call that raised: a failure of the tool is for the model, not a JSON-RPC error."""
        try:
            return self._calls.outcome_of(error, tool, context)
        except FeatureFailedError as failure:
            text = failure.text
            if text is None:
                text = f"The tool failed. The server's log has the details under error id {failure.error_id}."
            return {"content": [{"type": "text", "text": text}], "isError": True}
