"""`completion/complete`: suggestions for a prompt's argument or a template's variable.

Source: "server/utilities/completion".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp.protocol.errors import InvalidParams
from funcmcp.server.catalog.features import ResourceTemplate
from funcmcp.server.handlers.prompts import find_prompt, texts
from funcmcp.server.handlers.runs import run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from funcmcp.server.calls.context import Context
    from funcmcp.server.catalog.features import Completer, Completion, Prompt
    from funcmcp.server.dispatch import Server

MOST_VALUES = 100


async def complete(server: Server, context: Context) -> dict[str, Any]:
    """Answer `completion/complete`."""
    params = context.request.params
    reference = _reference(params)
    texts_of_argument = texts(params.get("argument"), "argument")
    if not {"name", "value"} <= texts_of_argument.keys():
        raise InvalidParams('"argument" must have a "name" and a "value".')
    given = params.get("context", {})
    if type(given) is not dict:
        raise InvalidParams('"context" must be an object.')
    others = texts(given.get("arguments", {}), "context.arguments")
    feature = _FINDERS[reference["type"]](server, reference)
    name = texts_of_argument["name"]
    completer = feature.completers.get(name)
    if completer is None:
        if name not in _names(feature):
            raise InvalidParams(f"{feature.key} has no argument {name[:128]!r}.")
        return _result([], 0)
    return await run(server, feature, _completed(completer, context, texts_of_argument["value"], others))


def find_completed(server: Server, params: dict[str, Any]) -> Prompt | ResourceTemplate:
    """Return what a request wants completed; raise InvalidParams."""
    reference = _reference(params)
    return _FINDERS[reference["type"]](server, reference)


def _reference(params: dict[str, Any]) -> dict[str, Any]:
    reference = params.get("ref")
    kind = reference.get("type") if type(reference) is dict else None
    if type(reference) is not dict or type(kind) is not str or kind not in _FINDERS:
        raise InvalidParams(f'"ref" must be an object whose "type" is {" or ".join(_FINDERS)}.')
    return reference


async def _completed(completer: Completer, context: Context, value: str, others: Mapping[str, str]) -> dict[str, Any]:
    found: Completion = await completer(context, value, others)
    total = len(found.values) if found.total is None and not found.has_more else found.total
    return _result(found.values[:MOST_VALUES], total, more=found.has_more or len(found.values) > MOST_VALUES)


def _result(values: Any, total: int | None, *, more: bool = False) -> dict[str, Any]:
    completion: dict[str, Any] = {"values": list(values), "hasMore": more}
    if total is not None:
        completion["total"] = total
    return {"completion": completion}


def _template(server: Server, reference: Mapping[str, Any]) -> ResourceTemplate:
    uri = reference.get("uri")
    template: ResourceTemplate | None = server.templates.get(uri) if type(uri) is str else None
    if template is None:
        raise InvalidParams('"ref" names no resource template of this server; its "uri" is the template\'s text.')
    return template


_FINDERS: dict[str, Callable[[Server, Mapping[str, Any]], Prompt | ResourceTemplate]] = {
    "ref/prompt": lambda server, reference: find_prompt(server, reference.get("name")),
    "ref/resource": _template,
}


def _names(feature: Prompt | ResourceTemplate) -> set[str]:
    if isinstance(feature, ResourceTemplate):
        return set(feature.template.variables)
    return {argument["name"] for argument in feature.describe().get("arguments", ())}
