"""Host and Origin: whoever passes is one of those who may, as another reading of the two headers has it."""

from __future__ import annotations

import ipaddress

from funcmcp._transports.http.admission.origin import OriginCheck
from funcmcp._transports.http.messages import HttpRequest, HttpResponse
from funcmcp._transports.http.options import HTTPOptions

HOST, PAGE = "orders.example.com", "https://app.example.com:8443"
_CHECK = OriginCheck(HTTPOptions(allowed_hosts=[HOST], allowed_origins=[PAGE]))
_OF_PROXIES = (b"x-forwarded-host", b"forwarded", b"x-original-host", b"x-forwarded-proto")
_LOCAL = "127.0.0.1"
_REFUSALS = {400, 403, 421}


def check(data: bytes) -> None:
    """Use the lines as Host, Origin and another header."""
    host, _, lines = data.partition(b"\n")
    origin, separator, extra = lines.partition(b"\n")
    pairs = [(b"host", host)]
    if origin or separator:
        pairs.append((b"origin", origin))
    for server in (_LOCAL, "203.0.113.9", "::1", None):
        verdict = _CHECK.refusal(HttpRequest("POST", "/mcp", pairs, server))
        _check_verdict(verdict, host, origin if len(pairs) > 1 else None, server)
    proxied = HttpRequest("POST", "/mcp", [*pairs, *((header, extra) for header in _OF_PROXIES)], _LOCAL)
    assert (_CHECK.refusal(proxied) is None) == (_CHECK.refusal(HttpRequest("POST", "/mcp", pairs, _LOCAL)) is None)
    twice = HttpRequest("POST", "/mcp", [*pairs, (b"host", extra)], _LOCAL)
    refused = _CHECK.refusal(twice)
    assert refused is not None
    assert refused.status == 400


def _check_verdict(verdict: HttpResponse | None, host: bytes, origin: bytes | None, server: str | None) -> None:
    if verdict is not None:
        assert verdict.status in _REFUSALS
        assert isinstance(verdict.body, bytes)
        assert verdict.body.isascii()
        return
    name = _name(host)
    assert name == HOST or _is_here(name, server), f"{host!r} passes at {server}"
    if origin is not None:
        scheme, _, authority = origin.strip(b" \t").partition(b"://")
        page = f"{scheme.decode('latin-1')}://{authority.decode('latin-1')}".lower()
        assert scheme.lower() in {b"http", b"https"}
        assert page == PAGE or _is_loopback(_name(authority)) or _name(authority) == name, f"{origin!r} passes"


def _name(authority: bytes) -> str:
    """Return the name in an authority, read by hand from its end."""
    text = authority.decode("latin-1").strip(" \t").lower()
    name, colon, port = text.rpartition(":")
    if colon and port.isdigit() and (not name.startswith("[") or name.endswith("]")):
        text = name
    return text


def _is_loopback(name: str) -> bool:
    try:
        return _address(name.strip("[]")).is_loopback
    except ValueError:
        return name == "localhost"


def _is_here(name: str, server: str | None) -> bool:
    if server is None:
        return False
    here = _address(server)
    if here.is_loopback and _is_loopback(name):
        return True
    try:
        return _address(name.strip("[]")) == here
    except ValueError:
        return False


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return an address, as IPv4 if it is mapped to IPv6: no name of a page is one."""
    address = ipaddress.ip_address(text)
    return getattr(address, "ipv4_mapped", None) or address
