"""Lists: pages, how long they are good, their order, and what is declared of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests import rules
from tests.wire.offering import offer, offer_all
from tests.wire.peer import ALL, HANDSHAKES, PER_REQUEST, Peer, connect, initialize

if TYPE_CHECKING:
    from tests.wire.offering import Offering
    from tests.wire.peer import Answer

LISTS = {
    "tools/list": ("tools", "name"),
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
    "prompts/list": ("prompts", "name"),
}
EVERY_LIST = pytest.mark.parametrize("method", LISTS)
BAD_CURSORS: tuple[object, ...] = (
    5,
    0,
    1.5,
    True,
    False,
    [],
    {},
    ["a"],
    "a",
    "YQ==",
    "bm93aGVyZQ==",
    "é",
    "\x00",
    "A" * 10_000,
    "../..",
)


def names(answer: Answer, method: str) -> list[str]:
    member, name = LISTS[method]
    return [item[name] for item in answer.result[member]]


@rules.verifies(rules.G1)
@EVERY_LIST
@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize("revision", ALL)
async def test_pages_together_are_the_whole_list(revision: str, method: str, size: int) -> None:
    complete = names(await (await connect(offer_all().app, revision)).request(method), method)
    peer = await connect(offer_all(page_size=size).app, revision)
    seen: list[str] = []
    answer = await peer.request(method)
    for _ in complete:
        seen += names(answer, method)
        cursor = answer.result.get("nextCursor")
        if cursor is None:
            break
        assert isinstance(cursor, str)
        assert len(names(answer, method)) == size
        answer = await peer.request(method, {"cursor": cursor})
    assert seen == complete


@rules.verifies(rules.G1)
@EVERY_LIST
@pytest.mark.parametrize("revision", ALL)
async def test_a_bad_cursor_is_invalid(stocked: Offering, revision: str, method: str) -> None:
    peer = await connect(stocked.app, revision)
    outcomes = {repr(cursor): (await peer.request(method, {"cursor": cursor})).outcome for cursor in BAD_CURSORS}
    assert outcomes == dict.fromkeys(outcomes, (400, -32602) if peer.per_request else (200, -32602))
    await peer.works()


@rules.verifies(rules.G1)
@pytest.mark.parametrize("revision", ALL)
async def test_a_cursor_is_good_for_its_own_list_only(revision: str) -> None:
    peer = await connect(offer_all(page_size=1).app, revision)
    cursors = {method: (await peer.request(method)).result["nextCursor"] for method in LISTS}
    for method in LISTS:
        for other in LISTS.keys() - {method}:
            answer = await peer.request(method, {"cursor": cursors[other]})
            assert answer.error["code"] == -32602


@rules.verifies(rules.K1, rules.THREAT_35)
@EVERY_LIST
async def test_every_page_says_how_long_it_is_good_and_for_whom(method: str) -> None:
    """All pages have the same scope. A list that depends on the caller is private."""
    peer = await connect(offer_all(page_size=2).app, PER_REQUEST)
    answer = await peer.request(method)
    pages = [answer.result]
    while "nextCursor" in answer.result:
        answer = await peer.request(method, {"cursor": answer.result["nextCursor"]})
        pages.append(answer.result)
    assert len(pages) > 1
    assert {page["cacheScope"] for page in pages} == {"private" if method == "resources/list" else "public"}
    assert all(type(page["ttlMs"]) is int and page["ttlMs"] >= 0 for page in pages)


@rules.verifies(rules.K1, rules.THREAT_35)
async def test_what_is_read_and_what_is_discovered_say_how_long_they_are_good(stocked: Offering) -> None:
    """The contents of a resource are private."""
    peer = await connect(stocked.app, PER_REQUEST)
    read = (await peer.request("resources/read", {"uri": "menu://today"})).result
    assert (type(read["ttlMs"]), read["cacheScope"]) == (int, "private")
    discovered = (await peer.request("server/discover")).result
    assert (type(discovered["ttlMs"]), discovered["cacheScope"]) == (int, "public")


@rules.verifies(rules.K1)
@EVERY_LIST
@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_nothing_is_said_of_caching_in_the_handshake_era(stocked: Offering, revision: str, method: str) -> None:
    result = (await (await connect(stocked.app, revision)).request(method)).result
    assert not {"ttlMs", "cacheScope", "resultType"} & result.keys()


@rules.verifies(rules.T2)
@EVERY_LIST
@pytest.mark.parametrize("revision", ALL)
async def test_a_list_is_the_same_for_everybody_and_each_time(stocked: Offering, revision: str, method: str) -> None:
    first, second = [await connect(stocked.app, revision, {"sampling": {}} if number else {}) for number in range(2)]
    answers = [await peer.request(method) for peer in (first, second, first)]
    assert answers[0].result == answers[1].result == answers[2].result


async def declared(app: Any, revision: str) -> dict[str, Any]:
    """Return what a server says that it can do."""
    peer = Peer(app, revision)
    answer = await (peer.request("server/discover") if peer.per_request else peer.post(initialize(revision)))
    capabilities: dict[str, Any] = answer.result["capabilities"]
    return capabilities


@rules.verifies(rules.R1, rules.P1, rules.C1, rules.A1, rules.V9)
@pytest.mark.parametrize("revision", ALL)
async def test_what_is_offered_is_declared(revision: str) -> None:
    """The capabilities have the notifications that the server sends and the revision has."""
    capabilities = await declared(offer_all().app, revision)
    changes = {"listChanged": True}
    assert capabilities["resources"] == {**changes, "subscribe": True}
    assert capabilities["tools"] == capabilities["prompts"] == changes
    assert ("completions" in capabilities) == (revision >= "2025-03-26")
    assert set(await declared(offer().app, revision)) == {"logging", "tools"}


@rules.verifies(rules.A1, rules.R4)
@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_changes_are_not_promised_to_those_who_cannot_be_told(revision: str) -> None:
    """Without streams there is no `listChanged` and no `resources/subscribe`."""
    offering = offer_all(live=False)
    capabilities = await declared(offering.app, revision)
    assert capabilities["resources"] == capabilities["tools"] == capabilities["prompts"] == {}
    peer = await connect(offering.app, revision)
    for method in ("resources/subscribe", "resources/unsubscribe"):
        assert (await peer.request(method, {"uri": "menu://today"})).outcome == (200, -32601)


@rules.verifies(rules.A1, rules.G1)
@EVERY_LIST
@pytest.mark.parametrize("revision", ALL)
async def test_a_list_shows_a_change_at_once(stocked: Offering, revision: str, method: str) -> None:
    """The cached list is replaced, and a cursor of a removed item is invalid."""
    peer = await connect(stocked.app, revision)
    before = names(await peer.request(method), method)
    stocked.app.tool("late")(lambda: "")
    stocked.app.resource("menu://late", name="late")(lambda: "")
    stocked.app.resource("menu://late/{a}", name="late")(lambda a: "")
    stocked.app.prompt("late")(lambda: "")
    after = names(await peer.request(method), method)
    assert set(before) < set(after)
    assert len(after) == len(before) + 1
