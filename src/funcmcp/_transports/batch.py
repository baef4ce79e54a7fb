"""JSON-RPC batches (revision 2025-03-26): which ones are refused, and the answer to one on a two-way stream.

A batch as a whole is refused if the revision has no batches, or if it is empty or too large. A member is faulty if it
is not a message, or is `initialize`. On HTTP a faulty member refuses the whole batch, because its status says so; on a
two-way stream the answer has an error for each of them.

Source: 2025-03-26 "basic", "Batching"; "basic/lifecycle" (initialize is not part of a batch); JSON-RPC 2.0, section 6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._protocol.codec import encode, memory_of
from funcmcp._protocol.errors import INVALID_REQUEST, MCPError
from funcmcp._protocol.jsonrpc import Malformed
from funcmcp._server.calls.route import RoutedRequest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from funcmcp._protocol.jsonrpc import Notification, RequestId, Response
    from funcmcp._protocol.revisions import Revision
    from funcmcp._server.dispatch import Server

MAX_BATCH = 100
"""Messages of a batch."""

NO_BATCHES = "This protocol revision has no batches; send one message."


class BatchMember(NamedTuple):
    """A member of a batch.

    Attributes:
        message: The message; None if the member is faulty.
        fault: The error for a faulty member; None otherwise.
        request_id: The id of a faulty member, if it may be the id of a request.
    """

    message: RoutedRequest | Notification | Response | None
    fault: MCPError | None = None
    request_id: RequestId | None = None


def read_batch(server: Server, values: list[Any], revision: Revision | None) -> list[BatchMember]:
    """Return the members of a batch.

    Args:
        server: Reads the messages.
        values: The decoded members.
        revision: The negotiated revision; None before the handshake.

    Raises:
        MCPError: The batch is refused as a whole.
    """
    if revision is None or not revision.batches:
        raise MCPError(INVALID_REQUEST, NO_BATCHES)
    if not 0 < len(values) <= MAX_BATCH:
        raise MCPError(INVALID_REQUEST, f"A batch has 1 to {MAX_BATCH} messages.")
    return [_read_member(server, value) for value in values]


def _read_member(server: Server, value: object) -> BatchMember:
    message = server.read(value, memory_of(encode(value)))
    if isinstance(message, Malformed):
        return BatchMember(None, MCPError(INVALID_REQUEST, message.reason), request_id_of(message, value))
    if isinstance(message, RoutedRequest) and message.request.method == "initialize":
        fault = MCPError(INVALID_REQUEST, "initialize can't be part of a batch.")
        return BatchMember(None, fault, message.request.id)
    return BatchMember(message)


def request_id_of(message: Malformed, value: object) -> RequestId | None:
    """Return the id of a value that is not a message, if it may be the id of a request: the value has a method."""
    return message.id if isinstance(value, dict) and "method" in value else None


class BatchAnswer:
    """Collects the answers to the members of a batch, and sends them when the last one is there.

    Args:
        count: The number of answers.
        write: Sends the array.
    """

    __slots__ = ("_bodies", "_missing", "_write")

    def __init__(self, count: int, write: Callable[[bytes], Awaitable[None]]) -> None:
        self._bodies: list[bytes] = []
        self._missing = count
        self._write = write

    async def add(self, body: bytes | None) -> None:
        """Add an answer; None for a request that the client has cancelled."""
        self._missing -= 1
        if body is not None:
            self._bodies.append(body)
        if self._missing == 0 and self._bodies:
            await self._write(b"[" + b",".join(self._bodies) + b"]")
