"""Files are replaced in one step: after an error the earlier one is unchanged, and nothing lies beside it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from funcmcp._text.replacing import replacement_of

if TYPE_CHECKING:
    from pathlib import Path


def test_a_file_is_replaced_and_keeps_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text("old")
    file.chmod(0o640)
    with replacement_of(file) as draft:
        draft.write_text("new")
        assert file.read_text() == "old"
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("new", 0o640)
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_stays_if_the_new_contents_cannot_be_written(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text("old")
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(OSError, match="directory"), replacement_of(file) as draft:
        draft.write_bytes(folder.read_bytes())
    folder.rmdir()
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    file, link = tmp_path / "a.json", tmp_path / "link.json"
    link.symlink_to(file.name)
    with replacement_of(link) as draft:
        draft.write_text("new")
    assert link.is_symlink()
    assert file.read_text() == "new"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="FIFOs are of Unix")
def test_a_fifo_is_written_itself(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with replacement_of(fifo) as draft:
        assert draft == fifo
    assert fifo.is_fifo()


def test_the_new_contents_of_a_private_file_are_private_from_the_beginning(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    with replacement_of(file, mode=0o600) as draft:
        assert draft.stat().st_mode & 0o777 == 0o600
    with replacement_of(file) as draft:
        draft.write_text("new")
        assert draft.stat().st_mode & 0o777 == 0o600
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("new", 0o600)
