"""Where a running feature's messages go. A transport that can't push is a channel that refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from funcmcp.protocol.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping


class Channel(Protocol):
    """The way from a running feature to the client that called it."""

    @property
    def pushes(self) -> bool:
        """Whether notifications arrive before the answer; where not, they are dropped."""

    def close_stream(self) -> None:
        """End the connection that carries the stream, if the client can take it up again; else do nothing."""

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification, or drop it where that is impossible: it never fails."""

    async def ask(self, questions: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Send requests to the client and return their results by key; raise ToolError where impossible."""


class ClosedChannel:
    """A channel that drops notifications and refuses questions."""

    __slots__ = ()
    pushes = False

    def close_stream(self) -> None:
        """Do nothing: there is no stream."""

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        """Drop the notification."""

    async def ask(self, questions: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Refuse, whatever the questions are."""
        del questions
        raise ToolError("The client can't be asked here: it accepts no event stream.")
