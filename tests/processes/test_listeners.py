"""Sockets on addresses, on all addresses of a name, and at paths."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from funcmcp._processes.listeners import AddressError, bind, bind_to_all, bound, origin_of
from tests.sockets import listen

pytestmark = [
    pytest.mark.every_python("Processes, signals and sockets are those of Python and asyncio."),
    pytest.mark.lowest("uvicorn, httptools, h11 and uvloop read and write HTTP."),
]


@pytest.mark.parametrize("host", ["127.0.0.1.5.5", "::g", "local host"])
def test_a_host_that_is_no_address_is_one_clear_error(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)  # no resolver of this machine has a say
    with pytest.raises(AddressError, match=f"^.*'{re.escape(host)}' is not an address to listen on: Name or service"):
        bind(host, 0)


def test_a_host_that_can_not_even_be_looked_up_is_one_clear_error() -> None:
    with pytest.raises(AddressError, match="is not an address to listen on: it is not a host name"):
        bind("127.0.0.1." + "x" * 70, 0)


def test_the_error_of_an_address_that_is_another_machines_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("192.0.2.1", 8000))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [found])
    with pytest.raises(AddressError, match=r"Can't listen on 192\.0\.2\.1:8000: "):
        bind("192.0.2.1", 8000)


def test_a_port_is_free_again_as_soon_as_its_server_has_ended() -> None:
    with contextlib.closing(listen("127.0.0.1", 0)) as first:
        port = first.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)), first.accept()[0]:
            pass  # the server closes first: the port stays in TIME_WAIT
    bind("127.0.0.1", port).close()


def test_the_socket_names_its_protocol_so_that_asyncio_sends_small_events_at_once() -> None:
    with contextlib.closing(bind("127.0.0.1", 0)) as listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_an_ipv6_origin_has_brackets() -> None:
    try:
        listener = bind("::1", 0)
    except AddressError:
        pytest.skip("this machine has no IPv6")
    with contextlib.closing(listener):
        assert origin_of("::1", listener) == f"http://[::1]:{listener.getsockname()[1]}"


def test_all_addresses_of_ipv6_include_those_of_ipv4(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system separates them by default, as Windows does."""
    if not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no sockets for both")

    class Separate(socket.socket):
        def __init__(self, family: int, *arguments: int) -> None:
            super().__init__(family, *arguments)
            self.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)

    def numeric(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        return [(socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port, 0, 0))]

    monkeypatch.setattr(socket, "socket", Separate)
    monkeypatch.setattr(socket, "getaddrinfo", numeric)
    with listen("::", 0) as listener:
        assert listener.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY) == 0
    with listen("::1", 0) as listener:
        assert listener.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY) == 1


def test_localhost_is_listened_on_at_both_of_its_addresses_with_one_port() -> None:
    listeners = bind_to_all("localhost", 0)
    try:
        names = [listener.getsockname()[:2] for listener in listeners]
    finally:
        for listener in listeners:
            listener.close()
    assert names[0][0] == "127.0.0.1"
    assert [address for address, _ in names[1:]] in (["::1"], [])  # a machine without IPv6 has one only
    assert len({port for _, port in names}) == 1


def test_a_name_is_listened_on_at_all_addresses_that_this_machine_has(monkeypatch: pytest.MonkeyPatch) -> None:
    def three(host: str, port: int, **_: Any) -> Any:
        kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
        names = ("127.0.0.1", "203.0.113.1", "127.0.0.2") if host == "shop" else (host,)
        return [(*kind, (name, port)) for name in names]

    monkeypatch.setattr(socket, "getaddrinfo", three)
    with bound("shop", 0) as listeners:
        first, second = listeners.sockets
        assert [listener.getsockname()[0] for listener in listeners.sockets] == ["127.0.0.1", "127.0.0.2"]
        assert origin_of("shop", first) == f"http://shop:{first.getsockname()[1]}"
        listeners.listen()
        with pytest.raises(AddressError, match="it is in use by another program"):
            bind_to_all("shop", second.getsockname()[1])


def test_connections_are_refused_until_the_first_process_of_a_command_listens() -> None:
    with bound("127.0.0.1", 0) as listeners:
        address = listeners.sockets[0].getsockname()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address)
        listeners.listen()
        listeners.listen()  # as another process of the command does
        socket.create_connection(address).close()


