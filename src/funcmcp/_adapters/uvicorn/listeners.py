"""The sockets that servers listen on: on an address, on all addresses of a name, or a Unix socket.

How it works: a Unix socket is a file, which remains if its process is killed. So a file that no process listens on is
replaced. Two commands that start at once on one path must not replace the file of each other: they lock its folder
while they look, and until they listen. The owner and the group of the file may connect, and no other user. The file is
removed at the end, unless another process has replaced it meanwhile.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from funcmcp._adapters.uvicorn.uvicorn_server import Certificate

_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - the name of a socket that listens on all addresses
_LOCALHOST = ("127.0.0.1", "::1")
_MISSING = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}
"""Errors for an address that this machine does not have."""

_BACKLOG = 2048
_PORT_ATTEMPTS = 10
_LOCK_SECONDS = 5.0
_OWNER_AND_GROUP = 0o117
"""The mask of a Unix socket's mode, 660."""


class AddressError(OSError):
    """The address can't be listened on: it is in use, not this machine's, or not allowed."""


@contextlib.contextmanager
def listening(host: str, port: int, uds: str | None = None) -> Iterator[list[socket.socket]]:
    """Listen on all addresses of a host, or on a Unix socket at a path, while the block runs; raise AddressError."""
    listeners = listen_on_all(host, port) if uds is None else [_listen_on_path(uds)]
    identity = None if uds is None else _identity_of(uds)
    try:
        yield listeners
    finally:
        for listener in listeners:
            listener.close()
        if uds is not None and _identity_of(uds) == identity:
            with contextlib.suppress(OSError):
                os.unlink(uds)  # noqa: PTH108 - a path as the operator wrote it


def listen_on_all(host: str, port: int) -> list[socket.socket]:
    """Listen on all addresses of a host, with one port; raise AddressError.

    Addresses that this machine does not have are left out, if it has another one.
    """
    addresses = _addresses_of(host)
    for attempt in range(_PORT_ATTEMPTS):
        listeners: list[socket.socket] = []
        try:
            for address in addresses:
                _add_listener(listeners, address, port, is_last=address == addresses[-1])
        except AddressError as error:
            for listener in listeners:
                listener.close()
            is_chance = port == 0 and error.errno == errno.EADDRINUSE and attempt < _PORT_ATTEMPTS - 1
            if not is_chance:
                raise
        else:
            return listeners
    raise AssertionError  # the last attempt has raised


def _add_listener(listeners: list[socket.socket], address: str, port: int, *, is_last: bool) -> None:
    """Listen on one more address, on the port of those before; skip it if this machine does not have it."""
    if listeners:
        port = listeners[0].getsockname()[1]
    try:
        listeners.append(listen(address, port))
    except AddressError as error:
        if error.errno not in _MISSING or (is_last and not listeners):
            raise


def _addresses_of(host: str) -> list[str]:
    """Return the addresses of a host. Several ones are those of a name."""
    if host.lower() == "localhost":
        return list(_LOCALHOST)
    with contextlib.suppress(OSError, UnicodeError):  # `listen` explains it
        resolved = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        addresses = list(dict.fromkeys(str(address[0]) for *_, address in resolved))
        if len(addresses) > 1 and not _LOOPBACK.keys() & addresses:
            return addresses
    return [host]


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address; raise AddressError."""
    try:
        addresses = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP, flags=socket.AI_PASSIVE
        )
        # With an explicit protocol, asyncio turns Nagle's algorithm off; create_server() would leave it on.
        family, kind, protocol, _, address = addresses[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a host name"
        raise AddressError(errno.EADDRNOTAVAIL, f"{host!r} is not an address to listen on: {reason}") from error
    try:
        if os.name == "posix":  # on Windows two programs could then share the port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6 and address[0] == "::" and socket.has_dualstack_ipv6():
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)  # all addresses, of IPv4 as well
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        reason = error.strerror
        if error.errno == errno.EADDRINUSE:
            reason = "it is in use by another program"
        raise AddressError(error.errno, f"Can't listen on {_authority(host, port)}: {reason}") from error
    return listener


def origin_of(host: str, listener: socket.socket, certificate: Certificate | None = None) -> str:
    """Return the origin of a listening socket, with a loopback address if it listens on all addresses.

    That of a Unix socket is written as nginx does: ``http://unix:/run/shop.sock:``.
    """
    path = path_of(listener)
    if path is not None:
        return f"http://unix:{path}:"
    address, port = listener.getsockname()[:2]
    scheme = "http" if certificate is None else "https"
    return f"{scheme}://{_authority(_LOOPBACK.get(address, host), port)}"


def _authority(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def path_of(listener: socket.socket) -> str | None:
    """Return the path of a Unix socket; None for another one."""
    name = listener.getsockname()
    return name if isinstance(name, str) else None


def _listen_on_path(path: str) -> socket.socket:
    """Return a Unix socket that listens at a path; raise AddressError."""
    if sys.platform == "win32":
        raise AddressError(errno.EAFNOSUPPORT, f"Can't listen on {path}: Windows has no Unix sockets for servers")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _locked_folder(path):
            _remove_stale(path)
            mask = os.umask(_OWNER_AND_GROUP)
            try:
                listener.bind(path)
            finally:
                os.umask(mask)
            listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise AddressError(error.errno, f"Can't listen on {path}: {error.strerror or error}") from error
    return listener


@contextlib.contextmanager
def _locked_folder(path: str) -> Iterator[None]:
    """Keep other commands from looking at the files of a folder while the block runs."""
    if sys.platform == "win32":
        raise NotImplementedError
    import fcntl  # noqa: PLC0415 - does not exist on Windows

    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)  # noqa: PTH120 - a path as the operator wrote it
    end = time.monotonic() + _LOCK_SECONDS
    try:
        while True:
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > end:
                    raise OSError(errno.EAGAIN, "another program has locked its folder") from None
                time.sleep(0.05)
            else:
                break
        yield
    finally:
        os.close(folder)


def _remove_stale(path: str) -> None:
    """Remove the file of a Unix socket that no process listens on; raise OSError if there is another file."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(status.st_mode):
        raise OSError(errno.EEXIST, "there is a file that is not a socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)  # noqa: PTH108 - a path as the operator wrote it
            return
        except BlockingIOError:
            pass  # so many connections wait that it takes no more
    raise OSError(errno.EADDRINUSE, "it is in use by another program")


def _identity_of(path: str) -> tuple[int, int] | None:
    """Return what distinguishes a file from a later one at its path; None if there is none."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
