"""Messages to systemd about the state of this process, for units with ``Type=notify`` or ``notify-reload``.

Source: sd_notify(3).
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import time

VARIABLE = "NOTIFY_SOCKET"
"""The environment variable in which systemd names its socket. Only the first process of a service may send."""


def notify_systemd(*lines: str) -> None:
    """Send lines such as ``READY=1``. Do nothing if systemd does not wait for them, or can't be reached."""
    address = os.environ.get(VARIABLE, "")
    if sys.platform == "win32" or not address.startswith(("/", "@")):
        return
    if address.startswith("@"):
        address = f"\0{address[1:]}"
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as connection:
        connection.settimeout(1.0)
        connection.sendto("\n".join(lines).encode(), address)


def notify_reload() -> None:
    """Send that the service reloads. It is over with ``READY=1``."""
    notify_systemd("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")
