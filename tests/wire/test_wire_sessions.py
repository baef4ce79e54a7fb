"""Sessions of the handshake era: begun by `initialize` alone, bounded, ended for good."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._state.seal import KeyRing
from funcmcp._state.sessions.memory import MemorySessions
from funcmcp._state.sessions.signed import SignedSessions
from tests import rules
from tests.wire.offering import offer
from tests.wire.peer import HANDSHAKE, HANDSHAKES, PER_REQUEST, Peer, connect, initialize

if TYPE_CHECKING:
    from tests.wire.offering import Offering

pytestmark = pytest.mark.every_python("On Python 3.13 these tests send POSTs to the way without ASGI.")

SESSION = "mcp-session-id"


@rules.verifies(rules.D4, rules.V1)
@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_initialize_begins_a_session_with_an_unguessable_id(offering: Offering, revision: str) -> None:
    """The id is visible ASCII, has at least 128 bits, and is different each time."""
    answers = [await Peer(offering.app, revision).post(initialize(revision)) for _ in range(20)]
    ids = [answer.header(SESSION) or "" for answer in answers]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[\x21-\x7e]{22,}", session_id) for session_id in ids)


@rules.verifies(rules.D4, rules.TRAP_5)
async def test_only_a_successful_initialize_carries_a_session_id(offering: Offering) -> None:
    peer = await connect(offering.app, HANDSHAKE)
    answers = [
        await peer.request("ping"),
        await peer.call("add", {"a": 1, "b": 2}),
        await peer.call("talk"),
        await peer.request("unheard/of"),
        await peer.notify("notifications/initialized"),
        await peer.post(b"{"),
        await Peer(offering.app).request("ping"),
        await peer.request("ping", headers={SESSION: "unheard-of"}),
        await Peer(offering.app).post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}),
        await Peer(offering.app).post(
            {"jsonrpc": "2.0", "method": "initialize", "params": initialize(HANDSHAKE)["params"]}
        ),
        await Peer(offering.app, PER_REQUEST).request("initialize", initialize(HANDSHAKE)["params"]),
        await peer.delete(),
    ]
    assert [answer.header(SESSION) for answer in answers] == [None] * len(answers)


@rules.verifies(rules.D4)
@pytest.mark.parametrize("revision", HANDSHAKES)
@pytest.mark.parametrize("method", ["ping", "tools/list", "tools/call", "unheard/of"])
async def test_without_a_session_id_it_is_400(offering: Offering, revision: str, method: str) -> None:
    """Any method except `initialize` needs the id."""
    answer = await Peer(offering.app, revision).request(method, {"name": "nothing"})
    assert answer.status == 400
    assert (await Peer(offering.app, revision).request(method, headers={SESSION: " \t"})).status == 400
    assert len(offering.sessions) == 0


_STRANGERS = [
    "unheard-of",
    "x" * 10_000,
    "1",
    "../../etc/passwd",
    "é",
    "a b",
    "a\tb",
    "\x7f",
    "\x00",
    "null",
    "' OR 1=1 --",
    "*",
]


@rules.verifies(rules.D4, rules.THREAT_17)
@pytest.mark.parametrize("session_id", _STRANGERS)
async def test_an_unknown_session_is_404_in_the_same_words_as_one_that_ended(
    offering: Offering, session_id: str
) -> None:
    """Unknown and ended sessions have the same response, and no id causes an internal error."""
    peer = await connect(offering.app, HANDSHAKE)
    ended = await connect(offering.app, HANDSHAKE)
    await ended.delete()
    unknown = await peer.request("ping", headers={SESSION: session_id})
    assert unknown.status == 404
    assert unknown.body == (await ended.request("ping")).body
    assert (await peer.delete({SESSION: session_id})).status == 404
    await peer.works()


@rules.verifies(rules.D4)
async def test_a_client_cannot_choose_its_session_id(offering: Offering) -> None:
    """The id in `initialize` is ignored, and the session that it names continues."""
    other = await connect(offering.app, HANDSHAKE)
    for chosen in ("chosen-by-me-0123456789abcdef", other.session_id):
        minted = (await Peer(offering.app).post(initialize(HANDSHAKE), {SESSION: chosen})).header(SESSION)
        assert minted not in {None, chosen}
    assert (await Peer(offering.app, session_id="chosen-by-me-0123456789abcdef").request("ping")).status == 404
    await other.works()


@rules.verifies(rules.D4, rules.H16)
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"protocolVersion": 7},
        {"protocolVersion": HANDSHAKE, "capabilities": []},
        {"protocolVersion": HANDSHAKE, "clientInfo": "me"},
        {"protocolVersion": HANDSHAKE, "capabilities": {"experimental": {"x": "y" * 100_000}}},
    ],
)
async def test_a_refused_initialize_leaves_nothing(offering: Offering, params: dict[str, Any]) -> None:
    answer = await Peer(offering.app).post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
    assert answer.outcome == (200, -32602)
    assert answer.header(SESSION) is None
    assert len(offering.sessions) == 0


@rules.verifies(rules.D4)
async def test_at_the_cap_a_new_session_is_503_if_all_others_are_busy() -> None:
    """The response has Retry-After. DELETE makes room at once."""
    sessions = MemorySessions(limit=2, per_principal=3)
    app = offer(sessions=sessions).app
    first, second = await connect(app, HANDSHAKE), await connect(app, HANDSHAKE)
    sessions.is_busy = lambda _: True
    refused = await Peer(app).post(initialize(HANDSHAKE))
    assert refused.status == 503
    assert int(refused.header("retry-after") or "") >= 1
    assert refused.header(SESSION) is None
    assert len(sessions) == 2
    await first.works()
    await second.works()
    await Peer(app, PER_REQUEST).works()
    assert (await first.delete()).status == 204
    await (await connect(app, HANDSHAKE)).works()
    await second.works()


async def test_a_session_that_can_not_be_ended_for_good_is_503_and_lives_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """DELETE is refused where a revocation would have to be forgotten."""
    monkeypatch.setattr("funcmcp._state.sessions.ended.BUCKETS", 1)
    app = offer(sessions=SignedSessions(KeyRing())).app  # type: ignore[arg-type]
    ended = [await connect(app, HANDSHAKE) for _ in range(64)]
    for peer in ended:
        assert (await peer.delete()).status == 204
    living = await connect(app, HANDSHAKE)
    refused = await living.delete()
    assert refused.status == 503
    assert 86_000 < int(refused.header("retry-after") or "") <= 86_401
    assert refused.messages[0]["error"]["code"] == -32603
    await living.works()
    for peer in ended:
        assert (await peer.request("ping")).status == 404


@rules.verifies(rules.H3, rules.D4)
async def test_delete_ends_one_session_once(offering: Offering) -> None:
    """A second DELETE is 404, one without an id is 400, and other sessions continue."""
    ended, other = await connect(offering.app, HANDSHAKE), await connect(offering.app, HANDSHAKE)
    assert (await ended.delete()).status == 204
    assert (await ended.delete()).status == 404
    assert (await Peer(offering.app).delete()).status == 400
    for method in ("ping", "tools/list", "tools/call"):
        assert (await ended.request(method)).status == 404
    assert (await ended.notify("notifications/initialized")).status == 404
    await other.works()


@rules.verifies(rules.D4)
async def test_a_session_ends_after_long_silence_and_not_before() -> None:
    """Each use postpones the end."""
    now = 0.0
    sessions = MemorySessions(idle=100, clock=lambda: now)
    peer = await connect(offer(sessions=sessions).app, HANDSHAKE)
    for now in (99.0, 190.0, 280.0):  # noqa: B007 - the clock reads it
        await peer.works()
    now = 380.0
    assert (await peer.request("ping")).status == 404
    assert len(sessions) == 0


@rules.verifies(rules.D4)
async def test_the_silent_make_room_for_new_sessions() -> None:
    """Expired sessions do not count for the limit."""
    now = 0.0
    sessions = MemorySessions(limit=1, per_principal=2, idle=100, clock=lambda: now)
    app = offer(sessions=sessions).app
    await connect(app, HANDSHAKE)
    sessions.is_busy = lambda _: True
    now = 50.0
    refused = await Peer(app).post(initialize(HANDSHAKE))
    assert (refused.status, refused.header("retry-after")) == (503, "5")
    now = 101.0
    await (await connect(app, HANDSHAKE)).works()


@rules.verifies(rules.D4, rules.V1)
async def test_a_second_initialize_begins_a_second_session(offering: Offering) -> None:
    """The first session does not change."""
    peer = await connect(offering.app, HANDSHAKE)
    answer = await peer.post(initialize("2025-06-18"), {SESSION: peer.session_id, "mcp-protocol-version": HANDSHAKE})
    assert answer.result["protocolVersion"] == "2025-06-18"
    assert answer.header(SESSION) not in {None, peer.session_id}
    await peer.works()


@rules.verifies(rules.D4, rules.V4)
async def test_the_log_level_of_one_session_is_not_that_of_another(offering: Offering) -> None:
    loud, silent = await connect(offering.app, HANDSHAKE), await connect(offering.app, HANDSHAKE)
    assert (await silent.request("logging/setLevel", {"level": "emergency"})).result == {}
    assert len((await loud.call("log")).messages) == 2
    assert len((await silent.call("log")).messages) == 1
