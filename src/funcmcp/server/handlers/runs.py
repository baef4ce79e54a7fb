"""Running a resource's or a prompt's handler: its rounds of questions, its time limit and its failures."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from funcmcp.protocol.errors import INTERNAL_ERROR, MCPError, ToolError
from funcmcp.server.calls.rounds import Rounds, input_required
from funcmcp.server.catalog.access import owner_of
from funcmcp.server.log import log_failure
from funcmcp.server.options import shown_types
from funcmcp.server.run import Waiting, begin

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from funcmcp.server.calls.context import Context
    from funcmcp.server.dispatch import Server


T = TypeVar("T")
R = TypeVar("R")


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

    @property
    def shown_errors(self) -> tuple[type[BaseException], ...] | None:
        """Types of exceptions whose text clients get; None for the server's."""


def open_rounds(server: Server, context: Context, feature: Feature) -> None:
    """Let a feature ask the client in the per-request era; raise InvalidParams for a state that is not ours."""
    if feature.interactive and context.client.revision.per_request:
        context.channel = Rounds(context.channel, context.request, server.keys, owner_of(context.principal))


async def run(server: Server, feature: Feature, work: Coroutine[Any, Any, R]) -> R | dict[str, Any]:
    """Return what a feature's work returns, or the InputRequiredResult that asks for more.

    Raises:
        MCPError: the work raised one, or it failed: -32603, with the text of an exception that is shown, or with an
            error id that is also in the log.
    """
    try:
        begun = begin(work)
        result: R = await within(feature.timeout, begun) if isinstance(begun, Waiting) else begun
        return result
    except BaseException as error:
        pending = input_required(error)
        if pending is not None:
            return {"resultType": "input_required", **pending.result()}
        if isinstance(error, MCPError) or not is_of_the_feature(error):
            raise
        text, error_id = text_for_client(server, feature, error)
        if text is not None:
            raise MCPError(INTERNAL_ERROR, text) from None
        words = f"It failed: the server's log has the details under error id {error_id}."
        raise MCPError(INTERNAL_ERROR, words, {"errorId": error_id}) from None


def completed(text: bytes, end: bytes) -> bytes:
    """Return the complete result of the per-request era.

    Args:
        text: the result's own members, one at least, as a JSON object.
        end: what stands behind them, from the comma to the brace.
    """
    return b'{"resultType":"complete",%b%b' % (text[1:-1], end)


def text_for_client(server: Server, feature: Feature, error: BaseException) -> tuple[str | None, str]:
    """Return what a client may read of a feature's failure.

    Returns:
        The text of a `ToolError` or of an exception that is shown, or None; and the error id in the log, if any.
    """
    shown = feature.shown_errors
    if shown is None:
        shown = shown_types(server.options.show_errors, "show_errors")
    text = None
    if isinstance(error, (ToolError, *shown)):
        try:
            text = _text_of(error)
        except Exception as fault:  # noqa: BLE001 - an author's own __str__ may raise anything
            error = fault
    if text is not None and isinstance(error, ToolError):
        return text, ""
    error_id = os.urandom(8).hex()
    log_failure(error, error_id, feature.key)
    return text, error_id


def _text_of(error: BaseException) -> str:
    text = str(error).encode(errors="replace").decode()  # lone surrogates can't be sent
    if not isinstance(error, ToolError) and (not text or isinstance(error, KeyError)):
        return f"{type(error).__name__}: {text}".rstrip(": ")
    return text


async def within(seconds: float | None, run: Waiting[T]) -> T:
    """Wait for a run; raise ToolError when its time is up, even if it went on and came to an end after that."""
    try:
        async with asyncio.timeout(seconds) as deadline:
            result = await run
    except TimeoutError:
        if not deadline.expired():
            raise
    if deadline.expired():
        raise ToolError(f"It did not finish within {seconds:g} seconds.")
    return result


def is_of_the_feature(error: BaseException) -> bool:
    """Tell whether an exception is the feature's own: all are but a cancellation that somebody asked for.

    Libraries have exceptions that are no Exception; Rust's panics are such.
    """
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and not task.cancelling()
    return not isinstance(error, GeneratorExit)
