"""Requests that are sent again while a server starts.

How it works: a host that has no instance ready answers 503 or 429 in place of the server, which has not seen the
request. After 502 and 504 it may have: the request is sent again only if it changes nothing, whoever has read it. A
message is sent again with the same id, so the answer belongs to the same call.

Source: RFC 9110 section 15.6.4 and 10.2.3 (503, Retry-After); Azure Functions host, `HostAvailabilityCheckMiddleware`,
which answers 503 before a function runs.
"""

from __future__ import annotations

import random
from asyncio import sleep
from time import monotonic
from typing import TYPE_CHECKING, Final

from funcmcp._client.http_messages import MemoryRequest, discard, wanted_pause
from funcmcp._protocol.codec import decode

if TYPE_CHECKING:
    from funcmcp._transports.http.messages import Exchange, HttpRequest, HttpResponse

_NOT_BEGUN: Final = frozenset({429, 503})
_MAYBE_BEGUN: Final = frozenset({502, 504})
_READING: Final = frozenset(
    {
        *("initialize", "ping", "server/discover", "completion/complete"),
        *("tools/list", "resources/list", "resources/templates/list", "prompts/list", "resources/read", "prompts/get"),
    }
)
"""Methods whose requests have no effect beyond the answer, also if they are handled twice."""

_MAX_BODY: Final = 64 * 1024 * 1024
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 5.0


class RepeatingExchange:
    """An exchange that sends requests again which the server has not begun.

    Args:
        exchange: Sends the requests.
        seconds: Seconds from the first attempt, after which the answer is returned as it is.
    """

    def __init__(self, exchange: Exchange, seconds: float) -> None:
        self._exchange = exchange
        self._seconds = seconds

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        """Send a request, and return the first answer that says more than that the server is not ready."""
        body = await request.read(_MAX_BODY)
        end = monotonic() + self._seconds
        pause = _FIRST_PAUSE
        while True:
            response = await self._exchange(MemoryRequest(request.method, request.path, request.pairs, body))
            if not _may_repeat(request.method, response.status, body):
                return response
            seconds = wanted_pause(response) or pause * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
            if monotonic() + seconds > end:
                return response
            await discard(response)
            await sleep(seconds)
            pause = min(pause * 2, _LONGEST_PAUSE)


def _may_repeat(method: str, status: int, body: bytes) -> bool:
    """Return whether a request may be sent again after an answer with a status."""
    if status in _NOT_BEGUN:
        return True
    return status in _MAYBE_BEGUN and (method == "GET" or _only_reads(body))


def _only_reads(body: bytes) -> bool:
    try:
        message = decode(body)
    except ValueError:
        return False
    return isinstance(message, dict) and message.get("method") in _READING
