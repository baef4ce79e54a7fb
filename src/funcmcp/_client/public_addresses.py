"""The public addresses of a host, for requests to URLs that come from data.

A URL of somebody else may lead to this machine, to its network, or to the service with the credentials of a cloud
(169.254.169.254). Its host is looked up once, and the connection is made to the address that was checked: a name may
have another address a moment later.

Source: the special-purpose registries of IANA, as `ipaddress` has them; RFC 4291 (addresses of IPv4 in IPv6), RFC 6052
(NAT64).
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import TypeAlias

_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


async def public_addresses(host: str, port: int) -> list[str]:
    """Return the addresses of a host; none if one of them is not public, or if there is none."""
    try:
        entries = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    addresses = [str(entry[4][0]).partition("%")[0] for entry in entries]
    return addresses if all(is_public(address) for address in addresses) else []


def is_public(text: str) -> bool:
    """Return whether an address is a public one, and not one of IPv4 within IPv6 that is not."""
    address = ipaddress.ip_address(text)
    if address.is_multicast or not address.is_global:
        return False
    return all(not inner.is_multicast and inner.is_global for inner in _inner_addresses(address))


def _inner_addresses(address: _Address) -> list[_Address]:
    """Return the addresses of IPv4 that an address of IPv6 leads to."""
    if isinstance(address, ipaddress.IPv4Address):
        return []
    inner: list[_Address | None] = [address.ipv4_mapped, address.sixtofour]
    if address.teredo is not None:
        inner += address.teredo
    if address in _NAT64:
        inner.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return [address for address in inner if address is not None]
