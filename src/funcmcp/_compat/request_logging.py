"""FastMCP's middleware that writes messages and their durations to the log."""

from __future__ import annotations

import json
import logging
import time
from typing import TYPE_CHECKING, Any

from funcmcp._compat.middleware import CallNext, Middleware, MiddlewareContext
from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Callable

_BYTES_PER_TOKEN = 4


def _payload_of(message: Any) -> str:
    """Return a message as JSON. Values without a JSON form are written as texts."""
    from pydantic_core import to_json  # noqa: PLC0415 - few servers write payloads

    return to_json(message, fallback=_plain_or_text).decode()


def _plain_or_text(value: Any) -> Any:
    return value.model_dump() if hasattr(value, "model_dump") else str(value)


def _milliseconds_since(start: float) -> float:
    return round((time.perf_counter() - start) * 1000, 2)


class _MessageLog(Middleware):
    """Writes a line to the log before and after each message."""

    structured_logging = False
    default_logger = "fastmcp.middleware.logging"

    def __init__(  # noqa: PLR0913 - FastMCP's parameters
        self,
        *,
        logger: logging.Logger | None = None,
        log_level: int = logging.INFO,
        include_payloads: bool = False,
        include_payload_length: bool = False,
        estimate_payload_tokens: bool = False,
        max_payload_length: int | None = None,
        methods: list[str] | None = None,
        payload_serializer: Callable[[Any], str] | None = None,
    ) -> None:
        self.logger: logging.Logger = logger or logging.getLogger(self.default_logger)
        self.log_level: int = log_level
        self.include_payloads: bool = include_payloads
        self.include_payload_length: bool = include_payload_length
        self.estimate_payload_tokens: bool = estimate_payload_tokens
        self.max_payload_length: int | None = max_payload_length
        self.methods: list[str] | None = methods
        self.payload_serializer: Callable[[Any], str] | None = payload_serializer

    async def on_message(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Write the method, the duration, and the error of a message that fails."""
        if self.methods is not None and context.method not in self.methods:
            return await call_next(context)
        self._log_message(self._create_before_message(context))
        start = time.perf_counter()
        try:
            result = await call_next(context)
        except Exception as error:
            members = self._event(context, "error", start) | {"error": str(error)}
            self._log_message(members, logging.ERROR)
            raise
        self._log_message(self._event(context, "success", start))
        return result

    def _event(self, context: MiddlewareContext[Any], ending: str, start: float | None = None) -> dict[str, Any]:
        members: dict[str, Any] = {
            "event": f"{context.type}_{ending}",
            "method": context.method or "unknown",
            "source": context.source,
        }
        if start is not None:
            members["duration_ms"] = _milliseconds_since(start)
        return members

    def _create_before_message(self, context: MiddlewareContext[Any]) -> dict[str, Any]:
        members = self._event(context, "start")
        if not (self.include_payloads or self.include_payload_length or self.estimate_payload_tokens):
            return members
        payload = self._serialize_payload(context)
        if self.estimate_payload_tokens:
            members["payload_tokens"] = len(payload) // _BYTES_PER_TOKEN
        if self.include_payload_length:
            members["payload_length"] = len(payload)
        if self.max_payload_length and len(payload) > self.max_payload_length:
            payload = payload[: self.max_payload_length] + "..."
        if self.include_payloads:
            members |= {"payload": payload, "payload_type": type(context.message).__name__}
        return members

    def _serialize_payload(self, context: MiddlewareContext[Any]) -> str:
        if self.payload_serializer is None:
            return _payload_of(context.message)
        try:
            return self.payload_serializer(context.message)
        except Exception as error:  # noqa: BLE001 - the author's function may raise anything
            self.logger.warning(
                "Failed to serialize payload due to %s: %s %s %s.", error, context.type, context.method, context.source
            )
            return _payload_of(context.message)

    def _format_message(self, members: dict[str, Any]) -> str:
        if self.structured_logging:
            return json.dumps(members)
        return " ".join(f"{name}={value}" for name, value in members.items())

    def _log_message(self, members: dict[str, Any], log_level: int | None = None) -> None:
        self.logger.log(log_level or self.log_level, "%s", self._format_message(members))


@public("funcmcp.compat")
class LoggingMiddleware(_MessageLog):
    """Writes a line to the log before and after each message, such as ``event=request_start method=tools/call``.

    Args:
        logger: The logger. By default it is ``fastmcp.middleware.logging``.
        log_level: The level of the lines. Errors have the level ERROR.
        include_payloads: Whether lines have the message as JSON.
        include_payload_length: Whether lines have the length of that JSON in characters.
        estimate_payload_tokens: Whether lines have a quarter of that length.
        max_payload_length: The number of characters after which the JSON is cut off.
        methods: The methods that are logged. None: all of them.
        payload_serializer: Returns the JSON of a message.
    """

    def __init__(
        self, logger: logging.Logger | None = None, log_level: int = logging.INFO, *, max_payload_length: int = 1000,
        **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(logger=logger, log_level=log_level, max_payload_length=max_payload_length, **options)


@public("funcmcp.compat")
class StructuredLoggingMiddleware(_MessageLog):
    """Writes a JSON object to the log before and after each message. The arguments are those of `LoggingMiddleware`.

    The logger is ``fastmcp.middleware.structured_logging`` by default, and no JSON is cut off.
    """

    structured_logging = True
    default_logger = "fastmcp.middleware.structured_logging"

    def __init__(self, logger: logging.Logger | None = None, log_level: int = logging.INFO, **options: Any) -> None:
        super().__init__(logger=logger, log_level=log_level, **options)


class _Timer(Middleware):
    """Writes durations to the log."""

    default_logger = "fastmcp.timing"

    def __init__(self, logger: logging.Logger | None = None, log_level: int = logging.INFO) -> None:
        self.logger: logging.Logger = logger or logging.getLogger(self.default_logger)
        self.log_level: int = log_level

    async def _timed(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any], operation: str) -> Any:
        start = time.perf_counter()
        try:
            result = await call_next(context)
        except Exception as error:
            self.logger.log(self.log_level, "%s failed after %.2fms: %s", operation, _milliseconds_since(start), error)
            raise
        self.logger.log(self.log_level, "%s completed in %.2fms", operation, _milliseconds_since(start))
        return result


@public("funcmcp.compat")
class TimingMiddleware(_Timer):
    """Writes the duration of each request to the log.

    Args:
        logger: The logger. By default it is ``fastmcp.timing``.
        log_level: The level of the lines.
    """

    async def on_request(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Write the method and the milliseconds."""
        return await self._timed(context, call_next, f"Request {context.method or 'unknown'}")


@public("funcmcp.compat")
class DetailedTimingMiddleware(_Timer):
    """Writes the duration of each call, read, prompt and list to the log, with the name of the feature.

    Args:
        logger: The logger. By default it is ``fastmcp.timing.detailed``.
        log_level: The level of the lines.
    """

    default_logger = "fastmcp.timing.detailed"

    async def on_call_tool(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Write the tool and the milliseconds."""
        return await self._timed(context, call_next, f"Tool '{context.message.name}'")

    async def on_read_resource(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Write the URI and the milliseconds."""
        return await self._timed(context, call_next, f"Resource '{context.message.uri}'")

    async def on_get_prompt(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Write the prompt and the milliseconds."""
        return await self._timed(context, call_next, f"Prompt '{context.message.name}'")

    async def on_list_tools(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Write the milliseconds."""
        return await self._timed(context, call_next, "List tools")

    async def on_list_resources(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Write the milliseconds."""
        return await self._timed(context, call_next, "List resources")

    async def on_list_resource_templates(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Write the milliseconds."""
        return await self._timed(context, call_next, "List resource templates")

    async def on_list_prompts(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Write the milliseconds."""
        return await self._timed(context, call_next, "List prompts")
