"""Changes that a client follows: lists of features, and the contents of resources, in both eras.

How it works: each `Listener` names the lists and resources that it follows. `Subscriptions` asks the server for all of
them together, so a resource that two listeners follow is subscribed to once, until the last one leaves.

- Handshake era: ``resources/subscribe`` and ``resources/unsubscribe``; changes arrive on the standing stream, or on the
  one stream of stdio. After a new handshake, the resources are subscribed to again.
- 2026-07-28: one ``subscriptions/listen``, whose response is a stream of changes. When the listeners follow something
  else, a new stream begins before the old one ends. When the server or the network ends it, it begins again, after a
  time that doubles with each failure.

A stream that begins again may have missed changes. So all that is followed is reported as changed. `on_end` is called
when the server refuses the stream.

Source: 2025-11-25 "server/resources, Subscriptions"; 2026-07-28 "basic/utilities/subscriptions" (SEP-2575).
"""

from __future__ import annotations

import asyncio
import logging
from contextvars import Context
from functools import partial
from typing import TYPE_CHECKING, Any

from funcmcp._client.errors import HTTPStatusError, RequestTimeoutError
from funcmcp._client.notifications import LIST_CHANGES, Change, change_of
from funcmcp._client.standing_stream import TEMPORARY, delay_seconds
from funcmcp._objects.background import hold_until_done
from funcmcp._objects.public_names import public
from funcmcp._protocol.durations import seconds_text
from funcmcp._protocol.envelope import SUBSCRIPTION_ID
from funcmcp._protocol.errors import ClientError, InvalidResponseError, MCPError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from funcmcp._client.requests import Requests

_logger = logging.getLogger("funcmcp")

_LISTEN = "subscriptions/listen"
_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
_LISTS = tuple(change.kind for change in LIST_CHANGES.values())
_LONG_SECONDS = 60.0
"""Seconds after which a stream that ends does not count as a failure."""

_MAX_CHANGES = 1024
"""Different changes that may wait for one reader. A server may report any number of parts of a resource."""


class Listener:
    """What one user of the client follows.

    Args:
        deliver: Receives each change.
        kinds: The lists: tools, prompts and resources.
        uris: The resources.
        is_optional: Whether it does without lists whose changes the server does not report.
    """

    def __init__(
        self,
        deliver: Callable[[Change], None],
        kinds: Collection[str],
        uris: Collection[str] = (),
        *,
        is_optional: bool = False,
    ) -> None:
        self.deliver = deliver
        self.kinds = frozenset(kinds)
        self.uris = set(uris)
        self.is_optional = is_optional

    def follows(self, change: Change) -> bool:
        """Return whether it follows a list, or a resource or what contains it."""
        if change.uri is None:
            return change.kind in self.kinds
        return any(change.uri == uri or change.uri.startswith((f"{uri.rstrip('/')}/", f"{uri}#")) for uri in self.uris)


@public("funcmcp.client")
class Changes:
    """The changes that a client follows, as an async iterator: ``async for change in changes``. See `Client.listen`."""

    def __init__(self) -> None:
        self._waiting: dict[Change, None] = {}
        self._error: Exception | None = None
        self._wakeup = asyncio.Event()

    def __aiter__(self) -> Changes:
        return self

    async def __anext__(self) -> Change:
        while not self._waiting:
            if self._error is not None:
                raise self._error
            self._wakeup.clear()
            await self._wakeup.wait()
        change = next(iter(self._waiting))
        del self._waiting[change]
        return change

    def add(self, change: Change) -> None:
        """Add a change, unless an equal one waits already."""
        if len(self._waiting) < _MAX_CHANGES:
            self._waiting[change] = None
        else:
            self._error = InvalidResponseError(f"More than {_MAX_CHANGES} changes wait. Read them sooner.")
        self._wakeup.set()


