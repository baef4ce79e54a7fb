"""FastMCP's middleware that limits the size of results of tools."""

from __future__ import annotations

import logging
from typing import Any

from funcmcp._authoring.results.content import Content
from funcmcp._compat.annotations import plain
from funcmcp._compat.content import ToolResult
from funcmcp._compat.middleware import CallNext, Middleware, MiddlewareContext
from funcmcp._compat.middleware_messages import CutResult
from funcmcp._objects.mappings import without_none
from funcmcp._objects.public_names import public
from funcmcp._protocol.codec import encode
from funcmcp._server.log import quote

_logger = logging.getLogger("funcmcp.compat")
_FRAME_BYTES = 50
"""The bytes of a result around its text, roughly."""


@public("funcmcp.compat")
class ResponseLimitingMiddleware(Middleware):
    """Replaces the result of a tool that is too large with the beginning of its text.

    Lists show no output schema of the tools that are limited, because such a text does not fit it.

    Args:
        max_size: The bytes of a result in JSON form.
        truncation_suffix: The text at the end of a result that was cut.
        tools: The names of the tools. None: all of them.

    Raises:
        ValueError: `max_size` is not above 0.
    """

    def __init__(
        self,
        *,
        max_size: int = 1_000_000,
        truncation_suffix: str = "\n\n[Response truncated due to size limit]",
        tools: list[str] | None = None,
    ) -> None:
        if max_size <= 0:
            raise ValueError(f"max_size must be positive, got {max_size}")
        self.max_size = max_size
        self.truncation_suffix = truncation_suffix
        self.tools: set[str] | None = None if tools is None else set(tools)

    async def on_list_tools(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Leave out the output schemas of the tools that are limited."""
        tools = await call_next(context)
        return [tool.model_copy(update={"output_schema": None}) if self._limits(tool.name) else tool for tool in tools]

    async def on_call_tool(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Cut the result if it is too large."""
        result = await call_next(context)
        if not isinstance(result, ToolResult) or not self._limits(context.message.name):
            return result
        blocks = [wire_of(block) for block in result.content]
        body = encode(without_none({"content": blocks, "structured": result.structured_content, "meta": result.meta}))
        if len(body) <= self.max_size:
            return result
        _logger.warning(
            "The result of %s has %d bytes, more than %d. It is cut.",
            quote(context.message.name), len(body), self.max_size,
        )  # fmt: skip
        texts = [block["text"] for block in blocks if block.get("type") == "text"]
        text = "\n\n".join(texts) if texts else body.decode(errors="replace")
        return self._truncate_to_result(text, meta=result.meta, is_error=result.is_error)

    def _limits(self, tool: str) -> bool:
        return self.tools is None or tool in self.tools

    def _truncate_to_result(self, text: str, meta: Any = None, *, is_error: bool = False) -> ToolResult:
        size = self.max_size - len(self.truncation_suffix.encode()) - _FRAME_BYTES
        beginning = text.encode()[: max(0, size)].decode(errors="ignore")
        return CutResult(beginning + self.truncation_suffix, meta=meta, is_error=is_error)


def wire_of(block: Any) -> dict[str, Any]:
    """Return a content block in JSON form."""
    if isinstance(block, Content):
        return dict(block.block)
    wire: dict[str, Any] = plain(block)
    return wire
