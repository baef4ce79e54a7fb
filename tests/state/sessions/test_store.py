"""What a session remembers."""

from __future__ import annotations

import pytest

from funcmcp._state.seal import KeyRing
from funcmcp._state.sessions.memory import MemorySessions
from funcmcp._state.sessions.signed import SignedSessions
from funcmcp._state.sessions.store import (
    Handshake,
    LiveSessions,
    NoSessions,
    SessionKey,
    SessionsFullError,
    SessionStore,
)


def test_a_handshake_is_frozen_with_its_default_values() -> None:
    handshake = Handshake("2025-11-25")
    assert handshake == Handshake("2025-11-25")
    with pytest.raises(AttributeError):
        handshake.revision = "2024-11-05"  # type: ignore[misc]


def test_a_session_counts_for_its_principal_or_else_for_its_address() -> None:
    assert Handshake("2025-11-25", owner="alice", address="here").payer == "alice"
    assert Handshake("2025-11-25", address="here").payer == "here"
    assert Handshake("2025-11-25").payer is None


def test_a_reduced_handshake_has_what_a_server_uses() -> None:
    capabilities = {"elicitation": {"form": {}, "other": {}}, "roots": {"listChanged": True}, "experimental": {"x": {}}}
    info = {"name": "n" * 200, "version": "1", "icons": [{"src": "data:"}]}
    handshake = Handshake("2025-11-25", capabilities, info, "alice", "here")
    used: dict[str, dict[str, object]] = {"elicitation": {"form": {}}, "roots": {}}
    assert handshake.reduced() == Handshake("2025-11-25", used, {"name": "n" * 100, "version": "1"}, "alice", "here")


def test_a_full_store_says_when_to_try_again() -> None:
    assert SessionsFullError(30).retry_after == 30


def test_sessions_in_memory_are_a_store() -> None:
    store: SessionStore = MemorySessions()
    assert all(callable(getattr(store, name)) for name in ("create", "get", "end"))


def test_only_live_sessions_have_streams_between_requests() -> None:
    stores = (MemorySessions(), SignedSessions(KeyRing()), NoSessions())
    assert [isinstance(store, LiveSessions) for store in stores] == [True, False, False]


@pytest.mark.parametrize(
    ("key", "text"), [(SessionKey("s1"), "s1"), (SessionKey("s1", "alice"), "s1 alice")], ids=["session", "part"]
)
def test_a_key_is_one_text_between_instances(key: SessionKey, text: str) -> None:
    assert key.to_text() == text
    assert SessionKey.from_text(text) == key