class Subscriptions:
    """Follows changes for all listeners of a client.

    Args:
        requests: Sends requests.
        on_change: Receives each change, whether a listener follows it or not.
        needs_stream: Whether the client has a use for what the server sends outside of requests, beside changes.
        on_end: Is called when the server refuses to report changes, with whether it has done so before; None for
            nothing.
    """

    def __init__(
        self,
        requests: Requests,
        on_change: Callable[[Change], None],
        *,
        needs_stream: bool,
        on_end: Callable[[bool], None] | None = None,
    ) -> None:
        self._requests = requests
        self._on_change = on_change
        self._on_end = on_end
        self._needs_stream = needs_stream
        self._listeners: list[Listener] = []
        self._changing = asyncio.Lock()
        self._has_stream = False
        self._subscribed: set[str] = set()
        self._streams: list[_ListenStream] = []
        self._beginning: set[asyncio.Task[None]] = set()

    def session_began(self) -> None:
        """Follow the changes of a new session, in the background."""
        self._has_stream = False
        self._subscribed.clear()
        if not self._requests.revision.per_request and (
            self._needs_stream or self._reported() or self._reported("subscribe")
        ):
            self._open_stream()
        if self._kinds() or self._uris():
            task = hold_until_done(asyncio.create_task(self._follow_in_background(), context=Context()))
            self._beginning.add(task)
            task.add_done_callback(self._beginning.discard)

    async def aclose(self) -> None:
        """End the streams."""
        beginning = list(self._beginning)
        for task in beginning:
            task.cancel()
        await asyncio.gather(*beginning, return_exceptions=True)
        await asyncio.gather(*(stream.aclose() for stream in self._streams))

    def include(self, listener: Listener) -> None:
        """Add a listener. What it follows is requested at the next connection."""
        self._listeners.append(listener)

    async def add(self, listener: Listener, seconds: float | None) -> None:
        """Add a listener, and return when the server reports what it follows.

        Raises:
            MCPError: The server refuses it.
            ClientError: The request failed, or the server does not report it.
        """
        self._listeners.append(listener)
        try:
            await self.follow(seconds)
        except BaseException:
            self._listeners.remove(listener)
            raise

    async def remove(self, listener: Listener, seconds: float | None) -> None:
        """Remove a listener, and follow no longer what it alone follows."""
        self._listeners.remove(listener)
        await self.follow(seconds)

    async def follow(self, seconds: float | None) -> None:
        """Ask the server for what the listeners follow now; see `add`."""
        async with self._changing:
            if self._requests.revision.per_request:
                await self._listen(seconds)
            else:
                await self._subscribe(seconds)

    def notified(self, method: str, params: Mapping[str, Any]) -> None:
        """Handle a notification of the server."""
        if method == _ACKNOWLEDGED:
            for stream in self._streams:
                stream.acknowledge(params)
        change = change_of(method, params)
        if change is not None:
            self._report(change)

    def report_gap(self) -> None:
        """Report all that the listeners follow, and all lists, because changes of them may have been missed."""
        uris = self._uris()
        for change in (*LIST_CHANGES.values(), *(Change("resource", uri) for uri in sorted(uris))):
            self._report(change)

    def _report(self, change: Change) -> None:
        self._on_change(change)
        for listener in list(self._listeners):
            if listener.follows(change):
                listener.deliver(change)

    def _kinds(self) -> set[str]:
        kinds: set[str] = set()
        for listener in self._listeners:
            kinds |= listener.kinds & self._reported() if listener.is_optional else listener.kinds
        return kinds

    def _uris(self) -> set[str]:
        return {uri for listener in self._listeners for uri in listener.uris}

    def _reported(self, member: str = "listChanged") -> set[str]:
        """Return the lists whose changes the server declares to report, or the parts with another member."""
        capabilities = self._requests.capabilities
        return {kind for kind in _LISTS if isinstance(capabilities.get(kind), dict) and capabilities[kind].get(member)}

    def _open_stream(self) -> None:
        if not self._has_stream:
            self._has_stream = True
            self._requests.open_stream(self.report_gap, self._on_end)

    async def _follow_in_background(self) -> None:
        try:
            await self.follow(self._requests.seconds(None))
        except (ClientError, MCPError) as error:
            _logger.warning("The server does not report the changes that the client follows: %s", error)
            if self._requests.revision.per_request:
                self._refused(was_open=False)

    def _refused(self, *, was_open: bool) -> None:
        if self._on_end is not None:
            self._on_end(was_open)

    async def _subscribe(self, seconds: float | None) -> None:
        """Subscribe to resources in the handshake era."""
        uris = self._uris()
        if uris or self._kinds():
            self._open_stream()
        for uri in sorted(uris - self._subscribed):
            await self._requests.send("resources/subscribe", {"uri": uri}, seconds)
            self._subscribed.add(uri)
        for uri in sorted(self._subscribed - uris):
            self._subscribed.discard(uri)
            await self._requests.send("resources/unsubscribe", {"uri": uri}, seconds)

    async def _listen(self, seconds: float | None) -> None:
        """Begin a stream of 2026-07-28 with what the listeners follow now, and end the one before."""
        kinds, uris = self._kinds(), self._uris()
        notifications: dict[str, Any] = {f"{kind}ListChanged": True for kind in sorted(kinds)}
        if uris:
            notifications["resourceSubscriptions"] = sorted(uris)
        earlier = list(self._streams)
        if any(stream.notifications == notifications and stream.is_open for stream in earlier):
            return
        if notifications:
            stream = _ListenStream(
                self._requests, notifications, self.report_gap, partial(self._refused, was_open=True)
            )
            self._streams.append(stream)
            try:
                await stream.wait(seconds)
            except BaseException:
                self._streams.remove(stream)
                await stream.aclose()
                raise
        for stream in earlier:
            self._streams.remove(stream)
            await stream.aclose()


