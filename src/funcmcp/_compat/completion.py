"""`@mcp.completion()` of the official SDK: one function that completes the arguments of all prompts and templates."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._authoring.calling.function_call import call_in_thread
from funcmcp._authoring.signatures.partials import is_async
from funcmcp._compat.annotations import plain
from funcmcp._compat.middleware_adapters import as_mcp_error
from funcmcp._protocol.completion import Completion
from funcmcp._protocol.errors import INTERNAL_ERROR, INVALID_PARAMS, InvalidParams, MCPError
from funcmcp._server.catalog.features import Prompt, ResourceTemplate
from funcmcp._server.handlers.completions import MAX_VALUES
from funcmcp._server.log import log_failure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.catalog.features import Completer


class CompletionHandler(NamedTuple):
    """The function that completes all arguments of a server.

    Attributes:
        function: Gets the reference to the prompt or template, the argument and the context. It returns a list of
            texts, a ``Completion`` of ``mcp.types``, or None.
        run: Runs a plain function in a worker thread of the server.
    """

    function: Callable[..., Any]
    run: Callable[..., Awaitable[Any]]


def with_completion(feature: Any, handler: CompletionHandler) -> Any:
    """Return a prompt or a template whose arguments a function completes; other features are returned unchanged.

    Args:
        feature: The feature.
        handler: The function.
    """
    if isinstance(feature, Prompt):
        names = {argument["name"]: argument["name"] for argument in feature.describe().get("arguments", ())}
    elif isinstance(feature, ResourceTemplate) and feature.template.variables:
        names = feature.template.names
    else:
        return feature
    reference = _reference_of(feature)
    completers = {key: _completer(handler, reference, name) for key, name in names.items()}
    return replace(feature, completers={**completers, **feature.completers})


def _completer(handler: CompletionHandler, reference: Any, name: str) -> Completer:
    async def complete(_: RequestContext, text: str, resolved: Mapping[str, str]) -> Completion:
        argument = _sdk_object("CompletionArgument", name=name, value=text)
        context = _sdk_object("CompletionContext", arguments=dict(resolved)) if resolved else None
        return await _answer(handler, reference, argument, context)

    return complete


async def _answer(handler: CompletionHandler, *arguments: Any) -> Completion:
    """Return what a function suggests. A plain function runs in a thread.

    Raises:
        TypeError: It returned a text, whose characters would be the suggestions.
    """
    answer = await _returned(handler, *arguments)
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


async def _returned(handler: CompletionHandler, *arguments: Any) -> Any:
    if is_async(handler.function):
        return await handler.function(*arguments)
    return await call_in_thread(partial(handler.function, *arguments), {}, handler.run)


async def completed(handler: CompletionHandler, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of ``completion/complete`` for what a function suggests.

    Args:
        handler: The function. The prompt or the template may not exist.
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
        answer = await _returned(
            handler,
            _sdk_object("PromptReference" if is_prompt else "ResourceTemplateReference", **reference),
            _sdk_object("CompletionArgument", name=name, value=value),
            None if resolved is None else _sdk_object("CompletionContext", arguments=dict(resolved)),
        )
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


async def complete_unknown(handler: CompletionHandler, request: RequestContext, reply: Any) -> Any:
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
    params: dict[str, Any] = request.request.params
    feature: Any = request.routed.feature
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
