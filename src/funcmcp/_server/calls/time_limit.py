"""The time limit of a call: a tool, resource or prompt that takes longer is cancelled.

A call that ends without waiting has no time limit, because nothing could cancel it (see `funcmcp._server.run`).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from funcmcp._protocol.durations import seconds_text
from funcmcp._protocol.errors import ToolError
from funcmcp._server.calls.context import alarms_of
from funcmcp._server.exception_groups import meaning_of
from funcmcp._server.log import logger

if TYPE_CHECKING:
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.calls.feature import TimeLimit
    from funcmcp._server.run import Waiting

T = TypeVar("T")


async def within(limit: TimeLimit | None, run: Waiting[T], context: RequestContext) -> T:
    """Wait for a run; raise ToolError when its time is up, even if it ignores the cancellation and ends later.

    The log gets a line, because the author may never see the answer.

    Args:
        limit: The time limit; None for no limit.
        run: The run.
        context: The context of the call, which gets the time limit.
    """
    deadline = _Deadline(context, limit)
    try:
        result = await run
    except BaseException as error:
        if not deadline.has_ended(error):
            raise
        is_late = True
    else:
        is_late = deadline.has_ended()
    if not is_late:
        return result
    if context.end is not None:
        limit = context.end.limit
    assert limit is not None  # noqa: S101 - otherwise the time is never up
    seconds = seconds_text(limit.seconds)
    name = context.request.method if context.feature is None else context.feature.key
    what_happens = "An async function is cancelled; a plain function continues in its thread."
    logger.warning("%s did not finish within %s (%s). %s", name, seconds, limit.option, what_happens)
    raise ToolError(limit.error or f"It did not finish within {seconds} ({limit.option}).")


class _Deadline:
    """The end of the time of a call, which cancels the task that waits for it. It is that of its context.

    It does what `asyncio.timeout` does, without a timer of its own.

    Args:
        context: The context of the call.
        limit: The time limit; None for no limit, unless the context moves it.

    Attributes:
        has_passed: Whether the time is up.
    """

    __slots__ = ("_alarms", "_cancellations", "_context", "_task", "has_passed")

    def __init__(self, context: RequestContext, limit: TimeLimit | None) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - coroutines that wait for asyncio are in a task
        self._task = task
        self._cancellations = task.cancelling()
        self._context = context
        self._alarms = alarms = alarms_of(context)
        self.has_passed: bool = False
        context.deadline = self
        if context.end is not None:
            alarms.set_at(self._pass, context.end.time)
        elif limit is not None:
            alarms.set(self._pass, limit.seconds)

    def move(self, when: float) -> None:
        """Change the time at which the time is up."""
        self._alarms.set_at(self._pass, when)

    def _pass(self) -> None:
        self.has_passed = True
        self._task.cancel()

    def has_ended(self, error: BaseException | None = None) -> bool:
        """End the deadline with its call; return whether it has ended the call, and nothing else has.

        Args:
            error: The exception with which the call has ended; None if it has returned.
        """
        self._context.deadline = None
        if not self.has_passed:
            self._alarms.cancel(self._pass)
            return False
        is_only_cancellation = self._task.uncancel() <= self._cancellations
        if isinstance(error, asyncio.CancelledError):
            return is_only_cancellation
        if isinstance(error, BaseExceptionGroup):
            return isinstance(meaning_of(error), asyncio.CancelledError)
        return error is None or isinstance(error, TimeoutError)
