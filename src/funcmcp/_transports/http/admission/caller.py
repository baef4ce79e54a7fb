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

_FORWARDED = b"x-forwarded-for"
_UNKNOWN = address_caller("")


def caller_of(request: HttpRequest) -> str | None:
    """Return the caller of a request; None if neither a principal nor an address is known."""
    if request.principal is not None:
        return _caller_of_principal(request.principal.key)
    address = request.client_address
    return None if address is None else _caller_at(address)


def rated_caller_of(request: HttpRequest) -> str:
    """Return the caller whose rate an admitted request counts for. All unknown callers have one rate together."""
    return request.caller or _UNKNOWN


@lru_cache(maxsize=4096)
def _caller_of_principal(key: tuple[str, ...]) -> str:
    return principal_caller(owner_of_key(key))


@lru_cache(maxsize=4096)
def _caller_at(text: str) -> str:
    """Return the caller at an IPv4 address, or in the network of an IPv6 address."""
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address):
        address = ipaddress.IPv6Address(int(address) >> _HOST_BITS << _HOST_BITS)
    return address_caller(str(address))


def ignores_forwarded_address(request: HttpRequest) -> bool:
    """Return whether a proxy names an address that does not count for the request, if no proxies are declared.

    A server such as uvicorn may have read the header; then its peer is an address in it.
    """
    forwarded = request.fields.get(_FORWARDED)
    return forwarded is not None and (request.peer or "?") not in forwarded.decode("latin-1")
