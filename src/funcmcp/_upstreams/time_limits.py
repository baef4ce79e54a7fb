"""The time that one request to an upstream may take: `UpstreamTimeouts`, while messages arrive."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING

from funcmcp._protocol.durations import seconds_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from funcmcp._upstreams.limits import UpstreamTimeouts

_EVENTS = {"first_answer": "sent nothing", "request": "gave no answer", "total": "gave no answer"}


class TimeLimit:
    """The time limit of one request, which messages of the request extend. Enter it around the request.

    Args:
        timeouts: The options.
    """

    __slots__ = ("_began", "_has_message", "_is_running", "_open_questions", "_request_began", "_scope", "_timeouts")

    def __init__(self, timeouts: UpstreamTimeouts) -> None:
        self._timeouts = timeouts
        self._began = self._request_began = asyncio.get_running_loop().time()
        self._has_message = False
        self._open_questions = 0
        self._is_running = False
        self._scope = asyncio.timeout_at(self._end)

    async def __aenter__(self) -> None:
        await self._scope.__aenter__()
        self._is_running = True

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_running = False
        await self._scope.__aexit__(kind, error, traceback)

    @property
    def is_over(self) -> bool:
        """Whether the time was up."""
        return self._scope.expired()

    @property
    def reason(self) -> str:
        """What the upstream did not do in time, with the option that says so."""
        name, _ = min(self._ends, key=lambda end: end[1])
        seconds = getattr(self._timeouts, name)
        return f"{_EVENTS[name]} within {seconds_text(seconds)} (UpstreamTimeouts.{name})"

    def received(self, *, is_progress: bool) -> None:
        """Note a message of the request before its answer."""
        is_first, self._has_message = not self._has_message, True
        is_reset = is_progress and self._timeouts.reset_on_progress
        if is_reset:
            self._request_began = asyncio.get_running_loop().time()
        if is_first or is_reset:
            self._reschedule()

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Stop the time while the client answers a question of the upstream; the seconds of `request` begin again."""
        began = asyncio.get_running_loop().time()
        self._has_message = True
        self._open_questions += 1
        self._reschedule()
        try:
            yield
        finally:
            self._open_questions -= 1
            now = asyncio.get_running_loop().time()
            self._request_began = now
            if not self._open_questions:
                self._began += now - began
            self._reschedule()

    def _reschedule(self) -> None:
        if self._is_running and not self._scope.expired():
            self._scope.reschedule(None if self._open_questions else self._end)

    @property
    def _ends(self) -> list[tuple[str, float]]:
        """The options that limit the request now, each with the time at which it ends."""
        timeouts = self._timeouts
        ends = []
        if timeouts.first_answer is not None and not self._has_message:
            ends.append(("first_answer", self._began + timeouts.first_answer))
        if timeouts.request is not None:
            ends.append(("request", self._request_began + timeouts.request))
        if timeouts.total is not None:
            ends.append(("total", self._began + timeouts.total))
        return ends

    @property
    def _end(self) -> float | None:
        """The time at which the request ends, in the clock of the event loop; None for never."""
        return min((end for _, end in self._ends), default=None)
