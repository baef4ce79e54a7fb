"""Session ids and request states: only tokens that one of the keys sealed for the purpose can be opened.

The first byte selects a genuine token and the second a change. The other bytes are the input of the change.
"""

from __future__ import annotations

from funcmcp._protocol.codec import encode
from funcmcp._protocol.errors import InvalidParams
from funcmcp._protocol.jsonrpc import Request
from funcmcp._server.calls.channel import ClosedChannel
from funcmcp._server.calls.rounds import InputRequired, Rounds, UsedStates
from funcmcp._state.bus import LocalBus
from funcmcp._state.seal import KeyRing
from funcmcp._state.sessions.signed import SignedSessions
from funcmcp._state.sessions.store import Handshake
from fuzz.driving import drive

SESSION, STATE = "session", "request state"
OLD, NEW = b"o" * 32, b"n" * 32
RING, FOREIGN_RING = KeyRing([NEW, OLD]), KeyRing([b"x" * 32])
_PARAMS = {"name": "ask", "arguments": {"a": 1}}
_USED = UsedStates(LocalBus())
_CHANNEL = ClosedChannel()


def _question_state() -> str:
    """Return the request state of a question."""
    rounds = Rounds(_CHANNEL, Request(1, "tools/call", _PARAMS), RING, _USED, owner="alice")
    try:
        drive(rounds.ask({"q": {"method": "roots/list"}}))
    except InputRequired as required:
        return required.state
    raise AssertionError("no question was asked")


_SESSIONS = SignedSessions(RING)
_GENUINE: tuple[tuple[str, str], ...] = (
    (SESSION, drive(_SESSIONS.create(Handshake("2025-11-25", {}, {}, "alice")))),
    (SESSION, drive(SignedSessions(KeyRing([OLD])).create(Handshake("2025-03-26")))),
    (STATE, _question_state()),
    (STATE, RING.seal(STATE, b"")),
    (SESSION, RING.seal(SESSION, encode("\u20ac" * 9))),
    (SESSION, FOREIGN_RING.seal(SESSION, b"{}")),
    (STATE, FOREIGN_RING.seal(STATE, b"{}")),
    ("another purpose", RING.seal("another purpose", b"{}")),
)
_OWNERS = ("alice", "bob", None)
_OPENING = 5
"""Number of the tokens that the ring opens."""

_SEALED = {SESSION: {token for of, token in _GENUINE[:_OPENING] if of == SESSION}}
_SEALED[STATE] = {token for of, token in _GENUINE[:_OPENING] if of == STATE}


def check(data: bytes) -> None:
    """Open a changed token for each purpose, as a session and as a request state."""
    token = _made(data)
    for purpose, sealed in _SEALED.items():
        payload = RING.open(purpose, token)
        assert (payload is not None) == (token in sealed), (
            "opened although it is not sealed, or not opened although it is"
        )
        if payload is not None and token != _GENUINE[1][1]:
            assert RING.seal(purpose, payload) == token
    if token != _GENUINE[4][1]:  # is no session, though it is sealed as one
        handshake = drive(_SESSIONS.get(token))
        assert (handshake is not None) == (token in {_GENUINE[0][1], _GENUINE[1][1]})
    _check_state(token, _OWNERS[data[0] % len(_OWNERS) if data else 0])


def _check_state(token: str, owner: str | None) -> None:
    if token == _GENUINE[3][1]:
        return
    params = {**_PARAMS, "requestState": token}
    try:
        Rounds(_CHANNEL, Request(1, "tools/call", params), RING, _USED, owner=owner)
    except InvalidParams:
        assert (token, owner) != (_GENUINE[2][1], "alice"), "rejected, although it belongs to the caller"
    else:
        assert (token, owner) == (_GENUINE[2][1], "alice"), "accepted, although it belongs to another caller"


def _made(data: bytes) -> str:
    text = data[4:].decode("utf-8", "surrogateescape")
    if len(data) < 4:
        return text
    genuine = _GENUINE[data[0] % len(_GENUINE)][1]
    place = int.from_bytes(data[2:4], "big") % (len(genuine) + 1)
    parts, texts = genuine.split("."), [*text.split("."), "", "", ""]
    return [
        genuine,
        genuine[:place] + text + genuine[place:],
        genuine[:place] + text + genuine[place + len(text) :],
        genuine[:place],
        text,
        f"{parts[0]}.{texts[0]}.{parts[2]}",
        f"{parts[0]}.{parts[1]}.{texts[0]}",
        f"{parts[0]}.{texts[0]}.{texts[1]}",
        genuine[:place] + genuine[place:].swapcase(),
    ][data[1] % 9]