class _ListenStream:
    """A ``subscriptions/listen`` that begins again when it ends.

    Args:
        requests: Sends requests.
        notifications: The SubscriptionFilter.
        on_gap: Is called when the stream has begun again.
        on_refusal: Is called when the server refuses to begin it again.

    Attributes:
        notifications: The SubscriptionFilter.
        task: Sends the requests.
    """

    def __init__(
        self,
        requests: Requests,
        notifications: dict[str, Any],
        on_gap: Callable[[], None],
        on_refusal: Callable[[], None],
    ) -> None:
        self.notifications = notifications
        self._requests = requests
        self._on_gap = on_gap
        self._on_refusal = on_refusal
        self._request_id = 0
        self._acknowledged: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.task: asyncio.Task[None] = hold_until_done(asyncio.create_task(self._run(), context=Context()))

    @property
    def is_open(self) -> bool:
        """Whether the server has acknowledged the stream, and has not refused it since."""
        return self._acknowledged.done() and not self.task.done()

    async def wait(self, seconds: float | None) -> None:
        """Wait for the acknowledgement. Raise the error of the request if it fails before."""
        try:
            async with asyncio.timeout(seconds):
                await self._acknowledged
        except TimeoutError:
            if seconds is None:
                raise
            text = seconds_text(seconds)
            raise RequestTimeoutError(f"{_LISTEN} was not acknowledged within {text} (timeout=).") from None

    def acknowledge(self, params: Mapping[str, Any]) -> None:
        """Handle the acknowledgement of this stream or of another one."""
        meta = params.get("_meta")
        request_id = meta.get(SUBSCRIPTION_ID) if isinstance(meta, dict) else None
        if str(request_id) != str(self._request_id):
            return
        if self._acknowledged.done():
            self._on_gap()
            return
        accepted = params.get("notifications")
        missing = [name for name in self.notifications if not isinstance(accepted, dict) or not accepted.get(name)]
        if missing:
            error = ClientError(f"The server does not report what the client follows: {', '.join(missing)}.")
            self._acknowledged.set_exception(error)
        else:
            self._acknowledged.set_result(None)

    async def aclose(self) -> None:
        """End the stream."""
        self.task.cancel()
        if self._acknowledged.done() and not self._acknowledged.cancelled():
            self._acknowledged.exception()  # retrieved: nobody may have waited for it
        await asyncio.wait({self.task})

    async def _run(self) -> None:
        """Send the request, and send it again when it ends, until the server refuses it."""
        loop = asyncio.get_running_loop()
        failures = 0
        while True:
            begun = loop.time()
            error = await self._end_of_request()
            if not self._acknowledged.done():
                self._acknowledged.set_exception(error)
                return
            if self.task.cancelling():  # a server in memory has answered because the request was cancelled
                return
            if isinstance(error, MCPError):
                _logger.warning("The server no longer reports changes: %s", error)
                self._on_refusal()
                return
            if isinstance(error, HTTPStatusError) and error.status not in TEMPORARY:
                self._on_refusal()
            failures = 0 if loop.time() - begun > _LONG_SECONDS else failures + 1
            await asyncio.sleep(delay_seconds(None, failures, 0))

    async def _end_of_request(self) -> Exception:
        """Send the request, and return the reason of its end."""
        self._request_id = self._requests.next_id()
        params = {"notifications": self.notifications}
        try:
            await self._requests.send(_LISTEN, params, None, request_id=self._request_id)
        except (ClientError, MCPError) as error:
            return error
        return InvalidResponseError(f"The server ended {_LISTEN} without an acknowledgement.")
