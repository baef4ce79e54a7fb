"""Middleware that limits the sizes of arguments and results of single features."""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._objects.public_names import public
from funcmcp._protocol.codec import encode
from funcmcp._protocol.errors import INTERNAL_ERROR, InvalidParams, MCPError, ToolError

if TYPE_CHECKING:
    from collections.abc import Collection

    from funcmcp._protocol.replies import Reply
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.middleware import CallNext, Middleware


@public("funcmcp.middleware")
def limit_sizes(
    features: Collection[str] | None = None, *, arguments: int | None = None, results: int | None = None
) -> Middleware:
    """Return middleware that refuses arguments and results that are too large, with their sizes.

    `Limits` has limits for all requests and results of a server. This one is for single features.

    Args:
        features: Names of tools and prompts, URIs of resources and texts of URI templates. By default all features.
        arguments: Bytes of JSON that the arguments may have.
        results: Bytes of JSON that the response may have.

    Raises:
        ValueError: No limit is given, or one is less than 1.
        TypeError: `features` is a string.
    """
    if isinstance(features, str):
        raise TypeError("features is a list of names and URIs, not one string.")
    limits = [limit for limit in (arguments, results) if limit is not None]
    if not limits or min(limits) < 1:
        raise ValueError("limit_sizes needs arguments=, results= or both, with 1 byte or more.")
    keys = None if features is None else frozenset(features)

    async def limit(context: RequestContext, call_next: CallNext) -> Reply:
        feature = context.feature
        if feature is None or (keys is not None and feature.key not in keys):
            return await call_next(context)
        is_tool = context.request.method == "tools/call"
        if arguments is not None:
            size = len(encode(context.request.params.get("arguments", {})))
            if size > arguments:
                text = f"The arguments have {size:,} bytes. {feature.key} takes {arguments:,} at most."
                raise ToolError(text) if is_tool else InvalidParams(text)
        reply = await call_next(context)
        if results is not None and len(reply.body) > results:
            text = (
                f"The result has {len(reply.body):,} bytes. {feature.key} returns {results:,} at most. "
                "Ask for less, such as fewer rows or a part of it."
            )
            raise ToolError(text) if is_tool else MCPError(INTERNAL_ERROR, text)
        return reply

    return limit
