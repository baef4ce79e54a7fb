"""What is checked of every HTTP request before anything is done for it: its header's size, and its caller's rate.

Source: RFC 6585 sections 4 and 5 (429, 431); RFC 9110 section 10.2.3 (Retry-After).
"""

from __future__ import annotations

import asyncio
import ipaddress
from functools import lru_cache
from typing import TYPE_CHECKING

from funcmcp.auth.principal import owner_of
from funcmcp.protocol.errors import INVALID_REQUEST
from funcmcp.protocol.replies import error_reply
from funcmcp.server.limits import LimitReachedError
from funcmcp.server.load import address_caller, principal_caller
from funcmcp.transports.http.messages import HttpResponse
from funcmcp.transports.http.status import JSON_HEADERS, refuse

if TYPE_CHECKING:
    from funcmcp.protocol.jsonrpc import RequestId
    from funcmcp.state.rates import Rates
    from funcmcp.transports.http.messages import HttpRequest

_HOST_BITS = 64
"""Of an IPv6 address: whoever has one has all that differ in these."""

_LONGEST_ADDRESS = 64
"""Characters of what is taken for an address, and remembered: the longest one with its port has less."""


def wrong_header(request: HttpRequest, most: int) -> HttpResponse | None:
    """Return the refusal of a header with more bytes than it may have, or None."""
    fields = request.fields
    if len(b"".join((*fields, *fields.values()))) <= most:  # twice as fast as adding up
        return None
    return refuse(431, INVALID_REQUEST, f"The header may have {most} bytes.")


def no_room(error: LimitReachedError, request_id: RequestId | None = None) -> HttpResponse:
    """Return the refusal of what there is no room for: 429 for the caller's own share, else 503."""
    headers = (*JSON_HEADERS, ("retry-after", str(error.retry_after)))
    return HttpResponse(429 if error.own else 503, headers, error_reply(error, request_id).body)


class Pace:
    """How many requests callers may send.

    Args:
        rates: decides.
        proxies: see `HTTPOptions`.
    """

    def __init__(self, rates: Rates, proxies: int) -> None:
        self._rates = rates
        self._proxies = proxies

    async def refusal(self, request: HttpRequest, count: int = 1) -> HttpResponse | None:
        """Count an HTTP request, or so many messages in it; return the refusal of one that comes too early, or None."""
        try:
            await self.take(request, count)
        except LimitReachedError as error:
            return no_room(error)
        return None

    async def take(self, request: HttpRequest, count: int) -> None:
        """Count messages; raise LimitReachedError for what comes too early."""
        wait = await self._rates.take(caller_of(request, self._proxies), count)
        if wait:
            raise LimitReachedError("Too many requests; slow down.", wait, own=True)

    async def wait(self, request: HttpRequest, count: int = 1) -> None:
        """Count messages, once it is time for them: where there is no status for an answer, the sender has to wait."""
        caller = caller_of(request, self._proxies)
        seconds = await self._rates.take(caller, count)
        while seconds:
            await asyncio.sleep(seconds)  # others may have taken what it waited for
            seconds = await self._rates.take(caller, count)


def pace_of(rates: Rates | None, proxies: int) -> Pace | None:
    """Return the pace of what a server allows; None where that is all."""
    return None if rates is None else Pace(rates, proxies)


def caller_of(request: HttpRequest, proxies: int) -> str:
    """Return who shares a rate: a principal, or else those who have an address, or an IPv6 network, in common."""
    owner = owner_of(request.principal)
    return address_caller(address_of(request, proxies)) if owner is None else principal_caller(owner)


def known_caller(request: HttpRequest, proxies: int) -> str | None:
    """Return who has a share of what the process takes on; None where neither a principal nor an address is known."""
    owner = owner_of(request.principal)
    if owner is not None:
        return principal_caller(owner)
    address = address_of(request, proxies)
    return address_caller(address) if address else None


def address_of(request: HttpRequest, proxies: int) -> str:
    """Return the address that a request came from, as far as it can be trusted; "" if nobody knows.

    A caller may write what it likes into X-Forwarded-For, but not behind what the proxies add.
    """
    if proxies:
        told = request.fields.get(b"x-forwarded-for", b"").decode("latin-1").split(",")
        said = told[-proxies].strip(" \t") if len(told) >= proxies else ""
        found = _network(said) if len(said) <= _LONGEST_ADDRESS else ""
        if found:
            return found
    return _network(request.peer or "")


@lru_cache(maxsize=4096)
def _network(host: str) -> str:
    """Return an address without its port, or the network of one of IPv6; "" if it is none."""
    if host.startswith("["):
        host = host[1:].partition("]")[0]
    elif host.count(":") == 1:
        host = host.partition(":")[0]
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return ""
    address = getattr(address, "ipv4_mapped", None) or address
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    return str(ipaddress.IPv6Address(int(address) >> _HOST_BITS << _HOST_BITS))
