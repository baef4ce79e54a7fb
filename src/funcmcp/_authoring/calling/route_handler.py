"""Handlers of custom HTTP routes: any function of the author as an async function of the request."""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any

from funcmcp._authoring.signatures.late_annotations import annotations_of
from funcmcp._authoring.signatures.partials import is_async, signature_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from funcmcp._authoring.calling.services import Services

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)

_OTHER_FRAMEWORKS = ("starlette", "fastapi")


def route_handler(function: Callable[..., Any], services: Services) -> Callable[[Any], Awaitable[Any]]:
    """Return the handler for a function, which runs in a worker thread if it is not async.

    Raises:
        TypeError: The function is not callable, needs more than the request, or is written for Starlette.
    """
    if not callable(function):
        raise TypeError(f"A custom route needs a function, not {type(function).__name__}.")
    parameters = [
        parameter
        for parameter in signature_of(function).parameters.values()
        if parameter.default is parameter.empty and parameter.kind in _POSITIONAL
    ]
    _refuse_other_classes(function)
    if len(parameters) > 1:
        raise TypeError(f"The function of a custom route takes one argument, the request, not {len(parameters)}.")

    async def handle(request: Any) -> Any:
        bound = partial(function, request) if parameters else function
        if is_async(function):
            return await bound()
        value = await services.threads.run(bound, {})
        return await value if inspect.isawaitable(value) else value

    return handle


def _refuse_other_classes(function: Callable[..., Any]) -> None:
    """Raise TypeError if an annotation is a class of Starlette or FastAPI, whose requests and responses differ."""
    names = getattr(function, "__globals__", {})
    for annotation in annotations_of(function).values():
        kind = names.get(annotation) if isinstance(annotation, str) else annotation
        if isinstance(kind, type) and kind.__module__.partition(".")[0] in _OTHER_FRAMEWORKS:
            raise TypeError(
                f"The function of a custom route can't use {kind.__module__}.{kind.__qualname__}. It gets a "
                "funcmcp.http.Request and returns a funcmcp.http.Response, text, bytes, a JSON value or None. "
                "Routes of funcmcp.compat.FastMCP have Starlette's classes."
            )
