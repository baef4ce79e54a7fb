"""The links of one event loop, and the sessions of an upstream that all instances of a server use.

How it works: `LoopLinks` has the links of one event loop by their keys, in the order of their last use. One timer, for
the link that is unused for the longest time, ends those that nobody uses. The number of links is a `Budget` of the
upstream. Without room, the first link that is idle for long enough is ended.

`StoredSessions` keeps the ids of upstream sessions in the server's store of state, sealed with its keys, if other
processes reach that store. A client's next request may come to any instance, which finds the id there and goes on with
the session. Each instance notes from time to time that it uses a session. The one that ends a link first looks whether
another instance has used the session in the meantime: then it only forgets the link.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from contextlib import suppress
from time import time
from typing import TYPE_CHECKING, Any

from funcmcp._auth.owner import address_mark
from funcmcp._server.limits import LimitReachedError
from funcmcp._state.caller_values import ValueOwner
from funcmcp._state.key_values import StateFullError
from funcmcp._state.records import VERSION, to_record, value_of
from funcmcp._upstreams.connection import NotedUse, StoredSession
from funcmcp._upstreams.status import UpstreamError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from funcmcp._client.requests import Requests
    from funcmcp._server.load import Budget
    from funcmcp._state.caller_values import CallerValues
    from funcmcp._upstreams.connection import Link, LinkKey
    from funcmcp._upstreams.limits import UpstreamLimits

_CLOSES_AT_ONCE = 50
_CLOSE_SECONDS = 10.0
"""Seconds that all links of an event loop may take to close when the server stops."""

_SHOWN_USES = 4
"""How often an instance notes in the time after which a session is ended that it uses the session."""


class LoopLinks:
    """The links of one event loop.

    Args:
        loop: The event loop.
        budget: Counts the links of callers, in all event loops.
        limits: The limits of the upstream.
        now: Returns monotonic seconds.
        on_idle: Closes a link that was unused for its time.

    Attributes:
        first_session: Is held by the request that tries whether an upstream of 2026-07-28 begins a session, too.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        budget: Budget,
        limits: UpstreamLimits,
        now: Callable[[], float],
        on_idle: Callable[[Link], Coroutine[Any, Any, None]],
    ) -> None:
        self.first_session = asyncio.Lock()
        self._loop = loop
        self._budget = budget
        self._limits = limits
        self._now = now
        self._on_idle = on_idle
        self._links: OrderedDict[LinkKey, Link] = OrderedDict()  # the last used one is the last
        self._by_subject: dict[str, set[LinkKey]] = {}
        self._pinned: dict[LinkKey, Link] = {}
        self._single_use: set[Link] = set()
        self._closing: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None

    def find(self, key: LinkKey) -> Link | None:
        """Return a link, which thereby is the last used one; None if there is none."""
        link = self._pinned.get(key)
        if link is None:
            link = self._links.get(key)
            if link is not None:
                self._links.move_to_end(key)
                link.used = self._now()
        return link

    async def add(self, link: Link) -> Link:
        """Add a link that ends when it is idle, and return it, or the one that another request has added meanwhile.

        Raises:
            UpstreamError: There is no room for it.
        """
        if link.is_counted:
            await self._make_room(link.caller)
        added = self._links.get(link.key)
        if added is not None:
            return added
        if link.is_counted:
            self._budget.count(link.caller)
        self._links[link.key] = link
        self._by_subject.setdefault(link.key.subject, set()).add(link.key)
        self._start_timer()
        return link

    async def add_single_use(self, link: Link) -> None:
        """Add a link for one request; raise UpstreamError if there is no room for it."""
        await self._make_room(link.caller)
        self._budget.count(link.caller)
        self._single_use.add(link)

    def pin(self, link: Link) -> None:
        """Add a link of this server itself, which does not end when it is idle."""
        self._pinned[link.key] = link

    def close_soon(self, link: Link) -> None:
        """Close a link beside the caller."""
        if self._remove(link):
            self.run(link.aclose())

    def take(self, subject: str) -> list[Link]:
        """Remove and return the links of a subject, such as a session of a client that has ended."""
        links = [self._links[key] for key in self._by_subject.get(subject, ())]
        for link in links:
            self._remove(link)
        return links

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something that the end of the event loop waits for."""
        task = self._loop.create_task(work)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def aclose(self, *, keep_sessions: bool) -> None:
        """Close all links, also those that are being opened."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        links = [*self._links.values(), *self._single_use, *self._pinned.values()]
        for link in links:
            self._remove(link)
        self._pinned.clear()
        places = asyncio.Semaphore(_CLOSES_AT_ONCE)

        async def close(link: Link) -> None:
            async with places:
                await link.aclose(keep_session=keep_sessions and not link.is_single_use)

        closing = {asyncio.ensure_future(close(link)) for link in links} | self._closing
        if closing:
            _, late = await asyncio.wait(closing, timeout=_CLOSE_SECONDS)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)

    def _remove(self, link: Link) -> bool:
        """Remove a link; return whether it was there."""
        if link in self._single_use:
            self._single_use.discard(link)
        elif self._links.get(link.key) is link:
            del self._links[link.key]
            keys = self._by_subject[link.key.subject]
            keys.discard(link.key)
            if not keys:
                del self._by_subject[link.key.subject]
        else:
            return False
        if link.is_counted:
            self._budget.give_back(link.caller)
        return True

    async def _make_room(self, caller: str | None) -> None:
        """End idle links until there is room for one more; raise UpstreamError if there is none."""
        while True:
            try:
                self._budget.check(caller)
            except LimitReachedError as error:
                link = self._idle_link(caller if error.is_caller_limit else None)
                if link is None:
                    raise UpstreamError(error.message) from error
                self._remove(link)
                await self._on_idle(link)
            else:
                return

    def _idle_link(self, caller: str | None) -> Link | None:
        """Return the link, of a caller or of all, that is unused for the longest time, if that is long enough."""
        latest = self._now() - self._limits.min_idle_seconds
        for link in self._links.values():
            if link.used > latest:
                return None
            if link.is_counted and not link.is_busy and (caller is None or link.caller == caller):
                return link
        return None

    def _start_timer(self) -> None:
        if self._timer is None and self._links:
            first = next(iter(self._links.values()))
            delay = max(0.0, first.used + self._seconds_of(first) - self._now())
            self._timer = self._loop.call_later(delay, self._end_idle)

    def _end_idle(self) -> None:
        """End the links whose time has come, and start the timer for the next one."""
        self._timer = None
        now = self._now()
        for link in list(self._links.values()):
            if link.is_busy:
                link.used = now
                self._links.move_to_end(link.key)
            elif link.used + self._seconds_of(link) <= now:
                self._remove(link)
                self.run(self._on_idle(link))
            else:
                break
        self._start_timer()

    def _seconds_of(self, link: Link) -> float:
        return self._limits.idle_seconds if link.idle_seconds is None else link.idle_seconds


