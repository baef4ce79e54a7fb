"""The answer to a batch on a two-way stream.

Source: 2025-03-26 "basic", "Batching"; JSON-RPC 2.0, section 6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Batch:
    """Collects the answers of a batch, and sends them when the last one is there.

    Args:
        size: how many messages of the batch want an answer.
        write: sends the array.
    """

    __slots__ = ("_bodies", "_left", "_write")

    def __init__(self, size: int, write: Callable[[bytes], Awaitable[None]]) -> None:
        self._bodies: list[bytes] = []
        self._left = size
        self._write = write

    async def add(self, body: bytes | None) -> None:
        """Add an answer; None for a request that the client has cancelled."""
        self._left -= 1
        if body is not None:
            self._bodies.append(body)
        if self._left == 0 and self._bodies:
            await self._write(b"[" + b",".join(self._bodies) + b"]")
