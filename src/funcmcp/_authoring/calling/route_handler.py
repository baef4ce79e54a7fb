"""Handlers of custom HTTP routes: any function of the author as an async function of the request."""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any

from funcmcp._authoring.calling.function_call import is_async
from funcmcp._authoring.signatures.partials import signature_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from funcmcp._authoring.calling.services import Services

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def route_handler(function: Callable[..., Any], services: Services) -> Callable[[Any], Awaitable[Any]]:
    """Return the handler for a function, which runs in a worker thread if it is not async.

    Raises:
        TypeError: The function is not callable, or needs more than the request.
    """
    if not callable(function):
        raise TypeError(f"A custom route needs a function, not {type(function).__name__}.")
    parameters = [
        parameter
        for parameter in signature_of(function).parameters.values()
        if parameter.default is parameter.empty and parameter.kind in _POSITIONAL
    ]
    if len(parameters) > 1:
        raise TypeError(f"The function of a custom route takes one argument, the request, not {len(parameters)}.")

    async def handle(request: Any) -> Any:
        bound = partial(function, request) if parameters else function
        if is_async(function):
            return await bound()
        value = await services.threads.run(bound, {})
        return await value if inspect.isawaitable(value) else value

    return handle
