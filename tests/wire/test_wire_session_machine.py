"""Sessions under any sequence of requests: whose they are, at which instance they live, and when they are over.

The machine knows what has to be answered: each session has an owner, an end, and keys that its id is sealed with.
Callers come with right and wrong keys, ids of others, ids that were tampered with, and bodies that mean nothing;
instances are restarted with other keys, and time goes by. `Peer` checks every answer beside that: no 5xx, valid by the
schema.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from funcmcp._state.seal import KeyRing
from funcmcp._state.sessions.memory import MemorySessions
from funcmcp._state.sessions.signed import SignedSessions
from funcmcp._state.sessions.store import UNUSED_SECONDS
from tests.patience import PATIENCE
from tests.wire.callers import ALICE, BOB, BOBS_NEXT, CAROL, Caller, open_shop
from tests.wire.peer import HANDSHAKES
from tests.wire.peer import initialize as initialize_message

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable

    from funcmcp._state.sessions.store import SessionStore
    from tests.wire.callers import Shop
    from tests.wire.peer import Answer

pytestmark = [
    pytest.mark.timeout(600),  # a failure takes its time to be told in few steps
    pytest.mark.slow("Random sequences of requests go on for long."),
]

NAMES = {None: None, ALICE: "alice", BOB: "bob", BOBS_NEXT: "bob", CAROL: "carol"}
KEYS = {None: None, "alice": ALICE, "bob": BOB, "carol": CAROL}
CREDENTIALS = st.sampled_from(list(NAMES))
REVISIONS = st.sampled_from(HANDSHAKES)
INSTANCES = st.integers(0, 2)
LIFETIME = 1000.0


@dataclass
class Session:
    """What the machine knows of a session.

    Attributes:
        owner: the name of whoever began it; None for nobody in particular.
        key: what its id is sealed with.
        end: when it is over by itself.
        ended_at: instances that know that it was ended.
    """

    id: str
    owner: str | None
    revision: str
    key: bytes
    end: float
    ended_at: set[int] = field(default_factory=set)


class Revoked:
    """Remembers for all instances which sessions were ended."""

    def __init__(self) -> None:
        self._ids: set[str] = set()

    async def add(self, session_id: str, seconds: float) -> bool:
        assert seconds > 0
        is_new = session_id not in self._ids
        self._ids.add(session_id)
        return is_new

    async def has(self, session_id: str) -> bool:
        return session_id in self._ids


class Sessions(RuleBasedStateMachine):
    """Signed sessions at three instances that share nothing but keys: an end is known where it was asked for."""

    sessions = Bundle("sessions")
    is_shared = False
    """Whether all instances learn of an end."""
    keeps_alive = False
    """Whether a request puts off the end."""
    first_lifetime = LIFETIME
    """Seconds for which a session lives that has not been used."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.now = 5000.0
        self.keys = [b"0" * 32]
        self.rings: list[list[bytes]] = []
        self.shops: list[Shop] = []
        self.known: list[Session] = []

    @initialize()
    def start(self) -> None:
        self.shops = [self.shop(self.keys) for _ in range(3)]
        self.rings = [list(self.keys) for _ in range(3)]

    def shop(self, keys: list[bytes]) -> Shop:
        ring = KeyRing(keys)
        return open_shop(sessions=self.store(ring))

    def store(self, ring: KeyRing) -> SessionStore:
        return SignedSessions(ring, lifetime=LIFETIME, clock=self.clock)

    def clock(self) -> float:
        return self.now

    def run(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        return self.loop.run_until_complete(asyncio.wait_for(work, PATIENCE))

    def caller(self, instance: int, key: str | None, session: Session | None = None) -> Caller:
        caller = self.shops[instance].caller(key)
        if session is not None:
            caller.session_id, caller.revision = session.id, session.revision
        return caller

    def lives(self, session: Session, instance: int) -> bool:
        ended = instance in session.ended_at or (self.is_shared and session.ended_at)
        return session.end > self.now and not ended and self.opens(session, instance)

    def opens(self, session: Session, instance: int) -> bool:
        return session.key in self.rings[instance]

    def may(self, key: str | None, session: Session) -> bool:
        return session.owner is None or session.owner == NAMES[key]

    def used(self, session: Session) -> None:
        if self.keeps_alive:
            session.end = self.now + LIFETIME

    def check_call(self, answer: Answer, instance: int, key: str | None, session: Session) -> None:
        """A living session answers its owner as the owner; whether another one's lives nobody can tell."""
        if self.lives(session, instance) and self.may(key, session):
            assert (answer.status, answer.text) == (200, NAMES[key] or "nobody")
        else:
            assert answer.status == 404, answer
        if self.lives(session, instance):
            self.used(session)

    @rule(target=sessions, instance=INSTANCES, key=CREDENTIALS, revision=REVISIONS, named=st.none() | sessions)
    def begin(self, instance: int, key: str | None, revision: str, named: Session | None) -> Session:
        caller = self.caller(instance, key)
        sent = None if named is None else {"mcp-session-id": named.id}
        caller.revision = revision
        answer = self.run(caller.post(initialize_message(revision), sent))
        session_id = answer.header("mcp-session-id")
        assert answer.status == 200
        assert session_id is not None
        assert session_id not in {session.id for session in self.known}, "an id that a client brought was taken"
        session = Session(session_id, NAMES[key], revision, self.rings[instance][0], self.now + self.first_lifetime)
        self.known.append(session)
        return session

    @rule(session=sessions, instance=INSTANCES, key=CREDENTIALS)
    def call(self, session: Session, instance: int, key: str | None) -> None:
        self.check_call(self.run(self.caller(instance, key, session).call("hours")), instance, key, session)

    @rule(session=sessions, instance=INSTANCES, key=CREDENTIALS)
    def end(self, session: Session, instance: int, key: str | None) -> None:
        answer = self.run(self.caller(instance, key, session).delete())
        if self.lives(session, instance):
            self.used(session)
        if self.lives(session, instance) and self.may(key, session):
            assert answer.status == 204
            session.ended_at.add(instance)
        else:
            assert answer.status == 404
        self.look_at([session], range(len(self.shops)))

    def look_at(self, sessions: Iterable[Session], instances: Iterable[int]) -> None:
        """Let the owners of sessions call at instances."""
        for instance in instances:
            for session in sessions:
                self.call(session, instance, KEYS[session.owner])

    @rule(session=sessions, instance=INSTANCES)
    def call_with_an_unknown_key(self, session: Session, instance: int) -> None:
        assert self.run(self.caller(instance, "no-key-of-anybody", session).call("hours")).status == 401

    @rule(
        session=sessions,
        instance=INSTANCES,
        key=CREDENTIALS,
        place=st.integers(0, 400),
        sent=st.sampled_from("aZ0_.~ "),
    )
    def tamper(self, session: Session, instance: int, key: str | None, place: int, sent: str) -> None:
        place %= len(session.id) + 1
        forged = Session(session.id[:place] + sent + session.id[place + 1 :], None, session.revision, b"", 0.0)
        if forged.id.strip() != session.id:
            assert self.run(self.caller(instance, key, forged).call("hours")).status == 404

    @rule(
        session=sessions,
        instance=INSTANCES,
        key=CREDENTIALS,
        body=st.sampled_from([b"", b"{", b"\xff", b"[]", b"7", b'{"jsonrpc":"2.0","id":{},"method":"ping"}'])
        | st.binary(max_size=40),
    )
    def send_what_means_nothing(self, session: Session, instance: int, key: str | None, body: bytes) -> None:
        answer = self.run(self.caller(instance, key, session).post(body, like={}))
        assert answer.status in {400, 404}
        if self.lives(session, instance) and answer.status == 404:
            self.used(session)
        self.check_call(self.run(self.caller(instance, key, session).call("hours")), instance, key, session)

    @rule(session=sessions, instance=INSTANCES, key=CREDENTIALS, revision=REVISIONS)
    def name_another_revision(self, session: Session, instance: int, key: str | None, revision: str) -> None:
        answer = self.run(self.caller(instance, key, session).call("hours", headers={"mcp-protocol-version": revision}))
        self.check_call(answer, instance, key, session)

    @rule(seconds=st.sampled_from([1.0, LIFETIME / 2, LIFETIME - 1, LIFETIME]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @invariant()
    def every_instance_answers_a_good_request(self) -> None:
        for shop in self.shops:
            answer = self.run(shop.caller(ALICE, "2026-07-28").call("whoami"))
            assert (answer.status, answer.text) == (200, "alice")

    def teardown(self) -> None:
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()


class SignedMachine(Sessions):
    """Adds instances that are restarted: with a new key in front, and without the oldest one."""

    @rule(instance=INSTANCES, keys=st.sampled_from(["the same", "a new one in front", "without the oldest"]))
    def restart(self, instance: int, keys: str) -> None:
        """A restarted instance has forgotten which sessions it ended."""
        if keys == "a new one in front":
            self.keys.insert(0, b"%032d" % (int(self.keys[0]) + 1))
        elif keys == "without the oldest" and len(self.keys) > 1:
            self.keys.pop()
        self.rings[instance] = list(self.keys)
        self.shops[instance] = self.shop(self.keys)
        for session in self.known:
            session.ended_at.discard(instance)
        self.look_at(self.known[-3:], [instance])


class RevokedMachine(Sessions):
    """Signed sessions with a store of those that were ended: an end counts everywhere."""

    is_shared = True

    def __init__(self) -> None:
        super().__init__()
        self.revoked = Revoked()

    def store(self, ring: KeyRing) -> SessionStore:
        return SignedSessions(ring, revoked=self.revoked, lifetime=LIFETIME, clock=self.clock)

    @rule(instance=INSTANCES)
    def restart(self, instance: int) -> None:
        self.shops[instance] = self.shop(self.keys)
        self.look_at(self.known[-3:], [instance])


class MemoryMachine(Sessions):
    """Sessions in the memory of one process, which several endpoints share here."""

    is_shared = True
    keeps_alive = True
    first_lifetime = UNUSED_SECONDS

    def __init__(self) -> None:
        super().__init__()
        self.memory = MemorySessions(idle=LIFETIME, clock=self.clock)

    def store(self, ring: KeyRing) -> SessionStore:
        return self.memory


_SETTINGS = settings(
    deadline=None, max_examples=25, stateful_step_count=30, suppress_health_check=[HealthCheck.too_slow]
)

for machine in (SignedMachine, RevokedMachine, MemoryMachine):
    machine.TestCase.settings = _SETTINGS

TestSignedSessions = SignedMachine.TestCase
TestSignedSessionsWithAStoreOfEnds = RevokedMachine.TestCase
TestSessionsInMemory = MemoryMachine.TestCase
