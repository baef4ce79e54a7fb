"""What has to succeed before a server is ready: its stores can be read and written."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from funcmcp._state.sessions.signed import SignedSessions
from funcmcp._state.sessions.store import NoSessions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from typing import TypeAlias

    from funcmcp._oauth_proxy.proxy import OAuthProxy
    from funcmcp._server.tasks.service import Tasks
    from funcmcp._state.key_values import StateStore
    from funcmcp._state.sessions.store import SessionStore

    Check: TypeAlias = Callable[[], Awaitable[object]]
    """A function that fails if the server can't serve."""


class UpstreamServer(Protocol):
    """Another server whose features a server serves."""

    @property
    def status(self) -> Any:
        """Its state, with the attributes of `funcmcp.upstreams.UpstreamStatus`."""

    async def check(self) -> bool:
        """Return whether the server can do without it, or it can be reached; it may raise an exception otherwise."""


_NO_ID = "0" * 44
"""The id of no session and no task. To look for it shows whether a store can be used."""


def store_checks(
    sessions: SessionStore, tasks: Tasks | None, proxy: OAuthProxy | None, states: Iterable[StateStore]
) -> list[Check]:
    """Return the checks of the stores that are outside of this process."""
    checks: list[Check] = []
    if not isinstance(sessions, NoSessions | SignedSessions):
        checks.append(partial(sessions.get, _NO_ID))
    if tasks is not None and tasks.store.shared:
        from funcmcp._state.tasks.record import TaskKey  # noqa: PLC0415 - few servers have tasks

        checks += [partial(tasks.store.read, TaskKey(None, _NO_ID)), *_write_checks(tasks.store)]
    if proxy is not None and proxy.store is not None:
        checks += [partial(proxy.store.get, _NO_ID), *_write_checks(proxy.store)]
    for state in states:
        if state.shared:
            checks += [partial(state.get, _NO_ID), *_write_checks(state)]
    return checks


def _write_checks(store: object) -> list[Check]:
    """Return the check that a store can be written, if it has one. A file on a full disk can still be read."""
    check = getattr(store, "check_writable", None)
    return [] if check is None else [check]
