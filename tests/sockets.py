"""Sockets and ports of tests that start a server, to which a client may connect before the server has started."""

from __future__ import annotations

import contextlib
import random
import socket

from funcmcp._processes.listeners import bind

_PORTS = range(20_000, 32_768)
"""Ports below those that Linux chooses for connections, which begin at 32768."""


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address."""
    listener = bind(host, port)
    listener.listen()
    return listener


def free_port() -> int:
    """Return a port that nothing listens on, for a program that is started later.

    A port that the system chooses may be that of a connection of another test when the program starts.
    """
    while True:
        port = random.SystemRandom().choice(_PORTS)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
