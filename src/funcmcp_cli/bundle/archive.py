"""Bundles (.mcpb): zip files with a server and manifest.json, written from a project and unpacked with limits.

Source: modelcontextprotocol/mcpb, MANIFEST.md. A bundle comes from others: an entry can't leave the folder, be a link,
or take more room than the limits.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import struct
import tempfile
import time
import zipfile
import zlib
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from funcmcp._text.replacing import replacement_of
from funcmcp_cli.doctor.ignore_file import excluding_line
from funcmcp_cli.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MANIFEST = "manifest.json"
MAX_FILES = 50_000
MAX_BYTES = 1024 * 1024 * 1024
"""Bytes of all files of a bundle, unpacked."""

_CHUNK = 1024 * 1024
_EARLIER = "-earlier"
_DRAFT_SECONDS = 3600
_RANDOM = 8
"""Characters that tempfile puts behind a prefix."""
_FIRST_TIME = 315_619_200
"""1980-01-02, the time of files in a bundle if SOURCE_DATE_EPOCH is not set. Zip files have no earlier times."""

_LAST_TIME = 4_354_819_198
"""The end of 2107, the last time of Zip files."""

_LEFT_OUT = (
    ".*", "__pycache__", "node_modules", "build", "dist", "*.egg-info", "*.pyc", "*.mcpb", "*.log", "server.json",
    "*.swp", "*~",
    "local.settings.json", "*.env", "env.local", "env.prod*", "secrets.json", "secrets.toml", "secrets.y*ml",
    "credentials.json", "token.json", "client_secret*.json", "service?account*.json", "kubeconfig", "htpasswd",
    "pip.conf", "pip.ini", "*.tfstate*", "*.tfvars", "*.pem", "*.key", "*.p8", "*.pfx", "*.p12", "*.jks", "*.keystore",
    "*.kdbx", "*.ppk", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*",
)  # fmt: skip
"""Names of files and folders that no bundle gets, in lower case: what is made from others, and what may be secret."""

_UNREADABLE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, ValueError)
"""What zipfile raises for an archive that is damaged."""

_BAD_NAME = re.compile(r'[\x00-\x1f<>:"|?*\\\ud800-\udfff]|[. ](/|$)')
"""Characters that a file on Windows can't have in its name, names that it changes, and bytes that are not UTF-8."""

_MAX_PARTS = 100
"""Folders in each other, and the file. Paths of many more exhaust the stack."""

_DEVICE = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)


def files_in(folder: Path, exclude: Sequence[str]) -> dict[str, Path]:
    """Return the files of a folder that a bundle gets, by their names in it.

    Files are left out that begin with a dot, that are made from others, whose names say that they are secret, that are
    links, and those of .gitignore, .mcpbignore and *exclude*.
    """
    texts = ["\n".join(exclude)]
    for name in (".gitignore", ".mcpbignore"):
        file = folder / name
        if file.is_file():
            texts.append(file.read_text(encoding="utf-8", errors="replace"))
    chosen: dict[str, Path] = {}
    for path in _walk(folder, _MAX_PARTS):
        name = path.relative_to(folder).as_posix()
        if not any(excluding_line(text, name) for text in texts):
            chosen[name] = path
    return dict(sorted(chosen.items()))


def _walk(folder: Path, max_parts: int) -> Iterator[Path]:
    if not max_parts:
        raise Failure(f"{folder} is too deep: a bundle has at most {_MAX_PARTS} folders in each other.")
    for path in sorted(folder.iterdir()):
        if path.is_symlink() or any(fnmatchcase(path.name.lower(), pattern) for pattern in _LEFT_OUT):
            continue
        if path.is_dir() and not (path / "pyvenv.cfg").exists():
            yield from _walk(path, max_parts - 1)
        elif path.is_file():
            yield path


def write_bundle(file: Path, files: Mapping[str, Path], texts: Mapping[str, str]) -> None:
    """Write a bundle. The same files give the same bytes.

    Args:
        file: The bundle.
        files: Files by their names in the bundle.
        texts: Texts by their names in the bundle. One replaces a file of the same name.

    Raises:
        Failure: The bundle would be larger than the limits, or can't be written.
    """
    if len(files) > MAX_FILES or sum(path.stat().st_size for path in files.values()) > MAX_BYTES:
        raise Failure(
            f"The bundle would have more than {MAX_FILES:,} files or 1 GiB. List unneeded files in .mcpbignore."
        )
    names: set[str] = set()
    for name in sorted({*files, *texts}):
        if not _is_safe(name) or name.casefold() in names:
            raise Failure(
                f"A bundle can't have the file {name!r}: not every system can, or it has another file of this name. "
                "Rename it, or list it in .mcpbignore."
            )
        names.add(name.casefold())
    date = time.gmtime(_seconds_of_files())[:6]
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacement_of(file) as draft, zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in sorted({*files, *texts}):
                entry = zipfile.ZipInfo(name, date)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.create_system = 3  # Unix, so that the mode counts on every machine
                is_program = name not in texts and os.access(files[name], os.X_OK)
                entry.external_attr = (stat.S_IFREG | (0o755 if is_program else 0o644)) << 16
                archive.writestr(entry, texts[name].encode() if name in texts else files[name].read_bytes())
    except OSError as error:
        raise Failure(f"{file} can't be written: {error.strerror}.") from error


