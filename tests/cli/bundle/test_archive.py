"""Files of bundles: what is packed, the same bytes each time, and archives that try to leave their folder."""

from __future__ import annotations

import os
import stat
import struct
import zipfile
from pathlib import Path

import pytest

from funcmcp_cli.bundle import archive
from funcmcp_cli.bundle.archive import MANIFEST, files_in, read_bundle, unpack, write_bundle
from funcmcp_cli.failure import Failure

SECRET = [".env", ".git/config", "local.settings.json", "server.pem", "id_rsa", "deep/er/.netrc", "tls/site.key"]
SECRET += [
    "SERVER.PEM", "Local.Settings.Json", "prod.env", "env.local", "secrets.yml", "credentials.json", "kubeconfig",
    "client_secret_1.json", "service-account.json", "terraform.tfstate", "prod.tfvars", "id_ecdsa", "store.jks",
    "draft.swp", "server.py~",
]  # fmt: skip
MADE = [
    "__pycache__/a.pyc",
    "dist/a.whl",
    "venv/pyvenv.cfg",
    "venv/lib/a.py",
    "old.mcpb",
    "a.egg-info/x",
    "server.json",
]


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def test_files_that_may_be_secret_or_are_made_from_others_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, "server.py", "env.py", "secrets.py", "data/menu.csv", *SECRET, *MADE, "server.json")
    (tmp_path / "link.txt").symlink_to("/etc/hostname")
    (tmp_path / "link").symlink_to("/etc")
    assert list(files_in(tmp_path, [])) == ["data/menu.csv", "env.py", "secrets.py", "server.py"]


def test_ignore_files_and_the_option_leave_files_out(tmp_path: Path) -> None:
    write(tmp_path, "server.py", "a.txt", "b/c.txt", "notes.md", "big.bin")
    (tmp_path / ".gitignore").write_text("*.bin\n")
    (tmp_path / ".mcpbignore").write_text("b/\n")
    assert list(files_in(tmp_path, ["notes.md"])) == ["a.txt", "server.py"]


def test_the_same_files_give_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "a.py", "b/run.sh")
    (tmp_path / "b/run.sh").chmod(0o755)
    bundles = []
    for number in (1, 2):
        os.utime(tmp_path / "a.py", (number * 10**9, number * 10**9))
        file = tmp_path / f"out{number}" / "a.mcpb"
        write_bundle(file, {"a.py": tmp_path / "a.py", "b/run.sh": tmp_path / "b/run.sh"}, {"manifest.json": "{}"})
        bundles.append(file.read_bytes())
    assert bundles[0] == bundles[1]
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    write_bundle(tmp_path / "c.mcpb", {}, {"manifest.json": "{}"})
    with zipfile.ZipFile(tmp_path / "c.mcpb") as bundle:
        assert bundle.infolist()[0].date_time[:3] == (2023, 11, 14)


