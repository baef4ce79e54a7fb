"""Channels: the way from a running feature to its client. A transport that can't push has a `ClosedChannel`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from funcmcp._protocol.errors import CannotAskError

if TYPE_CHECKING:
    from collections.abc import Mapping


class Channel(Protocol):
    """The way from a running feature to the client that called it."""

    @property
    def pushes(self) -> bool:
        """Whether notifications reach the client before the answer; otherwise they are dropped."""

    def close_stream(self) -> None:
        """End the connection that carries the stream, if the client can resume it; else do nothing."""

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification, or drop it if it can't be sent. Never raises."""

    async def ask(self, questions: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Send requests to the client and return their results by key; raise ToolError if they can't be sent."""


class ClosedChannel:
    """A channel that drops notifications and refuses questions."""

    __slots__ = ()
    pushes = False

    def close_stream(self) -> None:
        """Do nothing; there is no stream."""

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        """Drop the notification."""

    async def ask(self, questions: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Raise CannotAskError."""
        del questions
        raise CannotAskError("The client can't be asked here: it accepts no event stream.")
