"""`@mcp.completion()` of the official SDK: one function that completes the arguments of all prompts and templates."""

from __future__ import annotations

import inspect
import os
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from funcmcp._compat.annotations import plain
from funcmcp._compat.middleware import as_mcp_error
from funcmcp._protocol.completion import Completion
from funcmcp._protocol.errors import INTERNAL_ERROR, InvalidParams, MCPError
from funcmcp._server.catalog.features import Prompt, ResourceTemplate
from funcmcp._server.handlers.completions import MAX_VALUES
from funcmcp._server.log import log_failure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.catalog.features import Completer


def with_completion(feature: Any, handler: Callable[..., Any]) -> Any:
    """Return a prompt or a template whose arguments a function completes; other features are returned unchanged.

    Args:
        feature: The feature.
        handler: Gets the reference to the feature, the argument and the context, as in the official SDK.
    """
    if isinstance(feature, Prompt):
        names = [argument["name"] for argument in feature.describe().get("arguments", ())]
        reference = _sdk_object("PromptReference", type="ref/prompt", name=feature.name)
    elif isinstance(feature, ResourceTemplate) and feature.template.variables:
        names = list(feature.template.variables)
        reference = _sdk_object("ResourceTemplateReference", type="ref/resource", uri=feature.key)
    else:
        return feature
    completers = {name: _completer(handler, reference, name) for name in names}
    return replace(feature, completers={**completers, **feature.completers})


async def completed(handler: Callable[..., Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of ``completion/complete`` for what a function suggests.

    Args:
        handler: Gets the reference to a prompt or a template, which may not exist, the argument and the context.
        params: The params of the request.

    Raises:
        InvalidParams: The params are not those of such a request.
        MCPError: The function raised it, or it failed.
    """
    match params:
        case {"ref": dict(reference), "argument": {"name": str(name), "value": str(value)}}:
            is_prompt = reference.get("type") == "ref/prompt"
        case _:
            raise InvalidParams('"ref" and "argument" must be objects.')
    resolved = (params.get("context") or {}).get("arguments")
    try:
        answer = handler(
            _sdk_object("PromptReference" if is_prompt else "ResourceTemplateReference", **reference),
            _sdk_object("CompletionArgument", name=name, value=value),
            None if resolved is None else _sdk_object("CompletionContext", arguments=dict(resolved)),
        )
        if inspect.isawaitable(answer):
            answer = await answer
        completion = {"values": []} if answer is None else plain(answer)
        if not isinstance(completion, dict) or not isinstance(completion.get("values"), list):
            raise TypeError(f"The completion must be a Completion or None, not {type(answer).__name__}.")
    except Exception as error:
        native = as_mcp_error(error)
        if isinstance(native, MCPError):
            raise native from error
        log_failure(error, os.urandom(8).hex(), name, "completion/complete")
        raise MCPError(INTERNAL_ERROR, f"Error completing argument {name}") from error
    completion["values"] = completion["values"][:MAX_VALUES]
    return {"completion": completion}


def _completer(handler: Callable[..., Any], reference: Any, name: str) -> Completer:
    async def complete(_: RequestContext, text: str, resolved: Mapping[str, str]) -> Completion:
        argument = _sdk_object("CompletionArgument", name=name, value=text)
        context = _sdk_object("CompletionContext", arguments=dict(resolved)) if resolved else None
        answer = handler(reference, argument, context)
        if inspect.isawaitable(answer):
            answer = await answer
        if answer is None:
            return Completion([])
        has_more = getattr(answer, "has_more", None) or getattr(answer, "hasMore", None)
        return Completion(list(answer.values), answer.total, bool(has_more))

    return complete


def _sdk_object(kind: str, **members: Any) -> Any:
    """Return an object of ``mcp.types``, which authors compare with its classes; without `mcp` a plain object."""
    try:
        from mcp import types  # noqa: PLC0415 - an author's own dependency
    except ModuleNotFoundError:
        return SimpleNamespace(**members)
    return getattr(types, kind)(**members)
