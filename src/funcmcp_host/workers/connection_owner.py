"""Whose process is at the other end of a TCP connection within this machine: the kernel's tables say it, on Linux.

How it works. The table of sockets has a row for each end of the connection, with the user and the inode of the socket.
The processes of a session, which all have the process that began it as their session id, list their sockets' inodes
among their file descriptors.

Source: the Linux kernel's documentation, "networking/proc_net_tcp" (the columns; an address is a number in the byte
order of the machine); proc(5), "/proc/pid/stat" (the session is the sixth field) and "/proc/pid/fd".
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PROC = Path("/proc")
_TABLES = ("net/tcp", "net/tcp6")
_LOCAL, _REMOTE, _USER, _INODE = 1, 2, 7, 9
_SESSION = 3
"""The index of the session among the fields of stat after the name, which is in parentheses."""

_WORD = 8
"""Hexadecimal digits of 32 bits."""


class Endpoint(NamedTuple):
    """An end of a connection.

    Attributes:
        address: An IPv4 or IPv6 address; IPv4 if it is mapped to IPv6.
        port: The port.
    """

    address: str
    port: int


class _Socket(NamedTuple):
    user: int
    inode: str


def has_owners(proc: Path = PROC) -> bool:
    """Return whether this machine has the tables that tell whose process has opened a connection."""
    return sys.platform == "linux" and os.access(proc / _TABLES[0], os.R_OK)


def belongs_to_session(session: int, client: Endpoint, server: Endpoint, proc: Path = PROC) -> bool:
    """Return whether a process of this user, in a session, has opened the connection from a client to a server.

    Args:
        session: The id of the process that began the session.
        client: The client's end of the connection.
        server: The server's end.
        proc: Where the kernel's tables are.
    """
    if sys.platform == "win32":  # `has_owners` is false there
        return False
    socket_entry = _socket_of(client, server, proc)
    if socket_entry is None or socket_entry.user != os.geteuid():
        return False
    name = f"socket:[{socket_entry.inode}]"
    return any(name in _descriptors(process) for process in _processes(session, proc))


def _socket_of(client: Endpoint, server: Endpoint, proc: Path) -> _Socket | None:
    for table in _TABLES:
        for line in _lines(proc / table):
            row = line.split()
            if _endpoint(row[_LOCAL]) == client and _endpoint(row[_REMOTE]) == server:
                return _Socket(int(row[_USER]), row[_INODE])
    return None


def _lines(file: Path) -> Iterable[str]:
    """Return the rows of a table; none if the kernel has no such table, as without IPv6."""
    try:
        return file.read_text(encoding="ascii").splitlines()[1:]
    except OSError:
        return ()


def _endpoint(text: str) -> Endpoint:
    """Return an address and a port as a table has them, such as ``0100007F:1F90``."""
    digits, _, port = text.partition(":")
    words = [int(digits[start : start + _WORD], 16) for start in range(0, len(digits), _WORD)]
    address = ipaddress.ip_address(b"".join(word.to_bytes(4, sys.byteorder) for word in words))
    return Endpoint(str(getattr(address, "ipv4_mapped", None) or address), int(port, 16))


def _processes(session: int, proc: Path) -> Iterator[Path]:
    """Yield the folders of the processes of a session."""
    for folder in proc.glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        if int(fields[_SESSION]) == session:
            yield folder


def _descriptors(process: Path) -> Iterator[str]:
    """Yield what the file descriptors of a process are; nothing if it has ended or does not let itself be read."""
    try:
        links = list((process / "fd").iterdir())
    except OSError:
        return
    for link in links:
        with contextlib.suppress(OSError):  # it was closed meanwhile
            yield str(link.readlink())
