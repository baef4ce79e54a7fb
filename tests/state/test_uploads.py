from __future__ import annotations

import asyncio
import errno
import time
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._state.uploads import (
    FileFacts,
    StoredUpload,
    UploadDiskError,
    UploadExistsError,
    UploadFullError,
    Uploads,
    UploadStore,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

TEXT = FileFacts("notes.txt", "text/plain")


class Clock:
    """A clock that a test sets, which begins at the present time: the store compares it with times of files."""

    def __init__(self) -> None:
        self.now = time.time()

    def __call__(self) -> float:
        return self.now


def files_in(folder: Path, pattern: str = "*.*") -> list[Path]:
    return list(folder.rglob(pattern))


async def parts_of(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        await asyncio.sleep(0)
        yield part


async def sent(store: UploadStore, *parts: bytes, caller: str | None = "a", owner: str | None = "o") -> str:
    """Send a file, and return its handle."""
    upload, handle = store.new(caller, owner)
    await store.receive(upload, TEXT, parts_of(*parts), sum(map(len, parts)))
    return handle


async def opened(store: UploadStore, handle: str, owner: str | None = "o") -> StoredUpload:
    stored = await store.get(handle, owner)
    assert stored is not None
    return stored


async def test_a_file_is_found_by_its_handle_and_its_owner(tmp_path: Path) -> None:
    store, other_process = UploadStore(Uploads(folder=tmp_path)), UploadStore(Uploads(folder=tmp_path))
    handle = await sent(store, b"a" * 200_000, b"b" * 200_000)
    for reader in (store, other_process):
        stored = await opened(reader, handle)
        assert (stored.facts, stored.size) == (TEXT, 400_000)
        assert stored.path.read_bytes() == b"a" * 200_000 + b"b" * 200_000
        assert await reader.get(handle, None) is None
        assert await reader.get(handle, "p") is None
    assert handle.partition(".")[2] not in str(files_in(tmp_path))


async def test_an_anonymous_file_is_for_everybody_with_the_handle(tmp_path: Path) -> None:
    store = UploadStore(Uploads(folder=tmp_path))
    handle = await sent(store, b"x", caller=None, owner=None)
    assert (await opened(store, handle, None)).size == 1
    assert await store.get(handle, "o") is None


@pytest.mark.parametrize(
    "handle", ["", "upload:", "upload:a", "upload:a.b", "upload:../a.b", "upload:..%2f.b", "upload:é.b", "a.b"]
)
async def test_other_handles_lead_to_nothing(tmp_path: Path, handle: str) -> None:
    assert await UploadStore(Uploads(folder=tmp_path)).get(handle, None) is None


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"[]",
        b'{"v": 1, "owner": "o"}',
        b'{"owner": "o", "name": 1, "mediaType": "a/b", "size": 1, "expires": 9e12}',
        b'{"owner": "o", "name": "a", "mediaType": "a/b", "size": 1, "expires": "soon"}',
    ],
)
async def test_a_record_that_cannot_be_read_is_no_file(tmp_path: Path, record: bytes) -> None:
    store = UploadStore(Uploads(folder=tmp_path))
    handle = await sent(store, b"x")
    [file] = files_in(tmp_path, "*.json")
    file.write_bytes(record)
    assert await store.get(handle, "o") is None


async def test_a_record_of_a_later_version_has_more_members(tmp_path: Path) -> None:
    store = UploadStore(Uploads(folder=tmp_path))
    handle = await sent(store, b"x")
    [file] = files_in(tmp_path, "*.json")
    file.write_bytes(file.read_bytes().replace(b"{", b'{"later": 1, ', 1))
    assert (await opened(store, handle)).size == 1


async def test_a_file_expires_and_is_removed(tmp_path: Path) -> None:
    clock = Clock()
    store = UploadStore(Uploads(folder=tmp_path, ttl=60, files_per_principal=1), clock)
    handle = await sent(store, b"x")
    clock.now += 59
    assert await store.get(handle, "o") is not None
    with pytest.raises(UploadFullError, match="1 files"):
        await sent(store, b"y")
    clock.now += 2
    assert await store.get(handle, "o") is None
    other = await sent(store, b"y")
    assert await store.get(other, "o") is not None
    assert len(files_in(tmp_path)) == 2


async def test_limits_hold_for_a_caller_and_for_all(tmp_path: Path) -> None:
    store = UploadStore(Uploads(folder=tmp_path, bytes_per_principal=10, total_bytes=15))
    await sent(store, b"12345678")
    with pytest.raises(UploadFullError, match="10 bytes") as caught:
        await sent(store, b"123")
    assert caught.value.is_caller_limit
    with pytest.raises(UploadFullError, match="no room") as caught:
        await sent(store, b"12345678", caller="b")
    assert not caught.value.is_caller_limit
    await sent(store, b"1234567", caller="b")
    store = UploadStore(Uploads(folder=tmp_path / "other", total_files=1))
    await sent(store, b"")
    with pytest.raises(UploadFullError, match="no room"):
        await sent(store, b"", caller="b")


