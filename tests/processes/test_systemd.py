"""Messages to systemd, which a socket receives in place of it."""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING

import pytest

from funcmcp._processes.systemd import VARIABLE, notify_reload, notify_systemd

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.lowest("uvicorn, httptools, h11 and uvloop read and write HTTP.")


def test_lines_reach_a_socket_at_a_path_or_in_the_abstract_namespace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, address in ((str(tmp_path / "notify"),) * 2, (f"@{tmp_path}", f"\0{tmp_path}")):
        with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as receiver:
            receiver.bind(address)
            monkeypatch.setenv(VARIABLE, name)
            notify_systemd("READY=1", "STATUS=")
            assert receiver.recv(1000) == b"READY=1\nSTATUS="
            notify_reload()
            assert receiver.recv(1000).startswith(b"RELOADING=1\nMONOTONIC_USEC=")


def test_without_a_socket_nothing_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("", "relative", str(tmp_path / "nothing")):
        monkeypatch.setenv(VARIABLE, name)
        notify_systemd("READY=1")
    monkeypatch.delenv(VARIABLE)
    notify_systemd("READY=1")
