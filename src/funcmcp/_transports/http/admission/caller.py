"""The caller of a request: its principal, or the address from which an anonymous request comes.

Callers have rates (`rate_limits`) and shares of the load (`funcmcp._server.load`).
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import TYPE_CHECKING

from funcmcp._auth.owner import owner_of_key
from funcmcp._server.load import address_caller, principal_caller

if TYPE_CHECKING:
    from funcmcp._transports.http.messages import HttpRequest

_HOST_BITS = 64
"""The last bits of an IPv6 address. Addresses that differ in them only belong to one caller."""

_MAX_ADDRESS = 64
"""Characters of an address that is parsed and cached. The longest address with its port has fewer."""


_FORWARDED = b"x-forwarded-for"
_UNKNOWN = address_caller("")


def caller_of(request: HttpRequest, proxies: int) -> str | None:
    """Return the caller of a request; None if neither a principal nor an address is known."""
    if request.principal is not None:
        return _caller_of_principal(request.principal.key)
    return caller_at(address_of(request, proxies) if proxies else request.peer or "")


def rated_caller_of(request: HttpRequest) -> str:
    """Return the caller whose rate an admitted request counts for. All unknown callers have one rate together."""
    return request.caller or _UNKNOWN


@lru_cache(maxsize=4096)
def _caller_of_principal(key: tuple[str, ...]) -> str:
    return principal_caller(owner_of_key(key))


@lru_cache(maxsize=4096)
def caller_at(host: str) -> str | None:
    """Return the caller for an address, of IPv6 for its network; None if it is not an address."""
    address = _network(host)
    return address_caller(address) if address else None


def ignores_forwarded_address(request: HttpRequest) -> bool:
    """Return whether a proxy names an address that does not count for the request, if no proxies are declared.

    A server such as uvicorn may have read the header; then its peer is an address in it.
    """
    forwarded = request.fields.get(_FORWARDED)
    return forwarded is not None and (request.peer or "?") not in forwarded.decode("latin-1")


def address_of(request: HttpRequest, proxies: int) -> str:
    """Return the address that a request came from; "" if it is unknown.

    Any caller can write X-Forwarded-For, but each proxy appends the address that it sees. So the address that the
    outermost of the operator's proxies appended is reliable.
    """
    if proxies:
        addresses = request.fields.get(_FORWARDED, b"").decode("latin-1").split(",")
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
