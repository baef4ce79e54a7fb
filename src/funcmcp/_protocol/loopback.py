"""Loopback hosts: names and addresses that only the machine itself can reach.

Source: RFC 1122 section 3.2.1.3 (127.0.0.0/8), RFC 4291 sections 2.5.3 and 2.5.5.2 (``::1``, IPv4-mapped addresses),
RFC 6761 section 6.3 (``localhost``), RFC 3986 section 3.2.2 (brackets), RFC 4007 section 11 (zones).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address


def is_loopback(host: str) -> bool:
    """Return whether a host is ``localhost``, in any case, or a loopback address, with or without brackets."""
    address = address_of(host)
    return host.lower() == "localhost" if address is None else address.is_loopback


def address_of(host: str) -> IPv4Address | IPv6Address | None:
    """Return the IP address of a host without its zone, as IPv4 if it is mapped to IPv6; None for a name."""
    import ipaddress  # noqa: PLC0415 - most starts of a server need not wait for it

    text = host[1:-1] if host[:1] == "[" and host[-1:] == "]" else host
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
