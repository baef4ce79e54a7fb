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

from funcmcp._adapters.uvicorn.listeners import AddressError, listen, listen_on_all, listening, origin_of


@pytest.mark.parametrize("host", ["127.0.0.1.5.5", "::g", "local host"])
def test_a_host_that_is_no_address_is_one_clear_error(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)  # no resolver of this machine has a say
    with pytest.raises(AddressError, match=f"^.*'{re.escape(host)}' is not an address to listen on: Name or service"):
        listen(host, 0)


def test_a_host_that_can_not_even_be_looked_up_is_one_clear_error() -> None:
    with pytest.raises(AddressError, match="is not an address to listen on: it is not a host name"):
        listen("127.0.0.1." + "x" * 70, 0)


def test_the_error_of_an_address_that_is_another_machines_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("192.0.2.1", 8000))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [found])
    with pytest.raises(AddressError, match=r"Can't listen on 192\.0\.2\.1:8000: "):
        listen("192.0.2.1", 8000)


def test_a_port_is_free_again_as_soon_as_its_server_has_ended() -> None:
    with contextlib.closing(listen("127.0.0.1", 0)) as first:
        port = first.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)), first.accept()[0]:
            pass  # the server closes first: the port stays in TIME_WAIT
    listen("127.0.0.1", port).close()


def test_the_socket_names_its_protocol_so_that_asyncio_sends_small_events_at_once() -> None:
    with contextlib.closing(listen("127.0.0.1", 0)) as listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_an_ipv6_origin_has_brackets() -> None:
    try:
        listener = listen("::1", 0)
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
    listeners = listen_on_all("localhost", 0)
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
    with listening("shop", 0) as listeners:
        assert [listener.getsockname()[0] for listener in listeners] == ["127.0.0.1", "127.0.0.2"]
        assert origin_of("shop", listeners[0]) == f"http://shop:{listeners[0].getsockname()[1]}"
        with pytest.raises(AddressError, match="it is in use by another program"):
            listen_on_all("shop", listeners[1].getsockname()[1])


def test_a_name_none_of_whose_addresses_this_machine_has_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def two(host: str, port: int, **_: Any) -> Any:
        names = ("203.0.113.1", "203.0.113.2") if host == "shop" else (host,)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (name, port)) for name in names]

    monkeypatch.setattr(socket, "getaddrinfo", two)
    with pytest.raises(AddressError, match=r"Can't listen on 203\.0\.113\.2:8000"):
        listen_on_all("shop", 8000)


# Unix sockets


def connect(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)


def test_the_owner_and_the_group_of_a_unix_socket_may_connect_and_its_file_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "mcp.sock"
    mask = os.umask(0o077)
    try:
        with listening("", 0, str(path)) as [listener]:
            assert path.stat().st_mode & 0o777 == 0o660
            assert origin_of("", listener) == f"http://unix:{path}:"
            assert os.umask(0o077) == 0o077
    finally:
        os.umask(mask)
    assert not path.exists()


def test_a_unix_socket_that_a_process_listens_on_is_not_replaced_and_a_remaining_file_is(tmp_path: Path) -> None:
    path = str(tmp_path / "mcp.sock")
    with listening("", 0, path) as [listener]:
        with pytest.raises(AddressError, match=r"mcp\.sock: it is in use by another program$"), listening("", 0, path):
            pass
        connect(path)  # the first one still listens
        listener.close()  # as if its process were killed
        with listening("", 0, path):
            connect(path)
    assert not Path(path).exists()


def test_only_its_own_file_is_removed_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "mcp.sock"
    with listening("", 0, str(path)):
        path.unlink()
        path.write_text("another one's")
    assert path.read_text() == "another one's"


def test_two_processes_that_replace_a_remaining_file_at_once_do_not_replace_each_other(tmp_path: Path) -> None:
    path = str(tmp_path / "mcp.sock")
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as killed:
        killed.bind(path)
    code = (
        "import sys, time\n"
        "from funcmcp._adapters.uvicorn.listeners import AddressError, listening\n"
        "try:\n"
        "    with listening('', 0, sys.argv[1]):\n"
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
    assert sorted(lines) == [*[f"Can't listen on {path}: it is in use by another program\n"] * 3, "listens\n"]


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
        listening("", 0, str(path)),
    ):
        pass
    assert (tmp_path / "file").read_text() == "precious"
