"""Blobs in a folder: no path leads out of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from funcmcp._authoring.calling.threads import Threads
from funcmcp_host.blobs import BlobError, FolderBlobs

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_blob_is_written_and_read(tmp_path: Path) -> None:
    blobs = FolderBlobs(tmp_path / "store", Threads())
    assert await blobs.read("box/a/b.txt") is None
    await blobs.write("box/a/b.txt", b"1")
    await blobs.write("/box/a/b.txt", b"22")
    assert await blobs.read("box/a/b.txt") == b"22"
    assert [path.name for path in (tmp_path / "store" / "box" / "a").iterdir()] == ["b.txt"]
    assert await blobs.read("box/a") is None
    assert await blobs.read("box/a/b.txt/c") is None


@pytest.mark.parametrize(
    "path",
    [
        "box",
        "box/",
        "",
        "../x/y",
        "box/../../y",
        "box/a/../b",
        "box/./b",
        "box//b",
        "box/a\\b",
        "box/a\0b",
        "./box/b",
        "box/\ud800",
    ],
)
async def test_a_path_that_is_not_a_name_in_a_container_is_refused(path: str, tmp_path: Path) -> None:
    blobs = FolderBlobs(tmp_path / "store", Threads())
    (tmp_path / "y").write_bytes(b"secret")
    with pytest.raises(BlobError):
        await blobs.read(path)
    with pytest.raises(BlobError):
        await blobs.write(path, b"x")


async def test_links_are_not_followed(tmp_path: Path) -> None:
    store = tmp_path / "store"
    (store / "box").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(b"secret")
    (store / "box" / "out").symlink_to(tmp_path / "outside")
    (store / "box" / "file").symlink_to(tmp_path / "outside" / "secret")
    blobs = FolderBlobs(store, Threads())
    for path in ("box/out/secret", "box/file"):
        with pytest.raises(BlobError):
            await blobs.read(path)
        with pytest.raises(BlobError):
            await blobs.write(path, b"x")


async def test_a_blob_whose_name_continues_that_of_another_is_an_error(tmp_path: Path) -> None:
    blobs = FolderBlobs(tmp_path, Threads())
    await blobs.write("box/a", b"1")
    await blobs.write("box/b/c", b"1")
    with pytest.raises(BlobError, match="can't be a file"):
        await blobs.write("box/a/b", b"2")
    with pytest.raises(BlobError, match="can't be a file"):
        await blobs.write("box/b", b"2")


@pytest.mark.parametrize("name", ["a" * 300, "\u00e4" * 200, "a/" * 3000 + "a"])
async def test_a_name_that_is_too_long_for_a_file_is_an_error(name: str, tmp_path: Path) -> None:
    blobs = FolderBlobs(tmp_path, Threads())
    await blobs.write("box/other", b"x")
    with pytest.raises(BlobError, match=r"can't be read: File name too long\.$") as error:
        await blobs.read(f"box/{name}")
    assert len(str(error.value)) < 200
    with pytest.raises(BlobError, match=r"can't be written: File name too long\.$"):
        await blobs.write(f"box/{name}", b"x")


async def test_a_write_that_fails_leaves_no_file(tmp_path: Path) -> None:
    blobs = FolderBlobs(tmp_path, Threads())
    (tmp_path / "box" / "a").mkdir(parents=True)
    with pytest.raises(BlobError):
        await blobs.write("box/a", b"x")
    assert [path.name for path in (tmp_path / "box").iterdir()] == ["a"]