def _seconds_of_files() -> int:
    """Return the time of all files in a bundle; raise Failure if a ZIP file cannot have SOURCE_DATE_EPOCH."""
    text = os.environ.get("SOURCE_DATE_EPOCH") or "0"
    try:
        seconds = int(text)
    except ValueError:
        seconds = -1
    if not 0 <= seconds <= _LAST_TIME:
        raise Failure(f"SOURCE_DATE_EPOCH must be the seconds of a date until 2107; got {text!r}.")
    return max(seconds, _FIRST_TIME)


def read_bundle(file: Path) -> tuple[bytes, list[str]]:
    """Return the text of a bundle's manifest, and the names of its files.

    Raises:
        Failure: The file is not a bundle, or is larger than the limits.
    """
    try:
        if file.exists() and not file.is_file():  # a FIFO blocks
            raise Failure(f"{file} is not a bundle (.mcpb): it is not a regular file.")
        with zipfile.ZipFile(file) as archive:
            entries = _checked(archive, file)
            if MANIFEST not in entries:
                raise Failure(f"{file} is not a bundle: it has no {MANIFEST}.")
            with archive.open(entries[MANIFEST]) as stream:
                text = stream.read(_CHUNK + 1)
    except (*_UNREADABLE, OSError) as error:
        raise Failure(f"{file} is not a bundle (.mcpb): {error}.") from error
    if len(text) > _CHUNK:
        raise Failure(f"The {MANIFEST} in {file} is larger than 1 MiB, the maximum.")
    return text, list(entries)


def unpack(file: Path, folder: Path) -> None:
    """Unpack a bundle into a folder, which it replaces at once.

    Raises:
        Failure: The file is not a bundle, has an entry that leads elsewhere, or is larger than the limits. The folder
            is unchanged.
    """
    draft: Path | None = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(folder)
        draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        with zipfile.ZipFile(file) as archive:
            room = MAX_BYTES
            for name, entry in _checked(archive, file).items():
                target = draft / name
                target.parent.mkdir(parents=True, exist_ok=True)
                room -= _copy(archive, entry, target, room)
                if room < 0:
                    raise Failure(_too_large(file))
                if entry.create_system == 3 and (entry.external_attr >> 16) & stat.S_IXUSR:  # noqa: PLR2004 - Unix
                    target.chmod(0o755)
        _replace(draft, folder)
    except _UNREADABLE as error:
        raise Failure(f"{file} is not a bundle (.mcpb): {error}.") from error
    except OSError as error:
        raise Failure(f"{file} can't be unpacked to {folder}: {error.strerror or error}.") from error
    finally:
        if draft is not None:
            shutil.rmtree(draft, ignore_errors=True)


def _replace(draft: Path, folder: Path) -> None:
    """Give a draft the name of a folder, whose earlier contents are removed."""
    draft.chmod(0o755)
    earlier = draft.with_name(f"{draft.name}{_EARLIER}")
    try:
        if folder.exists():
            folder.rename(earlier)
        draft.rename(folder)
    except BaseException:  # also at Ctrl+C and SIGTERM
        if earlier.exists() and not folder.exists():
            earlier.rename(folder)
        raise
    shutil.rmtree(earlier, ignore_errors=True)


def _remove_leftovers(folder: Path) -> None:
    """Remove what processes that were killed have left beside a folder. A new draft may be of one that still runs."""
    prefix = f".{folder.name}-"
    for path in folder.parent.iterdir():
        name = path.name.removesuffix(_EARLIER)
        is_draft = name.startswith(prefix) and len(name) == len(prefix) + _RANDOM
        if is_draft and path.lstat().st_mtime < time.time() - _DRAFT_SECONDS:
            shutil.rmtree(path, ignore_errors=True)


def _checked(archive: zipfile.ZipFile, file: Path) -> dict[str, zipfile.ZipInfo]:
    """Return the files of a bundle by their names; raise Failure if one is not allowed."""
    entries: dict[str, zipfile.ZipInfo] = {}
    names: set[str] = set()
    if len(archive.infolist()) > MAX_FILES:
        raise Failure(f"{file} has more than {MAX_FILES:,} files. It is not unpacked.")
    for entry in archive.infolist():
        name = entry.filename
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if name.endswith("/"):  # a folder
            continue
        if kind not in {0, stat.S_IFREG}:
            raise Failure(f"{file} contains a link or a device: {name!r}. It is not unpacked.")
        if entry.flag_bits & 1 or entry.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
            raise Failure(f"{file} is encrypted or uses an unknown compression. It is not unpacked.")
        if not _is_safe(name) or name.casefold() in names:
            raise Failure(f"{file} has an unsafe or a duplicate path: {name!r}. It is not unpacked.")
        names.add(name.casefold())
        entries[name] = entry
    if sum(entry.file_size for entry in entries.values()) > MAX_BYTES:
        raise Failure(_too_large(file))
    return entries


def _too_large(file: Path) -> str:
    return f"{file} unpacks to more than {MAX_BYTES // _CHUNK:,} MiB. It is not unpacked."


def _is_safe(name: str) -> bool:
    """Return whether a name stays in the folder and is one file on every system."""
    parts = PurePosixPath(name).parts
    return (
        0 < len(parts) <= _MAX_PARTS
        and "/".join(parts) == name
        and not name.startswith("/")
        and not _BAD_NAME.search(name)
        and not any(part == ".." or _DEVICE.fullmatch(part) for part in parts)
    )


def _copy(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path, room: int) -> int:
    """Write a file and return its size, which is larger than *room* if there is too little of it.

    What the archive says about the size is not trusted.
    """
    size = 0
    with archive.open(entry) as source, target.open("xb") as stream:
        while size <= room and (chunk := source.read(_CHUNK)):
            size += len(chunk)
            stream.write(chunk)
    return size
