"""Sockets of tests that run a server in a thread: a client may connect before the server has started."""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._processes.listeners import bind

if TYPE_CHECKING:
    import socket


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address."""
    listener = bind(host, port)
    listener.listen()
    return listener
