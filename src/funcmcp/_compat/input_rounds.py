"""Functions that ask the client themselves: they return an ``InputRequiredResult``, and are called again.

How it works: the questions and the state of the function go to the client as the result of the call. The state is
sealed with the server's keys, for this request and this caller. The client sends the request again with the answers and
the state, and the function finds both in its context. Clients of the handshake era have no such results.

Source: 2026-07-28 "basic/patterns/mrtr".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._app.direct_calls import DirectContext
from funcmcp._compat.annotations import plain
from funcmcp._compat.editable import model_of
from funcmcp._compat.input_required import is_input_required_type
from funcmcp._protocol.errors import INTERNAL_ERROR, MCPError
from funcmcp._server.calls.rounds import NoRoundsError, Rounds

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._server.calls.context import RequestContext

_STATE = "funcmcp/request_state"
"""The key of the function's own state in the sealed state."""


class InputRequiredError(MCPError):
    """A function has returned an ``InputRequiredResult``, and no client takes it: the error of the call.

    Args:
        result: The result.
    """

    def __init__(self, result: Any) -> None:
        super().__init__(INTERNAL_ERROR, "Handler returned an invalid result")
        self.result = result


def raise_for_input(value: Any) -> Any:
    """Return a value; raise InputRequiredError for an ``InputRequiredResult``, which no writer of results takes."""
    if is_input_required_type(type(value)):
        raise InputRequiredError(value)
    return value


def asking(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that converts what the function of a feature returned, unless it asks the client."""
    return lambda value: convert(raise_for_input(value))


def answering_input(handler: Callable[..., Any], *, names_revision: bool = False) -> Callable[..., Any]:
    """Return the handler of a feature that answers with the questions that its function returns.

    Args:
        handler: The handler.
        names_revision: Whether the error for a client of the handshake era names the revision, as in FastMCP.
    """

    async def handle(request: RequestContext, *arguments: Any) -> Any:
        try:
            return await handler(request, *arguments)
        except InputRequiredError as error:
            rounds = request.channel
            if not isinstance(rounds, Rounds) or isinstance(request, DirectContext):
                if names_revision and not request.client.revision.per_request:
                    raise NoRoundsError(_era_error(request)) from error
                raise
            wire = plain(error.result)
        state = wire.get("requestState")
        rounds.carried = {} if state is None else {_STATE: state}
        return rounds.end(wire.get("inputRequests") or {})

    return handle


def _era_error(request: RequestContext) -> str:
    return (
        "It returned an InputRequiredResult to request client input, but the multi-round-trip result type only exists "
        f"at MCP 2026-07-28; this connection negotiated {request.client.revision.date!r}. Use ctx.elicit() for "
        "server-initiated input on handshake-era connections."
    )


def input_responses(request: RequestContext) -> dict[str, Any] | None:
    """Return the answers of the client by key; None in the first round.

    They are models of ``mcp.types`` if the program has loaded that module. Otherwise their members are attributes.
    """
    if not isinstance(request.channel, Rounds):
        return None
    return {key: _answer(answer) for key, answer in request.channel.responses.items()} or None


def _answer(wire: Any) -> Any:
    if not isinstance(wire, dict):
        return wire
    if "action" in wire:
        return model_of("ElicitResult", wire)
    return model_of("ListRootsResult" if "roots" in wire else "CreateMessageResult", wire)


def request_state(request: RequestContext) -> str | None:
    """Return the state that the function returned in the round before; None in the first round."""
    if not isinstance(request.channel, Rounds):
        return None
    state = request.channel.carried.get(_STATE)
    return state if isinstance(state, str) else None
