"""Running a resource's or a prompt's handler: its rounds of questions, its time limit and its failures."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Protocol

from funcmcp.protocol.errors import INTERNAL_ERROR, MCPError, ToolError
from funcmcp.server.handlers.tools import is_of_the_feature, within
from funcmcp.server.log import log_failure, quote
from funcmcp.server.rounds import Rounds, input_required
from funcmcp.server.run import Waiting, begin

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from funcmcp.server.context import Context
    from funcmcp.server.dispatch import Server


class Feature(Protocol):
    """What a run needs to know of a feature."""

    @property
    def key(self) -> str:
        """Its name or URI, for the log."""

    @property
    def interactive(self) -> bool:
        """Whether it may ask the client something."""

    @property
    def timeout(self) -> float | None:
        """Seconds that it may take."""


def open_rounds(server: Server, context: Context, feature: Feature) -> None:
    """Let a feature ask the client in the per-request era; raise InvalidParams for a state that is not ours."""
    if feature.interactive and context.client.revision.per_request:
        context.channel = Rounds(context.channel, context.request, server.keys)


async def run(feature: Feature, work: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
    """Return what a feature's work returns, or the InputRequiredResult that asks for more.

    Raises:
        MCPError: the work raised one, or it failed: -32603, with the text of a ToolError, or with an error id that
            is also in the log.
    """
    try:
        result = begin(work)
        return await within(feature.timeout, result) if isinstance(result, Waiting) else result
    except BaseException as error:  # noqa: BLE001 - what is not the feature's own is raised again
        return ended(error, feature)


def ended(error: BaseException, feature: Feature) -> dict[str, Any]:
    """Return the InputRequiredResult that an exception stands for; raise MCPError, or it if it is no feature's own."""
    pending = input_required(error)
    if pending is not None:
        return {"resultType": "input_required", **pending.result()}
    if isinstance(error, MCPError) or not is_of_the_feature(error):
        raise error
    raise _failure(error, feature) from None


def completed(text: bytes, end: bytes) -> bytes:
    """Return the complete result of the per-request era.

    Args:
        text: the result's own members, one at least, as a JSON object.
        end: what stands behind them, from the comma to the brace.
    """
    return b'{"resultType":"complete",%b%b' % (text[1:-1], end)


def _failure(error: BaseException, feature: Feature) -> MCPError:
    if isinstance(error, ToolError):
        return MCPError(INTERNAL_ERROR, str(error))
    error_id = os.urandom(8).hex()
    log_failure(error, error_id, quote(feature.key))
    return MCPError(INTERNAL_ERROR, "Internal error", {"errorId": error_id})