def test_a_bundle_is_unpacked_as_it_was_packed(tmp_path: Path) -> None:
    write(tmp_path / "in", "a.py", "b/run.sh")
    (tmp_path / "in/b/run.sh").chmod(0o755)
    write_bundle(tmp_path / "a.mcpb", files_in(tmp_path / "in", []), {"manifest.json": "{}", "a.py": "new"})
    assert read_bundle(tmp_path / "a.mcpb") == (b"{}", ["a.py", "b/run.sh", "manifest.json"])
    write(tmp_path / "out", "earlier.txt")
    unpack(tmp_path / "a.mcpb", tmp_path / "out")
    names = sorted(path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*"))
    assert names == ["a.py", "b", "b/run.sh", "manifest.json"]
    assert (tmp_path / "out/a.py").read_text() == "new"
    assert os.access(tmp_path / "out/b/run.sh", os.X_OK)
    assert not os.access(tmp_path / "out/a.py", os.X_OK)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.mcpb", "in", "out"]


def entry(name: str, mode: int = stat.S_IFREG | 0o644) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo("x")
    info.filename = name
    info.create_system = 3
    info.external_attr = mode << 16
    return info


@pytest.mark.parametrize(
    "name",
    [
        "../evil", "a/../../evil", "/etc/evil", "a\\..\\evil", "C:evil", "a//b", "./a", "nul", "a/com1.txt", "a.",
        "a /b", "manifest.json\x00", "Manifest.json", "",
        pytest.param("a/" * 1500 + "b", id="deep"),
    ],
)  # fmt: skip
def test_an_unsafe_or_a_duplicate_path_is_refused(tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "a.mcpb", "w") as bundle:
        bundle.writestr("manifest.json", "{}")
        bundle.writestr(entry(name), "evil")
    raw = (tmp_path / "a.mcpb").read_bytes()
    if "\x00" in name:  # zipfile cuts names at a NUL when it reads, so the name is there twice
        assert b"\x00" in raw
    with pytest.raises(Failure, match=r"has an unsafe or a duplicate path"):
        unpack(tmp_path / "a.mcpb", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["a.mcpb"]


@pytest.mark.parametrize("mode", [stat.S_IFLNK | 0o777, stat.S_IFIFO | 0o644, stat.S_IFCHR | 0o644])
def test_links_and_devices_are_refused(tmp_path: Path, mode: int) -> None:
    with zipfile.ZipFile(tmp_path / "a.mcpb", "w") as bundle:
        bundle.writestr("manifest.json", "{}")
        bundle.writestr(entry("link", mode), "/etc/passwd")
    with pytest.raises(Failure, match=r"contains a link or a device: 'link'"):
        unpack(tmp_path / "a.mcpb", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_file_and_a_folder_of_one_name_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.mcpb", "w") as bundle:
        bundle.writestr("a", "1")
        bundle.writestr("a/b", "2")
    with pytest.raises(Failure, match=r"can't be unpacked"):
        unpack(tmp_path / "a.mcpb", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_bundle_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_BYTES", 3 * 1024 * 1024)
    with zipfile.ZipFile(tmp_path / "a.mcpb", "w", zipfile.ZIP_DEFLATED) as bundle:
        bundle.writestr("manifest.json", "{}")
        for number in range(4):
            bundle.writestr(f"{number}", bytes(1024 * 1024))
    with pytest.raises(Failure, match=r"unpacks to more than 3 MiB"):
        unpack(tmp_path / "a.mcpb", tmp_path / "out")
    with pytest.raises(Failure, match=r"unpacks to more than 3 MiB"):
        archive.read_bundle(tmp_path / "a.mcpb")
    assert [path.name for path in tmp_path.iterdir()] == ["a.mcpb"]
    monkeypatch.setattr(archive, "MAX_FILES", 3)
    with pytest.raises(Failure, match=r"has more than 3 files"):
        unpack(tmp_path / "a.mcpb", tmp_path / "out")
    with pytest.raises(Failure, match=r"more than 3 files or 1 GiB"):
        write_bundle(tmp_path / "b.mcpb", dict.fromkeys("abcd", tmp_path), {})


def test_a_file_that_is_larger_than_it_says_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_BYTES", 3 * 1024 * 1024)
    size = 4 * 1024 * 1024
    with zipfile.ZipFile(tmp_path / "a.mcpb", "w", zipfile.ZIP_DEFLATED) as bundle:
        bundle.writestr("zeros", bytes(size))
    packed = (tmp_path / "a.mcpb").read_bytes()
    (tmp_path / "a.mcpb").write_bytes(packed.replace(struct.pack("<I", size), struct.pack("<I", 10)))
    with pytest.raises(Failure, match=r"is not a bundle|unpacks to more than 3 MiB"):
        unpack(tmp_path / "a.mcpb", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["a.mcpb"]


def test_what_is_not_a_bundle_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.mcpb").write_text("text")
    with zipfile.ZipFile(tmp_path / "b.mcpb", "w") as bundle:
        bundle.writestr("a", "1")
    with zipfile.ZipFile(tmp_path / "c.mcpb", "w") as bundle:
        bundle.writestr("manifest.json", " " * (1024 * 1024 + 1))
    for name, message in (
        ("a", r"a\.mcpb is not a bundle \(\.mcpb\)"),
        ("b", r"it has no manifest\.json"),
        ("c", r"larger than 1 MiB"),
        ("d", r"d\.mcpb is not a bundle"),
    ):
        with pytest.raises(Failure, match=message):
            read_bundle(tmp_path / f"{name}.mcpb")
    with pytest.raises(Failure, match=r"is not a bundle"):
        unpack(tmp_path / "a.mcpb", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_damaged_or_encrypted_file_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.mcpb", "w") as bundle:
        bundle.writestr("manifest.json", "{" + "1" * 100)
    data = bytearray((tmp_path / "a.mcpb").read_bytes())
    data[60] ^= 1
    (tmp_path / "b.mcpb").write_bytes(data)
    with pytest.raises(Failure, match=r"is not a bundle \(\.mcpb\): Bad CRC"):
        unpack(tmp_path / "b.mcpb", tmp_path / "out")
    place = bytes(data).index(b"PK\x01\x02") + 8
    data[place] |= 1
    (tmp_path / "c.mcpb").write_bytes(data)
    with pytest.raises(Failure, match=r"is encrypted"):
        unpack(tmp_path / "c.mcpb", tmp_path / "out")


@pytest.mark.parametrize("seconds", ["tomorrow", "-1", "4354819199"])
def test_a_date_that_an_archive_cannot_have_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: str
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", seconds)
    with pytest.raises(Failure, match=f"a date until 2107; got '{seconds}'"):
        write_bundle(tmp_path / "a.mcpb", {}, {"a": "b"})
    assert list(tmp_path.iterdir()) == []


def test_the_last_date_of_an_archive_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "4354819198")
    write_bundle(tmp_path / "a.mcpb", {}, {"a": "b"})
    assert zipfile.ZipFile(tmp_path / "a.mcpb").getinfo("a").date_time == (2107, 12, 31, 23, 59, 58)


def test_an_earlier_bundle_stays_if_the_new_one_cannot_be_written(tmp_path: Path) -> None:
    bundle = tmp_path / "a.mcpb"
    bundle.write_bytes(b"earlier")
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(Failure, match="can't be written: Is a directory"):
        write_bundle(bundle, {"x": folder}, {"a": "b"})
    assert bundle.read_bytes() == b"earlier"
    assert set(tmp_path.iterdir()) == {bundle, folder}


def test_an_interrupted_update_leaves_the_earlier_contents_and_removes_old_drafts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, folder = tmp_path / "a.mcpb", tmp_path / "bundles" / "shop"
    write_bundle(file, {}, {MANIFEST: "{}"})
    for name in (".shop-a_345678", ".shop-a_345678-earlier"):  # of processes that were killed
        (folder.parent / name / "inner").mkdir(parents=True)
        os.utime(folder.parent / name, (0, 0))
    for name in (".shop-b_345678", ".shop-two-a_345678"):  # of one that may run, and of another bundle
        (folder.parent / name).mkdir()
    remaining = {".shop-b_345678", ".shop-two-a_345678", "shop"}
    folder.mkdir()
    (folder / "earlier.txt").write_text("earlier")
    rename = Path.rename

    def interrupt(self: Path, target: Path) -> Path:
        if target == folder and self.name.count("-") == 1:
            raise KeyboardInterrupt
        return rename(self, target)

    with monkeypatch.context() as context:
        context.setattr(Path, "rename", interrupt)
        with pytest.raises(KeyboardInterrupt):
            unpack(file, folder)
    assert [path.name for path in folder.iterdir()] == ["earlier.txt"]
    assert {path.name for path in folder.parent.iterdir()} == remaining
    unpack(file, folder)
    assert [path.name for path in folder.iterdir()] == [MANIFEST]
    assert {path.name for path in folder.parent.iterdir()} == remaining


def test_what_no_client_could_unpack_is_not_packed(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for names in (["a:b"], ["con.txt"], ["a\nb"], ["a\udcff"], ["A", "a"], ["Manifest.json"]):
        with pytest.raises(Failure, match=r"A bundle can't have the file"):
            write_bundle(tmp_path / "a.mcpb", dict.fromkeys(names, file), {MANIFEST: "{}"})
    assert list(tmp_path.iterdir()) == [file]
    deep = tmp_path.joinpath(*["a"] * 101)
    deep.mkdir(parents=True)
    with pytest.raises(Failure, match="is too deep"):
        files_in(tmp_path, [])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="FIFOs are of Unix")
def test_a_fifo_is_not_a_bundle(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.mcpb")
    with pytest.raises(Failure, match="not a regular file"):
        read_bundle(tmp_path / "a.mcpb")
