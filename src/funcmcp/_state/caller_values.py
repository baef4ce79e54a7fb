"""Values that a server stores for its callers across calls: encrypted, bounded for each caller, and changed safely.

How it works: an owner has one record. It lists the names of the owner's values, with the size and the end of each. A
small value is in the record itself, a larger one is under a key of its own, which is used once: a write stores the new
content under a new key, and then changes the record. So the record alone decides what a name means, and a reader never
sees half of a change. A write whose record was changed by another one in the meantime reads it again. Content that no
record names any more, because a process has died between the two writes, expires by itself.

A record has the marks of its last writes. If the reply to a write is lost, the write is sent again, and if another one
has changed the record since, its mark says whether it had happened. So a change is never made twice.

The record also bounds the owner. Owners without a principal, such as anonymous sessions, are free to make. So they
count for the address that they come from: a *ledger* for each address has the bytes and the end of each of its owners.

Keys are digests of the server's name, the kind of the record and the owner. Values are encrypted for their key with the
keys of the server, unless the store is the memory of this process.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import json
import os
import random
from contextlib import suppress
from dataclasses import dataclass, field, replace
from time import time
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._state.key_values import STATE, MemoryKeyValues, StateFullError
from funcmcp._state.line_limit import LineLimit
from funcmcp._state.records import to_record, value_of
from funcmcp._state.sessions.store import StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._state.key_values import SignInStore
    from funcmcp._state.records import Extra
    from funcmcp._state.seal import KeyRing

MAX_NAME_BYTES = 256
"""Bytes of the name of a value, in UTF-8."""

MAX_SECONDS = 90 * 86_400
"""Maximum number of seconds until a value ends."""

INLINE_BYTES = 1024
"""Bytes of a value that is stored in the record of its owner."""

_MAX_CONFLICTS = 100
_LONGEST_PAUSE = 0.05
_WRITE_PAUSES = (0.1, 0.4)
"""Seconds between attempts to make a write whose outcome is unknown."""

_MAX_WRITES = 16
"""Last writes of a record whose marks it has."""

_MARGIN_SECONDS = 60.0
"""Seconds for which content stays longer than its record says, because clocks of processes differ."""

_CHARGE_BYTES, _CHARGE_SECONDS = 1024, 3600
"""Steps of what the ledger of an address says of an owner, so that it does not change with every write."""

_TOKEN_BYTES = 16


class ValueCipher:
    """Makes texts of values for a store, each bound to its key. No two of them are equal.

    Args:
        store: The store. In the memory of this process, values are not encrypted.
        keys: The keys of the server.
    """

    def __init__(self, store: SignInStore, keys: KeyRing) -> None:
        self.is_plain = isinstance(store, MemoryKeyValues)
        self._keys = keys

    def conceal(self, key: str, payload: bytes) -> str:
        """Return the text for a value under a key."""
        if self.is_plain:
            return os.urandom(_TOKEN_BYTES).hex() + payload.decode("latin-1")
        return self._keys.conceal(f"state {key}", payload)

    def reveal(self, key: str, stored: str) -> bytes | None:
        """Return the value in a text under a key; None if it was not made for this key with these keys."""
        if self.is_plain:
            return stored[2 * _TOKEN_BYTES :].encode("latin-1")
        return self._keys.reveal(f"state {key}", stored)


class ValueOwner(NamedTuple):
    """Whose values are meant.

    Attributes:
        mark: The mark of a principal, or another text that no other caller has, such as the id of a session.
        address: The mark of the address from which an owner without a principal comes. Its values count for the
            address. None for a principal, and for an owner that the server trusts.
    """

    mark: str
    address: str | None = None


@dataclass(frozen=True, slots=True)
class _Record:
    """What is stored about an owner, or about an address.

    Attributes:
        key: The key in the store.
        stored: The value in the store; None if there is none.
        entries: The values of an owner by name, or the owners of an address by mark, without those that have ended.
        address: The address for which the values of an owner count; None for none.
        writes: The marks of the last writes.
        extra: Members that this version does not know.
    """

    key: str
    stored: str | None
    entries: dict[str, dict[str, Any]]
    address: str | None = None
    writes: list[str] = field(default_factory=list)
    extra: Extra = field(default_factory=dict)


class CallerValues:
    """The values of all callers of a server. Each async method may raise StoreUnavailableError.

    Args:
        store: The store.
        keys: The keys of the server.
        server: The name of the server. Servers with the same name, keys and store have the same values.
        owner_bytes: Maximum number of bytes of the values of an owner, or of all owners of an address.
        owner_values: Maximum number of values of an owner, and of owners of an address.
        clock: Returns seconds since 1970.

    Attributes:
        store: The store.
    """

    def __init__(
        self,
        store: SignInStore,
        keys: KeyRing,
        server: str,
        *,
        owner_bytes: int,
        owner_values: int,
        clock: Callable[[], float] = time,
    ) -> None:
        self.store = store
        self._cipher = ValueCipher(store, keys)
        self._server = server
        self._owner_bytes = owner_bytes
        self._owner_values = owner_values
        self._clock = clock
        self._unreadable = LineLimit()

    async def get(self, owner: ValueOwner, name: str) -> bytes | None:
        """Return a value; None if there is none, or if it has ended."""
        return (await self._find(owner, name))[1]

    async def put(self, owner: ValueOwner, name: str, value: bytes, seconds: float) -> None:
        """Store a value in place of an earlier one.

        Args:
            owner: Whose value it is.
            name: The name, of at most 256 bytes.
            value: The value.
            seconds: Seconds until it ends.

        Raises:
            StateFullError: The owner or the store has no room for it. Nothing has changed.
            ValueError: The name is too long, or the time is not between 0 and 90 days.
        """
        for attempt in range(_MAX_CONFLICTS):
            record = await self._read(owner)
            if await self._exchange(owner, record, name, value, seconds):
                return
            await _pause(attempt)
        raise StoreUnavailableError(store=STATE.store)

    async def change(
        self, owner: ValueOwner, name: str, function: Callable[[bytes | None], bytes | None], seconds: float
    ) -> bytes | None:
        """Change a value without losing the changes of others; return the new value.

        Args:
            owner: Whose value it is.
            name: The name.
            function: Takes the value, or None if there is none, and returns the new one, or None to remove it. It is
                called again if the value was changed in the meantime, so it must have no other effect.
            seconds: Seconds until the new value ends.

        Raises:
            StateFullError: As in `put`.
            ValueError: As in `put`.
        """
        for attempt in range(_MAX_CONFLICTS):
            record, value = await self._find(owner, name)
            changed = function(value)
            if await self._exchange(owner, record, name, changed, seconds):
                return changed
            await _pause(attempt)
        raise StoreUnavailableError(store=STATE.store)

    async def remove(self, owner: ValueOwner, name: str) -> bool:
        """Remove a value; return whether there was one."""
        for attempt in range(_MAX_CONFLICTS):
            record = await self._read(owner)
            if name not in record.entries:
                return False
            if await self._exchange(owner, record, name, None, 0):
                return True
            await _pause(attempt)
        raise StoreUnavailableError(store=STATE.store)

    async def names(self, owner: ValueOwner) -> list[str]:
        """Return the names of an owner's values, in the order of the alphabet."""
        return sorted((await self._read(owner)).entries)

    async def aclose(self) -> None:
        """Close the store's connections of the running event loop."""
        await self.store.aclose()

    async def _find(self, owner: ValueOwner, name: str) -> tuple[_Record, bytes | None]:
        """Return the record of an owner, and a value of it."""
        record = await self._read(owner)
        while True:
            entry = record.entries.get(name)
            if entry is None:
                return record, None
            content = await self._content(entry)
            if content is not None:
                return record, content
            current = await self._read(owner)
            if current.stored == record.stored:  # the store has lost the content
                return record, None
            record = current

    async def _content(self, entry: dict[str, Any]) -> bytes | None:
        """Return the content of a value; None if it is gone."""
        match entry:
            case {"at": str(key)}:
                stored = await self.store.get(key)
                return None if stored is None else self._cipher.reveal(key, stored)
            case {"data": str(text)}:
                with suppress(binascii.Error, ValueError):
                    return base64.b64decode(text, validate=True)
        return None

    async def _exchange(
        self, owner: ValueOwner, record: _Record, name: str, value: bytes | None, seconds: float
    ) -> bool:
        """Store a value, or remove it, unless the owner's record has changed; return whether it is stored."""
        entries, replaced = dict(record.entries), record.entries.get(name)
        entries.pop(name, None)
        key = None
        if value is not None:
            _check(name, seconds)
            key = None if len(value) <= INLINE_BYTES else _digest(self._server, "content", os.urandom(32).hex())
            entries[name] = self._entry(replaced or {}, key, value, self._clock() + seconds)
            self._check_share(name, entries)
        if entries == record.entries:
            return True
        changed = replace(record, entries=entries, address=record.address or owner.address)
        await self._charge(owner, record, changed, is_growth=True)
        if key is not None and value is not None:
            await self._store_content(key, value, seconds + _MARGIN_SECONDS)
        if not await self._store(changed):
            await self._discard(key)
            return False
        await self._discard(None if replaced is None else replaced.get("at"))
        await self._charge(owner, record, changed, is_growth=False)
        return True

    def _entry(self, replaced: dict[str, Any], key: str | None, value: bytes, expires: float) -> dict[str, Any]:
        """Return what the record of an owner says of a value; members that this version does not know are kept."""
        entry = {member: replaced[member] for member in replaced if member not in {"at", "data"}}
        entry |= {"bytes": len(value), "expires": round(expires, 3)}
        return entry | ({"data": base64.b64encode(value).decode()} if key is None else {"at": key})

    def _check_share(self, name: str, entries: dict[str, dict[str, Any]]) -> None:
        """Raise StateFullError if the values of an owner exceed its share."""
        if len(entries) > self._owner_values:
            raise StateFullError(
                f"The value {name!r} can't be stored: this caller has {self._owner_values} values already. Delete "
                "values that are not needed, or store several together. The operator can raise "
                "Limits(state_values_per_principal=).",
                is_owner_limit=True,
            )
        size = _bytes_of(entries)
        if size > self._owner_bytes:
            raise StateFullError(
                f"The value {name!r} can't be stored: the values of this caller would have {size:,} bytes, of "
                f"{self._owner_bytes:,} at most. Delete values that are not needed, or store less. The operator can "
                "raise Limits(state_bytes_per_principal=).",
                is_owner_limit=True,
            )

    async def _charge(self, owner: ValueOwner, before: _Record, after: _Record, *, is_growth: bool) -> None:
        """Write what an owner without a principal stores into the ledger of its address.

        More is written before it is stored, and less after it has been removed.
        """
        if after.address is None:
            return
        charge, earlier = _charge_of(after), _charge_of(before)
        grows = charge["bytes"] > earlier["bytes"] or charge["expires"] > earlier["expires"]
        if charge == earlier or grows != is_growth:
            return
        key, mark = self._key("address", after.address), _digest(owner.mark)[:32]
        for attempt in range(_MAX_CONFLICTS):
            ledger = await self._read_record(key)
            owners = dict(ledger.entries)
            owners.pop(mark, None)
            if charge["bytes"]:
                owners[mark] = charge
            if is_growth:
                self._check_address(owners)
            if await self._store(replace(ledger, entries=owners)):
                return
            await _pause(attempt)
        raise StoreUnavailableError(store=STATE.store)

    def _check_address(self, owners: dict[str, dict[str, Any]]) -> None:
        """Raise StateFullError if the anonymous callers of an address exceed their share."""
        if len(owners) > self._owner_values or _bytes_of(owners) > self._owner_bytes:
            raise StateFullError(
                "The state of the anonymous callers from this address is full. Delete values that are not needed, or "
                "sign in. The operator can raise Limits(state_bytes_per_principal=, state_values_per_principal=).",
                is_owner_limit=True,
            )

    async def _read(self, owner: ValueOwner) -> _Record:
        return await self._read_record(self._key("owner", owner.mark))

    async def _read_record(self, key: str) -> _Record:
        """Return the record with a key, without the entries that have ended."""
        stored = await self.store.get(key)
        if stored is None:
            return _Record(key, None, {})
        value = value_of(self._cipher.reveal(key, stored))
        if not isinstance(value, dict) or value.get("v") != 1 or not isinstance(value.get("entries"), dict):
            self._unreadable.write(
                "event=state_unreadable: a newer version of the server, or a server with other keys, has written the "
                "state of a caller, or it is damaged. The caller has no state now."
            )
            return _Record(key, stored, {})
        now = self._clock()
        entries = {name: entry for name, entry in value.pop("entries").items() if _lasts(entry, now)}
        address, writes = value.pop("address", None), value.pop("writes", [])
        del value["v"]
        return _Record(
            key,
            stored,
            entries,
            address if isinstance(address, str) else None,
            writes if isinstance(writes, list) else [],
            value,
        )

    async def _store(self, record: _Record) -> bool:
        """Write a record in place of the one that was read; return False if another one has been written."""
        mark, now = os.urandom(6).hex(), self._clock()
        members = {"entries": record.entries, "writes": [*record.writes, mark][-_MAX_WRITES:]}
        if record.address is not None:
            members["address"] = record.address
        text = self._cipher.conceal(record.key, to_record(members, record.extra))
        ends = max((entry["expires"] for entry in record.entries.values()), default=now)
        seconds = max(0.0, ends - now) + _MARGIN_SECONDS
        try:
            return await self._replace(record, text, seconds)
        except StoreUnavailableError as error:
            return await self._store_again(record, text, seconds, is_unknown=not error.nothing_written, mark=mark)

    async def _store_again(self, record: _Record, text: str, seconds: float, *, is_unknown: bool, mark: str) -> bool:
        """Repeat a write of a record; return whether it has happened, this time or before."""
        for pause in _WRITE_PAUSES:
            await asyncio.sleep(pause)
            with suppress(StoreUnavailableError):
                if await self._replace(record, text, seconds):
                    return True
                return is_unknown and mark in (await self._read_record(record.key)).writes
        raise StoreUnavailableError(store=STATE.store)

    async def _replace(self, record: _Record, text: str, seconds: float) -> bool:
        if record.stored is None:
            return await self.store.take(record.key, text, seconds)
        return await self.store.replace(record.key, record.stored, text, seconds)

    async def _store_content(self, key: str, content: bytes, seconds: float) -> None:
        """Store content under a new key. It may be written twice."""
        text = self._cipher.conceal(key, content)
        for pause in _WRITE_PAUSES:
            with suppress(StoreUnavailableError):
                await self.store.take(key, text, seconds)
                return
            await asyncio.sleep(pause)
        await self.store.take(key, text, seconds)

    async def _discard(self, key: object) -> None:
        """Remove content that no record names; otherwise it expires."""
        if isinstance(key, str):
            with suppress(StoreUnavailableError):
                await self.store.remove(key)

    def _key(self, kind: str, mark: str) -> str:
        return _digest(self._server, kind, mark)


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _check(name: str, seconds: float) -> None:
    """Raise ValueError for a name or a time that can't be stored."""
    if not name or len(name.encode("utf-8", "surrogatepass")) > MAX_NAME_BYTES:
        raise ValueError(f"The name of a value must have 1 to {MAX_NAME_BYTES} bytes; got {name[:40]!r}.")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= MAX_SECONDS:
        raise ValueError(f"ttl must be a number above 0, and at most {MAX_SECONDS:,} seconds; got {seconds!r:.60}.")


def _lasts(entry: object, now: float) -> bool:
    """Return whether an entry of a record can be read, and has not ended."""
    match entry:
        case {"bytes": int(), "expires": int() | float() as expires}:
            return expires > now
    return False


def _bytes_of(entries: dict[str, dict[str, Any]]) -> int:
    """Return the bytes of values, with those of their names."""
    size: int = sum(entry["bytes"] + len(name) for name, entry in entries.items())
    return size


def _charge_of(record: _Record) -> dict[str, int]:
    """Return what the ledger of an address says of the record of an owner."""
    expires = max((entry["expires"] for entry in record.entries.values()), default=0)
    steps = -(-_bytes_of(record.entries) // _CHARGE_BYTES), -(-expires // _CHARGE_SECONDS)
    return {"bytes": steps[0] * _CHARGE_BYTES, "expires": int(steps[1]) * _CHARGE_SECONDS}


async def _pause(attempt: int) -> None:
    """Wait a moment, so that writers of the same record do not meet again."""
    await asyncio.sleep(random.uniform(0, min(0.002 * attempt, _LONGEST_PAUSE)))  # noqa: S311 - not a secret
