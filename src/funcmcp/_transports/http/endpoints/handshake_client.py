"""The client of a session in the handshake era over HTTP, with its streams.

How it works: changes of the server reach the client in one of two ways. Where responses can be streams, the client
opens the general stream with GET, and a task puts each change on it (`start_general_stream`). Where they can't,
`listen` begins to collect changes, and the next answer takes them along (`take_changes`). A change that is not yet
delivered waits in the `Listener`, once for each resource and list, in both cases.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from funcmcp._protocol.codec import encode
from funcmcp._server.connections.session_clients import SessionClient
from funcmcp._transports.http.streams.resumable import FinishedStreams, SessionStreams

if TYPE_CHECKING:
    from funcmcp._protocol.revisions import Revision
    from funcmcp._server.connections.hub import Change, Listener
    from funcmcp._server.dispatch import Server
    from funcmcp._state.sessions.store import Handshake, SessionKey


class HandshakeClient(SessionClient):
    """The client of a session, with its streams.

    Args:
        revision: The negotiated revision.
        handshake: The result of the negotiation.
        key: The session, or the principal's part of an anonymous session.
        server: Reports changes; None if nothing can reach the client between its requests.
        finished_streams: The finished streams of all sessions.
        caller: The caller whose memory its streams take up.
    """

    __slots__ = (
        "_caller",
        "_changes",
        "_finished_streams",
        "_general_stream_task",
        "_is_closed",
        "_server",
        "_streams",
    )

    def __init__(
        self,
        revision: Revision,
        handshake: Handshake,
        key: SessionKey,
        server: Server | None,
        *,
        finished_streams: FinishedStreams,
        caller: str | None = None,
    ) -> None:
        super().__init__(revision, handshake, key, pushes=server is not None)
        self._server = server
        self._caller = caller
        self._finished_streams = finished_streams
        self._streams: SessionStreams | None = None
        self._changes: Listener | None = None
        self._general_stream_task: asyncio.Task[None] | None = None
        self._is_closed = False

    @property
    def streams(self) -> SessionStreams:
        """The streams, which are created for the few clients that use them. Those of a closed client are closed."""
        if self._streams is None:
            instance = ""
            if self._server is not None:
                instance = self._server.bus.instance  # so that an event id is unique among the instances
            self._streams = SessionStreams(
                priming=self.revision.priming,
                prefix=instance,
                finished_streams=self._finished_streams,
                caller=self._caller,
            )
            if self._is_closed:
                self._streams.close()
        return self._streams

    @property
    def busy(self) -> bool:
        """Whether a run is under way, a question waits for its answer, or a stream has a reader."""
        return self.conversation.busy or (self._streams is not None and self._streams.are_read)

    def listen(self) -> None:
        """Begin to collect changes, unless that has begun or the client is closed."""
        if self._changes is None and self._server is not None and not self._is_closed:
            missed = partial(self._server.changes_for, self.conversation)
            self._changes = self._server.hub.add(self.conversation.wants, missed)

    def start_general_stream(self) -> None:
        """Begin to put changes on the general stream, unless that has begun."""
        self.listen()
        if self._general_stream_task is None and self._changes is not None:
            self._general_stream_task = asyncio.create_task(self._send_changes(self._changes))

    def take_changes(self) -> list[Change]:
        """Return the changes that were not delivered, and remove them."""
        if self._changes is None:
            return []
        return self._changes.take()

    def forget(self, change: Change) -> None:
        """Remove a change: another instance has delivered it."""
        if self._changes is not None:
            self._changes.forget(change)

    def close(self) -> None:
        """Collect nothing more, end the general stream, and drop the others. Requests under way may still end."""
        self._is_closed = True
        if self._changes is not None and self._server is not None:
            self._server.hub.remove(self._changes)
        if self._general_stream_task is not None:
            self._general_stream_task.cancel()
        if self._streams is not None:
            self._streams.close()
        self.conversation.subscribed.close()

    async def _send_changes(self, changes: Listener) -> None:
        async for change in changes:
            self.streams.general.append(notification_of(change))
        self.streams.general.finish()


def notification_of(change: Change) -> bytes:
    """Return the notification of a change."""
    return encode({"jsonrpc": "2.0", "method": change.method, "params": change.params})
