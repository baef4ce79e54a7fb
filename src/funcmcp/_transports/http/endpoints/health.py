"""The health endpoints ``/livez`` and ``/readyz``, for orchestrators and load balancers.

How it works: ``/livez`` is 200 as long as the process answers. ``/readyz`` is 200 if the server can serve now: it does
not stop, and its stores and the author's checks (`HTTPOptions.ready`) succeed. A process that another one replaces on
the same sockets is ready to its end, because a probe on an open connection asks about the server and not about one of
its processes. Neither checks Host, Origin, credentials or limits, because probes send the address of a machine or no
Host at all. So anyone who reaches the server may call them: an answer has no details, and all requests share one run of
the checks, whose outcome holds for a second. The log has the reason when the outcome changes.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING

from funcmcp._protocol.errors import INVALID_REQUEST
from funcmcp._server.log import quote, types_and_texts
from funcmcp._state.outage import Outage
from funcmcp._transports.http.messages import READ_METHODS, HttpResponse
from funcmcp._transports.http.status import refuse, wrong_method

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from funcmcp._transports.http.messages import Exchange, HttpRequest

LIVE = "/livez"
READY = "/readyz"

_FRESH_SECONDS = 1.0
"""Seconds for which an outcome holds."""

_CHECK_SECONDS = 2.0
"""Seconds that all checks have together. Probes of Kubernetes wait for 1 second by default, and fail as well then."""

_CANCEL_SECONDS = 0.5

_HEADERS = (("content-type", "text/plain; charset=utf-8"), ("cache-control", "no-store"))
_MAX_REASON = 500


class NotReadyError(Exception):
    """A check has not succeeded."""


class Health:
    """Answers the requests to the health endpoints, and passes on all others.

    Args:
        name: The name of the server, for the log.
        checks: What has to succeed for the server to be ready. Each raises an exception, or returns False, otherwise.
        is_stopping: Returns whether the server stops, and nothing serves in its place.

    Attributes:
        otherwise: Answers the other requests; by default with 404.
        is_taken: Returns whether a path belongs to an endpoint or a route of the author.
    """

    def __init__(
        self,
        name: str,
        checks: Callable[[], Sequence[Callable[[], Awaitable[object]]]],
        is_stopping: Callable[[], bool],
    ) -> None:
        self.otherwise: Exchange = _not_found
        self.is_taken: Callable[[str], bool] = lambda _: False
        self._name = name
        self._checks = checks
        self._is_stopping = is_stopping
        self._outage = Outage()
        self._run: asyncio.Task[bool] | None = None
        self._run_at = 0.0

    def __call__(self, request: HttpRequest) -> Awaitable[HttpResponse]:
        """Return what to await for the response to an HTTP request."""
        path = request.path
        if path not in (LIVE, READY) or self.is_taken(path):
            return self.otherwise(request)
        return self._answer(request)

    async def _answer(self, request: HttpRequest) -> HttpResponse:
        if request.method not in READ_METHODS:
            return wrong_method(READ_METHODS)
        if request.path == LIVE or await self._is_ready():
            return HttpResponse(200, _HEADERS, b"ok\n")
        return HttpResponse(503, _HEADERS, b"not ready\n")

    async def _is_ready(self) -> bool:
        """Return the outcome of the last run of the checks; run them if it is too old, once for all requests."""
        if self._is_stopping():
            return False
        loop = asyncio.get_running_loop()
        run = self._run
        is_other_loop = run is not None and run.get_loop() is not loop
        if run is None or is_other_loop or (run.done() and monotonic() - self._run_at >= _FRESH_SECONDS):
            run = self._run = loop.create_task(self._check(), name="funcmcp readiness")
        await asyncio.wait([run], timeout=_CHECK_SECONDS + _CANCEL_SECONDS)  # a check may ignore its cancellation
        return run.done() and not run.cancelled() and run.result()

    async def _check(self) -> bool:
        """Run the checks within their time, and log a change of the outcome."""
        try:
            async with asyncio.timeout(_CHECK_SECONDS), asyncio.TaskGroup() as checks:
                for check in self._checks():
                    checks.create_task(_succeed(check))
        except Exception as error:  # noqa: BLE001 - an author's check may raise anything
            reason = f"no answer in {_CHECK_SECONDS:g} s" if isinstance(error, TimeoutError) else types_and_texts(error)
            self._outage.begin("%s is not ready: %s", self._name, quote(reason, _MAX_REASON))
            return False
        finally:
            self._run_at = monotonic()
        self._outage.end("%s is ready again.", self._name)
        return True


async def _succeed(check: Callable[[], Awaitable[object]]) -> None:
    if await check() is False:
        raise NotReadyError(f"{getattr(check, '__qualname__', check)} returned False")


async def _not_found(request: HttpRequest) -> HttpResponse:
    return refuse(404, INVALID_REQUEST, f"There is nothing at {quote(request.path)}.")