class StoredSessions:
    """The sessions of one upstream in the store of state. Each method may raise StoreUnavailableError.

    Args:
        values: The values in the store.
        upstream: The name of the upstream.
        idle_seconds: Seconds after which an unused session is ended.
        now: Returns monotonic seconds.
    """

    def __init__(self, values: CallerValues, upstream: str, idle_seconds: float, now: Callable[[], float]) -> None:
        self._values = values
        self._prefix = _digest(upstream) + " "
        self._seconds = 2 * idle_seconds
        self._note_seconds = idle_seconds / _SHOWN_USES
        self._now = now

    async def find(self, link: Link) -> StoredSession | None:
        """Return the session of a link that another instance has begun; None if there is none."""
        return _session_of(await self._values.get(_owner_of(link), self._name(link.key)))

    async def take(self, link: Link, requests: Requests) -> StoredSession | None:
        """Store the new session of a link. Return the session of another instance if that was quicker."""
        mark = time()
        new = _record_of(requests, mark)

        def change(stored: bytes | None) -> bytes:
            return new if stored is None or _session_of(stored) is None else stored

        with suppress(StateFullError):  # then the session belongs to this instance
            stored = await self._values.change(_owner_of(link), self._name(link.key), change, self._seconds)
            if stored != new:
                return _session_of(stored)
            link.noted = NotedUse(mark, self._now())
        return None

    async def replace(self, link: Link, requests: Requests) -> None:
        """Store the session that has taken the place of an expired one, or note the use of a session."""
        mark = time()
        with suppress(StateFullError):
            record = _record_of(requests, mark)
            await self._values.put(_owner_of(link), self._name(link.key), record, self._seconds)
            link.noted = NotedUse(mark, self._now())

    def is_use_due(self, link: Link) -> bool:
        """Return whether it is time to note that this instance uses a session."""
        return link.noted is None or self._now() >= link.noted.at + self._note_seconds

    async def remove(self, link: Link) -> bool:
        """Remove the session of a link that this instance ends; return False if another instance has used it since."""
        mark = None if link.noted is None else link.noted.mark
        is_used = False

        def change(stored: bytes | None) -> bytes | None:
            nonlocal is_used
            session = _session_of(stored)
            is_used = session is not None and session.used != mark
            return stored if is_used else None

        await self._values.change(_owner_of(link), self._name(link.key), change, self._seconds)
        return not is_used

    async def take_all(self, subject: str) -> list[StoredSession]:
        """Remove and return the sessions of a subject, such as a session of a client that has ended."""
        owner = _owner(subject)
        sessions = []
        for name in await self._values.names(owner):
            if name.startswith(self._prefix):
                session = _session_of(await self._values.get(owner, name))
                if await self._values.remove(owner, name) and session is not None:
                    sessions.append(session)
        return sessions

    def _name(self, key: LinkKey) -> str:
        return self._prefix + _digest(f"{key.owner} {key.capabilities}")


def _record_of(requests: Requests, mark: float) -> bytes:
    members: Mapping[str, Any] = {
        "s": requests.session_id,
        "r": requests.date,
        "c": requests.capabilities,
        "u": mark,
    }
    return to_record(members, {})


def _owner_of(link: Link) -> ValueOwner:
    """Return the owner of the stored session of a link. Those of anonymous callers count for their address."""
    address = None if link.key.owner is not None else address_mark(link.caller)
    return _owner(link.key.subject, address)


def _owner(subject: str, address: str | None = None) -> ValueOwner:
    return ValueOwner(f"upstream sessions of {subject}", address)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _session_of(stored: bytes | None) -> StoredSession | None:
    """Return the session in a record; None if there is none, or if this version can't read it."""
    match value_of(stored):
        case {"s": str(session_id), "r": str(revision), "c": dict(capabilities), "u": int() | float() as used, **extra}:
            if extra.get("v", VERSION) == VERSION:
                return StoredSession(session_id, revision, capabilities, used)
    return None
