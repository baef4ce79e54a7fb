"""`tools/call`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp.protocol import shape
from funcmcp.protocol.errors import InvalidParams
from funcmcp.server.calls.feature_call import FeatureFailedError, within
from funcmcp.server.catalog.features import JSONResult, RawResponse
from funcmcp.server.run import Waiting, begin

if TYPE_CHECKING:
    from funcmcp.server.calls.context import RequestContext
    from funcmcp.server.calls.feature_call import FeatureCalls
    from funcmcp.server.catalog.features import Tool
    from funcmcp.server.results import Results


class ToolCalls:
    """Calls tools.

    Args:
        calls: Runs the tools' handlers.
        results: Completes their results.
    """

    def __init__(self, calls: FeatureCalls, results: Results) -> None:
        self._calls = calls
        self._results = results

    async def call(self, context: RequestContext) -> dict[str, Any] | bytes | RawResponse:
        """Answer `tools/call`."""
        tool: Tool = context.routed.require_feature()
        arguments = context.request.params.get("arguments", {})
        if type(arguments) is not dict:
            raise InvalidParams('"arguments" must be an object.')
        if tool.interactive:
            self._calls.open_rounds(context, tool)
        result: Any
        try:
            # As FeatureCalls.run, without its coroutine: most calls are over when `begin` returns.
            result = begin(tool.handler(context, arguments))
            if isinstance(result, Waiting):
                result = await within(tool.timeout, result)
        except BaseException as error:  # noqa: BLE001 - `outcome_of` raises what is not a failure again
            return self._outcome_of(error, tool)
        revision = context.client.revision
        if isinstance(result, JSONResult):
            return self._results.tool(result, revision)
        return result if isinstance(result, RawResponse) else shape.tool_result(result, revision)

    def _outcome_of(self, error: BaseException, tool: Tool) -> dict[str, Any]:
        """Return the result of a call that raised: a failure of the tool is for the model, not a JSON-RPC error."""
        try:
            return self._calls.outcome_of(error, tool)
        except FeatureFailedError as failure:
            text = failure.text
            if text is None:
                text = f"The tool failed. The server's log has the details under error id {failure.error_id}."
            return {"content": [{"type": "text", "text": text}], "isError": True}
