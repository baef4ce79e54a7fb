"""Changes are written file by file in one step, and not at all if one cannot be written."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

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


def test_a_read_only_file_stops_all_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = [change(tmp_path / "a.py"), change(tmp_path / "b.py")]
    access = os.access  # root may write everywhere, so the answer for the file is set here
    monkeypatch.setattr(os, "access", lambda path, mode: path != changes[1].path and access(path, mode))
    with pytest.raises(Failure, match=r"b.py cannot be written. No file has changed."):
        write_changes(changes)
    assert [item.path.read_bytes() for item in changes] == [b"old\n", b"old\n"]
