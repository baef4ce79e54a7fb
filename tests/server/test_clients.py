"""The clients of living sessions."""

from __future__ import annotations

from funcmcp.protocol.revisions import REVISIONS
from funcmcp.server.clients import Clients, SessionClient
from funcmcp.server.run import Run
from funcmcp.sessions.store import Handshake

HANDSHAKE = Handshake("2025-11-25", {"roots": {}}, {"name": "a"})


def client(session_id: str) -> SessionClient:
    return SessionClient(REVISIONS["2025-11-25"], HANDSHAKE, session_id, pushes=False)


def test_a_sessions_client_knows_what_the_handshake_said() -> None:
    made = client("s1")
    assert (made.revision.date, made.capabilities, made.info, made.session_id) == (
        "2025-11-25",
        {"roots": {}},
        {"name": "a"},
        "s1",
    )
    assert made.conversation.idle


def test_a_client_is_found_again_until_its_session_ends() -> None:
    first = client("s1")
    clients: Clients[SessionClient] = Clients()
    assert clients.get("s1") is None
    clients.add(first)
    assert clients.get("s1") is first
    clients.end("s1")
    clients.end("s1")
    assert clients.get("s1") is None


def test_beyond_the_limit_the_oldest_idle_client_goes() -> None:
    clients: Clients[SessionClient] = Clients(limit=2)
    busy = client("busy")
    busy.conversation.begin(1, Run())
    for one in (busy, client("idle"), client("new")):
        clients.add(one)
    assert [clients.get(name) is not None for name in ("busy", "idle", "new")] == [True, False, True]
    assert len(clients) == 2


def test_beyond_the_limit_the_oldest_client_goes_if_all_are_busy() -> None:
    clients: Clients[SessionClient] = Clients(limit=20)
    for number in range(22):
        one = client(str(number))
        one.conversation.begin(1, Run())
        clients.add(one)
    assert len(clients) == 20
    assert [clients.get(name) is not None for name in ("0", "1", "2")] == [False, False, True]
