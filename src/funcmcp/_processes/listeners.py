"""The sockets that servers listen on: on an address, on all addresses of a name, or a Unix socket.

How it works: a command binds its sockets before its application starts, so that an address that can't be used is an
error at once, and listens on them when the application has started (`Listeners.listen`): until then connections are
refused, and a proxy sends its requests elsewhere. The sockets are shared by all processes of the command, so the first
one that has started listens for all of them.

If another command has bound the address as well before one of them listens, the one that listens first has it, and the
other one gets an error.

A Unix socket is a file, which remains if its process is killed. So a file that no process listens on is replaced. Of
commands that start at once on one path, the last one to bind it has the file, and the others get an error when they
listen. They lock its folder while they look, and until they have bound it or listen. The owner and the group of the
file may connect, and no other user. The file is removed at the end, unless another process has replaced it meanwhile.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

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


class FileId(NamedTuple):
    """What distinguishes a file from a later one at its path."""

    device: int
    inode: int


class Listeners(NamedTuple):
    """The sockets of a command, which are bound.

    Attributes:
        sockets: The sockets.
        file: The file of a Unix socket, which is the only one then.
    """

    sockets: list[socket.socket]
    file: FileId | None = None

    def listen(self) -> None:
        """Accept connections from here on, unless another process of the command does already; raise AddressError."""
        for listener in self.sockets:
            if listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                continue
            path = path_of(listener)
            try:
                if path is None:
                    listener.listen(_BACKLOG)
                else:
                    self._listen_on_path(listener, path)
            except OSError as error:
                raise _address_error(error, path or _authority(*listener.getsockname()[:2])) from error

    def _listen_on_path(self, listener: socket.socket, path: str) -> None:
        with _locked_folder(path):
            if _identity_of(path) != self.file:
                raise OSError(errno.EADDRINUSE, "its file was replaced or removed by another program")
            listener.listen(_BACKLOG)


@contextlib.contextmanager
def bound(host: str, port: int, uds: str | None = None) -> Iterator[Listeners]:
    """Bind sockets to all addresses of a host, or a Unix socket to a path, while the block runs; raise AddressError."""
    listeners = Listeners(bind_to_all(host, port)) if uds is None else _bind_to_path(uds)
    try:
        yield listeners
    finally:
        for listener in listeners.sockets:
            listener.close()
        if uds is not None and _identity_of(uds) == listeners.file:
            with contextlib.suppress(OSError):
                os.unlink(uds)  # noqa: PTH108 - a path as the operator wrote it


def bind_to_all(host: str, port: int) -> list[socket.socket]:
    """Return sockets for all addresses of a host, with one port; raise AddressError.

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
    """Bind a socket to one more address, on the port of those before; skip it if this machine does not have it."""
    if listeners:
        port = listeners[0].getsockname()[1]
    try:
        listeners.append(bind(address, port))
    except AddressError as error:
        if error.errno not in _MISSING or (is_last and not listeners):
            raise


def _addresses_of(host: str) -> list[str]:
    """Return the addresses of a host. Several ones are those of a name."""
    if host.lower() == "localhost":
        return list(_LOCALHOST)
    with contextlib.suppress(OSError, UnicodeError):  # `bind` explains it
        resolved = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        addresses = list(dict.fromkeys(str(address[0]) for *_, address in resolved))
        if len(addresses) > 1 and not _LOOPBACK.keys() & addresses:
            return addresses
    return [host]


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to an address; raise AddressError."""
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
    except OSError as error:
        listener.close()
        raise _address_error(error, _authority(host, port)) from error
    return listener


def _address_error(error: OSError, place: str) -> AddressError:
    """Return the error for an address or a path."""
    reason = error.strerror or str(error)
    if error.errno == errno.EADDRINUSE and reason == os.strerror(errno.EADDRINUSE):
        reason = "it is in use by another program"
    return AddressError(error.errno, f"Can't listen on {place}: {reason}")


def origin_of(host: str, listener: socket.socket, scheme: str = "http") -> str:
    """Return the origin of a socket that is bound, with a loopback address if it listens on all addresses.

    That of a Unix socket is written as nginx does: ``http://unix:/run/shop.sock:``.
    """
    path = path_of(listener)
    if path is not None:
        return f"http://unix:{path}:"
    address, port = listener.getsockname()[:2]
    return f"{scheme}://{_authority(_LOOPBACK.get(address, host), port)}"


def _authority(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def path_of(listener: socket.socket) -> str | None:
    """Return the path of a Unix socket; None for another one."""
    name = listener.getsockname()
    return name if isinstance(name, str) else None


def _bind_to_path(path: str) -> Listeners:
    """Return a Unix socket that is bound to a path; raise AddressError."""
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
            return Listeners([listener], _identity_of(path))
    except OSError as error:
        listener.close()
        raise _address_error(error, path) from error


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
    if sys.platform == "win32":
        raise NotImplementedError
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


def _identity_of(path: str) -> FileId | None:
    """Return the file at a path; None if there is none."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return FileId(status.st_dev, status.st_ino)
