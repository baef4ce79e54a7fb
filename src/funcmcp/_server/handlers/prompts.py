"""`prompts/get`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from funcmcp._protocol import adaptation
from funcmcp._protocol.errors import InvalidParams
from funcmcp._server.catalog.features import EncodedResult

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.calls.feature_call import FeatureCalls
    from funcmcp._server.catalog.features import Prompt
    from funcmcp._server.results import Results

    PromptAnswer: TypeAlias = dict[str, Any] | bytes


class PromptCalls:
    """Gets prompts.

    Args:
        calls: Runs the prompts' handlers.
        results: Completes their results.
    """

    def __init__(self, calls: FeatureCalls, results: Results) -> None:
        self._calls = calls
        self._results = results

    def get(self, context: RequestContext) -> PromptAnswer | Awaitable[PromptAnswer]:
        """Answer `prompts/get`: at once, or with an awaitable if the prompt waits."""
        prompt: Prompt = context.routed.require_feature()
        arguments = strings_of(context.request.params.get("arguments", {}), "arguments")
        self._calls.open_rounds(context, prompt)
        return self._calls.begin(prompt, prompt.handler(context, arguments), self._answer, context)

    def _answer(self, result: dict[str, Any] | EncodedResult, context: RequestContext) -> PromptAnswer:
        """Return the result of a prompt as the client's revision has it."""
        revision = context.client.revision
        if isinstance(result, EncodedResult):
            return self._results.prompt(result, revision)
        return adaptation.prompt_result(result, revision) if "messages" in result else result


def strings_of(value: object, member: str) -> dict[str, str]:
    """Return an object whose values are all strings; raise InvalidParams for any other value of a member."""
    if type(value) is dict and all(type(text) is str for text in value.values()):
        return value
    raise InvalidParams(f'"{member}" must be an object whose values are strings.')
