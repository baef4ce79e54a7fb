"""The lock by which processes see that another one has ended."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from funcmcp._state.tasks.process_lock import ProcessLock

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.every_python("Processes, signals and sockets are those of Python and asyncio.")


def test_a_lock_is_held_until_it_is_released(tmp_path: Path) -> None:
    first, second = [ProcessLock(tmp_path / "tasks.db") for _ in range(2)]
    first.hold()
    name = first.name
    first.hold()
    assert first.name == name
    for lock in (first, second):
        assert lock.is_held(name)
    (file,) = tmp_path.iterdir()
    assert (file.name, file.stat().st_mode & 0o777) == (f"tasks.db-worker-{name}", 0o600)
    second.release()
    first.release()
    first.release()
    assert not second.is_held(name)
    assert list(tmp_path.iterdir()) == []


def test_the_file_of_a_process_that_has_ended_is_removed(tmp_path: Path) -> None:
    (tmp_path / "tasks.db-worker-x").touch()
    assert not ProcessLock(tmp_path / "tasks.db").is_held("x")
    assert list(tmp_path.iterdir()) == []


def test_a_forked_process_has_a_lock_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = ProcessLock(tmp_path / "tasks.db")
    lock.hold()
    parent, parents_connection = lock.name, lock._connection
    monkeypatch.setattr(os, "getpid", lambda: 1)
    lock.release()
    assert lock.is_held(parent)
    lock.hold()
    assert lock.name != parent
    lock.release()
    assert ProcessLock(tmp_path / "tasks.db").is_held(parent)
    assert parents_connection is not None
    parents_connection.close()
