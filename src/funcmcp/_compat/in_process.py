"""Requests that a test sends to an ASGI application in its own process: with a Host that no server has.

How it works: Starlette's `TestClient` and the `ASGITransport` of httpx name the URL of the test in three places of the
scope: in the Host, and as the address of the server; and they name a client of their own. A scope counts only if it has
all of these, and no field of a proxy. No request from a network has them: a server that listens on a socket has an IP
address or a path, and its client has an IP address with a port that is neither of these two. A program in front of the
application that sets the client from a field such as ``X-Forwarded-For`` does not make it one either, because of the
field. The Host of such a request is not checked; everything else is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._adapters.asgi.application import IN_PROCESS
from funcmcp._protocol.loopback import address_of

if TYPE_CHECKING:
    from collections.abc import MutableMapping

_CLIENTS = frozenset({("testclient", 50000), ("127.0.0.1", 123)})
"""The clients in the scopes of Starlette's `TestClient` and of httpx."""

_FIELDS_OF_PROXIES = frozenset({b"client-ip", b"forwarded", b"true-client-ip", b"via"})


def with_mark(scope: MutableMapping[str, Any], *, only_localhost: bool = False) -> MutableMapping[str, Any]:
    """Return the scope of a request with a mark, if a test sends it in its own process; others unchanged.

    Args:
        scope: The scope.
        only_localhost: Whether a test is answered under the name "localhost" only.
    """
    if scope["type"] != "http" or not is_of_test(scope):
        return scope
    if only_localhost and scope["server"][0] != "localhost":
        return scope
    return {**scope, "extensions": {**(scope.get("extensions") or {}), IN_PROCESS: {}}}


def is_of_test(scope: MutableMapping[str, Any]) -> bool:
    """Return whether a test sends a request in its own process."""
    client, server = scope.get("client"), scope.get("server")
    if not client or not server or tuple(client) not in _CLIENTS:
        return False
    hosts = [value for name, value in scope["headers"] if name.lower() == b"host"]
    if len(hosts) != 1 or any(_is_of_proxy(name.lower()) for name, _ in scope["headers"]):
        return False
    name = hosts[0].decode("latin-1").partition(":")[0]
    return name == server[0] and "/" not in name and address_of(name) is None


def _is_of_proxy(field: bytes) -> bool:
    return field in _FIELDS_OF_PROXIES or field.startswith((b"x-", b"cf-", b"fastly-", b"tailscale-"))
