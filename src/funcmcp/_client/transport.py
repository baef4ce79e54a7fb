"""What a client needs of a transport."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Mapping

    Message: TypeAlias = dict[str, Any]
    Receive: TypeAlias = Callable[[Message], Awaitable[None]]


@public("funcmcp.client")
@runtime_checkable
class Transport(Protocol):
    """Carries JSON-RPC messages to one server and back. A client opens and closes it.

    Attributes:
        is_http: Whether a request is an HTTP request. From 2026-07-28 on, an HTTP request repeats members of the
            message in headers, and closing its response cancels it.
        session_id: The id of the session that the server began. None without a session.
    """

    is_http: bool
    session_id: str | None

    async def connect(self, receive: Receive) -> None:
        """Open the connection.

        Args:
            receive: Handles a notification or a request of the server. What it raises fails the client's request.

        Raises:
            ConnectionFailedError: The server cannot be reached or started.
        """

    async def request(self, message: Message, headers: Mapping[str, str]) -> Message:
        """Send a request and return the response with the same id, which holds a `result` or an `error`.

        Args:
            message: The JSON-RPC request.
            headers: Header fields for an HTTP request, with names in lower case.

        Raises:
            ClientError: The request failed, or the response does not follow the protocol.
        """

    async def send(self, message: Message, headers: Mapping[str, str]) -> None:
        """Send a notification or a response. Arguments and errors are those of `request`."""

    async def aclose(self) -> None:
        """End the session, if there is one, and close the connection. It raises no ClientError."""


@runtime_checkable
class StandingStreams(Protocol):
    """A transport that can open a stream for what the server sends outside of requests, beside those of requests."""

    def open_stream(
        self,
        headers: Mapping[str, str],
        on_gap: Callable[[], None] | None,
        on_end: Callable[[bool], None] | None = None,
    ) -> asyncio.Event:
        """Open the stream in the background, and again whenever it ends, unless the session has it already.

        Args:
            headers: Header fields of the requests.
            on_gap: Is called when messages may be missing. None leaves that of an open stream as it is.
            on_end: Is called when the server refuses the stream, with whether it was open before. None is as above.

        Returns:
            Is set when the server has answered: the stream is open, or there is none.
        """
