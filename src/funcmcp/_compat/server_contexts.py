"""The context and the state of the requests of a server: a part of `FastMCP`."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from funcmcp._authoring.calling.feature_context import Context as InnerContext
from funcmcp._compat.context import Call, Context, context_variable
from funcmcp._compat.middleware_switch import run_again
from funcmcp._compat.server_lists import ServerLists
from funcmcp._serving.composition import runtime_of

if TYPE_CHECKING:
    from collections import OrderedDict
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from funcmcp._compat.sessions import SessionStore
    from funcmcp._server.calls.context import RequestContext

_MAX_STATES = 10_000
"""Sessions whose state a process keeps. Those that were used least recently are dropped."""


class ServerContexts(ServerLists):
    """Sets the context of each request, with the state of its session."""

    _states: OrderedDict[str, dict[str, Any]]

    @property
    def _state_store(self) -> SessionStore:
        """The sessions that models name, which programs pass to ``fastmcp.server.sessions.Session``."""
        from funcmcp._compat.sessions import SessionStore  # noqa: PLC0415 - few servers have such sessions

        return SessionStore(runtime_of(self).open_values)

    def _with_context(self, handler: Callable[..., Any]) -> Callable[..., Any]:
        """Return the handler of a feature that also has the context where no middleware runs, as in a task."""

        async def handle(request: RequestContext, *arguments: Any) -> Any:
            run_again()
            active = context_variable.get()
            if active is not None and active.is_of(request):
                return await handler(request, *arguments)
            with self._active_context(request):
                return await handler(request, *arguments)

        return handle

    def active_context(self, request: RequestContext) -> AbstractContextManager[None]:
        """Set the context of a request, until a ``with`` block ends."""
        return self._active_context(request)

    @contextmanager
    def _active_context(self, request: RequestContext) -> Iterator[None]:
        """Set the context of a request, until the block ends."""
        outer = context_variable.get()
        inner = InnerContext(request, self._services, "")
        state, request_state = self._state_of(request), {}
        if outer is not None and outer.is_around(request):
            request_state = outer._request_state  # noqa: SLF001 - a part of Context
            if outer.fastmcp is self and request.client.session_id is None:
                state = outer._state  # noqa: SLF001 - as above
        context_variable.set(Context.of_call(Call(request, inner), self, state, request_state, outer))
        try:
            yield
        finally:
            # Not reset(token): the request may have moved to a task with a copy of the context variables.
            context_variable.set(outer)
            inner.close()

    def _state_of(self, request: RequestContext) -> dict[str, Any]:
        """Return the state of a request's session in this process, or a new one if the request has no session.

        A connection without a session id may be one itself, and on stdio the process is one. Tasks, direct calls and
        other requests without a session id may be of any caller, so they share nothing.
        """
        key = request.client.session_id
        if key is None:
            if request.http is not None or not request.by_user:
                return {}
            key = request.client.connection_id or "stdio"
        if key in self._states:
            self._states.move_to_end(key)
        elif len(self._states) >= _MAX_STATES:
            self._states.popitem(last=False)
        return self._states.setdefault(key, {})