def test_of_commands_that_bind_one_address_the_first_one_that_listens_has_it() -> None:
    with bound("127.0.0.1", 0) as first:
        address, port = first.sockets[0].getsockname()
        with bound(address, port) as second:
            second.listen()
            with pytest.raises(AddressError, match=f"Can't listen on {address}:{port}: it is in use by another progr"):
                first.listen()


def test_a_name_none_of_whose_addresses_this_machine_has_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def two(host: str, port: int, **_: Any) -> Any:
        names = ("203.0.113.1", "203.0.113.2") if host == "shop" else (host,)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (name, port)) for name in names]

    monkeypatch.setattr(socket, "getaddrinfo", two)
    with pytest.raises(AddressError, match=r"Can't listen on 203\.0\.113\.2:8000"):
        bind_to_all("shop", 8000)


# Unix sockets


def connect(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)


def test_the_owner_and_the_group_of_a_unix_socket_may_connect_and_its_file_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "mcp.sock"
    mask = os.umask(0o077)
    try:
        with bound("", 0, str(path)) as listeners:
            listeners.listen()
            assert path.stat().st_mode & 0o777 == 0o660
            assert origin_of("", listeners.sockets[0]) == f"http://unix:{path}:"
            assert os.umask(0o077) == 0o077
    finally:
        os.umask(mask)
    assert not path.exists()


def test_a_unix_socket_that_a_process_listens_on_is_not_replaced_and_a_remaining_file_is(tmp_path: Path) -> None:
    path = str(tmp_path / "mcp.sock")
    with bound("", 0, path) as first:
        first.listen()
        with pytest.raises(AddressError, match=r"mcp\.sock: it is in use by another program$"), bound("", 0, path):
            pass
        connect(path)  # the first one still listens
        first.sockets[0].close()  # as if its process were killed
        with bound("", 0, path) as second:
            second.listen()
            connect(path)
    assert not Path(path).exists()


def test_only_its_own_file_is_removed_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "mcp.sock"
    with bound("", 0, str(path)):
        path.unlink()
        path.write_text("another one's")
    assert path.read_text() == "another one's"


def test_two_processes_that_replace_a_remaining_file_at_once_do_not_replace_each_other(tmp_path: Path) -> None:
    path = str(tmp_path / "mcp.sock")
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as killed:
        killed.bind(path)
    code = (
        "import sys, time\n"
        "from funcmcp._processes.listeners import AddressError, bound\n"
        "try:\n"
        "    with bound('', 0, sys.argv[1]) as listeners:\n"
        "        listeners.listen()\n"
        "        print('listens', flush=True)\n"
        "        sys.stdin.read()\n"
        "except AddressError as error:\n"
        "    print(error.strerror, flush=True)\n"
    )
    command = [sys.executable, "-c", code, path]
    with contextlib.ExitStack() as stack:
        processes = [
            stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            for _ in range(4)
        ]
        lines = [process.stdout.readline() for process in processes if process.stdout is not None]
    refusals = [line for line in lines if re.match(rf"Can't listen on {path}: it", line)]
    assert len(refusals) == 3
    assert lines.count("listens\n") == 1


def test_of_commands_that_bind_one_path_at_once_the_last_one_has_it(tmp_path: Path) -> None:
    path = str(tmp_path / "mcp.sock")
    with bound("", 0, path) as first, bound("", 0, path) as second:
        with pytest.raises(ConnectionRefusedError):
            connect(path)
        with pytest.raises(AddressError, match=r"mcp\.sock: its file was replaced or removed by another program$"):
            first.listen()
        second.listen()
        Path(path).unlink()
        second.listen()  # as a process does that replaces another one of the command


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("file", "there is a file that is not a socket"),
        ("link", "there is a file that is not a socket"),
        ("x" * 120, "AF_UNIX path too long"),
        ("missing/mcp.sock", "No such file or directory"),
    ],
    ids=["file", "link", "long", "folder"],
)
def test_a_path_that_can_not_be_a_socket_is_one_clear_error(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "file").write_text("precious")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    path = tmp_path / name
    with (
        pytest.raises(AddressError, match=f"^.*Can't listen on {re.escape(str(path))}: {reason}"),
        bound("", 0, str(path)),
    ):
        pass
    assert (tmp_path / "file").read_text() == "precious"
