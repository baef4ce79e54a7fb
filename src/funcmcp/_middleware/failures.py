"""Middleware for failures: calls that are made again, and errors that are reported or get other texts."""

from __future__ import annotations

import asyncio
import inspect
import os
import random
from typing import TYPE_CHECKING, Any

from funcmcp._objects.public_names import public
from funcmcp._protocol.errors import INTERNAL_ERROR, MCPError, ToolError
from funcmcp._server.catalog.features import Tool
from funcmcp._server.exception_groups import members_of
from funcmcp._server.log import log_failure, logger, quote

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from funcmcp._protocol.replies import Reply
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.middleware import CallNext, Middleware

    OnError = Callable[[BaseException, RequestContext], Awaitable[None] | None]

_READS = frozenset({"resources/read", "prompts/get"})
_REPEATABLE = ("readOnlyHint", "idempotentHint")


@public("funcmcp.middleware")
def retry_calls(
    attempts: int = 3,
    *,
    exceptions: Sequence[type[Exception]] = (ConnectionError, TimeoutError),
    delay: float = 0.1,
    max_delay: float = 5.0,
) -> Middleware:
    """Return middleware that calls a feature again after an exception that may pass.

    Only what may be called twice is: tools with ``read_only=True`` or ``idempotent=True``, resources and prompts. A
    call whose time limit has passed is not made again.

    Args:
        attempts: Calls in total.
        exceptions: The exceptions, also as the cause of another one.
        delay: Seconds before the second call. They double before each further one, and vary by half.
        max_delay: Seconds before a call, at most.

    Raises:
        ValueError: `attempts` is less than 1, or a delay is negative.
        TypeError: `exceptions` are not exception types.
    """
    if attempts < 1 or delay < 0 or max_delay < 0:
        raise ValueError("retry_calls needs attempts of 1 or more, and delays of 0 or more.")
    types = () if isinstance(exceptions, type) else tuple(exceptions)
    if not types or not all(inspect.isclass(item) and issubclass(item, Exception) for item in types):
        raise TypeError(
            f"exceptions of retry_calls must be a list of exception types, such as [OSError]; got {exceptions!r:.100}."
        )

    async def retry(context: RequestContext, call_next: CallNext) -> Reply:
        reply = await call_next(context)
        for number in range(attempts - 1):
            error = context.error
            if error is None or not _has_cause(error, types) or context.timeout is not None or not _may_repeat(context):
                break
            seconds = min(max_delay, delay * 2**number) * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load
            key = "" if context.feature is None else context.feature.key
            logger.warning("%s failed and is called again: %s", quote(key), quote(type(error).__name__))
            await asyncio.sleep(seconds)
            reply = await call_next(context)
        return reply

    return retry


@public("funcmcp.middleware")
def handle_errors(on_error: OnError | None = None, *, texts: Mapping[type[Exception], str] | None = None) -> Middleware:
    """Return middleware that reports the exceptions of requests, and gives clients other texts for some of them.

    Args:
        on_error: Gets each exception and the context of its request. May be async. An exception of its own is logged.
        texts: The texts that clients get, by exception type. The most specific type decides, also for the cause of an
            exception. Tools have a result with `isError` and the text, other features an error with the text.

    Raises:
        TypeError: `on_error` is not callable, or `texts` are not texts by exception type.
    """
    if on_error is not None and not callable(on_error):
        raise TypeError(f"on_error of handle_errors must be a function; got {type(on_error).__name__}.")
    text_of = dict(texts or {})
    for error_type, text in text_of.items():
        if not (inspect.isclass(error_type) and issubclass(error_type, Exception) and isinstance(text, str)):
            raise TypeError(
                "texts of handle_errors must be texts by exception type, such as {LookupError: 'Not found.'}."
            )

    async def handle(context: RequestContext, call_next: CallNext) -> Reply:
        reply = await call_next(context)
        error = context.error
        if error is None:
            return reply
        if on_error is not None:
            await _report(on_error, error, context)
        text = _text_for(error, text_of)
        if text is None:
            return reply
        if context.request.method == "tools/call":
            raise ToolError(text) from error
        raise MCPError(INTERNAL_ERROR, text) from error

    return handle


async def _report(on_error: OnError, error: BaseException, context: RequestContext) -> None:
    try:
        reported: Any = on_error(error, context)
        if inspect.isawaitable(reported):
            await reported
    except Exception as failure:  # noqa: BLE001 - the author's function may raise anything
        log_failure(failure, os.urandom(8).hex(), "on_error", context.request.method)


def _text_for(error: BaseException, texts: Mapping[type[Exception], str]) -> str | None:
    for member in _causes_of(error):
        for error_type in type(member).__mro__:
            if error_type in texts:
                return texts[error_type]
    return None


def _has_cause(error: BaseException, types: tuple[type[Exception], ...]) -> bool:
    return any(isinstance(member, types) for member in _causes_of(error))


def _causes_of(error: BaseException) -> list[BaseException]:
    """Return the members of an exception group, or the exception, and the cause of each."""
    causes: list[BaseException] = []
    for member in members_of(error):
        causes.append(member)
        if member.__cause__ is not None:
            causes.append(member.__cause__)
    return causes


def _may_repeat(context: RequestContext) -> bool:
    feature = context.feature
    if not isinstance(feature, Tool):
        return context.request.method in _READS
    hints = feature.describe().get("annotations", {})
    return any(hints.get(hint) is True for hint in _REPEATABLE)
