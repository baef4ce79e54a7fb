"""`completion/complete`: suggestions for a prompt's argument or a template's variable.

Source: "server/utilities/completion".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._protocol.errors import InvalidParams
from funcmcp._protocol.jsonrpc import without_nulls
from funcmcp._protocol.uri_template import variable_name
from funcmcp._server.catalog.features import ResourceTemplate
from funcmcp._server.handlers.prompts import strings_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp._protocol.completion import Completion
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.calls.feature_call import FeatureCalls
    from funcmcp._server.catalog.features import Completer, Prompt

MAX_VALUES = 100


class Completions:
    """Completes values.

    Args:
        calls: Runs the completers.
    """

    def __init__(self, calls: FeatureCalls) -> None:
        self._calls = calls

    async def complete(self, context: RequestContext) -> dict[str, Any]:
        """Answer `completion/complete`."""
        feature: Prompt | ResourceTemplate = context.routed.require_feature()
        params = context.request.params
        argument = strings_of(params.get("argument"), "argument")
        if not {"name", "value"} <= argument.keys():
            raise InvalidParams('"argument" must have a "name" and a "value".')
        completion_context = params.get("context", {})
        if type(completion_context) is not dict:
            raise InvalidParams('"context" must be an object.')
        arguments = strings_of(without_nulls(completion_context).get("arguments", {}), "context.arguments")
        name = argument["name"]
        if isinstance(feature, ResourceTemplate):
            name = variable_name(name)
        completer = feature.completers.get(name)
        if completer is None:
            if name not in _argument_names(feature):
                raise InvalidParams(f"{feature.key} has no argument {name[:128]!r}.")
            return {"completion": {"values": [], "hasMore": False, "total": 0}}
        return await self._calls.run(feature, _completion(completer, context, argument["value"], arguments), context)


async def _completion(
    completer: Completer, context: RequestContext, value: str, arguments: Mapping[str, str]
) -> dict[str, Any]:
    """Return a CompleteResult with the values that a completer suggests."""
    return completion_result(await completer(context, value, arguments))


def completion_result(suggested: Completion) -> dict[str, Any]:
    """Return the CompleteResult for suggestions; clients get at most 100 of them."""
    values = list(suggested.values)
    completion: dict[str, Any] = {
        "values": values[:MAX_VALUES],
        "hasMore": suggested.has_more or len(values) > MAX_VALUES,
    }
    if suggested.total is not None:
        completion["total"] = suggested.total
    elif not suggested.has_more:
        completion["total"] = len(values)
    return {"completion": completion}


def _argument_names(feature: Prompt | ResourceTemplate) -> set[str]:
    if isinstance(feature, ResourceTemplate):
        return set(feature.template.variables)
    return {argument["name"] for argument in feature.describe().get("arguments", ())}
