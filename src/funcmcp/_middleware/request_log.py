"""Middleware that logs requests, or passes their times to a function, such as one that records metrics."""

from __future__ import annotations

import logging
import os
import time
from typing import TYPE_CHECKING, NamedTuple

from funcmcp._objects.public_names import public
from funcmcp._server.log import log_failure, quote

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._protocol.replies import Reply
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.middleware import CallNext, Middleware

OK = "ok"
_IS_ERROR = b'"isError":true'


@public("funcmcp.middleware")
class Timing(NamedTuple):
    """One answered request.

    Attributes:
        method: The method; "" for one that the server does not know, so that clients can't make up names of metrics.
        feature: The name or URI of the tool, resource, resource template or prompt; None for other requests.
        seconds: The time from the request's arrival at the server object to its answer.
        error: The code of the JSON-RPC error; None if the request has a result.
        tool_error: Whether the result of a tool has ``isError: true``.
    """

    method: str
    feature: str | None
    seconds: float
    error: int | None
    tool_error: bool


@public("funcmcp.middleware")
def time_requests(observe: Callable[[Timing], None]) -> Middleware:
    """Return middleware that calls a function with the `Timing` of each answered request.

    Args:
        observe: Gets the timing. It runs on the event loop, so it must not wait for anything. The log gets an exception
            that it raises, and the client still gets its answer.

    Raises:
        TypeError: `observe` is not callable.
    """
    if not callable(observe):
        raise TypeError(f"time_requests needs a function that gets a Timing; got {type(observe).__name__}.")

    async def time_request(context: RequestContext, call_next: CallNext) -> Reply:
        start = time.perf_counter()
        reply = await call_next(context)
        seconds = time.perf_counter() - start
        route, feature = context.routed.route, context.feature
        timing = Timing(
            "" if route is None else route.method,
            None if feature is None else feature.key,
            seconds,
            reply.error,
            is_tool_error(context, reply),
        )
        try:
            if context.log_variables is None:
                observe(timing)
            else:
                context.log_variables.run(observe, timing)
        except Exception as error:  # noqa: BLE001 - the request has run, and must not run again because of its timing
            log_failure(error, os.urandom(8).hex(), "time_requests", context.request.method)
        return reply

    return time_request


@public("funcmcp.middleware")
def log_requests(logger: logging.Logger | None = None, level: int | str = logging.INFO) -> Middleware:
    """Return middleware that logs each answered request in one line: method, feature, outcome and milliseconds.

    Args:
        logger: Gets the records; by default the logger "funcmcp.requests".
        level: The level of the records, as a number or a name such as "INFO".

    Raises:
        TypeError: `logger` is not a logger.
        ValueError: There is no level of this name.
    """
    log = logging.getLogger("funcmcp.requests") if logger is None else logger
    if not isinstance(log, logging.Logger | logging.LoggerAdapter):
        raise TypeError(f"logger must be a logging.Logger; got {type(log).__name__}.")
    if isinstance(level, str):
        levels = logging.getLevelNamesMapping()
        if level.upper() not in levels:
            raise ValueError(f"Unknown log level {level!r}. Valid levels: {', '.join(levels)}.")
        level = levels[level.upper()]

    def write(timing: Timing) -> None:
        outcome = outcome_of(timing.error, is_tool_error=timing.tool_error)
        subject = timing.method or "unknown method"
        if timing.feature is not None and timing.feature != timing.method:  # a method of an extension is the feature
            subject += f" {quote(timing.feature)}"
        log.log(level, "%s: %s, %.1f ms", subject, outcome, timing.seconds * 1000)

    return time_requests(write)


def outcome_of(error: int | None, *, is_tool_error: bool) -> str:
    """Return how a request ended, in words."""
    if error is not None:
        return f"error {error}"
    return "tool error" if is_tool_error else OK


def is_tool_error(context: RequestContext, reply: Reply) -> bool:
    """Return whether an answer is the result of a tool with ``isError: true``."""
    if context.request.method != "tools/call" or _IS_ERROR not in reply.body:
        return False
    result = reply.result()
    return result is not None and result.get("isError") is True
