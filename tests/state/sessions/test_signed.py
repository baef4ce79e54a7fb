"""Sessions that live in their ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._state.seal import KeyRing
from funcmcp._state.sessions.signed import SignedSessions
from funcmcp._state.sessions.store import Handshake

if TYPE_CHECKING:
    from tests.clock import Clock

LIFETIME = 100.0
PAGES = "io.modelcontextprotocol/ui"
HANDSHAKE = Handshake(
    "2025-11-25", {"roots": {}, "elicitation": {"form": {}, "url": {}}}, {"name": "client", "version": "1"}, "somebody"
)


@pytest.fixture
def keys() -> KeyRing:
    return KeyRing([b"a" * 32])


@pytest.fixture
def sessions(keys: KeyRing, clock: Clock) -> SignedSessions:
    return SignedSessions(keys, lifetime=LIFETIME, clock=clock)


async def test_a_session_is_known_to_every_process_with_the_same_keys(
    sessions: SignedSessions, keys: KeyRing, clock: Clock
) -> None:
    session_id = await sessions.create(HANDSHAKE)
    other = SignedSessions(keys, lifetime=LIFETIME, clock=clock)
    for store in (sessions, sessions, other, other):
        assert await store.get(session_id) == HANDSHAKE


async def test_a_session_of_other_keys_or_one_that_was_changed_is_none(sessions: SignedSessions, clock: Clock) -> None:
    session_id = await sessions.create(HANDSHAKE)
    stranger = SignedSessions(KeyRing([b"b" * 32]), clock=clock)
    assert await stranger.get(session_id) is None
    version, payload, code = session_id.split(".")
    for changed in (
        "",
        "x",
        payload,
        f"{version}.{payload}.",
        f"{version}.A{payload[1:]}.{code}",
        session_id + "A",
        "é" * 40,
    ):
        assert await sessions.get(changed) is None
    assert await sessions.get("1." + "A" * 5000 + "." + code) is None


async def test_ids_are_visible_ascii_and_never_the_same(sessions: SignedSessions) -> None:
    ids = {await sessions.create(HANDSHAKE) for _ in range(50)}
    assert len(ids) == 50
    assert all("!" <= character <= "~" for session_id in ids for character in session_id)


async def test_a_session_ends_by_itself(sessions: SignedSessions, clock: Clock) -> None:
    session_id = await sessions.create(HANDSHAKE)
    clock.now += LIFETIME - 1
    assert await sessions.get(session_id) == HANDSHAKE
    clock.now += 1
    assert await sessions.get(session_id) is None
    assert await sessions.end(session_id) is False


async def test_an_ended_session_is_over_in_the_process_that_ended_it(sessions: SignedSessions) -> None:
    session_id = await sessions.create(HANDSHAKE)
    assert await sessions.end(session_id) is True
    assert await sessions.end(session_id) is False
    assert await sessions.get(session_id) is None


async def test_an_ended_session_stays_ended_however_many_others_are_ended(keys: KeyRing, clock: Clock) -> None:
    sessions = SignedSessions(keys, clock=clock)
    ended, living = await sessions.create(HANDSHAKE), await sessions.create(HANDSHAKE)
    assert await sessions.end(ended)
    for _ in range(10_001):
        assert await sessions.end(await sessions.create(HANDSHAKE))
    assert await sessions.get(ended) is None
    assert await sessions.end(ended) is False
    assert await sessions.get(living) == HANDSHAKE


async def test_what_is_remembered_of_checked_ids_is_bounded(
    sessions: SignedSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("funcmcp._state.sessions.signed._MAX_CACHED", 3)
    ids = [await sessions.create(HANDSHAKE) for _ in range(6)]
    for session_id in ids:
        assert await sessions.get(session_id) == HANDSHAKE
    assert len(sessions._checked) == 3
    for session_id in ids:
        assert await sessions.get(session_id) == HANDSHAKE


@pytest.mark.parametrize(
    "payload",
    [
        b"[]",
        b"{}",
        b"1",
        b'{"r":"2025-11-25","c":{},"i":{},"x":1e12,"n":""}',
        b'{"r":"2025-11-25","c":{},"i":{},"x":1e12,"n":"","o":null,"scopes":["read"],"v":2}',
        b'{"r":"2025-11-25","c":{},"i":{},"x":1e12,"n":"","o":null,"v":null}',
        b"\xff",
        b"",
        b'{"r":"2025-11-25","c":{},"i":{},"x":"later","n":"","o":null}',
        b'{"r":1,"c":{},"i":{},"x":1e12,"n":"","o":null}',
        b'{"r":"2025-11-25","c":[],"i":{},"x":1e12,"n":"","o":null}',
        b'{"r":"2025-11-25","c":{},"i":{},"x":1e12,"n":"","o":1}',
    ],
)
async def test_an_id_that_another_version_sealed_is_none(
    sessions: SignedSessions, keys: KeyRing, payload: bytes
) -> None:
    session_id = keys.seal("session", payload)
    assert await sessions.get(session_id) is None
    assert await sessions.end(session_id) is False


async def test_an_id_with_a_member_of_a_later_version_is_a_session(sessions: SignedSessions, keys: KeyRing) -> None:
    for more in (b'"added":[1]', b'"added":{},"v":1'):
        session_id = keys.seal("session", b'{"r":"2025-11-25","c":{},"i":{},"x":1e12,"n":"","o":null,%b}' % more)
        assert await sessions.get(session_id) == Handshake("2025-11-25", {}, {}, None)


@pytest.mark.parametrize(
    ("declared", "stored"),
    [
        ({"experimental": {"a": {}}, "roots": {"listChanged": True}}, {"roots": {}}),
        ({"elicitation": {}, "sampling": {"tools": {}, "more": {}}}, {"elicitation": {}, "sampling": {"tools": {}}}),
        (
            {"elicitation": True, "extensions": {PAGES: {"mimeTypes": ["x"]}}},
            {"extensions": {PAGES: {}}},
        ),
    ],
)
async def test_only_what_matters_of_the_capabilities_is_kept(
    sessions: SignedSessions, declared: dict[str, Any], stored: dict[str, Any]
) -> None:
    handshake = await sessions.get(await sessions.create(Handshake("2025-11-25", declared, {})))
    assert handshake is not None
    assert handshake.capabilities == stored


async def test_an_id_stays_short_whatever_a_client_says(sessions: SignedSessions) -> None:
    capabilities: dict[str, Any] = {
        "extensions": {f"e{number}" * 30: {} for number in range(100)},
        "sampling": {"tools": {}},
    }
    info = {"name": "n" * 5000, "version": "v" * 5000, "title": "t" * 5000, "icons": ["x"] * 500}
    session_id = await sessions.create(Handshake("2025-11-25", capabilities, info))
    assert len(session_id) < 4096
    handshake = await sessions.get(session_id)
    assert handshake is not None
    assert handshake.info == {"name": "n" * 100, "version": "v" * 100, "title": "t" * 100}


async def test_a_session_that_this_process_has_ended_is_not_found_without_a_store_of_revocations() -> None:
    alone = SignedSessions(KeyRing())
    session_id = await alone.create(Handshake("2025-11-25"))
    assert await alone.get(session_id) == Handshake("2025-11-25")
    await alone.end(session_id)
    assert await alone.get(session_id) is None
