"""Files that a result is saved in: a server chooses names and bytes, but no place."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from funcmcp_cli.failure import Failure
from funcmcp_cli.saving import save_block


def resource(uri: str, **members: Any) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "blob": "MTIz", **members}}


@pytest.mark.parametrize(
    ("uri", "members", "name"),
    [
        ("file:///srv/ann/report.pdf", {}, "report.pdf"),
        ("orders://17", {"mimeType": "application/json"}, "17.json"),
        ("orders://17/lines/3", {"mimeType": "text/csv; charset=utf-8"}, "3.csv"),
        ("x://a/..", {}, "file"),
        ("x://a/%2e%2e%2fsecret", {}, "secret"),
        ("x://a/..%2f..%2fetc%2fpasswd", {}, "passwd"),
        ("x://a/b%00c%0ad%1b.txt", {}, "b_c_d_.txt"),
        ("x://a/.bashrc", {}, "bashrc"),
        ("x://a/con.txt", {}, "_con.txt"),
        ("x://a/" + "y" * 300, {}, "y" * 100),
        ("x://[", {}, "file"),
        ("", {}, "file"),
        ("x://a/ü", {}, "_"),
    ],
)
def test_a_file_has_a_harmless_name(tmp_path: Path, uri: str, members: dict[str, Any], name: str) -> None:
    file = save_block(resource(uri, **members), tmp_path / "new" / "folder")
    assert file == tmp_path / "new" / "folder" / name
    assert file.read_bytes() == b"123"


def test_no_file_is_replaced_and_no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("mine")
    (tmp_path / "a-2.txt").symlink_to(tmp_path / "elsewhere")
    assert save_block(resource("x://y/a.txt"), tmp_path) == tmp_path / "a-3.txt"
    assert (tmp_path / "a.txt").read_text() == "mine"
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    ("block", "name"),
    [
        ({"type": "image", "data": "MTIz", "mimeType": "image/png"}, "image.png"),
        ({"type": "audio", "data": "MTIz", "mimeType": "audio/mpeg"}, "audio.mp3"),
        ({"type": "image", "data": "MTIz", "mimeType": 7}, "image"),
        (resource("x://y/a", text="123", blob=None), "a"),
    ],
)
def test_images_sounds_and_texts_are_files(tmp_path: Path, block: dict[str, Any], name: str) -> None:
    assert save_block(block, tmp_path) == tmp_path / name
    assert (tmp_path / name).read_bytes() == b"123"


@pytest.mark.parametrize("block", [{"type": "text", "text": "a"}, {"type": "resource_link", "uri": "a://b"}, {}])
def test_other_blocks_are_no_files(tmp_path: Path, block: dict[str, Any]) -> None:
    assert save_block(block, tmp_path) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("data", ["?", 7, None, "ü"])
def test_what_is_not_base64_is_one_clear_line(tmp_path: Path, data: object) -> None:
    with pytest.raises(Failure, match=r"^The image cannot be read: it is neither text nor valid base64\.$"):
        save_block({"type": "image", "data": data}, tmp_path)


def test_a_file_that_is_not_written_whole_is_removed(tmp_path: Path) -> None:
    resource_limits = pytest.importorskip("resource")
    before = resource_limits.getrlimit(resource_limits.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource_limits.setrlimit(resource_limits.RLIMIT_FSIZE, (1, before[1]))
    try:
        with pytest.raises(Failure, match="cannot be written: File too large"):
            save_block(resource("x://y/a.txt"), tmp_path)
    finally:
        resource_limits.setrlimit(resource_limits.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert list(tmp_path.iterdir()) == []


def test_a_command_that_is_interrupted_leaves_no_half_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(self: Path, _: bytes) -> None:
        self.write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_bytes", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save_block(resource("x://a/b.txt"), tmp_path)
    assert list(tmp_path.iterdir()) == []
