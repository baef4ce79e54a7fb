"""The file of orchestrations and entities."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from funcmcp_host.durable.store import Store, StoreError
from tests.functions_host.durable.orchestrations import file_size_limit

if TYPE_CHECKING:
    from pathlib import Path


def test_only_what_was_committed_lasts(tmp_path: Path) -> None:
    file = tmp_path / "new" / "hub.sqlite"
    store = Store(file)
    store.put("instance", "b", {"n": 1})
    store.put("instance", "a", {"n": 2})
    store.put("entity", "a", {"n": 3})
    store.commit()
    store.put("instance", "a", {"n": 4})
    store.delete("instance", "b")
    assert store.get("instance", "a") == {"n": 4}
    store.close()
    store = Store(file)
    assert list(store.all("instance")) == [{"n": 2}, {"n": 1}]
    assert store.get("entity", "a") == {"n": 3}
    assert store.get("entity", "b") is None
    store.close()


def test_one_process_at_a_time_has_the_file(tmp_path: Path) -> None:
    store = Store(tmp_path / "hub.sqlite")
    with pytest.raises(StoreError, match="Stop the other process that serves this app, or choose another folder"):
        Store(tmp_path / "hub.sqlite")
    store.close()
    Store(tmp_path / "hub.sqlite").close()


def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "hub.sqlite"
    Store(file).close()
    Store(file).close()
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA user_version = 2")
    connection.close()
    for _ in range(2):
        with pytest.raises(StoreError, match="was written by a newer version"):
            Store(file)


def test_a_file_that_can_not_be_opened_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"hub\.sqlite of Durable Functions can't be opened"):
        Store(tmp_path / "file" / "hub.sqlite")
    (tmp_path / "hub.sqlite").write_text("no database, but a text that is longer than a header of SQLite" * 20)
    with pytest.raises(StoreError, match="file is not a database"):
        Store(tmp_path / "hub.sqlite")


def test_an_error_of_sqlite_is_named_and_noted(tmp_path: Path) -> None:
    noted: list[StoreError] = []
    store = Store(tmp_path / "hub.sqlite", noted.append)
    store.put("instance", "a", {"n": 1})
    store.commit()
    store.put("instance", "b", {"text": "x" * 1_000_000})
    with file_size_limit(), pytest.raises(StoreError, match=r"hub\.sqlite of Durable Functions can't be used: .*disk"):
        store.commit()
    assert len(noted) == 1
    store.close()
    store = Store(tmp_path / "hub.sqlite")
    assert list(store.all("instance")) == [{"n": 1}]
    store.close()
