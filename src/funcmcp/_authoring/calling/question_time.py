"""The time of a call while it waits for a person, who needs longer than the tool may."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING

from funcmcp._server.calls.feature import CallEnd, TimeLimit
from funcmcp._server.calls.rounds import LIFETIME

if TYPE_CHECKING:
    from collections.abc import Iterator

    from funcmcp._server.calls.context import RequestContext


@contextmanager
def pausing_time_limit(context: RequestContext, question: str) -> Iterator[None]:
    """Give a person an hour in the block; the time limit of the call begins afterwards.

    Args:
        context: The request.
        question: What the person is asked, for the error of a call whose time is up.
    """
    limit, now = context.time_limit, asyncio.get_running_loop().time
    if limit is not None:
        context.move_end(CallEnd(now() + max(LIFETIME, limit.seconds), TimeLimit(LIFETIME, question)))
    try:
        yield
    finally:
        if limit is not None:
            context.move_end(CallEnd(now() + limit.seconds, limit))
