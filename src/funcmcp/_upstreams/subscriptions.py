"""Changes of an upstream: its lists, and the resources to which clients subscribed.

How it works: each connection over which lists are read has a `LinkChanges`, which follows the lists and the watched
resources in either era (`funcmcp._client.subscriptions`): with the stream of the session and ``resources/subscribe``,
or with one ``subscriptions/listen`` for everything. It outlives the session: the next one follows the same.

A resource is watched over the connection of the client's requests, because an upstream may report what happens in the
same session only. `UpstreamChanges` counts the clients that watch it there. The upstream gets one subscription for all
of them, which ends with the last one.

What the upstream reports, over whichever connection, reaches the clients that listen here. The lists are read again
first, at most `MAX_READS` times in `READS_SECONDS`, and after a pause that is longer the more work they were the last
time (`ListWork.pause_after`). So the work for an upstream that reports changes without end is bounded, however long its
lists are.

While the connection over which lists are read is lost, changes are not reported: its process has ended, its stream or
its session is gone. So the lists count as possibly changed, which these limits hold for, too. The next request reads
them again. If clients listen, they are read after a second without a request, and later after each further loss within
a minute. An upstream that refuses the stream for changes gets its lists read every minute.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from functools import partial
from typing import TYPE_CHECKING, Any

from funcmcp._client.notifications import change_of
from funcmcp._client.standing_stream import delay_seconds
from funcmcp._protocol.errors import ClientError, ToolError
from funcmcp._upstreams.auth import calling

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._client.notifications import Change
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._upstreams.connection import Link
    from funcmcp._upstreams.definitions import ListWork
    from funcmcp._upstreams.links import Links

MAX_READS, READS_SECONDS = 10, 10.0
"""How often lists are read because they have changed, and in how many seconds."""

LOSSES_SECONDS = 60.0
"""Seconds without a loss of the connection after which the next one counts as the first."""

GATHER_SECONDS = 0.05
"""Seconds in which reports of a resource from several sessions are one change."""


class UpstreamChanges:
    """The changes that an upstream reports, over all of its connections.

    Args:
        on_lists: Is called when lists have changed.
        on_resource: Receives the URI of a resource that has changed.
        on_loss: Is called when lists may have changed, with the mark of the principal whose lists these are (None for
            those of all callers), and with the seconds after which they are read without a request.
        on_silence: Is called when the upstream refuses the stream on which it would report changes.
        work: The work on the lists.

    Attributes:
        is_silent: Whether the upstream has no stream on which it could report changes of lists.
    """

    def __init__(
        self,
        on_lists: Callable[[], None],
        on_resource: Callable[[str], None],
        on_loss: Callable[[str | None, float], None],
        on_silence: Callable[[], None],
        work: ListWork,
    ) -> None:
        self.is_silent = False
        self._on_lists = on_lists
        self._on_resource = on_resource
        self._on_loss = on_loss
        self._on_silence = on_silence
        self._work = work
        self._have_changed = False
        self._losses = 0
        self._lost_at = float("-inf")
        self._watching: Counter[tuple[Link, str]] = Counter()
        self._changed: set[str] = set()
        self._reads: deque[float] = deque(maxlen=MAX_READS)  # the times of the last ones
        self._work_before = 0.0  # the last one
        self._waits_on: asyncio.AbstractEventLoop | None = None

    def received(self, link: Link, message: dict[str, Any]) -> None:
        """Handle a notification that belongs to no request."""
        method, params = message["method"], message.get("params")
        if not isinstance(method, str):
            return
        params = params if isinstance(params, dict) else {}
        if link.changes is not None:
            link.changes.notified(method, params)
            return
        change = change_of(method, params)
        if change is not None:
            self.report(change)

    def report(self, change: Change) -> None:
        """Report a change to the clients that listen."""
        if change.uri is None:
            self._have_changed = True
            self._read_soon()
            return
        for uri in {uri for _, uri in self._watching}:
            if change.uri == uri or change.uri.startswith((f"{uri.rstrip('/')}/", f"{uri}#")):
                self._resource_changed(uri)

    def lost(self, owner: str | None) -> None:
        """Count lists as possibly changed; see `ChangeReceiver`."""
        if owner is None:
            self._read_soon()
        else:
            self._on_loss(owner, 0.0)

    def set_silent(self, *, is_silent: bool) -> None:
        """Note whether the upstream has no stream on which it could report changes of lists."""
        self.is_silent = is_silent
        if is_silent:
            self._on_silence()

    def _resource_changed(self, uri: str) -> None:
        """Report a resource soon, once if several sessions report the same change."""
        if uri not in self._changed:
            self._changed.add(uri)
            asyncio.get_running_loop().call_later(GATHER_SECONDS, self._report_resource, uri)

    def _report_resource(self, uri: str) -> None:
        self._changed.discard(uri)
        self._on_resource(uri)

    async def watch(self, links: Links, uri: str, context: RequestContext) -> Callable[[], None]:
        """Watch a resource for a client; return the function that ends it.

        Raises:
            MCPError: The upstream refuses it.
            ToolError: The upstream can't be reached.
        """
        try:
            with calling(context.principal, context):
                link = await links.for_watch(context)
                place = link, uri
                self._watching[place] += 1
                try:
                    if link.changes is not None:
                        await link.changes.add(uri)
                except BaseException:
                    self._remove(place)
                    raise
        except ClientError as error:
            raise ToolError(str(error)) from error
        return partial(self._end, place, asyncio.get_running_loop())

    def _end(self, place: tuple[Link, str], loop: asyncio.AbstractEventLoop) -> None:
        """End one client's watch of a resource. It may be called in another thread."""
        if not loop.is_closed():
            loop.call_soon_threadsafe(self._remove, place)

    def _remove(self, place: tuple[Link, str]) -> None:
        link, uri = place
        self._watching[place] -= 1
        if self._watching[place] > 0:
            return
        del self._watching[place]
        if link.changes is not None and not link.ended:
            link.changes.remove(uri)

    def _read_soon(self) -> None:
        """Read the lists again, now or when enough time has passed since the last times."""
        loop = asyncio.get_running_loop()
        if self._waits_on is loop:
            return
        delay = self._next_at() - loop.time()
        if delay <= 0:
            self._read_lists(loop)
        else:
            self._waits_on = loop
            loop.call_later(delay, self._end_wait)

    def _end_wait(self) -> None:
        """Read the lists, or wait on if they were read in the meantime, which was much work."""
        self._waits_on = None
        self._read_soon()

    def _next_at(self) -> float:
        """Return the time before which the lists are not read again."""
        if not self._reads:
            return float("-inf")
        after_work = self._reads[-1] + self._work.pause_after(self._work_before)
        return after_work if len(self._reads) < MAX_READS else max(after_work, self._reads[0] + READS_SECONDS)

    def _read_lists(self, loop: asyncio.AbstractEventLoop) -> None:
        self._reads.append(loop.time())
        self._work_before = self._work.seconds
        if self._have_changed:
            self._have_changed = False
            self._on_lists()
        else:
            self._count_as_changed(loop.time())

    def _count_as_changed(self, now: float) -> None:
        self._losses = self._losses + 1 if now < self._lost_at + LOSSES_SECONDS else 0
        self._lost_at = now
        self._on_loss(None, delay_seconds(None, self._losses, 0))
