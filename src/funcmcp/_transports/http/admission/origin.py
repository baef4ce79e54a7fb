"""The checks of Host and Origin, which keep pages of other origins out (DNS rebinding).

How it works: a page can point a *name* of its own at the server's address, but no address at it. So a Host that is the
address on which the connection was accepted is always allowed, and so are loopback names on a loopback address, or on
``localhost``, as servers of WSGI applications call it. Other names must be in `HTTPOptions.allowed_hosts`, to which the
server adds the host of the URL in its `auth`. No page can reach a Unix socket, on which loopback names are allowed,
too: local programs use them, and a proxy passes the name of the client on. GET and HEAD in HTTP/1.0 may have no Host:
health checks of load balancers have none, and every browser sends one. An Origin is allowed if it is the server's own
(the Host with the scheme's port), a loopback one, or in `HTTPOptions.allowed_origins`.

Source: "basic/transports, Security Warning" of every revision with HTTP (an invalid Origin is 403);
RFC 9112 section 3.2 (no Host in HTTP/1.1, or several ones, are 400); RFC 9110 section 15.5.20 (421);
RFC 6454 (what an origin is).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from funcmcp._protocol.errors import INVALID_REQUEST
from funcmcp._protocol.loopback import address_of, is_loopback
from funcmcp._server.log import quote
from funcmcp._state.line_limit import LineLimit
from funcmcp._transports.http.messages import READ_METHODS
from funcmcp._transports.http.options import hosts_of_environment, hosts_of_platform
from funcmcp._transports.http.status import refuse

if TYPE_CHECKING:
    from funcmcp._transports.http.messages import HttpRequest, HttpResponse
    from funcmcp._transports.http.options import HTTPOptions

_AUTHORITY = re.compile(r"(\[[0-9a-fA-F:.]+\]|[0-9A-Za-z._-]+)(?::([0-9]{1,5}))?")
_REFUSED_ORIGIN = (
    "This Origin is not allowed. If it is yours, list it in HTTPOptions(allowed_origins=), with --cors of the "
    "functions host, or in the CORS settings of Azure."
)
_MAX_LENGTH = 512
"""Bytes of a Host or Origin that can be one. A name has at most 253 (RFC 1035)."""

_MAX_LOGGED = 100
"""Characters of a Host in the log."""

_MAX_CACHED = 256
_DEFAULT_PORTS = {"http": "80", "https": "443"}


class OriginCheck:
    """Decides by the Host and Origin headers of a request and the address that it was accepted on.

    Args:
        options: The allowed hosts and origins.

    Attributes:
        FIELDS: The names of the fields that it reads.
    """

    FIELDS: ClassVar[frozenset[bytes]] = frozenset({b"host", b"origin"})

    def __init__(self, options: HTTPOptions) -> None:
        self._require_origin = options.require_origin
        hosts = (*options.allowed_hosts, *hosts_of_environment(), *hosts_of_platform())
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(origin.lower().rstrip("/") for origin in options.allowed_origins)
        self._refused = LineLimit()
        # Each depends on nothing but its arguments.
        self._allows_host = lru_cache(maxsize=_MAX_CACHED)(self._host_is_allowed)
        self._allows_origin = lru_cache(maxsize=_MAX_CACHED)(self._origin_is_allowed)

    def refusal(self, request: HttpRequest) -> HttpResponse | None:
        """Return the refusal of a request, or None if it is allowed."""
        fields = request.fields
        if len(request.pairs) != len(fields):
            names = [name for name, _ in request.pairs]
            for name in ("Host", "Origin"):
                if names.count(name.lower().encode()) > 1:
                    return refuse(400, INVALID_REQUEST, f"More than one {name} header.")
        host, origin = fields.get(b"host"), fields.get(b"origin")
        if host is None:
            if request.version != "1.0" or request.method not in READ_METHODS:
                return refuse(400, INVALID_REQUEST, "The Host header is missing.")
            host = b""
        elif len(host) > _MAX_LENGTH or not (self._allows_host(host, request.server) or request.is_in_process):
            self._log_refused_host(host)
            return refuse(421, INVALID_REQUEST, "This Host is not allowed; list it in allowed_hosts if it is yours.")
        if origin is None:
            return refuse(403, INVALID_REQUEST, "An Origin header is required.") if self._require_origin else None
        if len(origin) <= _MAX_LENGTH and self._allows_origin(origin, host):
            return None
        return refuse(403, INVALID_REQUEST, _REFUSED_ORIGIN)

    def _log_refused_host(self, host: bytes) -> None:
        """Log that a Host is refused, once in a minute: it may be a name that the operator has not listed."""
        self._refused.write(
            "A request is refused with 421, because its Host '%s' is not allowed. If it is a name of this server, list "
            "it in HTTPOptions(allowed_hosts=), in FUNCMCP_ALLOWED_HOSTS, or with --allowed-host. If a proxy or an "
            "ingress has put it there, let that pass on the Host of the client. See docs/deploy/proxies.md.",
            quote(_text(host), _MAX_LOGGED),
        )

    def _host_is_allowed(self, field: bytes, server: str | None) -> bool:
        if "*" in self._hosts:
            return True
        host = _text(field)
        match = _AUTHORITY.fullmatch(host)
        if match is None:
            return False
        name = match[1].lower()
        if host.lower() in self._hosts or name in self._hosts:
            return True
        if server is not None and server.startswith("/"):  # the path of a Unix socket
            return is_loopback(name)
        address = None if server is None else address_of(server)
        if address is None:
            return server is not None and is_loopback(server) and is_loopback(name)
        return address_of(name) == address or (address.is_loopback and is_loopback(name))

    def _origin_is_allowed(self, field: bytes, host_field: bytes) -> bool:
        if "*" in self._origins:
            return True
        origin, host = _text(field), _text(host_field)
        scheme, separator, authority = origin.lower().partition("://")
        match = _AUTHORITY.fullmatch(authority)
        if not separator or match is None or scheme not in _DEFAULT_PORTS:
            return origin.lower() in self._origins
        if f"{scheme}://{authority}" in self._origins or is_loopback_origin(origin):
            return True
        return _with_port(authority, scheme) == _with_port(host.lower(), scheme)


def is_loopback_origin(origin: str) -> bool:
    """Return whether an origin is that of a page which a server on its user's machine has sent."""
    scheme, _, authority = origin.lower().partition("://")
    match = _AUTHORITY.fullmatch(authority)
    return scheme in _DEFAULT_PORTS and match is not None and is_loopback(match[1])


def is_on_loopback(request: HttpRequest) -> bool:
    """Return whether a request came to a loopback address and names a loopback host."""
    address = None if request.server is None else address_of(request.server)
    match = _AUTHORITY.fullmatch(_text(request.fields.get(b"host", b"")))
    if address is None or match is None:
        return False
    return address.is_loopback and is_loopback(match[1])


def names_host(request: HttpRequest) -> bool:
    """Return whether the Host of a request is a name or an address, with or without a port."""
    return _AUTHORITY.fullmatch(_text(request.fields.get(b"host", b""))) is not None


def _text(field: bytes) -> str:
    return field.decode("latin-1").strip(" \t")


def _with_port(authority: str, scheme: str) -> str:
    match = _AUTHORITY.fullmatch(authority)
    return f"{match[1]}:{match[2] or _DEFAULT_PORTS[scheme]}" if match is not None else authority
