"""Files that users name: what is not a regular file of a bounded size is an error at once."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from funcmcp._text import files as text_files
from funcmcp._text.files import read_text
from tests.cli.forking import funcmcp

if TYPE_CHECKING:
    from pathlib import Path


def test_a_text_is_read_without_its_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text("\ufeff{}", encoding="utf-8")
    assert read_text(file) == "{}"


def test_a_fifo_a_loop_of_links_and_a_folder_are_errors(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "folder").mkdir()
    for name in ("fifo", "loop", "folder"):
        with pytest.raises(OSError, match=r"not a regular file|symbolic links|directory"):
            read_text(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        read_text(tmp_path / "missing")


def test_a_file_that_is_too_large_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "MAX_BYTES", 4)
    (tmp_path / "large").write_text("12345")
    with pytest.raises(OSError, match="larger than"):
        read_text(tmp_path / "large")


@pytest.mark.parametrize("kind", ["FIFO", "loop", "folder"])
def test_doctor_says_what_is_wrong_with_host_json(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "host.json"
    if kind == "FIFO":
        os.mkfifo(file)
    elif kind == "loop":
        file.symlink_to("host.json")
    else:
        file.mkdir()
    result = funcmcp("doctor", str(tmp_path))
    assert result.returncode == 1
    assert "host.json: cannot be read: " in result.stdout
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("depth", [900, 100_000])
def test_diff_reads_deep_files(depth: int, tmp_path: Path) -> None:
    file = tmp_path / "deep.json"
    file.write_text('{"tools": [{"name": "a", "inputSchema": ' + '{"a":' * depth + "1" + "}" * depth + "}]}")
    result = funcmcp("diff", str(file), str(file))
    assert "Traceback" not in result.stderr
    assert ("nested too deeply" in result.stderr) == (depth > 1000)


@pytest.mark.parametrize(
    ("name", "text"),
    [("pyproject.toml", "a = " + "[" * 5000), ("requirements.txt", "-r r0.txt"), ("host.json", None)],
)
def test_doctor_has_no_traceback_for_hostile_files(name: str, text: str | None, tmp_path: Path) -> None:
    (tmp_path / "function_app.py").write_text("import azure.functions as func\napp = func.FunctionApp()\n")
    (tmp_path / "host.json").write_text('{"version": "2.0"}')
    if text is None:
        text = '{"version": "2.0", "customHandler": {"description": {"arguments": 5}}}'
    (tmp_path / name).write_text(text)
    if name == "requirements.txt":
        for number in range(1500):
            (tmp_path / f"r{number}.txt").write_text(f"-r r{number + 1}.txt")
        (tmp_path / "r1500.txt").touch()
    result = funcmcp("doctor", str(tmp_path))
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert name == "host.json" or f"{name} cannot be read: it is nested too deeply." in result.stderr
