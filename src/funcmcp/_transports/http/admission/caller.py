"""The caller of a request: its principal, or the address from which an anonymous request comes.

Callers have rates (`rate_limits`) and shares of the load (`funcmcp._server.load`).
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import TYPE_CHECKING

from funcmcp._auth.owner import owner_of_key
from funcmcp._server.load import address_caller, principal_caller
from funcmcp._server.log import quote

if TYPE_CHECKING:
    from funcmcp._transports.http.messages import HttpRequest

_HOST_BITS = 64
"""The last bits of an IPv6 address. Addresses that differ in them only belong to one caller."""

_UNKNOWN = address_caller("")


def rated_caller_of(request: HttpRequest) -> str:
    """Return the caller whose rate an admitted request counts for. All unknown callers have one rate together."""
    return request.caller or _UNKNOWN


def address_for_log(request: HttpRequest) -> str:
    """Return the address of a client, for a line of the log."""
    return quote(request.client_address or request.peer or "an unknown address")


@lru_cache(maxsize=4096)
def caller_of_principal(key: tuple[str, ...]) -> str:
    """Return the caller for the key of a principal."""
    return principal_caller(owner_of_key(key))


@lru_cache(maxsize=4096)
def caller_at(text: str | None) -> str | None:
    """Return the caller at an IPv4 address, or in the network of an IPv6 address; None without an address."""
    if text is None:
        return None
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address):
        address = ipaddress.IPv6Address(int(address) >> _HOST_BITS << _HOST_BITS)
    return address_caller(str(address))
