"""The clients of living sessions."""

from __future__ import annotations

import pytest

from funcmcp._protocol.revisions import REVISIONS
from funcmcp._server.connections.session_clients import Clients, SessionClient
from funcmcp._server.run import Run
from funcmcp._state.sessions.store import Handshake, SessionKey

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")

HANDSHAKE = Handshake("2025-11-25", {"roots": {}}, {"name": "a"})


class Closing(SessionClient):
    """A client that shows whether it was let go of."""

    closed = False

    def close(self) -> None:
        self.closed = True


def client(session_id: str, owner: str | None = None) -> Closing:
    """Return the client of a session, or of a principal's part of one."""
    return Closing(REVISIONS["2025-11-25"], HANDSHAKE, SessionKey(session_id, owner), pushes=False)


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
    assert clients.get(SessionKey("s1")) is None
    clients.add(first)
    assert clients.get(SessionKey("s1")) is first
    clients.end("s1")
    clients.end("s1")
    assert clients.get(SessionKey("s1")) is None


def test_beyond_the_limit_the_oldest_idle_client_goes() -> None:
    clients: Clients[SessionClient] = Clients(limit=2)
    busy = client("busy")
    busy.conversation.begin(1, Run())
    for one in (busy, client("idle"), client("new")):
        clients.add(one)
    assert [clients.get(SessionKey(name)) is not None for name in ("busy", "idle", "new")] == [True, False, True]
    assert len(clients) == 2


def test_a_client_with_a_run_or_an_open_question_is_never_forgotten_to_make_room() -> None:
    clients: Clients[SessionClient] = Clients(limit=50)
    busy = [client(f"busy{number}") for number in range(60)]
    runs = [Run() for _ in busy]
    for member, run in zip(busy, runs, strict=True):
        member.conversation.begin(1, run)
        clients.add(member)
    for number in range(200):
        clients.add(client(f"cheap{number}"))
    assert all(clients.get(member.key) is member for member in busy)
    assert len(clients) < 60 + 10
    for member, run in zip(busy, runs, strict=True):
        member.conversation.finish(1, run)
    for number in range(50):
        clients.add(client(f"next{number}"))
    assert len(clients) == 50


def test_a_client_with_something_to_lose_goes_after_those_without() -> None:
    clients: Clients[SessionClient] = Clients(limit=2)
    chosen = client("chosen")
    chosen.conversation.log_level = "debug"
    for member in (chosen, client("idle"), client("new")):
        clients.add(member)
    assert [clients.get(SessionKey(name)) is not None for name in ("chosen", "idle", "new")] == [True, False, True]
    other = client("other")
    other.conversation.log_level = "debug"
    clients.add(other)
    clients.add(client("last"))
    assert [clients.get(SessionKey(name)) is not None for name in ("chosen", "other", "last")] == [False, True, True]


def test_parts_of_a_session_are_clients_of_their_own() -> None:
    clients: Clients[SessionClient] = Clients()
    session, alices, bobs = client("s1"), client("s1", "alice"), client("s1", "bob")
    for one in (session, alices, bobs):
        clients.add(one)
    assert [clients.get(one.key) for one in (session, alices, bobs)] == [session, alices, bobs]
    assert {one.session_id for one in (session, alices, bobs)} == {"s1"}
    assert alices.conversation is not bobs.conversation


def test_with_a_session_all_its_parts_end_and_no_others() -> None:
    clients: Clients[SessionClient] = Clients()
    ending = [client("s1"), client("s1", "alice"), client("s1", "bob")]
    staying = [client("s2"), client("s2", "alice"), client("s3", "alice")]
    for one in (*ending, *staying):
        clients.add(one)
    clients.end("s1")
    assert [one.closed for one in (*ending, *staying)] == [True] * 3 + [False] * 3
    assert len(clients) == 3


def test_parts_end_where_nobody_used_the_session_without_credentials() -> None:
    clients: Clients[SessionClient] = Clients()
    alices = client("s1", "alice")
    clients.add(alices)
    clients.end("s1")
    clients.end("s1")
    assert alices.closed
    assert len(clients) == 0


def test_the_key_of_a_part_ends_nothing_when_it_is_sent_as_a_sessions_id() -> None:
    clients: Clients[SessionClient] = Clients()
    alices = client("s1", "alice")
    clients.add(alices)
    clients.end(alices.key.to_text())
    assert clients.get(alices.key) is alices
    assert not alices.closed


def test_a_session_that_is_forgotten_to_make_room_takes_no_part_with_it() -> None:
    clients: Clients[SessionClient] = Clients(limit=2)
    session, alices = client("s1"), client("s1", "alice")
    alices.conversation.begin(1, Run())
    for one in (session, alices, client("s2")):
        clients.add(one)
    assert (session.closed, alices.closed) == (True, False)
    assert clients.get(alices.key) is alices
    clients.end("s1")
    assert alices.closed


def test_a_part_that_is_forgotten_to_make_room_leaves_the_others_and_may_come_back() -> None:
    clients: Clients[SessionClient] = Clients(limit=2)
    alices, bobs = client("s1", "alice"), client("s1", "bob")
    for one in (alices, bobs, client("s2")):
        clients.add(one)
    assert (alices.closed, bobs.closed) == (True, False)
    again = client("s1", "alice")
    clients.add(again)
    clients.end("s1")
    assert (bobs.closed, again.closed) == (True, True)
