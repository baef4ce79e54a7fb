"""Requests of programs on this machine only: what ``funcmcp run --sign-in-as`` answers.

How it works: the connection has to come from a loopback address to a loopback address, and its Host has to be a
loopback name, whatever `HTTPOptions.allowed_hosts` has: a page on the internet can point a name of its own at this
machine (DNS rebinding). A tunnel or a proxy on this machine connects from a loopback address, too. Most of them write
the address of their client into the header of the request, so a request with such a field is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._protocol.errors import INVALID_REQUEST
from funcmcp._protocol.loopback import is_loopback
from funcmcp._server.log import quote
from funcmcp._state.line_limit import LineLimit
from funcmcp._transports.http.admission.caller import address_for_log
from funcmcp._transports.http.admission.origin import is_on_loopback
from funcmcp._transports.http.messages import ip_address_in
from funcmcp._transports.http.status import refuse

if TYPE_CHECKING:
    from funcmcp._transports.http.messages import Exchange, HttpRequest, HttpResponse

_PREFIXES = ("x-forwarded-", "cf-", "tailscale-", "x-ms-")
_FIELDS = frozenset(
    {
        "fastly-client-ip", "forwarded", "true-client-ip", "via", "x-client-ip", "x-cluster-client-ip",
        "x-envoy-external-address", "x-original-forwarded-for", "x-original-host", "x-real-ip",
    }
)  # fmt: skip
"""Fields that proxies and tunnels add for the server behind them."""


class ThisMachine:
    """Refuses the requests that do not come straight from a program on this machine.

    Args:
        otherwise: Answers the others.
    """

    def __init__(self, otherwise: Exchange) -> None:
        self._otherwise = otherwise
        self._refused = LineLimit()

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer one HTTP request."""
        reason = _reason_against(request)
        if reason is None:
            return await self._otherwise(request)
        self._refused.write("A request of %s is refused: %s", address_for_log(request), quote(reason))
        return refuse(403, INVALID_REQUEST, reason)


def _reason_against(request: HttpRequest) -> str | None:
    """Return why a request is refused; None if it comes from this machine."""
    for field, _ in request.pairs:
        name = field.decode("latin-1").replace("_", "-")
        if name in _FIELDS or name.startswith(_PREFIXES):
            return (
                f"It has the field {name[:40]} of a proxy. With --sign-in-as, no proxy and no tunnel may be in front."
            )
    peer = None if request.peer is None else ip_address_in(request.peer)
    if peer is None or not is_loopback(peer) or not is_on_loopback(request):
        return "With --sign-in-as, the server answers programs on its own machine only, by a loopback name or address."
    return None
