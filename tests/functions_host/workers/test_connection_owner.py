"""Whose process is at the other end of a connection."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from funcmcp_host.workers.connection_owner import Endpoint, belongs_to_session, has_owners
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the tables are those of Linux"),
    pytest.mark.every_python("Processes, signals and sockets are those of Python and asyncio."),
]

CLIENT, SERVER = Endpoint("127.0.0.1", 50000), Endpoint("127.0.0.1", 8080)
SESSION = 7


def address(text: str) -> str:
    """Return an IPv4 address as the tables have it."""
    return f"{int.from_bytes(socket.inet_aton(text), sys.byteorder):08X}"


MAPPED = f"0000000000000000{int.from_bytes(bytes.fromhex('0000ffff'), sys.byteorder):08X}"


def row(client: str, server: str, user: int, inode: int) -> str:
    return f"   0: {client} {server} 01 00000000:00000000 00:00000000 00000000 {user:5} 0 {inode} 1 0 20 4 30 10 -1"


def tables(proc: Path, rows: list[str], table: str = "tcp") -> None:
    (proc / "net").mkdir()
    (proc / "net" / table).write_text("\n".join(["  sl  local_address rem_address ...", *rows, ""]))


def process(proc: Path, pid: int, session: int, inode: int) -> None:
    (proc / str(pid) / "fd").mkdir(parents=True)
    (proc / str(pid) / "stat").write_text(f"{pid} (a) name) (x) S 1 {session} {session} 0 -1")
    (proc / str(pid) / "fd" / "0").symlink_to("/dev/null")
    (proc / str(pid) / "fd" / "3").symlink_to(f"socket:[{inode}]")


LOOPBACK = address("127.0.0.1")
OURS = row(f"{LOOPBACK}:C350", f"{LOOPBACK}:1F90", os.geteuid(), 11)


@pytest.mark.parametrize(
    ("lines", "session", "inode", "belongs"),
    [
        ([OURS], SESSION, 11, True),
        ([row(f"{LOOPBACK}:0001", f"{LOOPBACK}:1F90", os.geteuid(), 12), OURS], SESSION, 11, True),
        ([row(f"{LOOPBACK}:C350", f"{LOOPBACK}:1F90", os.geteuid() + 1, 11)], SESSION, 11, False),  # another user
        ([OURS], SESSION + 1, 11, False),  # another session
        ([OURS], SESSION, 12, False),  # another socket
        ([row(f"{LOOPBACK}:1F90", f"{LOOPBACK}:C350", os.geteuid(), 11)], SESSION, 11, False),  # the server's own end
        ([], SESSION, 11, False),
    ],
)
def test_the_tables_decide(lines: list[str], session: int, inode: int, belongs: bool, tmp_path: Path) -> None:
    tables(tmp_path, lines)
    process(tmp_path, 6, 1, 99)
    process(tmp_path, 8, session, inode)
    assert belongs_to_session(SESSION, CLIENT, SERVER, tmp_path) is belongs


def test_a_socket_for_both_kinds_of_addresses_is_in_the_other_table(tmp_path: Path) -> None:
    line = row(f"{MAPPED}{LOOPBACK}:C350", f"{MAPPED}{LOOPBACK}:1F90", os.geteuid(), 11)
    tables(tmp_path, [line], "tcp6")
    process(tmp_path, 8, SESSION, 11)
    assert belongs_to_session(SESSION, CLIENT, SERVER, tmp_path)


def test_a_process_that_ends_meanwhile_is_passed_over(tmp_path: Path) -> None:
    tables(tmp_path, [OURS])
    (tmp_path / "5").mkdir()
    process(tmp_path, 8, SESSION, 11)
    assert belongs_to_session(SESSION, CLIENT, SERVER, tmp_path)
    (tmp_path / "8" / "fd" / "0").unlink()
    (tmp_path / "8" / "fd" / "3").unlink()
    (tmp_path / "8" / "fd").rmdir()
    assert not belongs_to_session(SESSION, CLIENT, SERVER, tmp_path)


def test_a_machine_without_the_tables_does_not_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert has_owners()
    assert not has_owners(tmp_path)
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not has_owners()


@contextmanager
def connected(code: str, port: int) -> Iterator[int]:
    """Run a program in a session of its own, which connects to a port; yield its process id."""
    with subprocess.Popen([sys.executable, "-c", code, str(port)], start_new_session=True) as program:
        try:
            yield program.pid
        finally:
            program.kill()


CONNECT = "import socket, sys, time; s = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); time.sleep(60)"
MAPPED_CONNECT = """
import socket, sys, time
s = socket.socket(socket.AF_INET6)
s.connect(("::ffff:127.0.0.1", int(sys.argv[1])))
time.sleep(60)
"""
IN_A_CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {CONNECT!r}, sys.argv[1]])"


@pytest.mark.parametrize("code", [CONNECT, MAPPED_CONNECT, IN_A_CHILD])
def test_the_kernel_tells_it_of_real_connections(code: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as other:
        server.accept()[0].close()
        server.settimeout(PATIENCE)
        with connected(code, server.getsockname()[1]) as pid:
            connection, client = server.accept()
            with connection:
                here = Endpoint(*server.getsockname())
                assert belongs_to_session(pid, Endpoint(*client), here)
                assert not belongs_to_session(os.getsid(0), Endpoint(*client), here)
                assert not belongs_to_session(pid, Endpoint(*other.getsockname()), here)
