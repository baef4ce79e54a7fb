"""FastMCP's middleware that transforms errors, and that repeats requests which failed."""

from __future__ import annotations

import asyncio
import logging
import traceback
from typing import TYPE_CHECKING, Any

from funcmcp._compat.errors import NotFoundError, PromptError, ResourceError, ValidationError, is_mcp_error, mcp_error
from funcmcp._compat.middleware import CallNext, Middleware, MiddlewareContext
from funcmcp._objects.public_names import public
from funcmcp._protocol.errors import INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND, MCPError
from funcmcp._server.log import quote

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_ERROR_COUNTS = 1000
_OTHER_ERRORS = "<other>"
_NOT_FOUND = -32001
_SERVER_ERROR = -32000


@public("funcmcp.compat")
class ErrorHandlingMiddleware(Middleware):
    """Writes errors to the log, counts them, and sends them as JSON-RPC errors.

    Args:
        logger: The logger. By default it is ``fastmcp.errors``.
        include_traceback: Whether the log has the traceback.
        error_callback: Gets the exception and the context.
        transform_errors: Whether exceptions become JSON-RPC errors with a code of their kind. A tool that fails then
            answers with such an error in place of a result with ``isError``.
    """

    def __init__(
        self,
        logger: logging.Logger | None = None,
        include_traceback: bool = False,  # noqa: FBT001, FBT002 - as in FastMCP
        error_callback: Callable[[Exception, MiddlewareContext[Any]], Any] | None = None,
        transform_errors: bool = True,  # noqa: FBT001, FBT002 - as in FastMCP
    ) -> None:
        self.logger: logging.Logger = logger or logging.getLogger("fastmcp.errors")
        self.include_traceback = include_traceback
        self.error_callback = error_callback
        self.transform_errors = transform_errors
        self.error_counts: dict[str, int] = {}

    async def on_message(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Write the error of a message that fails, and transform it."""
        try:
            return await call_next(context)
        except Exception as error:
            self._log_error(error, context)
            transformed = self._transform_error(error, context)
            if transformed is error:
                raise
            raise transformed from error

    def get_error_stats(self) -> dict[str, int]:
        """Return how many errors there were, by type and method such as ``"ValueError:tools/call"``.

        There are at most 1,000 entries. Further ones are counted together as ``"<other>"``.
        """
        return dict(self.error_counts)

    def _log_error(self, error: Exception, context: MiddlewareContext[Any]) -> None:
        kind, method = type(error).__name__, context.method or "unknown"
        key = f"{kind}:{method}"
        if key not in self.error_counts and len(self.error_counts) >= _MAX_ERROR_COUNTS - 1:
            key = _OTHER_ERRORS  # clients choose the method
        self.error_counts[key] = self.error_counts.get(key, 0) + 1
        text = f"Error in {quote(method)}: {kind}: {quote(error)}"
        if self.include_traceback:
            text = f"{text}\n{traceback.format_exc()}"
        self.logger.error(text)
        if self.error_callback is not None:
            try:
                self.error_callback(error, context)
            except Exception as failure:  # noqa: BLE001 - the author's function may raise anything
                self.logger.error("Error in error callback: %s", failure)  # noqa: TRY400 - as FastMCP does

    def _transform_error(self, error: Exception, context: MiddlewareContext[Any]) -> Exception:
        is_for_clients = is_mcp_error(error) and not isinstance(error, ResourceError | PromptError)
        if (is_for_clients and not _is_of_function(error)) or not self.transform_errors:
            return error
        kind: type[BaseException] = type(error if error.__cause__ is None else error.__cause__)
        if isinstance(error, ValidationError) or issubclass(kind, ValueError | TypeError | ValidationError):
            return mcp_error(INVALID_PARAMS, f"Invalid params: {error}")
        if issubclass(kind, FileNotFoundError | KeyError | NotFoundError):
            if (context.method or "").startswith("resources/"):
                return mcp_error(RESOURCE_NOT_FOUND, f"Resource not found: {error}")
            return mcp_error(_NOT_FOUND, f"Not found: {error}")
        if issubclass(kind, PermissionError):
            return mcp_error(_SERVER_ERROR, f"Permission denied: {error}")
        if issubclass(kind, TimeoutError):
            return mcp_error(_SERVER_ERROR, f"Request timeout: {error}")
        return mcp_error(INTERNAL_ERROR, f"Internal error: {error}")


def _is_of_function(error: Exception) -> bool:
    """Return whether an error is that of a resource or a prompt whose function raised an exception."""
    if type(error) is not MCPError or error.code != INTERNAL_ERROR or error.__cause__ is None:
        return False
    return not is_mcp_error(error.__cause__)


@public("funcmcp.compat")
class RetryMiddleware(Middleware):
    """Repeats requests that failed with an exception that may pass, also requests of tools that change something.

    Args:
        max_retries: How often a request is repeated.
        base_delay: Seconds before the first repetition.
        max_delay: Seconds before a repetition, at most.
        backoff_multiplier: The factor between the delays of two repetitions.
        retry_exceptions: The exceptions, also as the cause of another one.
        logger: The logger. By default it is ``fastmcp.retry``.
    """

    def __init__(
        self,
        max_retries: int = 3,
        base_delay: float = 1.0,
        max_delay: float = 60.0,
        backoff_multiplier: float = 2.0,
        retry_exceptions: tuple[type[Exception], ...] = (ConnectionError, TimeoutError),
        logger: logging.Logger | None = None,
    ) -> None:
        self.max_retries = max_retries
        self.base_delay = base_delay
        self.max_delay = max_delay
        self.backoff_multiplier = backoff_multiplier
        self.retry_exceptions = retry_exceptions
        self.logger: logging.Logger = logger or logging.getLogger("fastmcp.retry")

    async def on_request(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Pass the request on, again after an exception that may pass."""
        attempt = 0
        while True:
            try:
                return await call_next(context)
            except Exception as error:
                if attempt == self.max_retries or not self._should_retry(error):
                    raise
                delay = self._calculate_delay(attempt)
                attempt += 1
                self.logger.warning(
                    "Request %s failed (attempt %d/%d): %s: %s. Retrying in %.1fs...",
                    quote(context.method), attempt, self.max_retries + 1, type(error).__name__, quote(error), delay,
                )  # fmt: skip
                await asyncio.sleep(delay)

    def _should_retry(self, error: Exception) -> bool:
        return isinstance(error, self.retry_exceptions) or isinstance(error.__cause__, self.retry_exceptions)

    def _calculate_delay(self, attempt: int) -> float:
        return min(self.base_delay * self.backoff_multiplier**attempt, self.max_delay)
