"""`prompts/get`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp.protocol import adaptation
from funcmcp.protocol.errors import InvalidParams
from funcmcp.server.catalog.features import EncodedResult

if TYPE_CHECKING:
    from funcmcp.server.calls.context import RequestContext
    from funcmcp.server.calls.feature_call import FeatureCalls
    from funcmcp.server.catalog.features import Prompt
    from funcmcp.server.results import Results


class PromptCalls:
    """Gets prompts.

    Args:
        calls: Runs the prompts' handlers.
        results: Completes their results.
    """

    def __init__(self, calls: FeatureCalls, results: Results) -> None:
        self._calls = calls
        self._results = results

    async def get(self, context: RequestContext) -> dict[str, Any] | bytes:
        """Answer `prompts/get`."""
        prompt: Prompt = context.routed.require_feature()
        arguments = strings_of(context.request.params.get("arguments", {}), "arguments")
        self._calls.open_rounds(context, prompt)
        result = await self._calls.run(prompt, prompt.handler(context, arguments))
        revision = context.client.revision
        if isinstance(result, EncodedResult):
            return self._results.prompt(result, revision)
        return adaptation.prompt_result(result, revision) if "messages" in result else result


def strings_of(value: object, member: str) -> dict[str, str]:
    """Return an object whose values are all strings; raise InvalidParams for any other value of a member."""
    if type(value) is dict and all(type(text) is str for text in value.values()):
        return value
    raise InvalidParams(f'"{member}" must be an object whose values are strings.')
