"""`@mcp.completion()` of the official SDK: one function that completes the arguments of all prompts and templates."""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from funcmcp._authoring.signatures.partials import is_async
from funcmcp._protocol.completion import Completion
from funcmcp._protocol.errors import INVALID_PARAMS
from funcmcp._server.catalog.features import Prompt, ResourceTemplate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.catalog.features import Completer


def with_completion(feature: Any, handler: Callable[..., Any]) -> Any:
    """Return a prompt or a template whose arguments a function completes; other features are returned unchanged.

    Args:
        feature: The feature.
        handler: Gets the reference to the feature, the argument and the context. It returns a list of texts, a
            ``Completion`` of ``mcp.types``, or None.
    """
    if isinstance(feature, Prompt):
        names = [argument["name"] for argument in feature.describe().get("arguments", ())]
    elif isinstance(feature, ResourceTemplate) and feature.template.variables:
        names = list(feature.template.variables)
    else:
        return feature
    reference = _reference_of(feature)
    completers = {name: _completer(handler, reference, name) for name in names}
    return replace(feature, completers={**completers, **feature.completers})


def _completer(handler: Callable[..., Any], reference: Any, name: str) -> Completer:
    async def complete(_: RequestContext, text: str, resolved: Mapping[str, str]) -> Completion:
        argument = _sdk_object("CompletionArgument", name=name, value=text)
        context = _sdk_object("CompletionContext", arguments=dict(resolved)) if resolved else None
        return await _answer(handler, reference, argument, context)

    return complete


async def _answer(handler: Callable[..., Any], *arguments: Any) -> Completion:
    """Return what a function suggests. A plain function runs in a thread.

    Raises:
        TypeError: It returned a text, whose characters would be the suggestions.
    """
    answer = await handler(*arguments) if is_async(handler) else await asyncio.to_thread(handler, *arguments)
    if inspect.isawaitable(answer):
        answer = await answer
    if isinstance(answer, str):
        raise TypeError(
            "A completion handler returned a str; return a list of strings (for example, [value]) or a Completion "
            "instead."
        )
    if answer is None:
        return Completion([])
    if isinstance(answer, list | tuple):
        return Completion(answer)
    has_more = getattr(answer, "has_more", None) or getattr(answer, "hasMore", None)
    return Completion(list(answer.values), answer.total, bool(has_more))


async def complete_unknown(handler: Callable[..., Any], request: RequestContext, reply: Any) -> Any:
    """Return the answer to a completion, without an error for what the server does not have, as in FastMCP.

    An unknown prompt or template, and one that the caller does not see, has no suggestions. The function is asked for
    an argument that the prompt or template does not have.

    Args:
        handler: The function that completes arguments.
        request: The request.
        reply: The answer of funcmcp.
    """
    if reply.error != INVALID_PARAMS:
        return reply
    params, feature = request.request.params, request.routed.feature
    reference, argument = params.get("ref"), params.get("argument")
    if not isinstance(reference, dict) or not isinstance(argument, dict):
        return reply
    if feature is None:
        is_known_type = reference.get("type") in {"ref/prompt", "ref/resource"}
        return Completion([]) if is_known_type else reply
    name, text = argument.get("name"), argument.get("value")
    if not isinstance(name, str) or not isinstance(text, str) or name in feature.completers:
        return reply
    return await _answer(
        handler, _reference_of(feature), _sdk_object("CompletionArgument", name=name, value=text), None
    )


def _reference_of(feature: Any) -> Any:
    """Return the reference to a prompt or template."""
    if isinstance(feature, Prompt):
        return _sdk_object("PromptReference", type="ref/prompt", name=feature.name)
    return _sdk_object("ResourceTemplateReference", type="ref/resource", uri=feature.key)


def _sdk_object(kind: str, **members: Any) -> Any:
    """Return an object of ``mcp.types``, which authors compare with its classes; without `mcp` a plain object."""
    try:
        from mcp import types  # noqa: PLC0415 - an author's own dependency
    except ModuleNotFoundError:
        return SimpleNamespace(**members)
    return getattr(types, kind)(**members)
