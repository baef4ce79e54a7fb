"""Who may reach the endpoint from a browser: the Host and Origin checks against DNS rebinding.

Source: "basic/transports, Security Warning" of every revision with HTTP (an invalid Origin is 403);
RFC 9112 section 3.2 (none or more than one Host is 400); RFC 6454 (what an origin is).
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING

from funcmcp.transports.http.options import hosts_of_environment, hosts_of_platform

if TYPE_CHECKING:
    from funcmcp.transports.http.messages import HttpRequest
    from funcmcp.transports.http.options import HTTPOptions

_AUTHORITY = re.compile(r"(\[[0-9a-fA-F:.]+\]|[0-9A-Za-z._-]+)(?::([0-9]{1,5}))?")
_DEFAULT_PORTS = {"http": "80", "https": "443"}


class OriginCheck:
    """Decides by a request's Host and Origin headers and by the address that it came in on.

    Args:
        options: allowed hosts and origins.
    """

    def __init__(self, options: HTTPOptions) -> None:
        self._require_origin = options.require_origin
        hosts = (*options.allowed_hosts, *hosts_of_environment(), *hosts_of_platform())
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(origin.lower().rstrip("/") for origin in options.allowed_origins)

    def refusal(self, request: HttpRequest) -> tuple[int, str] | None:
        """Return the status and the reason of a refusal, or None if the request may pass."""
        names = [name for name, _ in request.pairs]
        for name in ("Host", "Origin"):
            if names.count(name.lower().encode()) > 1:
                return 400, f"More than one {name} header."
        fields = request.fields
        if b"host" not in fields:
            return 400, "The Host header is missing."
        origin = _text(fields[b"origin"]) if b"origin" in fields else None
        return self._check(_text(fields[b"host"]), origin, request.server)

    def _check(self, host: str, origin: str | None, server: str | None) -> tuple[int, str] | None:
        if not self._host_allowed(host, server):
            return 421, "This Host is not allowed; list it in allowed_hosts if it is yours."
        if origin is None:
            return (403, "An Origin header is required.") if self._require_origin else None
        if self._origin_allowed(origin, host):
            return None
        return 403, "This Origin is not allowed; list it in allowed_origins if it is yours."

    def _host_allowed(self, host: str, server: str | None) -> bool:
        if "*" in self._hosts:
            return True
        match = _AUTHORITY.fullmatch(host)
        if match is None:
            return False
        name = match[1].lower()
        if host.lower() in self._hosts or name in self._hosts:
            return True
        # A page elsewhere can make a *name* of its own point here, never an address: so the address itself is fine.
        address = _address(server)
        if address is None:
            return False
        address = getattr(address, "ipv4_mapped", None) or address  # as an IPv6 socket calls an IPv4 connection
        return _address(name) == address or (address.is_loopback and _is_loopback(name))

    def _origin_allowed(self, origin: str, host: str) -> bool:
        if "*" in self._origins:
            return True
        scheme, separator, authority = origin.lower().partition("://")
        match = _AUTHORITY.fullmatch(authority)
        if not separator or match is None or scheme not in _DEFAULT_PORTS:
            return origin.lower() in self._origins
        if f"{scheme}://{authority}" in self._origins or _is_loopback(match[1]):
            return True
        return _with_port(authority, scheme) == _with_port(host.lower(), scheme)


def _text(value: bytes) -> str:
    return value.decode("latin-1").strip(" \t")


def _with_port(authority: str, scheme: str) -> str:
    match = _AUTHORITY.fullmatch(authority)
    return f"{match[1]}:{match[2] or _DEFAULT_PORTS[scheme]}" if match is not None else authority


def _is_loopback(name: str) -> bool:
    address = _address(name)
    return name == "localhost" or (address is not None and address.is_loopback)


def _address(name: str | None) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    if name is None:
        return None
    try:
        return ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return None
