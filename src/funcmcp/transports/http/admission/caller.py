"""The caller of a request: its principal, or the address from which an anonymous request comes.

Callers have rates (`rate_limits`) and shares of the load (`funcmcp.server.load`).
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import TYPE_CHECKING

from funcmcp.auth.principal import owner_of
from funcmcp.server.load import address_caller, principal_caller

if TYPE_CHECKING:
    from funcmcp.transports.http.messages import HttpRequest

_HOST_BITS = 64
"""The last bits of an IPv6 address. Addresses that differ in them only belong to one caller."""

_MAX_ADDRESS = 64
"""Characters of an address that is parsed and cached. The longest address with its port has fewer."""


def caller_of(request: HttpRequest, proxies: int) -> str | None:
    """Return the caller of a request; None if neither a principal nor an address is known."""
    owner = owner_of(request.principal)
    if owner is not None:
        return principal_caller(owner)
    address = address_of(request, proxies)
    return address_caller(address) if address else None


def rated_caller_of(request: HttpRequest, proxies: int) -> str:
    """Return the caller whose rate a request counts for. All unknown callers have one rate together."""
    return caller_of(request, proxies) or address_caller("")


def address_of(request: HttpRequest, proxies: int) -> str:
    """Return the address that a request came from; "" if it is unknown.

    Any caller can write X-Forwarded-For, but each proxy appends the address that it sees. So the address that the
    outermost of the operator's proxies appended is reliable.
    """
    if proxies:
        addresses = request.fields.get(b"x-forwarded-for", b"").decode("latin-1").split(",")
        if len(addresses) >= proxies:
            address = addresses[-proxies].strip(" \t")
            network = _network(address) if len(address) <= _MAX_ADDRESS else ""
            if network:
                return network
    return _network(request.peer or "")


@lru_cache(maxsize=4096)
def _network(host: str) -> str:
    """Return an IPv4 address without its port, or the network of an IPv6 address; "" if *host* is not an address."""
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
