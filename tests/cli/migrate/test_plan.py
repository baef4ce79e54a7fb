"""Changes are written file by file in one step, and not at all if one cannot be written."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("libcst")

from funcmcp_cli.failure import Failure
from funcmcp_cli.migrate.plan import Change, write_changes


def change(path: Path) -> Change:
    path.write_bytes(b"old\n")
    return Change(path, path.name, b"old\n", b"new")


def test_a_patch_has_the_names_of_git(tmp_path: Path) -> None:
    patch = change(tmp_path / "a.py").patch()
    assert patch == "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-old\n+new\n\\ No newline at end of file\n"


def test_files_keep_their_mode(tmp_path: Path) -> None:
    first = change(tmp_path / "a.py")
    first.path.chmod(0o755)
    write_changes([first])
    assert (first.path.read_bytes(), first.path.stat().st_mode & 0o777) == (b"new", 0o755)
    assert [path.name for path in tmp_path.iterdir()] == ["a.py"]


def test_what_a_killed_run_has_left_is_replaced(tmp_path: Path) -> None:
    first = change(tmp_path / "a.py")
    (tmp_path / ".a.py.funcmcp-migrate").write_bytes(b"ne")
    write_changes([first])
    assert first.path.read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["a.py"]


def test_a_read_only_file_stops_all_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = [change(tmp_path / "a.py"), change(tmp_path / "b.py")]
    access = os.access  # root may write everywhere, so the answer for the file is set here
    monkeypatch.setattr(os, "access", lambda path, mode: path != changes[1].path and access(path, mode))
    with pytest.raises(Failure, match=r"b.py cannot be written. No file has changed."):
        write_changes(changes)
    assert [item.path.read_bytes() for item in changes] == [b"old\n", b"old\n"]


@pytest.mark.parametrize("call", ["chmod", "replace"])
def test_a_full_disk_leaves_no_part_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    changes = [change(tmp_path / "a.py"), change(tmp_path / "b.py")]
    original = getattr(type(tmp_path), call)

    def failing(path: Path, *arguments: Any) -> Any:
        if path.name == ".b.py.funcmcp-migrate":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return original(path, *arguments)

    monkeypatch.setattr(type(tmp_path), call, failing)
    outcome = "Only these were written: a.py" if call == "replace" else "No file has changed"
    with pytest.raises(Failure, match=rf"b.py cannot be written: No space left on device\. {outcome}\."):
        write_changes(changes)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "a.py": b"new" if call == "replace" else b"old\n",
        "b.py": b"old\n",
    }


@pytest.mark.parametrize("is_link", [True, False])
def test_a_file_that_was_edited_meanwhile_is_kept(tmp_path: Path, *, is_link: bool) -> None:
    changes = [change(tmp_path / "a.py"), change(tmp_path / "b.py")]
    if is_link:
        changes[1].path.rename(tmp_path / "c.py")
        changes[1].path.symlink_to("c.py")
        changes[1].path.with_name("c.py").write_bytes(b"edited\n")
    else:
        changes[1].path.write_bytes(b"edited\n")
    with pytest.raises(Failure, match=r"b.py has changed since it was read. No file was written"):
        write_changes(changes)
    assert [item.path.read_bytes() for item in changes] == [b"old\n", b"edited\n"]


def test_a_patch_has_the_lines_of_patch_not_of_unicode(tmp_path: Path) -> None:
    before, after = b"a = 1\x0c\nb = '\xe2\x80\xa8'\r\nold\n", b"a = 1\x0c\nb = '\xe2\x80\xa8'\r\nnew\n"
    patch = Change(tmp_path / "a.py", "a.py", before, after).patch()
    assert patch == "--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,3 @@\n a = 1\x0c\n b = '\u2028'\r\n-old\n+new\n"
