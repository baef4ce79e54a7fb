"""The state of the caller for a call, which `Context.state` and `funcmcp.compat` return."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from funcmcp._authoring.calling.arguments import reader_of_type
from funcmcp._authoring.results.result_writer import jsonable
from funcmcp._protocol.codec import MAX_DEPTH, decode, encode
from funcmcp._server.calls.value_owner import payer_of, value_owner_of
from funcmcp._server.catalog.features import JSONResult
from funcmcp._state.caller_state import CallerState, ValueFormat

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._authoring.calling.services import Services
    from funcmcp._server.calls.context import RequestContext


def state_of(
    context: RequestContext, services: Services, argument: tuple[str, str | None] | None = None
) -> CallerState:
    """Return the state of the caller.

    Args:
        context: The request of the caller.
        services: The services of the server.
        argument: The name of the argument with the handle, and the handle that the client has sent; None if the
            function has no such argument.

    Raises:
        RuntimeError: The functions of the server run without a server.
    """
    name, handle = argument or (None, None)
    name = None if name is None else shown_name(name, context)
    if services.open_values is None:
        raise RuntimeError("context.state needs an MCPServer, which stores the state.")
    return CallerState(
        services.open_values,
        value_owner_of(context),
        address=payer_of(context),
        argument=name,
        handle=handle,
        format=ValueFormat(_write, _read),
    )


def shown_name(argument: str, context: RequestContext) -> str:
    """Return the name that clients see for an argument."""
    return (context.shown_names or {}).get(argument, argument)


def naming_handle(result: Any, argument: str, handle: str) -> Any:
    """Return the result of a tool with one more text, which gives the model the handle for later calls."""
    if isinstance(result, JSONResult):
        result = result.result()
    if not isinstance(result, dict):  # a complete response of the author
        return result
    text = f'State was stored. In later calls that are to use it, pass {argument}: "{handle}".'
    return {**result, "content": [*result["content"], {"type": "text", "text": text}]}


def _write(value: Any) -> bytes:
    """Return a value as JSON text, which can be read again."""
    text = encode(jsonable(value))
    decode(text, MAX_DEPTH)
    return text


def _read(value: Any, type: Any, name: str) -> Any:
    try:
        reader = _reader(type, name)
    except TypeError:  # the type has marks that are not hashable, so it can't be cached
        reader = _reader.__wrapped__(type, name)
    return reader(value)


@lru_cache(maxsize=256)
def _reader(type: Any, name: str) -> Callable[[Any], Any]:
    return reader_of_type(type, name)
