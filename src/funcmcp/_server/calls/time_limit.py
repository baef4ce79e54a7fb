"""The time limit of a call: a tool, resource or prompt that takes longer is cancelled.

A call that ends without waiting has no time limit, because nothing could cancel it (see `funcmcp._server.run`).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from funcmcp._protocol.durations import seconds_text
from funcmcp._protocol.errors import ToolError
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
    try:
        async with asyncio.timeout(None if limit is None else limit.seconds) as deadline:
            context.deadline = deadline
            if context.end is not None:
                deadline.reschedule(context.end.time)
            result = await run
    except TimeoutError:
        if not deadline.expired():
            raise
    except BaseExceptionGroup as error:
        if not deadline.expired() or not isinstance(meaning_of(error), asyncio.CancelledError):
            raise
    finally:
        context.deadline = None
    if context.end is not None:
        limit = context.end.limit
    if limit is not None and deadline.expired():
        seconds = seconds_text(limit.seconds)
        name = context.request.method if context.feature is None else context.feature.key
        what_happens = "An async function is cancelled; a plain function continues in its thread."
        logger.warning("%s did not finish within %s (%s). %s", name, seconds, limit.option, what_happens)
        raise ToolError(limit.error or f"It did not finish within {seconds} ({limit.option}).")
    return result
