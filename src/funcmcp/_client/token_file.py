"""The file with the tokens of a user, which only its owner can read, or nobody without the keyring of the system.

How it works: the file is a JSON object with an entry for each endpoint. It is replaced in one step, so a reader sees
the earlier or the later one. Whoever changes it holds the lock of the file beside it, so that no process loses the
entry of another one, and no two renew one token: many authorization servers take the second use of a refresh token for
a theft, and sign the user out. Another lock, for each endpoint, is held while a user signs in: of several programs that
start at once, one opens the browser. A process that does not get a lock in time goes on without it. A file that can't
be read has no tokens, and one that can't be written is left as it is: the tokens are then in memory.

With a keyring, an entry is encrypted, and the keyring has the key. The keyring itself does not have the tokens, because
some keyrings take no more than 1,280 characters.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import secrets
import sys
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from funcmcp._objects.public_names import public
from funcmcp._state.seal import KEY_BYTES, KeyRing, require_cipher
from funcmcp._text.files import read_bytes
from funcmcp._text.replacing import replacement_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

_logger = logging.getLogger("funcmcp")

_MAX_FILE: Final = 8 * 1024 * 1024
_LOCK_SECONDS: Final = 30.0
_LOCK_PAUSE: Final = 0.02
_WRITE_ATTEMPTS: Final = 50
_BUSY: Final[type[OSError] | tuple[()]] = PermissionError if sys.platform == "win32" else ()
"""The error of a file that another process reads, which Windows does not replace meanwhile."""

_PURPOSE: Final = "client tokens"
_CONCEALED: Final = "concealed"
"""The member of an entry that is encrypted."""

_KEYRING_USER: Final = "key of the tokens"


@public("funcmcp.client")
@dataclass(frozen=True, slots=True)
class KeyringFile:
    """A file for tokens that is encrypted with a key in the keyring of the system, where there is one.

    The keyring is that of the package keyring: macOS Keychain, Windows Credential Locker, Secret Service or KWallet. It
    needs ``pip install "funcmcp[client,keyring]"``. Where there is no keyring, as on most servers, the file is as any
    other file for tokens: only its owner can read it.

    Attributes:
        path: The file.
        service: The name of the entry in the keyring.
    """

    path: Path
    service: str = "funcmcp"


class _Version(NamedTuple):
    """What changes with each version of a file."""

    modified: int
    size: int
    inode: int


class TokenFile:
    """The entries of a file by endpoint.

    Args:
        place: The file.
    """

    def __init__(self, place: Path | KeyringFile) -> None:
        self._path = place.path if isinstance(place, KeyringFile) else place
        self._service = place.service if isinstance(place, KeyringFile) else None
        self._keys: KeyRing | None = None
        self._version: _Version | None = None
        self._entries: dict[str, Any] = {}
        self._has_failed = False

    async def entry(self, url: str) -> Any:
        """Return the entry of an endpoint; None if there is none, or if it can't be read."""
        entries = self._read()
        entry = entries.get(url)
        match entry:
            case {"concealed": str(concealed)}:
                keys = await self._key_ring(is_writing=False)
                revealed = None if keys is None else keys.reveal(_PURPOSE, concealed)
                return None if revealed is None else _decoded(revealed)
        return entry

    async def put(self, url: str, entry: dict[str, Any]) -> None:
        """Store the entry of an endpoint. The caller holds the lock."""
        keys = await self._key_ring(is_writing=True)
        stored = entry if keys is None else {_CONCEALED: keys.conceal(_PURPOSE, json.dumps(entry).encode())}
        for attempt in range(_WRITE_ATTEMPTS):
            try:
                self._write({**self._read(), url: stored})
                return
            except OSError as error:
                if not isinstance(error, _BUSY) or attempt == _WRITE_ATTEMPTS - 1:
                    self._log_failure(error)
                    return
            await asyncio.sleep(_LOCK_PAUSE)

    def locked(self) -> AbstractAsyncContextManager[None]:
        """Hold the lock of the file, as soon as no other process does."""
        return self._locked("", _LOCK_SECONDS)

    def signing_in(self, url: str, seconds: float) -> AbstractAsyncContextManager[None]:
        """Hold the lock for the sign-in at an endpoint, so that its user sees one page, however many programs wait.

        Args:
            url: The endpoint.
            seconds: How long to wait for the sign-in of another process.
        """
        return self._locked(f".{hashlib.sha256(url.encode()).hexdigest()[:16]}", seconds)

    @asynccontextmanager
    async def _locked(self, purpose: str, seconds: float) -> AsyncIterator[None]:
        descriptor = await self._lock(purpose, seconds)
        try:
            yield
        finally:
            if descriptor is not None:
                os.close(descriptor)  # which ends the lock

    async def _lock(self, purpose: str, seconds: float) -> int | None:
        """Return the descriptor of the locked file; None if that is not possible."""
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(
                self._path.with_name(f"{self._path.name}{purpose}.lock"), os.O_RDWR | os.O_CREAT, 0o600
            )
        except OSError as error:
            self._log_failure(error)
            return None
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not _try_lock(descriptor):  # noqa: ASYNC110 - the event is in another process
                    await asyncio.sleep(_LOCK_PAUSE)
        return descriptor

    def _read(self) -> dict[str, Any]:
        """Return the entries, read anew if the file has changed. Empty if there is no file, or something else in it."""
        try:
            status = self._path.stat()
            version = _Version(status.st_mtime_ns, status.st_size, status.st_ino)
            if version != self._version:
                entries = json.loads(read_bytes(self._path, _MAX_FILE))
                self._entries = entries if isinstance(entries, dict) else {}
                self._version = version
        except (OSError, ValueError, RecursionError):
            self._version, self._entries = None, {}
        return self._entries

    def _write(self, entries: dict[str, Any]) -> None:
        """Write the file in one step."""
        with replacement_of(self._path, mode=0o600) as draft:
            draft.write_text(json.dumps(entries, indent=1), encoding="utf-8")
        self._version = None

    async def _key_ring(self, *, is_writing: bool) -> KeyRing | None:
        """Return the key in the keyring, a new one if the file is written for the first time; None without keyring."""
        if self._service is not None and self._keys is None:
            key = await asyncio.to_thread(_key_in_keyring, self._service, is_writing=is_writing)
            self._keys = None if key is None else KeyRing([key])
            if key is None and is_writing:
                self._service = None  # there is no keyring
        return self._keys

    def _log_failure(self, error: OSError) -> None:
        if not self._has_failed:
            self._has_failed = True
            _logger.warning(
                "event=token_file_failed file=%s reason=%s: the tokens are in memory only.", self._path, error.strerror
            )


def _key_in_keyring(service: str, *, is_writing: bool) -> bytes | None:
    """Return the key of a service; None if there is no keyring, or no key and none is needed yet."""
    try:
        import keyring  # noqa: PLC0415 - an optional package, which opens a connection to the keyring of the system
        from keyring.errors import KeyringError  # noqa: PLC0415 - as above

        require_cipher("KeyringFile")
    except ModuleNotFoundError as error:
        _logger.info("event=no_keyring reason=%r: tokens are in a file that only its owner can read.", str(error))
        return None
    try:
        text = keyring.get_password(service, _KEYRING_USER)
        if text is None and is_writing:
            text = secrets.token_hex(KEY_BYTES)
            keyring.set_password(service, _KEYRING_USER, text)
        return None if text is None else bytes.fromhex(text)
    except (KeyringError, OSError, RuntimeError, ValueError) as error:
        _logger.info("event=no_keyring reason=%r: tokens are in a file that only its owner can read.", str(error))
        return None


if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        """Lock a file; return False if another process has locked it."""
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        """Lock a file; return False if another process, or another client of this one, has locked it."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks
            return True
        return True


def _decoded(payload: bytes) -> Any:
    try:
        return json.loads(payload)
    except ValueError:
        return None
