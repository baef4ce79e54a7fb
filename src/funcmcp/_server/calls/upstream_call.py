"""One request to an upstream, as tracing and metrics see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import TypeAlias

    Send: TypeAlias = Callable[[], Awaitable[dict[str, Any]]]
    Around: TypeAlias = Callable[["UpstreamCall", Send], Awaitable[dict[str, Any]]]


class UpstreamCall(NamedTuple):
    """One request to an upstream.

    Attributes:
        upstream: The name of the upstream.
        method: The method.
        params: The params at the upstream.
        revision: The date of the revision; None before the first connection.
        network_transport: How the request is sent, in OpenTelemetry's words: "tcp" or "pipe".
    """

    upstream: str
    method: str
    params: Mapping[str, Any]
    revision: str | None
    network_transport: str


def around_all(functions: list[Around]) -> Around | None:
    """Return one function that calls others around each request, the first one outermost; None for no function."""
    around: Around | None = None
    for function in reversed(functions):
        around = function if around is None else _around_both(function, around)
    return around


def _around_both(outer: Around, inner: Around) -> Around:
    async def around(call: UpstreamCall, send: Send) -> dict[str, Any]:
        return await outer(call, lambda: inner(call, send))

    return around