async def test_files_on_their_way_count(tmp_path: Path) -> None:
    store = UploadStore(Uploads(folder=tmp_path, bytes_per_principal=10, file_bytes=8))
    begun, end = asyncio.Event(), asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        begun.set()
        await end.wait()
        yield b"1"

    upload, handle = store.new("a", "o")
    receiving = asyncio.create_task(store.receive(upload, TEXT, slow(), None))
    await begun.wait()
    assert await store.get(handle, "o") is None
    with pytest.raises(UploadFullError):
        await sent(store, b"123")
    with pytest.raises(UploadExistsError):
        await store.receive(upload, TEXT, parts_of(b"1"), 1)
    end.set()
    assert (await receiving).size == 1
    await sent(store, b"123")


async def test_a_file_that_does_not_arrive_leaves_nothing(tmp_path: Path) -> None:
    store = UploadStore(Uploads(folder=tmp_path))

    async def broken() -> AsyncIterator[bytes]:
        yield b"1"
        raise ConnectionError

    upload, handle = store.new("a", "o")
    with pytest.raises(ConnectionError):
        await store.receive(upload, TEXT, broken(), 1)
    assert await store.get(handle, "o") is None
    assert files_in(tmp_path) == []
    await store.receive(upload, TEXT, parts_of(b"1"), 1)
    with pytest.raises(UploadExistsError):
        await store.receive(upload, TEXT, parts_of(b"2"), 1)


async def test_a_part_that_another_process_left_is_removed_after_a_while(tmp_path: Path) -> None:
    clock = Clock()
    store = UploadStore(Uploads(folder=tmp_path, ttl=60), clock)
    (tmp_path / "b").mkdir()
    part = tmp_path / "b" / "left.part"
    part.touch()
    await sent(store, b"x")
    assert part.exists()
    clock.now += 61
    await sent(store, b"x")
    assert not part.exists()


async def test_files_are_removed_when_the_last_one_has_expired(tmp_path: Path) -> None:
    store = UploadStore(Uploads(folder=tmp_path, ttl=0.01))
    for caller in ("a", "b"):
        await sent(store, b"x", caller=caller)
    assert len(files_in(tmp_path)) > 0
    await asyncio.sleep(0.02)
    store._begin_sweep()
    assert store._sweep is not None
    assert await store._sweep == (0, 0, 0, 0)
    assert files_in(tmp_path, "*") == []
    store.close()


async def test_a_folder_that_another_process_removes_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = UploadStore(Uploads(folder=tmp_path))
    touch = type(tmp_path).touch
    removed: list[Path] = []

    def removing(file: Path, mode: int = 0o666, exist_ok: bool = True) -> None:
        if not removed:
            removed.append(file.parent)
            file.parent.rmdir()
        touch(file, mode, exist_ok)

    monkeypatch.setattr("pathlib.Path.touch", removing)
    assert (await opened(store, await sent(store, b"x"))).size == 1


async def test_a_disk_that_fails_is_not_an_unknown_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = UploadStore(Uploads(folder=tmp_path))
    handle = await sent(store, b"x")
    monkeypatch.setattr("pathlib.Path.read_bytes", lambda _: (_ for _ in ()).throw(PermissionError()))
    with pytest.raises(PermissionError):
        await store.get(handle, "o")


async def test_a_full_disk_leaves_nothing_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, data: bytes) -> int:
        path.touch()
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    store = UploadStore(Uploads(folder=tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.write_bytes", full)
        with pytest.raises(UploadDiskError, match="no room for more files"):
            await sent(store, b"x")
    assert files_in(tmp_path) == []
    assert (await opened(store, await sent(store, b"x"))).size == 1


async def test_an_error_of_the_sender_is_not_one_of_the_disk(tmp_path: Path) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"x"
        raise ConnectionResetError

    store = UploadStore(Uploads(folder=tmp_path))
    with pytest.raises(ConnectionResetError):
        await store.receive(store.new("a", "o")[0], TEXT, broken(), None)
    assert files_in(tmp_path) == []


def test_a_temporary_folder_remains_while_another_event_loop_uses_it() -> None:
    store = UploadStore(Uploads())

    async def serve_once() -> None:
        await sent(store, b"x", caller="b")
        store.close()

    async def serve() -> None:
        handle = await sent(store, b"x")
        await asyncio.to_thread(asyncio.run, serve_once())
        stored = await opened(store, handle)
        store.close()
        assert not stored.path.exists()

    asyncio.run(serve())


async def test_a_temporary_folder_ends_with_the_server() -> None:
    store = UploadStore(Uploads())
    assert not store.is_shared
    store.close()
    stored = await opened(store, await sent(store, b"x"))
    store.close()
    assert not stored.path.exists()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"file_bytes": 0}, ValueError),
        ({"ttl": -1.0}, ValueError),
        ({"ttl": float("inf")}, ValueError),
        ({"files_per_principal": "5"}, TypeError),
        ({"files_per_principal": True}, TypeError),
        ({"total_bytes": 1.5}, TypeError),
        ({"folder": 5}, TypeError),
    ],
)
def test_options_are_checked(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        Uploads(**options)
